"""The functions that declare computations: placeholder, compute, variables and reduction axes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.attrs import FrozenMap
from ..tir.dtype import int_limits, parse_dtype
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, SizeVar, Var
from ..tir.operators import ExprOp
from .operation import PlaceholderOp
from .tag import TagScope
from .tensor import Tensor

if TYPE_CHECKING:
    from .tensor_compute import TensorIntrinCall

_One = ExprOp | complex
_Several = tuple[Any, ...] | list[Any]
_Attrs = Mapping[str, Any] | None
_Names = Sequence[str] | None


def var(name: str = "tindex", dtype: str = "int32") -> Var:
    """A new symbolic scalar: an unknown size, or a scalar argument."""
    return Var(name, dtype)


def size_var(name: str = "size", dtype: str = "int32") -> SizeVar:
    """A new symbolic scalar that is known to be at least 0."""
    return SizeVar(name, dtype)


def placeholder(shape: Any, dtype: str | None = None, name: str = "placeholder") -> Tensor:
    """Declare an input tensor.

    Args:
        shape: extents: integers or integer expressions; one alone stands for a vector, () for a scalar.
        dtype: of an element, default float32.
        name: for printing; it need not be unique.

    Raises:
        DeclarationError: for a bad shape or dtype.
    """
    dtype = dtype or "float32"
    if parse_dtype(dtype).lanes > 1 or dtype == "handle":
        raise DeclarationError(f"placeholder {name}: elements are scalars, not {dtype}")
    return PlaceholderOp(name, as_shape(shape, f"placeholder {name}"), str(parse_dtype(dtype))).output(0)


@overload
def compute(
    shape: Any, fcompute: Callable[..., _One], name: str = ..., tag: str = ..., attrs: _Attrs = ..., varargs_names: _Names = ...
) -> Tensor: ...


@overload
def compute(
    shape: Any, fcompute: Callable[..., _Several], name: str = ..., tag: str = ..., attrs: _Attrs = ..., varargs_names: _Names = ...
) -> tuple[Tensor, ...]: ...


@overload
def compute(
    shape: Any, fcompute: Callable[..., TensorIntrinCall], name: str = ..., tag: str = ..., attrs: _Attrs = ..., varargs_names: _Names = ...
) -> Any: ...


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: _Attrs = None,
    varargs_names: _Names = None,
) -> Any:
    """Declare the tensor of `shape` whose element at (i, j, ...) is `fcompute(i, j, ...)`.

    Axes are named after the parameters of `fcompute`; those of `*i` are i0, i1, ... unless `varargs_names` has them.
    `fcompute` may return a tuple of expressions: then as many tensors are made. A reduction (`te.sum`, ...) must be
    the whole of what it returns.

    Args:
        shape: extents of the result; one extent alone stands for a vector, () for a scalar.
        fcompute: from index variables to the element's expression; or, from those of the leading axes, to a tensor intrinsic
            applied to slices (`TensorIntrin.__call__`), which computes all elements behind them.
        name: of the operation, for printing.
        tag: a note for schedules, such as "injective".
        attrs: hints for schedulers (`FLOP`, `layout_free_placeholders`, ...); unknown keys are kept and ignored.
        varargs_names: names for the axes that `*i` collects.

    Returns:
        A `Tensor`, or a tuple of them if `fcompute` returned several expressions.

    Raises:
        DeclarationError: if the definition is malformed. One that reads a tensor out of its bounds is refused where its
            values are wanted: when it is lowered, made a function, searched, evaluated or differentiated.
    """
    where = f"compute {name}"
    extents = as_shape(shape, where)
    names = _axis_names(fcompute, len(extents), varargs_names, where)
    axes = tuple(
        IterVar(Range.from_min_extent(IntImm(extent.dtype, 0), extent), Var(axis_name, extent.dtype), IterVar.DATA_PAR)
        for axis_name, extent in zip(names, extents, strict=False)
    )
    returned = fcompute(*(axis.var for axis in axes))
    # Imported here, as what checks a definition brings the index algebra: most of what importing the package would load.
    from .definition import define

    return define(name, checked_tag(tag, where), checked_attrs(attrs), axes, extents, returned)


def as_shape(shape: Any, where: str) -> tuple[PrimExpr, ...]:
    """`shape` as a tuple of integer expressions; `where` begins the message of an error."""
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_extent(item, where) for item in items)


def _extent(item: Any, where: str) -> PrimExpr:
    item = int(item) if isinstance(item, float) and item.is_integer() else item  # as N / bn gives it
    extent = None if isinstance(item, (bool, float, str)) else convert(item)
    if extent is None or not parse_dtype(extent.dtype).is_int:
        raise DeclarationError(f"{where}: the extent {item!r} is no integer; a shape holds integers or integer expressions")
    if isinstance(extent, IntImm):
        if extent.value < 0:
            raise DeclarationError(f"{where}: the extent {extent.value} is negative; extents are at least 0")
        # sizes that came as int64 index in int32 all the same, as long as it holds them
        return IntImm("int32" if extent.value <= int_limits("int32")[1] else "int64", extent.value)
    return extent


def _axis_names(fcompute: Callable[..., Any], ndim: int, varargs_names: Sequence[str] | None, where: str) -> list[str]:
    parameters = inspect.signature(fcompute).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise DeclarationError(f"{where}: the function has keyword-only parameters; it gets one positional index for each dimension")
    # one with a default is no index: lambda i, a=a: ...
    names = [p.name for p in positional if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    rest = ndim - len(names)
    if rest < 0:
        raise DeclarationError(f"{where}: the shape has {ndim} dimensions, the function takes {len(names)} indices ({', '.join(names)})")
    if not variadic:
        return names  # fewer than dimensions where an intrinsic has the others
    if varargs_names is not None and len(varargs_names) != rest:
        raise DeclarationError(f"{where}: varargs_names has {len(varargs_names)} names for {rest} axes: {', '.join(varargs_names)}")
    return names + list(varargs_names if varargs_names is not None else (f"i{d}" for d in range(rest)))


def checked_tag(tag: str, where: str) -> str:
    """The tag of an operation: its own or that of the `tag_scope` around it."""
    scope = TagScope.get_current()
    if tag and scope is not None:
        raise DeclarationError(f"{where}: tag {tag!r} inside tag_scope({scope.tag!r}); drop one of the two")
    return tag if scope is None else scope.tag


def checked_attrs(attrs: Mapping[str, Any] | None) -> FrozenMap:
    """Attributes as an operation keeps them."""
    return FrozenMap({key: tuple(value) if isinstance(value, list) else value for key, value in (attrs or {}).items()})


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "") -> IterVar:
    """A new axis to reduce over.

    Args:
        dom: (begin, end), integers or expressions, or a `tir.Range`.
        name: for printing and error messages.
        thread_tag: kept for thread axes; CPUs don't use it.

    Raises:
        DeclarationError: for another kind of domain.
    """
    if isinstance(dom, (tuple, list)) and len(dom) == 2:
        begin, end = (convert(int(end) if isinstance(end, float) and end.is_integer() else end) for end in dom)
        # (0, n) of an int64 n: the number takes the dtype of the other end
        begin = IntImm(end.dtype, begin.value) if isinstance(begin, IntImm) and parse_dtype(end.dtype).is_int else begin
        dom = Range.from_min_extent(begin, end - begin)
    if not isinstance(dom, Range):
        raise DeclarationError(f"reduce_axis {name}: the domain is (begin, end), not {dom!r}")
    extent = dom.extent
    if not parse_dtype(extent.dtype).is_int:
        raise DeclarationError(f"reduce_axis {name}: the domain is made of integers, not {extent.dtype}")
    if isinstance(extent, IntImm) and extent.value < 0:
        raise DeclarationError(f"reduce_axis {name}: the domain ends {-extent.value} before it begins")
    return IterVar(dom, Var(name, extent.dtype), IterVar.COMM_REDUCE, thread_tag)
