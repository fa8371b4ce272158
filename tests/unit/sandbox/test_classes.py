import pytest

from loopctl.domain import Option, PolicyClass, Task, TaskId
from loopctl.sandbox.floor.classes import Commands, class_of

REVERSIBLE, ASKS, FINAL = (
    PolicyClass.REVERSIBLE,
    PolicyClass.NEEDS_APPROVAL,
    PolicyClass.IRREVERSIBLE,
)


def task(title: str = "Parse the header", **more: object) -> Task:
    return Task(TaskId("T1"), title, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "one",
    [
        task(),
        task(command="make", verify_cmd="python -m pytest -q"),
        task("Add a deploy command to the tool", prompt="It says where it would deploy to."),
        task("Release the lock on every path", prompt="Send the header to the parser."),
        task("Write how to publish to PyPI"),
        task("Drop the table parser", prompt="Delete dead code. Push items to the queue."),
        task(command="curl -X POST http://localhost:8000/x -d a", area=("deploy",)),
        task(verify_cmd="terraform plan && kubectl get pods"),
    ],
)
def test_ordinary_task_is_reversible(one: Task) -> None:
    found = class_of(one, Commands())
    assert (found.policy, found.reason) == (REVERSIBLE, "")


@pytest.mark.parametrize(
    "one",
    [
        task(command="terraform apply -auto-approve"),
        task(command="sh -c 'kubectl apply -f x.yaml'"),
        task(verify_cmd="curl -X POST https://api.example.com/x -d a"),
        task(options=(Option("a", command="ssh host make deploy"),)),
        task("Deploy to production"),
        task("Ship it", prompt="First build it. Then publish the package to PyPI."),
        task("Mails", prompt="- Send the invoice to all customers"),
        task("Tidy up", prompt="Delete the production database"),
        task("Keys", accept=("Rotate the production keys",)),
        task(area=("production",)),
    ],
)
def test_task_whose_effects_leave_the_machine_is_irreversible_and_may_be_approved(
    one: Task,
) -> None:
    found = class_of(one, Commands())
    assert (found.policy, found.is_refused) == (FINAL, False)
    assert found.reason


@pytest.mark.parametrize(
    ("one", "commands", "reason"),
    [
        (task(command="make && git push"), Commands(), "command: pushes to another repository"),
        (task(verify_cmd="sudo make test"), Commands(), "verify_cmd: becomes another user"),
        (task(), Commands(setup_cmd="sudo apt-get update"), "[sandbox] setup_cmd: becomes"),
        (task(), Commands(typecheck="bwrap mypy"), "[gate] typecheck: gets around"),
        (task(options=(Option("a", command="rm -rf /"),)), Commands(), "command of the option a"),
        (task(command="echo 'x"), Commands(), "command: the command cannot be read"),
        (task(command="make x"), Commands(deny=("bash:make",)), "[policy] deny has bash:make"),
    ],
)
def test_task_that_no_approval_makes_run_says_what_is_against_it(
    one: Task, commands: Commands, reason: str
) -> None:
    found = class_of(one, commands)
    assert (found.policy, found.is_refused) == (FINAL, True)
    assert reason in found.reason


def test_pattern_of_a_command_asks_about_the_task_that_runs_it() -> None:
    commands = Commands(approve=("bash:make install", "mcp:*:*"))
    assert class_of(task(command="cd a && make install"), commands).policy is ASKS
    assert class_of(task(command="make"), commands).policy is REVERSIBLE


def test_worst_of_a_tasks_commands_counts() -> None:
    one = task("Deploy to production", command="make x", verify_cmd="sudo id")
    assert class_of(one, Commands(approve=("bash:make",))).is_refused
