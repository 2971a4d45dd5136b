"""What each operator is called with. Importing this fills `CASES`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax import op
from tensorexpr.target import Target
from tensorexpr.tir.global_info import VDevice

from .operator_draws import ALL, FLOATS, INTEGERS, NUMBERS, SIGNED, Draw, binary, case, reduction, unary

unary("abs negative sign square", (*FLOATS[:2], *SIGNED))
unary("asinh atan ceil cos cosh erf exp floor isfinite isinf isnan round sigmoid sin sinh tan tanh", FLOATS[:3])
unary("acos asin atanh", FLOATS[:2], -0.9, 0.9)
unary("acosh", FLOATS[:2], 1.1, 4)
unary("log rsqrt sqrt", FLOATS[:2], 0.1, 4)
unary("bitwise_not", INTEGERS)
unary("logical_not", ("bool",))
binary("add multiply subtract maximum minimum", ALL[:-1])
binary("equal greater greater_equal less less_equal not_equal", NUMBERS)
binary("divide floor_divide floor_mod mod", NUMBERS, second=(1, 3))
binary("power", FLOATS[:2], 0.1, 3)
binary("bitwise_and bitwise_or bitwise_xor", INTEGERS)
binary("left_shift right_shift", INTEGERS, second=(0, 7))
binary("logical_and logical_or logical_xor", ("bool",))
reduction("mean prod std sum variance", FLOATS[:2], least=1)
reduction("max min", NUMBERS, least=1)


@case("argmax")
@case("argmin")
def _position(d: Draw) -> Any:
    shape = d.shape(1, least=1)
    return d.op(d.tensor(NUMBERS, shape, low=-2, high=2), d.draw(st.none() | st.just(d.axis(len(shape)))), d.coin())


@case("arange")
def _arange(d: Draw) -> Any:
    dtype = d.of(NUMBERS)
    if d.coin():
        return op.arange(d.number(0, 3), d.number(0, 9), d.number(1, 3), dtype=dtype)
    x = d.given(d.values((d.of((2, 3)),), "float32"))
    return op.arange(1, x.struct_info.extents[0] * 2, 2)  # type: ignore[attr-defined]


@case("argsort")
@case("sort")
def _sort(d: Draw) -> Any:
    shape = d.shape(1)
    x, axis, descending = d.tensor(NUMBERS, shape, low=-2, high=2), d.axis(len(shape)), d.coin()
    return op.argsort(x, axis, descending, d.of(("int32", "int64"))) if d.name == "argsort" else op.sort(x, axis, descending)


@case("topk")
def _topk(d: Draw) -> Any:
    shape, axis = d.shape(1, least=1), 0
    return op.topk(d.tensor(NUMBERS, shape), d.number(0, shape[axis]), axis, d.of(("both", "values", "indices")), d.coin(), "int64")


@case("cumsum")
@case("cumprod")
def _scan(d: Draw) -> Any:
    shape = d.shape(1)
    axis = d.draw(st.none() | st.just(d.axis(len(shape))))
    return d.op(d.tensor(NUMBERS, shape, special=False), axis, d.of((None, "float64", "int64")), d.coin())


@case("astype")
def _astype(d: Draw) -> Any:
    return op.astype(d.tensor(ALL, special=False, low=0, high=100), d.of((*ALL, "float16", "bfloat16")))


@case("broadcast_to")
def _broadcast_to(d: Draw) -> Any:
    shape = d.shape()
    return op.broadcast_to(d.tensor(ALL, d.pair(shape), static=True), shape)


@case("clip")
def _clip(d: Draw) -> Any:
    return op.clip(d.tensor((*FLOATS[:2], *SIGNED)), -1, 2)


@case("concat")
def _concat(d: Draw) -> Any:
    shape, dtype = d.shape(1), d.of(ALL)
    place = d.number(0, len(shape) - 1)
    parts = [(*shape[:place], d.of((3, 1, 0, 2)), *shape[place + 1 :]) for _ in range(d.number(1, 3))]
    return op.concat([d.tensor((dtype,), one) for one in parts], place - d.of((0, len(shape))))


@case("einsum")
def _einsum(d: Draw) -> Any:
    text = d.of(("ij,jk->ik", "...ij,...jk->...ik", "bij,bjk", "ii->i", "ij->", "i,j->ij", "ij,ij->i", "...i->..."))
    extents = {letter: d.of((3, 2, 0)) for letter in "ijkb"}
    more, dtype = d.shape(0, 2) if "..." in text else (), d.of(FLOATS[:2])
    terms = text.partition("->")[0].split(",")
    shapes = [(*(more if "..." in term else ()), *(extents[letter] for letter in term.strip("."))) for term in terms]
    return op.einsum([d.tensor((dtype,), shape, special=False) for shape in shapes], text)


@case("ewise_fma")
def _fma(d: Draw) -> Any:
    dtype, shape = d.of(NUMBERS), d.shape()
    return op.ewise_fma(*[d.tensor((dtype,), shape, special=False) for _ in range(3)])


@case("expand_dims")
def _expand_dims(d: Draw) -> Any:
    return op.expand_dims(d.tensor(ALL), d.of((0, -1, [0, -1])))


@case("eye")
def _eye(d: Draw) -> Any:
    return op.eye(d.number(0, 4), d.draw(st.none() | st.integers(0, 4)), d.number(-2, 2), d.of(ALL))


@case("eye_like")
def _eye_like(d: Draw) -> Any:
    return op.eye_like(d.tensor(ALL, d.shape(2, 2)), d.number(-2, 2), d.of((None, "float64")))


@case("flatten")
def _flatten(d: Draw) -> Any:
    return op.flatten(d.tensor(ALL))


@case("flip")
def _flip(d: Draw) -> Any:
    shape = d.shape(1)
    return op.flip(d.tensor(ALL, shape), d.axis(len(shape)))


@case("full")
def _full(d: Draw) -> Any:
    return op.full(d.shape(), d.of((1, 2.5)), d.of(FLOATS)) if d.coin() else op.full(d.shape(), d.tensor(ALL, ()))


@case("full_like")
def _full_like(d: Draw) -> Any:
    return op.full_like(d.tensor(ALL), 1, d.of((None, "int64")))


@case("gather")
@case("take")
def _gather(d: Draw) -> Any:
    shape = d.shape(1, least=1)
    axis = d.axis(len(shape))
    negative = d.name == "gather"
    indices = d.tensor(SIGNED, low=-shape[axis] if negative else 0, high=shape[axis] - 1)
    return d.op(d.tensor(ALL, shape), indices, axis)


@case("gather_elements")
def _gather_elements(d: Draw) -> Any:
    shape = d.shape(1, least=1)
    axis = d.axis(len(shape))
    places = tuple(d.of((n, 0, 5)) if k == axis % len(shape) else d.number(0, n) for k, n in enumerate(shape))
    return op.gather_elements(d.tensor(ALL, shape), d.tensor(SIGNED, places, low=-shape[axis], high=shape[axis] - 1), axis)


@case("gather_nd")
def _gather_nd(d: Draw) -> Any:
    shape = d.shape(1, least=2)
    batch = d.number(0, len(shape) - 1)
    count = d.number(0, len(shape) - batch)
    places = d.values((*shape[:batch], *d.shape(0, 2), count), "int64", -2, 1)
    return op.gather_nd(d.tensor(ALL, shape), d.given(places, static=True), batch)


@case("scatter_elements")
def _scatter_elements(d: Draw) -> Any:
    shape, reduction, dtype = d.shape(1, least=1), d.of(("update", "add", "mul", "min", "max", "mean")), d.of(NUMBERS)
    axis = d.axis(len(shape))
    places = tuple(d.number(0, n) for n in shape)
    indices = d.tensor(SIGNED, places, low=-shape[axis], high=shape[axis] - 1)
    updates = d.tensor((dtype,), places, special=False)
    return op.scatter_elements(d.tensor((dtype,), shape, special=False), indices, updates, axis, reduction)


@case("scatter_nd")
def _scatter_nd(d: Draw) -> Any:
    shape, reduction, dtype = d.shape(1, least=2), d.of(("update", "add", "mul", "min", "max", "mean")), d.of(NUMBERS)
    count, points = d.number(0, len(shape)), d.shape(0, 2)
    places = d.given(d.values((*points, count), "int64", -2, 1), static=True)
    updates = d.tensor((dtype,), (*points, *shape[count:]), special=False)
    return op.scatter_nd(d.tensor((dtype,), shape, special=False), places, updates, reduction)


@case("one_hot")
def _one_hot(d: Draw) -> Any:
    shape = d.shape()
    values: Any = (1, 0) if d.coin() else (d.tensor(("float64",), ()), d.tensor(("float64",), ()))
    return op.one_hot(d.tensor(SIGNED, shape, low=-1, high=4), *values, d.number(0, 4), d.axis(len(shape) + 1))


@case("reverse_sequence")
def _reverse(d: Draw) -> Any:
    shape, axes = d.shape(2), d.of(((0, 1), (1, 0)))
    data, lengths = d.tensor(ALL, shape), d.tensor(("int64",), (shape[axes[1]],), low=0, high=shape[axes[0]])
    return op.reverse_sequence(data, lengths, *axes)


@case("compress")
def _compress(d: Draw) -> Any:
    shape = d.shape(1)
    axis = d.draw(st.none() | st.just(d.axis(len(shape))))
    return op.compress(d.tensor(ALL, shape), d.tensor(("bool",), (int(np.prod(shape)) if axis is None else shape[axis],)), axis)


@case("nonzero")
def _nonzero(d: Draw) -> Any:
    return op.nonzero(d.tensor(ALL))


@case("unique")
def _unique(d: Draw) -> Any:
    shape = d.shape(1)
    axis = d.draw(st.none() | st.just(d.axis(len(shape))))
    return op.unique(d.tensor(NUMBERS, shape, low=-1, high=1, special=False), d.coin(), d.coin(), d.coin(), d.coin(), axis)


@case("bincount")
def _bincount(d: Draw) -> Any:
    shape = d.shape(1, 1)
    x = d.tensor(("int32", "int64"), shape, low=0, high=5)
    return (
        op.bincount(x, d.tensor(FLOATS[:2], shape, special=False), d.number(0, 8)) if d.coin() else op.bincount(x, minlength=d.number(0, 8))
    )


@case("repeat_places")
def _repeat_places(d: Draw) -> Any:
    return op.repeat_places(d.tensor(("int64",), d.shape(1, 1), low=0, high=3))


@case("gcd")
def _gcd(d: Draw) -> Any:
    dtype, shape = d.of(("int32", "int64")), d.shape()
    return op.gcd(*(d.tensor((dtype,), shape, low=-30, high=30) for _ in range(2)))


@case("matmul")
def _matmul(d: Draw) -> Any:
    dtype, batch, (i, j, k) = d.of((*FLOATS[:2], "int32")), d.shape(0, 1), (d.of((3, 1, 0)) for _ in range(3))
    return op.matmul(*[d.tensor((dtype,), shape, special=False) for shape in ((*batch, i, k), (k, j))])


@case("ones")
@case("zeros")
def _filled(d: Draw) -> Any:
    return d.op(d.shape(), d.of((*ALL, "bfloat16")))


@case("ones_like")
@case("zeros_like")
def _filled_like(d: Draw) -> Any:
    return d.op(d.tensor(ALL), d.of((None, "int64")))


@case("permute_dims")
def _permute_dims(d: Draw) -> Any:
    shape = d.shape()
    return op.permute_dims(d.tensor(ALL, shape), d.draw(st.none() | st.permutations(range(len(shape)))))


@case("repeat")
def _repeat(d: Draw) -> Any:
    shape = d.shape(1)
    return op.repeat(d.tensor(ALL, shape), d.number(0, 3), d.draw(st.none() | st.just(d.axis(len(shape)))))


@case("reshape")
def _reshape(d: Draw) -> Any:
    return op.reshape(d.tensor(ALL, (2, 3, 4)), d.of(((6, 4), (-1,), (4, 3, 2), (1, -1, 2))))


@case("shape_to_tensor")
def _shape_to_tensor(d: Draw) -> Any:
    return op.shape_to_tensor(op.shape_of(d.tensor(ALL)))


@case("tensor_to_shape")
def _tensor_to_shape(d: Draw) -> Any:
    return op.tensor_to_shape(d.tensor(("int64",), d.shape(1, 1), low=0))


@case("split")
def _split(d: Draw) -> Any:
    return op.split(d.tensor(ALL, (d.of((3, 1)), 6)), d.of((1, 2, 3, [2], [1, 4], [0, 6])), 1)


@case("squeeze")
def _squeeze(d: Draw) -> Any:
    return op.squeeze(d.tensor(ALL, (1, d.of((3, 1)), 1)), d.of((None, 0, [0, -1])))


@case("strided_slice")
def _strided_slice(d: Draw) -> Any:
    x = d.tensor(ALL, (d.of((3, 1, 0)), 6), static=True)
    return op.strided_slice(x, [1], [d.number(-7, 7)], [d.number(-7, 7)], [d.of((1, 2, -1, -2))])


@case("tile")
def _tile(d: Draw) -> Any:
    return op.tile(d.tensor(ALL), d.of((2, (2, 1), (1, 2, 3), (0, 1))))


@case("tril")
@case("triu")
def _triangle(d: Draw) -> Any:
    x = d.tensor(ALL, d.shape(2))
    k: Any = d.number(-3, 3) if d.coin() else d.tensor(("int64",), ())
    return d.op(x, k)


@case("where")
def _where(d: Draw) -> Any:
    shape, dtype = d.shape(), d.of(ALL)
    return op.where(d.tensor(("bool",), d.pair(shape)), d.tensor((dtype,), shape), d.tensor((dtype,), d.pair(shape)))


@case("bitcast")
def _bitcast(d: Draw) -> Any:
    return op.bitcast(d.tensor(("float32", "uint32", "int32")), d.of(("float32", "uint32", "int32")))


@case("det")
def _det(d: Draw) -> Any:
    n = d.of((3, 1, 2))
    return op.det(d.tensor(FLOATS[:2], (*d.shape(0, 2), n, n), special=False))


def regular(d: Draw, rows: int, columns: int, outer: tuple[int, ...]) -> Any:
    """Matrices with all singular values well apart from 0."""
    dtype = d.of(FLOATS[:2])
    drawn = np.asarray(d.values((*outer, rows, columns), dtype, special=False))
    return d.given((drawn / 8 + 3 * np.eye(rows, columns)).astype(dtype))


@case("linalg.inv")
@case("linalg.slogdet")
@case("linalg.cholesky")
@case("linalg.eigh")
@case("linalg.svd")
@case("linalg.qr")
@case("linalg.lu_factor")
@case("linalg.matrix_exp")
@case("linalg.eig")
def _factors(d: Draw) -> Any:
    rows, outer = d.number(1, 3), d.shape(0, 2)
    is_square = d.name not in ("linalg.svd", "linalg.qr", "linalg.lu_factor")
    x = regular(d, rows, rows if is_square else d.number(1, 3), outer)
    return d.op(x) if d.name in ("linalg.inv", "linalg.slogdet", "linalg.matrix_exp", "linalg.eig") else d.op(x, d.coin())


@case("linalg.lu_permutation")
def _lu_permutation(d: Draw) -> Any:
    rows, outer = d.number(2, 4), d.shape(0, 2)
    drawn = np.asarray(d.values((*outer, rows - 1), "int32", special=False)) % rows
    return op.linalg.lu_permutation(d.given((np.maximum(drawn, np.arange(rows - 1)) + 1).astype("int32")), rows)


@case("linalg.solve")
@case("linalg.solve_triangular")
def _solutions(d: Draw) -> Any:
    n, outer = d.number(1, 3), d.shape(0, 2)
    a = regular(d, n, n, outer)
    b = d.given(np.ones((*outer, n, d.number(1, 2)), a.struct_info.dtype))
    return d.op(a, b) if d.name == "linalg.solve" else d.op(a, b, d.coin(), d.coin())


@case("dft")
def _dft(d: Draw) -> Any:
    inverse, onesided, length = d.coin(), d.coin(), d.number(1, 6)
    parts = (2 if inverse else 1) if onesided else d.of((1, 2))
    return op.dft(d.tensor(FLOATS[:2], (2, d.of((3, 4)), parts), special=False), length, -2, inverse, onesided)


def sequence(d: Draw) -> Any:
    return relax.Tuple(tuple(d.tensor(("float32",), (d.of((2, 3)), 2), special=False) for _ in range(d.number(1, 3))))


@case("sequence_at")
@case("sequence_insert")
@case("sequence_erase")
@case("sequence_length")
@case("sequence_concat")
def _sequence(d: Draw) -> Any:
    parts = sequence(d)
    place = d.given(np.asarray(d.number(-len(parts.fields), len(parts.fields) - 1)))
    match d.name:
        case "sequence_at":
            return op.sequence_at(parts, place)
        case "sequence_insert":
            return op.sequence_insert(parts, d.tensor(("float32",), (1, 2)), *d.of(((), (place,))))
        case "sequence_erase":
            return op.sequence_erase(parts, *d.of(((), (place,))))
    return d.op(parts)


@case("sequence_split")
def _sequence_split(d: Draw) -> Any:
    sizes = d.given(d.of((np.asarray(2), np.asarray([1, 3, 2]), np.asarray(4))))
    return op.sequence_split(d.tensor(ALL, (3, 6)), sizes, d.of((1, -1)))


@case("null_value")
@case("has_value")
def _optional(d: Draw) -> Any:
    return op.null_value() if d.name == "null_value" else op.has_value(d.tensor() if d.coin() else op.null_value())


def texts(d: Draw, shape: Sequence[int]) -> Any:
    made = np.empty(shape, dtype=object)
    made[...] = np.asarray([d.of(("a b", "", "x,y", "B", "stop")) for _ in range(made.size)], dtype=object).reshape(shape)
    return d.given(made)


@case("string_concat")
@case("string_equal")
def _two_strings(d: Draw) -> Any:
    shape = d.shape(1)
    return d.op(texts(d, shape), texts(d, d.pair(shape)))


@case("string_split")
@case("string_normalize")
@case("regex_full_match")
@case("lookup")
def _strings(d: Draw) -> Any:
    x = texts(d, (d.number(1, 3),))
    match d.name:
        case "string_split":
            return op.string_split(x, d.of(("", ",")), d.of((-1, 0)))
        case "string_normalize":
            return op.string_normalize(x, d.of(("UPPER", "NONE")), d.coin(), ("STOP", "b"))
        case "regex_full_match":
            return op.regex_full_match(x, d.of(("[a-z]+", ".*")))
    return op.lookup(x, ("a b", "B"), (1, 2), -1, "int64")


@case("tf_idf")
def _tf_idf(d: Draw) -> Any:
    pool, counts, indexes = (2, 3, 5, 4, 5, 6, 7, 8), (0, 4), (0, 1, 2, 3, 4, 5)
    x = d.tensor(("int32", "int64"), d.of(((7,), (2, 6))), low=2, high=8)
    return op.tf_idf(x, d.of(("TF", "IDF", "TFIDF")), (1, 2), d.number(0, 3), counts, indexes, pool, (0.5, 1.0, 2.0, 1.0, 3.0, 1.0))


@case("layout_transform")
def _layout_transform(d: Draw) -> Any:
    size, pad = d.of((8, 6, 3)), d.of((None, 2))
    x = d.tensor(("float32", "int32"), (2, size), static=True)
    return op.layout_transform(x, d.of((lambda i, j: (j // 4, i, j % 4), lambda i, j: (j, i), lambda i, j: (i * size + j,))), pad)


@case("collapse_sum_to")
@case("collapse_sum_like")
def _collapse_sum(d: Draw) -> Any:
    shape = d.shape(1)
    target, data = d.pair(shape), d.tensor(FLOATS[:2], shape, special=False, static=True)
    return d.op(data, target if d.name == "collapse_sum_to" else d.tensor(("float32",), target, True))


@case("hint_on_device")
@case("to_vdevice")
def _device(d: Draw) -> Any:
    return d.op(d.tensor(ALL), VDevice(Target("llvm")))


@case("dynamic_strided_slice")
def _dynamic_slice(d: Draw) -> Any:
    starts = (((0, -3, 5), 0), ((2, -1, 9), 9), ((1, 2, -1), 1))
    bounds = [d.given(np.asarray([d.of(choice), other])) for choice, other in starts]
    return op.dynamic_strided_slice(d.tensor(ALL, (6, 3)), *bounds)


@case("multinomial_from_uniform")
def _multinomial(d: Draw) -> Any:
    n, rows = d.of((2, 3)), d.number(1, 3)
    prob = d.rng.dirichlet(np.ones(4), rows).astype("float32")
    uniform = d.values((n, 1), "float32", 0, 1, special=False)
    return op.multinomial_from_uniform(d.given(prob), d.given(uniform), d.tensor(("int64",), (n, 1), low=0, high=rows - 1))
