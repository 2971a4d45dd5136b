"""The node that is imported, as the functions of operators see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ... import relax
from ...dataclass import dataclass, field
from ...errors import ModelError, NeedsValueError
from ...relax.evaluator import Evaluator
from ...relax.ops.row import row_of
from ...relax.struct_info import ShapeExpr
from ...tir.arithmetic import as_int
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import IRModule
from .values import LARGEST_KNOWN, Known, Value, expression_of


class Inputs(Sequence[Any]):
    """The operands of a node as expressions; None for one that is left out, also behind the last."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __len__(self) -> int:
        return len(self._context.values)

    def __getitem__(self, index: Any) -> Any:
        values = self._context.values
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(values)))]
        value = values[index] if -len(values) <= index < len(values) else None
        return None if value is None else self._context.expression(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))


@dataclass(eq=False)
class Context:
    """A node, the builder, and what is known around.

    Args:
        builder: where values are emitted.
        opset: of the node's domain.
        node: its NodeProto.
        where: the node, for messages.
        values: its operands; None for those that are left out.
        importer: imports graphs inside of attributes; see `importer.GraphImporter`.
    """

    builder: Any
    opset: int
    node: Any
    where: str
    values: list[Value | None]
    importer: Any = None
    _folded: bool = field(default=True)

    def fail(self, message: str) -> NoReturn:
        """Raise a ModelError that names the node."""
        raise ModelError(f"{self.where}: {message}")

    def wants(self, index: int) -> bool:
        """Whether the node has a result of this number, which something may use."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def value(self, index: int) -> Value | None:
        """An operand with all that is known of it; None if it is left out."""
        return self.values[index] if index < len(self.values) else None

    def has(self, index: int) -> bool:
        """Whether an operand is there."""
        return self.value(index) is not None

    def info(self, index: int) -> relax.TensorStructInfo:
        """What is known of an operand that is a tensor.

        Raises:
            ModelError: if it is none, or left out.
        """
        value = self.value(index)
        info = None if value is None else value.info
        if not isinstance(info, relax.TensorStructInfo):
            self.fail(f"operand {index} has to be a tensor, and is {'left out' if info is None else info}")
        return info

    def is_ranked(self, index: int) -> bool:
        """Whether an operand is a tensor whose extents are known or have symbols; strings are none."""
        value = self.value(index)
        return value is not None and getattr(value.info, "extents", None) is not None

    def rank(self, index: int) -> int:
        """The dimensions of an operand.

        Raises:
            ModelError: if they aren't known.
        """
        found = self.info(index).ndim
        if found < 0:
            self.fail(f"how many dimensions operand {index} has isn't known")
        return found

    def axis(self, stated: int, index: int = 0, rank: int | None = None) -> int:
        """An axis of an operand, or of a tensor of `rank` axes, counted from the front.

        Raises:
            ModelError: if there is no such axis.
        """
        count = self.rank(index) if rank is None else rank
        if not -count <= stated < count:
            self.fail(f"axis {stated} of a tensor of {count} axes")
        return stated + count if stated < 0 else stated

    def dtype(self, index: int) -> str:
        """The dtype of an operand."""
        value = self.value(index)
        return value.element if value is not None and value.element else self.info(index).dtype

    def extents(self, index: int) -> list[Any]:
        """The shape of an operand: integers, and expressions of symbols; symbols of its own where nothing is known of it.

        Raises:
            ModelError: if not even its rank is known.
        """
        info = self.info(index)
        if info.extents is None:
            value = self.value(index)
            assert value is not None
            shape = tuple(self.symbol(f"d{n}") for n in range(self.rank(index)))
            value.expr = self.builder.match_cast(self.expression(value), relax.TensorStructInfo(shape, info.dtype))
            info = value.info
        return [one if number is None else number for one, number in ((one, as_int(one)) for one in info.extents or ())]

    def symbol(self, name: str) -> Symbol:
        """A new symbol, whose value is found when the graph runs."""
        return Symbol(self.builder.get_unique_name(name), "int64")

    # What has to be known.

    def known(self, index: int) -> Known | None:
        """The numbers or expressions that an operand is, or None."""
        value = self.value(index)
        if value is None:
            return None
        if value.known is None and isinstance(value.expr, relax.Constant):
            array = value.expr.data.numpy()
            return Known(array, str(value.expr.data.dtype))
        return value.known

    def constant(self, index: int) -> Any:
        """An operand as an array of NumPy.

        Raises:
            NeedsValueError: if it isn't known.
        """
        found = self.known(index)
        if found is None or not found.is_constant:
            self.needs(index)
        return found.values

    def is_constant(self, index: int) -> bool:
        """Whether an operand is known in numbers."""
        found = self.known(index)
        return found is not None and found.is_constant

    def is_computed(self, index: int) -> bool:
        """Whether an operand is so many numbers that are known when the graph runs alone, and no input of the model says them."""
        value = self.value(index)
        if value is None or value.roots or self.known(index) is not None:
            return False
        extents = getattr(value.info, "extents", None)
        return extents is not None and len(extents) == 1 and as_int(extents[0]) is not None

    def ints(self, index: int) -> list[int]:
        """An operand as a list of integers.

        Raises:
            NeedsValueError: if it isn't known.
        """
        return [int(one) for one in np.asarray(self.constant(index)).ravel()]

    def number(self, index: int) -> Any:
        """An operand that is one element, of whatever rank.

        Raises:
            NeedsValueError: if it isn't known.
            ModelError: if it has more elements, or none.
        """
        found = np.asarray(self.constant(index))
        if found.size != 1:
            self.fail(f"operand {index} has to be one number, and has the shape {list(found.shape)}")
        return found.item()

    def integer(self, index: int) -> int:
        """An operand that is an integer; errors as of `number`."""
        return int(self.number(index))

    def shape(self, index: int) -> list[Any]:
        """An operand as a list of integers and expressions. What is computed when the graph runs gets symbols.

        Raises:
            NeedsValueError: if inputs of the model say it, whose values aren't known.
            ModelError: if it isn't even known how many there are.
        """
        found = self.known(index)
        if found is not None:
            return list(np.ravel(found.values).tolist())
        value, info = self.value(index), self.info(index)
        if value is None or value.roots or info.extents is None or as_int(info.extents[0] if info.extents else 1) is None:
            self.needs(index)
        count = as_int(info.extents[0]) if info.extents else 1
        flat = relax.op.reshape(self.expression(value), (count,)) if not info.extents else self.expression(value)
        symbols = self.measured(flat, count or 0)
        # Remembered: others that read this operand get the same symbols, so that their shapes agree.
        value.known = Known(_objects(symbols).reshape(() if not info.extents else (count,)), info.dtype)
        return list(symbols)

    def measured(self, numbers: Any, count: int) -> list[Symbol]:
        """Symbols for the numbers of a tensor of int64 with one axis, which get their values when the graph runs."""
        symbols = [self.symbol("n") for _ in range(count)]
        self.builder.match_cast(self.emit(relax.op.tensor_to_shape(numbers)), relax.ShapeStructInfo(tuple(symbols)))
        return symbols

    def needs(self, index: int) -> NoReturn:
        """Raise NeedsValueError for an operand."""
        value = self.value(index)
        roots = tuple(sorted(value.roots)) if value is not None else ()
        name = self.node.input[index] if index < len(self.node.input) else ""
        if not roots:
            raise NeedsValueError(
                f"{self.where}: operand {index} ({name!r}) has to be known at import, and is computed when the graph runs"
            )
        shown = ", ".join(f"{one!r}: array" for one in roots)
        raise NeedsValueError(
            f"{self.where}: operand {index} ({name!r}) has to be known at import, and depends on inputs of the model: "
            f"state them by values={{{shown}}}",
            roots,
        )

    # What is emitted.

    def expression(self, value: Value) -> Any:
        """The expression of a value, which is made where only its elements are known."""
        if value.expr is None:
            assert value.known is not None
            # Kept, so that all users share the variable; scopes inside have values of their own.
            value.expr = self.tensor_of(value.known)
        return value.expr

    def tensor_of(self, found: Known) -> Any:
        """A tensor of what is known."""
        if found.is_constant:
            return relax.const(found.values)
        flat = ShapeExpr(tuple(expression_of(one) for one in found.values.ravel().tolist()))
        made = self.emit(relax.op.shape_to_tensor(flat))
        made = made if len(found.shape) == 1 else self.emit(relax.op.reshape(made, found.shape))
        return made if found.dtype == "int64" else self.emit(relax.op.astype(made, found.dtype))

    def emit(self, expr: Any, hint: str = "") -> Any:
        """A variable for an expression, whose operands may be calls; small ones of constants are computed."""
        settled = self._settled(expr)
        if isinstance(settled, (relax.Var, relax.Constant)):
            return settled
        return self.builder.emit(settled, hint)

    def emit_te(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A variable for what a function on tensors (`te`) computes of operands; see `BlockBuilder.emit_te`."""
        return self.builder.emit_te(function, *args, **kwargs)

    def _settled(self, expr: Any) -> Any:
        if isinstance(expr, relax.Tuple):
            return relax.Tuple(tuple(self._leaf(one) for one in expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._leaf(expr.tuple_value), expr.index)
        if not isinstance(expr, relax.Call):
            return expr
        args = tuple(self._leaf(one) for one in expr.args)
        if any(a is not b for a, b in zip(args, expr.args, strict=True)):
            expr = relax.Call(expr.op, args, expr.attrs, expr.sinfo_args)
        return _evaluated(expr) if all(map(_is_constant, args)) else expr

    def _leaf(self, expr: Any) -> Any:
        return self.emit(expr) if isinstance(expr, (relax.Call, relax.If, relax.TupleGetItem)) else self._settled(expr)


def _objects(items: Sequence[PrimExpr]) -> Any:
    made = np.empty(len(items), dtype=object)
    made[:] = list(items)
    return made


def _is_constant(expr: Any) -> bool:
    """Whether an argument is known, and small."""
    match expr:
        case relax.Constant():
            return int(np.prod(expr.data.shape)) <= LARGEST_KNOWN
        case relax.Tuple(fields):
            return all(map(_is_constant, fields))
        case ShapeExpr(values):
            return all(as_int(one) is not None for one in values)
        case relax.PrimValue(value):
            return not isinstance(value, Symbol)
    return isinstance(expr, relax.StringImm)


def _evaluated(call: Any) -> Any:
    """A constant in place of a call of constants that has a small result."""
    row, info = row_of(call), call.struct_info
    if row is None or row.numpy is None or not row.is_pure or not isinstance(info, relax.TensorStructInfo):
        return call
    # Weights of integers stay what they are, however few: as floats their layer would have no integer kernel.
    if row.name == "dequantize" and info.ndim > 1:
        return call
    extents = [as_int(one) for one in info.extents or (None,)] if info.extents != () else []
    # In float64: a product of int64 may wrap around to something small.
    if None in extents or np.prod([one or 0 for one in extents], dtype=np.float64) > LARGEST_KNOWN:
        return call
    return relax.const(Evaluator(IRModule()).apply(relax.Function((), call), (), row.name, {}, {}))
