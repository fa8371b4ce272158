"""What can be seen of a real run: its spans, its metrics, its audit chain, its settings."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(http.server.ThreadingHTTPServer):
    """Takes spans on a port of this machine."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.received: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Collector)
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def ready(bench: Any) -> Any:
    bench.manifest("A")
    bench.open_gates("A")
    return bench


def test_spans_of_a_run_reach_the_collector_that_the_environment_names(
    ready: Any, collector: Collector
) -> None:
    done = ready.loop(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0
    names: list[str] = []
    services: set[str] = set()
    for path, body in collector.received:
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            services |= {
                one.value.string_value
                for one in resource.resource.attributes
                if one.key == "service.name"
            }
            names += [span.name for scope in resource.scope_spans for span in scope.spans]
    assert services == {"loop"}
    phases = ["observe", "plan", "pursue", "reflect"]
    assert sorted(names) == ["autoloop.run", "autoloop.step", "autoloop.task", *phases]


def test_spans_that_nobody_takes_are_said_and_change_nothing(
    ready: Any, collector: Collector
) -> None:
    gone = collector.url
    collector.server_close()
    done = ready.loop(OTEL_EXPORTER_OTLP_ENDPOINT=gone)
    assert done.returncode == 0
    assert "loop: not all spans could be sent to the collector that OTEL_* names" in done.stderr
    assert "Traceback" not in done.stderr
    assert "1 done · exit 0" in done.stdout


def test_audit_and_metrics_of_a_real_run(ready: Any) -> None:
    assert ready.loop("audit", "verify").stdout == "no run yet\n"
    assert "autoloop_plans_started_total 0" in ready.loop("metrics").stdout
    assert ready.loop().returncode == 0
    [run] = ready.runs()
    chain = ready.folder(run["run_id"]) / "audit.jsonl"
    lines = chain.read_text().splitlines()
    what = [json.loads(line)["what"] for line in lines]
    assert what[0] == "run_started"
    assert what[-1] == "run_ended"
    assert {"plan_created", "step_finished", "todo_closed", "task_landed"} <= set(what)

    done = ready.loop("audit", "verify", run["run_id"])
    head = json.loads(lines[-1])["hash"]
    assert (done.returncode, done.stdout) == (
        0,
        f"{run['run_id']}: OK, {len(lines)} entries, the last {head[:16]}\n",
    )
    metrics = ready.loop("metrics", run["run_id"]).stdout
    assert 'autoloop_terminations_total{axis="goal"} 1\n' in metrics
    assert "autoloop_todos_completed_total 1\n" in metrics
    assert "autoloop_step_overhead_seconds_count 1\n" in metrics
    assert metrics == ready.loop("metrics").stdout

    chain.write_text("".join(f"{line}\n" for line in lines[:-1]))
    done = ready.loop("audit", "verify")
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout == (
        f"{run['run_id']}: BROKEN\n{chain}:{len(lines)}: dropped: the last entry is missing\n"
    )
    document = json.loads(ready.loop("audit", "verify", "--json").stdout)
    assert document["runs"][0]["ok"] is False
    assert document["runs"][0]["flaw"]["line"] == len(lines)


def test_a_run_that_goes_on_keeps_its_settings_and_names_those_that_differ(bench: Any) -> None:
    settings = bench.root / "loop.toml"
    settings.write_text("[gate]\ntimeout_s = 60\n[sandbox]\nsetup_cmd = 'true'\n")
    bench.open_gates("A", "B")
    path = bench.root / "tasks" / "ACTIVE.toml"
    path.write_text(path.read_text().replace("test -e B.txt", "false"))
    assert bench.loop().returncode == 4
    [run] = bench.runs()
    before = json.loads((bench.folder(run["run_id"]) / "run.json").read_text())
    settings.write_text("[gate]\ntimeout_s = 90\n[sandbox]\nsetup_cmd = 'false'\n")
    bench.open_gates("C")
    with path.open("a") as file:
        file.write(bench.task("C"))
    done = bench.loop("resume", "--json")
    after = json.loads(done.stdout)
    assert after["settings_hash"] == before["settings_hash"] != ""
    assert (
        f"run {run['run_id']} goes on with the settings of its start, not with "
        "gate.timeout_s = 90.0 (at its start 60.0); "
        'sandbox.setup_cmd = "false" (at its start "true")'
    ) in after["notices"]
    # The new setup_cmd fails in every sandbox: it was not used.
    assert [task["status"] for task in after["tasks"]] == ["done", "stuck", "done"]


def test_settings_that_are_as_they_were_are_not_named(bench: Any) -> None:
    bench.open_gates("A", "B")
    path = bench.root / "tasks" / "ACTIVE.toml"
    path.write_text(path.read_text().replace("test -e B.txt", "false"))
    bench.loop()
    notices = json.loads(bench.loop("resume", "--json").stdout)["notices"]
    assert not [text for text in notices if "settings" in text]
