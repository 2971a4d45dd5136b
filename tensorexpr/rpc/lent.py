"""The process behind a device that a fleet lends: `python -m tensorexpr.rpc.lent`. It does what a server does for a session."""

from __future__ import annotations

import sys

from ..tune.measure.child import connect, parse_arguments, serve
from ..tune.measure.protocol import Frame
from .commands import Commands
from .links import pieces_of


def main() -> int:
    """Serve until the worker closes the pipe."""
    channel, commands = connect(parse_arguments()), Commands()

    def answer(frame: Frame) -> Frame:
        head, body = commands.run(dict(frame.header["head"]), b"".join(frame.blobs))
        return Frame({"type": "done", "head": head}, pieces_of(body))

    serve(channel, {"task": lambda _: Frame({"type": "ready"}), "do": answer, "timed": answer})
    return 0


if __name__ == "__main__":
    sys.exit(main())
