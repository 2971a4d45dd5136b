"""Random numbers: each is a function of a seed, of which draw of the program it is, and of its place in it.

A program that draws has a last parameter "seed", an int64 of rank 0: equal seeds give equal numbers, however the graph is fused and on
however many threads it runs, and another seed gives others. They are Threefry's (`topi.random`), so they follow PyTorch's laws and
aren't PyTorch's numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import relax
from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir import arithmetic
from ...tir.arithmetic import cast
from ...topi import random
from ...topi.transform import injective
from .table import Context, aten

_DROPPING = frozenset(("dropout", "feature_dropout", "native_dropout"))  # others PyTorch takes apart


def draws(node: Any) -> bool:
    """Whether a node of PyTorch's program draws numbers; what drops in training alone doesn't in inference."""
    tags = getattr(node.target, "tags", ())
    if not any(str(tag).endswith("nondeterministic_seeded") for tag in tags):
        return False
    name = getattr(node.target, "_opname", "")
    if name in _DROPPING:
        return bool(node.args[2] if len(node.args) > 2 else node.kwargs.get("train")) and node.args[1] != 0
    if name.startswith("rrelu"):
        return len(node.args) > 4 and bool(node.args[4])
    if name == "scaled_dot_product_attention":
        return bool(node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p"))
    # A recurrent layer drops what goes from one of its layers to the next.
    return name not in ("lstm", "gru", "rnn_tanh", "rnn_relu") or (node.args[4] > 1 and node.args[5] != 0 and bool(node.args[6]))


_LOOPS = 2


def _state(c: Context) -> Any:
    """A state of Threefry that no other draw has: its key is the seed, the number of the draw, and those of the turns of loops around."""
    if len(c.turns) > _LOOPS:
        raise DeclarationError(f"random numbers are drawn in up to {_LOOPS} loops around each other; draw those of all turns before them")
    known = [0] * (_LOOPS - len(c.turns))
    words = [c.reshape(c.op("astype", one, dtype="uint64"), [1]) for one in (c.seed, *c.turns)]
    words.insert(1, relax.const(np.array([c.drawn()], "uint64")))
    return c.op("concat", [*words, relax.const(np.array([*known, *[0] * 4, 2**63, 0], "uint64"))], axis=0)


def _of_open_size(c: Context, draw: Callable[..., Tensor], shape: Sequence[Any], name: str) -> Any:
    """What `draw` makes of a state and a shape: of a shape that only a run knows in whole blocks of four, of which the rest isn't used."""
    if all(isinstance(one, int) for one in shape):
        return c.reshape(c.builder.emit_te(partial(draw, shape=list(shape) or [1]), _state(c), primfunc_name_hint=name), shape)
    count: Any = math.prod(shape)
    found = c.builder.emit_te(partial(draw, shape=[arithmetic.floordiv(count + 3, 4) * 4]), _state(c), primfunc_name_hint=name)
    return c.reshape(c.op("strided_slice", found, [0], [0], [count]), shape)


def _te_law(gen: Tensor, law: Callable[..., Any], shape: Sequence[Any], dtype: str) -> Tensor:
    made: Tensor = law(gen, 0.0, 1.0, shape, dtype)[1]
    return made


def _drawn(c: Context, law: Callable[..., Any], shape: Sequence[Any], dtype: str) -> Any:
    """Numbers of a law with the parameters 0 and 1."""
    if any(isinstance(one, int) and one == 0 for one in shape):
        return c.op("zeros", relax.ShapeExpr(tuple(shape)), dtype)
    wide = dtype if dtype in ("float32", "float64") else "float32"
    return c.cast(_of_open_size(c, partial(_te_law, law=law, dtype=wide), shape, law.__name__), dtype)


def uniform(c: Context, shape: Sequence[Any], dtype: str) -> Any:
    """From 0 on, and below 1."""
    return _drawn(c, random.uniform, shape, dtype)


def _normal(c: Context, shape: Sequence[Any], dtype: str) -> Any:
    return _drawn(c, random.normal, shape, dtype)


@aten("rand", "rand_like")
def _rand(c: Context, *rest: Any) -> Any:
    return uniform(c, c.sizes, c.dtype)


@aten("randn", "randn_like")
def _randn(c: Context, *rest: Any) -> Any:
    return _normal(c, c.sizes, c.dtype)


def _scaled(c: Context, value: Any, factor: Any, shift: Any) -> Any:
    wide = c.op("multiply", value, c.cast(factor, c.dtype))
    return c.op("add", wide, c.cast(shift, c.dtype))


@aten("uniform")
def _uniform_between(c: Context, input: Any, low: float = 0.0, high: float = 1.0, *rest: Any) -> Any:
    return _scaled(c, uniform(c, c.sizes, c.dtype), high - low, low)


@aten("normal_functional", "normal.Tensor_float", "normal.Tensor_Tensor")
def _normal_about(c: Context, mean: Any, std: Any = 1.0, *rest: Any) -> Any:
    if rest and isinstance(rest[0], (int, float)):  # normal_functional(self, mean, std): of the first the shape alone
        mean, std = std, rest[0]
    return _scaled(c, _normal(c, c.sizes, c.dtype), std, mean)


@aten("normal.float_Tensor")
def _normal_by(c: Context, mean: float, std: Any, *rest: Any) -> Any:
    return _scaled(c, _normal(c, c.sizes, c.dtype), std, mean)


@aten("log_normal")
def _log_normal(c: Context, input: Any, mean: float = 1.0, std: float = 2.0, *rest: Any) -> Any:
    return c.op("exp", _scaled(c, _normal(c, c.sizes, c.dtype), std, mean))


def _from_one(c: Context, shape: Sequence[Any], dtype: str) -> Any:
    """Above 0 and up to 1, which have logarithms."""
    return c.op("subtract", relax.const(1, dtype), uniform(c, shape, dtype))


@aten("exponential")
def _exponential(c: Context, input: Any, rate: float = 1.0, *rest: Any) -> Any:
    return c.op("multiply", c.op("log", _from_one(c, c.sizes, c.dtype)), relax.const(-1 / rate, c.dtype))


@aten("geometric")
def _geometric(c: Context, input: Any, p: float, *rest: Any) -> Any:
    found = c.op("multiply", c.op("log", _from_one(c, c.sizes, "float64")), relax.const(1 / math.log1p(-p), "float64"))
    return c.cast(c.op("maximum", c.op("ceil", found), relax.const(1.0, "float64")), c.dtype)


@aten("cauchy")
def _cauchy(c: Context, input: Any, median: float = 0.0, sigma: float = 1.0, *rest: Any) -> Any:
    turned = _scaled(c, uniform(c, c.sizes, c.dtype), math.pi, -math.pi / 2)
    return _scaled(c, c.op("tan", turned), sigma, median)


def _te_whole(gen: Tensor, shape: Sequence[Any], low: Any, high: Any) -> Tensor:
    """Integers from low on and below high; of 64 random bits the remainder's part beyond an even share is below 2**-32."""
    words = random.threefry_generate(gen, shape)[1]
    count, least = cast(high - low, "uint64"), cast(low, "int64")
    return injective(words.shape, lambda *i: cast(words(*i) % count, "int64") + least, "randint")


def _integers(c: Context, low: Any, high: Any) -> Any:
    if isinstance(high - low, int) and not 0 < high - low < 2**32:
        raise DeclarationError(f"random integers come from a range of 1 to 2**32 - 1 numbers, not from {low} to {high}")
    return c.cast(_of_open_size(c, partial(_te_whole, low=low, high=high), c.sizes, "randint"), c.dtype)


@aten("randint", "randint.default")
def _randint(c: Context, high: int, *rest: Any) -> Any:
    return _integers(c, 0, high)


@aten("randint.low")
def _randint_between(c: Context, low: int, high: int, *rest: Any) -> Any:
    return _integers(c, low, high)


@aten("randint_like")
def _randint_like(c: Context, input: Any, high: int, *rest: Any) -> Any:
    return _integers(c, 0, high)


@aten("randint_like.low_dtype", "random.from")
def _randint_like_between(c: Context, input: Any, low: int, high: int, *rest: Any) -> Any:
    return _integers(c, low, high)


@aten("randperm")
def _permutation(c: Context, n: Any, *rest: Any) -> Any:
    # Equal keys would favour the order that they stand in: of float64 there are 2**52.
    return c.cast(c.op("argsort", uniform(c, c.sizes, "float64"), dtype="int64"), c.dtype)


def _below(c: Context, shape: Sequence[Any], p: Any) -> Any:
    """Where a draw is below a probability."""
    drawn = uniform(c, shape, "float32")
    return c.op("less", drawn, c.cast(p, "float32"))


@aten("bernoulli", "bernoulli.Tensor", "bernoulli.p")
def _bernoulli(c: Context, input: Any, p: Any = None, *rest: Any) -> Any:
    return c.cast(_below(c, c.sizes, input if p is None else p), c.dtype)


def dropped(c: Context, input: Any, p: float, shape: Sequence[Any]) -> tuple[Any, Any]:
    """What is left of a tensor, and where; the rest grows, so that the mean stays."""
    kept, dtype = _below(c, shape, 1 - p), c.dtype_of(input)
    scale = relax.const(0.0 if p == 1 else 1 / (1 - p), dtype)
    return c.op("where", kept, c.op("multiply", input, scale), relax.const(0.0, dtype)), kept


@aten("dropout")
def _dropout(c: Context, input: Any, p: float, train: bool) -> Any:
    return dropped(c, input, p, c.shape_of(input))[0] if train and p else input


@aten("native_dropout")
def _native_dropout(c: Context, input: Any, p: float, train: bool | None) -> Any:
    if train and p:
        return list(dropped(c, input, p, c.shape_of(input)))
    return [input, c.op("ones", relax.ShapeExpr(tuple(c.shape_of(input))), "bool")]


def _channels(c: Context, input: Any) -> list[Any]:
    """The shape of one draw for each channel of each image."""
    return [*c.shape_of(input)[:2], *[1] * (c.rank(input) - 2)]


@aten("feature_dropout")
def _feature_dropout(c: Context, input: Any, p: float, train: bool) -> Any:
    return dropped(c, input, p, _channels(c, input))[0] if train and p else input


@aten("rrelu_with_noise_functional", "rrelu_with_noise")
def _random_slope(
    c: Context, input: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, *rest: Any
) -> Any:
    dtype = c.dtype_of(input)
    if not training:
        found, slopes = c.op("nn.leakyrelu", input, alpha=(lower + upper) / 2), None
    else:
        drawn = c.op("multiply", uniform(c, c.shape_of(input), dtype), relax.const(upper - lower, dtype))
        slopes = c.op("add", drawn, relax.const(lower, dtype))
        slopes = c.op("where", c.op("greater", input, relax.const(0, dtype)), relax.const(1, dtype), slopes)
        found = c.op("multiply", input, slopes)
    return [found, slopes] if isinstance(c.result, (list, tuple)) else found


@aten("multinomial")
def _multinomial(c: Context, input: Any, count: int, replacement: bool = False, *rest: Any) -> Any:
    shape, dtype = c.shape_of(input), c.dtype_of(input)
    rows = shape[:-1]
    if not replacement:
        # The least of exponential times by their rates come in the order of such draws (Efraimidis and Spirakis 2006).
        times = c.op("divide", c.op("log", _from_one(c, shape, dtype)), input)
        found = c.op("topk", times, k=count, axis=-1, ret_type="indices", largest=True, dtype="int64")
        return found
    ends = c.op("cumsum", input, axis=-1)
    whole = c.op("strided_slice", ends, [len(rows)], [shape[-1] - 1], [shape[-1]])
    drawn = c.op("multiply", uniform(c, [*rows, count], dtype), whole)
    passed = c.op("less_equal", c.op("expand_dims", ends, axis=-2), c.op("expand_dims", drawn, axis=-1))
    number = c.op("sum", c.cast(passed, "int64"), axis=[-1])
    return c.op("minimum", number, relax.const(shape[-1] - 1, "int64"))
