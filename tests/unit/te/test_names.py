"""The names of te that programs of the TE era use and that mean something on a CPU."""

from __future__ import annotations

import pytest

from tensorexpr import te, tir

NAMES = [
    "ScanOp", "SpecializedCondition", "create_prim_func", "decl_tensor_intrin", "scan",
    "ComputeOp", "ExternOp", "PlaceholderOp", "Schedule", "Stage", "Tensor", "TensorSlice", "abs", "acos", "acosh", "add",
    "all", "any", "asin", "asinh", "atan", "atanh", "ceil", "comm_reducer", "compute", "const", "cos", "cosh",
    "create_schedule", "div", "erf", "exp", "extern", "extern_primfunc", "floor", "floordiv", "floormod", "fmod", "gradient",
    "if_then_else", "indexdiv", "indexmod", "isfinite", "isinf", "isnan", "log", "log10", "log2", "max", "max_value", "min",
    "min_value", "multiply", "nearbyint", "placeholder", "popcount", "power", "reduce_axis", "round", "rsqrt", "sigmoid", "sin",
    "sinh", "size_var", "sqrt", "subtract", "sum", "tag_scope", "tan", "tanh", "trace", "trunc", "truncdiv", "truncmod", "var",
    "infinity",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_there(name: str) -> None:
    assert getattr(te, name) is not None
    assert name in te.__all__


def test_slices_continue_and_elements_convert() -> None:
    a = te.placeholder((3, 4), name="a")
    i, j = te.var("i"), te.var("j")
    row = a[i]
    assert isinstance(row, te.TensorSlice)
    assert row.dtype == "float32"
    assert row[j] is a[i, j]
    assert row[j].astype("int32") is a[i, j].astype("int32")
    assert row[j].equal(a[j, i]).dtype == "bool"
    with pytest.raises(ValueError, match="tensor a has 2 dimensions, indexed with 1"):
        row.astype("int32")


def test_a_tensor_of_rank_0_is_an_element() -> None:
    a = te.placeholder((), name="a")
    assert a.astype("int32") is a().astype("int32")
    assert a.equal(tir.const(1.0)) is tir.EQ(a(), tir.const(1.0))
    with pytest.raises(ValueError, match="tensor b has 1 dimensions and is no scalar"):
        te.placeholder((3,), name="b").astype("int32")


def test_limits_of_dtypes() -> None:
    assert te.max_value("int8") is tir.IntImm("int8", 127)
    assert te.min_value("int8") is tir.IntImm("int8", -128)
    assert te.infinity("float32") is tir.FloatImm("float32", float("inf"))
