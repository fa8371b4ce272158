"""Servers of tools that others wrote, from the npm registry, at fixed versions."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EVERYTHING = "@modelcontextprotocol/server-everything"
FILESYSTEM = "@modelcontextprotocol/server-filesystem"
SDK = "@modelcontextprotocol/sdk"
PACKAGES = (f"{EVERYTHING}@2026.8.31", f"{FILESYSTEM}@2026.8.31", f"{SDK}@1.32.2")

# A server that is only told a port would listen on all addresses of the machine.
LOOPBACK = """
const { Server } = require("node:net");
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...more) {
  this.once("listening", () => console.error(`at http://127.0.0.1:${this.address().port}/mcp`));
  return listen.call(this, { port: Number(port), host: "127.0.0.1" }, more.pop());
};
"""


class Npm:
    """The packages, installed in a folder of their own.

    Args:
        prefix: That folder.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self._loopback = prefix / "loopback.cjs"
        self._loopback.write_text(LOOPBACK)

    @property
    def files(self) -> str:
        """The program that serves the files of the folders it is told, by stdio."""
        return str(self.prefix / "node_modules/.bin/mcp-server-filesystem")

    @contextmanager
    def everything(self, port: int = 0) -> Iterator[str]:
        """Run what has a tool of every kind, over HTTP; yield its address."""
        script = self.prefix / "node_modules" / EVERYTHING / "dist/index.js"
        with self._serving(port, script, "streamableHttp") as url:
            yield url

    @contextmanager
    def script(self, source: Path, port: int = 0, **env: str) -> Iterator[str]:
        """Run a script of ours with the SDK for JavaScript, over HTTP; yield its address."""
        # It finds the packages from where it stands.
        copy = shutil.copy(source, self.prefix)
        with self._serving(port, Path(copy), **env) as url:
            yield url

    @contextmanager
    def _serving(self, port: int, *words: str | Path, **env: str) -> Iterator[str]:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.prefix), "PORT": str(port)}
        with subprocess.Popen(
            ["node", "--require", self._loopback, *words],
            env=own | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            try:
                lines = (re.search(r"at (http://\S+)", line) for line in process.stderr)
                found = next(filter(None, lines), None)
                assert found is not None, "the server ended before it listened"
                yield found[1]
            finally:
                process.kill()


def installed(prefix: Path) -> Npm:
    """Return the packages, or skip the test where they cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix=.", *PACKAGES],
        cwd=prefix,
        env={**os.environ, "HOME": str(prefix)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm cannot install {', '.join(PACKAGES)}: {done.stderr[-300:]}")
    return Npm(prefix)
