"""Which addresses a whole run of a model worker goes to, as the kernel sees it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply

Make = Callable[..., Any]

_PEER = re.compile(r"sa_family=AF_INET6?, .*?port=htons\((\d+)\), .*?\"([0-9a-f.:]+)\"")
EMBED = """
[models.embed]
name = "openai/vectors"
api_base = "{url}"
api_key_env = "SCRIPTED_KEY"
input_usd_per_mtok = 1.0
output_usd_per_mtok = 0.0
"""


def peers(trace: str) -> set[tuple[str, str]]:
    """Return the addresses and ports that a trace of system calls names."""
    return {(found[2], found[1]) for found in _PEER.finditer(trace)}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_run_goes_to_the_configured_endpoint_alone_and_pays_for_one_import(
    whole: Make, tmp_path: Path
) -> None:
    write = {"command": "echo word | tee -a T1.txt T2.txt"}
    done_call = ScriptedCall("todo_done", {"summary": "written"})
    one = whole([ScriptedReply(calls=(ScriptedCall("bash", write), done_call))])
    one.manifest("T1", "T2")
    one.settings(EMBED.format(url=one.model.url))
    one.commit()
    trace = tmp_path / "trace"
    calls = "trace=connect,sendto,sendmsg,sendmmsg,execve"
    done = subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-e",
            calls,
            "-o",
            str(trace),
            sys.executable,
            "-m",
            "loopctl",
            "--no-sandbox",
        ],
        cwd=one.root,
        env=one.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert {request.path for request in one.model.requests} == {
        "/v1/chat/completions",
        "/v1/embeddings",
    }
    text = trace.read_text()
    assert peers(text) == {("127.0.0.1", str(one.model.port))}
    assert len(re.findall(r'execve\(.*"loopctl\.worker".* = 0', text)) == 1


def test_control_a_peer_is_found_in_a_trace() -> None:
    v4 = 'connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1.2.3.4")}, 16)'
    v6 = (
        "sendto(3, x, 1, 0, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
        'inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28)'
    )
    assert peers(f"{v4}\n{v6}\n") == {("1.2.3.4", "53"), ("::1", "443")}
