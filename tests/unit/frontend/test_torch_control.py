"""Programs of PyTorch with branches and loops: the graph means what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax, relay
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.frontend.torch import from_exported_program
from tensorexpr.relax.evaluator import Evaluator

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
from .test_torch import Wrapped, compare, exported, numbers  # noqa: E402  # which asks for PyTorch, too

control: Any = torch._higher_order_ops
LINEAR, CELL = torch.nn.Linear(4, 4), torch.nn.GRUCell(4, 4)
X, Y, COUNT = numbers(3, 4), numbers(3, 4).abs() + 1, torch.tensor(0)


class Holds(Wrapped):
    """A function that uses modules, whose weights are the program's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.linear, self.cell = LINEAR, CELL


def either(x: Any, y: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda a, b: (LINEAR(a).sin(), b * 2), lambda a, b: (a - 1, b + a), (x, y))


def nested(x: Any, y: Any) -> Any:
    inner: Callable[..., Any] = lambda a, b: torch.cond(b.max() > 2, lambda a, b: a + b, lambda a, b: a - b, (a, b))  # noqa: E731
    return torch.cond((x > 0).any(), inner, lambda a, b: a * b, (x, y)) * 2


def doubled(count: Any, x: Any) -> Any:
    step = x.cos()
    return control.while_loop(lambda n, a: (n < 4) & (a.sum() < 50), lambda n, a: (n + 1, a * 2 + step), (count, x))


def cells(x: Any, state: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        new = CELL(row, h)
        return new, new * 2

    return control.scan(step, state, x, dim=0)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "either": (either, [(X + 9, Y), (X - 9, Y)]),
    "nested": (nested, [(Y, Y * 3), (Y, Y * 0), (-Y, Y)]),
    "while": (doubled, [(COUNT, X), (COUNT, Y * 9), (COUNT + 5, X)]),
    "scan": (cells, [(numbers(5, 3, 4), X)]),
    "map": (lambda x, y: control.map(lambda a, b: a.sin() + b, x, y), [(X, Y[0])]),
    "a region without gradients": (lambda x: (grown(x), x * 2), [(X,)]),
}


def grown(x: Any) -> Any:
    with torch.no_grad():
        return x.exp() + 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_control_flow(name: str) -> None:
    function, calls = PROGRAMS[name]
    module = Holds(function)
    mod = from_exported_program(exported(module, *calls[0]))
    for args in calls:
        compare(Evaluator(mod)("main", *(one.numpy() for one in args)), module, args)


def test_a_loop_runs() -> None:
    module = Holds(doubled)
    machine = relax.VirtualMachine(relax.build(from_exported_program(exported(module, COUNT, X)), "llvm"))
    compare(machine["main"](COUNT.numpy(), X.numpy()), module, (COUNT, X))


def test_branches_by_sizes() -> None:
    module = Wrapped(lambda x: torch.cond(x.shape[0] > 4, lambda a: a + 1, lambda a: a - 1, (x,)))
    mod = from_exported_program(exported(module, numbers(6, 2), dynamic_shapes=(({0: torch.export.Dim("n", min=2)},),)))
    for rows in (3, 6):
        x = numbers(rows, 2)
        compare(Evaluator(mod)("main", x.numpy()), module, (x,))


def test_scans_of_as_many_rows_as_a_run_has() -> None:
    module = Wrapped(lambda x, h: control.scan(lambda a, row: (a + row, a * row), h, x, dim=0))
    program = exported(module, numbers(6, 2), numbers(2), dynamic_shapes=(({0: torch.export.Dim("n", min=2)}, None),))
    for rows in (3, 6):
        args = numbers(rows, 2), numbers(2)
        compare(Evaluator(from_exported_program(program))("main", *(one.numpy() for one in args)), module, args)


def test_weights_of_branches_may_stay_parameters() -> None:
    mod = from_exported_program(exported(Holds(either), X, Y), keep_params_as_input=True)
    assert [one.name_hint for one in mod["main"].params][2:4] == ["p_linear_weight", "p_linear_bias"]
    compare(Evaluator(mod)("main", X.numpy(), Y.numpy(), *mod["main"].attrs["params"]), Holds(either), (X, Y))


def test_what_is_said_of_functions() -> None:
    with pytest.raises(DeclarationError, match=r"without a converter: prims\.bessel_j0\.default"):
        module = Wrapped(lambda x: torch.cond(x.sum() > 0, lambda a: torch.special.bessel_j0(a), lambda a: a - 1, (x,)))
        from_exported_program(exported(module, X))
    with pytest.raises((DeclarationError, TypeMismatchError), match=r"with the number 0; use torch\.tensor"):
        module = Wrapped(lambda x: control.while_loop(lambda n, a: n < 3, lambda n, a: (n + 1, a * 2), (0, x)))
        from_exported_program(exported(module, X))


def test_branches_of_torchscript() -> None:
    @torch.jit.script  # type: ignore[untyped-decorator]
    def chosen(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if bool(x.sum() > 0) else x - 1

    class Scripted(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return chosen(x)

    mod, _ = relay.frontend.from_pytorch(torch.jit.script(Scripted()), [("x", (3, 4))])
    for x in (X + 9, X - 9):
        found = relay.create_executor("vm", mod).evaluate()(x.numpy())
        np.testing.assert_allclose(found.numpy(), chosen(x).numpy(), rtol=1e-6)
