"""What a report knows of forks that were met inside a task."""

from loopctl.domain import Scope
from loopctl.events import AnyEvent, CandidateEnded, ForkResolved, GateFinished, RunStarted
from loopctl.forkevents import ForkClassified
from loopctl.forking import Bucket
from loopctl.report.fold import summarize
from loopctl.report.summary import task_document
from loopctl.verdict import Check, CheckResult, Verdict


def classified(question: str, chosen: str = "") -> ForkClassified:
    return ForkClassified(
        task="T1",
        candidate="main",
        question=question,
        options=("a", "b"),
        said="quality",
        bucket=Bucket.SCOPE if chosen else Bucket.QUALITY,
        reason="why",
        chosen=chosen,
    )


def test_each_fork_has_its_winner_and_the_winners_evidence_counts() -> None:
    begun = RunStarted(goal="g", base="b", branch="i", scope=Scope(), tasks=(("T1", "One"),))
    events: list[AnyEvent] = [
        begun,
        classified("How far?", "narrow"),
        classified("Which?"),
        classified("How?"),
    ]
    for step, question in ((1, "Which?"), (2, "How?")):
        for name, verdict in (("a", Verdict.PASS), ("b", Verdict.FAIL)):
            full = f"main.{step}.1-{name}"
            checks = (CheckResult(Check.VERIFY, verdict),)
            gate = GateFinished(task="T1", candidate=full, head="h", tree="t", checks=checks)
            end = CandidateEnded(task="T1", name=full, verdict=verdict, ref="")
            events += [gate, end]
        winner = f"main.{step}.1-a"
        events.append(ForkResolved(task="T1", winner=winner, reason="smallest", question=question))
    task = summarize(events).task("T1")
    assert task is not None
    chosen = {fork.question: fork.chosen for fork in task.forks}
    assert chosen == {"How far?": "narrow", "Which?": "main.1.1-a", "How?": "main.2.1-a"}
    won = {one["name"]: one["won"] for one in task_document(task)["candidates"]}
    assert [name for name, has_won in won.items() if has_won] == ["main.1.1-a", "main.2.1-a"]
    assert task.gate[-1].verdict is Verdict.PASS
