"""The first place where two programs differ."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import ir, tir
from tensorexpr.ir.base import get_first_structural_mismatch
from tensorexpr.runtime import ObjectPath
from tensorexpr.script import from_source


def mismatch(a: Any, b: Any) -> tuple[str, str] | None:
    """The paths as text, the same whichever side comes first."""
    found, back = get_first_structural_mismatch(a, b), get_first_structural_mismatch(b, a)
    if found is None or back is None:
        assert found is back is None
        return None
    assert found == (back[1], back[0])
    return str(found[0]), str(found[1])


def func(body: str, header: str = 'A: T.Buffer((16,), "float32"), n: T.int32') -> Any:
    return from_source(f"@T.prim_func(private=True)\ndef f({header}):\n" + "".join(f"    {line}\n" for line in body.split("\n")))


@pytest.mark.parametrize(
    ("first", "second", "paths"),
    [
        ("A[n] = 1.0", "A[n] = 1.0", None),
        ("A[n] = 1.0", "A[n] = 2.0", ("<root>.body.value.value",) * 2),
        ("A[n] = 1.0", "A[n + 1] = 1.0", ("<root>.body.indices[0]",) * 2),
        ("for i in range(4):\n    A[i] = 1.0", "for i in range(5):\n    A[i] = 1.0", ("<root>.body.extent.value",) * 2),
        ("for i in range(4):\n    A[i] = 1.0", "for i in T.parallel(4):\n    A[i] = 1.0", ("<root>.body.kind",) * 2),
        ("A[0] = 1.0\nA[1] = 1.0", "A[0] = 1.0\nA[1] = 1.0\nA[2] = 1.0", ("<root>.body.seq[<missing element #2>]", "<root>.body.seq[2]")),
        ("with T.block():\n    T.evaluate(0)", "T.evaluate(0)", ("<root>.body",) * 2),
        ("x = n + 1\nA[x] = 1.0", "y = n + 1\nA[y] = 2.0", ("<root>.body.body.value.value",) * 2),
        ("T.evaluate(n)", "T.evaluate(T.int64(3))", ("<root>.body.value",) * 2),
    ],
)
def test_places(first: str, second: str, paths: tuple[str, str] | None) -> None:
    assert mismatch(func(first), func(second)) == paths


def test_parameters() -> None:
    one = func("A[0] = 1.0", 'a: T.handle, n: T.int32, A: T.Buffer((16,), "float32")')
    other = func("A[0] = 1.0", 'a: T.handle, n: T.int64, A: T.Buffer((16,), "float32")')
    assert mismatch(one, other) == ("<root>.params[1].dtype",) * 2
    wide = func("A[0] = 1.0", 'a: T.handle, n: T.int32, A: T.Buffer((32,), "float32")')
    found = get_first_structural_mismatch(one, wide)
    shape = ObjectPath.root().attr("buffer_map").map_value(one.params[2]).attr("shape").array_index(0).attr("value")
    assert found is not None and found[0] == shape
    fewer = func("A[0] = 1.0", 'A: T.Buffer((16,), "float32")')
    assert mismatch(fewer, func("A[0] = 1.0")) == ("<root>.params[<missing element #1>]", "<root>.params[1]")


def test_modules_and_attributes() -> None:
    one, other = tir.IRModule({"f": func("A[0] = 1.0")}), tir.IRModule({"f": func("A[0] = 2.0")})
    paths = get_first_structural_mismatch(one, other)
    wanted = ObjectPath.root().attr("functions").map_value(one.get_global_var("f")).attr("body").attr("value").attr("value")
    assert paths == (wanted, wanted)
    named = func("A[0] = 1.0").with_attr("a", 1)
    assert mismatch(named, func("A[0] = 1.0")) == ('<root>.attrs["a"]', "<root>.attrs[<missing entry>]")


def test_the_error_shows_both_programs_with_the_parts_marked() -> None:
    one, other = func("A[n] = 1.0"), func("A[n] = 2.0")
    with pytest.raises(ValueError, match="the programs differ") as caught:
        ir.assert_structural_equal(one, other)
    path = ObjectPath.root().attr("body").attr("value").attr("value")
    assert str(caught.value).endswith(
        f"StructuralEqual check failed, caused by lhs at {path}:\n{one.script(path_to_underline=[path], syntax_sugar=False)}\n"
        f"and rhs at {path}:\n{other.script(path_to_underline=[path], syntax_sugar=False)}"
    )


def test_free_variables() -> None:
    x, y = tir.Var("x"), tir.Var("y")
    assert mismatch(x + 1, y + 1) == ("<root>.a", "<root>.a")
    assert get_first_structural_mismatch(x + 1, y + 1, map_free_vars=True) is None
    assert mismatch(tir.const(1, "int32"), tir.const(1, "int64")) == ("<root>.dtype", "<root>.dtype")
