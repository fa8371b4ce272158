import itertools
from pathlib import Path

import pytest

from loopctl.domain import (
    Baseline,
    Criterion,
    Goal,
    Kind,
    Limits,
    Manifest,
    Mode,
    Option,
    Task,
    TaskId,
    TaskStatus,
)
from loopctl.errors import ManifestError
from loopctl.manifest.keys import BUILT_IN_WORKERS
from loopctl.manifest.toml import TomlManifest

TASK = '[[task]]\nid = "T1"\ntitle = "t"\n'


def load(folder: Path, text: str) -> Manifest:
    path = folder / "ACTIVE.toml"
    path.write_text(text, encoding="utf-8", newline="")
    return TomlManifest(path, "tasks/ACTIVE.toml", known_workers=BUILT_IN_WORKERS).load()


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load(folder, text)
    return [str(fault).removeprefix("tasks/ACTIVE.toml:") for fault in caught.value.faults]


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    text = """
schema = 1
[goal]
text = "Ship it"
done_when = [{ check = "pytest -q" }, { criterion = "the README shows an import" }]
[defaults]
model = "standard"
verify_cmd = "pytest"
budget = { loops = 3, usd = 2 }
[[task]]
id = "T439"
title = "Before"
[[task]]
id = "T440"
title = "Parse the header row"
status = "in-progress"
kind = "doc"
area = ["import"]
deps = ["T439"]
priority = 2
model = "cheap"
worker = "command"
mode = "relay"
verify_cmd = ""
prompt = "Read\\nit"
accept = ["an empty file gives an empty table"]
may_edit = ["tests/*.py"]
output = "docs/decision.md"
command = "ruff check --fix ."
options = [{ name = "regex", prompt = "p" }, { name = "parser", command = "c" }]
baseline = "no-new-failures"
budget = { tokens = 5, usd = 0, wall_s = 3600 }
"""
    before = Task(
        id=TaskId("T439"),
        title="Before",
        model="standard",
        verify_cmd="pytest",
        budget=Limits(loops=3, usd=2.0),
    )
    task = Task(
        id=TaskId("T440"),
        title="Parse the header row",
        status=TaskStatus.IN_PROGRESS,
        kind=Kind.DOC,
        area=("import",),
        deps=(TaskId("T439"),),
        priority=2,
        model="cheap",
        worker="command",
        mode=Mode.RELAY,
        verify_cmd=None,
        prompt="Read\nit",
        accept=("an empty file gives an empty table",),
        may_edit=("tests/*.py",),
        output="docs/decision.md",
        command="ruff check --fix .",
        options=(Option("regex", "p"), Option("parser", command="c")),
        baseline=Baseline.NO_NEW_FAILURES,
        budget=Limits(tokens=5, usd=0.0, loops=3, wall_s=3600.0),
    )
    goal = Goal(
        "Ship it", (Criterion(check="pytest -q"), Criterion(criterion="the README shows an import"))
    )
    assert load(tmp_path, text) == Manifest(goal, (before, task))


def test_an_empty_file_is_a_manifest_without_tasks(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Manifest(Goal(), ())


@pytest.mark.parametrize(
    "lines",
    ['command = "x"', 'options = [{ name = "a", command = "x" }]'],
)
def test_a_command_without_a_worker_has_the_worker_of_commands(tmp_path: Path, lines: str) -> None:
    assert load(tmp_path, TASK + lines).tasks[0].worker == "command"


def test_a_worker_of_the_defaults_counts_as_named(tmp_path: Path) -> None:
    text = '[defaults]\nworker = "claude"\n' + TASK
    assert load(tmp_path, text).tasks[0].worker == "claude"
    assert faults(tmp_path, text + 'command = "x"\n') == [
        (
            '6: task T1: has a command, but the worker of [defaults] is "claude"; only the worker '
            '"command" runs one'
        )
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("schema = 2", ["1: schema: 2 is not known; this loop reads schema 1"]),
        pytest.param("gaol = 1", ['1: gaol: unknown key (did you mean "goal"?)']),
        pytest.param("goal = 1", ["1: goal: 1 is no table"]),
        pytest.param("task = 1", ["1: task: 1 is no list of tables; head each with [[task]]"]),
        pytest.param("[task]\n", ["1: task: is one table; head each task with [[task]]"]),
        pytest.param("[goal]\ntxt = 1", ['2: goal.txt: unknown key (did you mean "text"?)']),
        pytest.param(
            '[goal]\ndone_when = [\n{ check = " " },\n{}, {check = "a", criterion = "b"}]',
            [
                '3: goal.done_when[0].check: " " is empty',
                "4: goal.done_when[1]: has neither check nor criterion; give exactly one",
                "4: goal.done_when[2]: has both check and criterion; give exactly one",
            ],
        ),
        pytest.param(
            '[defaults]\nid = "x"\nmodel = "chaep"',
            [
                '2: defaults.id: "x" cannot stand here; each task has its own id',
                (
                    '3: defaults.model: "chaep" is not one of cheap, standard, premium '
                    '(did you mean "cheap"?)'
                ),
            ],
        ),
        pytest.param(
            "\n[[task]]\n", ["2: task number 1: has no id", "2: task number 1: has no title"]
        ),
        pytest.param(
            f"{TASK}{TASK}", ['5: id: "T1" is used twice; first in line 2'], id="duplicate id"
        ),
        pytest.param(
            TASK + 'stauts = "todo"', ['4: task T1: stauts: unknown key (did you mean "status"?)']
        ),
        pytest.param(
            TASK + 'status = "in_progress"',
            [
                (
                    '4: task T1: status: "in_progress" is not one of backlog, todo, in-progress, done, '
                    'blocked, needs-human, stuck, abandoned (did you mean "in-progress"?)'
                )
            ],
        ),
        pytest.param(
            TASK + 'worker = "cladue"',
            ['4: task T1: worker: "cladue" is not known (did you mean "claude"?)'],
        ),
        pytest.param(
            TASK + 'worker = "command"',
            ['4: task T1: has the worker "command" but no command'],
        ),
        pytest.param(
            TASK + 'options = [\n{ name = "a", command = "c" },\n{ name = "b" },\n]',
            ['6: task T1: option "b" has no command, and neither has the task'],
        ),
        pytest.param(
            TASK + 'command = "x"\nworker = "graph"',
            [
                (
                    '4: task T1: has a command, but the worker is "graph"; only the worker "command" '
                    "runs one"
                )
            ],
        ),
        pytest.param(
            TASK + 'options = [{ prompt = "p" },\n{ name = "a" }, { name = "a" }]',
            [
                "4: task T1: options[0]: has no name",
                '5: task T1: options[2].name: "a" names an earlier one too',
            ],
        ),
        pytest.param(
            TASK + '[[task.options]]\nname = "a"\n[[task.options]]\nname = "a"',
            ['7: task T1: options[1].name: "a" names an earlier one too'],
        ),
        pytest.param(
            TASK + "[task.budget]\ntokens = -1\nusd = nan\nloops = true\nwall_s = inf\nwal = 1",
            [
                "5: task T1: budget.tokens: -1 is negative",
                "6: task T1: budget.usd: nan is not finite",
                "7: task T1: budget.loops: true is no whole number",
                "8: task T1: budget.wall_s: inf is not finite",
                '9: task T1: budget.wal: unknown key (did you mean "wall_s"?)',
            ],
        ),
        pytest.param(
            TASK + "priority = -1\nprompt = 3\narea = 'x'\naccept = [1]\nbudget = 3",
            [
                "4: task T1: priority: -1 is negative",
                "5: task T1: prompt: 3 is no text; write it in quotes",
                '6: task T1: area: "x" is no list of texts; write [...]',
                "7: task T1: accept[0]: 1 is no text; write it in quotes",
                "8: task T1: budget: 3 is no table",
            ],
        ),
        pytest.param(
            TASK + "priority = 9223372036854775808",
            [("4: task T1: priority: 9223372036854775808 is too large")],
        ),
        pytest.param(
            TASK + 'prompt = "\\u0000"', [('4: task T1: prompt: "\\u0000" holds a NUL character')]
        ),
        pytest.param(
            TASK + 'output = "/etc/x"\nmay_edit = ["a", "b/../../c", "~/x", "C:/x"]',
            [
                '4: task T1: output: "/etc/x" is absolute; name it relative to the checkout',
                "5: task T1: may_edit[1]: \"b/../../c\" leaves the checkout; '..' is not allowed",
                '5: task T1: may_edit[2]: "~/x" is absolute; name it relative to the checkout',
                '5: task T1: may_edit[3]: "C:/x" is absolute; name it relative to the checkout',
            ],
        ),
        pytest.param(
            TASK + 'deps = ["T2",\n "T11", 3]\n[[task]]\nid = "T12"\ntitle = "t"',
            [
                '4: task T1: deps: "T2" is no task\'s id (did you mean "T12"?)',
                '5: task T1: deps: "T11" is no task\'s id (did you mean "T1"?)',
                "5: task T1: deps[2]: 3 is no text; write it in quotes",
            ],
        ),
        pytest.param(
            '[defaults]\ndeps = ["T9"]\n' + TASK, ['2: [defaults]: deps: "T9" is no task\'s id']
        ),
    ],
)
def test_faults(tmp_path: Path, text: str, found: list[str]) -> None:
    assert faults(tmp_path, text) == found


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is no id"),
        ("-a", "is no id"),
        ("a b", "is no id"),
        ("a/b", "is no id"),
        ("ä", "is no id"),
        ("a\\n", "is no id"),
        ("a..b", "git allows no '..'"),
        ("a.lock", "git allows no"),
        ("x" * 201, "longer than 200"),
    ],
)
def test_an_id_that_cannot_name_files_and_refs_is_refused(
    tmp_path: Path, name: str, why: str
) -> None:
    (fault,) = faults(tmp_path, f'[[task]]\nid = "{name}"\ntitle = "t"')
    assert why in fault


def test_control_characters_in_titles_are_refused_and_not_printed(tmp_path: Path) -> None:
    for char in ("\\n", "\\u001b", "\\u009b", "\\u202e"):
        (fault,) = faults(tmp_path, f'[[task]]\nid = "T1"\ntitle = "a{char}b"')
        assert "control character" in fault
        assert fault.isprintable()


def task(name: str, *deps: str) -> str:
    return f'[[task]]\nid = "{name}"\ntitle = "t"\ndeps = {list(deps)!r}\n'


def test_a_cycle_is_shown_as_the_way_round(tmp_path: Path) -> None:
    text = task("A", "D") + task("B", "A") + task("C", "B") + task("D", "C") + task("E", "A")
    assert faults(tmp_path, text) == ["4: deps form a cycle: A -> D -> C -> B -> A"]


def test_each_knot_of_cycles_is_named_once(tmp_path: Path) -> None:
    text = task("A", "B", "C") + task("B", "A") + task("C", "A") + task("X", "X", "A")
    assert faults(tmp_path, text) == [
        "4: deps form a cycle: A -> B -> A",
        "16: deps form a cycle: X -> X",
    ]


def test_a_cycle_that_the_defaults_make_is_found(tmp_path: Path) -> None:
    assert faults(tmp_path, '[defaults]\ndeps = ["T1"]\n' + TASK) == [
        "3: deps form a cycle: T1 -> T1"
    ]


def test_all_faults_come_in_one_go_and_in_line_order(tmp_path: Path) -> None:
    text = task("A", "B") + "kind = 'x'\n" + task("B", "A", "Z") + "nope = 1\n" + task("A")
    found = faults(tmp_path, text)
    lines = [int(fault.partition(":")[0]) for fault in found]
    assert lines == [4, 5, 9, 10, 12]


def test_any_worker_will_do_where_none_are_given(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text(TASK + 'worker = "mine"')
    assert TomlManifest(path, "m").load().tasks[0].worker == "mine"


def test_thousands_of_faults_take_no_thousands_of_searches(tmp_path: Path) -> None:
    text = "".join(task(f"T{number}", f"U{number}") for number in range(3000))
    assert len(faults(tmp_path, text)) == 3000


def test_a_chain_as_long_as_a_large_manifest_is_walked_without_recursion(tmp_path: Path) -> None:
    names = [f"T{number}" for number in range(5000)]
    chain = "".join(task(a, b) for a, b in itertools.pairwise(names))
    assert len(load(tmp_path, chain + task(names[-1])).tasks) == 5000
    (fault,) = faults(tmp_path, chain + task(names[-1], names[0]))
    assert fault.startswith("4: deps form a cycle: T0 -> T1 -> ")
