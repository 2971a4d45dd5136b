"""narrow_dtype: int32 where bounds prove that it is enough, int64 where they don't."""

from __future__ import annotations

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase1.narrow_dtype import narrow_dtype
from tensorexpr.tir.arithmetic import cast
from tensorexpr.tir.buffer import decl_buffer
from tensorexpr.tir.expr import LT, Cast, IntImm, Ramp, Select, SizeVar, Var
from tensorexpr.tir.stmt import BufferStore, For, IfThenElse, Stmt, seq

from .builder import applied, flat, func, guard, load, loop, statements, store


def _wide(value: int) -> IntImm:
    return IntImm("int64", value)


def test_loops_and_indices_become_narrow() -> None:
    a, b = flat("A", 24), flat("B", 24)

    def body(i: Var) -> Stmt:
        return loop("j", 6, lambda j: guard(i * 6 + j < _wide(20), store(b, load(a, i * 6 + j), j + i * 6)), dtype="int64")

    result = applied(narrow_dtype, func(loop("i", 4, body, dtype="int64"), a, b))
    assert [loop.loop_var.dtype for loop in statements(result, For)] == ["int32", "int32"]
    (stored,) = statements(result, BufferStore)
    assert stored.indices[0].dtype == stored.value.indices[0].dtype == "int32"
    assert statements(result, IfThenElse)[0].condition.args[0].a.dtype == "int32"


def test_division_is_narrowed_only_if_its_operands_fit() -> None:
    a, b = flat("A", 1 << 20), flat("B", 8)

    def body(i: Var) -> Stmt:
        far = (i * _wide(1 << 31)) // _wide(1 << 31)
        return store(b, load(a, far) + load(a, (i * 6) // _wide(4)), i)

    result = applied(narrow_dtype, func(loop("i", 8, body, dtype="int64"), a, b))
    (stored,) = statements(result, BufferStore)
    assert [x.indices[0].dtype for x in (stored.value.a, stored.value.b)] == ["int64", "int32"]


def test_data_is_not_touched() -> None:
    b = flat("B", 8, "int64")
    result = applied(narrow_dtype, func(loop("i", 8, lambda i: store(b, i * _wide(1 << 40), i), dtype="int64"), b))
    (stored,) = statements(result, BufferStore)
    assert stored.value.dtype == "int64"
    assert any(isinstance(x, Cast) for x in (stored.value.a,))


def test_unbounded_symbols_stay_wide() -> None:
    n = SizeVar("n", "int64")
    b = decl_buffer((n,), "float32", "B")
    start = func(loop("i", n, lambda i: store(b, 1.0, i), dtype="int64"), b)
    assert narrow_dtype(start, PassContext()).body is start.body


def test_narrow_functions_stay_as_they_are() -> None:
    b = flat("B", 8)
    start = func(loop("i", 8, lambda i: store(b, 1.0, i)), b)
    assert narrow_dtype(start, PassContext()) is start


def test_vectors_of_indices() -> None:
    a, b = flat("A", 32), flat("B", 32)

    def body(i: Var) -> Stmt:
        lanes = Ramp(i * 8, _wide(1), 8)
        return BufferStore(b, load(a, lanes), (lanes,))

    result = applied(narrow_dtype, func(loop("i", 4, body, dtype="int64"), a, b))
    (stored,) = statements(result, BufferStore)
    assert stored.indices[0].dtype == "int32x8"


def test_select_and_comparison_inside_an_index() -> None:
    a, b = flat("A", 8), flat("B", 8)

    def body(i: Var) -> Stmt:
        return store(b, load(a, Select(LT(i, _wide(3)), i, _wide(7) - i)), i)

    result = applied(narrow_dtype, func(loop("i", 8, body, dtype="int64"), a, b))
    (stored,) = statements(result, BufferStore)
    assert stored.value.indices[0].dtype == "int32"


def test_sixty_four_bits_change_nothing() -> None:
    b = flat("B", 8)
    start = func(loop("i", 8, lambda i: store(b, 1.0, i), dtype="int64"), b)
    assert narrow_dtype(start, PassContext(), 64) is start


def test_mixed_widths() -> None:
    a, b = flat("A", 64), flat("B", 64)
    body = loop(
        "i", 8, lambda i: loop("j", 8, lambda j: store(b, load(a, cast(i, "int64") * 8 + j), i * 8 + cast(j, "int32")), dtype="int64")
    )
    result = applied(narrow_dtype, func(body, a, b))
    (stored,) = statements(result, BufferStore)
    assert stored.indices[0].dtype == stored.value.indices[0].dtype == "int32"


def test_an_intermediate_value_that_is_too_large_keeps_the_whole_wide() -> None:
    a, b = flat("A", 1 << 20), flat("B", 8)
    body = loop("i", 8, lambda i: store(b, load(a, i * _wide(65536) * _wide(65536) // _wide(65536)), i), dtype="int64")
    (stored,) = statements(applied(narrow_dtype, func(body, a, b)), BufferStore)
    assert stored.value.indices[0].dtype == "int64"


def test_the_last_lane_has_to_fit() -> None:
    a, b = flat("A", _wide(1 << 33)), flat("B", 8)
    lanes = [Ramp(_wide(5), _wide(stride), 8) for stride in (1 << 28, 1 << 29)]
    start = func(seq(*(BufferStore(b, load(a, lane), (Ramp(IntImm("int32", 0), IntImm("int32", 1), 8),)) for lane in lanes)), a, b)
    stored = statements(narrow_dtype(start, PassContext()), BufferStore)
    assert [s.value.indices[0].dtype for s in stored] == ["int32x8", "int64x8"]
