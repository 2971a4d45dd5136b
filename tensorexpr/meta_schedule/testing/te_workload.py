"""Standard operators as TVM's MetaSchedule has them, block by block: convolutions, products, normalisations.

create_te_workload("C2D", 0)   # a PrimFunc to schedule
"""

# ruff: noqa: E741  (loops are called as the parameters of a computation, and l is a length there)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import te
from ...errors import WorkloadError
from ...te.tensor import Tensor
from ...tir.function import PrimFunc

Tensors = tuple[Tensor, ...]


def batch_matmul_nkkm(B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32") -> Tensors:
    """Products of B matrices: X [B, N, K], Y [B, K, M] -> Z [B, N, M]."""
    x, y = te.placeholder((B, N, K), name="X", dtype=in_dtype), te.placeholder((B, K, M), name="Y", dtype=in_dtype)
    k = te.reduce_axis((0, K), name="k")
    z = te.compute((B, N, M), lambda b, i, j: te.sum(_as(x[b, i, k], out_dtype) * _as(y[b, k, j], out_dtype), axis=[k]), name="Z")
    return x, y, z


def _as(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


def _conv(
    name: str,
    axes: str,
    n: int,
    sizes: Sequence[int],
    ci: int,
    co: int,
    kernel_size: int,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    in_dtype: str,
    out_dtype: str,
) -> Tensors:
    """A convolution with the channels last, over as many axes as `axes` has letters."""
    rank = len(axes)
    inputs = te.placeholder((n, *sizes, ci), name="inputs", dtype=in_dtype)
    weight = te.placeholder((*[kernel_size] * rank, ci // groups, co), name="weight", dtype=in_dtype)
    outs = [(size + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 for size in sizes]
    windows = [te.reduce_axis((0, kernel_size), name=f"r{axis}") for axis in axes]
    rc = te.reduce_axis((0, ci // groups), name="rc")
    padded = _padded(inputs, [0, *[padding] * rank, 0])

    def product(*index: Any) -> Any:
        first, *places, channel = index
        taps = [place * stride + window * dilation for place, window in zip(places, windows, strict=True)]
        read = padded(first, *taps, channel // (co // groups) * (ci // groups) + rc)
        return te.sum(_as(read, out_dtype) * _as(weight(*windows, rc, channel), out_dtype), axis=[*windows, rc])

    return inputs, weight, te.compute((n, *outs, co), _LOOPS[rank](product), name=name)


# The loops of a computation are called as its function's parameters.
_LOOPS: dict[int, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    1: lambda product: lambda n, l, co: product(n, l, co),
    2: lambda product: lambda n, h, w, co: product(n, h, w, co),
    3: lambda product: lambda n, d, h, w, co: product(n, d, h, w, co),
}


def conv1d_nlc(
    N: int,
    L: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """inputs [N, L, CI], weight [kernel, CI / groups, CO] -> [N, L', CO]."""
    return _conv("conv1d_nlc", "l", N, [L], CI, CO, kernel_size, stride, padding, dilation, groups, in_dtype, out_dtype)


def conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """inputs [N, H, W, CI], weight [kernel, kernel, CI / groups, CO] -> [N, H', W', CO]."""
    return _conv("conv2d_nhwc", "hw", N, [H, W], CI, CO, kernel_size, stride, padding, dilation, groups, in_dtype, out_dtype)


def conv3d_ndhwc(
    N: int,
    D: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """inputs [N, D, H, W, CI], weight [kernel, kernel, kernel, CI / groups, CO] -> [N, D', H', W', CO]."""
    return _conv("conv3d_ndhwc", "dhw", N, [D, H, W], CI, CO, kernel_size, stride, padding, dilation, groups, in_dtype, out_dtype)


def depthwise_conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    C: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    factor: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """[N, H, W, C], [factor, kernel, kernel, C] -> [N, H', W', C * factor]."""
    inputs = te.placeholder((N, H, W, C), dtype=in_dtype)
    weight = te.placeholder((factor, kernel_size, kernel_size, C), dtype=in_dtype)
    outs = [(size + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 for size in (H, W)]
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    padded = _padded(inputs, [0, padding, padding, 0])

    def body(n: Any, h: Any, w: Any, c: Any) -> Any:
        read = padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor]
        return te.sum(_as(read, out_dtype) * _as(weight[c % factor, rh, rw, c // factor], out_dtype), axis=[rh, rw])

    return inputs, weight, te.compute((N, *outs, C * factor), body, name="depth_conv2d_nhwc")


def conv2d_transpose_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """inputs [N, H, W, CI], weight [kernel, kernel, CI, CO] -> [N, (H - 1) stride + kernel - 2 padding, ..., CO]."""
    inputs = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), name="weight", dtype=in_dtype)
    border = kernel_size - 1 - padding
    around, shift = -(-border // stride), (stride - border % stride) % stride
    padded = _padded(inputs, [0, around, around, 0])
    outs = [(size - 1) * stride + kernel_size - 2 * padding for size in (H, W)]
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    rc = te.reduce_axis((0, CI), name="rc")

    def body(n: Any, h: Any, w: Any, co: Any) -> Any:
        y, x = h + rh + shift if shift else h + rh, w + rw + shift if shift else w + rw
        read = _as(padded[n, te.floordiv(y, stride), te.floordiv(x, stride), rc], out_dtype)
        inside = te.all(te.floormod(y, stride).equal(0), te.floormod(x, stride).equal(0))
        tap = weight[kernel_size - 1 - rh, kernel_size - 1 - rw, rc, co]
        return te.sum(te.if_then_else(inside, read, te.const(0, out_dtype)) * _as(tap, out_dtype), axis=[rh, rw, rc])

    return inputs, weight, te.compute((N, *outs, CO), body, name="conv2d_transpose_nhwc")


def conv2d_capsule_nhwijc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    capsule_size: int = 4,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """inputs [N, H, W, s, s, CI], weight [kernel, kernel, s, s, CI, CO] -> [N, H', W', s, s, CO]: a convolution of matrices."""
    size = capsule_size
    inputs = te.placeholder((N, H, W, size, size, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, size, size, CI, CO), name="weight", dtype=in_dtype)
    outs = [(extent + 2 * padding - kernel_size) // stride + 1 for extent in (H, W)]
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    cap_k, rc = te.reduce_axis((0, size), name="cap_k"), te.reduce_axis((0, CI), name="rc")
    padded = _padded(inputs, [0, padding, padding, 0, 0, 0])

    def body(n: Any, h: Any, w: Any, cap_i: Any, cap_j: Any, co: Any) -> Any:
        read = padded[n, h * stride + rh, w * stride + rw, cap_i, cap_k, rc]
        return te.sum(_as(read, out_dtype) * _as(weight[rh, rw, cap_k, cap_j, rc, co], out_dtype), axis=[rh, rw, cap_k, rc])

    return inputs, weight, te.compute((N, *outs, size, size, CO), body, name="conv2d_capsule_nhwijc")


def norm_bmn(B: int, M: int, N: int) -> Tensors:
    """The Frobenius norms of B matrices: A [B, M, N] -> D [B]."""
    a = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), name="i"), te.reduce_axis((0, N), name="j")
    c = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), name="C")
    return a, te.compute((B,), lambda b: te.sqrt(c[b]), name="D")


def softmax_mn(m: int, n: int) -> Tensors:
    """Softmax of rows: A [m, n] -> [m, n]."""
    a = te.placeholder((m, n), name="A")
    k, again = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="k")
    most = te.compute((m,), lambda i0: te.max(a[i0, k], axis=k), name="T_softmax_maxelem")
    exps = te.compute((m, n), lambda i0, i1: te.exp(a[i0, i1] - most[i0]), name="T_softmax_exp")
    total = te.compute((m,), lambda i0: te.sum(exps[i0, again], axis=again), name="T_softmax_expsum")
    return a, te.compute((m, n), lambda i0, i1: exps[i0, i1] / total[i0], name="T_softmax_norm", attrs={"axis": 1})


def conv2d_nhwc_bn_relu(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    strides: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """A convolution [N, H, W, CI] -> [N, H', W', CO], its bias, a batch normalisation and a ReLU."""
    data = te.placeholder((N, H, W, CI), name="data", dtype=in_dtype)
    kernel = te.placeholder((kernel_size, kernel_size, CI, CO), name="kernel", dtype=in_dtype)
    bias, scale, offset = (te.placeholder((CO,), name=name) for name in ("bias", "bn_scale", "bn_offset"))
    outs = [(size + 2 * padding - dilation * (kernel_size - 1) - 1) // strides + 1 for size in (H, W)]
    padded = _padded(data, [0, padding, padding, 0], name="PaddedInput")
    ry, rx = (te.reduce_axis((0, kernel_size), name=name) for name in ("ry", "rx"))
    rc = te.reduce_axis((0, CI), name="rc")

    def product(nn: Any, yy: Any, xx: Any, ff: Any) -> Any:
        read = padded[nn, yy * strides + ry * dilation, xx * strides + rx * dilation, rc]
        return te.sum(_as(read, out_dtype) * _as(kernel[ry, rx, rc, ff], out_dtype), axis=[ry, rx, rc])

    made = te.compute((N, *outs, CO), product, name="Conv2dOutput")
    for name, operand, add in (("bias_add", bias, True), ("bn_mul", scale, False), ("bn_add", offset, True)):
        made = te.compute((N, *outs, CO), _beside(made, operand, add), name=name)
    return data, kernel, bias, offset, scale, _relu(made)


def _beside(made: Tensor, operand: Tensor, add: bool) -> Callable[..., Any]:
    """A sum or product with one number for each channel."""
    if add:
        return lambda i, j, k, l: made[i, j, k, l] + operand[l]
    return lambda i, j, k, l: made[i, j, k, l] * operand[l]


def transpose_batch_matmul(
    batch: int, seq_len: int, n_head: int, n_dim: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """The scores of an attention: query and value [batch, seq, head, dim] -> C [batch, head, seq, seq]."""
    query, value = (te.placeholder((batch, seq_len, n_head, n_dim), name=name, dtype=in_dtype) for name in ("query", "value"))
    rows = te.compute((batch, n_head, seq_len, n_dim), lambda b, h, l, d: query[b, l, h, d], name="query_T")
    columns = te.compute((batch, n_head, n_dim, seq_len), lambda b, h, d, l: value[b, l, h, d], name="value_T")
    k = te.reduce_axis((0, n_dim), name="k")

    def product(b: Any, h: Any, i: Any, j: Any) -> Any:
        return te.sum(_as(rows[b, h, i, k], out_dtype) * _as(columns[b, h, k, j], out_dtype), axis=[k])

    return query, value, te.compute((batch, n_head, seq_len, seq_len), product, name="C")


def matmul(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> Tensors:
    """A product of matrices: A [n, k], B [k, m] -> C [n, m]."""
    a, b = te.placeholder((n, k), name="A", dtype=in_dtype), te.placeholder((k, m), name="B", dtype=in_dtype)
    axis = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((n, m), lambda i, j: te.sum(_as(a[i, axis], out_dtype) * _as(b[axis, j], out_dtype), axis=[axis]), name="C")


def matmul_relu(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> Tensors:
    """A product of matrices and a ReLU of it."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    return a, b, _relu(c)


def conv2d_nchw(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """X [n, ci, h, w], W [co, ci, kh, kw] -> [n, co, h', w']."""
    x, weight = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype), te.placeholder((co, ci, kh, kw), name="W", dtype=in_dtype)
    outs = [(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for size, kernel in ((h, kh), (w, kw))]
    rc, ry, rx = (te.reduce_axis((0, size), name=name) for name, size in (("rc", ci), ("ry", kh), ("rx", kw)))
    padded = _padded(x, [0, 0, padding, padding], name="pad_temp")

    def product(nn: Any, ff: Any, yy: Any, xx: Any) -> Any:
        read = padded[nn, rc, yy * stride + ry * dilation, xx * stride + rx * dilation]
        return te.sum(_as(read, out_dtype) * _as(weight[ff, rc, ry, rx], out_dtype), axis=[rc, ry, rx])

    return x, weight, te.compute((n, co, *outs), product, name="conv2d_nchw")


def _padded(data: Tensor, around: Sequence[int], name: str = "PadInput") -> Tensor:
    """A tensor with zeros around it."""
    shape = [int(extent) + 2 * width for extent, width in zip(data.shape, around, strict=True)]  # type: ignore[call-overload]

    def body(*index: Any) -> Any:
        inside = []
        for i, width, extent in zip(index, around, data.shape, strict=True):
            inside += [i >= width, i < extent + width] if width else []
        read = data(*(i - width if width else i for i, width in zip(index, around, strict=True)))
        return te.if_then_else(te.all(*inside), read, te.const(0, data.dtype)) if inside else read

    made: Tensor = te.compute(shape, body, name=name, tag="injective,pad")
    return made


def _relu(data: Tensor) -> Tensor:
    """What is positive of a tensor."""
    made: Tensor = te.compute(data.shape, lambda *i: te.max(data(*i), te.const(0, data.dtype)), name="compute")
    return made


_GROUPED = (1, 4)  # dilation and groups
CONFIGS: dict[str, tuple[Callable[..., Tensors], list[tuple[int, ...]]]] = {
    "C1D": (conv1d_nlc, [(1, 256, 64, 128, 3, 2, 1), (1, 128, 128, 256, 1, 2, 0), (1, 64, 256, 256, 5, 1, 2), (1, 32, 512, 512, 3, 1, 1)]),
    "C2D": (
        conv2d_nhwc,
        [(1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 64, 1, 1, 0), (1, 14, 14, 256, 256, 3, 1, 1), (1, 7, 7, 512, 512, 3, 1, 1)],
    ),
    "C3D": (
        conv3d_ndhwc,
        [
            (1, 16, 224, 224, 3, 64, 7, 2, 3),
            (1, 16, 56, 56, 64, 64, 1, 1, 0),
            (1, 16, 14, 14, 256, 256, 3, 1, 1),
            (1, 16, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "GMM": (batch_matmul_nkkm, [(1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024)]),
    "GRP": (
        conv2d_nhwc,
        [
            (1, 56, 56, 64, 128, 3, 2, 1, *_GROUPED),
            (1, 56, 56, 64, 64, 1, 1, 0, *_GROUPED),
            (1, 14, 14, 256, 256, 3, 1, 1, *_GROUPED),
            (1, 7, 7, 512, 512, 3, 1, 1, *_GROUPED),
        ],
    ),
    "DIL": (
        conv2d_nhwc,
        [
            (1, 224, 224, 3, 64, 7, 2, 3, 2),
            (1, 56, 56, 64, 64, 1, 1, 0, 2),
            (1, 14, 14, 256, 256, 3, 1, 1, 2),
            (1, 7, 7, 512, 512, 3, 1, 1, 2),
        ],
    ),
    "DEP": (
        depthwise_conv2d_nhwc,
        [(1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1), (1, 14, 14, 512, 3, 2, 1), (1, 7, 7, 1024, 3, 1, 1)],
    ),
    "T2D": (
        conv2d_transpose_nhwc,
        [(1, 4, 4, 512, 256, 4, 2, 1), (1, 8, 8, 256, 128, 4, 2, 1), (1, 16, 16, 128, 64, 4, 2, 1), (1, 32, 32, 64, 3, 4, 2, 1)],
    ),
    "CAP": (
        conv2d_capsule_nhwijc,
        [(1, 16, 16, 32, 32, 3, 2, 1), (1, 8, 8, 32, 32, 3, 1, 1), (1, 16, 16, 8, 16, 3, 2, 1), (1, 8, 8, 16, 16, 3, 1, 1)],
    ),
    "NRM": (norm_bmn, [(1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024)]),
    "SFM": (softmax_mn, [(256, 256), (512, 512), (1024, 1024), (2048, 2048)]),
    "CBR": (
        conv2d_nhwc_bn_relu,
        [(1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 128, 3, 2, 1), (1, 28, 28, 128, 256, 1, 2, 0), (1, 7, 7, 512, 512, 3, 1, 1)],
    ),
    "TBG": (transpose_batch_matmul, [(1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128)]),
}


def create_te_workload(name: str, idx: int) -> PrimFunc:
    """One of the sizes of a standard operator, as a function to schedule.

    Args:
        name: of `CONFIGS`.
        idx: which of its sizes.

    Raises:
        WorkloadError: for an unknown name, or a size that it hasn't.
    """
    if name not in CONFIGS or not 0 <= idx < len(CONFIGS[name][1]):
        raise WorkloadError(
            f"no workload {name!r} with size {idx}; there are {', '.join(f'{k} (0-{len(v[1]) - 1})' for k, v in CONFIGS.items())}"
        )
    function, sizes = CONFIGS[name]
    return te.create_prim_func(list(function(*sizes[idx])))
