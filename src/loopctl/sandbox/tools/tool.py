"""The frame of a work tool: arguments that fit its schema come in, a result comes out."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from loopctl.calls import Effect, Outcome, ToolResult, ToolSpec
from loopctl.disk import describe

SHOWN_BYTES: Final = 30_000
"""What one result shows at most; what is longer says how to read on."""

_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
}


class RefusalError(Exception):
    """Why a call is not done, for the model to read; never leaves the tools."""


class WorkTool:
    """The port ``Tool`` around a function.

    Args:
        spec: Its parameters are of the types ``string`` and ``integer`` only.
        effect: ``none`` or ``inside``: what a work tool does stays in the sandbox.
        do: Gets arguments that fit the spec, optional ones may be missing, and the call's key.
    """

    def __init__(
        self, spec: ToolSpec, effect: Effect, do: Callable[[Mapping[str, Any], str], ToolResult]
    ) -> None:
        self.spec = spec
        self._effect = effect
        self._do = do

    @property
    def effect(self) -> Effect:
        """Where its effects are."""
        return self._effect

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        """Return what came of it; what is refused is an error result.

        Raises:
            SandboxError: The sandbox is gone.
            CancelledError: The run was asked to stop.
        """
        try:
            return self._do(checked(self.spec, arguments), idempotency_key)
        except RefusalError as refusal:
            return ToolResult(str(refusal), is_error=True)
        except OSError as error:
            return ToolResult(f"{self.spec.name}: {describe(error)}", is_error=True)

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        """Return that nothing happened where nothing can have happened; else that nobody knows."""
        del arguments, idempotency_key
        return Outcome.ABSENT if self._effect is Effect.NONE else Outcome.UNKNOWN


def spec_of(
    name: str, description: str, required: int, **properties: Mapping[str, Any]
) -> ToolSpec:
    """Return a spec whose first ``required`` properties have to be given."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties)[:required],
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


def checked(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without those that are null.

    Raises:
        RefusalError: They do not fit the spec's parameters; says which, and what would fit.
    """
    properties = spec.parameters["properties"]
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in given:
        if name not in properties:
            known = ", ".join(properties)
            raise RefusalError(f"{spec.name} has no argument {name!r}; it takes {known}")
    for name in spec.parameters["required"]:
        if name not in given:
            raise RefusalError(f"{spec.name} needs the argument {name}")
    return {name: _fitted(name, value, properties[name]) for name, value in given.items()}


def _fitted(name: str, value: object, schema: Mapping[str, Any]) -> object:
    kind, words = _TYPES[schema["type"]]
    if isinstance(value, float) and value.is_integer():
        # JSON has one kind of number, and some models write 3.0.
        value = int(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RefusalError(f"{name} is {words}, not {value!r:.80}")
    if isinstance(value, str):
        _refuse_half_letters(name, value)
    if isinstance(value, int) and value < schema.get("minimum", value):
        raise RefusalError(f"{name} is at least {schema['minimum']}, not {value}")
    return value


def _refuse_half_letters(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RefusalError(f"{name} holds half a surrogate pair, which is no text") from error
