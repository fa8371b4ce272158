import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.errors import EnvironmentFaultError
from loopctl.sandbox import proctree
from loopctl.steps import OutputTail, TurnTaken, WorkerProgress
from loopctl.worker import link
from loopctl.worker.codec import decode_for_engine, encode
from loopctl.worker.protocol import Cancel, Embed, Failed, Failure, Frame, Hello, Ready
from loopctl.worker.serve import OFFLINE
from loopctl.worker.variables import child_environment

CHILD = Path(__file__).with_name("child.py")

GREET = "import sys; sys.stdin.readline(); print({line!r}, flush=True); sys.stdin.read()"


def said_to_child(*lines: bytes) -> tuple[list[Frame[Any]], int]:
    """Return what a child says to these lines alone, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-P", str(CHILD)],
        check=False,
        input=b"".join(line + b"\n" for line in lines),
        capture_output=True,
        timeout=120,
    )
    return [decode_for_engine(line) for line in done.stdout.splitlines()], done.returncode


def hello(**fields: Any) -> bytes:
    return encode(Frame(0, Hello("routes", **fields)))


def test_the_end_of_its_lines_ends_it_whatever_goes_on() -> None:
    embed = encode(Frame(1, Embed(("a",))))
    # Its claim is never answered.
    frames, code = said_to_child(hello(), embed)
    assert code == 0
    assert frames[0] == Frame(0, Ready())
    assert said_to_child() == ([], 0)


def test_it_refuses_another_version_and_what_it_does_not_understand() -> None:
    (refused,), code = said_to_child(hello(version=99))
    assert code == EnvironmentFaultError.exit_code
    assert isinstance(refused.body, Failed)
    assert refused.body.kind is Failure.ENVIRONMENT
    assert "loop speaks version 99" in refused.body.text
    (refused,), _ = said_to_child(encode(Frame(0, Cancel())))
    assert "Hello was expected" in refused.body.text
    (_, refused), _ = said_to_child(hello(), b"what?")
    assert "the engine said what this loop does not understand" in refused.body.text
    (_, refused), _ = said_to_child(hello(), hello())
    assert "second time" in refused.body.text


def test_cancelling_what_is_not_there_and_answering_it_changes_nothing() -> None:
    frames, code = said_to_child(hello(), encode(Frame(7, Cancel())))
    assert (frames, code) == ([Frame(0, Ready())], 0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (encode(Frame(0, Ready(version=99))).decode(), "speaks version 99"),
        ("Traceback:", "does not understand"),
        (encode(Frame(1, Ready())).decode(), "did not greet"),
        (encode(Frame(0, Failed(Failure.ENVIRONMENT, "no room"))).decode(), "no room"),
        (encode(Frame(0, TurnTaken("x"))).decode(), "greeted with TurnTaken"),
    ],
)
def test_a_child_that_does_not_fit_is_the_machines_fault(
    make: Callable[..., Any], line: str, said: str
) -> None:
    house = make(argv=(sys.executable, "-c", GREET.format(line=line)))
    tail, progress = house.step(["tell", "a"])
    assert isinstance(tail, OutputTail)
    assert tail.is_environment
    assert said in tail.text
    assert isinstance(progress, WorkerProgress)


def test_a_child_that_ends_at_once_says_why(make: Callable[..., Any]) -> None:
    house = make(argv=(sys.executable, "-c", "import sys; sys.exit('no such module')"))
    (tail, _) = house.step(["tell", "a"])
    assert isinstance(tail, OutputTail)
    assert "ended with exit code 1" in tail.text
    assert "no such module" in tail.text


def test_a_child_that_cannot_be_started_is_the_machines_fault(make: Callable[..., Any]) -> None:
    house = make(argv=("no-such-python",))
    house.worker.warm()
    (tail, _) = house.step(["tell", "a"])
    assert isinstance(tail, OutputTail)
    assert tail.is_environment
    assert "no-such-python could not be started" in tail.text


def test_libraries_that_cannot_be_imported_are_said_in_each_step(make: Callable[..., Any]) -> None:
    house = make(env={"PATH": os.environ["PATH"], "TEST_LOAD_FAULT": "no litellm"})
    for _ in range(2):
        (tail, _) = house.step(["tell", "a"])
        assert isinstance(tail, OutputTail)
        assert tail.is_environment
        assert "cannot be imported: ImportError: no litellm" in tail.text
    assert len(house.children) == 1


def test_its_environment_holds_what_was_allowed_and_nothing_else(make: Callable[..., Any]) -> None:
    caller = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/someone",
        "LC_ALL": "C.UTF-8",
        "https_proxy": "http://127.0.0.1:1",
        "OPENAI_API_KEY": "k-1",
        "ANTHROPIC_API_KEY": "k-2",
        "AWS_SECRET_ACCESS_KEY": "k-3",
        "LANGSMITH_TRACING": "true",
        "LOOP_TASK": "T1",
    }
    env = child_environment(caller, ["OPENAI_API_KEY", "NOT_SET"])
    house = make(env=env)
    (variables, _) = house.step(["variables"])
    tag = {proctree.TAG} if proctree.has_proc() else set()
    found = json.loads(variables.text)
    names = {"PATH", "HOME", "LC_ALL", "LANG", "https_proxy", "OPENAI_API_KEY"}
    assert set(found) == names | set(OFFLINE) | tag
    assert found["LANGSMITH_TRACING"] == "false"


def test_its_command_line_is_this_installation_and_not_the_folder_it_runs_in(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "loopctl").mkdir()
    (tmp_path / "loopctl" / "__init__.py").write_text("raise SystemExit(9)")
    house = make(argv=link.CHILD)
    with house.process.talk(Embed(("a",)), lambda _ask: None) as talk:
        heard = talk.hear()
    # No routes, so there is no result; but it has greeted, and a talk has an end.
    assert isinstance(heard, Frame)
    assert isinstance(heard.body, Failed)


WATCHED = """
import contextlib
import socket
import sys
CONTACTS = []
def watch(event, args):
    if event in {"socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}:
        CONTACTS.append(f"{event} {args}")
sys.addaudithook(watch)

from loopctl.steps import TurnTaken, WorkerProgress
from loopctl.worker.serve import Handlers, main

def load():
    import litellm
    import langgraph.graph
    import langgraph.checkpoint.sqlite

def run_step(request, specs, door, model):
    import litellm
    said = litellm.completion(
        "openai/gpt-4o", [{"role": "user", "content": "a"}], mock_response="b", api_key="k"
    )
    yield TurnTaken(f"{said.choices[0].message.content} {CONTACTS}")
    with socket.socket() as some, contextlib.suppress(OSError):
        some.connect(("127.0.0.1", 1))
    yield TurnTaken(f"{len(CONTACTS)}")
    yield WorkerProgress(False, False, "")

main(Handlers(load, lambda *a: None, run_step, None, None))
"""


def test_its_slow_libraries_contact_nothing(make: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "watched.py").write_text(WATCHED)
    house = make(argv=(sys.executable, "-P", "watched.py"))
    # The second is the control: what it does contact is seen.
    assert house.step()[:2] == [TurnTaken("b []"), TurnTaken("1")]
