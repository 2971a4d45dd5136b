"""Operators as tasks by TVM's names: workloads, knobs and arguments as logs have them, and programs that compute what is declared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import autotvm, te, topi
from tensorexpr.autotvm.errors import MissingTaskError
from tensorexpr.errors import DeclarationError, TuningError
from tensorexpr.te.tolerance import Tolerance
from tensorexpr.tune.measure import bench
from tensorexpr.tune.measure.compiled import ArrayArgument
from tensorexpr.tune.measure.compiling import CandidateCompiler
from tensorexpr.tune.measure.memory import GuardedArray, frozen_copy
from tests.autotvm_templates import TARGET

Shape = tuple[Any, ...]


def of(*shape: int, dtype: str = "float32") -> Shape:
    return ("TENSOR", shape, dtype)


UNIT = (1, 1)
WHOLE = ((1, 1), (1, 1, 1, 1), UNIT, "NCHW", "NCHW", "float32")
SMALL = ((1, 1), (1, 1, 1, 1), UNIT, "NCHW", "NCHW", "int32")
U8, I8 = {"dtype": "uint8"}, {"dtype": "int8"}
BITS = (2, 1, "uint8", "int16", False)
# Name, arguments, and how many candidates each knob has in TVM 0.19.
CASES: dict[str, tuple[str, tuple[Any, ...], list[int]]] = {
    "conv2d": ("conv2d_NCHWc.x86", (of(1, 64, 56, 56), of(64, 64, 3, 3), *WHOLE), [7, 7, 10, 2]),
    "strided conv2d": (
        "conv2d_NCHWc.x86",
        (of(1, 3, 224, 224), of(64, 3, 7, 7), (2, 2), (3, 3, 3, 3), UNIT, "NCHW", "NCHW", "float32"),
        [2, 7, 11, 2],
    ),
    "one tap": ("conv2d_NCHWc.x86", (of(1, 64, 56, 56), of(256, 64, 1, 1), UNIT, (0, 0, 0, 0), *WHOLE[2:]), [7, 9, 10, 2]),
    "one row": ("conv2d_NCHWc.x86", (of(1, 64, 1, 840), of(64, 64, 1, 1), UNIT, (0, 0, 0, 0), *WHOLE[2:]), [7, 7, 25, 1]),
    "in blocks": (
        "conv2d_NCHWc.x86",
        (of(1, 8, 56, 56, 8), of(8, 8, 3, 3, 8, 8), UNIT, (1, 1, 1, 1), UNIT, "NCHW8c", "NCHW8c", "float32"),
        [7, 7, 10, 2],
    ),
    "depthwise": ("depthwise_conv2d_NCHWc.x86", (of(1, 32, 4, 840), of(32, 1, 3, 3), *WHOLE), [6, 6, 22, 2]),
    "depthwise in blocks": (
        "depthwise_conv2d_NCHWc.x86",
        (of(1, 4, 112, 112, 8), of(4, 1, 3, 3, 1, 8), UNIT, (1, 1, 1, 1), UNIT, "NCHW8c", "NCHW8c", "float32"),
        [6, 6, 9, 2],
    ),
    "conv3d": (
        "conv3d_ncdhw.x86",
        (of(1, 16, 8, 28, 28), of(32, 16, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1, "float32"),
        [5, 6, 4, 2],
    ),
    "conv3d channels last": (
        "conv3d_ndhwc.x86",
        (of(1, 8, 28, 840, 16), of(3, 3, 3, 16, 32), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1, "float32"),
        [5, 6, 8, 2],
    ),
    "groups": ("group_conv2d_nchw.x86", (of(1, 64, 28, 840), of(64, 16, 3, 3), UNIT, UNIT, UNIT, 4, "float32"), [7, 7, 22, 2]),
    "dense": ("dense_nopack.x86", (of(64, 512), of(1000, 512), None, "float32"), [7, 16, 10]),
    "dense packed": ("dense_pack.x86", (of(1, 512), of(1000, 512), None, "float32"), [1, 100, 10, 1]),
    "dense given packed": ("dense_pack.x86", (of(128, 768), of(192, 768, 16), None, "float32"), [36, 198, 18, 5]),
    "batch": ("batch_matmul.x86", (of(12, 128, 64), of(12, 128, 64), (12, 128, 128), "float32", False, True), [8, 8, 7]),
    "small conv2d": ("conv2d_NCHWc_int8.x86", (of(1, 64, 4, 840, **U8), of(64, 64, 3, 3, **I8), *SMALL), [5, 3, 22, 2]),
    "small in blocks": (
        "conv2d_NCHWc_int8.x86",
        (of(1, 2, 4, 840, 4, **U8), of(2, 2, 3, 3, 1, 16, 4, **I8), UNIT, (1, 1, 1, 1), UNIT, "NCHW4c", "NCHW16c", "int32"),
        [2, 2, 22, 2],
    ),
    "small dense": ("dense_int8.x86", (of(840, 768, **U8), of(4, 192, 16, 4, **I8), None, "int32"), [32]),
    "small batch": ("batch_matmul_int8.x86", (of(12, 840, 64, **U8), of(12, 128, 64, **I8), (12, 840, 128), "int32", False, True), [32, 2]),
    "bits": (
        "bitserial_conv2d_nchw.x86",
        (of(1, 32, 28, 12, **U8), of(24, 32, 3, 3, **U8), (2, 1), (1, 0, 2, 1), *BITS),
        [7, 4, 2, 16, 120, 2, 8],
    ),
    "bits of channels last": (
        "bitserial_conv2d_nhwc.x86",
        (of(1, 28, 12, 64, dtype="uint32"), of(3, 3, 64, 48, dtype="uint32"), 1, 1, 2, 1, "uint32", "int16", True),
        [8, 5, 6, 16, 24, 8, 9],
    ),
    "bits, dense": ("bitserial_dense.x86", (of(6, 1024, **U8), of(120, 1024, **U8), *BITS), [8, 4, 16, 2, 4, 8]),
    "library": ("dense_cblas.x86", (of(64, 512), of(1000, 512), None, "float32"), []),
}


@pytest.mark.parametrize("case", CASES)
def test_workloads_and_knobs_are_those_of_logs(case: str) -> None:
    name, args, dims = CASES[case]
    task = autotvm.task.create(name, args, "llvm -mcpu=x86-64-v4 -num-cores=2")
    assert task.workload == (name, *args)
    assert task.config_space.dims == dims
    assert task.flop > 0


# Small shapes of each, whose programs are run; among them ones that no knob divides evenly, and blocks larger than a group.
RUN = {
    "conv2d": ("conv2d_NCHWc.x86", (of(1, 12, 9, 11), of(24, 12, 3, 3), (2, 1), (1, 0, 1, 2), UNIT, "NCHW", "NCHW", "float32")),
    "one tap": ("conv2d_NCHWc.x86", (of(1, 12, 7, 10), of(24, 12, 1, 1), UNIT, (0, 0, 0, 0), *WHOLE[2:])),
    "in blocks": (
        "conv2d_NCHWc.x86",
        (of(1, 3, 9, 9, 4), of(4, 6, 3, 3, 2, 8), UNIT, (1, 1, 1, 1), UNIT, "NCHW4c", "NCHW8c", "float32"),
    ),
    "depthwise": ("depthwise_conv2d_NCHWc.x86", (of(1, 12, 9, 10), of(12, 1, 3, 3), *WHOLE)),
    "depthwise, two each": ("depthwise_conv2d_NCHWc.x86", (of(1, 6, 9, 10), of(6, 2, 3, 3), *WHOLE)),
    "conv3d": ("conv3d_ncdhw.x86", (of(1, 6, 4, 5, 7), of(12, 6, 3, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1), 1, "float32")),
    "conv3d channels last": ("conv3d_ndhwc.x86", (of(1, 4, 5, 7, 6), of(3, 3, 3, 6, 12), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1, "float32")),
    "groups": ("group_conv2d_nchw.x86", (of(1, 12, 7, 7), of(8, 3, 3, 3), UNIT, UNIT, UNIT, 4, "float32")),
    "dense": ("dense_nopack.x86", (of(6, 20), of(10, 20), of(10), "float32")),
    "dense packed": ("dense_pack.x86", (of(6, 20), of(12, 20), of(12), "float32")),
    "dense given packed": ("dense_pack.x86", (of(6, 20), of(3, 20, 4), None, "float32")),
    "batch": ("batch_matmul.x86", (of(3, 6, 10), of(3, 9, 10), None, "float32", 0, 1)),
    "batch of plain ones": ("batch_matmul.x86", (of(3, 6, 10), of(3, 10, 9), None, "float32", 0, 0)),
    "small conv2d": ("conv2d_NCHWc_int8.x86", (of(1, 8, 7, 7, **U8), of(32, 8, 3, 3, **I8), *SMALL)),
    "small in blocks": (
        "conv2d_NCHWc_int8.x86",
        (of(1, 2, 5, 6, 4, **U8), of(2, 2, 3, 3, 1, 16, 4, **I8), UNIT, (1, 1, 1, 1), UNIT, "NCHW4c", "NCHW16c", "int32"),
    ),
    "small dense": ("dense_int8.x86", (of(6, 12, **U8), of(2, 3, 16, 4, **I8), None, "int32")),
    "small batch": ("batch_matmul_int8.x86", (of(3, 6, 12, **U8), of(3, 32, 12, **I8), None, "int32", False, True)),
    "bits": (
        "bitserial_conv2d_nchw.x86",
        (of(2, 16, 9, 8, **U8), of(12, 16, 3, 2, **U8), (2, 1), (1, 0, 1, 1), 2, 3, "uint8", "int16", True),
    ),
    "bits, weights packed": (
        "bitserial_conv2d_nhwc.x86",
        (of(1, 6, 10, 32, **U8), of(3, 3, 2, 12, 2, dtype="uint16"), 1, 0, 2, 2, "uint16", "int16", True),
    ),
    "bits, dense": ("bitserial_dense.x86", (of(6, 64, **U8), of(12, 64, **U8), 2, 2, "uint8", "int16", True)),
}


@pytest.mark.parametrize("case", RUN)
def test_configurations_compute_what_is_declared(case: str) -> None:
    """Results are compared with the definition by the measuring process, those in other layouts too."""
    name, args = RUN[case]
    task = autotvm.task.create(name, args, TARGET)
    results: list[Any] = []
    option = autotvm.measure_option(
        autotvm.LocalBuilder(timeout=100, n_parallel=1), autotvm.LocalRunner(timeout=100, number=1, repeat=1, min_repeat_ms=1)
    )
    autotvm.tuner.RandomTuner(task).tune(5, option, callbacks=[lambda tuner, inputs, found: results.extend(found)])
    assert [result.error_no for result in results] == [0] * len(results), [str(result.costs) for result in results]
    assert all(result.verified for result in results) and results


def test_wrong_layouts_are_wrong_answers() -> None:
    """Results in other layouts are verified in them: what is expected is packed as the code stores."""
    x = te.placeholder((4, 6), name="x")
    s = te.create_schedule(te.compute((4, 6), lambda i, j: x[i, j] + 1, name="C").op)
    declared = s.outputs[0].output(0)
    s[declared].transform_layout(lambda i, j: [j // 3, i, j % 3])
    compiled = CandidateCompiler([x, declared], tvm.target.Target(TARGET))(s.trace.to_json(), 1)
    layout = compiled.arguments[1].layout
    assert layout is not None and compiled.arguments[1].shape == (2, 4, 3)
    values = np.arange(24, dtype="float32").reshape(4, 6)
    expected = bench.Output("C", GuardedArray((4, 6), values.dtype), frozen_copy(values), Tolerance(0, 0))
    relaid = bench._relaid(expected, ArrayArgument("C", "float32", (2, 4, 3), layout), 0)
    wanted = values.reshape(4, 2, 3).transpose(1, 0, 2)
    relaid.memory.array[...] = wanted
    bench._compare([relaid])
    relaid.memory.array[...] = wanted[::-1]
    with pytest.raises(bench.WrongAnswer):
        bench._compare([relaid])
    with pytest.raises(TuningError, match="without padding"):
        bench._relaid(expected, ArrayArgument("C", "float32", (2, 4, 4), layout), 0)


def test_arguments_come_packed() -> None:
    """As TVM's: programs allocate arrays by `args`, and run the built function on them."""
    task = autotvm.task.create("conv2d_NCHWc.x86", (of(1, 8, 6, 6), of(16, 8, 3, 3), *WHOLE), TARGET)
    space = task.config_space
    config = next(
        config for config in map(space.get, range(len(space))) if config["tile_ic"].size[-1] == 4 and config["tile_oc"].size[-1] == 8
    )
    schedule, args = task.instantiate(config)
    assert [tuple(arg.shape) for arg in args] == [(1, 2, 6, 6, 8), (1, 2, 6, 6, 4), (2, 2, 3, 3, 4, 8)]
    rng = np.random.default_rng(0)
    data, kernel = (rng.random(shape, np.float32) for shape in ((1, 8, 6, 6), (16, 8, 3, 3)))
    packed = data.reshape(1, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2), kernel.reshape(2, 8, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    out = tvm.nd.array(np.zeros((1, 2, 6, 6, 8), np.float32))
    tvm.build(schedule, args, TARGET)(out, *(tvm.nd.array(np.ascontiguousarray(array)) for array in packed))
    wanted = topi.testing.conv2d_nchw_python(data, kernel, 1, 1)
    np.testing.assert_allclose(out.numpy().transpose(0, 1, 4, 2, 3).reshape(1, 16, 6, 6), wanted, rtol=1e-5)


def _line(name: str, args: Any, entities: list[Any]) -> str:
    config = {"index": 0, "code_hash": None, "entity": entities}
    made = {"input": ["llvm -mcpu=core-avx2", name, args, {}], "config": config, "result": [[0.001], 0, 1.0, 1.0], "version": 0.2}
    return json.dumps({**made, "tvm_version": "0.8.0"})


def test_logs_of_tvm_schedule_operators(tmp_path: Path) -> None:
    log = tmp_path / "tvm.log"
    data, kernel = ["TENSOR", [1, 8, 6, 6], "float32"], ["TENSOR", [16, 8, 3, 3], "float32"]
    entities = [["tile_ic", "sp", [-1, 4]], ["tile_oc", "sp", [-1, 8]], ["tile_ow", "sp", [-1, 3]], ["unroll_kw", "ot", True]]
    log.write_text(_line("conv2d_NCHWc.x86", [data, kernel, [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], entities) + "\n")
    a, b = te.placeholder((1, 8, 6, 6), name="a"), te.placeholder((16, 8, 3, 3), name="b")
    arguments = (a, b, (1, 1), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32")
    with autotvm.apply_history_best(str(log)), tvm.target.Target(TARGET):
        out = topi.x86.conv2d_NCHWc(*arguments)
        assert [int(extent) for extent in out.shape] == [1, 2, 6, 6, 8]
        after = topi.nn.relu(out)
        schedule = topi.x86.schedule_conv2d_NCHWc([after])
        assert schedule.trace != topi.generic.schedule_conv2d_NCHWc([after]).trace
        func = tvm.build(schedule, [a, b, after])
    rng = np.random.default_rng(0)
    x, w = (rng.random(shape, np.float32) - 0.5 for shape in ((1, 8, 6, 6), (16, 8, 3, 3)))
    found = tvm.nd.array(np.zeros((1, 2, 6, 6, 8), np.float32))
    func(tvm.nd.array(x), tvm.nd.array(w), found)
    wanted = np.maximum(topi.testing.conv2d_nchw_python(x, w, 1, 1), 0)
    np.testing.assert_allclose(found.numpy().transpose(0, 1, 4, 2, 3).reshape(1, 16, 6, 6), wanted, rtol=1e-4, atol=1e-5)


def test_logs_decide_and_the_default_schedule_where_they_say_nothing() -> None:
    target = tvm.target.Target(TARGET)
    a, b = te.placeholder((32, 64), name="a"), te.placeholder((48, 64), name="b")
    task = autotvm.task.create("dense_nopack.x86", (a, b, None, None), target)
    config = task.config_space.get(len(task.config_space) - 1)
    history = autotvm.apply_history_best(None)
    history.update(target, task.workload, config)
    with target:
        out = topi.x86.dense_nopack(a, b)
        assert topi.x86.schedule_dense_nopack([out]).trace == topi.generic.schedule_dense([out]).trace
        with history:
            assert topi.x86.schedule_dense_nopack([out]).trace == task.instantiate(config)[0].trace
            # a template finishes its tiles by elementwise operators; what sums over them has the default schedule
            behind = topi.nn.softmax(out)
            assert topi.x86.schedule_dense_nopack([behind]).trace == topi.generic.schedule_dense([behind]).trace


def test_products_of_small_numbers_are_instructions_where_the_target_has_them() -> None:
    name, args = RUN["small conv2d"]
    texts = []
    for cpu in ("icelake-server", "x86-64-v2"):
        target = tvm.target.Target(f"llvm -mcpu={cpu} -num-cores=1")
        task = autotvm.task.create(name, args, target)
        schedule, arguments = task.instantiate(task.config_space.get(0))
        with target:
            texts.append(str(tvm.lower(schedule, arguments)))
    assert ["vpdpbusd" in text for text in texts] == [True, False]


def test_what_no_task_is_for_is_named() -> None:
    with pytest.raises(MissingTaskError, match=r"conv2d_nothing\.x86"):
        autotvm.task.create("conv2d_nothing.x86", (), TARGET)
    for name, args, said in (
        ("dense_int8.x86", (of(4, 16, **U8), of(16, 16, **I8), None, "int32"), "takes its weight packed"),
        ("conv2d_NCHWc_int8.x86", (of(1, 6, 7, 7, **U8), of(16, 6, 3, 3, **I8), *SMALL), "multiple of 4 channels"),
        ("batch_matmul_int8.x86", (of(1, 4, 8, **U8), of(1, 9, 8, **I8), None, "int32", False, True), "multiple of 16"),
    ):
        with pytest.raises(DeclarationError, match=said):
            autotvm.task.create(name, args, TARGET)
