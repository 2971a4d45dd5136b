"""Recurrent layers against the equations, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.runtime.build import build
from tensorexpr.schedule.tree import At, Inline, LoopKind, Root
from tensorexpr.spaces.default import default_schedule
from tensorexpr.target import Target
from tensorexpr.topi.nn import recurrent_loops
from tensorexpr.topi.nn.recurrent import Cell, recurrent_steps
from tests.operators import Array, assert_same, run, values

STEPS, BATCH, FEATURES, HIDDEN = 3, 2, 3, 4


def stepped(given: dict[str, Array], layout: str, reverse: bool) -> tuple[Array, Array]:
    outputs = given["Wh"].shape[1]
    batch, cells_of = given["Xs"].shape[1], given["Wi"].shape[0] // 4
    h, c = given.get("h_init", np.zeros((batch, outputs))), given.get("c_init", np.zeros((batch, cells_of)))
    hidden, cells = [], []
    for x in given["Xs"][::-1] if reverse else given["Xs"]:
        total = x @ given["Wi"].T + h @ given["Wh"].T + given.get("Bi", 0) + given.get("Bh", 0)
        part = {letter: total[:, n * cells_of : (n + 1) * cells_of] for n, letter in enumerate(layout)}

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


@pytest.mark.parametrize("batch", [1, 6])
def test_steps_have_tiles_of_weights_packed_before_time(batch: int) -> None:
    hidden = 24
    given = [values(3, batch, 8), values(4 * hidden, 8), values(4 * hidden, hidden)]
    tensors = [te.placeholder(x.shape, name=name) for name, x in zip(("Xs", "Wi", "Wh"), given, strict=True)]
    outputs = topi.nn.lstm(tensors[0], tensors[1], tensors[2])
    s = default_schedule([*tensors, *outputs], Target("llvm -mcpu=icelake-server -num-cores=2"))
    stages = {stage.name: stage for stage in s.tree.in_order()}
    assert isinstance(stages["s_gate_i"].attach, Inline) and isinstance(stages["next_c"].attach, At)
    assert any(mark.kind is LoopKind.VECTORIZE for mark in stages["next_c"].marks.values())
    # a step of one row has no tile, whose rows would share the weights
    assert isinstance(getattr(stages.get("Wh.global"), "attach", None), Root) == (batch > 1)
    found = [np.zeros((3, batch, hidden), "float32") for _ in range(2)]
    build(default_schedule([*tensors, *outputs]), [*tensors, *outputs])(*given, *found)
    for got, wanted in zip(found, stepped(dict(zip(("Xs", "Wi", "Wh"), given, strict=True)), "IFGO", False), strict=True):
        assert_same(got, wanted, 1e-4)


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DeclarationError, match="the features of Xs and Wi must be equal, but they are 5 and 3"):
        topi.nn.lstm(te.placeholder((2, 1, 3)), te.placeholder((8, 5)), te.placeholder((8, 2)))
    cell = Cell("rnn", ("Tanh",), (0.0,), (0.0,), 0.0, False, False)
    with pytest.raises(DeclarationError, match="three arrays of levels, others none, not 0 of int8"):
        recurrent_steps(cell, te.placeholder((2, 1, 4)), te.placeholder((4, 4), "int8"), [te.placeholder((1, 4))])
    with pytest.raises(DeclarationError, match="weight_layout is 'IFG'"):
        topi.nn.lstm(te.placeholder((2, 1, 3)), te.placeholder((8, 3)), te.placeholder((8, 2)), weight_layout="IFG")


def test_layers_of_many_weights_share_their_panels_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one sequence, in each step; states are what they are on one thread."""
    monkeypatch.setattr(recurrent_loops, "_SHARED", 0)
    hidden, steps, random = 40, 3, np.random.default_rng(0)
    shapes = ((steps, 1, 4 * hidden), (hidden, 4 * hidden), (1, hidden), (1, hidden))
    given = [(random.standard_normal(shape) / np.sqrt(hidden)).astype("float32") for shape in shapes]
    cell = Cell("lstm", ("Sigmoid", "Tanh", "Tanh"), (0.0,) * 3, (0.0,) * 3, 0.0, False, False)
    found = run(lambda x, w, h, c: recurrent_steps(cell, x, w, [h, c]), *given)
    h, c = (one.astype("float64") for one in given[2:])
    for step in range(steps):
        i, o, f, g = np.split(given[0][step] + h @ given[1], 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        assert_same(found[0][step], h.astype("float32"), 1e-4)
    assert_same(found[2], c.astype("float32"), 1e-4)


@pytest.mark.parametrize(("hidden", "loops"), [(256, 2), (128, 1)])
def test_layers_of_few_weights_are_one_thread_each(hidden: int, loops: int) -> None:
    cell = Cell("lstm", ("Sigmoid", "Tanh", "Tanh"), (0.0,) * 3, (0.0,) * 3, 0.0, False, False)
    x, w, h, c = (te.placeholder(shape) for shape in ((3, 2, 4 * hidden), (hidden, 4 * hidden), (2, hidden), (2, hidden)))
    found = recurrent_steps(cell, x, w, [h, c])
    assert te.create_prim_func([x, w, h, c, *found]).script().count("T.parallel(") == loops


@pytest.mark.parametrize("cpu", ["znver3", "icelake-server", "skylake-avx512", "x86-64", "cortex-a72"])
def test_products_of_bytes_are_exact_by_every_instruction(cpu: str) -> None:
    """One step, interpreted: by `vpdpbusd`, by `pmaddwd` on 128 to 512 bits, and without either."""
    hidden, random = 5, np.random.default_rng(0)
    given: list[Array] = [random.uniform(-1, 1, (1, 1, 4 * hidden)), random.integers(-128, 128, (hidden, 4 * hidden), "int8")]
    given += [random.uniform(-1, 1, (1, hidden)), random.uniform(-1, 1, (1, hidden))]
    scales, zeros = random.uniform(0.001, 0.002, 4 * hidden), random.integers(-60, 60, 4 * hidden, "int32")
    given += [scales, zeros, (given[1] - zeros).sum(0, dtype="int32")]
    given = [one if one.dtype.kind == "i" else one.astype("float32") for one in given]
    cell = Cell("lstm", ("Affine",) * 3, (1.0,) * 3, (0.0,) * 3, 0.0, False, False)
    target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72" if cpu == "cortex-a72" else f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"
    with Target(target):
        found = run(lambda x, w, h, c, *levels: recurrent_steps(cell, x, w, [h, c], levels=levels), *given)
    x, w, h, c = (one.astype("float64") for one in given[:4])
    low, high = min(h.min(), 0), max(h.max(), 0)
    scale = (high - low) / 255
    zero = np.rint(-low / scale)
    read = (np.clip(np.rint(h / scale) + zero, 0, 255) - zero) * scale
    i, o, f, g = np.split(x[0] + read @ ((w - zeros) * scales), 4, axis=1)
    assert_same(found[2], (f * c + i * g).astype("float32"), 1e-4)
    assert_same(found[1], (o * (f * c + i * g)).astype("float32"), 1e-4)
