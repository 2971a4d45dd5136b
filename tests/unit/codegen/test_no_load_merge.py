"""no_load_merge: unrolled steps load for themselves, so that nothing is kept alive from one to the next."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.errors import TensorExprError
from tensorexpr.runtime.build import build
from tensorexpr.runtime.module import Module
from tensorexpr.schedule import create_schedule
from tensorexpr.target import Target
from tensorexpr.tir.expr import Call
from tensorexpr.tir.stmt import Evaluate, Stmt, seq

from .harness import compile_function, flat, load, loop, primfunc, store

STEP = Evaluate(Call("int32", "tir.no_load_merge", ()))
AVX512 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -num-cores=2"


def test_loads_before_and_after_are_two() -> None:
    a, out = flat("a", 8), flat("out", 16)

    def body(between: Stmt) -> Stmt:
        return loop("i", 8, lambda i: seq(store(out, i * 2, load(a, i)), between, store(out, i * 2 + 1, load(a, i))))

    merged, separate = (compile_function(primfunc([a, out], body(part))) for part in (seq(), STEP))
    assert merged.text.count("load float") == 1
    assert separate.text.count("load float") == 2
    assert separate.text.count('asm ""') == 2  # a pointer for the load, one for the store
    values, result = np.arange(8, dtype=np.float32), np.zeros(16, np.float32)
    assert separate(values, result) == 0
    assert result.tolist() == np.repeat(values, 2).tolist()


def test_the_pointers_of_later_steps_are_made_of_earlier_ones() -> None:
    """Copies of one pointer would be equal again; a chain also needs one register only."""
    a, out = flat("a", 8), flat("out", 8)
    body = seq(*(part for n in range(3) for part in (STEP, store(out, n, load(a, n)))))
    text = compile_function(primfunc([a, out], body)).text
    copies = [line.split(" = ")[0].strip() for line in text.splitlines() if 'asm ""' in line]
    sources = [line.split("(ptr ")[1].split(")")[0] for line in text.splitlines() if 'asm ""' in line]
    assert len(copies) == 6
    assert len(set(sources)) == 6
    assert set(sources[2:]) <= set(copies)


def test_it_ends_with_the_loop() -> None:
    a, out = flat("a", 8), flat("out", 8)
    body = seq(loop("i", 4, lambda i: seq(STEP, store(out, i, load(a, i)))), loop("j", 4, lambda j: store(out, j + 4, load(a, j + 4))))
    text = compile_function(primfunc([a, out], body)).text
    assert text.count('asm ""') == 2


def convolution(unmerged: bool) -> Module:
    """3x3, 14 columns by two vectors of output channels in registers, the taps of a row written out."""
    x, w = te.placeholder((16, 6, 16), name="X"), te.placeholder((16, 3, 3, 32), name="W")
    rc, rh, rw = te.reduce_axis((0, 16), "rc"), te.reduce_axis((0, 3), "rh"), te.reduce_axis((0, 3), "rw")
    out = te.compute((4, 14, 32), lambda h, v, o: te.sum(x[rc, h + rh, v + rw] * w[rc, rh, rw, o], axis=[rc, rh, rw]), name="out")
    s = create_schedule(out.op)
    h, v, o = out.op.axis
    oo, oi = s[out].split(o, factor=16)
    s[out].reorder(h, rc, rh, rw, v, oo, oi)
    s[out].vectorize(oi)
    s[out].unroll(rw)
    if unmerged:
        s[out].pragma(rw, "no_load_merge")
    return build(s, [x, w, out], target=Target(AVX512))


def test_the_tile_of_a_convolution_stays_in_registers() -> None:
    merged, unmerged = convolution(False).spills, convolution(True).spills
    assert merged.stores > 10
    assert unmerged.total < merged.total / 10


def test_a_loaded_module_has_no_assembly_to_count_in(tmp_path: object) -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    module = build(create_schedule(b.op), [a, b])
    assert module.spills.total == 0
    path = f"{tmp_path}/m.o"
    module.save(path)
    from tensorexpr.runtime import load_module

    with pytest.raises(TensorExprError, match="has no source"):
        _ = load_module(path).spills


def test_no_load_moves_across_a_step() -> None:
    """LLVM loads what a later step reads early otherwise, for which a tile has no registers."""
    a, out = flat("a", 8), flat("out", 8)
    text = compile_function(primfunc([a, out], seq(store(out, 0, load(a, 0)), STEP, store(out, 1, load(a, 1))))).text
    lines = [line for line in text.splitlines() if "load float" in line or "sideeffect" in line]
    assert ["load" in line for line in lines] == [True, False, True]
