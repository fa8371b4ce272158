"""A fork that a command meets, in real worktrees: tried, settled from the goal, or asked about."""

from typing import Any

COMMAND = """
case "$LOOP_OPTION" in
  long) printf 'a\\nb\\nc\\n' > made;;
  short) echo a > made;;
  wrong) echo b > other;;
  *) echo before > begun; exec loop fork --question "{question}" --bucket {bucket} {options};;
esac
"""


def forked(project: Any, question: str, bucket: str, *names: str, goal: str = "Import") -> Any:
    options = " ".join(f"--option {name}=so" for name in names)
    command = COMMAND.format(question=question, bucket=bucket, options=options)
    one = project.task("T1", command, verify_cmd="grep -q a made", budget={"loops": 12})
    project.manifest(one, head=f'[goal]\ntext = "{goal}"')
    return project.run()


def test_options_of_quality_are_tried_and_the_smallest_that_passes_lands(project: Any) -> None:
    outcome = forked(project, "Which loop?", "quality", "long", "short")
    assert outcome.code == 0, outcome.message
    assert project.git("show", "loop/integration:made") == "a"
    assert project.git("show", "loop/integration:begun") == "before"
    (resolved,) = outcome.of("fork_resolved")
    assert resolved.winner == "main.1.2-short"
    assert project.kept_file("made", among="long") == ["a\nb\nc"]
    assert len(outcome.of("gate_finished")) == 2


def test_an_option_that_does_not_pass_loses(project: Any) -> None:
    outcome = forked(project, "Which loop?", "quality", "wrong", "long")
    assert outcome.code == 0, outcome.message
    assert [event.winner for event in outcome.of("fork_resolved")] == ["main.1.2-long"]


def test_a_choice_of_scope_is_settled_from_the_goal(project: Any) -> None:
    outcome = forked(project, "How?", "scope", "long", "short", goal="The short one")
    assert outcome.code == 0, outcome.message
    assert project.git("show", "loop/integration:made") == "a"
    assert outcome.of("fork_resolved") == []


def test_an_external_choice_is_a_decision(project: Any) -> None:
    outcome = forked(project, "Which account?", "quality", "long", "short")
    assert outcome.code == 3
    (decision,) = project.decisions()
    assert (decision.kind, decision.options) == ("external", ("long", "short"))
