"""Random networks as relay: their text reads back as the same network, and means the same as the script of the graph they come from."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.ir import structural_equal
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.from_graph import from_graph
from tensorexpr.relay.to_graph import to_graph
from tensorexpr.script import from_source
from tests.effort import share_of

from .test_graphs import graphs

STEPS: tuple[Any, ...] = (
    relay.add,
    relay.multiply,
    lambda a, b: relay.nn.softmax(a),
    lambda a, b: relay.concatenate((relay.split(a, 2, 1)[1], relay.split(b, (2,), 1)[0]), 1),
    lambda a, b: relay.where(relay.greater(a, b), a, relay.const(0.5)),
    lambda a, b: relay.strided_slice(relay.nn.pad(a, ((0, 0), (1, 0))), [0, 0], [3, 4]),
    lambda a, b: relay.If(relay.any(relay.less(a, b)), a + b, relay.exp(b) * a),
    lambda a, b: relay.Function((x := relay.var("x", shape=(3, 4)),), x * b)(a),
    lambda a, b: relay.Let(v := relay.var("v"), a + b, v * relay.tanh(v)),
    lambda a, b: a + relay.const(np.arange(4, dtype="float32")),
)


TORN = """def @main(%x: Tensor[(n, 4), float32], %c: bool) {
  let %f = fn (%a: Tensor[(n, 4), float32]) { clip(%a, a_min=-1f, a_max=2.5f) };
  %0 = split(%x, indices_or_sections=[1, 3], axis=1);
  %1 = (%0.1, %f(%x) * 2f);
  if (%c) { concatenate(%1, axis=1) } else { nn.pad(%x, 0f, pad_width=[[0, 0], [1, 1]], pad_mode="constant") }
}"""


@st.composite
def networks(draw: st.DrawFn) -> relay.Function:
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    values: list[Any] = [x, y]
    for _ in range(draw(st.integers(1, 7))):
        values.append(draw(st.sampled_from(STEPS))(draw(st.sampled_from(values)), draw(st.sampled_from(values))))
    return relay.Function((x, y), values[-1])


def evaluated(mod: tvm.IRModule) -> Any:
    rng = np.random.default_rng(0)
    return Evaluator(to_graph(mod))("main", *(rng.standard_normal((3, 4)).astype("float32") for _ in range(2)))


@settings(max_examples=share_of(25), deadline=None)
@given(networks())
def test_text_reads_back_as_the_same_network(func: relay.Function) -> None:
    mod = tvm.IRModule.from_expr(func)
    text = mod.astext()
    again = relay.fromtext(text)
    assert structural_equal(again, mod)
    assert again.astext() == text
    np.testing.assert_array_equal(evaluated(again), evaluated(mod))


@settings(max_examples=share_of(60), deadline=None)
@given(st.data())
def test_a_torn_text_is_an_error_of_the_library(data: st.DataObject) -> None:
    """Tokens left out, doubled or put elsewhere: the reader and the checks behind it name what is wrong, whatever it is."""
    tokens = [found.group() for found in re.finditer(r"\w+|\s+|.", TORN)]
    for _ in range(data.draw(st.integers(1, 3))):
        place, kind = data.draw(st.integers(0, len(tokens) - 1)), data.draw(st.sampled_from(("drop", "double", "other")))
        if kind == "drop":
            del tokens[place]
        else:
            tokens.insert(place, tokens[place if kind == "double" else data.draw(st.integers(0, len(tokens) - 1))])
    with suppress(tvm.error.TensorExprError):
        str(relay.transform.InferType()(relay.parse("".join(tokens))))


def _read(mod: tvm.IRModule) -> tvm.IRModule:
    """A graph from its script."""
    found = from_source(mod.script(show_meta=True))
    assert isinstance(found, tvm.IRModule)
    return found


@settings(max_examples=share_of(15), deadline=None)
@given(graphs())
def test_relay_and_the_graph_mean_the_same(drawn: tuple[Any, int]) -> None:
    mod, n = drawn
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((n, 4)).astype("float32") for _ in range(2)]
    there = from_graph(mod)
    read, script = relay.fromtext(there.astext()), _read(mod)
    expected = Evaluator(mod)("main", *data)
    np.testing.assert_array_equal(Evaluator(script)("main", *data), expected)
    for one in (there, read):
        np.testing.assert_allclose(Evaluator(to_graph(one))("main", *data), expected, 1e-5, 1e-6)
        # From either text: the script of what Relay's text says, and Relay's text of what the script says.
        np.testing.assert_allclose(Evaluator(_read(to_graph(one)))("main", *data), expected, 1e-5, 1e-6)
    np.testing.assert_allclose(Evaluator(to_graph(relay.fromtext(from_graph(script).astext())))("main", *data), expected, 1e-5, 1e-6)
