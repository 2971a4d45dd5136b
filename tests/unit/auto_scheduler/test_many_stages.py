"""Computations of many contractions: the number of sketches stays bounded, and most choices of a stage are among them."""

from __future__ import annotations

import pytest

from tensorexpr import auto_scheduler, te, topi
from tensorexpr.auto_scheduler.sketch.generate import MAX_OPEN, spread
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct


def layers(count: int, size: int = 32) -> list[Tensor]:
    value = first = te.placeholder((size, size), name="x")
    weights = [te.placeholder((size, size), name=f"w{n}") for n in range(count)]
    for weight in weights:
        value = topi.nn.relu(topi.nn.matmul(value, weight))
    return [first, *weights, value]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_number_of_sketches_does_not_grow_with_the_layers(count: int) -> None:
    task = auto_scheduler.SearchTask(compute_dag=layers(count), target="llvm -mcpu=skylake-avx512 -num-cores 2")
    sketches = auto_scheduler.SketchPolicy(task).generate_sketches()
    assert 0 < len(sketches) <= 3 * MAX_OPEN
    assert len({str(sketch.trace.to_json()) for sketch in sketches}) == len(sketches)


def test_a_program_of_layers_is_scheduled_without_trials() -> None:
    args = layers(3, 16)
    assert_schedule_correct(auto_scheduler.default_schedule(args, "llvm"), args, phases=(0,))


@pytest.mark.parametrize("choices", [2, 3, 11, 22])
def test_most_choices_are_among_what_is_kept(choices: int) -> None:
    pairs = [(old, new) for old in range(32) for new in range(choices)]
    kept = spread(pairs, 32)
    assert len(kept) == 32 and kept[0] == (0, 0) and kept == sorted(kept)
    assert len({new for _, new in kept}) >= choices * 2 / 3 and len({old for old, _ in kept}) >= 20
    assert spread(pairs[:5], 32) == pairs[:5]
