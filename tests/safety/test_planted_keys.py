import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from loopctl.events import AnyEvent, Noticed
from loopctl.redaction import Redactor, shapes_in
from loopctl.store.eventlog import JsonLinesEventLog
from loopctl.store.stores import Stores
from loopctl.testing import StillClock
from loopctl.verdict import Check, CheckResult, Verdict

KEY = 'pl4nt/ed+"k3y"==\u00e9'
MARKER = "marker-that-is-no-secret"
BYTES = KEY.encode()
FORMS = {
    "raw": KEY,
    "url": quote(KEY, safe=""),
    "json": json.dumps(KEY)[1:-1],
    "json-unicode": json.dumps(KEY, ensure_ascii=False)[1:-1],
    "hex": BYTES.hex(),
    "base64-0": base64.b64encode(b"abc" + BYTES + b"xyz").decode(),
    "base64-1": base64.b64encode(b"abcd" + BYTES + b"xyz").decode(),
    "base64-2": base64.urlsafe_b64encode(b"abcde" + BYTES + b"xyz").decode(),
    "sk": "sk-" + "a1B2" * 8,
    "github": "ghp_" + "a1B2" * 9,
    "aws": "AKIA" + "ABCD" * 4,
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
}
redact = Redactor({"MINE": KEY, "FLAG_TOKEN": "false"}, ["MINE"])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_planted_key_is_in_no_byte_of_events_and_stores_and_the_marker_is(
    form: str, tmp_path: Path
) -> None:
    heard: list[AnyEvent] = []
    text = f"{MARKER} {form} end"
    log = JsonLinesEventLog(tmp_path / "log" / "r", "r", StillClock(), (heard.append,), redact)
    log.append(Noticed(text=text))
    log.close()
    with Stores(tmp_path, StillClock(), redact) as stores:
        found = CheckResult(check=Check.VERIFY, verdict=Verdict.FAIL, reason=text, tail=text)
        stores.verdicts.put("tree", "verify", "true", found)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    core = form if not form.startswith(base64.b64encode(b"abc").decode()) else form[8:-8]
    assert core.encode() not in written
    assert json.dumps(core)[1:-1].encode() not in written
    assert all(core not in str(event) for event in heard)
    assert written.count(MARKER.encode()) >= 2


def test_text_without_keys_is_left_as_it_is() -> None:
    text = "task-list of the risk-management: false, eyJ, sk-short, AKIA"
    assert redact(text) == text
    assert not list(shapes_in(text))


def test_json_stays_json_and_bytes_that_are_no_text_stay() -> None:
    assert json.loads(redact.document(json.dumps({"a": [f"x\n{KEY}"], KEY: 1}))) == {
        "a": ["x\n[key]"],
        "[key]": 1,
    }
    assert redact.data(b"\xff\x00" + BYTES) == b"\xff\x00[key]"
