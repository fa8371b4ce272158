"""Looks for texts in every byte that a run wrote, packed and encoded ones too."""

import base64
import json
import re
import sqlite3
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{40,}={0,2}")
_LARGEST = 1 << 22
"""What is larger is no output of these runs."""
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08")


def forms(text: str) -> set[bytes]:
    """Return a text raw, quoted, as JSON, in hexadecimal, and the sure part of each base64."""
    raw = text.encode()
    found = {raw, raw.hex().encode(), quote(text, safe="").encode()}
    found |= {json.dumps(text)[1:-1].encode(), json.dumps(text, ensure_ascii=False)[1:-1].encode()}
    for lead in range(3):
        end = (lead + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(encode(b"\0" * lead + raw)[-(-lead * 8 // 6) : end])
    return found


def everything(local: Path, *said: str) -> list[tuple[str, bytes]]:
    """Return all that lies below a folder, by place: unpacked as far as that goes."""
    found = [(f"said {number}", text.encode()) for number, text in enumerate(said)]
    for path in sorted(local.rglob("*")):
        found.append((f"name of {path.name}", str(path.relative_to(local)).encode()))
        if path.is_file():
            found.append((str(path), path.read_bytes()))
        if path.is_file() and path.suffix == ".db":
            found += [(f"{path} row {number}", cell) for number, cell in enumerate(_cells(path))]
    for repository in (local / "git", local.parent / ".git"):
        done = subprocess.run(
            ["git", f"--git-dir={repository}", "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True,
            check=True,
            timeout=60,
        )
        found.append((f"objects of {repository}", done.stdout))
    return [(place, one) for place, content in found for one in _unpacked(content, 3)]


def holding(pieces: list[tuple[str, bytes]], text: str) -> set[str]:
    """Return the places where a text stands in any form."""
    wanted = forms(text)
    return {place for place, content in pieces if any(form in content for form in wanted)}


def _cells(path: Path) -> Iterator[bytes]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        connection.text_factory = bytes
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            for row in connection.execute(f'SELECT * FROM "{name.decode()}"'):  # noqa: S608 - ours
                yield from (cell for cell in row if isinstance(cell, bytes))
    finally:
        connection.close()


def _unpacked(content: bytes, depth: int) -> Iterator[bytes]:
    yield content
    if not depth:
        return
    if len(content) > _LARGEST:
        return
    for match in _BASE64.finditer(content):
        text = match[0].rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        text = text[: len(text) - (len(text) % 4 == 1)]
        yield from _unpacked(base64.b64decode(text + b"=" * (-len(text) % 4)), depth - 1)
    for match in _ZLIB.finditer(content):
        unpacker = zlib.decompressobj(47)
        try:
            inner = unpacker.decompress(content[match.start() :], 1 << 24)
        except zlib.error:
            continue
        if inner:
            yield from _unpacked(inner, depth - 1)
