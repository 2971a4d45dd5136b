"""What becomes of an operator of PyTorch: a table from names of `torch.ops.aten` to functions that make operators of graphs.

    @aten("mm", "bmm", "matmul")
    def matmul(c: Context, input, mat2): return c.op("matmul", input, mat2)

A converter's parameters are those of the operator's schema, in its order; what a call leaves out has the schema's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import relax
from ...errors import TypeMismatchError
from ...relax.ops.row import ROWS
from ...tir.expr import PrimExpr

Converter = Callable[..., Any]

CONVERTERS: dict[str, Converter] = {}

_DTYPES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16"}


def aten(*names: str) -> Callable[[Converter], Converter]:
    """A decorator: the converter of operators by their names, without what stands behind a dot in PyTorch (the overload)."""

    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = converter
        return converter

    return register


def dtype_name(dtype: Any) -> str:
    """The name of a dtype of PyTorch here.

    Raises:
        TypeMismatchError: for complex, quantised and other numbers that there aren't here.
    """
    name = str(dtype).removeprefix("torch.")
    name = _DTYPES.get(name, name)
    if name not in {"bool", "bfloat16", "float16", "float32", "float64", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))}:
        remedy = (
            "pass torch.view_as_real(x), and call torch.view_as_complex in the module"
            if "complex" in name
            else "cast them to floats or integers"
        )
        raise TypeMismatchError(f"tensors of {dtype} have no counterpart; {remedy} before the graph is exported")
    return name


class Context:
    """What a converter gets beside its arguments.

    Attributes:
        builder: of the function that is made.
        result: PyTorch's description of the result, a tensor without data or several; None where it has none.
        operand: of the first argument, the same.
        picked: of an operator of several results, the numbers of those that are used.
        inlined: makes the nodes of a graph that an operator takes, for a list of operands; a list of its results.
        seed: of random numbers; None where there are none.
        turns: the numbers of the turns of the loops around, the outermost first.
    """

    def __init__(self, builder: relax.BlockBuilder, size: Callable[[Any], Any], inlined: Callable[[Any, Sequence[Any]], list[Any]]) -> None:
        self.builder = builder
        self.result: Any = None
        self.operand: Any = None
        self.picked: set[int] = set()
        self.seed: Any = None
        self.turns: list[Any] = []
        self._draws = 0
        self._size, self.inlined = size, inlined

    def drawn(self) -> int:
        """The number of one more draw of the program."""
        self._draws += 1
        return self._draws

    def op(self, name: str, *args: Any, **attrs: Any) -> Any:
        """A variable for a call of the operator `relax.<name>`.

        Raises:
            TypeMismatchError: if there is no such operator.
        """
        function: Any = relax.op
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is None or f"relax.{name}" not in ROWS:
            raise TypeMismatchError(f"there is no operator relax.{name}")
        return self.builder.emit(function(*args, **attrs))

    @property
    def sizes(self) -> list[Any]:
        """The extents of the result: integers, or expressions of symbols."""
        return self.sizes_of(self.result)

    def sizes_of(self, described: Any) -> list[Any]:
        """The extents of a tensor that PyTorch describes."""
        return [self._size(one) for one in described.shape]

    @property
    def dtype(self) -> str:
        """Of the result's elements."""
        return dtype_name(self.result.dtype)

    def dtype_of(self, value: Any) -> str:
        """Of a tensor's elements."""
        return str(value.struct_info.dtype)

    def shape_of(self, value: Any) -> list[Any]:
        """The extents of a tensor: integers, or expressions of symbols."""
        extents = value.struct_info.extents
        if extents is None:
            raise TypeMismatchError(f"the shape of {value} isn't known: {value.struct_info}")
        return [plain(one) for one in extents]

    def rank(self, value: Any) -> int:
        """How many axes a tensor has."""
        return int(value.struct_info.ndim)

    def axis(self, value: Any, axis: int) -> int:
        """An axis of a tensor, counted from the front."""
        return axis % max(1, self.rank(value))

    def cast(self, value: Any, dtype: str) -> Any:
        """A tensor with elements of a dtype; a number as a constant of it, and a size that only a run knows as a tensor."""
        if isinstance(value, PrimExpr):
            value = self.op("squeeze", self.op("shape_to_tensor", relax.ShapeExpr((value,))))
        if not isinstance(value, relax.Expr):
            return relax.const(value, dtype)
        return value if self.dtype_of(value) == dtype else self.op("astype", value, dtype=dtype)

    def reshape(self, value: Any, shape: Sequence[Any]) -> Any:
        """The same elements under another shape."""
        return self.op("reshape", value, relax.ShapeExpr(tuple(shape)))


def plain(value: Any) -> Any:
    """An integer for a constant of the index algebra; other expressions are themselves."""
    number = getattr(value, "value", None)
    return number if isinstance(value, PrimExpr) and isinstance(number, int) else value


def bound(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """All arguments of a call in the order of the operator's schema, with its defaults for those left out."""
    found: list[Any] = []
    for place, one in enumerate(target._schema.arguments):
        if place < len(args):
            found.append(args[place])
        elif one.name in kwargs:
            found.append(kwargs[one.name])
        else:
            found.append(one.default_value if one.has_default_value() else None)
    return found
