from pathlib import Path

import pytest

from loopctl.errors import RepositoryError
from loopctl.sandbox.checkout import trusted_folders
from loopctl.sandbox.find import find_checkout
from loopctl.sandbox.git import global_config_text


def test_the_checkout_is_found_from_below(tmp_path: Path) -> None:
    (tmp_path / "p" / ".git").mkdir(parents=True)
    (tmp_path / "p" / "a" / "b").mkdir(parents=True)
    assert find_checkout(tmp_path / "p" / "a" / "b") == tmp_path / "p"


def test_a_linked_worktree_is_a_checkout(tmp_path: Path) -> None:
    shared = tmp_path / "main" / ".git"
    (shared / "worktrees" / "w").mkdir(parents=True)
    (shared / "worktrees" / "w" / "commondir").write_text("../..\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text(f"gitdir: {shared}/worktrees/w\n")
    assert find_checkout(tmp_path / "w") == tmp_path / "w"
    assert shared in trusted_folders(tmp_path / "w")


def test_no_repository_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="git init"):
        find_checkout(tmp_path)


def test_a_bare_repository_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(RepositoryError, match="bare repository"):
        find_checkout(tmp_path)


@pytest.mark.parametrize("below", ["", "hooks", "worktrees/w", "modules/sub"])
def test_inside_the_repository_s_own_folder_the_checkout_is_named(
    tmp_path: Path, below: str
) -> None:
    own = tmp_path / "p" / ".git"
    for folder in (own, own / "modules" / "sub"):
        (folder / "objects").mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (own / below).mkdir(parents=True, exist_ok=True)
    with pytest.raises(RepositoryError) as caught:
        find_checkout(own / below)
    assert "inside the repository's own folder" in str(caught.value)
    assert str(caught.value).endswith(f"run loop in the checkout, {tmp_path / 'p'}")


def test_a_trusted_folder_with_quotes_is_written_so_that_git_reads_it() -> None:
    text = global_config_text(Path('/a "b" \\c'))
    assert text == '[safe]\n\tdirectory = "/a \\"b\\" \\\\c"\n'
