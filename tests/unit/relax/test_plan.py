"""Stretches of kernels as native functions: what is part of them, what they return, errors, threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ArgumentError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.runtime.stretch import Stretch
from tensorexpr.script import from_source


def _read(source: str) -> Any:
    return from_source(source)


def stretches(ex: relax.Executable) -> list[Stretch]:
    return [one for made in ex.stretches.values() for one in made.values()]


def unfused(mod: Any) -> relax.Executable:
    made: relax.Executable = relax.build(relax.transform.LegalizeOps()(mod), relax_pipeline=None)
    return made


def chain(length: int = 6, shape: tuple[int, ...] = (8, 128)) -> Any:
    """Alternating sums and products; each value is read twice."""
    bb = BlockBuilder()
    x, y = Var("x", TensorStructInfo(shape)), Var("y", TensorStructInfo(shape))
    with bb.function("main", [x, y]):
        values: list[Any] = [x, y]
        for n in range(length):
            values.append(bb.emit((op.add, op.multiply)[n % 2](values[-1], values[-2])))
        bb.emit_func_output(values[-1])
    return bb.get()


def inputs(shape: tuple[int, ...] = (8, 128), seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1, shape).astype("float32") for _ in range(2)]


def test_a_static_function_is_one_stretch_in_little_memory() -> None:
    ex = unfused(chain())
    (stretch,) = stretches(ex)
    assert len(stretch.calls) == 6 and len(stretch.inputs) == 2 and len(stretch.outputs) == 1
    assert stretch.arena.size == 3 * 8 * 128 * 4  # the result of a step lives with its two operands
    vm = relax.VirtualMachine(ex)
    np.testing.assert_allclose(vm["main"](*inputs()).numpy(), Evaluator(chain())("main", *inputs()), rtol=1e-6)
    given = list(map(tvm.nd.array, inputs(seed=1)))
    np.testing.assert_allclose(vm["main"](*given).numpy(), Evaluator(chain())("main", *inputs(seed=1)), rtol=1e-6)


def test_results_outlive_later_calls_and_the_machine() -> None:
    vm = relax.VirtualMachine(unfused(chain()))
    first, second = vm["main"](*inputs()), vm["main"](*inputs(seed=1))
    run = vm["main"]
    del vm
    gc.collect()
    third = run(*inputs())
    np.testing.assert_array_equal(first.numpy(), third.numpy())
    assert not np.array_equal(first.numpy(), second.numpy())


PIECES = """
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 6), "float32"), c: R.Tensor((), "bool"), t: R.Tuple(R.Tensor((6,), "float32"), R.Tensor((), "bool"))):
        e = R.exp(x)
        a, b = R.split(e, 2, axis=1)
        flat = R.reshape(a, (6,))
        s = R.add(flat, t[0])
        w = R.call_pure_packed("tests.plan.double", s, sinfo_args=R.Tensor((6,), "float32"))
        u = R.add(w, s)
        if c:
            m = R.multiply(u, R.const([1, 2, 3, 4, 5, 6], "float32"))
            y = R.negative(m)
        else:
            y = u
        return (y, (b, x), R.const(2.0, "float32"), flat, R.reshape(e, (12,)))
"""


@tvm.register_func("tests.plan.double", override=True)
def double(x: tvm.nd.NDArray) -> Any:
    assert isinstance(x, tvm.nd.NDArray)
    return tvm.nd.array(x.numpy() * 2)


@pytest.mark.parametrize("choice", [True, False])
def test_stretches_between_packed_calls_and_in_branches(choice: bool) -> None:
    mod: Any = from_source(PIECES)
    given = [np.arange(12, dtype="float32").reshape(2, 6), np.array(choice), (np.ones(6, "float32"), np.array(True))]
    ex = unfused(mod)
    vm = relax.VirtualMachine(ex)
    assert len(stretches(ex)) == 4  # before the packed call, behind it, in a branch, and behind that

    def flat(value: Any) -> list[Any]:
        return [one for part in value for one in flat(part)] if isinstance(value, (tuple, list)) else [np.asarray(value)]

    expected = flat(Evaluator(mod)("main", *given))
    for _ in range(2):
        for a, b in zip(flat(vm["main"](*given)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    vm.set_instrument(lambda *args: relax.VMInstrumentReturnKind.NO_OP)  # step by step
    for a, b in zip(flat(vm["main"](*given)), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_views_copy_nothing() -> None:
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((4, 6)))
    with bb.function("main", [x]):
        y = bb.emit(op.exp(x))
        bb.emit_func_output(bb.emit(op.negative(bb.emit(op.reshape(y, (24,))))))
    mod = bb.get()
    legal = relax.transform.LegalizeOps({"relax.reshape": lambda builder, call: call})(mod)
    ex = relax.build(legal, relax_pipeline=None)
    (stretch,) = stretches(ex)
    assert [call.name for call in stretch.calls] == ["tir_exp", "tir_negative"]
    data = np.arange(24, dtype="float32").reshape(4, 6) / 24
    np.testing.assert_allclose(relax.VirtualMachine(ex)["main"](data).numpy(), -np.exp(data).reshape(24), rtol=1e-5)


def test_a_constant_changes_in_no_call() -> None:
    source = """
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def bump(x: T.Buffer((4,), "float32"), by: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                x[vi] = x[vi] + by[vi]

    @R.function
    def main(by: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        z = R.call_tir_inplace(cls.bump, (R.const([1, 2, 3, 4], "float32"), by), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0])
        return z
"""
    vm = relax.VirtualMachine(relax.build(_read(source)))
    for _ in range(3):
        np.testing.assert_array_equal(vm["main"](np.ones(4, "float32")).numpy(), [2, 3, 4, 5])
    vm.set_instrument(lambda *args: relax.VMInstrumentReturnKind.NO_OP)
    for _ in range(3):
        np.testing.assert_array_equal(vm["main"](np.ones(4, "float32")).numpy(), [2, 3, 4, 5])


def test_wrong_arguments_are_named_with_the_parameter() -> None:
    vm = relax.VirtualMachine(unfused(chain()))
    x, y = inputs()
    where = r'ErrorContext\(fn=main, loc=param\[1\], param=y, annotation=R.Tensor\(\(8, 128\), dtype="float32"\)\)'
    with pytest.raises(ArgumentError, match=where):
        vm["main"](x, y[:4])
    with pytest.raises(ArgumentError, match=where):
        vm["main"](x, y.astype("float64"))
    with pytest.raises(ArgumentError, match="takes 2 arguments"):
        vm["main"](x)
    transposed = np.asfortranarray(y)  # no kernel reads it as it is
    np.testing.assert_array_equal(vm["main"](x, transposed).numpy(), vm["main"](x, y).numpy())


def test_two_threads_call_one_function_at_once() -> None:
    shape = (64, 512)
    vm = relax.VirtualMachine(unfused(chain(12, shape)))
    expected = [Evaluator(chain(12, shape))("main", *inputs(shape, seed)) for seed in range(2)]
    wrong: list[int] = []

    def work(seed: int) -> None:
        given = inputs(shape, seed)
        for _ in range(50):
            if not np.allclose(vm["main"](*given).numpy(), expected[seed], rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed % 2,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


RAISES = """
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def picky(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.evaluate(T.call_packed("tests.plan.picky", x[0], dtype="int32"))
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        a = R.exp(x)
        b = R.call_tir(cls.picky, (a,), out_sinfo=R.Tensor((4,), "float32"))
        c = R.negative(b)
        return c
"""


def test_an_exception_inside_a_kernel_comes_out_and_the_next_call_works() -> None:
    def picky(x: Any) -> None:
        if x > 1:
            raise ZeroDivisionError("too much")

    tvm.register_func("tests.plan.picky", picky, override=True)
    vm = relax.VirtualMachine(relax.build(_read(RAISES)))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="too much"):
            vm["main"](np.ones(4, "float32"))
        np.testing.assert_allclose(vm["main"](np.zeros(4, "float32")).numpy(), -np.ones(4))


def test_values_are_free_when_nothing_reads_them() -> None:
    alive: list[Any] = []
    most = 0

    def step(x: Any) -> Any:
        nonlocal most
        made = tvm.nd.array(x.numpy())
        alive.append(weakref.ref(made))
        most = max(most, sum(one() is not None for one in alive))
        return made

    tvm.register_func("tests.plan.step", step, override=True)
    bb = BlockBuilder()
    x = Var("x", TensorStructInfo((4,)))
    with bb.function("main", [x]):
        value: Any = x
        for _ in range(6):
            value = bb.emit(op.call_pure_packed("tests.plan.step", value, sinfo_args=TensorStructInfo((4,))))
        bb.emit_func_output(value)
    relax.VirtualMachine(relax.build(bb.get()))["main"](np.zeros(4, "float32"))
    assert len(alive) == 6 and most == 2


def test_what_a_function_returns_is_what_it_says() -> None:
    """An object may be any tensor, so its shape is compared with that of the signature when it is there."""
    mod = _read("""
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Object) -> R.Tensor(("m", "n"), "float32"):
        return y
""")
    run = relax.VirtualMachine(relax.build(mod), tvm.cpu())["main"]
    x = np.zeros((1, 2), "float32")
    assert run(x, np.ones((2, 1), "float32")).shape == (2, 1)
    for wrong in (np.ones((1, 2), "float32"), np.ones((2, 1, 1), "float32"), np.ones((2, 1), "int8")):
        with pytest.raises(ArgumentError, match="the return value of main has"):
            run(x, wrong)
