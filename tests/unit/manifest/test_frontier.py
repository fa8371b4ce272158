import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Goal, Manifest, Scope, Task, TaskId, TaskStatus, Wait
from loopctl.errors import UsageError
from loopctl.manifest.frontier import Frontier

S = TaskStatus


def make(name: str, *deps: str, status: S = S.TODO, priority: int = 0, area: str = "") -> Task:
    return Task(
        id=TaskId(name),
        title=name,
        status=status,
        deps=tuple(map(TaskId, deps)),
        priority=priority,
        area=(area,) if area else (),
    )


def manifest(*tasks: Task) -> Manifest:
    return Manifest(Goal(), tasks)


def ids(*names: str, with_deps: bool = False) -> Scope:
    return Scope(ids=tuple(map(TaskId, names)), with_deps=with_deps)


def ready(frontier: Frontier, limit: int | None = None) -> list[str]:
    return [str(task.id) for task in frontier.ready(limit)]


def waits(frontier: Frontier) -> dict[str, str]:
    return {wait.task: wait.reason for wait in frontier.waits()}


def test_the_frontier_is_todo_tasks_whose_deps_are_all_done() -> None:
    frontier = Frontier(
        manifest(
            make("done", status=S.DONE),
            make("a", "done"),
            make("b", "a"),
            make("c", "done", "a"),
            make("gone", status=S.ABANDONED),
            make("d", "gone"),
        )
    )
    assert ready(frontier) == ["a"]
    frontier.mark(TaskId("a"), S.DONE)
    assert ready(frontier) == ["b", "c"]


def test_higher_priority_runs_first_and_ties_go_by_the_file() -> None:
    frontier = Frontier(
        manifest(make("a"), make("b", priority=2), make("c", priority=2), make("d", priority=1))
    )
    assert ready(frontier) == ["b", "c", "d", "a"]
    assert ready(frontier, 2) == ["b", "c"]
    assert ready(frontier, 0) == []
    assert frontier.next() == make("b", priority=2)


def test_a_task_in_progress_was_left_by_a_crash_and_runs_until_it_is_marked_again() -> None:
    frontier = Frontier(manifest(make("a", status=S.IN_PROGRESS)))
    assert ready(frontier) == ["a"]
    frontier.mark(TaskId("a"), S.IN_PROGRESS)
    assert ready(frontier) == []
    assert frontier.next() is None
    assert waits(frontier) == {"a": "in progress"}
    frontier.mark(TaskId("a"), S.TODO)
    assert ready(frontier) == ["a"]


def test_a_named_task_runs_whatever_its_status_but_for_done() -> None:
    for status in S:
        frontier = Frontier(manifest(make("a", status=status), make("b")), ids("a"))
        assert ready(frontier) == ([] if status is S.DONE else ["a"])


def test_unmet_deps_of_named_tasks_are_reported_not_run() -> None:
    tasks = manifest(make("a"), make("b", "a"), make("c", "b"))
    frontier = Frontier(tasks, ids("c"))
    assert ready(frontier) == []
    assert frontier.waits() == (Wait(TaskId("c"), "out of scope: b is not done; add --with-deps"),)


def test_with_deps_takes_along_what_can_be_run_and_explains_the_rest() -> None:
    tasks = manifest(
        make("a"),
        make("asks", status=S.NEEDS_HUMAN),
        make("b", "a"),
        make("c", "b", "asks"),
        make("other"),
    )
    frontier = Frontier(tasks, ids("c", with_deps=True))
    assert [str(task.id) for task in frontier.tasks()] == ["a", "b", "c"]
    assert ready(frontier) == ["a"]
    frontier.mark(TaskId("a"), S.DONE)
    frontier.mark(TaskId("b"), S.DONE)
    assert ready(frontier) == []
    assert waits(frontier) == {"c": "waits for asks (needs-human)"}


def test_an_area_takes_its_todo_tasks_only() -> None:
    tasks = manifest(
        make("a", area="x"),
        make("b", area="y"),
        make("c", area="x", status=S.STUCK),
        make("d", "b", area="x"),
    )
    frontier = Frontier(tasks, Scope(areas=("x",)))
    assert ready(frontier) == ["a"]
    assert waits(frontier) == {
        "a": "ready: the run ended before its turn",
        "c": "stuck: loop c runs it again",
        "d": "out of scope: b is not done; add --with-deps",
    }


def test_every_task_left_says_the_one_thing_it_waits_for() -> None:
    frontier = Frontier(
        manifest(
            make("later", status=S.BACKLOG),
            make("asks", status=S.NEEDS_HUMAN),
            make("stuck", status=S.STUCK),
            make("blocked", status=S.BLOCKED),
            make("gone", status=S.ABANDONED),
            make("done", status=S.DONE),
            make("a", "done", "asks", "stuck"),
            make("b", "gone"),
            make("c", "a"),
        )
    )
    assert waits(frontier) == {
        "later": "backlog: set its status to todo",
        "asks": "needs an answer: loop answer asks",
        "stuck": "stuck: loop stuck runs it again",
        "blocked": "blocked: loop blocked runs it again",
        "a": "waits for asks (needs-human)",
        "b": "waits for gone (abandoned, which is not done): drop it from deps or redo it",
        "c": "waits for a (todo)",
    }


def test_unknown_ids_and_areas_name_the_nearest() -> None:
    tasks = manifest(make("T440", area="import"), make("T441"))
    with pytest.raises(UsageError) as caught:
        Frontier(tasks, ids("T44", "zzz"))
    assert str(caught.value) == (
        'the manifest has no task "T44"; did you mean T440 or T441?\nthe manifest has no task "zzz"'
    )
    with pytest.raises(UsageError, match=r'no area "imports"; did you mean import[?]'):
        Frontier(tasks, Scope(areas=("imports",)))


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    size = draw(st.integers(1, 8))
    order = draw(st.permutations(range(size)))
    rank = {node: place for place, node in enumerate(order)}
    tasks = []
    for node in range(size):
        before = [other for other in range(size) if rank[other] < rank[node]]
        deps = draw(st.lists(st.sampled_from(before), max_size=4)) if before else []
        tasks.append(
            make(
                f"T{node}",
                *(f"T{dep}" for dep in deps),
                status=draw(st.sampled_from(S)),
                priority=draw(st.integers(0, 2)),
                area=draw(st.sampled_from(["", "x", "y"])),
            )
        )
    return manifest(*tasks)


def naive_ready(tasks: tuple[Task, ...], members: set[str], status: dict[str, S]) -> list[str]:
    can_run = [
        task
        for task in tasks
        if task.id in members
        and status[task.id] is S.TODO
        and all(status[dep] is S.DONE for dep in task.deps)
    ]
    return [str(task.id) for task in sorted(can_run, key=lambda task: -task.priority)]


@given(
    tasks=manifests(),
    named=st.lists(st.integers(0, 7), max_size=3),
    with_deps=st.booleans(),
    marks=st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(S), st.integers(0, 3)), max_size=20
    ),
)
def test_keeping_up_to_date_gives_what_counting_anew_gives(
    tasks: Manifest, named: list[int], *, with_deps: bool, marks: list[tuple[int, S, int]]
) -> None:
    names = [f"T{number}" for number in named if number < len(tasks.tasks)]
    frontier = Frontier(tasks, ids(*names, with_deps=with_deps))
    members = {str(task.id) for task in frontier.tasks()}
    status = {str(task.id): frontier.status(task.id) for task in tasks.tasks}
    for number, new, limit in marks:
        assert ready(frontier) == naive_ready(tasks.tasks, members, status)
        name = f"T{number}"
        if name in status:
            frontier.mark(TaskId(name), new)
            status[name] = new
        assert ready(frontier, limit) == naive_ready(tasks.tasks, members, status)[:limit]
    left = [n for n in status if n in members and status[n] not in {S.DONE, S.ABANDONED}]
    assert [wait.task for wait in frontier.waits()] == left
    for name in left:
        is_ready = name in naive_ready(tasks.tasks, members, status)
        assert waits(frontier)[name].startswith("ready") == is_ready
