"""The native way in lets through exactly what the check in Python lets through, and hands over the same words. Property 40."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.codegen.signature import Signature
from tensorexpr.errors import ArgumentError
from tensorexpr.runtime import fastcall, layout
from tensorexpr.runtime import ndarray as nd
from tensorexpr.runtime.arguments import ArgumentChecker
from tensorexpr.runtime.fastcall import REFUSED
from tensorexpr.runtime.function import Function
from tensorexpr.runtime.module import Module
from tensorexpr.tir.expr import Var
from tests.effort import share_of

from .functions import buffer, module_of, scalar, signature

N, M = Var("n", "int64"), Var("m", "int32")
COUNT, SCALE = scalar("count", "int32"), scalar("scale", "float32")
MANY = signature(
    buffer("a", (N, 2)), buffer("b", (M, COUNT.var)), buffer("out", (N,), "int64", written=True), COUNT, SCALE, symbols=(N, M), name="many"
)


def plain_layout() -> bool:
    """Whether this interpreter is one whose arrays can be read natively."""
    return sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


def native(module: Module) -> Any:
    """The builtin of the module's function, without the fallback."""
    function = module.entry_func
    made = fastcall.make(function.signature, function._checker.plan, function.entry)
    assert made is not None
    _KEPT.append((made, module))
    return made.call


_KEPT: list[Any] = []


def test_the_layout_is_proved_on_plain_cpython() -> None:
    assert layout.proved() == plain_layout()


@pytest.fixture(scope="module")
def many() -> Any:
    return native(module_of(MANY))


def draw_array(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """An array that fits, or is wrong in one of many ways."""
    flaw = data.draw(st.sampled_from(["none"] * 8 + ["dtype", "extent", "rank", "strided", "frozen", "shifted", "swapped"]))
    match flaw:
        case "dtype":
            return np.zeros(shape, np.float64 if dtype != "float64" else np.float32)
        case "extent":
            return np.zeros((shape[0] + 1, *shape[1:]), dtype)
        case "rank":
            return np.zeros((1, *shape), dtype)
        case "strided":
            return np.zeros((2 * shape[0], *shape[1:]), dtype)[::2]
        case "frozen":
            array = np.zeros(shape, dtype)
            array.flags.writeable = False
            return array
        case "shifted":
            itemsize = np.dtype(dtype).itemsize
            return np.zeros(int(np.prod(shape)) * itemsize + 1, np.uint8)[1:].view(dtype).reshape(shape)
        case "swapped":
            return np.zeros(shape, np.dtype(dtype).newbyteorder())
    return np.zeros(shape, dtype)


@settings(deadline=None, derandomize=True, max_examples=share_of(250))
@given(st.data())
def test_both_ways_agree(many: Any, data: st.DataObject) -> None:
    n, m, count = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 3)))
    a, b = draw_array(data, (n, 2), "float32"), draw_array(data, (m, max(count, 1)), "float32")
    out = draw_array(data, (n,), "int64")
    if data.draw(st.integers(0, 9)) == 0:
        out = a.view(np.int64).reshape(-1)[: out.shape[0]] if a.dtype == np.float32 and a.flags.c_contiguous else out
    number: Any = data.draw(st.sampled_from([count, count, count, 2**31, -1, 2**70, 1.5, True]))
    scale: Any = data.draw(st.sampled_from([1.5, 2, "x"]))
    args = (a, b, out, number, scale)
    try:
        ArgumentChecker(MANY).block(args)
        fits = True
    except ArgumentError:
        fits = False
    code = many(*args)
    assert code in (0, REFUSED)
    if code == 0:
        assert fits
    elif type(number) is int and type(scale) is float and all(type(x) is np.ndarray and x.size for x in (a, b, out)):
        assert not fits


ECHO = signature(
    buffer("a", (N, M)),
    buffer("out", (7,), "int64", written=True),
    scalar("i", "int64"),
    scalar("x", "float64"),
    symbols=(N, M),
    name="echo",
)
ECHO_BODY = """
%p0 = ptrtoint ptr %0 to i64
store i64 %p0, ptr %1
%q2 = getelementptr i64, ptr %1, i64 1
store i64 %2, ptr %q2
%q3 = getelementptr i64, ptr %1, i64 2
store double %3, ptr %q3
%q4 = getelementptr i64, ptr %1, i64 3
store i64 %4, ptr %q4
%q5 = getelementptr i64, ptr %1, i64 4
store i64 %5, ptr %q5
ret i32 0
"""


@pytest.mark.parametrize("wrap", [lambda x: x, nd.from_dlpack])
def test_native_code_gets_pointers_numbers_and_symbols(wrap: Any) -> None:
    call = native(module_of(ECHO, ECHO_BODY))
    a, out = np.zeros((3, 5), np.float32), np.zeros(7, np.int64)
    assert call(wrap(a), wrap(out), -9, 0.25) == 0
    assert out.tolist() == [a.ctypes.data, -9, int(np.float64(0.25).view(np.int64)), 3, 5, 0, 0]


def test_the_slow_way_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ndarray_slot", lambda: None)
    function = module_of(ECHO, ECHO_BODY).entry_func
    a, out = np.zeros((3, 5), np.float32), np.zeros(7, np.int64)
    function(a, out, -9, 0.25)
    assert out.tolist() == [a.ctypes.data, -9, int(np.float64(0.25).view(np.int64)), 3, 5, 0, 0]
    with pytest.raises(ArgumentError, match="echo takes 4 arguments"):
        function(a, out)


@pytest.mark.parametrize(
    "described",
    [
        signature(buffer("a", (N,), strides=(Var("s"),)), symbols=(N, Var("s"))),
        signature(buffer("a", (N * 2,)), symbols=(N,)),
        signature(buffer("a", (4,), offset=Var("o"))),
    ],
)
def test_what_needs_arithmetic_is_left_to_python(described: Signature) -> None:
    assert not fastcall._eligible(described)


def test_refusals_of_each_kind(many: Any) -> None:
    a, b, out = np.zeros((3, 2), np.float32), np.zeros((2, 4), np.float32), np.zeros(3, np.int64)
    assert many(a, b, out, 4, 1.0) == 0
    assert many() == many(a, b, out, 4) == many(a, b, out, 4, 1.0, 1) == REFUSED
    assert many(None, b, out, 4, 1.0) == many(a, b, out, 5, 1.0) == many(a, b, out, 4, 1) == REFUSED
    assert many(a, b, np.zeros(4, np.int64), 4, 1.0) == REFUSED
    assert many(b"", b, out, 4, 1.0) == many(a, object(), out, None, None) == REFUSED


def test_an_ndarray_without_its_array_is_refused(many: Any) -> None:
    broken = nd.array(np.zeros((3, 2), np.float32))
    del broken._array
    assert many(broken, np.zeros((2, 4), np.float32), np.zeros(3, np.int64), 4, 1.0) == REFUSED


def test_40_threads_do_not_disturb_each_other() -> None:
    n = Var("n", "int64")
    described = signature(buffer("out", (n,), "int64", written=True), scalar("i", "int64"), symbols=(n,), name="mark")
    function: Function = module_of(described, "store i64 %1, ptr %0\nret i32 0").entry_func
    wrong: list[int] = []

    def work(mine: int) -> None:
        out = np.zeros(mine + 1, np.int64)
        for turn in range(3000):
            function(out, mine * 10_000 + turn)
            if out[0] != mine * 10_000 + turn:
                wrong.append(mine)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_gil_is_released_while_native_code_runs() -> None:
    """The function spins until another Python thread, which needs the GIL, writes what it waits for."""
    body = """
    br label %wait
    wait:
      %seen = load atomic i64, ptr %0 monotonic, align 8
      %free = icmp ne i64 %seen, 0
      br i1 %free, label %done, label %wait
    done:
      ret i32 0
    """
    described = signature(buffer("flag", (1,), "int64", written=True), name="spin")
    module = module_of(described, body)
    ways: list[Callable[..., None]] = [module.entry_func, lambda flag: module.entry_func._explain(REFUSED, (flag,))]
    for call in ways:
        flag = np.zeros(1, np.int64)
        writer = threading.Timer(0.05, flag.fill, (1,))
        writer.start()
        call(flag)
        writer.join()
        assert flag[0] == 1
