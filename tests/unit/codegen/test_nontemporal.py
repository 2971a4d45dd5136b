"""Non-temporal stores: where they are used, how they are ordered, and that any array is served."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorexpr.target import Target
from tensorexpr.tir.attrs import NONTEMPORAL_STORE
from tensorexpr.tir.expr import IntImm, Var
from tensorexpr.tir.stmt import AttrStmt, For, ForKind, Stmt

from .harness import assembly, compile_function, flat, load, loop, primfunc, ramp, store

X86 = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -num-cores=2")
ARM = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1 -num-cores=2")


def nontemporal(size: int, lanes: int, step: int, kind: ForKind = ForKind.SERIAL, dtype: str = "float32") -> object:
    """out[i * step : i * step + lanes] = a[...] under the attribute."""
    a, out = flat("a", size, dtype), flat("out", size, dtype)

    def body(i: Var) -> Stmt:
        index = ramp(i * step, lanes)
        return store(out, index, load(a, index))

    return primfunc([a, out], AttrStmt(out.data, NONTEMPORAL_STORE, IntImm("int32", 1), loop("i", size // step, body, kind)))


def text_of(func: object, target: Target) -> str:
    from tensorexpr.codegen.emit import emit_module
    from tensorexpr.tir.function import PrimFunc

    assert isinstance(func, PrimFunc)
    return emit_module({"f": func}, target).text


@pytest.mark.parametrize(
    ("lanes", "step", "count"),
    ((16, 16, 1), (4, 4, 1), (4, 20, 1), (32, 48, 1), (16, 20, 0), (16, 17, 0), (16, 6, 0), (3, 4, 0), (2, 2, 0)),
)
def test_vectors_that_cross_no_line_bypass_the_caches(lanes: int, step: int, count: int) -> None:
    text = text_of(nontemporal(48 * 17, lanes, step), X86)
    assert text.count("!nontemporal") == count
    assert text.count("sfence") == count


def test_the_machine_has_instructions_for_it() -> None:
    func = nontemporal(1024, 16, 16, ForKind.PARALLEL)
    asm = assembly(text_of(func, X86), X86)
    assert re.search(r"vmovnt(ps|dq|pd)\s+%zmm", asm), "a whole line at a time"
    assert asm.count("sfence") == 1


def test_each_thread_ends_with_a_fence() -> None:
    text = text_of(nontemporal(1024, 16, 16, ForKind.PARALLEL), X86)
    bodies = [part for part in text.split("define ") if "!nontemporal !" in part]
    assert len(bodies) == 1
    assert "_body" in bodies[0].splitlines()[0]
    assert bodies[0].index("!nontemporal !") < bodies[0].index("sfence") < bodies[0].index("ret i32")


def test_other_machines_need_no_fence() -> None:
    text = text_of(nontemporal(1024, 16, 16), ARM)
    assert text.count("!nontemporal") == 1
    assert "sfence" not in text


def test_what_is_read_again_stays_in_the_cache() -> None:
    out = flat("out", 64)
    index = ramp(0, 16)
    body = AttrStmt(out.data, NONTEMPORAL_STORE, IntImm("int32", 1), store(out, index, load(out, index) + load(out, index)))
    assert "nontemporal" not in text_of(primfunc([out], body), X86)


def test_only_the_named_buffer_is_meant() -> None:
    a, b = flat("a", 64), flat("b", 64)
    index = ramp(0, 16)
    body = AttrStmt(a.data, NONTEMPORAL_STORE, IntImm("int32", 1), store(b, index, load(a, index)))
    assert "!nontemporal" not in text_of(primfunc([a, b], body), X86)


@pytest.mark.parametrize("kind", (ForKind.SERIAL, ForKind.PARALLEL))
@pytest.mark.parametrize("shift", (0, 1, 4, 15, 16))
def test_any_array_is_served(shift: int, kind: ForKind) -> None:
    compiled = compile_function(nontemporal(256, 16, 16, kind))  # type: ignore[arg-type]
    values = np.arange(256, dtype=np.float32)
    room = np.zeros(256 + 64, np.float32)
    start = (-room.ctypes.data % 64) // 4 + shift
    assert compiled(values, room[start : start + 256]) == 0
    assert np.array_equal(room[start : start + 256], values)
    assert not room[:start].any()
    assert not room[start + 256 :].any()


def test_the_loop_exists_in_two_versions_only() -> None:
    """Attributes of several outputs don't multiply: the ordinary version is one for all."""
    a, b, c = (flat(name, 64) for name in "abc")
    inner: Stmt = loop("i", 4, lambda i: store(b, ramp(i * 16, 16), load(a, ramp(i * 16, 16))))
    assert isinstance(inner, For)
    for buffer in (b, c, a):
        inner = AttrStmt(buffer.data, NONTEMPORAL_STORE, IntImm("int32", 1), inner)
    assert text_of(primfunc([a, b, c], inner), X86).count("; for i") == 3
