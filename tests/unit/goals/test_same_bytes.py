"""The goal is the same bytes wherever it is copied: whatever its letters, its ends, its length."""

import json
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopctl.context.brain import LocalBrain
from loopctl.context.export import to_json_lines
from loopctl.domain import Addition, Criterion, Goal, Manifest, RunStatus, Scope, Sha, Task, TaskId
from loopctl.events import RunStarted
from loopctl.judges.criterion import CriterionJudge
from loopctl.manifest.extend import written
from loopctl.manifest.toml import TomlManifest
from loopctl.records import Capsule, RunRecord
from loopctl.report.files import to_json
from loopctl.report.fold import summarize
from loopctl.sources.kickoff import MAX_GOAL_BYTES, Means, check_goal, kick_off
from loopctl.steps import StepRequest
from loopctl.store.eventlog import JsonLinesEventLog, read_events
from loopctl.store.kickoffs import KickoffFile
from loopctl.store.stores import Stores
from loopctl.testing import MemoryRepository
from loopctl.testing.context import ScriptedOracle
from loopctl.testing.doubles import StillClock
from loopctl.worker.codec import decode_for_child, encode
from loopctl.worker.graph.prompt import LEVELS, assemble
from loopctl.worker.protocol import DoStep, Frame

PIECES = (
    *("e\u0301", "\u202eabc\u202c", "\u05e9\u05dc\u05d5\u05dd \u0633\u0644\u0627\u0645", "\ufb00"),
    *(
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1e6\U0001f1f9",
        "\u2126",
        "\uac00\u1100",
    ),
    *(
        "\r\n",
        "\n",
        "\r",
        "\t",
        "   ",
        "\n\n",
        "\x85",
        "\u2028",
        "\ufeff",
        "\x1b[31m",
        "\x7f",
        "\x01",
    ),
    *("```toml\n", "```", "'''", '"""', "\\", "\\u0041", "#", "<<<DATA", "{goal}", "%s", "</goal>"),
)
GOALS = (
    st.lists(
        st.one_of(
            st.sampled_from(PIECES),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
        ),
        max_size=20,
    )
    .map("".join)
    .filter(str.strip)
)
LIMIT = "wörter e\u0301 \r\n" * (MAX_GOAL_BYTES // 14)
AT_LIMIT = LIMIT + "x" * (MAX_GOAL_BYTES - len(LIMIT.encode()))
CRITERIA = (Criterion(check="make ok"), Criterion(criterion="it is nice"))
TASK = Task(TaskId("A"), "Do A", verify_cmd="false", prompt="do it")

same_bytes = settings(max_examples=60, deadline=None)


def of_every_kind(check: Callable[[str], None]) -> Callable[[], None]:
    """Have a check look at goals of every kind, the longest one that is taken among them."""
    for goal in (AT_LIMIT, "trailing \r\n \n", "\ufeffmark", "a\rb\r\nc\n"):
        check = example(goal)(check)
    return same_bytes(given(GOALS)(check))


def is_same(found: str, goal: str) -> bool:
    return found.encode() == goal.encode()


def test_the_longest_goal_is_as_long_as_is_taken() -> None:
    check_goal(AT_LIMIT)
    assert len(AT_LIMIT.encode()) == MAX_GOAL_BYTES


@of_every_kind
def test_in_the_manifest_and_in_that_of_a_run(goal: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        file = TomlManifest(Path(name, "tasks", "ACTIVE.toml"), "tasks/ACTIVE.toml")
        found = file.extend(Addition(Goal(goal, CRITERIA), (TASK,)))
        assert is_same(found.goal.text, goal)
        assert is_same(file.load().goal.text, goal)
        assert is_same(tomllib.loads(file.path.read_bytes().decode())["goal"]["text"], goal)
    own = tomllib.loads(written(Manifest(Goal(goal), (TASK,))))
    assert is_same(own["goal"]["text"], goal)


@of_every_kind
def test_in_the_capsule_and_its_export(goal: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        LocalBrain(Path(name), "another").carry(Capsule(goal, current_step="next"))
        assert is_same(LocalBrain(Path(name), "another").boot().goal, goal)
    first = json.loads(to_json_lines(Capsule(goal), "r1").partition("\n")[0])
    assert is_same(first["text"], goal)


@of_every_kind
def test_in_the_events_the_database_and_what_is_kept_of_a_kickoff(goal: str) -> None:
    event = RunStarted(goal=goal, base="b", branch="loop/integration", scope=Scope(), tasks=())
    with tempfile.TemporaryDirectory() as name:
        local, folder = Path(name), Path(name, "runs", "r1")
        with Stores(local) as stores:
            stores.runs.create_run(
                RunRecord("r1", RunStatus.RUNNING, goal, Sha("b"), "x", "now", Scope(), "{}", "h")
            )
        with Stores(local) as stores:
            record = stores.runs.run("r1")
            assert record is not None
            assert is_same(record.goal, goal)
        log = JsonLinesEventLog(folder, "r1", StillClock())
        log.append(event)
        log.close()
        [found] = read_events(folder)
        assert isinstance(found, RunStarted)
        assert is_same(found.goal, goal)
        kept = KickoffFile(local)
        kept.save(goal, (), ("so",))
        assert kept.load(goal) == ((), ("so",))


@of_every_kind
def test_in_the_document_of_a_run(goal: str) -> None:
    event = RunStarted(goal=goal, base="b", branch="loop/integration", scope=Scope(), tasks=())
    assert is_same(json.loads(to_json(summarize([event])))["goal"], goal)


@of_every_kind
def test_in_what_a_worker_is_sent_and_in_every_prompt_however_short(goal: str) -> None:
    request = StepRequest("s", 1, "step", Goal(goal, CRITERIA), TASK, "r1")
    sent = decode_for_child(encode(Frame(1, DoStep(request)))).body
    assert isinstance(sent, DoStep)
    assert is_same(sent.request.goal.text, goal)
    for level in range(LEVELS + 1):
        assert f"\n{goal}\n" in str(assemble(sent.request, level)[1]["content"])


@of_every_kind
def test_in_what_is_asked_about_the_goal_itself(goal: str) -> None:
    answers = {
        "kickoff": ['{"ambiguous": false, "questions": []}', json.dumps(_backlog())],
        "judge": ['{"met": "no", "why": "x", "quotes": []}'],
    }
    oracle = ScriptedOracle(lambda question: answers[question.purpose].pop(0))
    nothing = Manifest(Goal(), ())
    means = Means(oracle, "r1", (), nothing, lambda _: nothing, fits)
    made = kick_off(goal, means)
    assert made.addition.goal is not None
    assert is_same(made.addition.goal.text, goal)
    repository = MemoryRepository()
    CriterionJudge(oracle, repository, Goal(goal), "r1", repository.head())(
        "it is nice", repository.head()
    )
    assert [one.purpose for one in oracle.asked] == ["kickoff", "kickoff", "judge"]
    assert all(f"\n{goal}\n" in one.prompt for one in oracle.asked)


def fits(command: str, *, is_met_ok: bool) -> str:
    return ""


def _backlog() -> dict[str, object]:
    task = {"id": "A", "title": "Do A", "prompt": "do it", "verify_cmd": "false"}
    return {"done_when": [{"criterion": "it is nice"}], "tasks": [task]}
