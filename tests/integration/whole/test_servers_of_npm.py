"""Servers of tools that others wrote, from the manifest to the branch: over HTTP and by stdio."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply

if TYPE_CHECKING:
    from tests.integration.npm import Npm

Make = Callable[..., Any]

pytestmark = pytest.mark.slow

PACK = "mcp__web__gzip-file-as-resource"
FOLDER = ("mcp__files__create_directory", {"path": "made"})
WRITE = ("mcp__files__write_file", {"path": "T1.txt", "content": "word\n"})
DONE = ("todo_done", {"summary": "written"})


def reply(*calls: tuple[str, dict[str, Any]]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


@contextmanager
def page() -> Iterator[tuple[str, list[str]]]:
    """Serve what the tool over HTTP fetches; yield its address, and a line for each time."""
    fetched: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

        def do_GET(self) -> None:
            fetched.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"words")

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/page", fetched
        finally:
            server.shutdown()
            thread.join(60)


def settings(npm: "Npm", url: str, more: str = "") -> str:
    command = json.dumps([npm.files, "."])
    # Where it is confined, it sees of other folders only what is named.
    more += f'[sandbox]\nread = ["{npm.prefix}"]\n'
    return f'[mcp.web]\nurl = "{url}"\n[mcp.files]\ncommand = {command}\n{more}'


def ledger(one: Any) -> list[tuple[str, str]]:
    """Return each call of a server's tool that has effects, with its state."""
    path = one.root / ".local" / "loop.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT tool, state FROM calls WHERE tool LIKE 'mcp%'")
        return sorted(rows.fetchall())


def results(request: Any) -> dict[str, str]:
    """Return what the model was told of its calls, by tool."""
    names = {
        call["id"]: call["function"]["name"]
        for message in request.messages
        for call in message.get("tool_calls") or ()
    }
    return {
        names[message["tool_call_id"]]: str(message["content"])
        for message in request.messages
        if message["role"] == "tool"
    }


def test_a_model_calls_tools_over_http_and_stdio_and_each_is_made_once(
    whole: Make, npm: "Npm"
) -> None:
    with npm.everything() as url, page() as (data, fetched):
        pack = (PACK, {"name": "w.gz", "data": data, "outputType": "resource"})
        read = ("mcp__files__read_text_file", {"path": "README"})
        weather = ("mcp__web__get-structured-content", {"location": "Chicago"})
        word = ("write_file", {"path": "T1.txt", "content": "word\n"})
        one = whole([reply(pack, FOLDER, read, weather), reply(word, DONE)])
        one.settings(settings(npm, url))
        one.commit()
        ended = one.run()
    assert ended.code == 0, ended.err
    assert one.on_branch("T1.txt") == "word\n"
    told = results(one.model.chats[1])
    assert "[resource demo://resource/session/w.gz, application/gzip, " in told[PACK]
    assert "Successfully created directory made" in told[FOLDER[0]]
    assert "words" in told[read[0]]
    assert '"conditions":"Light rain / drizzle"' in told[weather[0]]
    # What a server calls read-only has no effect to remember.
    assert ledger(one) == [(FOLDER[0], "done"), (PACK, "done")]
    assert fetched == ["/page"]
    assert len(one.model.chats) == 2


def test_what_a_server_calls_destructive_waits_for_a_person_and_is_made_once(
    whole: Make, npm: "Npm"
) -> None:
    with npm.everything() as url:
        one = whole([reply(WRITE, DONE), reply(DONE)])
        one.settings(settings(npm, url))
        one.commit()
        ended = one.run()
        assert ended.code == 3, ended.err
        (decision,) = ended.document["decisions"]
        assert (decision["task"], decision["kind"]) == ("T1", "approval")
        assert ledger(one) == []
        answered = one.loop("answer", "T1", "--approve", "--json")
    assert answered.code == 0, answered.err
    assert one.on_branch("T1.txt") == "word\n"
    assert ledger(one) == [(WRITE[0], "done")]


def test_a_tool_that_claims_to_be_harmless_waits_where_the_policy_asks(
    whole: Make, npm: "Npm"
) -> None:
    with npm.everything() as url, page() as (data, fetched):
        one = whole([reply((PACK, {"name": "w.gz", "data": data}))])
        one.settings(settings(npm, url, '[policy]\napprove = ["mcp:web:*"]\n'))
        one.commit()
        ended = one.run()
    assert ended.code == 3, ended.err
    assert [made["kind"] for made in ended.document["decisions"]] == ["approval"]
    assert (fetched, ledger(one)) == ([], [])
