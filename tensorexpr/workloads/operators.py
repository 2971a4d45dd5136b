"""The registered workloads of the suites, declared with topi. Shapes are given in the order that each docstring says.

Names start with "suite." so that they never take a name that users want for their own.
"""

from __future__ import annotations

from .. import te, topi
from ..auto_scheduler.workload import register_workload
from ..te.tensor import Tensor
from ..tir.expr import PrimExpr, Var

Tensors = list[Tensor]


@register_workload("suite.gemm")
def gemm(m: int, n: int, k: int, dtype: str = "float32") -> Tensors:
    """C[m, n] = A[m, k] B[k, n]."""
    a, b = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B")
    return [a, b, topi.nn.matmul(a, b)]


@register_workload("suite.gemm_low")
def gemm_low(m: int, n: int, k: int, dtype_a: str, dtype_b: str, out_dtype: str) -> Tensors:
    """C[m, n] = A[m, k] B[k, n] of small operands, summed in `out_dtype`."""
    a, b = te.placeholder((m, k), dtype_a, "A"), te.placeholder((k, n), dtype_b, "B")
    return [a, b, topi.nn.matmul(a, b, out_dtype=out_dtype)]


@register_workload("suite.dense")
def dense(m: int, n: int, k: int, activation: str = "") -> Tensors:
    """relu or gelu of data[m, k] times the transpose of weight[n, k], plus bias[n]."""
    data, weight, bias = te.placeholder((m, k), name="data"), te.placeholder((n, k), name="weight"), te.placeholder((n,), name="bias")
    out = topi.nn.dense(data, weight, bias)
    return [data, weight, bias, {"": out, "relu": topi.nn.relu(out), "gelu": topi.nn.gelu(out)}[activation]]


@register_workload("suite.batch_gemm")
def batch_gemm(b: int, m: int, n: int, k: int, transpose_b: bool = False) -> Tensors:
    """C[b, m, n] = A[b, m, k] B[b, k, n], or B[b, n, k] transposed."""
    x = te.placeholder((b, m, k), name="A")
    y = te.placeholder((b, n, k) if transpose_b else (b, k, n), name="B")
    return [x, y, topi.nn.batch_matmul(x, y, transpose_b=transpose_b)]


@register_workload("suite.transpose_batch_gemm")
def transpose_batch_gemm(batch: int, seq_len: int, n_head: int, n_dim: int) -> Tensors:
    """Attention scores out of [batch, seq, head, dim]: query and key are read through transposes (TBG of the Ansor paper)."""
    query = te.placeholder((batch, seq_len, n_head, n_dim), name="query")
    value = te.placeholder((batch, seq_len, n_head, n_dim), name="value")
    query_t = te.compute((batch, n_head, seq_len, n_dim), lambda b, h, i, d: query[b, i, h, d], name="query_T")
    value_t = te.compute((batch, n_head, n_dim, seq_len), lambda b, h, d, i: value[b, i, h, d], name="value_T")
    k = te.reduce_axis((0, n_dim), name="k")
    shape = (batch, n_head, seq_len, seq_len)
    out = te.compute(shape, lambda b, h, i, j: te.sum(query_t[b, h, i, k] * value_t[b, h, k, j], axis=k), name="C")
    return [query, value, out]


@register_workload("suite.attention_scores")
def attention_scores(heads: int, seq: int, dim: int) -> Tensors:
    """softmax(Q K^T / sqrt(dim)) for each head, Q and K of [heads, seq, dim]."""
    query, key = te.placeholder((heads, seq, dim), name="Q"), te.placeholder((heads, seq, dim), name="K")
    scores = topi.nn.batch_matmul(query, key)
    scaled = te.compute(scores.shape, lambda h, i, j: scores[h, i, j] * te.const(dim**-0.5, "float32"), name="scaled")
    return [query, key, topi.nn.softmax(scaled)]


@register_workload("suite.conv1d")
def conv1d(
    n: int, length: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1
) -> Tensors:
    """data[n, length, ci], kernel[kernel, ci, co]: C1D of the Ansor paper."""
    data, weight = te.placeholder((n, length, ci), name="data"), te.placeholder((kernel, ci // groups, co), name="weight")
    return [data, weight, topi.nn.conv(data, weight, stride, padding, dilation, groups, "NWC", "WIO")]


@register_workload("suite.conv2d")
def conv2d(
    n: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1
) -> Tensors:
    """data[n, h, w, ci], kernel[kernel, kernel, ci/groups, co]: C2D, DIL and GRP of the Ansor paper."""
    data, weight = te.placeholder((n, h, w, ci), name="data"), te.placeholder((kernel, kernel, ci // groups, co), name="weight")
    return [data, weight, topi.nn.conv(data, weight, stride, padding, dilation, groups, "NHWC", "HWIO")]


@register_workload("suite.conv3d")
def conv3d(n: int, d: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> Tensors:
    """data[n, d, h, w, ci], kernel[kernel, kernel, kernel, ci, co]: C3D of the Ansor paper."""
    data, weight = te.placeholder((n, d, h, w, ci), name="data"), te.placeholder((kernel, kernel, kernel, ci, co), name="weight")
    return [data, weight, topi.nn.conv(data, weight, stride, padding, 1, 1, "NDHWC", "DHWIO")]


@register_workload("suite.depthwise")
def depthwise(n: int, h: int, w: int, c: int, kernel: int, stride: int = 1, padding: int = 0, multiplier: int = 1) -> Tensors:
    """data[n, h, w, c], kernel[kernel, kernel, c, multiplier]: DEP of the Ansor paper."""
    data, weight = te.placeholder((n, h, w, c), name="data"), te.placeholder((kernel, kernel, c, multiplier), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, stride, padding, 1)]


@register_workload("suite.depthwise_nchw")
def depthwise_nchw(n: int, c: int, h: int, w: int, kernel: int, stride: int = 1, padding: int = 0, fused: bool = False) -> Tensors:
    """data[n, c, h, w], kernel[c, 1, kernel, kernel], and with `fused` bias[c] and relu6."""
    data, weight = te.placeholder((n, c, h, w), name="data"), te.placeholder((c, 1, kernel, kernel), name="weight")
    out = topi.nn.depthwise_conv2d_nchw(data, weight, stride, padding, 1)
    if not fused:
        return [data, weight, out]
    bias = te.placeholder((c,), name="bias")
    return [data, weight, bias, topi.clip(topi.nn.bias_add(out, bias), 0.0, 6.0)]


@register_workload("suite.conv2d_transpose")
def conv2d_transpose(n: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> Tensors:
    """data[n, h, w, ci], kernel[kernel, kernel, ci, co]: T2D of the Ansor paper, as the gradient of a convolution.

    An output is the sum over those taps that meet an input, so that nothing is multiplied with the zeros between inputs.
    """
    data, weight = te.placeholder((n, h, w, ci), name="inputs"), te.placeholder((kernel, kernel, ci, co), name="weight")
    # as many inputs beside the plane as a window of taps reaches
    border = (kernel - 1 + stride - 1) // stride
    height, width = ((size - 1) * stride + kernel - 2 * padding for size in (h, w))
    shift = border * stride - (kernel - 1 - padding)

    def padded(b: Var, y: Var, x: Var, c: Var) -> PrimExpr:
        inside = te.all(y >= border, y < h + border, x >= border, x < w + border)
        return te.if_then_else(inside, data[b, y - border, x - border, c], te.const(0.0, "float32"))

    inputs = te.compute((n, h + 2 * border, w + 2 * border, ci), padded, name="data_pad", tag="injective,pad")
    rh, rw = te.reduce_axis((0, kernel), name="rh"), te.reduce_axis((0, kernel), name="rw")
    rc = te.reduce_axis((0, ci), name="rc")

    def body(b: Var, y: Var, x: Var, o: Var) -> PrimExpr:
        row, column = y + rh + shift, x + rw + shift
        # inputs lie `stride` apart in the plane of taps; what lies between them would be zero
        meets = te.all((row % stride).equal(0), (column % stride).equal(0))
        product = inputs[b, row // stride, column // stride, rc] * weight[kernel - 1 - rh, kernel - 1 - rw, rc, o]
        return te.sum(te.if_then_else(meets, product, te.const(0.0, "float32")), axis=[rh, rw, rc])

    return [data, weight, te.compute((n, height, width, co), body, name="conv2d_transpose_nhwc")]


@register_workload("suite.capsule")
def capsule(n: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, size: int = 4) -> Tensors:
    """data[n, h, w, size, size, ci], kernel[kernel, kernel, size, size, ci, co]: CAP of the Ansor paper."""
    data = te.placeholder((n, h, w, size, size, ci), name="inputs")
    weight = te.placeholder((kernel, kernel, size, size, ci, co), name="weight")
    pad = topi.nn.pad(data, (0, padding, padding, 0, 0, 0), name="PadInput") if padding else data
    height, width = ((extent + 2 * padding - kernel) // stride + 1 for extent in (h, w))
    rh, rw = te.reduce_axis((0, kernel), name="rh"), te.reduce_axis((0, kernel), name="rw")
    inner, rc = te.reduce_axis((0, size), name="cap_k"), te.reduce_axis((0, ci), name="rc")

    def body(b: Var, y: Var, x: Var, i: Var, j: Var, o: Var) -> PrimExpr:
        product = pad[b, y * stride + rh, x * stride + rw, i, inner, rc] * weight[rh, rw, inner, j, rc, o]
        return te.sum(product, axis=[rh, rw, inner, rc])

    return [data, weight, te.compute((n, height, width, size, size, co), body, name="conv2d_capsule_nhwijc")]


@register_workload("suite.norm")
def norm(b: int, m: int, n: int) -> Tensors:
    """sqrt of the sum of squares of each matrix of A[b, m, n]: NRM of the Ansor paper."""
    data = te.placeholder((b, m, n), name="A")
    i, j = te.reduce_axis((0, m), name="i"), te.reduce_axis((0, n), name="j")
    squares = te.compute((b,), lambda batch: te.sum(data[batch, i, j] * data[batch, i, j], axis=[i, j]), name="C")
    return [data, te.compute((b,), lambda batch: te.sqrt(squares[batch]), name="D")]


@register_workload("suite.conv_layer")
def conv_layer(n: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> Tensors:
    """Convolution, bias, batch normalisation with constants, relu; channels last: ConvLayer of the Ansor paper."""
    data, weight = te.placeholder((n, h, w, ci), name="data"), te.placeholder((kernel, kernel, ci, co), name="kernel")
    bias, scale, offset = (te.placeholder((co,), name=name) for name in ("bias", "bn_scale", "bn_offset"))
    conv = topi.nn.conv2d_nhwc(data, weight, stride, padding, 1)
    biased = te.compute(conv.shape, lambda b, y, x, o: conv[b, y, x, o] + bias[o], name="bias_add")
    scaled = te.compute(conv.shape, lambda b, y, x, o: biased[b, y, x, o] * scale[o], name="bn_mul")
    shifted = te.compute(conv.shape, lambda b, y, x, o: scaled[b, y, x, o] + offset[o], name="bn_add")
    return [data, weight, bias, offset, scale, topi.nn.relu(shifted)]


@register_workload("suite.conv2d_bias_relu")
def conv2d_bias_relu(n: int, ci: int, h: int, w: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> Tensors:
    """relu(conv2d(data[n, ci, h, w], weight[co, ci, kernel, kernel]) + bias[co]), channels first."""
    data, weight = te.placeholder((n, ci, h, w), name="data"), te.placeholder((co, ci, kernel, kernel), name="weight")
    bias = te.placeholder((co,), name="bias")
    return [data, weight, bias, topi.nn.relu(topi.nn.bias_add(topi.nn.conv2d_nchw(data, weight, stride, padding, 1), bias))]


@register_workload("suite.conv2d_bias_relu_packed")
def conv2d_bias_relu_packed(
    n: int, ci: int, h: int, w: int, co: int, kernel: int, stride: int = 1, padding: int = 0, block: int = 32
) -> Tensors:
    """suite.conv2d_bias_relu with constant weights, packed once as weight[ceil(co/block), kernel, kernel, ci, block]."""
    data = te.placeholder((n, ci, h, w), name="data")
    weight = te.placeholder(((co + block - 1) // block, kernel, kernel, ci, block), name="weight")
    bias = te.placeholder((co,), name="bias")
    padded = topi.nn.pad(data, (0, 0, padding, padding), name="data_pad") if padding else data
    height, width = ((extent + 2 * padding - kernel) // stride + 1 for extent in (h, w))
    rh, rw = te.reduce_axis((0, kernel), name="rh"), te.reduce_axis((0, kernel), name="rw")
    rc = te.reduce_axis((0, ci), name="rc")

    def body(b: Var, o: Var, y: Var, x: Var) -> PrimExpr:
        product = padded[b, rc, y * stride + rh, x * stride + rw] * weight[o // block, rh, rw, rc, o % block]
        return te.sum(product, axis=[rc, rh, rw])

    conv = te.compute((n, co, height, width), body, name="conv2d_packed")
    return [data, weight, bias, topi.nn.relu(topi.nn.bias_add(conv, bias))]


@register_workload("suite.softmax")
def softmax(m: int, n: int) -> Tensors:
    """softmax over the rows of A[m, n]."""
    data = te.placeholder((m, n), name="A")
    return [data, topi.nn.softmax(data)]


@register_workload("suite.layer_norm")
def layer_norm(m: int, n: int) -> Tensors:
    """Layer normalisation of the rows of A[m, n] with gamma[n] and beta[n], in its stable form."""
    data, gamma, beta = te.placeholder((m, n), name="A"), te.placeholder((n,), name="gamma"), te.placeholder((n,), name="beta")
    return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, 1)]


@register_workload("suite.matvec")
def matvec(n: int, k: int) -> Tensors:
    """y[1, n] = x[1, k] B[k, n]."""
    return gemm(1, n, k)


@register_workload("suite.elementwise")
def elementwise(size: int) -> Tensors:
    """relu(a * b + c) of vectors."""
    a, b, c = (te.placeholder((size,), name=name) for name in "abc")
    return [a, b, c, te.compute((size,), lambda i: te.max(a[i] * b[i] + c[i], te.const(0.0, "float32")), name="out")]


@register_workload("suite.elementwise_chain")
def elementwise_chain(size: int) -> Tensors:
    """tanh(sigmoid(a) * b) + exp(-a * a), as four stages."""
    a, b = te.placeholder((size,), name="a"), te.placeholder((size,), name="b")
    gate = topi.sigmoid(a)
    mixed = topi.tanh(topi.multiply(gate, b))
    bell = topi.exp(topi.negative(topi.multiply(a, a)))
    return [a, b, topi.add(mixed, bell)]


@register_workload("suite.reduce")
def reduce(m: int, n: int, axis: int) -> Tensors:
    """The sum of A[m, n] over one axis."""
    data = te.placeholder((m, n), name="A")
    return [data, topi.sum(data, axis)]


@register_workload("suite.transpose")
def transpose(m: int, n: int) -> Tensors:
    """The transpose of A[m, n]."""
    data = te.placeholder((m, n), name="A")
    return [data, topi.transpose(data)]
