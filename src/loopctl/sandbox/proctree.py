"""Finds and ends what a command leaves behind: daemons, orphans, whatever changed its session.

A process group is no fence: one ``setsid`` and a child is outside it. So each command carries a tag
in its environment, which its descendants inherit, and the harness is the reaper of all orphans
below it, so that none of them slips away to process 1. At the end of a command ``/proc`` is read,
and what carries the tag, sits in the command's session or descends from one that does is killed.
A daemon that has also emptied its environment is known by elimination: an orphan of ours that was
started while this command, and no other that still goes on, was running. Without ``/proc``
(macOS) only the process group is ended.
"""

import contextlib
import ctypes
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TAG = "LOOP_PROCESS_TAG"

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
_SWEEP_S = 2.0
_LAST_SWEEP_S = 1.0
_STAT_PPID, _STAT_PGRP, _STAT_SESSION, _STAT_START = 1, 2, 3, 19

_numbers = itertools.count(1)
# Re-entrant: a signal handler that ends everything may have interrupted its holder.
_lock = threading.RLock()
_live: dict[str, "Tag"] = {}
_started: set[int] = set()


@dataclass(frozen=True, slots=True)
class Tag:
    """The mark of one command.

    Attributes:
        value: Unique among all harnesses on the machine: pid, the pid's start, a number.
        started: When it was given, in clock ticks since the machine's start.
        lasts: It is no command's, but of a process that goes on beside them.
    """

    value: str
    started: int
    lasts: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    pid: int
    state: str
    ppid: int
    group: int
    session: int
    started: int


def has_proc() -> bool:
    """Return whether this machine can say which processes there are."""
    return sys.platform == "linux" and (_PROC / "self" / "stat").exists()


def is_alive(pid: int) -> bool:
    """Return whether there is a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def claim(*, lasts: bool = False) -> Tag | None:
    """Return the tag of a process about to start; ``None`` where there is no ``/proc``.

    Args:
        lasts: It goes on beside commands, so it does not count where a daemon is known by
            elimination: else none would be known as long as it is there.
    """
    if not has_proc():
        return None
    _become_reaper()
    me = _entry(os.getpid())
    if me is None:
        return None
    tag = Tag(f"{me.pid}.{me.started}.{next(_numbers)}", _now_ticks(), lasts)
    with _lock:
        _live[tag.value] = tag
    return tag


def tagged(env: dict[str, str], tag: Tag | None) -> dict[str, str]:
    """Return ``env`` with the tag; an outer harness's tag stays, so that it finds them too."""
    if tag is None:
        return env
    outer = os.environ.get(TAG, "")
    return {**env, TAG: f"{outer}/{tag.value}" if outer else tag.value}


@contextlib.contextmanager
def adoption() -> Iterator[Callable[[int], None]]:
    """Start a direct child in here and name it, so that no sweep takes it for an orphan."""
    with _lock:
        yield _started.add


def disown(pid: int) -> None:
    """Forget a direct child that has been waited for."""
    with _lock:
        _started.discard(pid)


def ask_to_end(leader: int, *, has_keeper: bool = False) -> None:
    """Send SIGTERM to the group of a direct child that has not been reaped.

    Args:
        leader: The group's first process.
        has_keeper: It only keeps others inside, who have groups of their own: those are asked, since
            it would take them along at once. Where it keeps nobody yet, it is what is asked.
    """
    groups = {leader}
    if has_keeper:
        kept = (_entry(pid) for pid in children(leader))
        groups = {entry.group for entry in kept if entry is not None} or groups
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGTERM)


def children(pid: int) -> Iterator[int]:
    """Yield the children of a process; none where the kernel does not list them."""
    folder = _PROC / str(pid) / "task"
    with contextlib.suppress(OSError):
        for thread in os.listdir(folder):  # noqa: PTH208 - names alone
            with contextlib.suppress(OSError):
                yield from map(int, (folder / thread / "children").read_bytes().split())


def orphans(tag: Tag | None, leader: int) -> tuple[int, ...]:
    """Return what of a command is a child of this process by now, beside its first process."""
    with _lock:
        adopted = [pid for pid in children(os.getpid()) if pid not in _started]
    found = (entry for pid in adopted if (entry := _entry(pid)) is not None)
    value = tag.value if tag is not None else ""
    return tuple(
        entry.pid
        for entry in found
        if leader in (entry.session, entry.group)
        or (value and value in _tag_of(entry.pid).split("/"))
    )


def sweep(tag: Tag | None, leader: int) -> None:
    """Kill and reap all that the command still has, after its leader has ended.

    Args:
        tag: What :func:`claim` returned; released by this call.
        leader: The pid, group and session of the command's first process.
    """
    if tag is None:
        return
    try:
        deadline = time.monotonic() + _SWEEP_S
        # A killed process has lost its environment, and with it the tag, until it is reaped.
        ended: set[tuple[int, int]] = set()
        while found := _remains(tag, leader, ended):
            for entry in found:
                _end(entry)
                ended.add((entry.pid, entry.started))
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)
    finally:
        release(tag)


def release(tag: Tag | None) -> None:
    """Take back a tag whose command has ended, or was never started."""
    if tag is not None:
        with _lock:
            _live.pop(tag.value, None)


def end_strays() -> int:
    """Kill the tagged processes whose harness is gone (it was killed); return how many."""
    if not has_proc():
        return 0
    strays = [entry for entry in _entries() if _is_stray(entry)]
    for entry in strays:
        _end(entry)
    deadline = time.monotonic() + _SWEEP_S
    while (left := [e for e in strays if _is_unreaped(e)]) and time.monotonic() < deadline:
        time.sleep(0.002)
        for entry in left:
            _end(entry)
    return len(strays)


def end_all() -> None:
    """Kill all that this process has started, and all that came of it; safe in a signal handler.

    For the last moments of the process: from now on no other thread starts a child, and none that
    waits for one goes on. Nothing is reaped.
    """
    # Held until the process is gone; whoever else has it is within a few instructions of its end.
    _lock.acquire(timeout=_LAST_SWEEP_S)
    deadline = time.monotonic() + _LAST_SWEEP_S
    for leader in tuple(_started):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    while has_proc() and (found := _offspring()) and time.monotonic() < deadline:
        for entry in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(entry.pid, signal.SIGKILL)
        time.sleep(0.002)


def _offspring() -> list[_Entry]:
    """Return the live processes that this one has started, or that have descended from them."""
    me = _entry(os.getpid())
    if me is None:
        return []
    entries = [entry for entry in _entries() if entry.pid != me.pid]
    found = {entry.pid: entry for entry in entries if _is_ours(entry, me)}
    grown = True
    while grown:
        more = [entry for entry in entries if entry.ppid in found and entry.pid not in found]
        found.update((entry.pid, entry) for entry in more)
        grown = bool(more)
    return [entry for entry in found.values() if entry.state not in {"Z", "X"}]


def _is_ours(entry: _Entry, me: _Entry) -> bool:
    if entry.pid in _started or entry.session in _started or entry.group in _started:
        return True
    if entry.ppid == me.pid and entry.session != me.session:
        return True
    mine = f"{me.pid}.{me.started}."
    return any(value.startswith(mine) for value in _tag_of(entry.pid).split("/"))


def _is_stray(entry: _Entry) -> bool:
    value = _tag_of(entry.pid).rpartition("/")[2]
    return bool(value) and not _is_owner_alive(value) and entry.pid != os.getpid()


def _is_unreaped(entry: _Entry) -> bool:
    now = _entry(entry.pid)
    return now is not None and now.started == entry.started and now.ppid == os.getpid()


def _is_owner_alive(value: str) -> bool:
    pid, _, rest = value.partition(".")
    start = rest.partition(".")[0]
    if not (pid.isdigit() and start.isdigit()):
        return True
    owner = _entry(int(pid))
    return owner is not None and owner.started == int(start)


def _remains(tag: Tag, leader: int, ended: set[tuple[int, int]]) -> list[_Entry]:
    """Return what the command still has, zombies of ours included."""
    me = os.getpid()
    with _lock:
        # In the lock, so that no child is seen between its start and its adoption.
        young = [entry for entry in _entries() if entry.started >= tag.started and entry.pid != me]
        direct = set(_started)
        others = [other for other in _live.values() if other != tag and not other.lasts]
    found = {
        entry.pid: entry
        for entry in young
        if entry.pid not in direct
        and ((entry.pid, entry.started) in ended or _belongs(entry, tag, leader, others))
    }
    grown = True
    while grown:
        more = [e for e in young if e.ppid in found and e.pid not in found and e.pid not in direct]
        found.update((entry.pid, entry) for entry in more)
        grown = bool(more)
    return [entry for entry in found.values() if entry.state != "Z" or entry.ppid == me]


def _belongs(entry: _Entry, tag: Tag, leader: int, others: list[Tag]) -> bool:
    if leader in (entry.session, entry.group):
        return True
    value = _tag_of(entry.pid)
    if value:
        return tag.value in value.split("/")
    is_orphan = entry.ppid == os.getpid() and entry.session != os.getsid(0)
    return is_orphan and not any(other.started <= entry.started for other in others)


def _end(entry: _Entry) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(entry.pid, signal.SIGKILL)
    if entry.ppid == os.getpid():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(entry.pid, os.WNOHANG)


def _entries() -> list[_Entry]:
    pids = (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 - names alone, in one call
    return [entry for pid in pids if (entry := _entry(pid)) is not None]


def _entry(pid: int) -> _Entry | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name in brackets may hold anything, brackets and spaces too: what counts comes after it.
    fields = text[text.rindex(b")") + 2 :].split()
    return _Entry(
        pid=pid,
        state=fields[0].decode(),
        ppid=int(fields[_STAT_PPID]),
        group=int(fields[_STAT_PGRP]),
        session=int(fields[_STAT_SESSION]),
        started=int(fields[_STAT_START]),
    )


def _tag_of(pid: int) -> str:
    try:
        environ = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return ""
    prefix = f"{TAG}=".encode()
    values = (item[len(prefix) :] for item in environ.split(b"\0") if item.startswith(prefix))
    return next(values, b"").decode(errors="replace")


def _now_ticks() -> int:
    # Rounded down: a process started within the same tick must not look older than its command.
    uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return int(uptime_s * os.sysconf("SC_CLK_TCK")) - 1


def _become_reaper() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
