"""What a step costs in mini-swe-agent: run by its own interpreter, apart from this project's.

``python _minisweagent.py FILE``: FILE is JSON with ``past``, ``replies`` and ``result``, as of
``_plain.step``; takes a step for each line of its input and prints the seconds. Its model and its environment
are instant: the model is the package's own for tests, the environment answers with ``result``.
"""

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


class Instant:
    """An environment in which each command says the same at once."""

    config = None

    def __init__(self, result: str) -> None:
        self._result = result

    def execute(self, action: Any, cwd: str = "") -> dict[str, Any]:
        """Return the result."""
        del action, cwd
        return {"output": self._result, "returncode": 0, "exception_info": ""}

    def get_template_vars(self, **more: Any) -> dict[str, Any]:
        """Return nothing of its own."""
        return more

    def serialize(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


def main(path: str) -> None:
    """Measure the agent's own loop, its trajectory saved after each reply as its command does."""
    # By name: this project's own environment does not have the package.
    agents = importlib.import_module("minisweagent.agents.default")
    models = importlib.import_module("minisweagent.models.test_models")
    given = json.loads(Path(path).read_text(encoding="utf-8"))

    outputs = [
        models.make_toolcall_output(
            reply["content"],
            reply["tool_calls"],
            [
                {"command": one["function"]["arguments"], "tool_call_id": one["id"]}
                for one in reply["tool_calls"]
            ],
        )
        for reply in given["replies"]
    ]
    for _ in sys.stdin:
        agent = agents.DefaultAgent(
            models.DeterministicToolcallModel(outputs=outputs),
            Instant(given["result"]),
            system_template="",
            instance_template="",
            cost_limit=0,
        )
        agent.messages = list(given["past"])
        trajectory = Path(path).with_suffix(".trajectory.json")
        began = time.perf_counter()
        for _ in outputs:
            agent.step()
            agent.save(trajectory)
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
