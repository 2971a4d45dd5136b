"""`A + B` on tensors: element by element with broadcasting, a compute named after the operator.

Importing this module teaches the operators of expressions about tensors. A tensor of rank 0 next to an expression is
its element, so that it can be used inside a definition; next to a number or another tensor it makes a new tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..tir import arithmetic
from ..tir.arithmetic import convert, is_const_int
from ..tir.expr import ExprOp, IntImm, PrimExpr, Var
from .declare import compute
from .tensor import Tensor

_OPERATORS: dict[str, tuple[str, Callable[[Any, Any], PrimExpr]]] = {
    "add": ("T_add", arithmetic.add),
    "sub": ("T_subtract", arithmetic.subtract),
    "mul": ("T_multiply", arithmetic.multiply),
    "true_divide": ("T_divide", arithmetic.true_divide),
}


def elementwise(name: str, operator: Callable[[Any, Any], PrimExpr], a: Any, b: Any) -> Any:
    """The tensor `operator(a, b)` of two operands of which one at least is a tensor; the other may be a scalar.

    Raises:
        DeclarationError: if the shapes can't be broadcast together.
    """
    tensors = [x for x in (a, b) if isinstance(x, Tensor)]
    shape = tensors[0].shape if len(tensors) == 1 else broadcast_shape(name, *tensors)
    names = [f"ax{d}" for d in range(len(shape))]
    tag = "elemwise" if len(tensors) == 1 else "broadcast"

    def body(*axes: Var) -> PrimExpr:
        return operator(*(operand(x, axes) for x in (a, b)))

    return compute(shape, body, name, tag, varargs_names=names)


def broadcast_shape(name: str, a: Tensor, b: Tensor) -> tuple[PrimExpr, ...]:
    """The common shape of two tensors: aligned at the last axis, extents equal or one of them 1."""
    longer, shorter = (a.shape, b.shape) if a.ndim >= b.ndim else (b.shape, a.shape)
    padding = (IntImm("int32", 1),) * (len(longer) - len(shorter))
    shape = []
    for x, y in zip(longer, padding + shorter, strict=True):
        if x is y or is_const_int(y, 1):
            shape.append(x)
        elif is_const_int(x, 1):
            shape.append(y)
        elif isinstance(x, IntImm) and isinstance(y, IntImm):
            raise DeclarationError(
                f"{name}: shapes {_text(a)} of {a.name} and {_text(b)} of {b.name} can't be broadcast; aligned extents must be equal or 1"
            )
        else:
            shape.append(y if isinstance(y, IntImm) else x)  # symbolic: taken to be equal, checked by the arguments of a call
    return tuple(shape)


def operand(x: Any, axes: Sequence[Var]) -> Any:
    """An operand at axes that run over the broadcast shape; what is no tensor as it is."""
    if not isinstance(x, Tensor):
        return x
    own = axes[len(axes) - x.ndim :]
    return x(*(0 if is_const_int(extent, 1) else axis for axis, extent in zip(own, x.shape, strict=True)))


def _text(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


def _tensor_aware(name: str, operator: Callable[[Any, Any], PrimExpr]) -> Callable[[Any, Any], Any]:
    def build(a: Any, b: Any) -> Any:
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return elementwise(name, operator, a, b) if _makes_tensor(a, b) else operator(a, b)
        return operator(a, b)

    return build


def _makes_tensor(a: Any, b: Any) -> bool:
    other = b if isinstance(a, Tensor) else a
    tensor = a if isinstance(a, Tensor) else b
    # a tensor of rank 0 beside an expression is a value itself: scale * A[i]
    return tensor.ndim > 0 or isinstance(other, Tensor) or not isinstance(other, ExprOp)


def _negate(a: Any) -> Any:
    if isinstance(a, Tensor):
        return elementwise("T_multiply", arithmetic.multiply, a, convert(-1).astype(a.dtype)) if a.ndim else arithmetic.negate(a)
    return arithmetic.negate(a)


ExprOp._build.update({key: _tensor_aware(name, operator) for key, (name, operator) in _OPERATORS.items()})
ExprOp._build["neg"] = _negate
