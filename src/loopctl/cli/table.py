"""Every command: its name, and the function below ``commands/`` that is called for it."""

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "run": ("run", "run"),
    "answer": ("answer", "answer"),
    "status": ("status", "status"),
    "next": ("frontier", "next_tasks"),
    "show": ("show", "show"),
    "runs": ("runs", "runs"),
    "report": ("report", "report"),
    "capsule": ("capsule", "capsule"),
    "watch": ("watch", "watch"),
    "pause": ("pause", "pause"),
    "resume": ("resume", "resume"),
    "land": ("land", "land"),
    "recover": ("recover", "recover"),
    "clean": ("clean", "clean"),
    "audit": ("audit", "audit"),
    "metrics": ("metrics", "metrics"),
    "init": ("init", "init"),
    "doctor": ("doctor", "doctor"),
    "demo": ("demo", "demo"),
    "defer": ("worker", "defer"),
    "fork": ("worker", "fork"),
    "propose": ("worker", "propose"),
    "todo-done": ("worker", "todo_done"),
}
