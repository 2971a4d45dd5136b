"""When two schedules are the same program: all that lowering and code generation look at, as one text.

That is the computation, the steps, the arguments, the options of the PassContext, the targets, and the sources of this
library. Where one of them can't be written down whole (a user's pass, an instrument, an intrinsic that the user declared,
a buffer or variable among the arguments) there is no text, and the program is lowered.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import config
from ..errors import RecordError
from ..lower.context import PassContext, argument_list
from ..target import Target
from ..tir.function import IRModule, PrimFunc

if TYPE_CHECKING:
    from ..schedule.te_schedule import Schedule

# Steps that stand for more than their fields say: an intrinsic is what a user declared under its name.
_OPEN_STEPS = ("tensorize",)
# A file changed so shortly before the library was loaded may have been changed while it was.
_SETTLED_SECONDS = 2.0
_ROOT = Path(__file__).parents[1]


def program_key(inputs: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None, target: Target) -> bytes | None:
    """What `build` of these arguments depends on, up to the optimisation level; None if it can't be told.

    Functions and modules of the loop IR have no key: they are lowered already, or nearly.
    """
    if isinstance(inputs, (IRModule, PrimFunc)) or binds or not _is_usual():
        return None
    program = _described(inputs, argument_list(args))
    return None if program is None else key_of("program", {"name": name, **program}, target)


def _is_usual() -> bool:
    """True if nobody watches or changes how programs are made, and what is made may be kept."""
    # Instruments must see every pass run; a pass that is added may do anything.
    ctx = PassContext.current()
    observed = ctx.instruments or ctx.config.get("tir.add_lower_pass") or os.environ.get("TENSOREXPR_VERIFY")
    return config.cache_enabled() and not observed


def key_of(kind: str, program: Mapping[str, Any], target: Target) -> bytes | None:
    """What a program depends on that is described as JSON values: these, options, targets and sources; None if it can't be told."""
    # Sources too: another state of the passes may lower the same program otherwise.
    ctx, sources = PassContext.current(), _source_digest()
    if sources is None or not _is_usual():
        return None
    options = {
        "opt_level": ctx.opt_level,
        "required": ctx.required_pass,
        "disabled": ctx.disabled_pass,
        "config": {
            key: repr(value) for key, value in sorted(ctx.config.items()) if not key.startswith(("relax.build.", "relay."))
        },  # who builds, not what; and what was asked of graphs before there were programs
    }
    # Passes may ask for the current target as well as for the one that is built for.
    targets = [_machine(target), _machine(Target.current())]
    described = {"sources": sources, "options": options, "targets": targets, **program}
    return f"{kind}\n".encode() + json.dumps(described, separators=(",", ":")).encode()


def _machine(target: Target | None) -> Any:
    """All that is asked of a target while a program is made."""
    if target is None:
        return None
    return [target.resolved().export(), target.feature_string, target.vector_bits, target.vector_registers]


def _described(inputs: Any, args: Sequence[Any]) -> dict[str, Any] | None:
    """A schedule and its arguments as JSON; None if they have no such form."""
    # With functions and modules, tensor expressions and schedules aren't loaded.
    from ..schedule.te_schedule import Schedule
    from ..te.dag import post_dfs_order
    from ..te.operation import PlaceholderOp
    from ..te.serialize import dag_to_json
    from ..te.tensor import Tensor

    if not isinstance(inputs, Schedule):
        return None
    ops = post_dfs_order(list(inputs.outputs))
    if any(isinstance(op, PlaceholderOp) and (op.tag or op.attrs) for op in ops):
        # A placeholder's tags and attributes may be anything, also what JSON can't tell apart.
        return None
    # Variables and buffers as arguments aren't described.
    if not all(isinstance(arg, Tensor) and arg.op in ops for arg in args):
        return None
    steps = _steps(inputs)
    if steps is None:
        return None
    try:
        return {"dag": dag_to_json([*(op.output(0) for op in inputs.outputs), *args]), "outputs": len(inputs.outputs), "steps": steps}
    except (RecordError, RecursionError):
        return None


def _steps(schedule: Schedule) -> list[Any] | None:
    if any(step.code in _OPEN_STEPS for step in schedule.trace):
        return None
    return schedule.trace.to_json()


@lru_cache(maxsize=1)
def _source_digest() -> str | None:
    """Which state of the sources runs here, by all that a change of a file changes; None if that isn't sure.

    The time of the last change of a file's status can't be set back, as that of its content can.
    """
    lines, newest = [], 0
    try:
        for path in _source_files(os.fspath(_ROOT)):
            status = os.stat(path)
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
            lines.append(f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}")
    except OSError:
        return None
    # Files that are newer than the import may not be those that run.
    if not lines or newest / 1e9 > config.LOADED_AT - _SETTLED_SECONDS:
        return None
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _source_files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _source_files(entry.path)
