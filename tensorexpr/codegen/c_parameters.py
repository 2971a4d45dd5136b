"""The lines at the head of a C function that take its packed arguments apart: pointers to arrays, numbers, and variables of shapes."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass
from ..tir.buffer import Buffer
from ..tir.dtype import int_limits, parse_dtype
from ..tir.expr import IntImm, Range, Var
from ..tir.function import PrimFunc
from .c_context import CContext
from .c_types import memory_type, value_type
from .c_unused import defines
from .signature import shape_symbols


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function finds a variable of shapes: the axis of an array's "shape" or "strides"."""

    param: int
    kind: str
    axis: int


Places = tuple[Place | None, ...]
"""Of each variable of a signature's symbols; None where the function doesn't ask for it."""


class Parameters:
    """A function's parameters: their names are given before its body is written."""

    def __init__(self, ctx: CContext, func: PrimFunc, returned: str | None) -> None:
        self._ctx, self._func = ctx, func
        # The last parameter of a function that returns a number takes that.
        self._arrays = {index: func.buffer_map[var] for index, var in enumerate(func.params) if var in func.buffer_map}
        self._result = self._arrays.pop(len(func.params) - 1) if returned is not None else None
        for buffer in func.buffer_map.values():
            ctx.elements[buffer.data] = memory_type(buffer.dtype)
            ctx.bind(buffer.data, "result" if buffer is self._result else None)
        self._handles = {index: ctx.names.fresh(f"{ctx.variables[buffer.data]}_handle") for index, buffer in self._arrays.items()}
        self._scalars = {index: var for index, var in enumerate(func.params) if var not in func.buffer_map}
        self._symbols = {var: self._place(var) for var in shape_symbols(func)}
        for var in (*self._scalars.values(), *(var for var, place in self._symbols.items() if place is not None)):
            ctx.bind(var)

    @property
    def result(self) -> str:
        """The array of one element that takes the number that the function returns."""
        assert self._result is not None
        return self._ctx.variables[self._result.data]

    def places(self, lines: Sequence[str]) -> Places:
        """Where a function of these lines finds the variables of shapes."""
        names = self._ctx.variables
        return tuple(place if place is not None and defines(lines, names[var]) else None for var, place in self._symbols.items())

    def _place(self, var: Var) -> Place | None:
        """The first extent or stride that is a variable of shapes; None for one that stands in expressions alone."""
        for index, buffer in self._arrays.items():
            for kind, exprs in (("shape", buffer.shape), ("strides", buffer.strides), ("offset", (buffer.elem_offset,))):
                for axis, expr in enumerate(exprs):
                    if expr is var:
                        if kind == "shape":
                            # Half of the room: indices are exact, so what is added to an extent leaves it none the less.
                            most = IntImm(var.dtype, int_limits(var.dtype)[1] // 2)
                            self._ctx.ranges[var] = Range.from_min_extent(IntImm(var.dtype, 0), most)
                        return Place(index, kind, axis)
        return None

    def lines(self) -> list[str]:
        """The definitions, for all that a body may ask for."""
        ctx = self._ctx
        made = [f"void* {handle} = (((TVMValue*)args)[{index}].v_handle);" for index, handle in self._handles.items()]
        for index, var in self._scalars.items():
            kind = parse_dtype(var.dtype)
            field = "v_handle" if kind.code == "handle" else "v_float64" if kind.is_float else "v_int64"
            made.append(self._constant(var, f"((TVMValue*)args)[{index}].{field}"))
        made += [self._constant(var, self._found_at(place)) for var, place in self._symbols.items() if place is not None]
        restrict = "restrict " if ctx.noalias else ""
        for index, buffer in self._arrays.items():
            kind_of = ctx.elements[buffer.data]
            data = f"(((DLTensor*){self._handles[index]})[0].data)"
            made.append(f"{kind_of}* {restrict}{ctx.variables[buffer.data]} = ({kind_of}*){data};")
        if self._result is not None:
            made.append(f"{memory_type(self._result.dtype)} {self.result}[1] = {{0}};")
        return [f"  {line}" for line in made]

    def _constant(self, var: Var, value: str) -> str:
        kind = value_type(var.dtype)
        return f"{'' if var.dtype == 'handle' else 'const '}{kind} {self._ctx.variables[var]} = ({kind})({value});"

    def _found_at(self, place: Place) -> str:
        if place.kind == "offset":  # the data begins at the first element
            return "0"
        buffer, tensor = self._arrays[place.param], f"((DLTensor*){self._handles[place.param]})[0]"
        value = f"{tensor}.{place.kind}[{place.axis}]"
        if place.kind == "shape":
            return value
        compact = " * ".join(["1", *(f"{tensor}.shape[{axis}]" for axis in range(place.axis + 1, len(buffer.shape)))])
        value = f"{tensor}.strides == NULL ? {compact} : {value}"
        # Along an axis of one element.
        return f"{tensor}.shape[{place.axis}] == 1 ? 0 : {value}" if buffer.buffer_type == Buffer.AUTO_BROADCAST else value
