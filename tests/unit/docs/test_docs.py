import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from loopctl.demo.create import MANIFEST, project_files
from loopctl.domain import EXIT_CODES, TaskStatus
from loopctl.manifest.toml import TomlManifest
from loopctl.verdict import Blame, Verdict

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
TOML = re.compile(r"^```toml *(.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(block[2], id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(TOML.finditer(page.read_text(encoding="utf-8")))
    if block[1] == "manifest"
]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", BLOCKS)
def test_manifest_in_the_docs_is_valid(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ACTIVE.toml"
    path.write_text(text, encoding="utf-8")
    assert TomlManifest(path, "tasks/ACTIVE.toml", known_workers=["command"]).load().tasks


def test_every_example_of_the_guide_is_checked() -> None:
    guide = (DOCS / "guide/manifest.md").read_text(encoding="utf-8")
    assert [block[1] for block in TOML.finditer(guide)] == ["manifest"] * guide.count("```toml")


def test_faults_are_shown_as_the_guide_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "ACTIVE.toml"
    task = '\n[[task]]\nid = "{}"\ntitle = "Title"\nworker = "command"\ncommand = "true"\n{}\n'
    broken = task.format("T2", 'verify_command = "true"') + task.format("T3", 'deps = ["T9"]')
    path.write_text(f"schema = 1\n{broken}")
    with pytest.raises(Exception, match="unknown key") as caught:
        TomlManifest(path, "tasks/ACTIVE.toml").load()
    assert str(caught.value) in (DOCS / "guide/manifest.md").read_text(encoding="utf-8")


def test_demo_manifest_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "ACTIVE.toml"
    path.write_bytes(dict(project_files(sys.executable))[MANIFEST])
    manifest = TomlManifest(path, MANIFEST, known_workers=["command"]).load()
    assert [task.id for task in manifest.tasks] == [f"T{number}" for number in range(1, 11)]
    assert {task.status for task in manifest.tasks} == {TaskStatus.TODO}


def test_diagram_of_statuses_is_the_one_that_the_table_gives() -> None:
    page = (DOCS / "design/engine.md").read_text(encoding="utf-8")
    found = page.partition("<!-- states: begin -->\n")[2].partition("<!-- states: end -->")[0]
    assert found == load("generate").state_diagram()


def test_glossary_has_every_status_verdict_and_blame() -> None:
    words = (DOCS / "glossary.md").read_text(encoding="utf-8")
    missing = [word for word in (*TaskStatus, *Verdict, *Blame) if f"`{word}`" not in words]
    assert missing == []


def test_exit_codes_are_all_listed() -> None:
    page = (DOCS / "reference/exit-codes.md").read_text(encoding="utf-8")
    assert [s for s, code in EXIT_CODES.items() if f"| {code} | `{s}` |" not in page] == []


def test_first_screen_of_the_readme_is_forty_lines() -> None:
    first, found, _ = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")
    assert found
    assert len(first.splitlines()) <= 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("https://")]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_architecture_names_only_modules_that_are_there() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    tree, table = page.split("## The life of one task")
    named = {*re.findall(r"^  ([a-z_]+(?:/|\.py))", tree, re.MULTILINE)}
    named |= {*re.findall(r" ([a-z]+(?:/|\.py)) ", tree.partition("```\n")[2].partition("```")[0])}
    named |= {*re.findall(r"`([a-z_]+/[a-z_]*(?:\.py)?)`", table)}
    assert len(named) > 25
    assert [name for name in sorted(named) if not (ROOT / "src/loopctl" / name).exists()] == []


def test_architecture_names_every_part() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## The life")[0]
    parts = [path for path in (ROOT / "src/loopctl").iterdir() if path.name[0] not in "_."]
    names = {f"{path.name}/" if path.is_dir() else path.name for path in parts} - {"py.typed"}
    assert [name for name in sorted(names) if f"{name} " not in page] == []


def test_commands_that_the_docs_show_are_there() -> None:
    commands = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
    shown = {
        (page.name, word)
        for page in PAGES
        for word in re.findall(r"`loop ([a-z][a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert {word for _, word in shown} >= {"answer", "land", "report", "defer", "demo"}
    assert [use for use in sorted(shown) if f"loop {use[1]}" not in commands] == []
