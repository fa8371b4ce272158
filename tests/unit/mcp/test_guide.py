import re
from pathlib import Path

from loopctl.settings import load

GUIDE = Path(__file__).parents[3] / "docs/guide/mcp.md"


def test_the_example_of_the_guide_is_read(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "loop.toml").write_text(found[1])
    servers = load(tmp_path, {}, {}).settings.mcp
    assert {name: server.is_in_worktree for name, server in servers.items()} == {
        "files": True,
        "issues": False,
        "search": False,
    }
