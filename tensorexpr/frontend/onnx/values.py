"""Values of an ONNX graph while it is imported: expressions, and what is known of those that say shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import relax
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field
from ...relax.expr import owned
from ...relax.ops.narrow import NARROW
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm, PrimExpr
from .dtypes import computed_as, numpy_dtype

LARGEST_KNOWN = 1024  # elements of what is computed at import: shapes and what they are made of


@dataclass(frozen=True, eq=False)
class Known:
    """What a tensor is: numbers, or integer expressions of symbols.

    Args:
        values: an array of numbers in its dtype, or of objects where an element is an expression.
        dtype: of the tensor.
    """

    values: Any
    dtype: str

    @property
    def is_constant(self) -> bool:
        """Whether all elements are numbers."""
        return bool(self.values.dtype != object)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor."""
        return tuple(self.values.shape)


def known(values: Any, dtype: str) -> Known:
    """What a tensor is, by numbers and expressions in any mixture; expressions that are numbers become these."""
    given = np.asarray(values)
    if given.dtype != object:
        return Known(given.astype(numpy_dtype(dtype), copy=False), dtype)
    flat = [simple(one) for one in given.ravel().tolist()]
    if not any(isinstance(one, PrimExpr) for one in flat):
        # No expression is left: these are numbers, which may be computed with in their dtype.
        return Known(np.array(flat, dtype=numpy_dtype(dtype)).reshape(given.shape), dtype)
    made = np.empty(len(flat), dtype=object)
    made[:] = flat
    return Known(made.reshape(given.shape), dtype)


def simple(value: Any) -> Any:
    """An expression in its simplest form, as a number where it is one."""
    if not isinstance(value, PrimExpr):
        return value
    # Most are numbers already, and simplifying costs far more than looking.
    number = as_int(value)
    if number is None:
        value = Analyzer().simplify(value)
        number = as_int(value)
    return value if number is None else number


@dataclass(eq=False)
class Value:
    """A value: its expression, what is known of it, and the inputs of the model that it depends on.

    Args:
        expr: of it; None where it is made of what is known when somebody needs it.
        known: the numbers or expressions that it consists of, or None.
        roots: names of inputs of the model without a value.
        element: the dtype of a tensor that no kernel reads, whose expression doesn't say it.
        integers: the expressions of which a floating-point tensor is the cast, or None.
    """

    expr: Any
    known: Known | None = None
    roots: frozenset[str] = field(default_factory=frozenset)
    element: str = ""
    integers: Known | None = None

    @property
    def info(self) -> Any:
        """What is known of its type."""
        if self.expr is None and self.known is not None:
            return relax.TensorStructInfo(self.known.shape, self.known.dtype)
        return self.expr.struct_info


def constant_value(array: Any, dtype: str | None = None) -> Value:
    """A value of an array; of a dtype that no kernel reads, its numbers in one that is."""
    given = np.asarray(array) if dtype is None else np.asarray(array, dtype=numpy_dtype(dtype))
    if given.dtype.name in NARROW:
        return Value(owned(given.astype(computed_as(given.dtype.name))), element=given.dtype.name)
    made = owned(given) if given.dtype != object else None
    small = given.size <= LARGEST_KNOWN
    return Value(made, Known(given, str(given.dtype)) if small else None)


def expression_of(item: Any) -> PrimExpr:
    """An element of what is known as an expression of int64."""
    return item if isinstance(item, PrimExpr) else IntImm("int64", int(item))
