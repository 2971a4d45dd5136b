"""The guide to fleets: its commands and its programs, typed one after the other."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import tensorexpr as tvm
from tensorexpr import te

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/fleet.md").read_text()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "TENSOREXPR_VERIFY"} | {"PYTHONPATH": str(ROOT)}


class Terminal:
    """Runs lines of the guide in a folder, with ports of its own in place of the guide's."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack, self._ports = folder, ExitStack(), {}
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        for name, one in zip(("8786", "8787", "9190"), held, strict=True):
            self._ports[name] = str(one.getsockname()[1])
            one.close()

    def _here(self, text: str) -> str:
        return re.sub("|".join(self._ports), lambda found: self._ports[found[0]], text)

    def command(self, beginning: str) -> list[str]:
        """The guide's command that begins so."""
        (line,) = re.findall(rf"^\$ ({re.escape(beginning)}.*?)(?: &)?$", GUIDE, re.M)
        line = self._here(line).replace("dask scheduler", "python -m distributed.cli.dask_scheduler")
        return [sys.executable if word == "python" else word for word in shlex.split(line)]

    def program(self, name: str, including: str) -> None:
        """Write the guide's program with some text to a file."""
        (block,) = (one for one in re.findall(r"^```py\n(.*?)^```$", GUIDE, re.M | re.S) if including in one)
        (self._folder / name).write_text(self._here(block))

    def type(self, beginning: str) -> str:
        """What a command prints; it has to end well."""
        return self.run(self.command(beginning))

    def run(self, command: list[str]) -> str:
        """What some words print."""
        done = subprocess.run(command, cwd=self._folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def keep(self, beginning: str, says: str = "") -> None:
        """Start a command that stays, and wait until it says something."""
        said = self._folder / f"{len(list(self._folder.iterdir()))}.out"
        with said.open("w") as out:
            process = subprocess.Popen(self.command(beginning), cwd=self._folder, env=ENVIRONMENT, stdout=out, stderr=subprocess.STDOUT)
        self._stack.callback(process.wait, 60)
        self._stack.callback(process.send_signal, signal.SIGINT)
        deadline = time.monotonic() + 240
        while says not in said.read_text():
            assert process.poll() is None and time.monotonic() < deadline, said.read_text()
            time.sleep(0.1)

    def close(self) -> None:
        """Ctrl-C to all that stayed."""
        self._stack.close()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


@pytest.mark.slow
def test_one_laptop_in_two_terminals(terminal: Terminal) -> None:
    terminal.keep("dask scheduler", "Scheduler at")
    terminal.keep("python -m tensorexpr worker", "worker of")
    terminal.program("tune.py", "fleet.target")
    printed = terminal.type("python tune.py")
    assert printed.startswith("{'laptop': 1}\n") and "trial" in printed
    assert terminal.type("python -m tensorexpr db best").startswith('["matmul", 256] on llvm')


@pytest.mark.slow
def test_programs_for_trackers(terminal: Terminal, tmp_path: Path) -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    tvm.build(te.create_schedule(b.op), [a, b]).export_library(tmp_path / "lib.tar")
    terminal.keep("python -m tensorexpr rpc_tracker", "tracker at")
    terminal.keep("python -m tensorexpr rpc_server", "worker of")
    deadline = time.monotonic() + 120
    while "server:board" not in (table := terminal.type("python -m tensorexpr query_rpc_tracker")):
        assert time.monotonic() < deadline, table
    terminal.program("rpc.py", "connect_tracker")  # a file of a module's own name, as users have
    terminal.run([sys.executable, "rpc.py"])
