"""The pipeline as a whole: order, user passes, early stops, checks and errors."""

from __future__ import annotations

import inspect
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tensorexpr.errors import InternalError, LoweringError
from tensorexpr.lower import lower
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import Pass, PassInfo
from tensorexpr.lower.pipeline import _BY_TARGET, FINAL, PHASES, Kept, lower_by_phase, lower_for_cpu
from tensorexpr.lower.transform import VectorizeLoop, prim_func_pass
from tensorexpr.target import Target
from tensorexpr.tir.expr import Var
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import BufferRealize, BufferStore, Stmt, seq

from .builder import check_kept, flat, func, guard, load, loop, loops, matmul, realize, run, statements, store, unrolled, vectorized


def _two_dimensional() -> PrimFunc:
    """B[i, j] = 2 * (A[i, j] + 1) through an intermediate buffer, with a guarded vector loop."""
    from tensorexpr.tir.buffer import decl_buffer

    a, b = decl_buffer((6, 10), "float32", "A"), decl_buffer((6, 10), "float32", "B")

    def row(i: Var) -> Stmt:
        def inside(t: Any) -> Stmt:
            make = loop("j", 10, lambda j: store(t, load(a, i, j) + 1.0, i, j))
            use = loop(
                "jo",
                3,
                lambda jo: vectorized("ji", 4, lambda ji: guard(jo * 4 + ji < 10, store(b, load(t, i, jo * 4 + ji) * 2.0, i, jo * 4 + ji))),
            )
            return seq(make, use)

        return realize("T", [(i, 1), (0, 10)], inside, shape=(6, 10))

    return func(loop("i", 6, row), a, b)


def test_one_lowering_gives_what_each_phase_alone_does() -> None:
    seen: list[str] = []

    @prim_func_pass(opt_level=0)
    def note(f: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        seen.append("called")
        return f

    with PassContext(config={"tir.add_lower_pass": [(1, note), (3, note)]}):
        together = list(lower_by_phase(_two_dimensional()))
        assert len(seen) == 2
        assert [str(mod) for mod in together] == [str(lower(_two_dimensional(), upto=phase)) for phase in PHASES]
        assert len({str(mod) for mod in together}) > 2
        assert lower(together[-1]) is together[-1]  # so `build` lowers nothing again


def test_phases_end_where_they_promise() -> None:
    start = _two_dimensional()
    for phase in range(4):
        result = lower(start, upto=phase)["main"]
        check_kept(start, result, phase=phase)
        assert bool(statements(result, BufferRealize)) is (phase == 0)
    assert not any("VECTORIZED" in text for text in loops(lower(start)["main"]))


def test_upto_names_a_phase() -> None:
    with pytest.raises(LoweringError, match="the phases are 0, 1, 2, 3"):
        lower(_two_dimensional(), upto=4)


def test_simple_mode_leaves_out_loop_partition() -> None:
    def split(io: Var) -> Stmt:
        return loop("ii", 4, lambda ii: guard(io * 4 + ii < 10, store(out, 1.0, io * 4 + ii)))

    out = flat("O", 10)
    start = func(loop("io", 3, split), out)
    assert loops(lower(start, simple_mode=True)["main"]) == ["io 0:3", "ii 0:4"]
    assert loops(lower(start)["main"]) == ["io 0:2", "ii 0:4", "ii 0:2"]


def test_simple_mode_shows_no_guard_that_always_holds() -> None:
    """In tiles of 6, 5 and 5 the first five columns are always there, which is known once they are written out."""

    def tile(io: Var) -> Stmt:
        return unrolled("ii", 6, lambda ii: guard(io + ii * 2 < 11, store(out, 1.0, io * 6 + ii)))

    out = flat("O", 18)
    text = lower(func(loop("io", 3, tile), out), simple_mode=True)["main"].script()
    assert text.count("likely") == 1 and "io + 10 < 11" in text


class _Spy:
    """Notes the order of passes."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.names.append(info.name)


def test_user_passes_run_where_they_belong() -> None:
    spy = _Spy()
    added = [(phase, prim_func_pass(lambda f, m, c: f, opt_level=0, name=f"user{phase}")) for phase in (7, 2, 0, 3, 1)]
    with PassContext(instruments=[spy], config={"tir.add_lower_pass": added}):
        lower(_two_dimensional())
    ours = {phase: [one.name for one in passes] for phase, passes in PHASES.items()}
    last = [one.name for one in FINAL]
    assert spy.names == ["user0", *ours[1], "user1", *ours[2], "user2", *ours[3], "user7", "user3", *last]


def test_a_user_pass_of_phase_0_sees_raw_buffers() -> None:
    seen: list[int] = []

    @prim_func_pass(opt_level=0)
    def look(function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        seen.append(len(statements(function, BufferRealize)))
        return function

    with PassContext(config={"tir.add_lower_pass": [(0, look), (1, look)]}):
        lower(_two_dimensional())
    assert seen == [1, 0]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (("1", None), "entry 0: expected the first of the pair to be an integer, the phase, not '1'"),
        ((True, None), "expected the first of the pair to be an integer"),
        ((-1, None), "the phase is -1; expected 0"),
        ((1, None), "expected a pass, not None; decorate the function with @tir.transform.prim_func_pass"),
        ((1,), r"expected a pair \(phase, pass\), not \(1,\)"),
    ],
)
def test_bad_user_passes(entry: Any, message: str) -> None:
    with PassContext(config={"tir.add_lower_pass": [entry]}), pytest.raises(LoweringError, match=message):
        lower(_two_dimensional())


def test_a_user_pass_has_to_return_a_function() -> None:
    @prim_func_pass(opt_level=0)
    def forgetful(function: PrimFunc, mod: IRModule, ctx: PassContext) -> None:
        return None

    with (
        PassContext(config={"tir.add_lower_pass": [(1, forgetful)]}),
        pytest.raises(LoweringError, match=r"pass forgetful returned None \(is a return"),
    ):
        lower(_two_dimensional())


def test_a_user_pass_that_breaks_the_rules_is_named() -> None:
    wild = Var("wild")

    @prim_func_pass(opt_level=0)
    def breaker(function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        buffer = statements(function, BufferStore)[0].buffer
        return function.with_body(seq(function.body, store(buffer, 0.0, wild)))

    with (
        PassContext(config={"tir.add_lower_pass": [(1, breaker)]}),
        pytest.raises(LoweringError, match="after breaker, function 'main': wild is used"),
    ):
        lower(_two_dimensional())


def test_a_broken_pass_of_ours_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorexpr.lower import pipeline
    from tensorexpr.lower.passes import Pass

    broken = Pass("tir.Broken", lambda f, c: f.with_body(seq(f.body, store(statements(f, BufferStore)[0].buffer, 0.0, Var("x")))))
    monkeypatch.setitem(pipeline.PHASES, 2, (*PHASES[2], broken))
    with pytest.raises(InternalError, match=r"after tir\.Broken, function 'main': x is used"):
        lower(_two_dimensional())


def test_a_phase_without_its_passes_is_the_users_error() -> None:
    with (
        PassContext(disabled_pass=["tir.VectorizeLoop"]),
        pytest.raises(LoweringError, match=r"after phase 2 without tir\.VectorizeLoop, .*ji is still VECTORIZED"),
    ):
        lower(_two_dimensional())


def test_modules_keep_all_their_functions() -> None:
    mod = IRModule({"f": _two_dimensional(), "g": matmul(4, 8, 2, 2, 8, 4)})
    assert [var.name_hint for var in lower(mod).get_global_vars()] == ["f", "g"]


def test_lowered_matmul_keeps_its_tile_in_registers() -> None:
    start = matmul(8, 64, 5, 4, 32, 16)
    result = lower(start)["main"]
    check_kept(start, result, phase=3)
    in_loop = [s for s in statements(result, BufferStore) if s.buffer.scope() == "register"]
    assert len(in_loop) == 2 * 8  # the init and the update of 4 rows of 2 vectors
    assert sum(s.buffer.name == "C" and s.buffer.scope() == "global" for s in statements(result, BufferStore)) == 8


def test_a_thousand_nested_stages() -> None:
    a, out = flat("A", 4), flat("O", 4)

    def stage(depth: int, source: Any) -> Stmt:
        if depth == 0:
            return loop("i", 4, lambda i: store(out, load(source, i), i))
        return realize("T", [(0, 4)], lambda t: seq(loop("i", 4, lambda i: store(t, load(source, i) + 1.0, i)), stage(depth - 1, t)))

    import sys

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    start = func(stage(1000, a), a, out)
    sys.setrecursionlimit(limit)
    result = lower(start)["main"]
    args = [np.arange(4, dtype=np.float32), np.zeros(4, np.float32)]
    interpret(result, args)
    np.testing.assert_array_equal(args[1], np.arange(4) + 1000)
    assert sys.getrecursionlimit() == limit


def test_lowering_twice_changes_nothing_more() -> None:
    once = lower(_two_dimensional())
    twice = lower(once)
    args = [np.ones((6, 10), np.float32), np.zeros((6, 10), np.float32)]
    for before, after in zip(run(once["main"], args), run(twice["main"], args), strict=True):
        np.testing.assert_array_equal(before, after)


def test_deep_expressions() -> None:
    a, b = flat("A", 8), flat("B", 8)

    def long_sum(i: Var) -> Stmt:
        total = load(a, i)
        for step in range(1500):
            total = total + load(a, (i * 3 + step) % 8)
        return store(b, total, i)

    start = func(vectorized("i", 8, long_sum), a, b)
    check_kept(start, lower(start)["main"], phase=3)
    assert loops(VectorizeLoop()(IRModule({"main": start}))["main"]) == []


def test_what_is_kept_for_other_targets_is_what_they_would_make() -> None:
    program, alone = matmul(24, 64, 8, 6, 32, 16), list[str]()
    kept: Kept = {}
    for target in (None, "llvm -mcpu=x86-64", "llvm -mcpu=znver3"):
        with Target(target) if target else nullcontext():
            alone.append(str(lower(program)))
            assert str(lower_for_cpu(program, kept=kept)) == alone[-1]
    assert len(set(alone)) > 1, "nothing depended on the registers, so nothing was tested"


def test_passes_that_are_kept_do_not_look_at_the_target() -> None:
    def looks(one: Pass) -> bool:
        source = inspect.getsource(sys.modules[one.run.__module__])
        return "RegisterFile" in source or "Target.current(" in source

    assert {one.name for passes in PHASES.values() for one in passes if looks(one)} == _BY_TARGET
