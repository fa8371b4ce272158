"""Attempts to get out of the confinement: none gets through, and what is no attempt works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopctl.domain import ExecResult
from loopctl.errors import SandboxError

from .conftest import KEYS, LIMIT_S, SECRET, Ground, heard, tell

READS: dict[str, str] = {
    **{f"read {key}": f'cat "$H/{key}"' for key in KEYS},
    "list keys": 'ls "$H/.ssh"',
    "read another project": 'cat "$OUT/secret"',
    "read above the checkout": "cat ../outside/secret",
    "read through a link": 'ln -sf "$OUT/secret" link && cat link',
    "read through the root of a process": 'cat "/proc/self/root$OUT/secret"',
    "read through the first process": 'cat "/proc/1/root$OUT/secret"',
    "read an ignored file of the checkout": 'cat "$CHECKOUT/.env"',
    "read the harness's database": 'cat "$CHECKOUT/.local/loop.db"',
    "list all worktrees": 'ls "$CHECKOUT/.local/worktrees"',
    "read shadow": "cat /etc/shadow",
    "read private certificates": "ls /etc/ssl/private",
    "read another process's environment": f"grep -q {SECRET} /proc/[0-9]*/environ",
    "list the system's devices": "ls /sys/kernel",
}
"""Each of them succeeds without confinement, which is shown too."""

WRITES: dict[str, str] = {
    "write a shared folder": "echo x > .venv/marker",
    "add to a shared folder": "echo x > node_modules/new",
    "remove from a shared folder": "rm .venv/marker",
    "change a mode in a shared folder": "chmod 777 .venv/marker",
    "move a shared folder": "mv .venv elsewhere",
    "remove a shared folder": "rm -r node_modules",
    "link out of a shared folder": "ln .venv/marker hard && echo x > hard",
    "write the pointer": "echo x > .git",
    "remove the pointer": "rm .git",
    "move the pointer": "mv .git dotgit",
    "put a folder in the pointer's place": "mkdir .git/hooks",
    "configure the repository": "git config core.fsmonitor ./evil",
    "commit": "git commit -q --allow-empty -m x",
    "stage": "git add a",
    "make a branch": "git branch other",
    "make a worktree": 'git worktree add -q "$TMPDIR/w"',
    "plant a hook": 'mkdir -p "$R/hooks" && echo x > "$R/hooks/pre-commit"',
    "write a reference": 'echo x > "$R/refs/heads/x"',
    "write the exclude file": 'echo x >> "$R/info/exclude"',
    "replace the harness's command": 'echo x > "$SHIM/loop"',
    "write to the root": "touch /new",
    "write system programs": "touch /usr/bin/new",
    "write system settings": "touch /etc/new",
    "write Python": 'touch "$PREFIX/new"',
    "write a tool of the user's": 'echo x > "$H/.cargo/bin/users-tool"',
    "write the core pattern": ": >> /proc/sys/kernel/core_pattern",
    "write kernel settings": ": >> /proc/sys/vm/drop_caches",
    "move interrupts": ": >> /proc/irq/default_smp_affinity",
    "press keys of the kernel": ": >> /proc/sysrq-trigger",
    "read kernel messages": ": < /dev/kmsg",
    "read memory": ": < /dev/mem",
    "open a terminal": ": < /dev/tty",
    "unmount a shared folder": "umount .venv",
    "unmount the pointer": "umount .git",
    "remount a shared folder": "mount -o remount,rw,bind .venv",
    "remount the root": "mount -o remount,rw /",
    "mount over a folder": "mount -t tmpfs none /mnt",
    "make a user namespace": "unshare -U true",
    "make a mount namespace": "unshare -m true",
    "enter a namespace": "nsenter -t 1 -m true",
    "change the root": "chroot / true",
    "make a device": "mknod device b 8 0",
    "keep capabilities": "! grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status",
    "may get capabilities": "! grep -q '^CapBnd:[[:space:]]*0*$' /proc/self/status",
    "gain privileges": "grep -q '^NoNewPrivs:[[:space:]]*0$' /proc/self/status",
    "see many processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 12",
    "see the ports of the machine": 'grep -qi ":$(printf %04X "$PORT") 00000000:0000 0A" /proc/net/tcp',
}

CALLS: dict[str, str] = {
    "connect to a port": "socket.create_connection(('127.0.0.1', int(os.environ['PORT'])), 5)",
    "connect to the network": "socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))",
    "connect to a socket": "socket.socket(socket.AF_UNIX).connect(os.environ['SOCK'])",
    "connect to an abstract socket": (
        "socket.socket(socket.AF_UNIX).connect('\\0' + os.environ['ABSTRACT'])"
    ),
    "open a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "open a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "take a low port": "socket.socket().bind(('127.0.0.1', 81))",
    "mount": "call('mount', b'none', b'/mnt', b'tmpfs', 0, None)",
    "unmount lazily": "call('umount2', b'.venv', 2)",
    "unshare users": "call('unshare', 0x10000000)",
    "unshare mounts": "call('unshare', 0x20000)",
    "join a namespace": "call('setns', os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)",
    "become another user": "os.setuid(12345)",
    "give a file away": "os.close(os.open('mine', os.O_CREAT)); os.chown('mine', 12345, 12345)",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))",
    "name the machine": "call('sethostname', b'evil', 4)",
    "set the clock": "import time; time.clock_settime(time.CLOCK_REALTIME, time.time())",
    "hold an inherited file": (
        "assert [n for n in os.listdir('/proc/self/fd') if int(n) > 2"
        " and os.path.realpath('/proc/self/fd/' + n).startswith(os.environ['OUT'])]"
    ),
}

SPOILS: dict[str, str] = {
    "make a file outside": 'mkdir -p "$OUT" && echo x > "$OUT/new"',
    "change a file outside": 'mkdir -p "$OUT" && echo x > "$OUT/data"',
    "write the user's shell": 'mkdir -p "$H" && echo x > "$H/.bashrc"',
    "write the harness's folder": 'echo x > "$CHECKOUT/.local/loop.db"',
    "change a file of the checkout": 'echo x > "$CHECKOUT/a"',
    "remove what can be": 'rm -rf "$OUT" "$H" "$CHECKOUT"/.local "$CHECKOUT"/* /tmp/*',
    "kill a process": 'kill -9 "$VICTIM"',
    "kill all": "sh -c 'kill -9 -1' & wait; true",
}
"""May seem to work inside; nothing outside shows it."""

SPEAK = """{python} -c '
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
print("spoke")
'"""

TABLE: dict[str, tuple[str, str]] = {
    **{name: ("sh", text) for name, text in {**READS, **WRITES}.items()},
    **{name: ("py", text) for name, text in CALLS.items()},
}


def _names(ground: Ground, listening: dict[str, str]) -> dict[str, str]:
    local = ground.checkout / ".local"
    return {
        "H": str(ground.home),
        "OUT": str(ground.outside),
        "CHECKOUT": str(ground.checkout),
        "R": str(local / "git"),
        "SHIM": str(local / "shim"),
        "PREFIX": sys.prefix,
        **listening,
    }


@pytest.fixture(scope="module")
def ended(ground: Ground, listening: dict[str, str]) -> dict[str, tuple[int, str]]:
    """How each attempt ended, all of them in one confined command."""
    argv = tell(TABLE, ground.box.scratch / "attempts")
    done = ground.box.run(argv, timeout_s=LIMIT_S, env=_names(ground, listening))
    return heard(done)


@pytest.mark.parametrize("name", TABLE)
def test_no_attempt_gets_through(ended: dict[str, tuple[int, str]], name: str) -> None:
    code, said = ended[name]
    # A program that is missing would prove nothing.
    assert code not in {0, 126, 127}, said
    assert SECRET not in said


def test_there_are_enough_attempts() -> None:
    assert len(TABLE) + len(SPOILS) >= 60


def test_what_cannot_be_read_inside_can_be_read_outside(
    ground: Ground, listening: dict[str, str], tmp_path: Path
) -> None:
    links = ("connect to a port", "connect to a socket", "connect to an abstract socket")
    bare = {name: TABLE[name] for name in (*READS, *links)}
    # It is init's own out here, and not for everybody.
    del bare["read through the first process"]
    if os.getuid() != 0:
        del bare["read shadow"], bare["read private certificates"]
    work = ground.root / "beside"
    work.mkdir(exist_ok=True)
    env = {**ground.env, **_names(ground, listening)}
    argv = tell(bare, tmp_path / "attempts")
    done = subprocess.run(argv, cwd=work, env=env, capture_output=True, timeout=120, check=False)
    found = heard(ExecResult(done.returncode, done.stdout, done.stderr))
    # One that looks through all processes may meet one that has just ended.
    assert {name: said for name, (code, said) in found.items() if code not in {0, 2}} == {}


def test_what_is_spoilt_inside_is_whole_outside(ground: Ground, listening: dict[str, str]) -> None:
    box = ground.open("T2-main")
    before = ground.seen()
    for name, text in SPOILS.items():
        box.run(text, timeout_s=LIMIT_S, env=_names(ground, listening))
        assert ground.seen() == before, name
        os.kill(int(listening["VICTIM"]), 0)
    assert (ground.checkout / ".local/loop.db").read_text() == SECRET
    assert not (box.workdir / "a").exists()


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("echo changed > a; cat a", "changed"),
        ("pwd", "{checkout}"),
        ("cat .venv/marker node_modules/marker", "the user's"),
        ("git status --short && git log --oneline && git diff && git diff HEAD && echo ok", "ok"),
        ("git rev-parse --show-toplevel", "{checkout}"),
        ('echo kept > "$HOME/f" && echo kept > "$TMPDIR/f" && cat "$HOME/f"', "kept"),
        ('cd "$TMPDIR" && git init -q r && cd r && git commit -qm x --allow-empty && git log', "x"),
        ("echo said > /dev/stdout; echo lost > /dev/null", "said"),
        ("mktemp -p /tmp >/dev/null && echo made", "made"),
        ("{python} -c 'import pytest, loopctl; print(pytest.__name__)'", "pytest"),
        ("loop --version", "loop"),
        ("users-tool", "tool runs"),
        ("head -c 4 /dev/urandom | wc -c", "4"),
        (SPEAK, "spoke"),
        ("(sleep 0; echo child) & wait", "child"),
    ],
)
def test_what_a_task_needs_works(ground: Ground, word: str, says: str) -> None:
    names = {"{checkout}": str(ground.checkout), "{python}": sys.executable}
    for name, value in names.items():
        word, says = word.replace(name, value), says.replace(name, value)
    done = ground.box.run(word, timeout_s=LIMIT_S)
    assert (done.returncode, says in done.stdout.decode()) == (0, True), done.stdout


def test_what_is_written_stands_in_the_worktree_alone(ground: Ground) -> None:
    box = ground.open("T3-main")
    box.run("echo from inside > fresh", timeout_s=LIMIT_S)
    assert (box.workdir / "fresh").read_text() == "from inside\n"
    assert not (ground.checkout / "fresh").exists()
    tree = box.snapshot()
    listed = ground.git("--git-dir", ".local/git", "ls-tree", "-r", "--name-only", tree)
    assert listed.split() == [".gitignore", "a", "fresh"]


def test_nothing_that_left_its_session_lives_on(ground: Ground) -> None:
    ground.box.run("setsid sh -c 'exec sleep 86399.125' & echo started", timeout_s=LIMIT_S)
    lines = [_words(pid) for pid in Path("/proc").iterdir() if pid.name.isdecimal()]
    assert not any(b"86399.125" in line for line in lines)


def _words(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_planted_link_is_never_mounted_on(ground: Ground) -> None:
    box = ground.open("T4-main")
    (box.workdir / ".git").unlink()
    (box.workdir / ".git").symlink_to(ground.outside)
    with pytest.raises(SandboxError, match=r"\.git is not the file"):
        box.run("true", timeout_s=LIMIT_S)
