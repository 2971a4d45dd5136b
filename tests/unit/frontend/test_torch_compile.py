"""`torch.compile` with our backend: one graph for open sizes, guards, what is written to, layers that PyTorch runs as one operator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tensorexpr.frontend.torch import from_exported_program, relax_dynamo

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
from tensorexpr.frontend.torch import dynamo  # noqa: E402
from tensorexpr.frontend.torch.open_sizes import Guards  # noqa: E402

from .test_torch import F, numbers  # noqa: E402  # which asks for PyTorch, too


def counted_builds(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A list that says of each build from now on whether its sizes were open."""
    made: list[bool] = []
    build = dynamo._Compiled._build

    def counted(self: Any, args: Any, open_inputs: Any) -> Any:
        found = build(self, args, open_inputs)
        if found is not None:
            made.append(bool(open_inputs))
        return found

    monkeypatch.setattr(dynamo._Compiled, "_build", counted)
    return made


def builds_of(function: Any, calls: Sequence[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[bool]:
    """Checks a function against PyTorch, and says of each build whether its sizes were open."""
    made = counted_builds(monkeypatch)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=relax_dynamo(), **options)
    with torch.no_grad():
        for args in calls:
            torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-4, atol=1e-4)
    return made


LAYERS = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)).eval()
OPEN: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "layers": (LAYERS, [(numbers(rows, 4),) for rows in (3, 5, 7)]),
    "an integer": (lambda x, k: x[:, :k].sum() * k + x.shape[0] * 1.5, [(numbers(3, 4), 2), (numbers(5, 4), 3), (numbers(5, 9), 7)]),
    "an extent that isn't used": (lambda x: x.std(0), [(numbers(3, 4),), (numbers(5, 6),)]),
    "windows": (lambda x: x.unfold(0, 2, 1).sum(), [(numbers(rows, 4),) for rows in (3, 5)]),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), [(numbers(2, 2, rows, 8),) for rows in (3, 5)]),
}


@pytest.mark.parametrize("name", OPEN)
def test_one_graph_for_open_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, calls = OPEN[name]
    assert builds_of(function, calls, monkeypatch, dynamic=True) == [True]


def test_the_second_size_opens_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    function: Callable[..., Any] = lambda x, y: (x @ y).relu() + x.shape[0]  # noqa: E731
    assert builds_of(function, [(numbers(rows, 4), numbers(4, 2)) for rows in (3, 5, 6, 3)], monkeypatch) == [False, True]


def test_what_needs_known_sizes_has_a_graph_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: Any) -> Any:
        if any("s" in str(one.meta["val"].shape[0]) for one in program.graph.nodes if one.op == "placeholder"):
            raise ValueError("no symbols here")
        return from_exported_program(program)

    monkeypatch.setattr(dynamo, "from_exported_program", refuse)
    assert builds_of(lambda x: x * 2, [(numbers(3, 4),), (numbers(5, 4),)], monkeypatch, dynamic=True) == [False, False]


def test_guards_know_what_a_trace_took_for_granted() -> None:
    auto = torch.export.Dim.AUTO

    class Branches(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, y: Any, n: Any) -> Any:
            return (x + 1 if x.shape[0] % 2 == 0 else x) @ y * n

    program = torch.export.export(
        Branches(), (numbers(4, 3), numbers(3, 2), 5), dynamic_shapes=({0: auto, 1: auto}, {0: auto}, auto), strict=False
    )
    guards = Guards(program)
    assert guards.are_taken == [True, True, True]
    assert guards.fit([numbers(6, 5), numbers(5, 2), 7])
    assert not guards.fit([numbers(5, 5), numbers(5, 2), 7])  # an odd number of rows takes the other branch
    assert not guards.fit([numbers(6, 5), numbers(4, 2), 7]) and not guards.fit([numbers(6, 5), numbers(5, 3), 7])
    assert not guards.fit([numbers(6, 5)[0], numbers(5, 2), 7])


class Cache(torch.nn.Module):  # type: ignore[misc]
    """Keys that a buffer holds, written one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 6, 4))
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any, place: Any) -> Any:
        self.keys[:, place] = self.linear(x)
        return self.keys @ x.mT


def test_buffers_that_a_graph_writes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Cache().eval()
    other = copy.deepcopy(module)
    calls = [(numbers(1, 1, 4), torch.tensor([place])) for place in range(3)]
    assert builds_of(module, calls[:1], monkeypatch) == [False]
    torch._dynamo.reset()
    compiled = torch.compile(other, backend=relax_dynamo())
    with torch.no_grad():
        for args in [calls[0], *calls]:
            found = compiled(*args)
        for args in calls:
            wanted = module(*args)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(other.keys, module.keys, rtol=1e-4, atol=1e-4)


def test_inputs_that_a_graph_writes_to() -> None:
    def written(x: Any, place: Any) -> Any:
        x[:, place] += 1
        return x.sum(0)

    torch._dynamo.reset()
    compiled = torch.compile(written, backend=relax_dynamo())
    for rows in (3, 5, 6):
        x, place = numbers(rows, 4), torch.tensor([1])
        y = x.clone()
        torch.testing.assert_close(compiled(x, place), written(y, place))
        torch.testing.assert_close(x, y)


HIDDEN = torch.tensor([[False, True, True], [False, False, True]])
ENCODER = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
HEADS = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
FAST: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "encoder": (ENCODER, [(numbers(2, rows, 16),) for rows in (3, 4)]),
    "hidden keys": (lambda x: ENCODER(x, src_key_padding_mask=HIDDEN), [(numbers(2, 3, 16),)]),
    "hidden scores": (lambda x: ENCODER(x, src_mask=torch.ones(3, 3).triu(1).bool()), [(numbers(2, 3, 16),)]),
    "norm first": (
        torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, activation="gelu").eval(), [(numbers(2, 3, 16),)]
    ),
    "heads and their weights": (lambda x: HEADS(x, x, x), [(numbers(2, 3, 16),)]),
    "keys of others": (lambda x, y: HEADS(x, y, y, need_weights=False)[0], [(numbers(2, 3, 16), numbers(2, 5, 16))]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_layers_that_pytorch_runs_as_one_operator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, calls = FAST[name]
    assert builds_of(function, calls, monkeypatch, dynamic=True) == [True]


def test_graphs_around_a_break(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(x: Any) -> Any:
        return x.sin() + 1 if x.sum() > 0 else x.cos()

    assert builds_of(broken, [(numbers(3, 4).abs(),), (-numbers(3, 4).abs(),)], monkeypatch) == [False] * 3


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_are_those_of_pytorch(dynamic: bool) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    torch._dynamo.reset()
    compiled = torch.compile(module, backend=relax_dynamo(), dynamic=dynamic)
    for rows in (3, 5):
        x = numbers(rows, 4).requires_grad_()
        found = torch.autograd.grad(compiled(x).square().sum(), [x, *module.parameters()])
        torch.testing.assert_close(found, torch.autograd.grad(module(x).square().sum(), [x, *module.parameters()]), rtol=1e-3, atol=1e-4)


def test_a_step_of_training_changes_what_is_computed_next(monkeypatch: pytest.MonkeyPatch) -> None:
    builds = counted_builds(monkeypatch)
    module = torch.nn.Linear(4, 2)
    torch._dynamo.reset()
    compiled, x = torch.compile(module, backend=relax_dynamo()), numbers(3, 4)
    steps = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(2):
        steps.zero_grad()
        compiled(x).square().sum().backward()
        steps.step()
    assert len(builds) == 1  # weights that are trained are no constants
    torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)


def test_training_that_draws_or_counts_is_pytorchs() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).train()
    torch._dynamo.reset()
    compiled, x = torch.compile(module, backend=relax_dynamo()), numbers(6, 4)
    result = compiled(x)
    result.sum().backward()
    assert module[0].weight.grad is not None and module[1].num_batches_tracked == 1


def test_places_have_no_gradients() -> None:
    torch._dynamo.reset()
    compiled, x = torch.compile(lambda x: x.sort(1), backend=relax_dynamo()), numbers(3, 4).requires_grad_()
    values, places = compiled(x)
    values[:, 0].sum().backward()
    assert not places.requires_grad and torch.equal(x.grad.argmax(1), x.detach().argmin(1))
