"""Random numbers: the words of a few states, splits that don't repeat, and distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.tir import const
from tensorexpr.topi import random
from tests.operators import assert_same, run


def state(*words: int) -> Any:
    """The state of a key, before any split."""
    made = np.zeros(10, "uint64")
    made[: len(words)] = words
    made[8] = made[8] or 1 << 63
    return made


def test_the_words_of_a_key() -> None:
    after, words = run(lambda g: random.threefry_generate(g, (2, 3)), state(5))
    assert [hex(int(word)) for word in words.ravel()[:5]] == [
        "0x134294100b420603",
        "0x66270358f7708196",
        "0x3caaf9ed4acd8b3d",
        "0x688c1bfde78009ee",
        "0xa169cae8d72ca143",
    ]
    assert after.tolist() == [5, 0, 0, 0, 0, 0, 0, 8, 1 << 63, 0]


def test_words_come_in_blocks_of_four_each_of_its_own_counter() -> None:
    _, long = run(lambda g: random.threefry_generate(g, (8,)), state(1, 2, 3, 4))
    _, short = run(lambda g: random.threefry_generate(g, (4,)), state(1, 2, 3, 4))
    assert long[:4].tolist() == short.tolist()
    assert len(set(long.tolist())) == 8


def test_a_counter_without_room_continues_on_another_path() -> None:
    full = state(5, 0, 0, 0, 0, 0, 0, 2**64 - 4)
    after, words = run(lambda g: random.threefry_generate(g, (4,)), full)
    assert after.tolist() == [5, 0, 0, 0, 1 << 63, 0, 0, 4, 1 << 62, 0]
    right = run(random.threefry_split, state(5))[1]
    assert_same(words, run(lambda g: random.threefry_generate(g, (4,)), right)[1])


def test_splits_never_meet() -> None:
    states = [state(9)]
    for _ in range(3):
        states = [half for whole in states for half in run(random.threefry_split, whole)]
    assert len({tuple(one.tolist()) for one in states}) == 8
    end = state(9)
    end[8] = 0  # no bit of the path is left: the key changes
    left, right = run(random.threefry_split, end)
    assert left[:4].tolist() != end[:4].tolist()
    assert left[:4].tolist() == right[:4].tolist() and left[4] != right[4]


def test_distributions() -> None:
    dtype = "float32"
    low, high = np.array(-1, dtype), np.array(3, dtype)
    _, even = run(lambda g, a, b: random.uniform(g, a, b, (10, 6), dtype), state(1), low, high)
    assert even.dtype == dtype and even.min() >= -1 and even.max() < 3 and abs(even.mean() - 1) < 0.5
    _, bell = run(lambda g, a, b: random.normal(g, a, b, (80,), dtype), state(1), low, high)
    assert bell.shape == (80,) and abs(bell.mean() + 1) < 0.9 and abs(bell.std() - 3) < 0.8


def test_classes_are_drawn_with_their_probabilities() -> None:
    probabilities = np.array([[1, 3, -5, 0], [0, 0, 0, 2]], "float32")
    _, drawn = run(lambda g, p: random.multinomial(g, p, 40), state(3), probabilities)
    assert drawn.dtype == np.int32 and drawn.shape == (2, 40)
    assert set(drawn[0].tolist()) == {0, 1} and 0.5 < drawn[0].mean() < 0.9
    assert set(drawn[1].tolist()) == {3}


@pytest.mark.parametrize("number", [0.0, 1 - 2.0**-24])
def test_classes_of_no_part_are_never_drawn(number: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def uniform(gen: Any, low: Any, high: Any, shape: Any, dtype: str) -> Any:
        return gen, te.compute(shape, lambda *i: const(number, "float32"))

    monkeypatch.setattr(random, "uniform", uniform)
    # Ten parts of a tenth end at 1.0000001 or 0.9999999; a single part of everything leaves no more room than 1.
    probabilities = np.array([[0, *[0.1] * 10, 0], [0, *[0.0] * 9, 1, 0], [0, *[0.7] * 10, 0]], "float32")
    _, drawn = run(lambda g, p: random.multinomial(g, p, 1), state(3), probabilities)
    assert all(probabilities[row, drawn[row, 0]] > 0 for row in range(3))


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"the state is float32 \[10\]; it takes uint64 \[10\]"):
        random.threefry_generate(te.placeholder((10,)), (4,))
    with pytest.raises(DeclarationError, match="out_dtype is 'float16'"):
        topi.random.uniform(te.placeholder((10,), "uint64"), 0, 1, (4,), "float16")


def test_words_wrap_on_this_machine() -> None:
    import tensorexpr as tvm

    assert random.threefry_test_wrapping("llvm", tvm.cpu())
