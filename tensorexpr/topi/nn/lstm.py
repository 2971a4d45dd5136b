"""Long short-term memory (Hochreiter and Schmidhuber 1997), with the projections and peepholes of ONNX's operator, as a scan over time."""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute, placeholder
from ...te.scan import scan
from ...te.tensor import Tensor
from ...tir.arithmetic import const
from ...tir.expr import PrimExpr, Var
from ..math import sigmoid, tanh
from ..utils import get_const_int, need_equal, need_rank

Activation = Callable[[Tensor], Tensor]


def lstm(
    Xs: Tensor,
    Wi: Tensor,
    Wh: Tensor,
    Bi: Tensor | None = None,
    Bh: Tensor | None = None,
    h_init: Tensor | None = None,
    c_init: Tensor | None = None,
    proj: Tensor | None = None,
    p_i: Tensor | None = None,
    p_f: Tensor | None = None,
    p_o: Tensor | None = None,
    f_act: Activation = sigmoid,
    g_act: Activation = tanh,
    h_act: Activation = tanh,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> tuple[Tensor, Tensor]:
    """The hidden and the cell states of a sequence.

    Args:
        Xs: [time, batch, features].
        Wi: [4 * hidden, features], the weights of inputs, a block for each gate.
        Wh: [4 * hidden, outputs], those of the last hidden state; outputs are `hidden`, or those of `proj`.
        Bi, Bh: [4 * hidden], biases.
        h_init: [batch, outputs], the state before the first step; zeros by default.
        c_init: [batch, hidden], likewise.
        proj: [outputs, hidden], what makes hidden states of cells.
        p_i, p_f, p_o: [batch, hidden], weights of the cells in the gates (peepholes).
        f_act: of the gates; g_act: of new cells; h_act: of cells that go out: functions of tensors.
        reverse: the last step of `Xs` comes first. States are in the order of computation.
        weight_layout: the order of the blocks: input, forget, cell and output gates.

    Returns:
        Hidden states [time, batch, outputs] and cell states [time, batch, hidden].

    Raises:
        DeclarationError: for shapes or a layout that don't fit.
    """
    where = "lstm"
    if sorted(weight_layout) != sorted("IFGO"):
        raise DeclarationError(f"lstm: weight_layout is {weight_layout!r}; it is an order of I, F, G and O")
    need_rank(where, "Xs", Xs, 3)
    need_rank(where, "Wi", Wi, 2)
    need_rank(where, "Wh", Wh, 2)
    steps, batch, features = (get_const_int(extent) for extent in Xs.shape)
    hidden = get_const_int(Wh.shape[0]) // 4
    outputs = get_const_int(Wh.shape[1])
    for what, found, wanted in (
        ("the features of Xs and Wi", Wi.shape[1], features),
        ("the rows of Wi and Wh", Wi.shape[0], 4 * hidden),
        ("the columns of Wh and the hidden states", outputs, hidden if proj is None else proj.shape[0]),
    ):
        need_equal(where, what, found, wanted)
    dtype = Xs.dtype
    start_h = _first((1, batch, outputs), h_init, dtype, "h_init")
    start_c = _first((1, batch, hidden), c_init, dtype, "c_init")
    h_state = placeholder((steps + 1, batch, outputs), dtype, "h_state")
    c_state = placeholder((steps + 1, batch, hidden), dtype, "c_state")
    from_inputs = _from_inputs(Xs, Wi, [bias for bias in (Bi, Bh) if bias is not None], steps, reverse)
    k = te.reduce_axis((0, outputs), name="kh")
    from_hidden = compute((steps + 1, batch, 4 * hidden), lambda t, b, x: te.sum(h_state(t - 1, b, k.var) * Wh(x, k.var), axis=k), "s_h2h")
    shape = (steps + 1, batch, hidden)

    def gate(letter: str, activation: Activation, peephole: Tensor | None = None, cells: Tensor | None = None, back: int = 0) -> Tensor:
        first = weight_layout.index(letter) * hidden

        def body(t: Var, b: Var, x: Var) -> PrimExpr:
            total: PrimExpr = from_inputs(t - 1, b, first + x) + from_hidden(t, b, first + x)
            if peephole is not None and cells is not None:
                total = total + peephole(b, x) * cells(t - back, b, x)
            return total

        return activation(compute(shape, body, f"s_gate_{letter.lower()}"))

    kept, let_in = gate("F", f_act, p_f, c_state, 1), gate("I", f_act, p_i, c_state, 1)
    fresh = gate("G", g_act)
    next_c = compute(shape, lambda t, b, x: kept(t, b, x) * c_state(t - 1, b, x) + let_in(t, b, x) * fresh(t, b, x), "next_c")
    let_out, shown = gate("O", f_act, p_o, next_c), h_act(next_c)
    next_h = compute(shape, lambda t, b, x: let_out(t, b, x) * shown(t, b, x), "next_h")
    if proj is not None:
        j = te.reduce_axis((0, hidden), name="kr")
        whole_h = next_h
        next_h = compute(
            (steps + 1, batch, outputs), lambda t, b, x: te.sum(whole_h(t, b, j.var) * proj(x, j.var), axis=j), "next_h_projected"
        )
    states = scan([start_h, start_c], [next_h, next_c], [h_state, c_state], name="lstm_scan")
    made = [
        compute((steps, *state.shape[1:]), lambda t, b, x, s=state: s(t + 1, b, x), name)
        for state, name in zip(states, ("hidden_state", "cell_state"), strict=True)
    ]
    return made[0], made[1]


def _first(shape: tuple[int, ...], given: Tensor | None, dtype: str, name: str) -> Tensor:
    if given is not None:
        need_rank("lstm", name, given, 2)
    result: Tensor = compute(shape, lambda _, b, x: const(0, dtype) if given is None else given(b, x), name)
    return result


def _from_inputs(inputs: Tensor, weights: Tensor, biases: list[Tensor], steps: int, reverse: bool) -> Tensor:
    """What inputs and biases add to the gates, for all steps at once."""
    k = te.reduce_axis((0, inputs.shape[2]), name="ki")
    shape = (steps, inputs.shape[1], weights.shape[0])

    def body(t: Var, b: Var, x: Var) -> PrimExpr:
        total: PrimExpr = te.sum(inputs(steps - 1 - t if reverse else t, b, k.var) * weights(x, k.var), axis=k)
        return total

    products: Tensor = compute(shape, body, "i2h")
    if not biases:
        return products

    def biased(t: Var, b: Var, x: Var) -> PrimExpr:
        total: PrimExpr = products(t, b, x)
        for bias in biases:
            total = total + bias(x)
        return total

    result: Tensor = compute(shape, biased, "i2h_biased")
    return result
