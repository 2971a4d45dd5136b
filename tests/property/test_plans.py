"""Random graphs of several results with Python between kernels: native plans, single steps, memory written out and files do the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.runtime.memory import Lifetime, check, largest_sum
from tests.effort import share_of

T = relax.transform
SHAPE = (6, 8)


@tvm.register_func("tests.plans.flip", override=True)
def flip(x: tvm.nd.NDArray) -> Any:
    return tvm.nd.array(x.numpy()[::-1])


@tvm.register_func("tests.plans.fill", override=True)
def fill(x: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
    np.from_dlpack(out)[...] = np.negative(np.from_dlpack(x))


INFO = TensorStructInfo(SHAPE, "float32")
STEPS: tuple[Any, ...] = (
    op.add,
    op.maximum,
    lambda a, b: op.tanh(a) * 0.5,
    lambda a, b: op.reshape(op.reshape(a, (48,)), SHAPE),
    lambda a, b: op.concat([op.split(a, 2, 1)[1], op.split(a, 2, 1)[0]], 1),
    lambda a, b: op.permute_dims(op.reshape(b, (8, 6))),
    lambda a, b: op.matmul(a, op.matmul(op.permute_dims(a), b)) * 0.01,
    lambda a, b: a + relax.const(np.linspace(0, 1, 8).astype("float32")),
    lambda a, b: op.call_pure_packed("tests.plans.flip", a, sinfo_args=INFO),
    lambda a, b: op.call_dps_packed("tests.plans.fill", (a,), INFO),
)


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    x, y = Var("x", INFO), Var("y", INFO)
    bb = BlockBuilder()
    with bb.function("main", [x, y]):
        values: list[Any] = [x, y]
        for _ in range(draw(st.integers(2, 9))):
            step, a, b = draw(st.sampled_from(STEPS)), draw(st.sampled_from(values)), draw(st.sampled_from(values))
            values.append(bb.emit(step(a, b)))
        picked = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        bb.emit_func_output(picked[0] if len(picked) == 1 else [*picked, picked])
    return bb.get()


def flat(value: Any) -> list[np.ndarray]:
    return [one for part in value for one in flat(part)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def same(found: Any, expected: Any) -> None:
    for a, b in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def check_machine(ex: relax.Executable, cases: list[tuple[list[Any], Any]]) -> None:
    vm = relax.VirtualMachine(ex)
    kept = [(vm["main"](*arrays), expected) for arrays, expected in (*cases, cases[0])]
    for found, expected in kept:  # of all calls, after the last one
        same(found, expected)
    vm.set_instrument(lambda *args: relax.VMInstrumentReturnKind.NO_OP)
    for arrays, expected in cases:
        same(vm["main"](*arrays), expected)


@settings(deadline=None, derandomize=True, max_examples=share_of(12))
@given(graphs(), st.integers(0, 100))
def test_all_ways_to_run_agree(mod: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [[rng.uniform(-1, 1, SHAPE).astype("float32") for _ in range(2)] for _ in range(2)]
    cases = [(arrays, Evaluator(mod)("main", *arrays)) for arrays in inputs]
    legal = T.LegalizeOps()(mod)
    written = legal
    for one in (T.RewriteDataflowReshape(), T.CallTIRRewrite(), T.StaticPlanBlockMemory(), T.LowerAllocTensor(), T.KillAfterLastUse()):
        written = one(written)
    same(Evaluator(written)("main", *cases[0][0]), cases[0][1])
    for made in (legal, written):
        ex = relax.build(made, relax_pipeline=None)
        check_machine(ex, cases)
        for stretch in ex.all_stretches():
            inner = [one for one in stretch.buffers if one.kind == "arena"]
            lives = [Lifetime(one.size, one.first, one.last) for one in inner]
            check(lives, stretch.arena)
            assert [one.place for one in inner] == list(stretch.arena.offsets)
            assert stretch.arena.size <= 1.15 * largest_sum(lives)
    check_machine(relax.build(mod), cases)


@settings(deadline=None, derandomize=True, max_examples=3)
@given(graphs(), st.integers(0, 100))
def test_files_do_the_same(tmp_path_factory: pytest.TempPathFactory, mod: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, SHAPE).astype("float32") for _ in range(2)]
    file: Path = tmp_path_factory.mktemp("plans") / "x.so"
    relax.build(mod).export_library(file)
    check_machine(tvm.runtime.load_module(file), [(arrays, Evaluator(mod)("main", *arrays))])
