"""Detours that change nothing: a graph with some of them gives what it gives without, through the whole pipeline.

Property 37 of other compilers' bugs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tests.effort import share_of

from .test_graphs import STEPS

# Of a tensor of shape (3, 4), and exact: the same values in the same order come out.
DETOURS: dict[str, Callable[[Any], Any]] = {
    "split and concat": lambda x: op.concat([op.split(x, [1], 1)[0], op.split(x, [1], 1)[1]], 1),
    "transpose twice": lambda x: op.permute_dims(op.permute_dims(x)),
    "times one": lambda x: op.multiply(x, relax.const(1.0, "float32")),
    "minus minus": lambda x: op.negative(op.negative(x)),
    "reshape and back": lambda x: op.reshape(op.reshape(x, (2, 6)), (3, 4)),
    "flip twice": lambda x: op.flip(op.flip(x, 0), 0),
    "pad and slice": lambda x: op.strided_slice(op.nn.pad(x, (1, 1, 2, 0)), (0, 1), (1, 2), (4, 6)),
    "to double and back": lambda x: op.astype(op.astype(x, "float64"), "float32"),
    "expand and squeeze": lambda x: op.squeeze(op.expand_dims(x, (0, 2)), (0, 2)),
    "the greater of itself": lambda x: op.maximum(x, x),
    "either way": lambda x: op.where(op.greater(x, relax.const(0.0, "float32")), x, x),
    "one of two": lambda x: op.take(op.concat([op.expand_dims(x, 0), op.expand_dims(x, 0)], 0), relax.const(1, "int64"), 0),
}

Plan = list[tuple[int, int, int, tuple[str, ...]]]


def graph(plan: Plan, with_detours: bool) -> Any:
    """Steps on values that are there already, each followed by its detours."""
    params = [Var(name, TensorStructInfo((3, 4))) for name in "xy"]
    bb = BlockBuilder()
    with bb.function("main", params):
        values: list[Any] = list(params)
        with bb.dataflow():
            for step, a, b, detours in plan:
                value = bb.emit(STEPS[step](values[a % len(values)], values[b % len(values)]))
                for name in detours if with_detours else ():
                    value = bb.emit(DETOURS[name](value))
                values.append(value)
            out = bb.emit_output(values[-1])
        bb.emit_func_output(out)
    return bb.get()


plans = st.lists(
    st.tuples(
        st.integers(0, len(STEPS) - 1),
        st.integers(0, 5),
        st.integers(0, 5),
        st.lists(st.sampled_from(sorted(DETOURS)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, derandomize=True, max_examples=share_of(12))
@given(plans, st.integers(0, 100))
def test_37_detours_change_nothing(plan: Plan, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (3, 4)).astype("float32") for _ in range(2)]
    plain, longer = (relax.VirtualMachine(relax.build(graph(plan, how)))["main"](*arrays).numpy() for how in (False, True))
    np.testing.assert_allclose(longer, plain, rtol=2e-5, atol=1e-6)


def test_37_each_detour_alone_is_exact() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype("float32")
    for name in DETOURS:
        mod = graph([(4, 0, 0, (name,))], True)  # after a tanh
        found = relax.VirtualMachine(relax.build(mod))["main"](x, x).numpy()
        wanted = relax.VirtualMachine(relax.build(graph([(4, 0, 0, ())], False)))["main"](x, x).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=0, err_msg=name)
