"""Operators on tensors of strings, which are NumPy's arrays of objects; they run on the host, and nothing is known of their shapes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ..struct_info import ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .row import Expr, operator

_CASES: Mapping[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": lambda text: text}


def _objects(items: Sequence[Any], shape: Sequence[int]) -> Any:
    # np.array would make strings of a fixed width of them.
    made = np.empty(len(items), dtype=object)
    made[:] = list(items)
    return made.reshape(shape)


def _texts(x: Any) -> list[str]:
    """The strings of an array in order."""
    return [one.decode() if isinstance(one, bytes) else str(one) for one in np.asarray(x).ravel().tolist()]


def _np_concat(x1: Any, x2: Any) -> Any:
    a, b = np.broadcast_arrays(np.asarray(x1), np.asarray(x2))
    return _objects([one + other for one, other in zip(_texts(a), _texts(b), strict=True)], a.shape)


@operator("string_concat", numpy=_np_concat)
def string_concat(x1: Expr, x2: Expr) -> StructInfo:
    """Strings one behind the other; shapes broadcast."""
    return ObjectStructInfo()


def _np_equal(x1: Any, x2: Any) -> Any:
    a, b = np.broadcast_arrays(np.asarray(x1), np.asarray(x2))
    return np.asarray([one == other for one, other in zip(_texts(a), _texts(b), strict=True)], bool).reshape(a.shape)


@operator("string_equal", numpy=_np_equal)
def string_equal(x1: Expr, x2: Expr) -> StructInfo:
    """Whether strings are equal; shapes broadcast."""
    return TensorStructInfo(None, "bool", ndim=-1)


def _np_split(x: Any, delimiter: str, maxsplit: int) -> Any:
    parts = [one.split(delimiter or None, maxsplit) for one in _texts(x)]
    most = max(map(len, parts), default=0)
    padded = [one for row in parts for one in [*row, *[""] * (most - len(row))]]
    return _objects(padded, (*x.shape, most)), np.asarray([len(one) for one in parts], np.int64).reshape(x.shape)


@operator("string_split", numpy=_np_split)
def string_split(x: Expr, delimiter: str = "", maxsplit: int = -1) -> StructInfo:
    """The parts of strings along a new last axis, filled up with empty ones, and how many there are of each.

    Without a delimiter the parts are those between runs of white space. `maxsplit` is the most cuts, -1 for all.
    """
    return TupleStructInfo((ObjectStructInfo(), TensorStructInfo(None, "int64", ndim=-1)))


def _np_match(x: Any, pattern: str) -> Any:
    compiled = re.compile(pattern)
    return np.asarray([compiled.fullmatch(one) is not None for one in _texts(x)], bool).reshape(x.shape)


@operator("regex_full_match", numpy=_np_match)
def regex_full_match(x: Expr, pattern: str) -> StructInfo:
    """Whether strings are what a regular expression says from end to end."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise DeclarationError(f"relax.op.regex_full_match: {pattern!r} is no regular expression: {error}") from None
    return TensorStructInfo(None, "bool", ndim=-1)


def _np_normalize(x: Any, case: str, is_case_sensitive: bool, stopwords: Sequence[str]) -> Any:
    def plain(text: str) -> str:
        return text if is_case_sensitive else text.lower()

    left_out = {plain(one) for one in stopwords}
    kept = [_CASES[case](one) for one in _texts(x) if plain(one) not in left_out] or [""]
    return _objects(kept, (*x.shape[:-1], len(kept)))


@operator("string_normalize", numpy=_np_normalize)
def string_normalize(x: Expr, case: str = "NONE", is_case_sensitive: bool = False, stopwords: Sequence[str] = ()) -> StructInfo:
    """The strings of a tensor [n] or [1, n] but for stop words, in small or capital letters: one empty string if none is left."""
    if case not in _CASES:
        raise DeclarationError(f"relax.op.string_normalize: case is {case!r}; it takes {', '.join(_CASES)}")
    return ObjectStructInfo()


def _grams(row: Sequence[Any], lengths: range, skips: int) -> Iterator[tuple[Any, ...]]:
    """The n-grams of a row whose elements stand so far apart; those of one element once."""
    for length in lengths:
        for step in range(1, (skips if length > 1 else 0) + 2):
            for first in range(len(row) - (length - 1) * step):
                yield tuple(row[first : first + (length - 1) * step + 1 : step])


def _np_tf_idf(
    x: Any,
    mode: str,
    lengths: Sequence[int],
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool: Sequence[Any],
    weights: Sequence[float] | None,
) -> Any:
    places: dict[tuple[Any, ...], int] = {}  # of each n-gram of the pool
    bounds = [*ngram_counts, len(pool)]
    for length, (start, end) in enumerate(pairwise(bounds), 1):
        for first in range(start, end, length):
            # Numbered as they stand in the pool: that is what indexes and weights go by.
            places[tuple(pool[first : first + length])] = len(places)
    wide = np.atleast_2d(x)
    made = np.zeros((len(wide), max(ngram_indexes) + 1), np.float32)
    for number, row in enumerate(wide):
        items = _texts(row) if isinstance(pool[0], str) else [int(one) for one in row]
        counts = Counter(places[gram] for gram in _grams(items, range(lengths[0], lengths[1] + 1), max_skip_count) if gram in places)
        for place, count in counts.items():
            weight = 1.0 if mode == "TF" or weights is None else weights[place]
            made[number, ngram_indexes[place]] = weight * (min(count, 1) if mode == "IDF" else count)
    return made if x.ndim > 1 else made[0]


@operator("tf_idf", numpy=_np_tf_idf)
def tf_idf(
    x: Expr,
    mode: str,
    lengths: Sequence[int],
    max_skip_count: int,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool: Sequence[Any],
    weights: Sequence[float] | None = None,
) -> StructInfo:
    """How often n-grams of a pool occur in [n], or in each row of [m, n]: float32 [largest index + 1], or [m, that].

    Args:
        mode: "TF" for counts, "IDF" for the weights of those that occur, "TFIDF" for counts times weights.
        lengths: the shortest and the longest n-gram.
        max_skip_count: how many elements may be left out between two of an n-gram.
        ngram_counts: where in the pool those of 1, 2, ... elements begin.
        ngram_indexes: which element of the result counts each n-gram.
        pool: strings or integers.
        weights: of each n-gram.
    """
    if mode not in ("TF", "IDF", "TFIDF") or len(lengths) != 2:
        raise DeclarationError(f"relax.op.tf_idf: mode is {mode!r} and lengths {lengths}; modes are TF, IDF and TFIDF, lengths are two")
    info = x.struct_info
    ndim = info.ndim if isinstance(info, TensorStructInfo) else -1
    size = max(ngram_indexes) + 1
    if ndim == 1:
        return TensorStructInfo((size,), "float32")
    rows = info.extents[0] if isinstance(info, TensorStructInfo) and info.extents else None
    return TensorStructInfo(None if rows is None else (rows, size), "float32", ndim=ndim)


def _np_lookup(x: Any, keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: str) -> Any:
    table = dict(zip(keys, values, strict=True))
    # NaN isn't found by its hash: it differs from itself.
    nan = next((value for key, value in table.items() if key != key), default)
    given = _texts(x) if isinstance(keys[0], str) else np.asarray(x).ravel().tolist()
    found = [nan if one != one else table.get(one, default) for one in given]
    return _objects(found, x.shape) if dtype == "string" else np.asarray(found).astype(dtype).reshape(x.shape)


@operator("lookup", numpy=_np_lookup)
def lookup(x: Expr, keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: str) -> StructInfo:
    """For each element the value of the key that it equals, else the default: numbers of a dtype, or strings for "string"."""
    if len(keys) != len(values) or not keys:
        raise DeclarationError(f"relax.op.lookup: {len(keys)} keys for {len(values)} values")
    if dtype == "string":
        return ObjectStructInfo()
    info = x.struct_info
    return (
        TensorStructInfo(info.shape, dtype, ndim=info.ndim)
        if isinstance(info, TensorStructInfo)
        else TensorStructInfo(None, dtype, ndim=-1)
    )
