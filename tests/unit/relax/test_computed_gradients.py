"""Derivatives of operators by their tensor computations, and of networks with norms and attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import op, transform
from tensorexpr.relax.evaluator import Evaluator

CASES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "adaptive_avg_pool2d": (lambda x: op.nn.adaptive_avg_pool2d(x, 1), [(2, 3, 4, 5)]),
    "attention": (op.nn.attention, [(1, 3, 2, 4)] * 3),
    "conv1d": (lambda x, w: op.nn.conv1d(x, w, padding=1), [(2, 3, 5), (4, 3, 3)]),
    "conv2d_transpose": (lambda x, w: op.nn.conv2d_transpose(x, w, 2), [(1, 2, 3, 3), (2, 3, 2, 2)]),
    "einsum": (lambda x, y: op.einsum((x, y), "ij,jk->ik"), [(3, 4), (4, 2)]),
    "einsum_of_one_operand_twice": (lambda x: op.einsum((x, x), "ij,kj->ik"), [(3, 4)]),
    "elu": (op.nn.elu, [(3, 4)]),
    "ewise_fma": (op.ewise_fma, [(3, 4)] * 3),
    "fma_of_one_operand_twice": (lambda x, y: op.ewise_fma(x, x, y), [(3, 4)] * 2),
    "gelu_tanh": (op.nn.gelu_tanh, [(3, 4)]),
    "group_norm": (lambda x, g, b: op.nn.group_norm(x, g, b, 2, 1, [2]), [(2, 4, 3), (4,), (4,)]),
    "layer_norm": (lambda x, g, b: op.nn.layer_norm(x, g, b, -1), [(3, 4), (4,), (4,)]),
    "pad": (lambda x: op.nn.pad(x, [1, 0, 0, 2]), [(3, 4)]),
    "prelu": (op.nn.prelu, [(3, 4), (4,)]),
    "repeat": (lambda x: op.repeat(x, 2, 1), [(3, 4)]),
    "rms_norm": (lambda x, g: op.nn.rms_norm(x, g, -1), [(3, 4), (4,)]),
    "std": (lambda x: op.std(x, 1), [(3, 4)]),
    "strided_slice": (lambda x: op.strided_slice(x, [1], [1], [4], [2]), [(3, 4)]),
    "with_constants": (lambda x: op.ewise_fma(x, relax.const(np.full((3, 4), 0.3)), relax.const(np.full((3, 4), 0.1))), [(3, 4)]),
}


def _function(make: Any, shapes: Any) -> Any:
    """The sum of `y * sin(y)` of what an operator gives, so that each element counts differently."""
    variables = [relax.Var(f"v{n}", relax.TensorStructInfo(shape, "float64")) for n, shape in enumerate(shapes)]
    bb = relax.BlockBuilder()
    with bb.function("main", variables):
        with bb.dataflow():
            y = bb.emit(make(*variables))
            out = bb.emit_output(op.sum(op.multiply(y, op.sin(y))))
        bb.emit_func_output(out)
    return bb.get()


def _check(mod: Any, shapes: Any) -> None:
    """The derivatives beside differences, in the evaluator and built."""
    run, rng = Evaluator(mod), np.random.default_rng(0)
    values = [rng.uniform(0.2, 1, shape) for shape in shapes]
    _, grads = run("main_adjoint", *values)
    for at, grad in enumerate(grads):
        step = 1e-5 * rng.standard_normal(shapes[at])
        ends = [run("main", *[value + sign * step if n == at else value for n, value in enumerate(values)]) for sign in (1, -1)]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2, (grad * step).sum(), rtol=1e-4, atol=1e-11)
    built = relax.VirtualMachine(relax.build(mod, "llvm"))["main_adjoint"](*values)[1]
    for one, grad in zip(built, grads, strict=True):
        np.testing.assert_allclose(one.numpy(), grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_computations(name: str) -> None:
    make, shapes = CASES[name]
    _check(transform.Gradient("main")(_function(make, shapes)), shapes)


@pytest.mark.parametrize("name", ["attention", "layer_norm", "rms_norm"])
def test_what_training_decomposes(name: str) -> None:
    """It means the same, and has derivatives by operators alone."""
    make, shapes = CASES[name]
    mod = _function(make, shapes)
    made = transform.Gradient("main")(transform.DecomposeOpsForTraining()(mod))
    assert [var.name_hint for var in made.get_global_vars()] == ["main", "main_adjoint"]  # no tensor function
    assert f"nn.{name}(" not in str(made["main"])
    values = [np.random.default_rng(1).uniform(0.2, 1, shape) for shape in shapes]
    np.testing.assert_allclose(Evaluator(made)("main", *values), Evaluator(mod)("main", *values), rtol=1e-9)
    _check(made, shapes)


def test_computations_without_a_derivative() -> None:
    for make in (lambda x: op.sort(x), lambda x: op.prod(x, 1)):
        with pytest.raises(
            DeclarationError, match=r"no derivative is known of R\..*of tensor computations of known shapes with one result"
        ):
            transform.Gradient("main")(_function(make, [(3, 4)]))
