"""Executables from instructions: registers, jumps, constants, closures, and what is wrong with a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.testing.vm import check_saved_func
from tests.effort import share_of

A, B = np.array([1, 2], "float32"), np.array([3, 5], "float32")


def test_registers_and_functions_that_call_each_other() -> None:
    ib = relax.ExecBuilder()
    with ib.function("twice", num_inputs=1):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(0)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    with ib.function("main", num_inputs=2, param_names=["a", "b"]):
        ib.emit_call("test.vm.mul", args=[ib.r(0), ib.r(1)], dst=ib.r(9))
        ib.emit_call("twice", args=[ib.r(9)], dst=ib.r(1))
        ib.emit_call("test.vm.add", args=[ib.r(1), B], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    vm = relax.VirtualMachine(ib.get(), tvm.cpu())
    np.testing.assert_array_equal(check_saved_func(vm, "main", tvm.nd.array(A), tvm.nd.array(B)).numpy(), 2 * A * B + B)
    assert ib.get().get_function_params("main") == ["a", "b"]


@st.composite
def jumps(draw: Any) -> list[tuple[str, int]]:
    """Additions of numbers to an accumulator, with jumps forward that stay inside."""
    length = draw(st.integers(1, 7))
    kinds = st.sampled_from(["add", "goto", "if"])
    return [(draw(kinds), draw(st.integers(1, length - n))) for n in range(length)]


@given(jumps(), st.integers(-2, 2))
@settings(max_examples=share_of(25), deadline=None)
def test_jumps_as_a_loop_over_the_instructions_takes_them(code: list[tuple[str, int]], start: int) -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        for kind, number in code:
            if kind == "add":
                ib.emit_call("test.vm.add_scalar", args=[ib.r(0), ib.imm(number - 2)], dst=ib.r(0))
            elif kind == "goto":
                ib.emit_goto(number)
            else:
                ib.emit_if(ib.r(0), number)
        ib.emit_ret(ib.r(0))
    place, value = 0, start
    while place < len(code):
        kind, number = code[place]
        value += number - 2 if kind == "add" else 0
        place += number if kind == "goto" or (kind == "if" and value == 0) else 1
    assert relax.VirtualMachine(ib.get())["main"](start) == value


def test_closures_and_memory() -> None:
    ib = relax.ExecBuilder()
    with ib.function("sum", num_inputs=2):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("bound", num_inputs=1):
        ib.emit_call("vm.builtin.make_closure", args=[ib.f("sum"), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("memory"):
        kind = tvm.DataType("float32")
        ib.emit_call("vm.builtin.alloc_storage", args=[ib.vm_state(), (6,), 0, kind, "global"], dst=ib.r(0))
        ib.emit_call("vm.builtin.alloc_tensor", args=[ib.r(0), ib.imm(0), (3, 2), kind], dst=ib.r(1))
        ib.emit_call("vm.builtin.shape_of", args=[ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    vm = relax.VirtualMachine(ib.get())
    np.testing.assert_array_equal(vm.invoke_closure(vm["bound"](A), B).numpy(), A + B)
    assert tuple(vm["memory"]()) == (3, 2)


def test_an_executable_is_written_and_loaded(tmp_path: Path) -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.vm.mul", args=[ib.r(0), A], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    ib.get().export_library(tmp_path / "x.so")
    loaded = tvm.runtime.load_module(tmp_path / "x.so")
    np.testing.assert_array_equal(relax.VirtualMachine(loaded)["main"](B).numpy(), A * B)


def test_equal_constants_are_one() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main"):
        made = [ib.convert_constant(one) for one in ("a", (1, 2), A, "a", (1, 2), A.copy(), A.astype("int32"), 1, True)]
    assert made[:3] == made[3:6] and len(set(made)) == 6


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (lambda ib: ib.emit_ret(ib.r(1)), "main: instruction 0 reads register 1, which nothing has written"),
        (lambda ib: ib.emit_call("test.vm.move", [ib.r(0)], ib.r(1)), "main goes past its 1 instructions: each way ends with emit_ret"),
        (lambda ib: ib.emit_goto(0), "goto goes back by 0: a loop is a function that calls itself"),
    ],
)
def test_programs_that_mean_nothing(emit: Any, message: str) -> None:
    ib = relax.ExecBuilder()
    with pytest.raises(DeclarationError, match=message):
        with ib.function("main", num_inputs=1):
            emit(ib)
        ib.get()


def test_instructions_stand_in_functions() -> None:
    ib = relax.ExecBuilder()
    with pytest.raises(DeclarationError, match="instructions stand in"):
        ib.emit_goto(1)
    with pytest.raises(DeclarationError, match="'main' is open"), ib.function("main"), ib.function("other"):
        pass
