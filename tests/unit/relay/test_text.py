"""Relay's text, exactly; what is read back; where a text is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay, tir
from tensorexpr.errors import DeclarationError
from tensorexpr.ir import structural_equal
from tensorexpr.relay.text import type_text
from tensorexpr.relay.to_graph import to_graph


def test_a_function() -> None:
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4,))
    whole = relay.split(relay.nn.bias_add(x, w), 2, axis=1)
    y = relay.clip(relay.concatenate((whole[1], whole[0]), axis=1) * relay.const(1.5), 0.0, 6.0)
    func = relay.Function((x, w), y + relay.const(np.ones(4, "float32")))
    assert (
        str(tvm.IRModule.from_expr(func))
        == """\
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4), float32]) {
  %0 = nn.bias_add(%x, %w);
  %1 = split(%0, indices_or_sections=2, axis=1);
  %2 = %1.1;
  %3 = %1.0;
  %4 = (%2, %3);
  %5 = concatenate(%4, axis=1);
  %6 = multiply(%5, 1.5f);
  %7 = clip(%6, a_min=0f, a_max=6f);
  add(%7, meta[relay.Constant][0])
}"""
    )
    assert structural_equal(relay.fromtext(func.astext()), func)


def test_values_stand_where_all_their_uses_see_them() -> None:
    c, x, v = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(2,)), relay.var("v")
    both = relay.exp(x)
    choice = relay.If(c, both + relay.tanh(x), both * both)
    func = relay.Function((c, x), relay.Let(v, choice, relay.Tuple((v, v))), relay.TupleType((relay.TensorType((2,)),) * 2))
    assert (
        str(func)
        == """\
fn (%c: bool, %x: Tensor[(2), float32]) -> (Tensor[(2), float32], Tensor[(2), float32]) {
  %0 = exp(%x) /* ty=Tensor[(2), float32] */;
  let %v = if (%c) {
    %1 = tanh(%x) /* ty=Tensor[(2), float32] */;
    add(%0, %1) /* ty=Tensor[(2), float32] */
  } else {
    multiply(%0, %0) /* ty=Tensor[(2), float32] */
  };
  (%v, %v)
}"""
    )
    assert structural_equal(relay.fromtext(str(func)), func)


@pytest.mark.parametrize(
    "value",
    [1.5, -0.0, float("inf"), 1e-7, 3, True, np.float16(0.1), np.float64(1 / 3), np.int64(-5), np.uint8(200), np.uint64(2**64 - 1)],
)
def test_numbers_are_read_back_as_they_are(value: float) -> None:
    constant = relay.const(value)
    again = relay.parse_expr(constant.astext())
    assert again.data.dtype == constant.data.dtype
    assert again.data.numpy().tobytes() == constant.data.numpy().tobytes()


def test_a_text_with_its_version() -> None:
    assert relay.const(3, "int8").astext() == '#[version = "0.0.5"]\n3i8' and str(relay.const(3, "int8")) == "3i8"


def test_extents_are_read_back_as_they_are() -> None:
    n, anyone = relay.ShapeVar("n"), relay.ShapeVar("anyone")
    extents = (n // 2, n % 3, (n + 1) * 2 - (n - anyone), tir.max(n, tir.min(anyone, 7)), 1 - n)
    assert type_text(relay.TensorType(extents)) == (
        "Tensor[(floordiv(n, 2), floormod(n, 3), (n + 1) * 2 - (n - anyone), max(n, min(anyone, 7)), 1 - n), float32]"
    )
    x = relay.var("x", shape=extents)
    func = relay.Function((relay.var("n", shape=(n, anyone)), x), relay.nn.relu(x))
    assert structural_equal(relay.fromtext(func.astext()), func)


def test_an_attribute_that_is_infinite() -> None:
    read = relay.fromtext("fn (%a: float32) { clip(%a, a_min=-inf, a_max=inff) }")
    assert (read.body.attrs.a_min, read.body.attrs.a_max) == (float("-inf"), float("inf"))


def test_text_written_by_hand() -> None:
    mod = relay.fromtext("""
        #[version = "0.0.5"]
        def @twice(%a: Tensor[(n, 2), float32]) { %a + %a }  // a comment
        def @main(%a: Tensor[(3, 2), float32], %b: Tensor[(3, 2), float32]) {
            let %s = @twice(%a * %b - 1f /* one */);
            %s / 2f
        }""")
    call = relay.create_executor("graph", mod, target="llvm").evaluate()
    a, b = np.arange(6, dtype="float32").reshape(3, 2), np.full((3, 2), 2, "float32")
    np.testing.assert_array_equal(call(a, b).numpy(), a * b - 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def @main(%a: float32) {\n  nn.relux(%a)\n}", r"from_string:2:3: no operator 'nn.relux'.*\n    +nn.relux\(%a\)\n +\^"),
        ("def @main() { %a }", "1:15: %a isn't bound here"),
        ("def @main(%a: float32) { nn.relu(%a, slope=1) }", "nn.relu has no attribute 'slope'; there are none"),
        ("def @main() { meta[relay.Constant][0] }", "isn't there: write programs with astext"),
        ("def @main() { 1 ", r"expected '\}', not 'the end'"),
        ("def @main() { $ }", r"1:15: '\$' begins nothing"),
        ("def @f() { 1 } def @f() { 2 }", "@f is defined twice"),
        ("def @main() { 1bf16 }", "1:15: '1' begins nothing"),
        ("def @main() { 300i8 }", "300i8 is no int8"),
        ("def @main() { 1.5i32 }", "1.5i32 is no int32"),
        ("def @main(%a: float32) { %a.1.0 }", "1:29: expected an integer, not '1.0'"),
        ("def @main() { meta[relay.Constant][0f] }", "expected an integer, not '0f'"),
        ("def @main(%a: Tensor[(-2, 3), float32]) { %a }", "1:15: an extent is at least 0, not -2"),
        ("def @main(%a: Tensor[(2, 3), flot32]) { %a }", "1:15: 'flot32' is no dtype"),
        ("def @main(%a: Tensor[(min(n), 3), float32]) { %a }", "min of extents takes two, not 1"),
        ("def @main() { dtype(3) }", "expected a string, not '3'"),
    ],
)
def test_where_a_text_is_wrong(text: str, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        relay.parse(text)


def test_places_in_texts() -> None:
    text = "def @main(%x: Tensor[(3), float32]) {\n  %0 = add(%x, 1f);\n  let %y = nn.relu(%0);\n  (%y, %0).1\n}"
    func: Any = relay.parse(text, "net.txt")["main"]
    let = func.body
    assert [str(one) for one in (func.span, func.params[0].span, let.var.span, let.value.span, let.value.args[0].span, let.body.span)] == [
        "net.txt:1:1", "net.txt:1:11", "net.txt:3:7", "net.txt:3:12", "net.txt:2:8", "net.txt:4:3",
    ]  # fmt: skip
    assert let.value.span == relay.Span(relay.SourceName("net.txt"), 3, 3, 12, 23)
    with pytest.raises(DeclarationError, match=r"^net.txt:2:3: relay.add: "):
        to_graph(relay.parse("def @main(%x: Tensor[(3), float32], %y: Tensor[(2), float32]) {\n  add(%x, %y)\n}", "net.txt"))


def test_places_outlive_passes() -> None:
    here = relay.Span(relay.SourceName("net.py"), 7, 7, 1, 9)
    x, one = relay.var("x", shape=(3,), span=here), relay.const(1.0, span=here)
    made = relay.If(relay.const(True), relay.Tuple([relay.Call(relay.op.get("add"), [x, one], span=here)], here), relay.Tuple([x]), here)
    assert x.span == one.span == made.span == here and relay.Let(x, one, made, here).span.same_as(here)
    y = relay.var("y", shape=(3,))
    other = relay.bind(made, {x: y})
    assert other is not made and other.span == other.true_branch.span == other.true_branch.fields[0].span == here
    mod = tvm.IRModule.from_expr(relay.Function((y,), relay.add(y, relay.const(np.ones(3, "float32")))))
    again: Any = relay.transform.AnnotateSpans()(mod)["main"]
    assert str(again.body.span) == "GeneratedSource:2:3" and tvm.ir.structural_equal(mod["main"], again)


def test_what_a_text_leaves_out_is_what_tvm_means() -> None:
    """Its texts have other defaults than its functions: attributes that were written by TVM 0.19 mean here what they mean there."""
    text = "fn (%a: Tensor[(1, 2, 3), float32], %b: Tensor[(1, 3, 2), float32]) { nn.leaky_relu(nn.batch_matmul(%a, %b)) }"
    func: Any = relay.fromtext(text)
    assert func.body.attrs.alpha == 0.25 and not func.body.args[0].attrs.transpose_b
    a, b = func.params
    for made, shown in (
        (relay.nn.batch_matmul(a, b, transpose_b=False), "nn.batch_matmul(%a, %b)"),
        (relay.nn.batch_matmul(a, a), "nn.batch_matmul(%a, %a, transpose_b=True)"),
        (relay.nn.leaky_relu(a), "nn.leaky_relu(%a, alpha=0.01f)"),
        (relay.transpose(a), "transpose(%a, axes=None)"),
    ):
        assert made.astext().splitlines()[-1] == shown
        assert structural_equal(relay.fromtext(relay.Function((a, b), made).astext()).body, made, map_free_vars=True)
