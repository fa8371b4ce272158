"""Answers that come while their run is going in another process."""

import json
from collections.abc import Callable
from typing import Any

Wait = Callable[[Callable[[], object], str], None]
Gone = Callable[[int], bool]

ASKS = (
    'if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" >> {0}.txt; exit; fi; echo kept > {0}.txt; '
    'loop defer --reason external --decision-needed "which for {0}?" --best-guess guess'
)


def asking(bench: Any, *gated: str, asks: tuple[str, ...] = ("Q",)) -> None:
    """Tasks that ask, before tasks that wait for their gates."""
    text = "schema = 1\n"
    for one in asks:
        text += (
            f'[[task]]\nid = "{one}"\ntitle = "Ask {one}"\nworker = "command"\n'
            f"command = '''{ASKS.format(one)}'''\nverify_cmd = \"test -e {one}.txt\"\n"
        )
    text += "".join(map(bench.task, gated))
    (bench.root / "tasks" / "ACTIVE.toml").write_text(text)


def told(bench: Any, run_id: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in bench.events(run_id) if event["type"] == kind]


def test_a_run_takes_up_an_answer_at_its_next_frontier(bench: Any, wait: Wait, gone: Gone) -> None:
    asking(bench, "A", "B")
    begun = bench.background()
    wait(lambda: bench.has_begun("A"), "the task after the question")
    done = bench.loop("answer", "Q", "this one", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "schema": 1,
        "run_id": begun["run_id"],
        "pid": begun["pid"],
        "recorded": ["Q.1"],
    }
    second = bench.loop("answer", "Q", "that one")
    assert second.returncode == 2
    assert "Q.1 was answered" in second.stderr
    assert "this one" in second.stderr
    bench.open_gates("A")
    wait(lambda: bench.has_begun("B"), "the last task")
    assert bench.git("show", "loop/integration:Q.txt") == "kept\nthis one\n"
    bench.open_gates("B")
    wait(lambda: gone(begun["pid"]), "the end of the run")
    run_id = begun["run_id"]
    assert [run["status"] for run in bench.runs()] == ["complete"]
    assert [one["id"] for one in told(bench, run_id, "decision_answered")] == ["Q.1"]
    assert len(told(bench, run_id, "run_started") + told(bench, run_id, "run_resumed")) == 1
    assert len([one for one in told(bench, run_id, "task_claimed") if one["task"] == "Q"]) == 2
    capsule = (bench.folder(run_id) / "context.md").read_text()
    assert 'answer = "this one"' in capsule


def test_an_answer_during_the_last_task_is_driven_before_the_run_ends(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    asking(bench, "A")
    begun = bench.background()
    wait(lambda: bench.has_begun("A"), "the last task")
    assert bench.loop("answer", "Q", "late").returncode == 0
    bench.open_gates("A")
    wait(lambda: gone(begun["pid"]), "the end of the run")
    assert bench.git("show", "loop/integration:Q.txt") == "kept\nlate\n"
    assert bench.loop("audit", "verify").returncode == 0


def test_an_answer_is_taken_up_by_a_run_of_other_named_tasks_that_asked_it(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    asking(bench, "A", asks=("P", "Q"))
    bench.open_gates("A")
    assert bench.loop().returncode == 3
    (bench.gates / "A").unlink()
    path = bench.root / "tasks" / "ACTIVE.toml"
    path.write_text(path.read_text().replace(ASKS.format("P"), bench.command("P")))
    answering = bench.start("answer", "P", "one")
    wait(lambda: bench.has_begun("P"), "the answered task")
    assert bench.loop("answer", "Q", "two").returncode == 0
    bench.open_gates("P")
    out, err = answering.communicate(timeout=60)
    assert answering.returncode == 0, (out, err)
    assert bench.git("show", "loop/integration:Q.txt") == "kept\ntwo\n"


def test_an_answer_to_another_run_than_the_one_under_way_is_refused(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    asking(bench)
    assert bench.loop().returncode == 3
    with (bench.root / "tasks" / "ACTIVE.toml").open("a") as manifest:
        manifest.write(bench.task("A"))
    begun = bench.background("A")
    wait(lambda: bench.has_begun("A"), "the other run")
    done = bench.loop("answer", "Q", "now")
    assert done.returncode == 2
    assert "is already driving this repository" in done.stderr
    bench.open_gates("A")
    wait(lambda: gone(begun["pid"]), "the end of the run")
    assert bench.loop("answer", "Q", "now").returncode == 0
