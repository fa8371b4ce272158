"""Attempts to get out of Landlock: what it keeps is kept, and what it does not is known by name.

Nothing is tried here that would reach beyond this test's own folders and processes if it worked.
"""

import os
import sys

import pytest

from loopctl.sandbox.confine import landlock, lockin

from .conftest import LIMIT_S, SECRET, Ground, heard, require_landlock, tell
from .test_escapes import CALLS, READS, WRITES, _names

APART = frozenset({"take a low port"})
"""Without sockets there is none to be taken."""

MORE: dict[str, tuple[str, str]] = {
    "empty a file outside": ("py", "os.truncate(os.environ['OUT'] + '/data', 0)"),
    "rename a file outside": ("sh", 'mv "$OUT/data" "$OUT/moved"'),
    "remove a file outside": ("sh", 'rm -f "$OUT/data"; ! test -e "$OUT/data"'),
    "move a file out": ("sh", 'echo x > inner && mv inner "$OUT/moved"'),
    "link a file in": ("sh", 'ln "$OUT/data" hard && echo x > hard'),
    "make a folder outside": ("sh", 'mkdir "$OUT/folder"'),
    "make a pipe outside": ("sh", 'mkfifo "$OUT/pipe"'),
    "write another worktree": ("sh", 'echo x > "$CHECKOUT/.local/worktrees/planted"'),
    "write the checkout": ("sh", 'echo x > "$CHECKOUT/a"'),
    "signal a process": ("py", "os.kill(int(os.environ['VICTIM']), 0)"),
    "trace a process": (
        "py",
        "call('ptrace', 16, int(os.environ['VICTIM']), None, None)",
    ),
    "read a process's files": ("sh", 'readlink "/proc/$VICTIM/fd/0"'),
    "read a process's memory": ("sh", 'head -c 1 "/proc/$VICTIM/mem"'),
    "open a Unix socket": ("py", "socket.socket(socket.AF_UNIX)"),
    "open a datagram socket": ("py", "socket.socket(type=socket.SOCK_DGRAM)"),
    "open a netlink socket": ("py", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    "read a keyring": (
        "py",
        "call('syscall', 250, 0, -3, 0) if os.uname().machine == 'x86_64' else 1/0",
    ),
    "make a ring of calls": ("py", "call('syscall', 425, 8, bytes(128))"),
    "clone into a user namespace": (
        "py",
        "call('syscall', 56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0)",
    ),
    "write a device": ("sh", ": > /dev/vda"),
    "write the machine's temporary folder": ("sh", "echo x > /tmp/planted-by-an-attempt"),
    "write memory of all": ("sh", "echo x > /dev/shm/planted-by-an-attempt"),
}

KNOWN = {
    # The worktree's own: the harness never reads it.
    "write the pointer",
    "remove the pointer",
    "move the pointer",
    # A link in the worktree, not what it leads to.
    "move a shared folder",
    "remove a shared folder",
    # What Landlock does not guard; the report says so.
    "change a mode in a shared folder",
    "see many processes",
    "see the ports of the machine",
}


def _table() -> dict[str, tuple[str, str]]:
    return {
        **{name: ("sh", text) for name, text in {**READS, **WRITES}.items()},
        **{name: ("py", text) for name, text in CALLS.items() if name not in APART},
        **MORE,
    }


@pytest.fixture(scope="module")
def ended(ground: Ground, listening: dict[str, str]) -> dict[str, tuple[int, str]]:
    """How each attempt ended, in order, all in one worktree that is restored in between."""
    require_landlock()
    found: dict[str, tuple[int, str]] = {}
    table = _table()
    spoiling = {name for name in table if name in KNOWN}
    for number, names in enumerate((table.keys() - spoiling, spoiling)):
        box = ground.open(f"LL{number}-main", by="landlock")
        chosen = {name: one for name, one in table.items() if name in names}
        argv = tell(chosen, box.scratch / "attempts")
        env = _names(ground, listening)
        found |= heard(box.run(argv, timeout_s=LIMIT_S, env=env))
    return found


@pytest.mark.parametrize("name", sorted(_table().keys() - KNOWN))
def test_no_attempt_gets_through(ended: dict[str, tuple[int, str]], name: str) -> None:
    code, said = ended[name]
    assert code not in {0, 127}, said
    assert SECRET not in said


def test_what_gets_through_is_known(ended: dict[str, tuple[int, str]]) -> None:
    assert {name for name, (code, _) in ended.items() if code == 0} <= KNOWN
    assert len(ended) - len(KNOWN) >= 60


def test_nothing_is_spoilt_outside(
    ground: Ground, ended: dict[str, tuple[int, str]], listening: dict[str, str]
) -> None:
    assert ended
    assert (ground.outside / "data").read_text() == "to be read\n"
    assert (ground.checkout / "a").read_text() == "one\n"
    assert (ground.checkout / ".venv/marker").read_text() == "the user's\n"
    os.kill(int(listening["VICTIM"]), 0)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("echo changed > a; cat a", "changed"),
        ("cat .venv/marker node_modules/marker", "the user's"),
        ("git status --short && git log --oneline && git diff && echo ok", "ok"),
        ('echo kept > "$HOME/f" && echo kept > "$TMPDIR/f" && cat "$HOME/f"', "kept"),
        ('cd "$TMPDIR" && git init -q r && cd r && git commit -qm x --allow-empty && git log', "x"),
        ("echo said > /dev/stdout; echo lost > /dev/null", "said"),
        ("mkdir -p x/y && echo z > x/f && mv x/f x/y && rm -r x && echo moved", "moved"),
        ("{python} -c 'import pytest, loopctl; print(pytest.__name__)'", "pytest"),
        ("{python} -c 'import socket; socket.socketpair(); print(\"paired\")'", "paired"),
        (
            "{python} -c 'import threading as t; a = t.Thread(target=print, args=[1]); a.start()'",
            "1",
        ),
        ("loop --version", "loop"),
        ("users-tool", "tool runs"),
        ("head -c 4 /dev/urandom | wc -c", "4"),
        ("(sleep 0; echo child) & wait", "child"),
        ("sh -c 'exit 7'; echo $?", "7"),
    ],
)
def test_what_a_task_needs_works(ground: Ground, word: str, says: str) -> None:
    require_landlock()
    box = ground.open("LC-main", by="landlock")
    done = box.run(word.replace("{python}", sys.executable), timeout_s=LIMIT_S)
    assert (done.returncode, says in done.stdout.decode()) == (0, True), done.stdout


def test_the_network_is_there_where_it_is_allowed_and_unix_sockets_are_not(
    ground: Ground, listening: dict[str, str]
) -> None:
    require_landlock()
    box = ground.open("LN-main", by="landlock", network=True)
    call = f"socket.create_connection(('127.0.0.1', {listening['PORT']}), 5)"
    done = box.run([sys.executable, "-c", f"import socket; {call}"], timeout_s=LIMIT_S)
    assert done.returncode == 0, done.stdout
    unix = f"socket.socket(socket.AF_UNIX).connect({listening['SOCK']!r})"
    done = box.run([sys.executable, "-c", f"import socket; {unix}"], timeout_s=LIMIT_S)
    assert b"Permission denied" in done.stdout


def test_what_is_named_can_be_read_or_written_and_keys_stay_unseen(ground: Ground) -> None:
    require_landlock()
    cache = ground.home / "cache"
    cache.mkdir(exist_ok=True)
    box = ground.open("LR-main", by="landlock", read=["../outside", "~"], write=["~/cache"])
    said = box.run(
        f"cat {ground.outside}/data; echo x > {ground.outside}/data; echo kept > {cache}/f;"
        f" cat {ground.home}/.gitconfig {ground.home}/.netrc {ground.home}/.cargo/credentials.toml",
        timeout_s=LIMIT_S,
    ).stdout.decode()
    assert "to be read" in said
    assert (ground.outside / "data").read_text() == "to be read\n"
    assert (cache / "f").read_text() == "kept\n"
    assert "Some One" in said
    assert SECRET not in said


def test_a_tool_that_cannot_be_reached_is_named_with_what_shows_it(ground: Ground) -> None:
    require_landlock()
    tool = ground.put(ground.home / "farther", "#!/bin/sh\necho far\n", 0o700)
    lost = ground.open("LM-main", by="landlock").run(str(tool), timeout_s=LIMIT_S)
    assert lost.returncode == 126
    assert f'[sandbox] read = ["{ground.home}"]' in lost.stdout.decode()


def test_the_report_says_what_landlock_does_not_keep(ground: Ground) -> None:
    require_landlock()
    held = ground.repositories[-1].confinement
    said = held.describe() if isinstance(held, landlock.Landlock) else ""
    assert "see other processes" in said or landlock.abi() < lockin.SCOPED
    assert "modes and times" in said
