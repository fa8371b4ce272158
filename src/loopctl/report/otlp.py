"""Sends the spans of a run to a collector, by OTLP over HTTP; imported only where that is asked for.

What cannot be sent is no fault of the run: it is said at the end.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from loopctl.events import AnyEvent
from loopctl.report.spantree import SpanTree

_FLUSH_S: Final = 5.0
"""How long the end of a run waits for its last spans."""


class SpanListener:
    """Called with every event of a run; its spans are sent from a thread of their own.

    Args:
        env: The caller's environment; the SDK reads its own variables besides.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        # The SDK would write to stderr, into the live view.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False
        is_named = env.get("OTEL_SERVICE_NAME") or "service.name=" in env.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        self._exporter = _Counted(OTLPSpanExporter())
        self._provider = TracerProvider(
            resource=Resource.create({} if is_named else {"service.name": "loop"}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tree = SpanTree(self._provider.get_tracer("loopctl"))
        self.fault: str | None = None

    def __call__(self, event: AnyEvent) -> None:
        """Take one event."""
        self._tree(event)

    def close(self) -> None:
        """Send what is left, for a few seconds at most; then :attr:`fault` says what was lost."""
        self._tree.close()
        flush = threading.Thread(target=self._provider.shutdown, daemon=True)
        flush.start()
        flush.join(_FLUSH_S)
        if self._exporter.lost or flush.is_alive():
            self.fault = "not all spans could be sent to the collector that OTEL_* names"


class _Counted(SpanExporter):
    """An exporter that counts the spans which it could not send."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send some spans."""
        result = self._inner.export(spans)
        self.lost += len(spans) * (result is not SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        """Send no more."""
        self._inner.shutdown()
