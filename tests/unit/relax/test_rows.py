"""Every operator: what is known of its result, its meaning on NumPy's arrays, and its kernel, which agrees with that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax import TensorStructInfo, Var, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.ops.row import ROWS
from tensorexpr.relax.visitor import walk
from tensorexpr.tir.expr import Var as Symbol

from . import nn_cases

N = Symbol("n", "int64")
UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor isfinite isinf isnan log negative round rsqrt sigmoid sign sin
    sinh sqrt square tan tanh"""
BINARY = """add divide equal floor_divide floor_mod greater greater_equal less less_equal maximum minimum mod multiply not_equal
    subtract"""
BITS = "bitwise_and bitwise_or bitwise_xor left_shift right_shift"
LOGIC = "logical_and logical_or logical_xor"
REDUCE = "max mean min prod std sum variance"
X, Y = (N, 6), (6,)
F = "float32"
Case = tuple[Callable[..., Any], tuple[tuple[tuple[Any, ...], str], ...]]

CASES: dict[str, Case] = {
    **nn_cases.CASES,
    **{name: (getattr(op, name), ((X, F),)) for name in UNARY.split()},
    **{name: (getattr(op, name), ((X, F), (Y, F))) for name in BINARY.split()},
    **{name: (getattr(op, name), (((4,), "int32"), ((3, 4), "int32"))) for name in BITS.split()},
    **{name: (getattr(op, name), (((4,), "bool"), ((3, 4), "bool"))) for name in LOGIC.split()},
    **{name: (partial(getattr(op, name), axis=[1], keepdims=True), (((3, 4, 2), F),)) for name in REDUCE.split()},
    "adaptive_avg_pool2d": (lambda x: op.nn.adaptive_avg_pool2d(x, 3), (((1, 2, 7, 5), F),)),
    "argmax": (lambda x: op.argmax(x, 1), ((X, F),)),
    "argmin": (lambda x: op.argmin(x, 1, True), ((X, F),)),
    "astype": (lambda x: op.astype(x, "int32"), ((X, F),)),
    "avg_pool2d": (lambda x: op.nn.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (((1, 2, 8, 7), F),)),
    "batch_norm": (lambda x, *s: op.nn.batch_norm(x, *s, axis=1)[0], (((2, 3, 4), F), *[((3,), F)] * 4)),
    "bitwise_not": (op.bitwise_not, (((4,), "int32"),)),
    "broadcast_to": (lambda x: op.broadcast_to(x, (2, 3, 4)), (((3, 1), F),)),
    "clip": (lambda x: op.clip(x, 0.25, 0.75), ((X, F),)),
    "concat": (lambda x, y: op.concat((x, y), 1), (((N, 3), F), ((N, 2), F))),
    "conv2d": (lambda x, w: op.nn.conv2d(x, w, 2, (1, 0), groups=2), (((1, 4, 7, 6), F), ((6, 2, 3, 3), F))),
    "conv2d_nhwc": (
        lambda x, w: op.nn.conv2d(x, w, 1, 1, data_layout="NHWC", kernel_layout="HWIO"),
        (((1, 5, 6, 3), F), ((3, 3, 3, 8), F)),
    ),
    "dropout": (lambda x: op.nn.dropout(x)[0], ((X, F),)),
    "ewise_fma": (op.ewise_fma, ((X, F), (X, F), (X, F))),
    "expand_dims": (lambda x: op.expand_dims(x, [0, -1]), ((X, F),)),
    "flatten": (op.flatten, ((X, F),)),
    "flip": (lambda x: op.flip(x, 1), ((X, F),)),
    "full": (lambda x: op.full((2, 3), x), (((), F),)),
    "gelu": (op.nn.gelu, ((X, F),)),
    "gelu_tanh": (op.nn.gelu_tanh, ((X, F),)),
    "layer_norm": (op.nn.layer_norm, ((X, F), (Y, F), (Y, F))),
    "leakyrelu": (op.nn.leakyrelu, ((X, F),)),
    "linear": (op.linear, ((X, F), ((5, 6), F), ((5,), F))),
    "log_softmax": (op.nn.log_softmax, ((X, F),)),
    "logical_not": (op.logical_not, (((4,), "bool"),)),
    "masked_fill": (lambda x, m: op.masked_fill(x, m, 2.0), ((X, F), (X, "bool"))),
    "matmul": (op.matmul, (((2, 1, 3, 4), F), ((5, 4, 2), F))),
    "dense": (op.nn.dense, (((2, 3, 4), F), ((5, 4), F))),
    "matmul_vectors": (lambda x, y: op.matmul(op.matmul(x, y), x), (((4,), F), ((4, 4), F))),
    "max_pool2d": (lambda x: op.nn.max_pool2d(x, (3, 2), 2, 1), (((1, 2, 8, 7), F),)),
    "ones_like": (op.ones_like, ((X, F),)),
    "permute_dims": (lambda x: op.permute_dims(x, [2, 0, 1]), (((2, 3, N), F),)),
    "power": (op.power, ((X, F), (Y, F))),
    "relu": (op.nn.relu, ((X, F),)),
    "reshape": (lambda x: op.reshape(x, (3, -1, 0)), (((2, 6, 4), F),)),
    "rms_norm": (op.nn.rms_norm, ((X, F), (Y, F))),
    "silu": (op.nn.silu, ((X, F),)),
    "softmax": (op.nn.softmax, ((X, F),)),
    "split": (lambda x: op.split(x, [1, 4], 1)[1], ((X, F),)),
    "squeeze": (lambda x: op.squeeze(x, [1]), (((N, 1, 3), F),)),
    "strided_slice": (lambda x: op.strided_slice(x, [0, 1], [1, -1], [5, -7], [2, -1]), (((6, 6), F),)),
    "take": (lambda x, i: op.take(x, i, 1), ((X, F), ((2, 2), "int64"))),
    "tile": (lambda x: op.tile(x, (2, 1, 3)), (((2, 3), F),)),
    "where": (op.where, ((X, "bool"), (X, F), (Y, F))),
    "zeros": (lambda x: x + op.zeros((6,), F), ((X, F),)),
    "zeros_like": (lambda x: op.zeros_like(x, "int32"), ((X, F),)),
    "ones": (lambda x: x + op.ones((6,), F), ((X, F),)),
}


@cache
def machine() -> tuple[Any, Evaluator]:
    """All operators in one module, built once, and what they mean."""
    bb = relax.BlockBuilder()
    for name, (call, shapes) in CASES.items():
        params = [Var(f"p{n}", TensorStructInfo(shape, dtype)) for n, (shape, dtype) in enumerate(shapes)]
        with bb.function(f"f_{name}", params):
            bb.emit_func_output(bb.emit(call(*params)))
    return relax.VirtualMachine(relax.build(bb.get(), "llvm")), Evaluator(bb.get())


def arrays(name: str) -> list[Any]:
    rng = np.random.default_rng(len(name))
    made: list[Any] = []
    for shape, dtype in CASES[name][1]:
        extents = tuple(3 if isinstance(one, Symbol) else one for one in shape)
        values = rng.uniform(1.05 if name == "acosh" else 0.1, 2.0 if name == "acosh" else 0.9, extents)
        made.append((values * 4).astype(dtype) if "int" in dtype else values > 0.5 if dtype == "bool" else values.astype(dtype))
    return made


@pytest.mark.parametrize("name", CASES)
def test_kernels_do_what_operators_mean(name: str) -> None:
    vm, evaluator = machine()
    given = arrays(name)
    expected, found = evaluator(f"f_{name}", *given), vm[f"f_{name}"](*given).numpy()
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "value"), [("max", -np.inf), ("min", np.inf)])
def test_rows_of_infinities_have_infinite_extremes(name: str, value: float) -> None:
    x = np.full((3, 40), value, F)
    x[1, 7] = 2.0
    x[2] = np.finfo(F).min if name == "max" else np.finfo(F).max
    bb = relax.BlockBuilder()
    param = Var("x", TensorStructInfo(x.shape, F))
    with bb.function("main", [param]):
        bb.emit_func_output(bb.emit(getattr(op, name)(param, 1)))
    found = relax.VirtualMachine(relax.build(bb.get(), "llvm"))["main"](x).numpy()
    assert found.tolist() == [value, 2.0, float(x[2, 0])]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("extents", "axis"), [((3, 40), 1), ((40, 33), 0), ((2, 3, 20), None)])
def test_positions_of_extremes_are_numpys_with_nan(name: str, extents: tuple[int, ...], axis: int | None) -> None:
    """The first NaN of several, whatever stands before it; else the first of equal elements, infinities among them."""
    rng = np.random.default_rng(0)
    x = Var("x", TensorStructInfo(extents, F))
    given = rng.choice(np.array([0, 1, np.nan, np.inf, -np.inf], "float32"), extents, p=[0.6, 0.3, 0.02, 0.04, 0.04])
    # rows and columns without a NaN, too
    given[1] = np.where(np.isnan(given[1]), -np.inf, given[1])
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(getattr(op, name)(x, axis)))
    vm, evaluator = relax.VirtualMachine(relax.build(bb.get())), Evaluator(bb.get())
    for case in (given, np.full(extents, -np.inf, "float32"), np.full(extents, np.nan, "float32")):
        expected = getattr(np, name)(case, axis=axis)
        np.testing.assert_array_equal(vm["main"](case).numpy(), expected)
        np.testing.assert_array_equal(evaluator("main", case), expected)


def test_silu_leaves_no_numbers_below_the_least_normal_one() -> None:
    # Each would take a hundred times as long in the convolution that reads it.
    x = Var("x", TensorStructInfo((64,), F))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(op.nn.silu(x))
        bb.emit_func_output(out)
    given = np.linspace(-110, 20, 64).astype(np.float32)
    given[:3] = np.nan, np.inf, -np.inf
    found = relax.VirtualMachine(relax.build(bb.get()))["main"](given).numpy()
    assert np.isnan(found[0])
    assert found[1] == np.inf
    assert np.isnan(found[2])  # -inf * 0
    assert not ((np.abs(found) < np.finfo(F).smallest_normal) & (found != 0)).any()
    wide = given[3:].astype(np.float64)
    np.testing.assert_allclose(found[3:], wide / (1 + np.exp(-wide)), rtol=1e-5, atol=2e-36)


def test_every_row_is_tested() -> None:
    """Those that networks are made of; tests/property/test_operators.py has the others."""
    _, evaluator = machine()
    tested = {node.op for name in CASES for node in walk(evaluator.function(f"f_{name}").body) if isinstance(node, relax.Call)}
    assert {name for name in ROWS if name.startswith(("relax.nn.", "relax.image.", "relax.grad."))} - tested == set()


def tensor(*shape: Any, dtype: str = F) -> Var:
    return Var("x", TensorStructInfo(shape, dtype))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: op.add(tensor(2, 3), tensor(4)), "don't broadcast: .*3.* and .*4.* differ"),
        (lambda: op.add(tensor(2), tensor(2, dtype="int32")), "float32 and int32; bring them to one dtype with astype"),
        (lambda: op.exp(tensor(2, dtype="int32")), "floating-point numbers"),
        (lambda: op.matmul(tensor(2, 3), tensor(4, 5)), "3.* columns.*4.* rows"),
        (lambda: op.reshape(tensor(2, 3), (4, -1)), "can't be a tensor of shape"),
        (lambda: op.reshape(tensor(2, 3), (-1, -1)), "only one extent"),
        (lambda: op.squeeze(tensor(2, 3), [0]), "extent of .*2.*, not 1"),
        (lambda: op.nn.softmax(tensor(2, 3), 2), "axis 2 of a tensor of 2 dimensions"),
        (lambda: op.sum(tensor(2, 3), [1, -1]), "named twice"),
        (lambda: op.nn.conv2d(tensor(1, 4, 8, 8), tensor(8, 3, 3, 3)), "4.* channels with weights for .*3"),
        (lambda: op.concat((tensor(2, 3), tensor(3, 3)), 1), "extents differ along axis 0"),
        (lambda: op.permute_dims(tensor(2, 3), [0]), "names 1 of the 2 axes"),
        (lambda: op.add("x", tensor(2)), "is a tensor, not str"),
        (lambda: op.add(tensor(2)), "add.x1, x2."),
        (lambda: op.where(tensor(2), tensor(2), tensor(2)), "tensor of bool"),
        (lambda: op.take(tensor(2, 3), tensor(2), 0), "indices are integers"),
        (lambda: op.nn.softmax(tensor(2, dtype="int32")), "data are floating-point numbers"),
        (lambda: op.nn.conv2d(tensor(1, 4, 8, 8), tensor(8, 4, 3, 3, dtype="float16")), "data of float32, weights of float16"),
        (lambda: op.nn.conv2d(tensor(1, 4, N * 2, 8), tensor(N * 2 + 1, 2, 3, 3), groups=2), "can't be cut in 2 groups"),
        (lambda: op.nn.nll_loss(tensor(2, 3), tensor(4, dtype="int32")), "the axes of predictions"),
        (lambda: op.nn.nll_loss(tensor(2, 3), tensor(2)), "targets are integers"),
        (lambda: op.nn.cross_entropy_with_logits(tensor(2, 3), tensor(3)), "labels have the axes of predictions"),
        (lambda: op.full((2, 3), tensor(1)), "a tensor without axes"),
        (lambda: op.ones((2, 3), ""), "has to know its dtype"),
        (lambda: op.reshape(tensor(2, 3), (-2, -3)), "at least 0, or -1"),
        (lambda: op.broadcast_to(Var("x", TensorStructInfo(None, F, ndim=3)), (2, 3)), "has more axes"),
        (lambda: op.concat((tensor(2, 3), tensor(2, 3)), None), "joined along an axis"),
        (lambda: op.strided_slice(tensor(2, 3), [0, -2], [0, 0], [1, 1]), "named twice"),
        (lambda: op.layout_transform(tensor(4, dtype="int32"), lambda i: (i // 3, i % 3), 1.5), "no int32 to pad"),
        (lambda: op.one_hot(tensor(2, dtype="int32"), relax.const(1.0), relax.const(0), 4), "values of float32 and int32"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        call()


def test_reductions_of_tensors_of_unknown_rank() -> None:
    assert op.mean(Var("x", TensorStructInfo(None, F)), [1]).struct_info == TensorStructInfo(None, F)


def test_symbols_go_through_operators() -> None:
    m = Symbol("m", "int64")
    x = Var("x", TensorStructInfo((N, m, 4)))
    assert op.reshape(x, (0, -1)).struct_info == TensorStructInfo((N, m * 4))
    assert op.concat((x, x), 0).struct_info == TensorStructInfo((N * 2, m, 4))
    assert op.matmul(x, tensor(4, 8)).struct_info == TensorStructInfo((N, m, 8))
    assert op.add(x, Var("y", TensorStructInfo(None, F, ndim=3))).struct_info == TensorStructInfo(None, F, ndim=3)


@pytest.mark.parametrize("name", ["relu", "silu", "gelu", "gelu_tanh"])
def test_activations_call_their_operand_data(name: str) -> None:
    x = Var("x", TensorStructInfo((2, 3), F))
    assert getattr(op.nn, name)(data=x).args == (x,)
    with pytest.raises(TypeMismatchError, match="data"):
        getattr(op.nn, name)(x=x)


def test_bindings_by_the_customary_name() -> None:
    x = Var("x", TensorStructInfo((N, 3), F))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.nn.relu(x)))
    main: Any = bb.get()["main"]
    sized = main.bind_symbolic_vars(binding_map={N: 2})
    assert str(sized.params[0].struct_info) == 'R.Tensor((2, 3), dtype="float32")'
    assert sized.bind_params(binding_map={"x": np.ones((2, 3), F)}).params == ()


def test_messages_name_the_operator_and_show_plain_numbers() -> None:
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with pytest.raises(DeclarationError, match=r"^relax\.op\.sum: axis 5 of a tensor of 2 dimensions"):
        op.sum(x, 5)
    with pytest.raises(DeclarationError, match=r"has 3 columns, and .* 2 rows"):
        op.matmul(x, x)
    with pytest.raises(TypeMismatchError, match=r"relax\.build takes an IRModule or a relax\.Function, not int"):
        relax.build(42)  # type: ignore[arg-type]
