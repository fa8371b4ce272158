"""Spans through OpenTelemetry, where the extra ``[otel]`` is installed and somebody asks for them.

Nothing of OpenTelemetry is imported, and nothing contacted, unless one of its standard variables
names where spans go: ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT``, or
``OTEL_TRACES_EXPORTER`` with ``otlp`` in it.
"""

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loopctl.report.otlp import SpanListener

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PACKAGES: Final = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def is_asked_for(env: Mapping[str, str]) -> bool:
    """Return whether the variables of OpenTelemetry say where spans go."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = env.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporters:
        return "otlp" in exporters.split(",")
    return any(env.get(name, "").strip() for name in _ENDPOINTS)


def is_installed() -> bool:
    """Return whether the extra is there; imports no more of it than its empty folders."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in _PACKAGES)
    except ModuleNotFoundError:
        return False


def span_listener(env: Mapping[str, str]) -> "SpanListener | None":
    """Return the listener that turns events into spans; ``None`` where nobody asks for any.

    Args:
        env: The caller's environment.
    """
    if not is_asked_for(env) or not is_installed():
        return None
    from loopctl.report.otlp import SpanListener  # noqa: PLC0415 - takes long, and may be missing

    return SpanListener(env)
