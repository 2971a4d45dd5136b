"""Arguments of the wrong kind, for whole families of functions: one line for each, with the words that help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te, tir, topi
from tensorexpr import meta_schedule as ms

A = te.placeholder((4, 4), name="A")
K = te.reduce_axis((0, 4), "k")
B = te.compute((4,), lambda i: te.sum(A[i, K], axis=K), name="B")
BLOCKS = te.create_prim_func([A, B])
MODULE = tvm.IRModule({"main": BLOCKS})


def untyped(value: Any) -> Any:
    """What a type checker would refuse."""
    return value


def schedule() -> tuple[tir.Schedule, Any, Any]:
    sch = tir.Schedule(BLOCKS)
    block = sch.get_block("B")
    return sch, block, sch.get_loops(block)


def primitive(do: Callable[[Any, Any, Any], Any]) -> Callable[[], Any]:
    return lambda: do(*schedule())


def from_trace(*instructions: list[Any]) -> Callable[[], None]:
    return lambda: tir.schedule.Trace.apply_json_to_schedule([[*instructions], []], schedule()[0])


DECLARING: dict[str, tuple[Callable[[], Any], str]] = {
    "const": (lambda: te.const("x"), "a constant is made of a number, not of 'x'"),
    "extern": (lambda: te.extern((4,), [A], untyped(None)), "fcompute is a function of the inputs' and outputs' buffers, not None"),
    "gradient": (lambda: te.gradient(untyped(None), untyped(None)), "None is no tensor; it takes a tensor"),
    "intrin": (lambda: te.decl_tensor_intrin(B.op, untyped(None)), "fcompute is a function of the inputs' and outputs' buffers, not None"),
    "scope": (lambda: te.create_schedule(B.op).cache_write(B, untyped(3)), "3 is no storage scope; scopes: global"),
    "slice": (lambda: topi.strided_slice(A, [0], [1, 2, 3]), "1 begins, 3 ends and 1 strides for 1 axes"),
    "binds": (lambda: tvm.lower(te.create_schedule(B.op), [A, B], binds=untyped([1])), r"as in binds=\{A: buffer\}, not \[1\]"),
    "build": (lambda: tvm.build(schedule()[0]), "give the module of a tir.Schedule, sch.mod"),
    "module": (lambda: tvm.IRModule(untyped(3)), r'made of functions by name, as in IRModule\(\{"main": func\}\), not of 3'),
    "function": (lambda: tvm.IRModule({"main": untyped(3)}), "takes functions by name, not 3 by 'main'"),
    "assigned": (lambda: tvm.IRModule({}).update_func("main", untyped(3)), "takes functions by name, not 3 by 'main'"),
}
BLOCK_SCHEDULES: dict[str, tuple[Callable[[], Any], str]] = {
    "seed": (lambda: tir.Schedule(BLOCKS, seed=untyped("x")), "a seed is a whole number, or None for another one each time, not 'x'"),
    "rfactor": (
        primitive(lambda s, b, loops: s.rfactor(loops[1], "a")),
        r"rfactor: factor_axis takes a list of whole numbers, not \['a'\]",
    ),
    "padding": (primitive(lambda s, b, loops: s.pad_einsum(b, None)), "pad_einsum takes a list of whole numbers, not None"),
    "scope": (primitive(lambda s, b, loops: s.cache_write(b, 0, 3)), "no memory is called 3; known: global"),
    "buffer": (primitive(lambda s, b, loops: s.transform_layout(b, 0, lambda i: (i,))), "a name or a buffer, not 0"),
    "attributes": (from_trace(["GetBlock", [], ["B"], ["b0"]]), r"instruction 0, GetBlock, doesn't take the attributes \['B'\]"),
}
RUNNING: dict[str, tuple[Callable[[], Any], str]] = {
    "device": (lambda: tvm.nd.array([1.0], untyped("cpu")), r"tvm.cpu\(0\) or tvm.device\('cpu', 0\), not on 'cpu'"),
    "ragged": (lambda: tvm.nd.array([[1], [1, 2]]), r"no array can be made of \[\[1\], \[1, 2\]\]"),
    "text": (lambda: tvm.nd.array("x"), "they hold numbers, not 'x'"),
    "shape": (lambda: tvm.nd.empty(untyped("x")), "the shape of an array is a number, or a tuple of numbers, not 'x'"),
    "copyto": (lambda: tvm.nd.array([1.0]).copyto(untyped(3)), "copyto takes an nd.array or a device"),
    "registry": (lambda: tvm.register_func("example", untyped(3)), "takes a name and a function, not 'example' and 3"),
    "level": (lambda: tvm.transform.PassContext(opt_level=untyped("x")), "opt_level is a number, such as 3, not 'x'"),
    "config": (lambda: tvm.transform.PassContext(config=untyped([1])), r"config is a dictionary such as .*, not \[1\]"),
    "pass": (lambda: tir.transform.Simplify()(untyped(3)), "the pass tir.Simplify takes an IRModule, not int"),
    "function": (lambda: tir.transform.Simplify()(untyped(BLOCKS)), r"not PrimFunc; make one of a function with tvm.IRModule"),
    "interpret": (
        lambda: tir.interpreter.interpret(untyped(MODULE), []),
        r'not IRModule; take one of its functions, such as mod\["main"\]',
    ),
}

TASK = auto_scheduler.SearchTask(compute_dag=[A, B], target="llvm")
STATE = TASK.compute_dag.get_init_state


def hardware(**numbers: Any) -> auto_scheduler.SearchTask:
    """A task for a CPU with AVX2 and some numbers of its own."""
    return auto_scheduler.SearchTask(
        compute_dag=[A, B], target="llvm -mcpu=haswell", hardware_params=auto_scheduler.HardwareParams(**numbers)
    )


TUNING: dict[str, tuple[Callable[[], Any], str]] = {
    "task": (
        lambda: auto_scheduler.SearchTask(untyped("f"), (4,), untyped("llvm")),
        "give exactly one of them, not func='f', compute_dag='llvm'",
    ),
    "machine": (lambda: auto_scheduler.SearchTask(compute_dag=[A, B], hardware_params=untyped(3)), r"HardwareParams\(...\), not 3"),
    "cores": (lambda: hardware(num_cores=untyped(2.5)), "num_cores is 2.5; it takes a whole number"),
    "no cores": (lambda: hardware(num_cores=-1), "num_cores is -1; parallel loops use at least one core"),
    "no vector": (lambda: hardware(vector_unit_bytes=24), "vector_unit_bytes is 24; vector registers have 16, 32 or 64 bytes"),
    "wide vector": (
        lambda: hardware(vector_unit_bytes=64),
        "vector_unit_bytes is 64, but code for .*haswell.* has vectors of 32 bytes; leave it out",
    ),
    "lines": (lambda: hardware(cache_line_bytes=128), "cache_line_bytes is 128, but the lines of haswell have 64 bytes"),
    "a GPU's": (
        lambda: hardware(warp_size=32, max_vthread_extent=8),
        "max_vthread_extent, warp_size tell of GPUs, but the target is a CPU",
    ),
    "callback": (
        lambda: auto_scheduler.TuningOptions(2, measure_callbacks=untyped("x.json")),
        r"RecordToFile\(\"log.json\"\)\], not 'x.json'",
    ),
    "callbacks": (lambda: auto_scheduler.TuningOptions(2, measure_callbacks=untyped([3])), r"takes a list such as .*, not \[3\]"),
    "log": (lambda: auto_scheduler.RecordToFile(untyped(3)), 'takes the path of a log, such as "log.json", not 3'),
    "policy": (
        lambda: TASK.tune(auto_scheduler.TuningOptions(2), untyped("sketch")),
        r"such as auto_scheduler.SketchPolicy\(task\), not 'sketch'",
    ),
    "policies": (lambda: auto_scheduler.SketchPolicy(TASK, seed=untyped("x")), "a whole number as seed; got .*, None, 'x'"),
    "auto_schedule": (lambda: auto_scheduler.auto_schedule(TASK, untyped(3)), r"takes a task, a policy such as .*; got 3"),
    "dag": (lambda: auto_scheduler.ComputeDAG(untyped(3)), "made of tensors, a workload key or a schedule, not 3"),
    "history": (lambda: auto_scheduler.ApplyHistoryBest(untyped(3)), "records come from a log, .*, not from 3"),
    "tasks": (lambda: auto_scheduler.TaskScheduler(untyped([3])), "takes a list of SearchTasks; 3 is none"),
    "scheduler": (lambda: auto_scheduler.TaskScheduler([TASK]).tune(untyped(3)), r"tune takes auto_scheduler.TuningOptions\(...\), not 3"),
    "stage": (lambda: STATE().split(untyped("B"), STATE().stages[1].iters[0], [2]), "'B' is no stage of this program; stages: A, B"),
    "lengths": (
        lambda: STATE().split(1, STATE().stages[1].iters[0], untyped(2)),
        "takes a length for each new loop, or None for all of them; got 2",
    ),
    "meta seed": (lambda: ms.tune_tir(BLOCKS, "llvm", None, 1, seed=untyped("x")), "a seed is a whole number, .*, not 'x'"),
    "meta callback": (
        lambda: ms.tune_tir(BLOCKS, "llvm", None, 1, measure_callbacks=untyped([3])),
        "ms.measure_callback.AddToDatabase.*, not 3",
    ),
    "meta rules": (
        lambda: ms.TuneContext(BLOCKS, target="llvm", space_generator=ms.space_generator.PostOrderApply(sch_rules=[untyped(3)])),
        "made of objects such as ms.schedule_rule.AutoInline.*, not of 3",
    ),
    "meta folder": (lambda: ms.database.JSONDatabase(work_dir=f"{__file__}/x"), "the database .* can't be made: Not a directory"),
}


@pytest.mark.parametrize(("wrong", "words"), [pytest.param(*case, id=name) for name, case in DECLARING.items()])
def test_declaring(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(tvm.TVMError, match=words):
        wrong()


@pytest.mark.parametrize(("wrong", "words"), [pytest.param(*case, id=name) for name, case in BLOCK_SCHEDULES.items()])
def test_schedules_of_blocks(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(tvm.TVMError, match=words):
        wrong()


@pytest.mark.parametrize(("wrong", "words"), [pytest.param(*case, id=name) for name, case in RUNNING.items()])
def test_running(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(tvm.TVMError, match=words):
        wrong()


@pytest.mark.parametrize(("wrong", "words"), [pytest.param(*case, id=name) for name, case in TUNING.items()])
def test_tuning(wrong: Callable[[], Any], words: str) -> None:
    with pytest.raises(tvm.TVMError, match=words):
        wrong()


def test_modules_are_written_where_there_is_a_folder(tmp_path: Path) -> None:
    x, y = te.placeholder((4,), name="x"), np.zeros(4, "float32")
    module = tvm.build(te.create_schedule(te.compute((4,), lambda i: x[i], name="y").op), [x])
    with pytest.raises(tvm.TVMError, match=r"missing/x\.o can't be written: No such file or directory: .*missing"):
        module.save(tmp_path / "missing/x.o")
    with pytest.raises(tvm.TVMError, match=r"fcompile is a function such as cc\.create_shared, not 3"):
        module.export_library(tmp_path / "x.so", fcompile=untyped(3))
    with pytest.raises(tvm.TVMError, match="and wrote no such file"):
        module.export_library(tmp_path / "x.so", fcompile=lambda *args: None)
    with pytest.raises(tvm.TVMError, match="number is 'x', needs at least 1, a whole number"):
        module.time_evaluator(module.entry_name, tvm.cpu(0), number=untyped("x"))(y, y)
