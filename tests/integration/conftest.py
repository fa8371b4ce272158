import pytest

from .npm import Npm, installed


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Npm:
    """Servers of others, from the npm registry."""
    return installed(tmp_path_factory.mktemp("npm"))
