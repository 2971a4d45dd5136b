"""The worker that turns traces into object code: `python -m tensorexpr.tune.measure.compile_worker`.

A "task" frame holds what all candidates share; the plug (by default `compiling.make_compiler`) makes a compiler of it.
Each "compile" frame holds a trace, and a DAG if it has one of its own; the answer is "compiled" with the bytes of an object file, or
"failed".
"""

from __future__ import annotations

import sys

from ...errors import LoweringError, RecordError, ScheduleError
from .child import connect, failure, parse_arguments, serve
from .compiled import Compiler, CompilerOfOthers, MakeCompiler, load_plug
from .errors import MeasureErrorNo
from .protocol import Frame


class CompileService:
    """Compiles the candidates of one task."""

    def __init__(self, make_compiler: MakeCompiler) -> None:
        self._make_compiler = make_compiler
        self._compiler: Compiler | None = None

    def task(self, frame: Frame) -> Frame:
        """Take the task, and get all that is slow the first time out of the way."""
        self._compiler = self._make_compiler(frame.header["task"])
        return Frame({"type": "ready"})

    def compile(self, frame: Frame) -> Frame:
        """Compile one candidate."""
        try:
            made = self._compiler_of(frame)(frame.header["trace"], frame.header["opt_level"])
        except (ScheduleError, LoweringError, RecordError) as error:
            return failure(error, MeasureErrorNo.INSTANTIATION_ERROR.name)
        except Exception as error:
            return failure(error, MeasureErrorNo.COMPILE_HOST.name)
        return Frame({"type": "compiled", **made.header()}, (made.object_code,))

    def _compiler_of(self, frame: Frame) -> Compiler:
        """The task's compiler, or that of the frame's own computation."""
        assert self._compiler is not None
        if "dag" not in frame.header:
            return self._compiler
        if not isinstance(self._compiler, CompilerOfOthers):
            raise LoweringError("this compiler only compiles the task's computation, and the candidate has another one")
        return self._compiler.of(frame.header["dag"])


def main() -> int:
    """Serve until the tuner closes the pipe."""
    options = parse_arguments()
    channel = connect(options)
    service = CompileService(load_plug(options.plug))
    serve(channel, {"task": service.task, "compile": service.compile})
    return 0


if __name__ == "__main__":
    sys.exit(main())
