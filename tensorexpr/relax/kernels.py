"""Kernels of a graph in machine code, and its constant weights in the layouts in which their loops read them.

    main: R.call_tir(cls.fused_matmul_add, (x, w, b), ...)        ->        R.call_tir(cls.fused_matmul_add, (x, w packed, b), ...)

A weight that is a constant in every call is packed when the graph is built: no kernel packs it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arith.index_map import IndexMap
from ..arith.index_map_graph import index_map_from_json
from ..dataclass import dataclass
from ..errors import DeclarationError, RecordError
from ..runtime import sidecar
from ..runtime.code import CompiledCode
from ..runtime.ndarray import NDArray, empty, wrapped
from ..target import Target
from ..tir.arithmetic import as_int
from ..tir.function import GlobalVar, IRModule, PrimFunc
from .expr import Call, Constant, Function, Tuple
from .kernel_tasks import recorded_program, weights_of
from .tensor_function import plain_tensors
from .visitor import Mutator, walk

if TYPE_CHECKING:
    from ..schedule.trace import Trace


_CALLS = ("relax.call_tir", "relax.call_tir_inplace")


@dataclass(frozen=True)
class Wanted:
    """A kernel that is to be built.

    Args:
        symbol: its name in machine code.
        func: the tensor function.
        constants: arguments that may be passed in any layout.
        computation: the function's tensors as JSON; None if they have no such form, and only this process can build it.
        recorded: the program that records have for it, if they do.
    """

    symbol: str
    func: PrimFunc
    constants: tuple[int, ...]
    computation: Any = None
    recorded: Trace | None = None


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel in machine code.

    Args:
        symbol: its name there.
        code: of it alone.
        origin: where its schedule comes from.
        layouts: for each argument that is passed packed, where its elements are.
    """

    symbol: str
    code: CompiledCode
    origin: str
    layouts: Mapping[int, IndexMap]

    def to_parts(self) -> tuple[dict[str, Any], tuple[bytes, bytes]]:
        """All of it as JSON values and bytes, but for the target."""
        said = {
            "functions": sidecar.signatures_to_json(self.code.signatures),
            "level": self.code.opt_level,
            "origin": self.origin,
            "layouts": {str(n): one.to_json() for n, one in self.layouts.items()},
            "timings": self.code.timings,
        }
        return said, (self.code.text.encode(), self.code.data)

    @staticmethod
    def of_parts(symbol: str, target: Target, said: Mapping[str, Any], blobs: Sequence[bytes]) -> BuiltKernel:
        """What `to_parts` wrote.

        Raises:
            KeyError, TypeError, ValueError, TensorExprError: for anything else.
        """
        signatures = sidecar.signatures_from_json(said["functions"])
        # From a file or a pipe: it may be anything.
        if list(signatures) != [symbol]:
            raise RecordError(f"the code of {symbol} has the functions {', '.join(signatures)}")
        layouts = {int(n): index_map_from_json(text) for n, text in said["layouts"].items()}
        code = CompiledCode(blobs[0].decode(), blobs[1], signatures, target, said["level"])
        return BuiltKernel(symbol, code, str(said["origin"]), layouts)


def recorded_of(func: PrimFunc, constants: Sequence[int], target: Target) -> Trace | None:
    """The program that records in scope have for a tensor function; None without one."""
    if func.attrs.get("tir.is_scheduled"):
        return None
    try:
        tensors = plain_tensors(func)
        return recorded_program(tensors, weights_of(tensors, constants), target)
    except DeclarationError:  # loops that somebody wrote
        return None


class Packing:
    """Constants in the layouts in which kernels want them, in two steps, so that a network's weights aren't there twice.

        packing = Packing(layouts)
        mod = packing.placed(mod)      calls pass constants in these layouts, which have no elements yet
        packing.fill()                 one by one: what was given is let go of when it is packed

    Args:
        layouts: by the kernels' names and arguments.
    """

    def __init__(self, layouts: Mapping[str, Mapping[int, IndexMap]]) -> None:
        self._layouts = {name: wanted for name, wanted in layouts.items() if wanted}
        self._waiting: list[_Packed] = []

    def placed(self, mod: IRModule) -> IRModule:
        """A module whose constants get their elements by `fill`."""
        packer, made = _Packer(self._layouts, self._waiting), mod.clone()
        functions: list[tuple[GlobalVar, Any]] = list(mod.functions_items())
        for var, func in functions:
            if isinstance(func, Function):
                made.update_func(var, packer.function(func))  # type: ignore[arg-type]
        return made

    def fill(self) -> None:
        """Pack what `placed` has found."""
        # The largest ones last in the list, and first out: where one was, the next one has room.
        self._waiting.sort(key=lambda one: one.given.nbytes)
        while self._waiting:
            self._waiting.pop().fill()


@dataclass(frozen=True)
class _Packed:
    """A constant that is to be packed: its elements, their layout, the extents of this, and the array that gets them."""

    given: Any
    layout: IndexMap
    extents: list[int]
    place: NDArray

    def fill(self) -> None:
        packed = empty(self.extents, self.place.dtype)._array
        # A layout of blocks has room behind the last element: 20 columns by 16 take 32.
        if packed.size > self.given.size:
            packed[...] = 0
        self.layout.map_ndarray(self.given, self.extents, packed)
        self.place._array = packed


def constant_arguments(mod: IRModule) -> dict[str, tuple[int, ...]]:
    """For each private tensor function the arguments that are constants in all of its calls; what is reached otherwise has none."""
    functions: list[tuple[GlobalVar, Any]] = list(mod.functions_items())
    found: dict[str, set[int]] = {v.name_hint: set() for v, f in functions if isinstance(f, PrimFunc) and "global_symbol" in f.attrs}
    for _, func in functions:
        nodes = walk(func.body) if isinstance(func, Function) else ()
        for node in (one for one in nodes if isinstance(one, Call)):
            operands: tuple[Any, ...] = (node.op, *node.args)
            callees = [arg.name_hint for arg in operands if isinstance(arg, GlobalVar)]
            if node.op in _CALLS and callees and isinstance(node.args[1], Tuple):
                here = {n for n, arg in enumerate(node.args[1].fields) if isinstance(arg, Constant)}
                # Constants in all calls so far: one call that passes a variable there takes an argument out.
                found[callees[0]] = found.get(callees[0], here) & here
            else:
                found.update({name: set() for name in callees})
    return {name: tuple(sorted(places)) for name, places in found.items()}


class _Packer(Mutator):
    """Calls of kernels with packed constants, whose elements are a list of what is to be done."""

    def __init__(self, layouts: Mapping[str, Mapping[int, IndexMap]], waiting: list[_Packed]) -> None:
        super().__init__()
        self._layouts, self._waiting = layouts, waiting
        self._made: dict[tuple[int, str], tuple[Constant, Constant]] = {}
        self._extents: dict[tuple[str, tuple[int, ...]], list[int]] = {}  # layers alike have weights alike

    def rewrite(self, expr: Any) -> Any:
        """A call with the constants that its kernel wants packed."""
        if not isinstance(expr, Call) or expr.op not in _CALLS or not isinstance(expr.args[0], GlobalVar):
            return expr
        layouts = self._layouts.get(expr.args[0].name_hint)
        if not layouts:
            return expr
        fields = tuple(self._packed(arg, layouts[n]) if n in layouts else arg for n, arg in enumerate(expr.args[1].fields))
        return Call(expr.op, (expr.args[0], Tuple(fields), *expr.args[2:]), expr.attrs, expr.sinfo_args)

    def _packed(self, constant: Constant, layout: IndexMap) -> Constant:
        key = id(constant), str(layout)
        if key not in self._made:
            given = constant.data._array
            alike = str(layout), given.shape
            if alike not in self._extents:
                self._extents[alike] = [as_int(extent) or 0 for extent in layout.map_shape(given.shape)]
            # One element stands for all until there are others.
            place = wrapped(np.broadcast_to(np.zeros((), given.dtype), self._extents[alike]), constant.data.dtype)
            self._waiting.append(_Packed(given, layout, self._extents[alike], place))
            # With the given constant, which keeps its id.
            self._made[key] = constant, Constant(place)
        return self._made[key][1]
