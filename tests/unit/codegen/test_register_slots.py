"""Registers of an allocation inside a loop, set only by a loop that never runs."""

from __future__ import annotations

import numpy as np

from tensorexpr.runtime.build import compile_functions
from tensorexpr.target import Target
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import decl_buffer
from tensorexpr.tir.expr import BufferLoad, FloatImm, IntImm, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import Allocate, BufferStore, For, ForKind, seq

ZERO, ONE = IntImm("int32", 0), IntImm("bool", 1)


def test_a_slot_that_only_an_empty_loop_sets() -> None:
    out = decl_buffer((2,), "float32", "out")
    tile = decl_buffer((1,), "float32", "tile", scope="register")
    i, k, empty = Var("i"), Var("k"), Var("empty")
    never = For(empty, ZERO, ZERO, ForKind.SERIAL, BufferStore(tile, BufferLoad(tile, (ZERO,)), (ZERO,)))
    body = seq(For(k, ZERO, IntImm("int32", 3), ForKind.SERIAL, never), BufferStore(out, FloatImm("float32", 2.5), (i,)))
    loop = For(i, ZERO, IntImm("int32", 2), ForKind.SERIAL, Allocate(tile.data, "float32", (IntImm("int32", 1),), ONE, body))
    func = PrimFunc((Var("out", "handle"),), loop, attrs=FrozenMap({"global_symbol": "main"}))
    func = PrimFunc(func.params, loop, None, {func.params[0]: out}, func.attrs)
    result = np.zeros(2, np.float32)
    compile_functions({"main": func}, Target("llvm"))(result)  # not through the passes, which drop empty loops
    assert result.tolist() == [2.5, 2.5]
