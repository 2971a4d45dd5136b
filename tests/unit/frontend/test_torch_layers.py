"""Programs of PyTorch of recurrent layers, bags, images in other sizes and running extrema: the graph means what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.frontend.torch import from_exported_program
from tensorexpr.relax.evaluator import Evaluator

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
from .test_torch import F, Wrapped, compare, exported, numbers  # noqa: E402  # which asks for PyTorch, too

X, Y = numbers(3, 4), numbers(3, 4).abs() + 1


class WithState(torch.nn.Module):  # type: ignore[misc]
    """A layer whose state comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.LSTM(4, 3, batch_first=True)

    def forward(self, x: Any, h: Any, c: Any) -> Any:
        return self.layer(x, (h, c))


class Weighted(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(10, 3, mode="sum")

    def forward(self, x: Any, w: Any) -> Any:
        return self.bag(x, per_sample_weights=w)


RECURRENT: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lstm": (torch.nn.LSTM(4, 3, 2, bidirectional=True), (numbers(5, 2, 4),)),
    "lstm with a state": (WithState(), (numbers(2, 5, 4), numbers(1, 2, 3), numbers(1, 2, 3) + 1)),
    "gru": (torch.nn.GRU(4, 3, 2, bidirectional=True, batch_first=True), (numbers(2, 5, 4),)),
    "gru without biases": (torch.nn.GRU(4, 3, bias=False), (numbers(5, 2, 4),)),
    "rnn": (torch.nn.RNN(4, 3, nonlinearity="relu"), (numbers(5, 2, 4),)),
    "one sequence": (torch.nn.RNN(4, 3), (numbers(5, 4),)),
    "cells": (torch.nn.LSTMCell(4, 3), (numbers(2, 4),)),
}  # fmt: skip


@pytest.mark.parametrize(("name", "keeps"), [*((name, False) for name in RECURRENT), ("gru", True)])
def test_recurrent_layers(name: str, keeps: bool) -> None:
    module, args = RECURRENT[name]
    mod = from_exported_program(exported(module, *args, strict=False), keep_params_as_input=keeps)
    func: Any = mod["main"]
    values = [str(getattr(one.value, "op", "")) for one in func.body.bindings()]
    steps = sum(one.endswith("_steps") for one in values)
    assert steps == (0 if name == "cells" else 2 if getattr(module, "num_layers", 1) == 2 else 1)
    params = mod["main"].attrs["params"] if keeps else []
    compare(Evaluator(mod)("main", *(one.numpy() for one in args), *params), module, args)


PROJECTED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "both ways": (torch.nn.LSTM(4, 3, 2, proj_size=2, bidirectional=True, batch_first=True), (numbers(2, 5, 4),)),
    "without biases": (torch.nn.LSTM(4, 3, proj_size=2, bias=False), (numbers(5, 2, 4),)),
}


@pytest.mark.parametrize("name", PROJECTED)
def test_projected_states(name: str) -> None:
    module, args = PROJECTED[name]
    compare(Evaluator(from_exported_program(exported(module, *args, strict=False)))("main", *(one.numpy() for one in args)), module, args)


COUNTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "bins": (lambda i, w: (torch.bincount(i), torch.bincount(i, w, minlength=12)), (torch.tensor([1, 5, 5, 0]), numbers(4))),
    "repeats": (lambda x, n: (x.repeat_interleave(n, 0, output_size=4), x.repeat_interleave(n, 0) + 1), (X, torch.tensor([1, 0, 3]))),
    "different ones": (
        lambda i: (torch.unique(i), *torch.unique(i, return_inverse=True, return_counts=True), *torch.unique(i, dim=0, return_counts=True)),
        (torch.tensor([[3, 1], [3, 1], [0, 2]]),),
    ),
    "runs": (lambda i: torch.unique_consecutive(i, return_inverse=True, return_counts=True), (torch.tensor([2, 2, 0, 2, 1, 1]),)),
    "masked": (lambda x: (x.masked_select(x > 0), x.masked_select(x[0] > 0)), (X,)),
    "medians": (lambda x: (x.nanmedian(), *torch.where(x > 0, x, torch.nan).nanmedian(1, keepdim=True)), (X,)),
    "divisors": (lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), (torch.arange(12).reshape(3, 4) * 6 - 9, torch.tensor([4, 0, -6, 15]))),
    "signs": (lambda x: (x.signbit(), (x * 0).signbit(), torch.nextafter(x, x + 1), x.int().signbit()), (X,)),
    "gammas": (lambda x: (x.lgamma(), x.digamma(), torch.polygamma(1, x), x.mvlgamma(1), x.erfc(), torch.special.zeta(x, 2)), (Y + 0.1,)),
    "normal places": (lambda x: (torch.special.ndtri(x / 9), x.neg().tanh().erfinv(), torch.special.log_ndtr(-x), torch.i0(x)), (Y,)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_functions_of_elements(name: str) -> None:
    function, args = COUNTS[name]
    mod = from_exported_program(exported(Wrapped(function), *args))
    compare(Evaluator(mod)("main", *(one.numpy() for one in args)), Wrapped(function), args)


NUMBERS, OFFSETS = torch.tensor([1, 5, 5, 0, 9, 3, 2, 2, 7]), torch.tensor([0, 2, 2, 5])
BAGS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "sums": (torch.nn.EmbeddingBag(10, 3, mode="sum"), (NUMBERS, OFFSETS)),
    "means of rows": (torch.nn.EmbeddingBag(10, 3, padding_idx=5), (NUMBERS.reshape(3, 3),)),
    "maxima": (torch.nn.EmbeddingBag(10, 3, mode="max", padding_idx=2), (NUMBERS, OFFSETS)),
    "weighted": (Weighted(), (NUMBERS.reshape(3, 3), numbers(3, 3))),
    "with an end": (torch.nn.EmbeddingBag(10, 3, include_last_offset=True), (NUMBERS, torch.tensor([0, 2, 2, 5, 9]))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAGS)
def test_bags(name: str) -> None:
    module, args = BAGS[name]
    compare(Evaluator(from_exported_program(exported(module, *args)))("main", *(one.numpy() for one in args)), module, args)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
IMAGE, VOLUME, GRID = numbers(1, 2, 4, 5), numbers(1, 1, 3, 4, 5), numbers(1, 3, 3, 2) * 0.8
TIES = torch.tensor([[1.0, 3.0, 3.0, -2.0], [0.0, -1.0, float("nan"), 5.0]])
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nearest": (lambda x: (F.interpolate(x, scale_factor=1.7), F.interpolate(x, size=(3, 9), mode="nearest-exact")), (IMAGE,)),
    "smooth": (lambda x: [F.interpolate(x, scale_factor=1.7, mode=mode) for mode in ("bilinear", "bicubic")], (IMAGE,)),
    "smaller": (lambda x: [F.interpolate(x, size=(2, 3), mode=mode, antialias=True) for mode in ("bilinear", "bicubic")], (IMAGE,)),
    "rows": (lambda x: (F.interpolate(x, size=7), F.interpolate(x, 9, mode="linear"), F.interpolate(x, 3, mode="area")), (IMAGE[0],)),
    "volumes": (lambda x: (F.interpolate(x, size=(5, 6, 7)), F.interpolate(x, scale_factor=2, mode="trilinear")), (VOLUME,)),
    "grids": (
        lambda x, g: [
            F.grid_sample(x, g * 1.5, mode, outside, align_corners=mode == "nearest")
            for mode, outside in (("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection"))
        ],
        (IMAGE, GRID),
    ),
    "pixels": (lambda x: (F.pixel_shuffle(F.pixel_unshuffle(x, 2) * 2, 2), F.pixel_unshuffle(x[0], 2)), (IMAGE[..., :4],)),
    "running extremes": (lambda x: (*x.cummax(1), *x.cummin(0), x[:1].logcumsumexp(1)), (TIES,)),
    "buckets": (lambda x: (torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.bucketize(x, TIES[0].sort()[0], right=True)), (X,)),
    "joined": (lambda x, y: [scattered(x, y, how, own) for how in REDUCTIONS for own in (True, False)], (X, Y)),
    "joined integers": (lambda x, y: [scattered(x, y, how, False) for how in ("mean", "amax", "amin")], ((X * 9).long(), (Y * 9).long())),
    "places of adaptive maxima": (lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True), (IMAGE,)),
    "windows of windows": (lambda x: x.unfold(2, 3, 2).unfold(3, 3, 1).amax((-1, -2)), (IMAGE,)),
    "norms of a batch": (lambda x: F.batch_norm(x, None, None, training=True), (IMAGE,)),
    "adaptive maxima": (lambda x: (F.adaptive_max_pool2d(x, (2, 3)), *(F.adaptive_max_pool1d(y, 2) for y in (x[0], x[0, 0]))), (IMAGE,)),
    "a stated divisor": (lambda x: F.avg_pool2d(x, 2, padding=1, divisor_override=3), (IMAGE,)),
    "three factors": (lambda x, y, w: F.bilinear(x, y, w, w[:, 0, 0]), (X, Y, numbers(2, 4, 4))),
    "sums of batches": (lambda x, y: torch.addbmm(x, y, y.mT, beta=0.5, alpha=2), (numbers(3, 3), numbers(2, 3, 4))),
    "slopes that would be random": (lambda x: F.rrelu(x), (X,)),
    "numbers before NaN": (lambda x, y: (torch.fmin(x, y), torch.fmax(y, x), torch.fmax(x.int(), x[:, :1].int())), (X, TIES[1])),
    "joined rows": (lambda x, y: x.index_reduce(0, torch.tensor([2, 0, 2]), y, "mean"), (X, Y)),
}  # fmt: skip


def scattered(x: Any, y: Any, how: str, own: bool) -> Any:
    return x.scatter_reduce(0, torch.tensor([[0, 1, 1, 0], [0, 1, 2, 0]]), y, how, include_self=own)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, args = FUNCTIONS[name]
    mod = from_exported_program(exported(Wrapped(function), *args))
    compare(Evaluator(mod)("main", *(one.numpy() for one in args)), Wrapped(function), args)


def test_a_recurrent_layer_runs() -> None:
    module, args = RECURRENT["lstm with a state"]
    machine = relax.VirtualMachine(relax.build(from_exported_program(exported(module, *args, strict=False)), "llvm"))
    compare(machine["main"](*(one.numpy() for one in args)), module, args)


def test_sizes_that_only_a_run_knows() -> None:
    def function(x: Any) -> Any:
        n = x.shape[0]
        return x.repeat(1, n) * n, F.pad(x, (n % 3, 1), value=2.0), x / n

    mod = from_exported_program(exported(Wrapped(function), X, dynamic_shapes=(({0: torch.export.Dim("n", min=2, max=9)},),)))
    for rows in (3, 4):
        x = numbers(rows, 4)
        compare(Evaluator(mod)("main", x.numpy()), Wrapped(function), (x,))


ORDERED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elements by their numbers": (lambda x: x.put(torch.tensor([1, -3]), torch.tensor([9.0, 8.0])), (X,)),
    "a diagonal": (lambda x: torch.diagonal_scatter(x.T, x[:, 1], -1), (X,)),
    "a diagonal of other axes": (lambda x: torch.diagonal_scatter(x[None] * 1.0, x[:, :1], 0, 2, 0), (X,)),
    "stable": (lambda x: torch.sort(x, dim=0, descending=True, stable=True), (torch.tensor([[1.0, 2], [1, 3], [0, 2]]),)),
    "most often": (lambda x: (x.mode(dim=1)[0], x.mode(dim=0, keepdim=True)[0]), (torch.tensor([[2, 1, 2, 1], [0, 3, 3, 3]]),)),
    "histograms": (lambda x: (torch.histc(x, 5, -1, 1), torch.histc(x, 4)), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_elements_in_order(name: str) -> None:
    function, args = ORDERED[name]
    mod = from_exported_program(exported(Wrapped(function), *args))
    compare(Evaluator(mod)("main", *(arg.numpy() for arg in args)), Wrapped(function), args)


def test_places_of_modes_are_refused() -> None:
    with pytest.raises(DeclarationError, match="take its values alone"):
        from_exported_program(exported(Wrapped(lambda x: x.mode(dim=1)[1]), X))
