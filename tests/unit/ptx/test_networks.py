"""Graphs that are built for a GPU: every operator has a kernel, arrays stay on the device, and what can't be done says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ArgumentError, TargetError, TensorExprError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.testing.ptx import emulator

from .running import TARGET


def network() -> Any:
    """A convolution, a product, a softmax, the first few of it by size, and running sums."""
    rng = np.random.default_rng(0)
    kernel, weights = (relax.const(rng.standard_normal(shape).astype("float32")) for shape in ((4, 2, 3, 3), (4 * 5 * 5, 12)))
    x = Var("x", TensorStructInfo((3, 2, 10, 10)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.relu(op.nn.conv2d(x, kernel, padding=1)))
            y = bb.emit(op.reshape(op.nn.max_pool2d(y, (2, 2), (2, 2)), (3, 100)))
            y = bb.emit(op.nn.softmax(op.matmul(y, weights)))
            top = bb.emit(op.topk(y, 4, ret_type="both", dtype="int32"))
            outputs = [bb.emit_output(one) for one in (y, op.cumsum(y, 1), relax.TupleGetItem(top, 0), relax.TupleGetItem(top, 1))]
        bb.emit_func_output(tuple(outputs))
    return bb.get()


def test_a_network_runs_on_a_device(tmp_path: Path) -> None:
    mod, device = network(), emulator()
    x = np.random.default_rng(1).standard_normal((3, 2, 10, 10)).astype("float32")
    executable = relax.build(mod, TARGET)
    assert ".visible .entry" in executable.lib.imported_modules[0].get_source("ptx")
    assert "topk" in executable.explain() and executable.stats()
    machine = relax.VirtualMachine(executable, [device, tvm.cpu()])
    wanted = relax.VirtualMachine(relax.build(mod, "llvm"))["main"](x)
    for given in (x, tvm.nd.array(x), tvm.nd.array(x, device)):
        found = machine["main"](given)
        assert all(one.device is device for one in found)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
    for file in (tmp_path / "net.so", tmp_path / "net.tar"):
        executable.export_library(file)
        read = tvm.runtime.load_module(file)
        assert read.get_source("ptx") == executable.get_source("ptx")
        for one, other in zip(relax.VirtualMachine(read, device)["main"](x), found, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    with pytest.raises(TargetError, match="kernels for cuda can't be called from C; export_library"):
        executable.export_c("net.o")
    with pytest.raises(TensorExprError, match=r"net.so holds a network for cuda.*load_module"):
        tvm.runtime.load(str(tmp_path / "net.so"))
    with pytest.raises(ArgumentError, match=r"built for cuda runs on cuda\(0\), not on \[cpu\(0\)\]"):
        relax.VirtualMachine(executable, tvm.cpu())


def test_functions_whose_loops_are_given_get_threads() -> None:
    source = """
from tensorexpr.script import ir as I, tir as T, relax as R

@I.ir_module
class Module:
    @T.prim_func
    def rows(A: T.Buffer((6, 5), "float32"), B: T.Buffer((6,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in T.parallel(6):
            B[i] = 0.0
            for j in range(5):
                B[i] = B[i] + A[i, j] * 2.0

    @R.function
    def main(x: R.Tensor((6, 5), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.rows, (x,), out_sinfo=R.Tensor((6,), "float32"))
            R.output(y)
        return y
"""
    from tensorexpr.script import from_source

    mod: Any = from_source(source)
    executable = relax.build(mod, TARGET)
    assert executable.origins["rows"].startswith("as given")
    x = np.arange(30, dtype="float32").reshape(6, 5)
    np.testing.assert_allclose(relax.VirtualMachine(executable, emulator())["main"](x).numpy(), x.sum(1) * 2)
