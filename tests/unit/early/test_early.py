"""Names of the releases up to 0.7 that later ones dropped: passes on statements, nodes by `make`, options of a lowering."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr.errors import ConfigError

tvm: Any = tensorexpr


def added() -> tuple[Any, list[Any]]:
    a = tvm.placeholder((16,), name="a")
    b = tvm.compute((16,), lambda i: a[i] + 1.0, name="b")
    return tvm.create_schedule(b.op), [a, b]


def halved(stmt: Any) -> Any:
    """Loops over 16 become two, of which the inner one is a vector: a user's pass as that release wrote it."""
    loops: list[Any] = []
    tvm.ir_pass.PostOrderVisit(stmt, lambda node: loops.append(node) if isinstance(node, tvm.stmt.For) else None)

    def split(loop: Any) -> Any:
        if loop not in loops:
            return None
        outer, inner = tvm.var("o"), tvm.var("i")
        body = tvm.ir_pass.Substitute(loop.body, {loop.loop_var: outer * 8 + inner})
        body = tvm.make.For(inner, 0, 8, tvm.stmt.For.Vectorized, 0, body)
        return tvm.make.For(outer, 0, loop.extent.value // 8, tvm.stmt.For.Serial, 0, body)

    return tvm.ir_pass.IRTransform(stmt, None, split, ["For"])


def test_a_pass_on_a_statement_takes_a_lowered_module_too() -> None:
    s, args = added()
    text = str(halved(tvm.lower(s, args, simple_mode=True)))
    assert "in range(2)" in text and "in T.vectorized(8)" in text


def test_a_pass_on_a_statement_runs_among_those_of_lowering() -> None:
    s, args = added()
    with tvm.build_config(add_lower_pass=[(1, halved)]):
        func = tvm.build(s, args)
        assert "o * 8:o * 8 + 8" in str(tvm.lower(s, args))
    x, y = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    func(x, y)
    assert (y == x + 1).all()


def test_options_of_a_lowering(capsys: pytest.CaptureFixture[str]) -> None:
    s, args = added()
    with tvm.build_config(auto_unroll_max_step=16, unroll_explicit=True, offset_factor=1):
        assert "for" not in str(tvm.lower(s, args)).split("def main")[1]
    with tvm.build_config(dump_pass_ir=True):
        tvm.lower(s, args)
    assert "# after tir.StorageFlatten" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no option"):
        tvm.build_config(unroll_all=True)


def test_passes_and_questions_by_name() -> None:
    n = tvm.var("n")
    assert tvm.ir_pass.Equal(tvm.ir_pass.Simplify(n + 2 - n), tvm.const(2, "int32"))
    buffer = tvm.decl_buffer((4,), "int32", name="x")
    i = tvm.var("i")
    loop = tvm.make.For(i, 0, 4, tvm.stmt.For.Unrolled, 0, tvm.tir.BufferStore(buffer, i, [i]))
    unrolled = tvm.ir_pass.UnrollLoop(loop, 0, 8, 0, True)
    assert len(unrolled.seq) == 4
    assert isinstance(tvm.make.Block(loop, loop), tvm.tir.SeqStmt)
    for module in (tvm.ir_pass, tvm.make):
        with pytest.raises(AttributeError, match="has no 'Frobnicate'"):
            module.Frobnicate  # noqa: B018


def test_loops_take_their_old_arguments() -> None:
    i = tvm.var("i")
    old = tvm.tir.For(i, 0, 8, tvm.tir.For.Parallel, 0, tvm.tir.Evaluate(i))
    new = tvm.tir.For(i, 0, 8, tvm.tir.ForKind.PARALLEL, tvm.tir.Evaluate(i))
    assert tvm.ir.structural_equal(old, new) and old.thread_binding is None


def test_log_is_the_logarithm_wherever_the_logger_was_loaded() -> None:
    s, args = added()
    tvm.lower(s, args)
    x = tvm.var("x", "float32")
    assert str(tvm.log(x)) == str(tvm.te.log(x))


def test_an_inlined_argument_is_there_and_nothing_writes_to_it(caplog: pytest.LogCaptureFixture) -> None:
    a = tvm.placeholder((4,), name="a")
    b = tvm.compute((4,), lambda i: a[i] + 1.0, name="was_inlined")
    c = tvm.compute((4,), lambda i: b[i] * 2.0, name="c")
    s = tvm.create_schedule(c.op)
    s[b].compute_inline()
    func = tvm.build(s, [a, b, c])
    assert "was_inlined is an argument, but it is inlined: nothing writes to it" in caplog.text
    x, y, z = np.arange(4, dtype="float32"), np.full(4, 7, "float32"), np.zeros(4, "float32")
    func(x, y, z)
    assert (y == 7).all() and (z == 2 * (x + 1)).all()


def test_names_of_testing_from_its_utils() -> None:
    from tensorexpr import testing

    testing.utils.install_request_hook(depth=3)
    assert testing.utils.assert_allclose is testing.assert_allclose
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        testing.utils.frobnicate  # noqa: B018


def test_operators_by_name_take_numbers_and_tensors() -> None:
    a, i = tvm.placeholder((4,), name="a"), tvm.var("i")
    assert tvm.generic.floordiv(i, 2).same_as(i // 2) and tvm.generic.add(a, a).shape == a.shape


def test_names_of_intrinsics_may_lack_their_prefix() -> None:
    x = tensorexpr.tir.Var("x", "float32")
    assert tensorexpr.tir.call_intrin("float32", "exp", x) is tensorexpr.tir.call_intrin("float32", "tir.exp", x)


def test_rules_of_intrinsics_and_limits_of_kernels_by_their_early_names() -> None:
    tvm.register_intrin_rule("llvm", "tir.early_twice", lambda call: call.args[0] * 2.0, override=True)
    a = tvm.placeholder((4,), name="a")
    b = tvm.compute((4,), lambda i: tvm.select(i < 2, tvm.call_pure_intrin("float32", "tir.early_twice", a[i]), a[i]), name="b")
    s = tvm.create_schedule(b.op)
    x, y = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    tvm.build(s, [a, b], "llvm")(x, y)
    assert y.tolist() == [0, 2, 2, 3]
    s[b].bind(b.op.axis[0], tvm.thread_axis("threadIdx.x"))
    kernel = tvm.lower(s, [a, b])
    assert tvm.ir_pass.VerifyGPUCode(kernel["main"].body, {"max_threads_per_block": 4})
    assert not tvm.ir_pass.VerifyGPUCode(kernel, {"max_threads_per_block": 3})


def test_names_are_where_programs_of_several_releases_import_them_from() -> None:
    from tensorexpr import contrib, meta_schedule, relay
    from tensorexpr.auto_scheduler.measure_record import RecordToFile
    from tensorexpr.driver import build_module
    from tensorexpr.runtime.module import load_module
    from tensorexpr.te.operation import create_prim_func

    # Modules that stand for others have no files of their own.
    pytorch, gathers, registry = (
        importlib.import_module(f"tensorexpr.{name}") for name in ("relay.frontend.pytorch", "relay.op.transform", "_ffi.registry")
    )
    assert relay.Module is tvm.IRModule and gathers.gather_nd is relay.gather_nd and pytorch is relay.frontend
    assert load_module is tvm.runtime.load_module is tvm.module.load and tvm.runtime.Executable is tvm.runtime.Module
    assert create_prim_func is tvm.te.create_prim_func and build_module.form_irmodule is build_module.schedule_to_module
    assert RecordToFile is tvm.auto_scheduler.RecordToFile and contrib.rpc is tvm.rpc and registry.register_func is tvm.register_func
    assert tvm.nd.context is tvm.device and tvm.runtime.from_dlpack is tvm.nd.from_dlpack
    assert tvm.tir.Load is tvm.tir.expr.Load is tvm.tir.BufferLoad and tvm.tir.Store is tvm.tir.BufferStore
    assert tvm.tir.expr.Any is tvm.tir.Any and tvm.tir.expr.const(1, "int32").dtype == "int32"
    assert tvm.target.current_target() is None and meta_schedule.tune.TuneConfig is meta_schedule.TuneConfig
    assert meta_schedule.extract_task_from_relay is meta_schedule.relay_integration.extract_tasks


def test_the_size_of_a_search_by_a_class_for_each_strategy() -> None:
    from tensorexpr import meta_schedule as ms

    found = ms.ReplayTraceConfig(num_trials_per_iter=4, num_trials_total=8)
    assert found == ms.TuneConfig(8, 4, strategy="replay-trace", search_strategy_config={"max_fail_count": 100})
    assert ms.ReplayFuncConfig(4, 8).strategy == "replay-func"
    assert ms.EvolutionarySearchConfig(4, 8, population_size=16).search_strategy_config == {"population_size": 16}
