"""Devices, arrays and modules by the names that programs of several releases use."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import nd, te
from tensorexpr.errors import ArgumentError, RecordError, TargetError, TensorExprError


def doubled() -> Any:
    """B = 2 A, built as "double"."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] * 2.0, name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], name="double")


def doubles(func: Any) -> bool:
    x, y = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    func(x, y)
    return bool((y == 2 * x).all())


def test_all_devices_can_be_named_and_only_cpus_are_there() -> None:
    for make in (
        tvm.cuda,
        tvm.gpu,
        tvm.cl,
        tvm.opencl,
        tvm.rocm,
        tvm.metal,
        tvm.mtl,
        tvm.vulkan,
        tvm.ext_dev,
        tvm.vpi,
        tvm.hexagon,
        tvm.webgpu,
    ):
        assert not make(0).exist and make(1).device_id == 1 and make().warp_size is None and make().device_name is None
    assert tvm.gpu(0) == tvm.cuda(0) == tvm.device("cuda", 0) and str(tvm.cuda(2)) == "cuda(2)" and str(tvm.mtl()) == "metal(0)"
    cpu = tvm.cpu(0)
    cpu.sync()
    assert (
        cpu.exist
        and cpu.total_global_memory
        and cpu.available_global_memory
        and cpu.multi_processor_count
        and cpu.device_type == cpu.kDLCPU
    )
    assert tvm.context("llvm", 0) == cpu and tvm.device("llvm -mcpu=haswell") == cpu
    with pytest.raises(TargetError, match="no device 'x'"):
        tvm.device("x")
    assert tvm.runtime.enabled("llvm") and tvm.runtime.enabled("cpu") and not tvm.runtime.enabled("cuda")
    assert tvm.runtime.num_threads() >= 1
    with pytest.raises(TensorExprError, match="no system library"):
        tvm.runtime.system_lib()


def test_arrays_take_the_device_by_its_names() -> None:
    x = np.arange(3, dtype="float32")
    arrays = [nd.array(x, tvm.cpu(0)), nd.array(x, ctx=tvm.cpu(0)), nd.array(x, device=tvm.cpu(0), mem_scope="global")]
    assert all((array.numpy() == x).all() and array.ctx == tvm.cpu(0) and array.size == 3 for array in arrays)
    assert nd.empty((2,), "int8", ctx=tvm.cpu()).dtype == "int8"
    assert arrays[0].same_as(arrays[0]) and not arrays[0].same_as(arrays[1])
    shared = nd.numpyasarray(x)
    assert shared.handle == x.ctypes.data
    with pytest.raises(TargetError, match="cuda"):
        nd.array(x, tvm.cuda(0))


def test_evaluators_take_the_device_by_its_names() -> None:
    module = doubled()
    x, y = nd.array(np.ones(4, "float32")), nd.empty(4)
    assert module.time_evaluator(module.entry_name, ctx=tvm.cpu(0), number=1)(x, y).mean > 0
    with pytest.raises(TargetError, match="cuda"):
        module.time_evaluator(module.entry_name, tvm.cuda(0))


def test_modules_say_what_they_can_do() -> None:
    module = doubled()
    assert module.imported_modules == [] and module.is_dso_exportable and module.is_runnable and not module.is_device_module
    assert module.get_property_mask() == 7
    module.clear_imports()
    with pytest.raises(TensorExprError, match="imports no other"):
        module.import_module(module)


_ANOTHER_PROCESS = """
import pickle, sys
import numpy as np
x, y = np.ones(4, "float32"), np.zeros(4, "float32")
pickle.load(open(sys.argv[1], "rb"))(x, y)
print(y)
"""


def test_modules_are_copied_and_go_to_other_processes(tmp_path: Path) -> None:
    module = doubled()
    assert copy.copy(module) is module and copy.deepcopy({"m": module})["m"] is module
    again = pickle.loads(pickle.dumps(module))
    assert doubles(again) and again.get_source() == module.get_source()
    (tmp_path / "module").write_bytes(pickle.dumps(module))
    words = [sys.executable, "-c", _ANOTHER_PROCESS, str(tmp_path / "module")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[2. 2. 2. 2.]\n"
    module.export_library(tmp_path / "a.tar")
    assert doubles(pickle.loads(pickle.dumps(tvm.runtime.load_module(tmp_path / "a.tar"))))


def test_parameters_are_bytes_and_back() -> None:
    params = {"w": np.arange(6, dtype="float32").reshape(2, 3), "b": nd.array(np.array([True, False])), "n": np.int64(7)}
    data = tvm.runtime.save_param_dict(params)
    found = tvm.runtime.load_param_dict(data)
    assert list(found) == ["w", "b", "n"] and found["b"].dtype == "bool" and found["n"].shape == ()
    assert all((found[name].numpy() == np.asarray(params[name])).all() for name in params)
    for end in range(len(data)):
        with pytest.raises(RecordError):
            tvm.runtime.load_param_dict(data[:end])
    with pytest.raises(RecordError, match="another number"):
        tvm.runtime.load_param_dict(bytes(100))
    with pytest.raises(ValueError, match="complex64"):
        tvm.runtime.save_param_dict({"z": np.zeros(2, "complex64")})


def test_parameters_in_a_file(tmp_path: Path) -> None:
    tvm.runtime.save_param_dict_to_file({"w": np.ones(2, "int8")}, tmp_path / "p")
    assert tvm.runtime.load_param_dict_from_file(tmp_path / "p")["w"].dtype == "int8"


def test_programs_of_early_releases_use_the_top_level() -> None:
    n = tvm.var("n")
    a = tvm.placeholder((n,), name="A")
    b = tvm.compute(a.shape, lambda i: tvm.exp(a[i]) + tvm.const(1, "float32"), name="B")
    func = tvm.build(tvm.create_schedule(b.op), [a, b])
    x, y = tvm.nd.array(np.zeros(3, "float32"), tvm.context("cpu", 0)), tvm.ndarray.empty((3,))
    func(x, y)
    assert y.asnumpy().tolist() == [2.0, 2.0, 2.0]
    assert tvm.var("x", tvm.float32).dtype == "float32" and isinstance(tvm.convert(3), tvm.expr.IntImm)


@pytest.mark.parametrize(
    "output", [np.zeros((4, 4), "float64"), np.zeros((4, 8), "float32")[:, ::2], np.zeros((4, 4), "float32", order="F")]
)
def test_advice_for_an_output_keeps_the_result(output: Any) -> None:
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B")
    func, x = tvm.build(te.create_schedule(b.op), [a, b]), np.ones((4, 4), "float32")
    with pytest.raises(ArgumentError, match=r"the function writes it, so pass y = .*\(.*\) and then do x\[...\] = y") as refused:
        func(x, output)
    scope = {"x": output, "np": np}
    advice = str(refused.value).split("pass ")[1].split(" and then do ")
    exec(advice[0], scope)
    func(x, scope["y"])
    exec(advice[1], scope)
    assert (output == 2).all()


def test_a_description_of_functions_that_a_library_lacks_is_refused(tmp_path: Path) -> None:
    module = doubled()
    if shutil.which("cc"):
        module.export_library(tmp_path / "a.so")
        (tmp_path / "a.so.json").write_text((tmp_path / "a.so.json").read_text().replace('"double"', '"triple"'))
        with pytest.raises(TensorExprError, match="names functions that the library hasn't: triple"):
            doubles(tvm.runtime.load_module(tmp_path / "a.so"))
    module.save(tmp_path / "a.o")
    (tmp_path / "a.o.json").write_text((tmp_path / "a.o.json").read_text().replace('"double"', '"triple"'))
    with pytest.raises(TensorExprError, match="triple"):
        doubles(tvm.runtime.load_module(tmp_path / "a.o"))
