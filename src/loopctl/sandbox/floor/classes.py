"""How far a task's effects can be undone: told from its words and commands before it is begun."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopctl.domain import PolicyClass, PolicyFinding, Task
from loopctl.sandbox.floor.judge import judge
from loopctl.sandbox.floor.outward import TAGS, outward, outward_text
from loopctl.sandbox.policy import matching


@dataclass(frozen=True, slots=True)
class Commands:
    """What the settings have run for every task.

    Attributes:
        setup_cmd: ``[sandbox] setup_cmd``.
        typecheck: ``[gate] typecheck``, where it is a command.
        deny: The patterns of ``[policy] deny``.
        approve: Those of ``[policy] approve``.
    """

    setup_cmd: str = ""
    typecheck: str = ""
    deny: Sequence[str] = ()
    approve: Sequence[str] = ()


def class_of(task: Task, commands: Commands) -> PolicyFinding:
    """Return how far the effects of a task can be undone, and what tells so.

    What the floor or ``[policy] deny`` has something against is irreversible and refused: no
    approval makes it run.
    """
    found = [_of_command(what, text, commands) for what, text in _texts(task, commands) if text]
    found.append(_of_words(task))
    return max(found, key=_weight, default=PolicyFinding())


def _weight(found: PolicyFinding) -> int:
    return 2 * list(PolicyClass).index(found.policy) + found.is_refused


def _texts(task: Task, commands: Commands) -> Iterator[tuple[str, str | None]]:
    yield "command", task.command
    for option in task.options:
        yield f"command of the option {option.name}", option.command
    yield "verify_cmd", task.verify_cmd
    yield "[sandbox] setup_cmd", commands.setup_cmd
    yield "[gate] typecheck", commands.typecheck


def _of_command(what: str, text: str, commands: Commands) -> PolicyFinding:
    finding = judge(text)
    if finding.refusal:
        return PolicyFinding(
            PolicyClass.IRREVERSIBLE, f"{what}: {finding.refusal}", is_refused=True
        )
    if pattern := matching(finding, text, commands.deny):
        why = f"{what}: [policy] deny has {pattern}"
        return PolicyFinding(PolicyClass.IRREVERSIBLE, why, is_refused=True)
    if why := outward(finding.commands):
        return PolicyFinding(PolicyClass.IRREVERSIBLE, f"{what}: {why}")
    if pattern := matching(finding, text, commands.approve):
        why = f"{what}: [policy] approve has {pattern}"
        return PolicyFinding(PolicyClass.NEEDS_APPROVAL, why)
    return PolicyFinding()


def _of_words(task: Task) -> PolicyFinding:
    tags = sorted(TAGS.intersection(task.area))
    if tags:
        return PolicyFinding(PolicyClass.IRREVERSIBLE, f"its area is {tags[0]}")
    options = (option.prompt for option in task.options)
    for text in (task.title, task.prompt, *task.accept, *options):
        if words := outward_text(text):
            return PolicyFinding(PolicyClass.IRREVERSIBLE, f"it says: {words}")
    return PolicyFinding()
