import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from loopctl.calls import ToolSpec
from loopctl.domain import Limits
from loopctl.testing import MemoryTill, Play, Script, ScriptedModel, StillClock
from loopctl.worker.model.complete import LiteModel
from loopctl.worker.model.open import open_model
from loopctl.worker.model.paid import claims_of
from loopctl.worker.model.patience import Patience
from loopctl.worker.model.routes import TIERS, Attempt, Price, Routes

KEY = "sk-canary/0123456789"
ENV = {"SCRIPTED_KEY": KEY, "OTHER_KEY": "sk-other-0123456789"}
EDIT = ToolSpec(
    "edit",
    "Change a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # LiteLLM's own way with pydantic; our code is not heard through these.
        for module in ("pydantic", "litellm"):
            item.add_marker(pytest.mark.filterwarnings(f"ignore:::{module}"))


@dataclass
class RecordingStop:
    """Waits are passed on the clock and recorded; asked to stop in the wait of a number."""

    clock: StillClock
    waits: list[float] = field(default_factory=list)
    stops_in_wait: int = 0
    is_asked: Callable[[], bool] = lambda: False

    def is_set(self) -> bool:
        return self.is_asked()

    def wait(self, timeout: float) -> bool:
        self.waits.append(timeout)
        self.clock.pass_time(timeout)
        return len(self.waits) == self.stops_in_wait


@dataclass
class Bench:
    """A model that asks scripted servers, and all that can be seen of it."""

    servers: list[ScriptedModel] = field(default_factory=list)
    till: MemoryTill = field(default_factory=MemoryTill)
    clock: StillClock = field(default_factory=StillClock)
    env: dict[str, str] = field(default_factory=lambda: dict(ENV))
    patience: Patience = field(default_factory=lambda: Patience(tries=3, request_s=20))
    stop: RecordingStop = field(init=False)

    def __post_init__(self) -> None:
        self.stop = RecordingStop(self.clock)

    def serve(self, *script: Play, by: Script | None = None, **options: Any) -> ScriptedModel:
        server = ScriptedModel(by or script, **options)
        self.servers.append(server)
        return server

    def model(self, *attempts: Attempt, embed: Attempt | None = None) -> LiteModel:
        routes = Routes(dict.fromkeys(TIERS, attempts), embed)
        return open_model(
            routes.to_json(),
            self.till,
            claims_of("run-1", "T1", Limits(tokens=1000)),
            env=self.env,
            stop=self.stop,
            clock=self.clock,
            patience=self.patience,
        )

    def attempt(self, *script: Play, url: str | None = None, **options: Any) -> Attempt:
        """Return a model at a new server, or at an address."""
        given: dict[str, Any] = {
            "model": "openai/scripted",
            "api_base": url or self.serve(*script).url,
            "key_name": "SCRIPTED_KEY",
            "max_output_tokens": 50,
            "price": Price(1.0, 10.0),
        }
        return Attempt(**given | options)

    def asking(self, *script: Play, by: Script | None = None, **options: Any) -> LiteModel:
        return self.model(self.attempt(url=self.serve(*script, by=by, **options).url))

    def ask(self, *attempts: Attempt, **options: Any) -> Any:
        """Say hi to the first of some models that answers."""
        hi = [{"role": "user", "content": "hi"}]
        return self.model(*attempts).complete("cheap", hi, [EDIT], purpose="step", **options)

    def complete(self, *script: Play, **options: Any) -> Any:
        """Say hi to a model at a new server."""
        return self.ask(self.attempt(*script), **options)

    @property
    def bodies(self) -> list[Any]:
        return [chat.body for server in self.servers for chat in server.chats]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    for server in made.servers:
        server.close()
    assert made.till.open == 0, "a reservation was never settled"
    assert KEY not in json.dumps([repr(made.till), repr(made.stop)])
