import json
from pathlib import Path

import pytest

from loopctl.domain import Mode
from loopctl.errors import SettingsError
from loopctl.settings import (
    Origin,
    Settings,
    Source,
    differences,
    environment,
    from_json,
    load,
    table,
)

CONTRACT = """
[loop]
jobs = 1
mode = "autonomous"
worker = "graph"
[budget]
run_usd = 10.0
task_tokens = 200000
loops = 25
wall_s = 3600
[stall]
window = 3
replan_cap = 4
stuck_steps = 6
[modes.relay]
context.compaction_threshold_events = 0
[context]
compaction_threshold_events = 6
window_tokens = 100000
[models.embed]
name = "openai/gpt-x-embed"
[models.cheap]
name = "openai/gpt-x-mini"
api_base = "http://127.0.0.1:8000/v1"
api_key_env = "OPENAI_API_KEY"
fallbacks = []
max_output_tokens = 4096
input_usd_per_mtok = 0.1
output_usd_per_mtok = 0.4
[gate]
typecheck = "auto"
timeout_s = 600
protect = ["tests/**", "test/**", "**/conftest.py", ".github/**", ".ci/**"]
[sandbox]
confine = "auto"
network = false
setup_cmd = ""
share = [".venv", "node_modules"]
beam_width = 2
[policy]
deny = []
approve = ["mcp:*:destructive"]
approve_timeout_s = 3600
pre_tool_use = []
[mcp.files]
command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
[land]
branch = "loop/integration"
auto = false
"""


def faults(folder: Path, text: str = "", **environ: str) -> list[str]:
    (folder / "loop.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(folder, {}, environ)
    return [str(fault) for fault in caught.value.faults]


def test_the_file_of_the_contract_is_read_and_its_numbers_are_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, {}, {}).settings == Settings()
    (tmp_path / "loop.toml").write_text(CONTRACT)
    settings = load(tmp_path, {}, {}).settings
    assert settings.models.cheap is not None
    assert settings.models.cheap.input_usd_per_mtok == 0.1
    assert settings.mcp["files"].command == (
        *("npx", "-y"),
        *("@modelcontextprotocol/server-filesystem", "."),
    )
    bare = settings.model_copy(update={"models": Settings().models, "mcp": {}})
    assert bare == Settings()


def test_the_strongest_source_wins_and_each_value_knows_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'x'\n[tool.loopctl.loop]\njobs = 2\nworker = 'claude'\n"
        "[tool.loopctl.stall]\nwindow = 9\n[tool.loopctl.budget]\nloops = 7\n"
    )
    (tmp_path / "loop.toml").write_text("[loop]\njobs = 3\nworker = 'codex'\n[stall]\nwindow = 8\n")
    loaded = load(
        tmp_path,
        {"loop.jobs": 5, "budget.run_usd": None},
        {"LOOP_SET_LOOP__JOBS": "4", "LOOP_SET_LOOP__WORKER": "aider", "LOOP_TASK": "T1"},
    )
    assert loaded.settings.loop.jobs == 5
    assert loaded.settings.loop.worker == "aider"
    assert loaded.settings.stall.window == 8
    assert loaded.settings.budget.loops == 7
    assert {name: loaded.origins[name] for name in ("loop.jobs", "loop.worker", "land.auto")} == {
        "loop.jobs": Origin(Source.COMMAND_LINE),
        "loop.worker": Origin(Source.ENVIRONMENT, "LOOP_SET_LOOP__WORKER"),
        "land.auto": Origin(Source.DEFAULT),
    }
    assert str(loaded.origins["stall.window"]) == "loop.toml:5"
    assert str(loaded.origins["budget.loops"]) == "pyproject.toml:9"
    assert str(loaded.origins["budget.run_usd"]) == "default"


@pytest.mark.parametrize("given", [None, 10.0])
def test_a_run_remembers_whether_its_cap_in_dollars_was_set(
    tmp_path: Path, given: float | None
) -> None:
    frozen = load(tmp_path, {"budget.run_usd": given}, {}).json
    budget = from_json(frozen).budget
    assert budget.run_usd == 10.0
    assert ("run_usd" in budget.model_fields_set) is (given is not None)
    assert differences(frozen, load(tmp_path, {}, {}).json) == ()


def test_every_value_of_the_loaded_settings_has_an_origin(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text(CONTRACT)
    loaded = load(tmp_path, {}, {})
    documented = {name for name, _, _ in table()}
    assert {name.replace("mcp.files", "mcp.NAME") for name in loaded.origins} <= documented | {
        "models.standard",
        "models.premium",
    }
    assert loaded.origins["mcp.files.command"].source is Source.LOOP_TOML


def test_all_faults_of_all_sources_come_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.loopctl]\njobs = 2\n")
    (tmp_path / "loop.toml").write_text(
        '[loop]\njobz = 1\nworker = 3\nmode = "relai"\n[mcp.a__b]\ncommand = []\n'
        '[policy]\napprove = [\n"mcp:x",\n"foo"]\n[gate]\nprotect = "x"\ntimeout_s = 0\n'
        '[budget]\nrun_usd = -1\ntask_usd = nan\n[sandbox]\nconfine = "of"\nnetwork = 1\n'
        'setup_cmd = "\\u0000"\n[land]\nbranch = ""\n'
    )
    with pytest.raises(SettingsError) as caught:
        load(
            tmp_path,
            {"loop.jobs": "x"},
            {"LOOP_SET_LOOP__JOBS": "many", "LOOP_SET_X": "1", "LOOP_SET_LAND__AUTO__X": "1"},
        )
    assert [str(fault) for fault in caught.value.faults] == [
        'pyproject.toml:2: jobs: unknown setting (did you mean "loop.jobs"?)',
        'loop.toml:2: loop.jobz: unknown setting (did you mean "jobs"?)',
        "loop.toml:3: loop.worker: 3 is no text; write it in quotes",
        'loop.toml:4: loop.mode: "relai" is not one of autonomous, relay (did you mean "relay"?)',
        "loop.toml:5: mcp.a__b: \"a__b\" is no name: letters, digits, '-' and single '_'",
        "loop.toml:6: mcp.a__b.command: [] is empty",
        (
            'loop.toml:10: policy.approve[1]: "foo" begins with none of mcp:, bash:, step:, area: '
            "and would never apply"
        ),
        'loop.toml:12: gate.protect: "x" is no list; write [...]',
        "loop.toml:13: gate.timeout_s: 0 is not more than 0",
        "loop.toml:15: budget.run_usd: -1 is less than 0",
        "loop.toml:16: budget.task_usd: nan is not finite",
        (
            'loop.toml:18: sandbox.confine: "of" is not one of auto, require, off '
            '(did you mean "off"?)'
        ),
        "loop.toml:19: sandbox.network: 1 is neither true nor false",
        'loop.toml:20: sandbox.setup_cmd: "\\u0000" holds a NUL character',
        'loop.toml:22: land.branch: "" is empty',
        "LOOP_SET_LAND__AUTO__X: land.auto: a table is neither true nor false",
        'LOOP_SET_LOOP__JOBS: loop.jobs: "many" is no whole number',
        "LOOP_SET_X: x: unknown setting",
        'command line: loop.jobs: "x" is no whole number',
    ]


def test_a_model_or_server_may_be_named_in_one_source_and_refined_in_another(
    tmp_path: Path,
) -> None:
    text = '[models.cheap]\napi_base = "http://127.0.0.1"\n'
    assert faults(tmp_path, text) == ["loop.toml:1: models.cheap: it needs name"]
    loaded = load(tmp_path, {}, {"LOOP_SET_MODELS__CHEAP__NAME": "a/b"})
    assert loaded.settings.models.cheap is not None
    assert loaded.settings.models.cheap.name == "a/b"
    assert loaded.settings.models.cheap.api_base == "http://127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("LOOP__JOBS", "2", 2),
        ("BUDGET__RUN_USD", "0.5", 0.5),
        ("LAND__AUTO", "true", True),
        ("LAND__BRANCH", "work/x", "work/x"),
        ("LAND__BRANCH", '"quoted"', "quoted"),
        ("GATE__TYPECHECK", "off", "off"),
        ("GATE__TYPECHECK", "mypy\nx = 1", "mypy\nx = 1"),
        ("GATE__TYPECHECK", "2020-01-01", "2020-01-01"),
        ("SANDBOX__SHARE", '["a", "b"]', ("a", "b")),
    ],
)
def test_a_variable_is_read_as_toml_where_it_is_toml(
    tmp_path: Path, name: str, value: str, found: object
) -> None:
    settings = load(tmp_path, {}, {f"LOOP_SET_{name}": value}).settings
    section, key = name.lower().split("__")
    assert getattr(getattr(settings, section), key) == found


def test_files_that_cannot_be_read_are_faults(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.loopctl]\nx = [\n")
    found = faults(tmp_path, "[loop\n")
    assert [fault.partition(": ")[0] for fault in found] == ["pyproject.toml:2", "loop.toml:1"]
    (tmp_path / "loop.toml").unlink()
    (tmp_path / "loop.toml").mkdir()
    (tmp_path / "pyproject.toml").write_text("tool.loopctl = 3")
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, {}, {})
    assert [str(fault) for fault in caught.value.faults] == [
        "pyproject.toml:1: loopctl: 3 is no table",
        "loop.toml: this is a folder; a file is expected",
    ]
    (tmp_path / "loop.toml").rmdir()
    (tmp_path / "loop.toml").symlink_to("nothing")
    (tmp_path / "pyproject.toml").unlink()
    with pytest.raises(SettingsError, match="a link to nothing"):
        load(tmp_path, {}, {})


def test_a_broken_pyproject_that_has_nothing_for_loop_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("<<<<<<< HEAD\n")
    assert load(tmp_path, {}, {}).settings == Settings()


def test_the_frozen_copy_gives_the_same_settings_and_hash(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text(CONTRACT)
    loaded = load(tmp_path, {}, {})
    assert from_json(loaded.json) == loaded.settings
    (tmp_path / "loop.toml").unlink()
    (tmp_path / "pyproject.toml").write_text(
        CONTRACT.replace("[modes", "[tool.loopctl.modes")
        .replace("\n[", "\n[tool.loopctl.")
        .replace("[tool.loopctl.tool.loopctl.", "[tool.loopctl.")
    )
    again = load(tmp_path, {}, {})
    assert (again.json, again.hash) == (loaded.json, loaded.hash)
    assert load(tmp_path, {"loop.jobs": 2}, {}).hash != loaded.hash


def test_a_frozen_copy_that_is_not_understood_is_a_fault() -> None:
    with pytest.raises(SettingsError, match=r"settings of the run: loop\.new"):
        from_json(json.dumps({"loop": {"new": 1}}))
    with pytest.raises(SettingsError):
        from_json("{")


def test_a_mode_has_its_own_values_where_it_names_some(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text(
        "[budget]\nloops = 9\n[modes.relay.stall]\nwindow = 5\n[modes.autonomous.budget]\nloops = 3\n"
    )
    settings = load(tmp_path, {}, {}).settings
    relay, autonomous = settings.for_mode(Mode.RELAY), settings.for_mode(Mode.AUTONOMOUS)
    assert (relay.context.compaction_threshold_events, relay.stall.replan_cap) == (0, 0)
    assert (relay.stall.window, relay.budget.loops) == (5, 9)
    assert (autonomous.context.compaction_threshold_events, autonomous.stall.replan_cap) == (6, 4)
    assert (autonomous.stall.window, autonomous.budget.loops) == (3, 3)


def test_the_environment_is_a_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOP_SET_LOOP__JOBS", "6")
    assert environment()["LOOP_SET_LOOP__JOBS"] == "6"
    assert load(tmp_path, {}).settings.loop.jobs == 6


def test_every_setting_has_a_description() -> None:
    rows = table()
    assert len({name for name, _, _ in rows}) == len(rows)
    assert [name for name, _, description in rows if not description.endswith(".")] == []


def test_what_differs_is_named_with_both_values(tmp_path: Path) -> None:
    before = load(tmp_path, {}, {}).json
    (tmp_path / "loop.toml").write_text(
        "[gate]\ntimeout_s = 90\nprotect = ['x']\n[models.cheap]\nname = 'openai/m'\n"
        "[mcp.files]\ncommand = ['serve']\n"
    )
    after = load(tmp_path, {"loop.jobs": 2}, {}).json
    changed = differences(before, after)
    assert changed[0] == "loop.jobs = 2 (at its start 1)"
    assert 'models.cheap.name = "openai/m" (at its start not set)' in changed
    assert "gate.timeout_s = 90.0 (at its start 600.0)" in changed
    assert 'mcp.files.command = ["serve"] (at its start not set)' in changed
    assert len(changed) == len(set(changed)) == 10
    assert len(differences(after, before)) == len(changed)
    assert differences(after, after) == ()


def test_a_setting_that_an_older_copy_lacks_counts_as_its_default(tmp_path: Path) -> None:
    now = load(tmp_path, {}, {}).json
    older = json.loads(now)
    del older["sandbox"]["beam_width"]
    assert differences(json.dumps(older), now) == ()


def test_an_empty_table_of_a_model_is_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text("[models.embed]  # nothing is set\n")
    assert load(tmp_path, {}, {}).settings.models.embed is None
    assert "it needs name" in faults(tmp_path, "[models.cheap]\napi_base = 'http://x'\n")[0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("api_key_env = 'sk-secret.hush'", "it is no name of an environment variable; keep the"),
        ("api_base = 'http://me:hush@host/v1'", "it holds a user name or password; keep that"),
        ("api_base = 'host:8000/v1'", '"host:8000/v1" is no URL that begins with http:// or'),
    ],
)
def test_a_key_among_the_settings_of_a_model_is_refused_and_never_shown(
    tmp_path: Path, line: str, why: str
) -> None:
    (fault,) = faults(tmp_path, f"[models.cheap]\nname = 'openai/x'\n{line}\n")
    assert fault.startswith(f"loop.toml:3: models.cheap.{line.partition(' ')[0]}: {why}")
    assert "hush" not in fault


SERVERS = """
[mcp.files]
command = ["npx", "-y", "some-server", "."]
env = ["NPM_CONFIG_CACHE"]
[mcp.search]
url = "https://search.example/mcp"
headers_env = { Authorization = "SEARCH_TOKEN" }
timeout_s = 5
"""


def test_a_server_is_a_command_or_a_url_with_variables_by_name(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").write_text(SERVERS)
    loaded = load(tmp_path, {}, {"SEARCH_TOKEN": "s3cret", "NPM_CONFIG_CACHE": "/cache"})
    files, search = loaded.settings.mcp["files"], loaded.settings.mcp["search"]
    assert (files.command, files.url, files.timeout_s) == (
        ("npx", "-y", "some-server", "."),
        None,
        60,
    )
    assert (search.command, search.headers_env) == (None, {"Authorization": "SEARCH_TOKEN"})
    assert loaded.origins["mcp.search.headers_env.Authorization"].place == "loop.toml:7"
    assert "s3cret" not in loaded.json
    assert from_json(loaded.json) == loaded.settings


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("timeout_s = 3", "1: mcp.a: it needs a command or a url"),
        (
            "command = ['x']\nurl = 'http://x'",
            "1: mcp.a: it has both a command and a url; keep one of them",
        ),
        (
            "command = ['x']\nheaders_env = { X = 'Y' }",
            "1: mcp.a: it has headers_env, which only a url can use; a command has env",
        ),
        (
            "url = 'http://x'\nenv = ['Y']",
            "1: mcp.a: it has env, which only a command can use; a url has headers_env",
        ),
        (
            "url = 'http://example.org'\nheaders_env = { X = 'Y' }",
            "1: mcp.a: it would send its headers_env unencrypted; use https://",
        ),
        (
            "command = ['x', '--root=../y']",
            '2: mcp.a.command[1]: "--root=../y" leads out of the sandbox; name the folder in full',
        ),
        ("url = 'ws://x'", '2: mcp.a.url: "ws://x" is no URL that begins with http:// or https://'),
        ("url = 'http://x:y'", '2: mcp.a.url: "http://x:y" is no URL'),
        (
            "url = 'https://me:pw@x'",
            (
                "2: mcp.a.url: it holds a user name or password; keep that in a variable, and name "
                "it"
            ),
        ),
        (
            "command = ['x']\nenv = ['A=b']",
            (
                "3: mcp.a.env[0]: it is no name of an environment variable; keep the value in a "
                "variable, and name that"
            ),
        ),
        (
            "url = 'https://x'\nheaders_env = { Mcp-Session-Id = 'Y' }",
            (
                '3: mcp.a.headers_env.Mcp-Session-Id: "Mcp-Session-Id" is a header of the protocol '
                "itself"
            ),
        ),
        (
            "url = 'https://x'\nheaders_env = { 'a b' = 'Y' }",
            '3: mcp.a.headers_env.a b: "a b" is no name of an HTTP header',
        ),
    ],
)
def test_a_server_that_cannot_be_meant_is_a_fault(tmp_path: Path, text: str, why: str) -> None:
    assert faults(tmp_path, f"[mcp.a]\n{text}\n") == [f"loop.toml:{why}"]


def test_a_server_may_be_given_by_several_sources_together(tmp_path: Path) -> None:
    text = "[mcp.a]\ntimeout_s = 3\n"
    (tmp_path / "loop.toml").write_text(text)
    settings = load(tmp_path, {}, {"LOOP_SET_MCP__A__COMMAND": '["serve"]'}).settings
    assert (settings.mcp["a"].command, settings.mcp["a"].timeout_s) == (("serve",), 3)
    both = f"{text}command = ['x']\n"
    assert faults(tmp_path, both, LOOP_SET_MCP__A__URL="http://x") == [
        "LOOP_SET_MCP__A__URL: mcp.a: it has both a command and a url; keep one of them"
    ]


@pytest.mark.parametrize(
    ("words", "is_in_worktree"),
    [
        (("serve", "."), True),
        (("serve", "./docs"), True),
        (("serve", "--root=."), True),
        (("serve", "docs"), False),
        (("serve", "@scope/package"), False),
        (("serve", "/srv/docs"), False),
        (("./serve",), False),
    ],
)
def test_a_command_is_meant_for_the_worktree_where_it_names_a_folder_from_there(
    tmp_path: Path, words: tuple[str, ...], *, is_in_worktree: bool
) -> None:
    (tmp_path / "loop.toml").write_text(f"[mcp.a]\ncommand = {json.dumps(words)}\n")
    assert load(tmp_path, {}, {}).settings.mcp["a"].is_in_worktree is is_in_worktree
