"""Locks itself in with Landlock and becomes a command: a program of its own, for any Python.

``python -I -S lockin.py WORD... -- PROGRAM ARGUMENT...``. The first letter of a word says what the rest
of it is: ``r`` a path to read, ``w`` one to write, ``d`` a device, ``l`` a limit as NUMBER=VALUE, and
``n`` alone that there is a network. What cannot be set up ends it with 126, a program that is missing
with 127. It is on the way of each command, so it imports next to nothing.
"""

import ctypes
import os
import resource
import sys

CREATE_RULESET = 444
VERSION = 1
TRUNCATING = 3
"""From this version on nothing outside can be cut to no length."""

SCOPED = 6
"""From this version on signals and abstract sockets stay inside."""

_ADD_RULE, _RESTRICT_SELF, _PATH_BENEATH = 445, 446, 1
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_PARENT_DEATH, _KILL = 1, 9
_BOUNDING_READ, _BOUNDING_DROP, _CAPABILITY_VERSION = 23, 24, 0x20080522

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_IOCTL_VERSION, _TCP_VERSION = 5, 4
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP, _SCOPES = 3, 3

CALLS = {
    # Machine, socket, clone, then: unshare, setns, add_key, request_key, keyctl.
    "x86_64": (0xC000003E, 41, 56, (272, 308, 248, 249, 250)),
    "aarch64": (0xC00000B7, 198, 220, (97, 268, 217, 218, 219)),
}
"""By kind of processor, what the filter has to know; on another one commands cannot be held."""

_CLONE3, _IO_URING = 435, 425
_FOREIGN = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST = 0, 4, 16
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_PERMITTED, _ACCESS, _UNKNOWN = 1, 13, 38
_UNIX, _NEW_USERS = 1, 0x10000000

_libc = ctypes.CDLL(None, use_errno=True)


def main(words: list[str], argv: list[str]) -> None:
    """Lock this process in and become ``argv``; never returns."""
    try:
        parent = os.getppid()
        _check(_libc.prctl(_PARENT_DEATH, _KILL, 0, 0, 0))
        if os.getppid() != parent:
            os.kill(os.getpid(), _KILL)
        for word in words:
            if word.startswith("l"):
                number, _, value = word[1:].partition("=")
                resource.setrlimit(int(number), (int(value), int(value)))
        _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _drop_capabilities()
        _lock_in(words)
        _filter(filter_rows(os.uname().machine, has_network="n" in words))
    except (OSError, ValueError) as error:
        _fail(126, f"the confinement could not be set up: {error}")
    # A file that is there and may not be read is an error to git, where a missing one is none.
    os.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    _become(argv)


def _become(argv: list[str]) -> None:
    """Become a program, looked up on the PATH; what the library has for it reads more files."""
    name = argv[0]
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    places = [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in folders]
    refusal = ""
    for place in places:
        try:
            os.execve(place, argv, os.environ)  # noqa: S606 - what it is for
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = refusal or error.strerror or str(error)
    if refusal:
        _fail(126, f"{name}: {refusal}")
    _fail(127, f"{name}: not found")


def rights(version: int) -> int:
    """Return all that a version of the interface can refuse for files."""
    known = 13 if version == 1 else 14 if version < TRUNCATING else 15
    return (1 << (16 if version >= _IOCTL_VERSION else known)) - 1


def _lock_in(words: list[str]) -> None:
    version = _check(_libc.syscall(CREATE_RULESET, None, 0, VERSION))
    files = rights(version)
    network = _TCP if version >= _TCP_VERSION and "n" not in words else 0
    scopes = _SCOPES if version >= SCOPED else 0
    # Shorter for a kernel that does not know the later fields.
    size = 24 if version >= SCOPED else 16 if version >= _TCP_VERSION else 8
    attributes = (ctypes.c_uint64 * 3)(files, network, scopes)
    ruleset = _check(_libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    allowed = {
        "r": _READ & files,
        "w": files,
        "d": (_READ_FILE | _WRITE_FILE | _IOCTL_DEVICE) & files,
    }
    for word in words:
        if (access := allowed.get(word[:1])) is not None:
            _allow(ruleset, word[1:], access)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("folder", ctypes.c_int32)]  # type: ignore[mutable-override]


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - it starts faster without pathlib
        access &= _OF_A_FILE
    try:
        rule = ctypes.byref(_Rule(access, folder))
        _check(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(folder)


def _drop_capabilities() -> None:
    """Be an ordinary user where this is root's; for others it changes nothing."""
    capability = 0
    while _libc.prctl(_BOUNDING_READ, capability, 0, 0, 0) >= 0:
        # Refused to whoever has none of them anyway.
        _libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0)
        capability += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, bytes(24)))


def filter_rows(machine: str, *, has_network: bool) -> list[tuple[int, int, int, int]]:
    """Return the filter of system calls: code, jumps if true and if false, value.

    Sockets of any kind are refused without a network, and Unix ones with it: the user's own
    services listen there, and start what they are told to. So are user namespaces, keyrings, and
    io_uring, which opens sockets without the call.

    Raises:
        ValueError: The kind of processor is not known.
    """
    if machine not in CALLS:
        raise ValueError(f"there is no filter for {machine}")
    number, socket, clone, plain = CALLS[machine]
    refuse, allow = (_RETURN, 0, 0, _ERROR | _PERMITTED), (_RETURN, 0, 0, _ALLOW)
    rows = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, number), refuse, (_LOAD, 0, 0, _NUMBER)]
    rows += [(_AT_LEAST, 0, 1, _FOREIGN), refuse]
    for call in (*plain, _IO_URING):
        rows += [(_EQUAL, 0, 1, call), refuse]
    # Its flags are where a filter cannot look; callers go on with the older call.
    rows += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | _UNKNOWN)]
    first = (_LOAD, 0, 0, _FIRST)
    rows += [(_EQUAL, 0, 4, clone), first, (_ANY_BIT, 0, 1, _NEW_USERS), refuse, allow]
    closed = (_RETURN, 0, 0, _ERROR | _ACCESS)
    if has_network:
        rows += [(_EQUAL, 0, 4, socket), first, (_EQUAL, 0, 1, _UNIX), closed, allow]
    else:
        rows += [(_EQUAL, 0, 1, socket), closed]
    return [*rows, allow]


class _Row(ctypes.Structure):
    _fields_ = [  # type: ignore[mutable-override]
        ("code", ctypes.c_uint16),
        ("true", ctypes.c_uint8),
        ("false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("rows", ctypes.POINTER(_Row))]  # type: ignore[mutable-override]


def _filter(rows: list[tuple[int, int, int, int]]) -> None:
    code = (_Row * len(rows))(*(_Row(*row) for row in rows))
    program = _Program(len(rows), code)
    _check(_libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _fail(code: int, text: str) -> None:
    os.write(2, f"loop: {text}\n".encode(errors="replace"))
    os._exit(code)


if __name__ == "__main__":
    end = sys.argv.index("--")
    main(sys.argv[1:end], sys.argv[end + 1 :])
