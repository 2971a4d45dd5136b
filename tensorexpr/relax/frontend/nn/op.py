"""Operators on tensors of modules: those of graphs, by the names and arguments that networks as classes have."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import DeclarationError
from ... import op as relax_op
from ...block_builder import BlockBuilder
from ...expr import PrimValue, const
from .core import Tensor, emitted, unwrapped


def _like(function: Callable[..., Any], params: str, hint: str, doc: str) -> Callable[..., Any]:
    """An operator of graphs on tensors of modules.

    Args:
        function: of `relax.op`.
        params: its arguments in order, as they are called here.
        hint: what variables for results are called.
        doc: what it computes.
    """
    names = params.split()
    # By place, as names differ: `dim` here is `axis` there.
    theirs = dict(zip(names, inspect.signature(function).parameters, strict=False))

    def call(*args: Any, name: str = hint, **kwargs: Any) -> Any:
        odd = [key for key in kwargs if key not in theirs]
        if odd or len(args) > len(names):
            raise DeclarationError(f"nn.op.{call.__name__} takes {', '.join(names)}, not {odd[0] if odd else f'{len(args)} arguments'}")
        return emitted(function(*map(unwrapped, args), **{theirs[key]: unwrapped(value) for key, value in kwargs.items()}), name)

    call.__doc__ = doc
    return call


_TABLE: dict[str, tuple[Callable[..., Any], str]] = {
    **{one: (getattr(relax_op, one), "a b") for one in ("add", "subtract", "divide", "equal", "greater", "greater_equal", "less")},
    **{one: (getattr(relax_op, one), "a b") for one in ("less_equal", "not_equal", "multiply")},
    **{one: (getattr(relax_op, one), "x1 x2") for one in ("maximum", "minimum")},
    **{one: (getattr(relax_op, one), "x") for one in ("exp", "negative", "sigmoid", "sqrt", "square", "tanh")},
    **{one: (getattr(relax_op.nn, one), "x") for one in ("relu", "silu")},
    "argsort": (relax_op.argsort, "data axis descending dtype"),
    "astype": (relax_op.astype, "x dtype"),
    "broadcast_to": (relax_op.broadcast_to, "x shape"),
    "concat": (relax_op.concat, "x dim"),
    "cumsum": (relax_op.cumsum, "data axis dtype exclusive"),
    "matmul": (relax_op.matmul, "a b out_dtype"),
    "ones": (relax_op.ones, "shape dtype"),
    "permute": (relax_op.permute_dims, "x axes"),
    "permute_dims": (relax_op.permute_dims, "x axes"),
    "repeat": (relax_op.repeat, "x repeats axis"),
    "reshape": (relax_op.reshape, "x shape"),
    "rms_norm": (relax_op.nn.rms_norm, "x weight axes epsilon"),
    "softmax": (relax_op.nn.softmax, "x axis"),
    "sort": (relax_op.sort, "x axis descending"),
    "split": (relax_op.split, "ary indices_or_sections axis"),
    "squeeze": (relax_op.squeeze, "x axis"),
    "sum": (relax_op.sum, "x axis keepdims"),
    "take": (relax_op.take, "x indices axis"),
    "topk": (relax_op.topk, "data k axis ret_type largest dtype"),
    "triu": (relax_op.triu, "x diagonal"),
    "unsqueeze": (relax_op.expand_dims, "x dim"),
    "where": (relax_op.where, "condition x1 x2"),
    "zeros": (relax_op.zeros, "shape dtype"),
}
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


for _name, (_function, _params) in _TABLE.items():
    globals()[_name] = _like(_function, _params, _name, f"`{_name}` of graphs; see `relax.op`.")
    globals()[_name].__name__ = _name


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> Any:
    """A tensor in so many equal parts along an axis."""
    return emitted(relax_op.split(x._expr, chunks, dim), name)


def full(shape: Sequence[Any], fill_value: Any, dtype: str = "float32", name: str = "full") -> Any:
    """A tensor of one value."""
    value = unwrapped(fill_value)
    return emitted(relax_op.full(shape, const(value, dtype) if isinstance(value, (int, float)) else value, dtype), name)


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Any:
    """GELU, exactly, or by the hyperbolic tangent with ``approximate="tanh"``."""
    return emitted((relax_op.nn.gelu_tanh if approximate == "tanh" else relax_op.nn.gelu)(x._expr), name)


def _convolution(axes: int) -> Callable[..., Any]:
    def conv(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        name: str = f"conv{axes}d",
    ) -> Any:  # fmt: skip
        """A convolution of planes behind their channels, with a bias by channel if there is one."""
        made = emitted(getattr(relax_op.nn, f"conv{axes}d")(x._expr, weight._expr, stride, padding, dilation, groups), name)
        return made if bias is None else made + bias.reshape(1, -1, *[1] * axes)

    return conv


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def conv1d_transpose(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1,
    groups: int = 1, name: str = "conv1d_transpose",
) -> Any:  # fmt: skip
    """The transpose of a convolution of rows."""
    made = emitted(relax_op.nn.conv1d_transpose(x._expr, weight._expr, stride, padding, output_padding, dilation, groups), name)
    return made if bias is None else made + bias.reshape(1, -1, 1)


def layer_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    name: str = "layer_norm",
) -> Any:  # fmt: skip
    """Layer normalisation over the last axes, which have this shape; scaled by ones and shifted by zeros if no weights are given."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    gamma = relax_op.ones(shape, x.dtype) if weight is None else weight._expr
    beta = relax_op.zeros(shape, x.dtype) if bias is None else bias._expr
    return emitted(relax_op.nn.layer_norm(x._expr, gamma, beta, list(range(-len(shape), 0)), eps), name)


def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float = 1e-5, channel_axis: int = 1,
    axes: Sequence[int] | None = None, name: str = "group_norm",
) -> Any:  # fmt: skip
    """Group normalisation; over all axes behind the channels if none are stated."""
    size = [x.shape[channel_axis]]
    gamma = relax_op.ones(size, x.dtype) if weight is None else weight._expr
    beta = relax_op.zeros(size, x.dtype) if bias is None else bias._expr
    over = list(range(2, x.ndim)) if axes is None else list(axes)
    return emitted(relax_op.nn.group_norm(x._expr, gamma, beta, num_groups, channel_axis, over, eps), name)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False, scale: float | None = None,
    name: str = "scaled_dot_product_attention",
) -> Any:  # fmt: skip
    """Attention of (batch, positions, heads, width): softmax(query key^T scale + attn_mask) value."""
    if is_causal:
        raise DeclarationError("nn.op.scaled_dot_product_attention(is_causal=True): state the mask as attn_mask")
    q, k, v = (one.permute_dims(0, 2, 1, 3) for one in (query, key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = emitted(relax_op.matmul(q._expr, relax_op.permute_dims(k._expr, [0, 1, 3, 2])), name) * factor
    scores = scores if attn_mask is None else scores + attn_mask
    weights = emitted(relax_op.nn.softmax(scores._expr, -1), name)
    return emitted(relax_op.matmul(weights._expr, v._expr), name).permute_dims(0, 2, 1, 3)


def tensor_expr_op(tensor_expr_func: Callable[..., Any], name_hint: str, args: Sequence[Any], *, attrs: Any = None) -> Any:
    """What a function on tensors of `te` computes."""
    return emitted(
        _builder().call_te(tensor_expr_func, *map(unwrapped, args), primfunc_name_hint=name_hint, primfunc_attrs=attrs), name_hint
    )


def tensor_ir_op(func: Any, name_hint: str, args: Any, out: Any) -> Any:
    """What a tensor function computes.

    Args:
        func: a PrimFunc, which the module gets.
        name_hint: what it is called there.
        args: tensors, and integers for parameters that no shape says.
        out: tensors like the results: of `relax.TensorStructInfo`, or other tensors.
    """
    callee = _builder().add_func(func, name_hint)
    given = list(args) if isinstance(args, (list, tuple)) else [args]
    tensors, numbers = [unwrapped(one) for one in given if isinstance(one, Tensor)], [one for one in given if not isinstance(one, Tensor)]
    return emitted(relax_op.call_tir(callee, tensors, _infos(out), numbers or None), name_hint)


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """What a registered function writes into results like `out`."""
    given = [one if not isinstance(one, (int, float)) else PrimValue(one) for one in map(unwrapped, args)]  # type: ignore[arg-type]
    return emitted(relax_op.call_dps_packed(name, given, _infos(out)), name.rpartition(".")[2])


def print_(tensor: Tensor) -> None:
    """Refused: exported graphs have no effects.

    Raises:
        DeclarationError: always.
    """
    raise DeclarationError("nn.op.print_: exported graphs have no effects; return the tensor, or print in a registered function")


def _infos(out: Any) -> Any:
    if isinstance(out, (list, tuple)):
        return [_infos(one) for one in out]
    return out._expr.struct_info if isinstance(out, Tensor) else out


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise DeclarationError("tensors are computed while Module.export_tvm makes a graph")
    return builder


__all__ = [
    *_TABLE, "chunk", "conv1d", "conv1d_transpose", "conv2d", "conv3d", "extern", "full", "gelu", "group_norm", "layer_norm", "print_",
    "scaled_dot_product_attention", "tensor_expr_op", "tensor_ir_op",
]  # fmt: skip
