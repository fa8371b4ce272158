"""Tool servers reached by HTTP that die in the middle of a call or let nobody in, in a whole run."""

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
from tests.integration.mcp.site import opened

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


HIDDEN = "not-to-be-seen-8d3f"
MOST = 2
"""So often is a server tried that keeps a task from its step."""


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("key", "401 Unauthorized; set a valid key in WEB_TOKEN (headers_env of [mcp.web])"),
        ("redirect", "is not followed; if the server is there, correct url in [mcp.web]"),
        ("tls", "no encrypted connection can be made: wrong version number; correct url in"),
    ],
    ids=["key", "redirect", "tls"],
)
def test_a_server_that_only_a_person_can_mend_is_told_at_once_and_no_model_is_asked(
    whole: Make, fault: str, says: str
) -> None:
    one = whole([ScriptedReply(calls=CALLS)])
    with opened() as site:
        site.login = "Bearer another"
        if fault == "redirect":
            site.moved["initialize"] = (307, "/other")
        url = site.url.replace("http:", "https:") if fault == "tls" else site.url
        headers = 'headers_env = { Authorization = "WEB_TOKEN" }'
        one.settings(f'[mcp.web]\nurl = "{url}"\n{headers}\n')
        one.commit()
        ended = one.run(WEB_TOKEN=HIDDEN)
    assert ended.code == 3, ended.err
    (decision,) = ended.document["decisions"]
    assert (decision["task"], decision["kind"]) == ("T1", "environment")
    assert "the tool server 'web' (http" in decision["question"]
    assert says in decision["question"]
    assert HIDDEN not in ended.out + ended.err
    assert len(site.asked) <= MOST
    assert (site.paths <= {"/mcp"}, one.model.chats) == (True, ())


def test_a_url_with_a_password_in_it_is_refused_before_anything_begins(whole: Make) -> None:
    one = whole([])
    with opened() as site:
        url = site.url.replace("http://", f"http://me:{HIDDEN}@")
        one.settings(f'[mcp.web]\nurl = "{url}"\n')
        one.commit()
        ended = one.run()
    assert ended.code == 2
    assert "loop.toml:2: mcp.web.url: it holds a user name or password" in ended.err
    assert HIDDEN not in ended.out + ended.err
    assert (site.asked, one.model.chats) == ([], ())
