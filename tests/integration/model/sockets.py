"""A process that asks a model with no switch set, and prints every address it went to."""

import json
import os
import socket
import sys
from typing import Any

SEEN: list[str] = []
CONNECT, RESOLVE = socket.socket.connect, socket.getaddrinfo


def connect(self: socket.socket, address: Any) -> None:
    SEEN.append(f"connect {address}")
    CONNECT(self, address)


def resolve(host: Any, *rest: Any, **options: Any) -> Any:
    SEEN.append(f"resolve {host}")
    return RESOLVE(host, *rest, **options)


socket.socket.connect = connect  # type: ignore[assignment, method-assign]
socket.getaddrinfo = resolve

from loopctl.calls import ToolSpec  # noqa: E402
from loopctl.testing import MemoryTill  # noqa: E402
from loopctl.worker.model.count import count_prompt  # noqa: E402
from loopctl.worker.model.open import load, open_model  # noqa: E402
from loopctl.worker.model.paid import claims_of  # noqa: E402
from loopctl.worker.model.prices import usd_of  # noqa: E402
from loopctl.worker.model.providers import PROVIDERS  # noqa: E402
from loopctl.worker.model.routes import Attempt, Routes  # noqa: E402

load()
loaded = list(SEEN)
names = [f"{p.prefix}/{name}" for p in PROVIDERS for name in p.defaults or ("llama-3-8b",)]
names += ["huggingface/meta-llama/Meta-Llama-3-8B", "together_ai/meta-llama/Llama-2-7b", "nobody/x"]
tool = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {}}}
for name in names:
    count_prompt(name, [{"role": "user", "content": "one <|endoftext|> two"}], [tool])
    usd_of(Attempt(name), 300_000, 100)
prices = {name: usd_of(Attempt(name), 1000, 1000) for name in names}
counted = list(SEEN)

chat = Attempt("openai/gpt-6.1-sol", sys.argv[1], "SCRIPTED_KEY")
routes = Routes({"cheap": (chat,)}, Attempt("openai/e", sys.argv[1], "SCRIPTED_KEY"))
model = open_model(routes.to_json(), MemoryTill(), claims_of("r", "t"), env=os.environ)
spec = ToolSpec("t", "d", {"type": "object", "properties": {}})
reply = model.complete("cheap", [{"role": "user", "content": "hi"}], [spec], purpose="step")
vectors = model.embed(["a"])
print(
    json.dumps(
        {
            "loaded": loaded,
            "counted": counted,
            "all": SEEN,
            "reply": repr(reply),
            "vectors": len(vectors or ()),
            "prices": prices,
        }
    )
)
