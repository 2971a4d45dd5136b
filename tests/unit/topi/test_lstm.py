"""Recurrent layers against the equations, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tests.operators import Array, assert_same, run, values

STEPS, BATCH, FEATURES, HIDDEN = 3, 2, 3, 4


def stepped(given: dict[str, Array], layout: str, reverse: bool) -> tuple[Array, Array]:
    outputs = given["Wh"].shape[1]
    h, c = given.get("h_init", np.zeros((BATCH, outputs))), given.get("c_init", np.zeros((BATCH, HIDDEN)))
    hidden, cells = [], []
    for x in given["Xs"][::-1] if reverse else given["Xs"]:
        total = x @ given["Wi"].T + h @ given["Wh"].T + given.get("Bi", 0) + given.get("Bh", 0)
        part = {letter: total[:, n * HIDDEN : (n + 1) * HIDDEN] for n, letter in enumerate(layout)}

        def gate(letter: str, of: Array, weight: str, part: dict[str, Array] = part) -> Array:
            return np.asarray(1 / (1 + np.exp(-(part[letter] + given.get(weight, 0) * of))))

        c = gate("F", c, "p_f") * c + gate("I", c, "p_i") * np.tanh(part["G"])
        h = gate("O", c, "p_o") * np.tanh(c)
        h = h @ given["proj"].T if "proj" in given else h
        hidden.append(h)
        cells.append(c)
    return np.stack(hidden), np.stack(cells)


@pytest.mark.parametrize(("extras", "layout", "reverse"), [("", "IFGO", False), ("bias init", "IOFG", True), ("proj peep", "IFGO", False)])
def test_states_of_a_sequence(extras: str, layout: str, reverse: bool) -> None:
    outputs = 2 if "proj" in extras else HIDDEN
    given = {"Xs": values(STEPS, BATCH, FEATURES), "Wi": values(4 * HIDDEN, FEATURES), "Wh": values(4 * HIDDEN, outputs)}
    if "bias" in extras:
        given |= {"Bi": values(4 * HIDDEN), "Bh": values(4 * HIDDEN)}
        given |= {"h_init": values(BATCH, outputs), "c_init": values(BATCH, HIDDEN)}
    if "proj" in extras:
        given |= {"proj": values(outputs, HIDDEN), **{name: values(BATCH, HIDDEN) for name in ("p_i", "p_f", "p_o")}}
    names = list(given)
    found = run(lambda *t: list(topi.nn.lstm(**dict(zip(names, t, strict=True)), reverse=reverse, weight_layout=layout)), *given.values())
    for got, wanted in zip(found, stepped(given, layout, reverse), strict=True):
        assert_same(got, wanted, 1e-4)


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DeclarationError, match="the features of Xs and Wi must be equal, but they are 5 and 3"):
        topi.nn.lstm(te.placeholder((2, 1, 3)), te.placeholder((8, 5)), te.placeholder((8, 2)))
    with pytest.raises(DeclarationError, match="weight_layout is 'IFG'"):
        topi.nn.lstm(te.placeholder((2, 1, 3)), te.placeholder((8, 3)), te.placeholder((8, 2)), weight_layout="IFG")
