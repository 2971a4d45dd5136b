"""Networks by BlockBuilder, with weights that a seed decides: ResNet-50 (He et al. 2016), a layer of BERT (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tir.function import IRModule
from .. import op
from ..block_builder import BlockBuilder
from ..expr import Constant, Var, const
from ..struct_info import TensorStructInfo

# Blocks and channels of the narrow convolutions, stage by stage.
_RESNET50 = ((3, 64), (4, 128), (6, 256), (3, 512))


class _Weights:
    """Random constants, small enough that values keep their size from layer to layer."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def normal(self, shape: Sequence[int], fan_in: int) -> Constant:
        """Of a variance of 2 / fan_in."""
        return const((self._rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype("float32"))

    def positive(self, shape: Sequence[int]) -> Constant:
        """Between a half and one and a half."""
        return const(self._rng.uniform(0.5, 1.5, shape).astype("float32"))


def resnet50(batch: int = 1, batch_norm: bool = False, classes: int = 1000, seed: int = 0) -> IRModule:
    """ResNet-50 on 224 by 224 pixels, channels first: its function "main" takes data[batch, 3, 224, 224] to probabilities[batch, classes].

    Args:
        batch: images at once.
        batch_norm: whether convolutions are followed by batch norms, else by biases.
        classes: of the result.
        seed: of the weights.
    """
    weights, bb = _Weights(seed), BlockBuilder()
    data = Var("data", TensorStructInfo((batch, 3, 224, 224), "float32"))

    def conv(x: Any, channels: int, kernel: int, stride: int = 1) -> Any:
        given = x.struct_info.shape.values[1].value
        w = weights.normal((channels, given, kernel, kernel), given * kernel * kernel)
        y = bb.emit(op.nn.conv2d(x, w, strides=stride, padding=kernel // 2))
        if not batch_norm:
            return bb.emit(op.add(y, weights.normal((1, channels, 1, 1), 50)))
        scale, shift, mean = weights.positive((channels,)), weights.normal((channels,), 50), weights.normal((channels,), 50)
        return bb.emit(bb.emit(op.nn.batch_norm(y, scale, shift, mean, weights.positive((channels,)), axis=1))[0])

    def block(x: Any, channels: int, stride: int) -> Any:
        wide = 4 * channels
        short = x if x.struct_info.shape.values[1].value == wide else conv(x, wide, 1, stride)
        y = bb.emit(op.nn.relu(conv(x, channels, 1)))
        y = bb.emit(op.nn.relu(conv(y, channels, 3, stride)))
        return bb.emit(op.nn.relu(bb.emit(op.add(conv(y, wide, 1), short))))

    with bb.function("main", [data]):
        with bb.dataflow():
            x = bb.emit(op.nn.relu(conv(data, 64, 7, 2)))
            x = bb.emit(op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1)))
            for stage, (blocks, channels) in enumerate(_RESNET50):
                for number in range(blocks):
                    x = block(x, channels, 2 if stage and not number else 1)
            x = bb.emit(op.reshape(bb.emit(op.nn.adaptive_avg_pool2d(x, 1)), (batch, 2048)))
            x = bb.emit(op.add(op.matmul(x, weights.normal((2048, classes), 2048)), weights.normal((classes,), 50)))
            out = bb.emit_output(op.nn.softmax(x))
        bb.emit_func_output(out)
    return bb.get()


def bert_layer(batch: int = 1, tokens: int = 128, width: int = 768, heads: int = 12, layers: int = 1, seed: int = 0) -> IRModule:
    """Layers of BERT's encoder, norms behind: "main" takes hidden[batch, tokens, width] and mask[batch, 1, 1, tokens], added to scores.

    Args:
        batch, tokens, width, heads: sizes.
        layers: how many, one after the other.
        seed: of the weights.
    """
    weights, bb, inner = _Weights(seed), BlockBuilder(), 4 * width
    hidden = Var("hidden", TensorStructInfo((batch, tokens, width), "float32"))
    mask = Var("mask", TensorStructInfo((batch, 1, 1, tokens), "float32"))

    def dense(x: Any, given: int, made: int) -> Any:
        return bb.emit(op.add(bb.emit(op.matmul(x, weights.normal((given, made), 2 * given))), weights.normal((made,), 50)))

    def by_heads(x: Any) -> Any:
        return bb.emit(op.permute_dims(bb.emit(op.reshape(x, (batch, tokens, heads, width // heads))), (0, 2, 1, 3)))

    def norm(x: Any) -> Any:
        return bb.emit(op.nn.layer_norm(x, weights.positive((width,)), weights.normal((width,), 50), -1, 1e-12))

    def gelu(x: Any) -> Any:
        half, one = const(0.5, "float32"), const(1.0, "float32")
        risen = bb.emit(op.add(bb.emit(op.erf(bb.emit(op.divide(x, const(float(np.sqrt(2.0)), "float32"))))), one))
        return bb.emit(op.multiply(bb.emit(op.multiply(x, risen)), half))

    with bb.function("main", [hidden, mask]):
        with bb.dataflow():
            x: Any = hidden
            for _ in range(layers):
                q, k, v = (by_heads(dense(x, width, width)) for _ in range(3))
                scores = bb.emit(op.matmul(q, bb.emit(op.permute_dims(k, (0, 1, 3, 2)))))
                scores = bb.emit(op.divide(scores, const(float(np.sqrt(width / heads)), "float32")))
                parts = bb.emit(op.nn.softmax(bb.emit(op.add(scores, mask))))
                found = bb.emit(op.permute_dims(bb.emit(op.matmul(parts, v)), (0, 2, 1, 3)))
                x = norm(bb.emit(op.add(dense(bb.emit(op.reshape(found, (batch, tokens, width))), width, width), x)))
                x = norm(bb.emit(op.add(dense(gelu(dense(x, width, inner)), inner, width), x)))
            out = bb.emit_output(x)
        bb.emit_func_output(out)
    return bb.get()
