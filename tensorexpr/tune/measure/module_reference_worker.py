"""The worker that makes input arrays and the results to expect of a program, by running it as it was written.

`python -m tensorexpr.tune.measure.module_reference_worker`. Small programs are interpreted, larger ones that compute tensors evaluated
with NumPy: neither knows anything of schedules, lowering or code generation. Only what is both large and no computation of tensors
is compiled, without any schedule. What it finds goes into files.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import DeclarationError, TensorExprError
from ...log import once
from ...runtime.build import build
from ...target import Target
from ...te.declare import placeholder
from ...te.from_prim_func import tensors_of
from ...te.operation import PlaceholderOp
from ...te.reference import evaluate
from ...te.tensor import Tensor
from ...te.tolerance import EPSILON, Tolerance, term_magnitude, tolerance
from ...tir.analysis import estimate_tir_flops
from ...tir.block import Block
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr
from ...tir.function import IRModule, PrimFunc
from ...tir.interpreter import interpret
from ...tir.rewriting import walk
from ...tir.serialize.module_graph import module_from_graph
from .arg_info import ArgInfo, TensorInfo, entry_func, shapes_of
from .arrays import Array, StoredArray, is_finite, save_array
from .child import connect, parse_arguments, serve
from .inputs import RANGES, random_inputs
from .outputs import outputs_of, written_by
from .protocol import Frame

logger = logging.getLogger(__name__)
_INTERPRETED_OPERATIONS = 20_000  # about a second
# What outputs hold before the program runs: NaN where they are floats of 32 or 64 bits.
_FILL = 0xFF


class ReferenceService:
    """Makes the arrays of one program."""

    def __init__(self) -> None:
        self._answer: Frame | None = None

    def task(self, frame: Frame) -> Frame:
        """Take the program and make the arrays; that is done before the worker says it is ready."""
        header = frame.header
        self._answer = _arrays(header, Path(header["folder"]), int(header["seed"]))
        return Frame({"type": "ready"})

    def arrays(self, frame: Frame) -> Frame:
        """The description of the arrays."""
        assert self._answer is not None
        return self._answer


@dataclass(frozen=True)
class _Program:
    """A program with its arguments: where outputs are, and what they may differ by."""

    func: PrimFunc
    target: Target
    infos: Sequence[TensorInfo]
    names: Sequence[str]
    outputs: frozenset[int]

    def run(self, arrays: Sequence[Array]) -> None:
        """Run it as it was written. What can be said without our own compiler is: it may be wrong as well."""
        if estimate_tir_flops(self.func) <= _INTERPRETED_OPERATIONS:
            interpret(self.func, list(arrays))
            return
        try:
            tensors = tensors_of(self.func)
        except DeclarationError as error:
            once(logger, f"programs are compared with the unscheduled one as it is compiled: {str(error)[:200]}")
            build(IRModule({"main": self.func}), target=self.target)["main"](*arrays)
            return
        inputs = {tensor: array for tensor, array in zip(tensors, arrays, strict=True) if isinstance(tensor.op, PlaceholderOp)}
        computed = [(tensor, array) for tensor, array in zip(tensors, arrays, strict=True) if tensor not in inputs]
        with np.errstate(all="ignore"):
            for (_, array), expected in zip(computed, evaluate([tensor for tensor, _ in computed], inputs), strict=True):
                array[...] = expected


def _arrays(header: Mapping[str, Any], folder: Path, seed: int) -> Frame:
    if header["module"] is None:
        infos = shapes_of([ArgInfo.from_json(item) for item in header["args_info"]])
        found = _inputs(infos, seed, 0)
        outputs = set(header["outputs"])
        files = ["" if n in outputs else _saved(folder, n, found[n]) for n in range(len(infos))]
        stored = [StoredArray(f"arg{n}", i.dtype, i.shape, n in outputs, files[n]) for n, i in enumerate(infos)]
        return _described(stored, "")
    program = _program(header)
    arrays, reason = _evaluated(program, seed) if header["verify"] else (_inputs(program.infos, seed, 0), "")
    stored = []
    for number, info in enumerate(program.infos):
        is_output, verified = number in program.outputs, not reason and header["verify"]
        # without results to compare with an output needs no file: it is written before it is read
        file = _saved(folder, number, arrays[number]) if not is_output or verified else ""
        allowed = _tolerance(program.func, info.dtype, arrays[number]) if file and is_output else Tolerance(0.0, 0.0)
        stored.append(StoredArray(program.names[number], info.dtype, info.shape, is_output, file, allowed.rtol, allowed.atol))
    return _described(stored, reason)


def _described(stored: Sequence[StoredArray], reason: str) -> Frame:
    return Frame({"type": "arrays", "arrays": [array.to_json() for array in stored], "reason": reason})


def _saved(folder: Path, number: int, array: Array) -> str:
    file = f"argument{number}.bin"
    save_array(folder / file, array)
    return file


def _program(header: Mapping[str, Any]) -> _Program:
    func = entry_func(module_from_graph(header["module"]))
    names = [func.buffer_map[param].name for param in func.params]
    infos = shapes_of(ArgInfo.from_prim_func(func))
    return _Program(func, Target(header["target"]), infos, names, frozenset(outputs_of(func)))


def _inputs(infos: Sequence[TensorInfo], seed: int, values: int) -> list[Array]:
    tensors = [placeholder(info.shape, info.dtype, f"arg{number}") for number, info in enumerate(infos)]
    found: Mapping[Tensor, Array] = random_inputs(tensors, {}, seed, RANGES[values])
    return [found[tensor] for tensor in tensors]


def _evaluated(program: _Program, seed: int) -> tuple[list[Array], str]:
    """Inputs and results, and why the results are none to compare with; "" if they are."""
    unset = _read_first(program.func)
    if unset:
        return _inputs(program.infos, seed, 0), f"it reads what {unset} holds before it writes it"
    # each range suits more programs than the one before, see there; finite results are the first that tell anything
    for values in range(len(RANGES)):
        try:
            found = _results(program, seed, values)
        except TensorExprError as error:
            return _inputs(program.infos, seed, 0), f"the program as it was written doesn't run: {str(error)[:200]}"
        if all(is_finite(found[n]) for n in program.outputs):
            return found, ""
    return _inputs(program.infos, seed, 0), "its results are not finite"


def _read_first(func: PrimFunc) -> str:
    """The name of a parameter that the program writes, but reads before; empty if there is none."""
    pointers = {buffer.data for buffer in func.buffer_map.values()}
    written: set[Any] = set()
    everything = {buffer.data for node in walk(func.body) for buffer in written_by(node)}
    for node in walk(func.body):
        # a block around others names their accesses once more, in no order
        if isinstance(node, Block) and not any(isinstance(inner, Block) for inner in walk(node.body)):
            own = {region.buffer.data for region in node.writes}
            reads = {inner.buffer for inner in walk(node.body) if isinstance(inner, BufferLoad)}
            for buffer in reads:
                # a reduction reads what it writes; its init writes first
                started = buffer.data in written or (buffer.data in own and node.init is not None)
                if buffer.data in pointers & everything and not started:
                    return buffer.name
            written |= own
    return ""


def _results(program: _Program, seed: int, values: int) -> list[Array]:
    """All arguments after a run on outputs that held nothing of meaning."""
    arrays = _inputs(program.infos, seed, values)
    for number in program.outputs:
        # a byte of 0xFF is no bool: compilers and NumPy may take it for anything
        if arrays[number].dtype == np.bool_:
            arrays[number].view(np.uint8)[...] = True
        else:
            # flat first: an array without dimensions can't be seen as bytes
            arrays[number].reshape(-1).view(np.uint8)[:] = _FILL
    program.run(arrays)
    return arrays


def _tolerance(func: PrimFunc, dtype: str, expected: Array) -> Tolerance:
    """How much another order of computing may differ, by the coarsest dtype that takes part."""
    dtypes = {str(parse_dtype(node.dtype).scalar) for node in walk(func.body) if isinstance(node, PrimExpr)}
    coarsest = max({dtype, *(found for found in dtypes if found in EPSILON)}, key=lambda name: EPSILON.get(name, 0.0))
    if not parse_dtype(dtype).is_float:
        return Tolerance(0.0, 1.0 if parse_dtype(dtype).is_int and coarsest in EPSILON else 0.0)
    length = _reduction_length(func)
    return tolerance(coarsest, length, term_magnitude(expected, length))


def _reduction_length(func: PrimFunc) -> int:
    """The longest chain of additions: at most the reductions of all blocks, one after the other."""
    length = 1
    for node in walk(func.body):
        if isinstance(node, Block):
            extents = [a.dom.extent for a in node.iter_vars if a.iter_type == IterVar.COMM_REDUCE and a.dom is not None]
            length += prod(extent.value for extent in extents if isinstance(extent, IntImm)) if extents else 0
    return length


def main() -> int:
    """Serve until the tuner closes the pipe."""
    channel = connect(parse_arguments())
    service = ReferenceService()
    serve(channel, {"task": service.task, "arrays": service.arrays})
    return 0


if __name__ == "__main__":
    sys.exit(main())
