"""A tool server that is reached by HTTP and dies in the middle of a call, from run to answer."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply

Make = Callable[..., Any]

SERVER = str(Path(__file__).parent.parent / "mcp" / "serving.py")
CALLS = (
    ScriptedCall("bash", {"command": "echo word >> T1.txt"}),
    ScriptedCall("mcp__web__send", {"to": "you"}),
    ScriptedCall("todo_done", {"summary": "sent"}),
)


@contextmanager
def serving(port: int, sent: Path, **env: str) -> Iterator[int]:
    """Run the server; yield its port."""
    own = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "SERVING_SENT": str(sent)}
    with subprocess.Popen(
        [sys.executable, SERVER, str(port), "stream"],
        env=own | env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            lines = (re.search(r"http://127.0.0.1:(\d+)", line) for line in process.stderr)
            yield int(next(filter(None, lines))[1])
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("answer", "sent_to"),
    [
        pytest.param("it happened", ["you"], id="happened", marks=pytest.mark.slow),
        pytest.param("it did not, run it again", ["you", "you"], id="again"),
    ],
)
def test_a_call_whose_server_died_is_a_persons_to_settle_and_is_never_repeated_by_itself(
    whole: Make, tmp_path: Path, answer: str, sent_to: list[str]
) -> None:
    sent = tmp_path / "sent"
    one = whole([ScriptedReply(calls=CALLS)])
    with serving(0, sent, SERVING_DIES="1") as port:
        one.settings(f'[mcp.web]\nurl = "http://127.0.0.1:{port}/mcp"\n')
        one.commit()
        ended = one.run()
    assert ended.code == 3, ended.err
    (decision,) = ended.document["decisions"]
    assert (decision["task"], decision["kind"]) == ("T1", "outcome")
    assert 'mcp__web__send with {"to":"you"}' in decision["question"]
    assert answer in decision["options"]
    assert sent.read_text().split() == ["you"]
    # Another run of the same asks again, and does nothing.
    with serving(port, sent):
        assert one.run().code == 3
        assert sent.read_text().split() == ["you"]
        answered = one.loop("answer", "T1", answer, "--json")
    assert answered.code == 0, answered.err
    assert sent.read_text().split() == sent_to
    assert (one.on_branch("T1.txt"), len(one.model.chats)) == ("word\n", 1)
