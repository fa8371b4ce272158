"""Programs that run what follows them, and options that hold a command. Tables."""

from typing import Final

# Options with a value of a word of their own, and how many words come before the program.
PLAIN: Final[dict[str, tuple[frozenset[str], int]]] = {
    "env": (frozenset({"-u", "--unset", "-C", "--chdir", "-a", "--argv0"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "coproc": (frozenset(), 0),
    "noglob": (frozenset(), 0),
    "nocorrect": (frozenset(), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}), 0),
    "timeout": (frozenset({"-s", "-k", "--signal", "--kill-after"}), 1),
    "gtimeout": (frozenset({"-s", "-k"}), 1),
    "ionice": (frozenset({"-c", "-n", "-p", "--class", "--classdata"}), 0),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1),
    "taskset": (frozenset(), 1),
    "numactl": (frozenset({"-N", "-m", "-C"}), 0),
    "time": (frozenset({"-f", "-o", "--format", "--output"}), 0),
    "flock": (frozenset({"-w", "-E", "--timeout"}), 1),
    "strace": (frozenset({"-e", "-o", "-s", "-a", "-O", "-P", "-S", "-u", "-E"}), 0),
    "ltrace": (frozenset({"-e", "-o", "-s", "-a", "-u", "-l", "-n"}), 0),
    "valgrind": (frozenset(), 0),
    "catchsegv": (frozenset(), 0),
    "unbuffer": (frozenset(), 0),
    "setarch": (frozenset(), 1),
    "linux64": (frozenset(), 0),
    "linux32": (frozenset(), 0),
    "prlimit": (frozenset({"-p", "--pid"}), 0),
    "faketime": (frozenset(), 1),
    "chronic": (frozenset(), 0),
    "ts": (frozenset(), 0),
    "busybox": (frozenset(), 0),
    "toybox": (frozenset(), 0),
    "caffeinate": (frozenset({"-t", "-w"}), 0),
    "dbus-run-session": (frozenset(), 0),
    "xvfb-run": (frozenset({"-n", "-e", "-f", "-p", "-s", "-w"}), 0),
    "fakeroot": (frozenset({"-l", "-s", "-i"}), 0),
    "winpty": (frozenset(), 0),
    "npx": (frozenset({"-p", "--package"}), 0),
    "pnpx": (frozenset({"-p", "--package"}), 0),
    "bunx": (frozenset({"-p", "--package"}), 0),
    "uvx": (frozenset({"--from", "--with", "-p", "--python"}), 0),
    "pipx": (frozenset({"--spec", "--python"}), 1),
    "direnv": (frozenset(), 2),
    "dotenv": (frozenset({"-f", "-e"}), 0),
}
RUN_WORD: Final = {
    "uv": "run", "poetry": "run", "pipenv": "run", "hatch": "run", "pdm": "run", "rye": "run",
    "conda": "run", "mamba": "run", "npm": "exec", "pnpm": "exec", "yarn": "exec", "bundle": "exec",
    "perf": "stat", "rustup": "run", "mise": "exec", "asdf": "exec", "coverage": "run",
}  # fmt: skip
RUN_VALUES: Final = frozenset(
    {"-n", "--name", "-p", "--python", "--with", "--group", "--extra", "-e"}
)
ACTION_WORD: Final = {
    "rsync": ("-e", "--rsh"),
    "tar": ("-I", "-F", "--use-compress-program", "--to-command"),
    "zip": ("-TT", "--unzip-command"),
    "man": ("-P", "--pager"),
    "make": ("--eval",),
    "gmake": ("--eval",),
    "entr": (),
    "fzf": ("--preview", "--bind"),
    "split": ("--filter",),
    "sort": ("--compress-program",),
}
