"""How long a worker stays."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from tensorexpr.fleet import serve
from tensorexpr.fleet.serve import WorkerOptions


def test_a_worker_whose_nanny_gives_up_is_started_again_as_long_as_there_is_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nanny ends when its worker takes too long to start again: where workers were killed on a busy machine, all were lost."""
    scheduler = socket.create_server(("127.0.0.1", 0))
    started: list[int] = []

    class Nanny:
        async def __aenter__(self) -> Nanny:
            started.append(len(started))
            return self

        async def __aexit__(self, *_: object) -> None:
            if len(started) == 3:
                scheduler.close()

        async def finished(self) -> None:
            """It is over at once."""

    monkeypatch.setattr(serve, "_nanny", lambda *_: Nanny())
    options = WorkerOptions(f"tcp://127.0.0.1:{scheduler.getsockname()[1]}", retry_s=0.0)
    said: dict[str, Any] = {}
    assert asyncio.run(asyncio.wait_for(serve._serve(options, "127.0.0.1", said), 60)) == 0
    assert started == [0, 1, 2]
