"""Operators on strings, and those of the domain ai.onnx.ml that look values up."""

from __future__ import annotations

from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op
_ML = "ai.onnx.ml"


@onnx_op("Equal", since=19)
def equal(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Whether elements are equal, strings too."""
    value = ctx.value(0)
    is_tensor = value is not None and isinstance(value.info, relax.TensorStructInfo)
    return (R.equal if is_tensor else R.string_equal)(inputs[0], inputs[1])


@onnx_op("StringConcat", since=20)
def string_concat(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Strings one behind the other."""
    return R.string_concat(inputs[0], inputs[1])


@onnx_op("StringSplit", since=20)
def string_split(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Parts of strings, and how many there are."""
    return R.string_split(inputs[0], attrs.string("delimiter", ""), attrs.int("maxsplit", -1))


@onnx_op("StringNormalizer", since=10)
def string_normalizer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Strings in capital or small letters, without stop words."""
    case, is_sensitive = attrs.string("case_change_action", "NONE"), attrs.bool("is_case_sensitive", False)
    return R.string_normalize(inputs[0], case, is_sensitive, tuple(attrs.strings("stopwords", [])))


@onnx_op("RegexFullMatch", since=20)
def regex_full_match(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Whether strings are what a regular expression says."""
    return R.regex_full_match(inputs[0], attrs.string("pattern"))


@onnx_op("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Counts of n-grams."""
    pool = attrs.strings("pool_strings", None) or attrs.ints("pool_int64s", None)
    if not pool:
        ctx.fail("a pool of strings or of integers is wanted")
    lengths = (attrs.int("min_gram_length"), attrs.int("max_gram_length"))
    counts, indexes = tuple(attrs.ints("ngram_counts")), tuple(attrs.ints("ngram_indexes"))
    weights = attrs.floats("weights", None)
    given = None if weights is None else tuple(weights)
    return R.tf_idf(inputs[0], attrs.string("mode"), lengths, attrs.int("max_skip_count"), counts, indexes, tuple(pool), given)


def _of_kinds(attrs: Attributes, stem: str) -> tuple[list[Any], str] | None:
    """A list that one of several attributes gives, and the dtype of its elements."""
    for kind, dtype in (("strings", "string"), ("int64s", "int64"), ("floats", "float32")):
        name = f"{stem}_{kind}"
        if name in attrs:
            found = attrs.strings(name) if kind == "strings" else attrs.ints(name) if kind == "int64s" else attrs.floats(name)
            return found, dtype
    if f"{stem}_tensor" in attrs:
        array = attrs.tensor(f"{stem}_tensor")
        items = [one.decode() if isinstance(one, bytes) else one for one in array.ravel().tolist()]
        return items, "string" if array.dtype == object else str(array.dtype)
    return None


_DEFAULTS = {"string": "_Unused", "int64": -1, "float32": -0.0}


@onnx_op("LabelEncoder", since=2, domain=_ML)
def label_encoder(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The values of keys."""
    keys, values = _of_kinds(attrs, "keys"), _of_kinds(attrs, "values")
    if keys is None or values is None:
        ctx.fail("keys and values are wanted")
    dtype = values[1]
    if "default_tensor" in attrs:
        default: Any = attrs.tensor("default_tensor").ravel().tolist()[0]
        default = default.decode() if isinstance(default, bytes) else default
    elif dtype == "string":
        default = attrs.string("default_string", _DEFAULTS[dtype])
    else:
        default = attrs.int("default_int64", -1) if dtype == "int64" else attrs.float("default_float", -0.0)
    return R.lookup(inputs[0], tuple(keys[0]), tuple(values[0]), default, dtype)


@onnx_op("Binarizer", domain=_ML)
def binarizer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """One for elements above a threshold, else zero."""
    dtype = ctx.dtype(0)
    return R.astype(R.greater(inputs[0], relax.const(attrs.float("threshold", 0.0), dtype)), dtype)


@onnx_op("ArrayFeatureExtractor", domain=_ML)
def array_feature_extractor(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements along the last axis."""
    found = R.gather(inputs[0], R.reshape(inputs[1], (-1,)), -1)
    return R.expand_dims(found, 0) if ctx.rank(0) == 1 else found
