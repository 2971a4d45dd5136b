"""Long short-term memory (Hochreiter and Schmidhuber 1997), with the projections and peepholes of ONNX's operator, as a scan over time."""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...te.declare import compute, placeholder
from ...te.recurrence import scan
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
    steps, batch, hidden, outputs = _sizes(Xs, Wi, Wh, proj, weight_layout)
    dtype, shape = Xs.dtype, (steps + 1, batch, hidden)
    h_state = placeholder((steps + 1, batch, outputs), dtype, "h_state")
    c_state = placeholder(shape, dtype, "c_state")
    from_inputs = _from_inputs(Xs, Wi, [bias for bias in (Bi, Bh) if bias is not None], steps, reverse)
    gates = _Gates(shape, weight_layout, from_inputs, _from_hidden(h_state, Wh))
    # The forget and the input gate look at the cells of the step before, the output gate at the new ones.
    kept, let_in = gates.gate("F", f_act, p_f, c_state, 1), gates.gate("I", f_act, p_i, c_state, 1)
    fresh = gates.gate("G", g_act)
    next_c = compute(shape, lambda t, b, x: kept(t, b, x) * c_state(t - 1, b, x) + let_in(t, b, x) * fresh(t, b, x), "next_c")
    let_out, shown = gates.gate("O", f_act, p_o, next_c), h_act(next_c)
    next_h = compute(shape, lambda t, b, x: let_out(t, b, x) * shown(t, b, x), "next_h")
    if proj is not None:
        next_h = _projected(next_h, proj)
    first = [_first((1, batch, outputs), h_init, dtype, "h_init"), _first((1, batch, hidden), c_init, dtype, "c_init")]
    states = scan(first, [next_h, next_c], [h_state, c_state], name="lstm_scan")
    made = [
        compute((steps, *state.shape[1:]), lambda t, b, x, s=state: s(t + 1, b, x), name)
        for state, name in zip(states, ("hidden_state", "cell_state"), strict=True)
    ]
    return made[0], made[1]


def _sizes(inputs: Tensor, of_inputs: Tensor, of_hidden: Tensor, proj: Tensor | None, layout: str) -> tuple[int, int, int, int]:
    """Steps, batch, cells and outputs of an LSTM, checked against each other."""
    where = "lstm"
    if sorted(layout) != sorted("IFGO"):
        raise DeclarationError(f"lstm: weight_layout is {layout!r}; it is an order of I, F, G and O")
    need_rank(where, "Xs", inputs, 3)
    need_rank(where, "Wi", of_inputs, 2)
    need_rank(where, "Wh", of_hidden, 2)
    steps, batch, features = (get_const_int(extent) for extent in inputs.shape)
    hidden, outputs = get_const_int(of_hidden.shape[0]) // 4, get_const_int(of_hidden.shape[1])
    for what, found, wanted in (
        ("the features of Xs and Wi", of_inputs.shape[1], features),
        ("the rows of Wi and Wh", of_inputs.shape[0], 4 * hidden),
        ("the columns of Wh and the hidden states", outputs, hidden if proj is None else proj.shape[0]),
    ):
        need_equal(where, what, found, wanted)
    return steps, batch, hidden, outputs


@dataclass(frozen=True)
class _Gates:
    """What the four gates share: `layout` is the order of their blocks in `from_inputs` (of the step before) and `from_hidden`."""

    shape: tuple[int, int, int]
    layout: str
    from_inputs: Tensor
    from_hidden: Tensor

    def gate(
        self, letter: str, activation: Activation, peephole: Tensor | None = None, cells: Tensor | None = None, back: int = 0
    ) -> Tensor:
        """One gate, which may look at the cells of `back` steps ago."""
        first = self.layout.index(letter) * self.shape[2]

        def body(t: Var, b: Var, x: Var) -> PrimExpr:
            # Row 0 of the states is what was there before the first step, so row t belongs to the inputs t - 1.
            total: PrimExpr = self.from_inputs(t - 1, b, first + x) + self.from_hidden(t, b, first + x)
            if peephole is not None and cells is not None:
                total = total + peephole(b, x) * cells(t - back, b, x)
            return total

        return activation(compute(self.shape, body, f"s_gate_{letter.lower()}"))


def _from_hidden(state: Tensor, weights: Tensor) -> Tensor:
    """What the hidden state of the step before adds to the gates."""
    k = te.reduce_axis((0, weights.shape[1]), name="kh")
    shape = (*state.shape[:2], weights.shape[0])
    return compute(shape, lambda t, b, x: te.sum(state(t - 1, b, k.var) * weights(x, k.var), axis=k), "s_h2h")


def _projected(whole: Tensor, proj: Tensor) -> Tensor:
    """Hidden states of fewer elements than cells."""
    j = te.reduce_axis((0, proj.shape[1]), name="kr")
    shape = (*whole.shape[:2], proj.shape[0])
    return compute(shape, lambda t, b, x: te.sum(whole(t, b, j.var) * proj(x, j.var), axis=j), "next_h_projected")


def _first(shape: tuple[int, ...], given: Tensor | None, dtype: str, name: str) -> Tensor:
    if given is not None:
        need_rank("lstm", name, given, 2)
    return compute(shape, lambda _, b, x: const(0, dtype) if given is None else given(b, x), name)


def _from_inputs(inputs: Tensor, weights: Tensor, biases: list[Tensor], steps: int, reverse: bool) -> Tensor:
    """What inputs and biases add to the gates, for all steps at once."""
    k = te.reduce_axis((0, inputs.shape[2]), name="ki")
    shape = (steps, inputs.shape[1], weights.shape[0])

    def body(t: Var, b: Var, x: Var) -> PrimExpr:
        return te.sum(inputs(steps - 1 - t if reverse else t, b, k.var) * weights(x, k.var), axis=k)

    products: Tensor = compute(shape, body, "i2h")
    if not biases:
        return products

    def biased(t: Var, b: Var, x: Var) -> PrimExpr:
        total: PrimExpr = products(t, b, x)
        for bias in biases:
            total = total + bias(x)
        return total

    return compute(shape, biased, "i2h_biased")
