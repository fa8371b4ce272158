"""The refill brake: what is taken, what is rejected, and that the backlog has a bound."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from loopctl.domain import Addition, Criterion, Goal, Manifest, Task, TaskId
from loopctl.engine.refill import REFILL, Refill
from loopctl.errors import Fault, ManifestError
from loopctl.suggestions import ProposalJudged, TaskProposed

GOAL = Goal("g", (Criterion(check="make ok"), Criterion(criterion="it is nice")))


class Book:
    """A manifest in memory."""

    def __init__(self, *tasks: Task) -> None:
        self.tasks = tasks
        self.is_broken = False

    def read(self) -> Manifest:
        return Manifest(GOAL, self.tasks)

    def extend(self, addition: Addition) -> None:
        if self.is_broken:
            raise ManifestError(Fault("m", 0, "it is broken"))
        self.tasks = (*self.tasks, *addition.tasks)


def proposed(title: str = "More", serves: str = "make ok", task: str = "T1") -> TaskProposed:
    return TaskProposed(
        task=task, candidate="main", title=title, prompt="do", verify_cmd="false", serves=serves
    )


def judged(
    book: Book,
    *events: TaskProposed,
    goal: Goal = GOAL,
    cap: int = 3,
    met: Sequence[Criterion] = (),
) -> list[ProposalJudged]:
    refill = Refill(goal, cap, lambda criterion: criterion not in met)
    for event in events:
        refill.listen(event)
    return refill.judge(book.read, book.extend)


def test_task_that_serves_an_open_criterion_is_added_with_its_tag() -> None:
    book = Book(Task(TaskId("R1"), "Mine"))
    (one,) = judged(book, proposed(serves=" Make  ok"))
    assert (one.added, one.reason) == ("R2", "")
    assert book.tasks[-1] == Task(
        TaskId("R2"), "More", prompt="do", verify_cmd="false", area=(REFILL,)
    )


def test_criterion_can_be_named_by_its_number() -> None:
    assert [one.added for one in judged(Book(), proposed(serves="2"))] == ["R1"]


def test_task_that_serves_no_open_criterion_is_rejected_with_the_reason() -> None:
    book = Book()
    found = judged(
        book, proposed("A", "fun"), proposed("B", "make ok"), met=[Criterion(check="make ok")]
    )
    assert [one.reason for one in found] == [
        "it names no done-criterion of the goal",
        "the done-criterion that it names is met",
    ]
    assert judged(book, proposed(), goal=Goal("g"))[0].reason.startswith("the goal has no done-")
    assert book.tasks == ()


def test_task_is_added_once_also_where_its_judging_was_cut_short() -> None:
    book = Book()
    found = judged(book, proposed("Do it"), proposed("do  it"))
    assert [one.reason for one in found] == ["", "the manifest has a task of that title"]


def test_what_a_dead_process_has_heard_and_not_judged_is_judged() -> None:
    refill = Refill(GOAL, 3, lambda _criterion: True)
    settled = ProposalJudged(task="T1", title="Old", serves="1", reason="no")
    refill.recall([proposed("Old"), settled, proposed("New")])
    book = Book()
    assert [one.title for one in refill.judge(book.read, book.extend)] == ["New"]


def test_manifest_that_cannot_take_a_task_is_the_reason() -> None:
    book = Book()
    book.is_broken = True
    assert judged(book, proposed())[0].reason == "m: it is broken"


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 4),
    st.lists(
        st.lists(st.tuples(st.text(max_size=3), st.sampled_from(["1", "make ok", "2", "x"]))),
        max_size=6,
    ),
)
def test_backlog_never_grows_without_bound(cap: int, runs: list[list[tuple[str, str]]]) -> None:
    book = Book(Task(TaskId("T1"), "Mine"))
    for number, titles in enumerate(runs):
        events = [proposed(f"{title}{number}", serves) for title, serves in titles]
        # Every task that came in proposes again, as a model may do for ever.
        events += [proposed(f"after {task.id}{number}", task=task.id) for task in book.tasks]
        judged(book, *events, cap=cap)
        assert sum(REFILL in task.area for task in book.tasks) <= cap
        assert len(book.tasks) <= 1 + cap
