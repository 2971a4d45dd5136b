"""Operators on tensors of modules: those of graphs, by the names and arguments that networks as classes have."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import DeclarationError
from ....tir.expr import FloatImm, IntImm, PrimExpr
from ... import op as relax_op
from ...block_builder import BlockBuilder
from ...expr import PrimValue, StringImm, Tuple, const
from ...struct_info import ObjectStructInfo, ShapeExpr
from .core import Tensor, emitted, get_default_dtype, unwrapped
from .exporter import Exporter
from .sampling import renormalize_top_p_top_k_prob, sample_top_p_top_k_from_sorted_prob


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
    "multinomial_from_uniform": (relax_op.multinomial_from_uniform, "prob uniform_sample sample_indices dtype"),
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
}
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


for _name, (_function, _params) in _TABLE.items():
    globals()[_name] = _like(_function, _params, _name, f"`{_name}` of graphs; see `relax.op`.")
    globals()[_name].__name__ = _name


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> Any:
    """A tensor in so many equal parts along an axis."""
    return emitted(relax_op.split(x._expr, chunks, dim), name)


def empty(shape: Sequence[Any], dtype: str = "float32", name: str = "empty") -> Any:
    """A tensor whose elements may be anything."""
    return emitted(relax_op.builtin.alloc_tensor(ShapeExpr(tuple(shape)), dtype, 0), name)


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: int = 0, name: str = "pad") -> Any:
    """A tensor with more elements around it: so many before and behind it along axis 0, then along axis 1, and so on."""
    return emitted(relax_op.nn.pad(x._expr, list(pad), value, mode), name)


def interpolate(
    x: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool | None = None,
    data_layout: str = "NCHW", name: str = "interpolate",
) -> Any:  # fmt: skip
    """A plane of another size.

    Args:
        size: of the result; else `scale_factor` times the one that there is.
        mode: "nearest", "bilinear" or "bicubic".
        align_corners: let the centres of the corner pixels of both lie on each other.

    Raises:
        DeclarationError: for `recompute_scale_factor` and `antialias`.
    """
    if recompute_scale_factor is not None or antialias is not None:
        raise DeclarationError("nn.op.interpolate: recompute_scale_factor and antialias aren't there; give size=")
    if size is None:
        planes = [n for n, axis in enumerate(data_layout) if axis not in "NC"]
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * len(planes)
        size = [int(x.shape[n] * factor) for n, factor in zip(planes, factors, strict=True)]
    nearest = mode.startswith("nearest")
    method = "nearest_neighbor" if nearest else mode.removeprefix("bi")
    places = "asymmetric" if nearest else "align_corners" if align_corners else "half_pixel"
    # Down to the pixel before, as PyTorch has it: rounding to the nearest one would move the plane by half a pixel.
    rounding = "floor" if nearest else "round"
    return emitted(relax_op.image.resize2d(x._expr, size, None, data_layout, method, places, rounding), name)


def get_timestep_embedding(
    x: Tensor, embedding_dim: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1, scale: float = 1,
    max_period: int = 10000, name: str = "get_timestep_embedding",
) -> Any:  # fmt: skip
    """Sines and cosines of steps (N,) at frequencies that fall geometrically: (N, embedding_dim) (Ho, Jain and Abbeel 2020)."""
    half = embedding_dim // 2
    powers = relax_op.multiply(const(-math.log(max_period), "float32"), relax_op.arange(0, half, dtype="float32"))
    rates = relax_op.exp(relax_op.divide(powers, const(half - downscale_freq_shift, "float32")))
    angles: Any = relax_op.multiply(relax_op.expand_dims(relax_op.astype(x._expr, "float32"), 1), relax_op.expand_dims(rates, 0))
    angles = _builder().emit(angles if scale == 1 else relax_op.multiply(const(scale, "float32"), angles))
    waves = [relax_op.sin(angles), relax_op.cos(angles)]
    made = relax_op.concat(waves[::-1] if flip_sin_to_cos else waves, -1)
    made = relax_op.nn.pad(made, [0, 0, 0, 1]) if embedding_dim % 2 else made
    return emitted(relax_op.astype(made, get_default_dtype()), name)


def full(shape: Sequence[Any], fill_value: Any, dtype: str = "float32", name: str = "full") -> Any:
    """A tensor of one value."""
    value = unwrapped(fill_value)
    value = value.value if isinstance(value, (IntImm, FloatImm)) else value
    return emitted(relax_op.full(shape, const(value, dtype) if isinstance(value, (int, float)) else value, dtype), name)


def ones(shape: Sequence[Any], dtype: str = "float32", name: str = "ones") -> Any:
    """A tensor of ones."""
    return emitted(relax_op.ones(shape, dtype), name)


def zeros(shape: Sequence[Any], dtype: str = "float32", name: str = "zeros") -> Any:
    """A tensor of zeros."""
    return emitted(relax_op.zeros(shape, dtype), name)


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
    """Attention of (batch, positions, heads, width): softmax(query key^T scale + attn_mask) value.

    Args:
        attn_mask: added to the products; it broadcasts to (batch, heads, positions of queries, positions of keys).
        is_causal: positions see none behind their own.
        scale: one by the root of the width if None.
    """
    bias = attn_mask
    if bias is not None and bias.ndim < 4:
        bias = bias.reshape(*[1] * (4 - bias.ndim), *bias.shape)
    given = [one._expr for one in (query, key, value)]
    mask = "TopLeft" if is_causal else None
    return emitted(relax_op.nn.attention(*given, None if bias is None else bias._expr, scale, mask), name)


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
    callee, tensors, numbers = _called(func, name_hint, args)
    return emitted(relax_op.call_tir(callee, tensors, _infos(out), numbers), name_hint)


def _called(func: Any, name_hint: str, args: Any) -> tuple[Any, list[Any], list[Any] | None]:
    """A tensor function in the module, the tensors among its arguments, and the numbers."""
    given = list(args) if isinstance(args, (list, tuple)) else [args]
    tensors, numbers = [unwrapped(one) for one in given if isinstance(one, Tensor)], [one for one in given if not isinstance(one, Tensor)]
    return _builder().add_func(func, name_hint), tensors, numbers or None


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """What a registered function writes into results like `out`."""
    return emitted(relax_op.call_dps_packed(name, Tuple(tuple(map(_value, args))), _infos(out)), name.replace(".", "_"))


def tensor_ir_inplace_op(func: Any, name_hint: str, args: Any, inplace_indices: int | Sequence[int], out: Any) -> Any:
    """What a tensor function writes into its arguments: as `tensor_ir_op`.

    Args:
        inplace_indices: for each result the number of the argument that it is written to, or -1 for a tensor of its own.
    """
    callee, tensors, numbers = _called(func, name_hint, args)
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    return emitted(relax_op.call_tir_inplace(callee, tensors, places, _infos(out), numbers), name_hint)


def debug_func(name: str, *args: Any, _line_info: str | None = None) -> None:
    """Call a registered function while the graph runs: with the place of this call as text, then values.

    Args:
        name: of the function.
        args: tensors, numbers, symbols and strings.

    Raises:
        DeclarationError: if the module isn't exported with `debug=True`, or in a function of its own (`define_subroutine`).
    """
    exporter = Exporter.current()
    io, builder = exporter.io_effect, _builder()
    if io is None or io.effect is None:
        raise DeclarationError(f"nn.op.debug_func: {name} is called in modules that are exported with debug=True")
    if builder is not exporter.builder:
        raise DeclarationError("nn.op.debug_func: a module with define_subroutine has no effects; call it in the module around")
    place = _line_info or _place(2)
    given = [_value(arg) for arg in args]
    call = relax_op.call_pure_packed(
        "vm.builtin.invoke_debug_func", io.effect, StringImm(name), StringImm(place), *given, sinfo_args=ObjectStructInfo()
    )
    io.effect = builder.emit(call, io.effect.name_hint)


def print_(tensor: Tensor) -> None:
    """Print a tensor while the graph runs, with the place of this call.

    Raises:
        DeclarationError: as of `debug_func`.
    """
    debug_func("vm.builtin.debug_print", tensor, _line_info=_place(2))


def _place(depth: int) -> str:
    """Where the function was called that calls this one, as `file:line`."""
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _value(value: Any) -> Any:
    """An argument of a registered function: integers are of 64 bits, floats double."""
    if isinstance(value, (list, tuple)):
        return Tuple(tuple(map(_value, value)))
    if isinstance(value, (int, float)):
        return PrimValue(IntImm("int64", value) if isinstance(value, int) else FloatImm("float64", value))
    return StringImm(value) if isinstance(value, str) else PrimValue(value) if isinstance(value, PrimExpr) else unwrapped(value)


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
    *_TABLE, "chunk", "conv1d", "conv1d_transpose", "conv2d", "conv3d", "debug_func", "empty", "extern", "full", "gelu",
    "get_timestep_embedding", "group_norm", "interpolate", "layer_norm", "ones", "pad", "print_", "renormalize_top_p_top_k_prob",
    "sample_top_p_top_k_from_sorted_prob", "scaled_dot_product_attention", "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op",
    "zeros",
]  # fmt: skip
