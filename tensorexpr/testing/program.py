"""A computation and its schedule as one Python program that checks it, to paste into a file or a shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import RecordError
from ..lower.context import PassContext
from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.dag_text import format_dag
from ..te.operation import PlaceholderOp
from ..te.serialize import dumps
from ..te.tensor import Tensor
from ..tir.expr import Var
from ..tir.rewriting import walk

_PROGRAM = """\
{comments}
from tensorexpr import te
from tensorexpr.schedule import Schedule, Trace
from tensorexpr.testing.check import assert_schedule_correct
{imports}
tensors = te.serialize.loads(
    {dag!r}
)
trace = Trace.from_json({trace})
schedule = Schedule({outputs}, trace)
{call}
"""


def check_program(
    schedule: Schedule,
    args: Sequence[Tensor],
    seed: int = 0,
    phases: Sequence[int] = (0, 1, 2, 3),
    compiled: bool = True,
    sizes: Sequence[Mapping[Any, int]] = ({},),
    emulator: bool = False,
) -> str:
    """A program that declares the computation, schedules it and calls `assert_schedule_correct`, for the current target.

    What people read (the definitions, the loops, the schedule by hand) stands in comments above the code. A computation
    that has no JSON form gives these comments alone.
    """
    # An operation may have results that are no arguments; the schedule still names it.
    unlisted = [op.output(0) for op in schedule.outputs if all(tensor.op is not op for tensor in args)]
    tensors = [*args, *unlisted]
    lines = _comments(schedule, args)
    try:
        dag = dumps(tensors)
    except RecordError as error:
        return "\n".join([*lines, f"# It has no program of its own: {error}", ""])
    ops = [tensor.op for tensor in tensors]
    places = ", ".join(f"tensors[{ops.index(op)}].op" for op in schedule.outputs)
    options = f"seed={seed}, phases={tuple(phases)}, compiled={compiled}{_sizes_text(tensors, sizes)}"
    options += ", emulator=True" if emulator else ""
    call = f"assert_schedule_correct(schedule, {f'tensors[:{len(args)}]' if unlisted else 'tensors'}, {options})"
    imports = "from tensorexpr.testing.program import symbols_of\n" if symbols_of(tensors) else ""
    target = Target.current()
    if target is not None and target != Target("llvm"):
        imports = f"from tensorexpr.target import Target\n{imports}"
        call = f"with Target({str(target)!r}):\n    {call}"
    return _PROGRAM.format(
        comments="\n".join(lines),
        imports=imports,
        dag=dag,
        trace=repr(schedule.trace.to_json()),
        outputs=f"({places},)",
        call=call,
    )


def symbols_of(tensors: Sequence[Tensor]) -> list[Var]:
    """The variables in the shapes of `tensors`, in order of first appearance."""
    nodes = (node for tensor in tensors for extent in tensor.shape for node in walk(extent))
    return list(dict.fromkeys(node for node in nodes if isinstance(node, Var)))


def _sizes_text(tensors: Sequence[Tensor], sizes: Sequence[Mapping[Any, int]]) -> str:
    """The argument `sizes`, if it is needed; variables by their place among the symbols."""
    symbols = symbols_of(tensors)
    if not symbols:
        return ""
    each = (", ".join(f"symbols_of(tensors)[{symbols.index(var)}]: {value}" for var, value in values.items()) for values in sizes)
    return f", sizes=[{', '.join(f'{{{values}}}' for values in each)}]"


def _comments(schedule: Schedule, args: Sequence[Tensor]) -> list[str]:
    results = [tensor for tensor in args if not isinstance(tensor.op, PlaceholderOp)]
    parts = [format_dag(results).rstrip(), str(schedule).rstrip(), schedule.as_python()]
    context = PassContext.current()
    settings = [
        *context.config,
        *(f"{name} left out" for name in context.disabled_pass),
        *(f"{name} required" for name in context.required_pass),
    ]
    if settings:
        parts.append(f"It ran under a PassContext with {', '.join(settings)}; call the last line under that one.")
    return [f"# {line}".rstrip() for part in parts if part for line in part.splitlines()]
