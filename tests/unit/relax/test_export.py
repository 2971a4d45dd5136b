"""Executables as libraries: what is written is loaded and does the same, in other processes too; constants are kept once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ArgumentError, RecordError, TensorExprError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, TupleStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.runtime import library
from tensorexpr.relax.runtime.saved_graph import read_functions, write_functions
from tensorexpr.tir.expr import Var as Symbol
from tests.effort import share_of

from . import programs
from .programs import expected, inputs


def exported(mod: Any, folder: Path) -> tuple[Any, relax.Executable]:
    """An executable, and what is loaded of its file."""
    ex = relax.build(mod)
    ex.export_library(folder / "x.so")
    loaded = tvm.runtime.load_module(folder / "x.so")
    assert isinstance(loaded, relax.Executable) and loaded.as_text() == ex.as_text() and loaded.origins == ex.origins
    return ex, loaded


def weighted() -> Any:
    """Two layers of equal weights, of bfloat16 and float32, a loop, and an operator without a kernel; its result has symbols."""
    bb = BlockBuilder()
    i, s = Var("i", TensorStructInfo((), "int64")), Var("s", TensorStructInfo((8,)))
    with bb.function("body", [i, s], private=True):
        half = bb.emit(op.multiply(s, relax.const(0.5)))
        bb.emit_func_output([relax.const(True, "bool"), half, half])
    x = Var("x", TensorStructInfo((8,)))
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((8, 8)).astype("float32")
    low = relax.const(np.arange(8).astype(ml_dtypes.bfloat16))
    with bb.function("main", [x]):
        y = bb.emit(op.nn.relu(op.matmul(x, relax.const(weights))))
        z = bb.emit(op.matmul(y, relax.const(weights.copy())))
        w = bb.emit(op.add(z, op.astype(low, "float32")))
        info = TupleStructInfo((TensorStructInfo((8,)), TensorStructInfo((3, 8))))
        turns = bb.emit(op.loop(relax.GlobalVar("body"), (w,), trip_count=3, sinfo_args=info))
        n = Symbol("n", "int64")
        found = bb.match_cast(bb.emit(op.nonzero(turns[0])), TensorStructInfo((1, n), "int64"))
        bb.emit_func_output([turns[1], bb.emit(op.add(found, found))])
    return bb.get()


def test_all_kinds_of_values_come_back(tmp_path: Path) -> None:
    mod = weighted()
    ex, loaded = exported(mod, tmp_path)
    x = np.linspace(-1, 1, 8).astype("float32")
    for one in (ex, loaded):
        for a, b in zip(relax.VirtualMachine(one)["main"](x), Evaluator(mod)("main", x), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4)
    assert os.listdir(tmp_path) == ["x.so"]


def test_networks_with_symbols_and_registered_functions(tmp_path: Path) -> None:
    _, loaded = exported(programs.Network, tmp_path)
    vm = relax.VirtualMachine(loaded, tvm.cpu())
    for rows in (1, 4):
        np.testing.assert_allclose(vm["main"](*inputs(rows)).numpy(), expected(*inputs(rows)), rtol=1e-5)


RUN = """
import sys
import numpy as np
import tensorexpr as tvm
vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
print(vm["main"](np.ones(8, "float32"))[0].numpy().sum())
"""


def test_another_process_runs_it(tmp_path: Path) -> None:
    mod = weighted()
    exported(mod, tmp_path)
    done = subprocess.run([sys.executable, "-c", RUN, str(tmp_path / "x.so")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(float(done.stdout), Evaluator(mod)("main", np.ones(8, "float32"))[0].sum(), rtol=1e-4)


def test_equal_constants_are_written_once(tmp_path: Path) -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((64, 64)))
    data = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    with bb.function("main", [x]):
        y: Any = x
        for _ in range(8):
            y = bb.emit(op.tanh(bb.emit(op.add(y, relax.const(data.copy())))))
        bb.emit_func_output(y)
    exported(bb.get(), tmp_path)
    assert (tmp_path / "x.so").stat().st_size < 8 * data.nbytes


def test_what_can_not_be_written_or_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ex = relax.build(weighted())
    with pytest.raises(ArgumentError, match="becomes a shared library"):
        ex.export_library(tmp_path / "x.txt")
    with pytest.raises(TensorExprError, match="failed"):
        ex.export_library(tmp_path / "x.so", options=["-no-such-option"])
    ex.export_library(tmp_path / "x.so")
    whole = (tmp_path / "x.so").read_bytes()
    (tmp_path / "torn.so").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TensorExprError):
        tvm.runtime.load_module(tmp_path / "torn.so")
    (tmp_path / "short.so").write_bytes(whole[:20_000] + whole[-100:])
    with pytest.raises(TensorExprError, match="torn"):
        tvm.runtime.load_module(tmp_path / "short.so")
    with pytest.raises(TensorExprError):
        tvm.runtime.load_module(tmp_path / "none.so")
    (tmp_path / "old.so").write_bytes(whole[:-56] + whole[-48:])
    with pytest.raises(TensorExprError, match="format 1"):
        tvm.runtime.load_module(tmp_path / "old.so")
    monkeypatch.setattr(library, "FORMAT", 3)
    with pytest.raises(TensorExprError, match="format 2"):
        tvm.runtime.load_module(tmp_path / "x.so")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    exported(weighted(), folder)
    return folder / "x.so"


@given(st.data())
@settings(max_examples=share_of(40), deadline=None)
def test_a_byte_that_flipped_is_an_error_before_code_is_loaded(written: Path, data: st.DataObject) -> None:
    whole = bytearray(written.read_bytes())
    # From the end too, where the places are that say what is what.
    place = data.draw(st.integers(0, len(whole) - 1) | st.integers(1, 56).map(lambda behind: len(whole) - behind), "place")
    whole[place] ^= 1 << data.draw(st.integers(0, 7), "bit")
    damaged = written.with_name("damaged.so")
    damaged.write_bytes(whole)
    for load in (tvm.runtime.load, tvm.runtime.load_module):
        with pytest.raises(TensorExprError) as caught:
            load(damaged)
        assert "damaged.so" in str(caught.value)
    if place < len(whole) - 56:
        assert "is damaged: its checksum" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["rows"].append(["Nothing", 1]),
        lambda saved: saved["rows"].insert(0, ["Tuple", [5]]),
        lambda saved: saved["rows"].append(["Call", 0]),
        lambda saved: saved["rows"].append("Call"),
        lambda saved: saved["functions"].update(f=0),
        lambda saved: saved["functions"].update(f=-1),
        lambda saved: saved.pop("exprs"),
    ],
)
def test_rows_are_checked(change: Any) -> None:
    arrays: list[Any] = []

    def number(data: Any) -> int:
        arrays.append(data)
        return len(arrays) - 1

    saved = write_functions({"main": weighted()["main"]}, number)
    assert read_functions(saved, arrays.__getitem__)["main"].script() == weighted()["main"].script()
    change(saved)
    with pytest.raises(RecordError):
        read_functions(saved, arrays.__getitem__)
