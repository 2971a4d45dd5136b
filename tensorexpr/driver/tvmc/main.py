"""The command by tvmc's names: `_main(["compile", "net.onnx"])` returns the exit code, `main()` ends the process with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..cli import main as run
from .command import REGISTERED_PARSER, register_parser


def _main(argv: Sequence[str]) -> int:
    """Run a subcommand; see `tensorexpr.driver.cli.main`."""
    return run(argv)


def main() -> None:
    """Run the subcommand of the process's arguments, and end the process.

    Raises:
        SystemExit: always, with the exit code.
    """
    sys.exit(_main(sys.argv[1:]))


__all__ = ["REGISTERED_PARSER", "main", "register_parser"]

if __name__ == "__main__":
    main()
