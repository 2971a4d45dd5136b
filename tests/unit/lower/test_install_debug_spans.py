"""Lines of the printed function as spans of its statements."""

from __future__ import annotations

import tensorexpr as tvm

SOURCE = """
@T.prim_func
def scaled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
"""


def test_statements_know_their_lines() -> None:
    source = tvm.script.from_source(SOURCE)
    assert isinstance(source, tvm.tir.PrimFunc)
    before = tvm.IRModule({"main": source})
    after = tvm.tir.transform.InstallDebugSpans()(before)
    func = next(after.functions.values())
    lines = func.script().splitlines()
    lines = lines[lines.index("@T.prim_func") + 1 :]
    found = {}
    tvm.tir.stmt_functor.post_order_visit(func.body, lambda node: found.update({type(node).__name__: node.span}))
    assert found["For"].source_name.name == "scaled.tir"
    assert lines[found["For"].line - 1].strip() == "for i in range(8):"
    assert lines[found["BufferStore"].line - 1].strip() == "B[vi] = A[vi] * T.float32(2.0)"
    tvm.tir.stmt_functor.post_order_visit(source.body, lambda node: found.update({type(node).__name__: node.span}))
    assert set(found.values()) == {None}
    tvm.ir.assert_structural_equal(before, after)
