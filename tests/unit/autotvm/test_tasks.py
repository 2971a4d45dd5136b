"""Tasks, contexts and operators: who gets which configuration."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tensorexpr import autotvm, relax, te
from tensorexpr.autotvm.errors import InstantiationError, MissingTaskError
from tensorexpr.autotvm.task.task import FlopCalculationError, compute_flop
from tensorexpr.errors import TensorExprError, TuningError
from tensorexpr.schedule.te_schedule import Schedule
from tensorexpr.target import Target
from tests.autotvm_templates import TARGET, failing, matmul


def test_a_task_has_the_space_that_its_template_defines() -> None:
    task = autotvm.task.create("tests/matmul", (16,), TARGET)
    assert task.workload == ("tests/matmul", 16) and task.flop == 2 * 16**3 and task.config_space.dims == [5, 5, 2]
    assert autotvm.task.create(matmul, (16,), TARGET).name == "tests/matmul"
    schedule, args = task.instantiate(task.config_space.get(7))
    assert len(args) == 3 and len(schedule.trace) == 3


def test_arguments_are_values() -> None:
    data = te.placeholder((1, 2), "int8", name="D")
    values = autotvm.task.serialize_args([data, 3, [1, [2]], None, 1.5, True, te.const(4, "int32")])
    assert values == (("TENSOR", (1, 2), "int8"), 3, (1, (2,)), None, 1.5, True, 4)
    assert autotvm.task.args_to_workload([data], "conv") == ("conv", ("TENSOR", (1, 2), "int8"))
    back = autotvm.task.deserialize_args(values)
    assert back[0].dtype == "int8" and back[1:3] == [3, (1, (2,))]
    with pytest.raises(TuningError, match="an argument of a task"):
        autotvm.task.serialize_args([object()])


@pytest.mark.parametrize("way", range(1, 5))
def test_configurations_that_make_no_program_say_why(way: int) -> None:
    task = autotvm.task.create(failing, (8,), TARGET)
    why = ["", "divides by nothing", "marked vectorize", "too large for this device", "no knob 'tile_q'"][way]
    with pytest.raises(InstantiationError, match=why):
        task.instantiate(task.config_space.get(way))


def test_templates_run_with_what_the_context_knows() -> None:
    task = autotvm.task.create("tests/matmul", (16,), TARGET)
    with autotvm.task.ApplyConfig(task.config_space.get(9)), task.target:
        chosen = matmul(16)[0].trace
    assert chosen == task.instantiate(task.config_space.get(9))[0].trace
    with Target(TARGET):
        assert matmul(16)[0].trace != chosen  # the fallback
    outer = autotvm.apply_history_best(None)
    outer.update(task.target, task.workload, task.config_space.get(9))
    with outer, autotvm.apply_history_best(None), task.target:  # the inner one knows nothing
        assert matmul(16)[0].trace == chosen
    with pytest.raises(TuningError, match="by place"):
        matmul(n=16)
    assert isinstance(autotvm.DispatchContext.current, autotvm.FallbackContext)


def test_configurations_of_another_version_are_refused() -> None:
    @autotvm.template("tests/versioned")
    def versioned(n: int) -> Any:
        made = failing.__wrapped__(n)
        autotvm.task.attach_code_hash(made[0])(lambda: versioned)()
        return made

    task = autotvm.task.create("tests/versioned", (8,), TARGET)
    config = task.config_space.get(0)
    assert config.code_hash is not None
    config.code_hash = "0" * 32
    with autotvm.task.ApplyConfig(config), task.target, pytest.raises(TuningError, match="another version"):
        versioned(8)


def test_unknown_tasks_and_wrong_templates_are_named() -> None:
    with pytest.raises(MissingTaskError, match="missing task tests/nothing"):
        autotvm.task.create("tests/nothing", (1,), TARGET)
    autotvm.template("tests/wrong", lambda: "no schedule")
    with pytest.raises(InstantiationError, match="gives a schedule and its tensors"):
        autotvm.task.create("tests/wrong", (), TARGET)
    with pytest.raises(TuningError, match="already"):
        autotvm.template("tests/matmul")(lambda: None)


def test_operations_are_counted() -> None:
    a = te.placeholder((8,), "float32", name="A")
    with pytest.raises(FlopCalculationError, match="add_flop"):
        compute_flop(te.create_schedule(te.compute((8,), lambda i: a[i], name="C").op))
    assert compute_flop(te.create_schedule(te.compute((8,), lambda i: a[i] * 2.0 + 1.0, name="C").op)) == 16


@autotvm.register_topi_compute("tests/scale.x86")
def _scale(cfg: Any, data: Any, factor: float) -> Any:
    return te.compute(data.shape, lambda i: data[i] * factor, name="scaled")


@autotvm.register_topi_schedule("tests/scale.x86")
def _schedule_scale(cfg: Any, outs: Any) -> Schedule:
    out = outs[0] if isinstance(outs, list) else outs
    s = te.create_schedule(out.op)
    cfg.define_split("tile", out.op.axis[0], num_outputs=2)
    _, inner = cfg["tile"].apply(s, out, out.op.axis[0])
    s[out].vectorize(inner)
    return s


def test_operators_carry_their_workload_to_their_schedule() -> None:
    data = te.placeholder((64,), "float32", name="data")
    task = autotvm.task.create("tests/scale.x86", (data, 2.0), TARGET)
    assert task.workload == ("tests/scale.x86", ("TENSOR", (64,), "float32"), 2.0) and task.config_space.dims == [7]
    schedule, args = task.instantiate(task.config_space.get(3))
    assert [arg.op.name for arg in args] == ["scaled", "placeholder"] and len(schedule.trace) == 2
    history = autotvm.apply_history_best(None)
    history.update(task.target, task.workload, task.config_space.get(3))
    with history, task.target:
        out = _scale(data, 2.0)
        after = te.compute((64,), lambda i: out[i] + 1.0, name="after")
        assert autotvm.task.get_workload([after]) == task.workload
        assert _schedule_scale([out]).trace == schedule.trace
    with task.target, pytest.raises(TuningError, match="no tensor here is of the task"):
        _schedule_scale([te.compute((64,), lambda i: data[i], name="C")])
    with pytest.raises(TensorExprError, match="by place"):
        _scale(data, factor=2.0)


def test_graphs_have_the_tasks_that_tvm_extracts() -> None:
    info = relax.TensorStructInfo
    shapes = {"x": (1, 32, 14, 14), "w": (64, 32, 3, 3), "d": (64, 1, 3, 3), "g": (8, 16, 1, 1), "m": (14, 10), "b": (1, 8, 10, 5)}
    x, w, d, g, m, b = (relax.Var(name, info(shape, "float32")) for name, shape in shapes.items())
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, d, g, m, b]):
        one = builder.emit(relax.op.nn.conv2d(x, w, padding=(1, 1)))
        each = builder.emit(relax.op.nn.conv2d(one, d, padding=1, groups=64))
        grouped = builder.emit(relax.op.nn.conv2d(each, g, groups=4))
        layer = builder.emit(relax.op.matmul(grouped, m))
        builder.emit_func_output(builder.emit(relax.op.matmul(layer, b)))
    mod, one_by_one = builder.get(), ((1, 1), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32")

    def of(*shape: int) -> tuple[Any, ...]:
        return ("TENSOR", shape, "float32")

    tasks = autotvm.task.extract_from_program(mod, {}, TARGET)
    assert [task.workload for task in tasks] == [
        ("conv2d_NCHWc.x86", of(1, 32, 14, 14), of(64, 32, 3, 3), *one_by_one),
        ("depthwise_conv2d_NCHWc.x86", of(1, 64, 14, 14), of(64, 1, 3, 3), *one_by_one),
        ("group_conv2d_nchw.x86", of(1, 64, 14, 14), of(8, 16, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 4, "float32"),
        ("dense_nopack.x86", of(112, 14), of(10, 14), None, "float32"),
        ("dense_pack.x86", of(112, 14), of(10, 14), None, "float32"),
        ("batch_matmul.x86", of(8, 14, 10), of(8, 10, 5), (8, 14, 5), "float32", 0, 0),
    ]
    assert all(task.config_space.range_length > 1 for task in tasks)
    twice = autotvm.task.extract_from_multiple_program([mod, mod], {}, TARGET, ops=["nn.dense", "relax.nn.conv3d"])
    assert [task.name for task in twice] == ["dense_nopack.x86", "dense_pack.x86"]
    with pytest.raises(TuningError, match=r"autotvm\.task\.create"):
        autotvm.task.extract_from_program(None, {}, "llvm")


@pytest.mark.parametrize("order", ["aa", "aba", "abab", "bab"])
def test_a_context_may_be_entered_within_itself(order: str) -> None:
    task = autotvm.task.create("tests/matmul", (16,), TARGET)
    outer, contexts = autotvm.apply_history_best(None), {name: autotvm.apply_history_best(None) for name in "ab"}
    outer.update(task.target, task.workload, task.config_space.get(9))
    before = autotvm.DispatchContext.current
    with ExitStack() as stack:
        for context in [outer, *(contexts[name] for name in order)]:
            stack.enter_context(context)
        assert autotvm.DispatchContext.current.query(task.target, task.workload) == task.config_space.get(9)
        assert autotvm.DispatchContext.current.query(task.target, ("nobody",)).is_fallback
        autotvm.task.clear_fallback_cache(task.target, ("nobody",))
    assert autotvm.DispatchContext.current is before
