"""The options of `script()`: what each changes in the text, as TVM 0.19 has it."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.script import from_source
from tensorexpr.tir.object_path import ObjectPath
from tensorexpr.tir.structural_difference import assert_structural_equal

FUNC: Any = from_source("""@T.prim_func
def f(a: T.handle, B: T.Buffer((16, 16), "float16"), n: T.int32):
    A = T.match_buffer(a, (n, 16))
    C = T.alloc_buffer((4,))
    for i, j in T.grid(16, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.Cast("float16", A[vi, vj] * T.float32(2) + T.Cast("float32", vi))
    for k in T.serial(4, 8):
        with T.block("c"):
            vk = T.axis.spatial(4, k - 4)
            C[vk] = T.float32(1)
""")
ROOT: Any = FUNC.body
FIRST, SECOND = ROOT.block.body.seq
BODY = ObjectPath.root().attr("body").attr("block").attr("body").attr("seq")


def lines(**options: Any) -> list[str]:
    text: str = FUNC.script(**options)
    return text.split("\n")


def test_without_sugar() -> None:
    found = lines(syntax_sugar=False)
    assert found[3] == "def f(a: T.handle, B_handle: T.handle, n: T.int32):"
    assert found[6:9] == ['    with T.block("root"):', "        T.reads()", "        T.writes()"]
    assert [line.strip() for line in found[10:14]] == [
        "for i in range(16):", "for j in range(16):", 'with T.block("b"):', "vi = T.axis.spatial(16, i)",
    ]  # fmt: skip


def test_names_of_the_language() -> None:
    found = lines(tir_prefix="X", name="g")
    assert found[0].endswith("import tir as X") and found[2:4] == [
        "@X.prim_func",
        'def g(a: X.handle, B: X.Buffer((16, 16), "float16"), n: X.int32):',
    ]
    assert found[4] == '    X.func_attr({"global_symbol": "f"})' and '    # with X.block("root"):' in found
    text = from_source('@T.prim_func\ndef f():\n    T.evaluate(T.call_extern("int32", "T.f(T.g)"))').script(tir_prefix="X")
    assert 'X.call_extern("int32", "T.f(T.g)")' in text


def test_dtypes_that_are_not_written() -> None:
    found = "\n".join(lines(int_dtype="int64", float_dtype="float32", buffer_dtype="float16"))
    assert 'T.Buffer((T.int32(16), T.int32(16)), "float16")' in found and "T.grid(T.int32(16), T.int32(16))" in found
    assert "C[vk] = 1.0" in found and 'C = T.alloc_buffer((T.int32(4),), "float32")' in found


def test_lines_and_their_numbers() -> None:
    found = lines(print_line_numbers=True, indent_spaces=2)
    assert (
        found[0].startswith(" 1 # from ")
        and found[7] == " 8   for i, j in T.grid(16, 16):"
        and found[8] == '10     with T.block("b"):'.replace("10", " 9")
    )


def under(found: list[str]) -> list[str]:
    """What stands above each row of carets, cut to the carets."""
    rows = [number for number, line in enumerate(found) if line.strip() and set(line.strip()) == {"^"}]
    return [found[n - 1][found[n].index("^") : len(found[n])] for n in rows]


def test_marked_statements_and_expressions() -> None:
    assert (
        under(lines(obj_to_underline=[SECOND]))[:2] == ["for k in range(4, 8):", 'with T.block("c"):']
        and len(under(lines(obj_to_underline=[SECOND]))) == 6
    )
    assert under(lines(obj_to_underline=[SECOND.body.block.body])) == ["C[vk] = T.float32(1.0)"]
    value = BODY.array_index(0).attr("body").attr("body").attr("block").attr("body").attr("value").attr("value").attr("b")
    assert under(lines(path_to_underline=[value])) == ['T.Cast("float32", vi)']
    shape = ObjectPath.root().attr("buffer_map").map_value(FUNC.params[0]).attr("shape").array_index(1).attr("value")
    assert under(lines(path_to_underline=[shape])) == ["16"]
    assert under(lines(obj_to_underline=[FUNC]))[:2] == [
        "@T.prim_func",
        'def f(a: T.handle, B: T.Buffer((16, 16), "float16"), n: T.int32):',
    ]


def test_lines_near_a_mark() -> None:
    found = lines(path_to_underline=[BODY.array_index(1)], num_context_lines=1)
    assert found[0] == "(... 12 lines skipped ...)" and found[1].startswith("            B[vi, vj]") and len(found) == 2 + 12


def test_remarks() -> None:
    block = FIRST.body.body
    found = lines(obj_to_annotate={FIRST: "loop", block: "real", block.block: "block", block.block.body: "store"})
    start = found.index("    # loop")
    assert found[start + 1 : start + 5] == [
        "    for i, j in T.grid(16, 16):",
        "        # block",
        "        # real",
        '        with T.block("b"):',
    ]
    assert any(line.endswith("  # store") for line in found)
    assert "    # second" in lines(path_to_annotate={BODY.array_index(1): "second"})


def test_addresses() -> None:
    text = FUNC.script(show_object_address=True)
    assert f"A_{id(FUNC.buffer_map[FUNC.params[0]]):#x}" in text
    assert_structural_equal(from_source(text), FUNC)


def test_options_that_are_none() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        FUNC.script(colour=True)


X = tir.Var("x", "int32")
A = tir.decl_buffer((X, 4), name="A")


@pytest.mark.parametrize(
    ("node", "plain", "verbose"),
    [
        (X + 1, "x + 1", "x = T.int32()\nx + 1"),
        (A, "A", "x = T.int32()\nA = T.Buffer((x, 4))\nA"),
        (tir.BufferRegion(A, (tir.Range(0, 2), tir.Range(0, 1))), "A[0:2, 0]", "x = T.int32()\nA = T.Buffer((x, 4))\nA[0:2, 0]"),
        (tir.Range(X, X + 3), "I.Range(x, x + (x + 3 - x))", None),
        (tir.Range(0, 4), "I.Range(0, 4)", "I.Range(0, 4)"),
        (tir.PrimType("float32"), "T.float32", "T.float32"),
        (tir.PointerType(tir.PrimType("int8"), "shared"), 'T.handle("int8", "shared")', 'T.handle("int8", "shared")'),
        (tir.Evaluate(X), "x = T.int32()\nT.evaluate(x)", "x = T.int32()\nT.evaluate(x)"),
    ],
    ids=str,
)
def test_nodes_by_themselves(node: Any, plain: str, verbose: str | None) -> None:
    if not isinstance(node, tir.Range) or verbose is not None:
        assert node.script() == plain
    if verbose is not None:
        assert node.script(verbose_expr=True) == verbose


def test_paths() -> None:
    path = ObjectPath.root().attr("a").array_index(2).map_value("k")
    assert str(path) == '<root>.a[2]["k"]' and len(path) == 4 and path.parent == ObjectPath.root().attr("a").array_index(2)
    assert path.get_prefix(2) == ObjectPath.root().attr("a") and path.get_prefix(2).is_prefix_of(path)
    assert str(path.missing_array_element(1).missing_map_entry()).endswith("[<missing element #1>][<missing entry>]")
    with pytest.raises(IndexError, match="between 1 and 4 steps"):
        path.get_prefix(9)


def test_attributes_without_finite_numbers_are_read_back() -> None:
    buffer, handle = tir.decl_buffer((4,), name="A"), tir.Var("h", "handle")
    body = tir.BufferStore(buffer, tir.const(1.0), (tir.const(0),))
    func = tir.PrimFunc((handle,), body, None, {handle: buffer}).with_attrs({"x": float("-inf"), "y": [float("inf"), float("nan")]})
    again: Any = from_source(func.script())
    assert repr(dict(again.attrs)) == repr({"x": float("-inf"), "y": [float("inf"), float("nan")]})
