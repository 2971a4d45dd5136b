"""Lesson 2: write a pass, and let random programs under random schedules say whether it is right.

python examples/02_test_your_pass.py [--size N] [--trials T]      # needs pip install ".[testing]", for Hypothesis

The pass replaces divisions and remainders of integers by cheaper operations. A second version of it looks as good and is
right for all indices, as they are never negative; the elements of tensors are another matter.
"""

from __future__ import annotations

import argparse

from hypothesis import Phase, given, settings  # pip install ".[testing]"
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.testing.check import ScheduleMismatch, assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules

# What the random programs are made of: mostly arithmetic of integers, as that is what the pass rewrites.
LAYERS = ("unary_int", "binary", "reduction")


def cheaper(node: tir.PrimExpr | tir.Stmt) -> tir.PrimExpr | tir.Stmt | None:
    """floordiv(x, 2**k) -> x >> k and floormod(x, 2**k) -> x & (2**k - 1), which hold for negative x too."""
    match node:
        case tir.FloorDiv(a=x, b=tir.IntImm(value=c)) if c > 0 and c & (c - 1) == 0:
            return x >> (c.bit_length() - 1)
        case tir.FloorMod(a=x, b=tir.IntImm(value=c)) if c > 0 and c & (c - 1) == 0:
            return x & (c - 1)
    return None


def careless(node: tir.PrimExpr | tir.Stmt) -> tir.PrimExpr | tir.Stmt | None:
    """floordiv(x, c) -> div(x, c), the instruction that machines have; for negative x it rounds the other way."""
    match node:
        case tir.FloorDiv(a=x, b=c):
            return tir.Div(x, c)
    return None


@tvm.transform.prim_func_pass(opt_level=0)
def reduce_strength(func: tir.PrimFunc, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tir.PrimFunc:
    """The pass: `cheaper` wherever it applies."""
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, cheaper))


@tvm.transform.prim_func_pass(opt_level=0)
def reduce_strength_carelessly(func: tir.PrimFunc, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tir.PrimFunc:
    """The version with the mistake."""
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, careless))


def find_mistake(one: tvm.transform.Pass, trials: int) -> ScheduleMismatch | None:
    """Random computations under random schedules, lowered with the pass at the end of phase 1; the first that comes out wrong.

    In a test file, `check` would be the test, decorated in the same way.
    """

    @settings(max_examples=trials, derandomize=True, database=None, deadline=None, phases=[Phase.generate], report_multiple_bugs=False)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        dag = data.draw(compute_dags(layers=LAYERS, dtypes=("int32", "int8")))
        schedule = data.draw(schedules(dag.outputs))
        with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, one)]}):
            assert_schedule_correct(schedule, dag.tensors, phases=(1, 3))

    try:
        check()
    except ScheduleMismatch as mismatch:
        return mismatch
    return None


def main() -> None:
    """Show the pass at work, then test both versions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="elements of the program on which the pass is shown")
    parser.add_argument("--trials", type=int, default=200, help="random programs; at least 80, so that there is something to see")
    options = parser.parse_args()
    trials = max(80, options.trials)

    a = te.placeholder((options.size,), "int32", name="A")
    b = te.compute((options.size,), lambda i: te.floordiv(a[i], 8) + te.floormod(a[i], 4), name="B")
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, reduce_strength)]}):
        print(tvm.lower(te.create_schedule(b.op), [a, b], simple_mode=True))

    for one in (reduce_strength, reduce_strength_carelessly):
        mismatch = find_mistake(one, trials)
        if mismatch is None:
            print(f"{one.name}: right in {trials} random programs\n")
        else:
            print(f"{one.name}: wrong\n{mismatch}")


if __name__ == "__main__":
    main()
