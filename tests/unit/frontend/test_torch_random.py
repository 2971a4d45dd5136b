"""Random numbers of PyTorch's programs: laws, seeds, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr.errors import DeclarationError
from tensorexpr.frontend.torch import from_exported_program, relax_dynamo
from tensorexpr.relax.evaluator import Evaluator

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
from .test_torch import F, Wrapped, arrays_of, exported, numbers  # noqa: E402  # which asks for PyTorch, too

ONES = torch.ones(6, 20)
# A program, the mean of its numbers, and their deviation.
LAWS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "uniform": (lambda x: (x * torch.rand(6, 20), torch.empty_like(x).uniform_(-1, 2) / 3 + 1 / 3), 0.5, 0.289),
    "normal": (lambda x: (torch.randn_like(x), torch.normal(x - 1, 1.0)), 0, 1),
    "integers": (lambda x: (x * torch.randint(-2, 3, (6, 20)), torch.randint_like(x, 0, 5) - 2), 0, 2**0.5),
    "dropout": (lambda x: (F.dropout(x, 0.5), F.dropout(x, 0.5)), 1, 1),
    "of channels": (lambda x: F.dropout2d(x.reshape(6, 20, 1, 1).expand(6, 20, 2, 2), 0.5), 1, 1),
    "of selu": (lambda x: F.alpha_dropout(x * 0, 0.5, True), 0, 0.78),
    "bernoulli": (lambda x: torch.bernoulli(x * 0.3), 0.3, 0.458),
    "exponential": (lambda x: torch.empty_like(x).exponential_(2.0) + 0, 0.5, 0.5),
    "classes": (lambda x: torch.multinomial(x[:, :3], 20, replacement=True) * 1.0, 1, (2 / 3) ** 0.5),
    "slopes": (lambda x: F.rrelu(-x, 0.1, 0.3, training=True), -0.2, 0.2 / 12**0.5),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws(name: str) -> None:
    function, mean, deviation = LAWS[name]
    program = exported(Wrapped(function), ONES)
    run = Evaluator(from_exported_program(program))
    first, other = (arrays_of(run("main", ONES.numpy(), np.array(seed, "int64"))) for seed in (3, 4))
    with torch.no_grad():
        wanted = arrays_of(Wrapped(function)(ONES))
    for one, changed, like in zip(first, other, wanted, strict=True):
        assert one.shape == like.shape and one.dtype == like.dtype
        assert (one != changed).any()
        near = 5 * max(deviation, 0.1) / 120**0.5
        np.testing.assert_allclose([one.mean(), one.std()], [mean, deviation], atol=near)
    if len(first) > 1:  # each draw has numbers of its own
        assert (first[0] - first[0].min() != first[1] - first[1].min()).any()


def test_draws_without_replacement() -> None:
    mod = from_exported_program(exported(Wrapped(lambda x: (torch.multinomial(x, 4), x[0, torch.randperm(6)])), numbers(3, 6).abs()))
    rows, turned = arrays_of(Evaluator(mod)("main", numbers(3, 6).abs().numpy(), np.array(1, "int64")))
    assert all(len(set(row)) == 4 for row in rows.tolist())
    np.testing.assert_array_equal(np.sort(turned), np.sort(numbers(3, 6).abs().numpy()[0]))


def test_layers_that_drop() -> None:
    """In training they do, in evaluation there is no seed."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.5)
    x = numbers(2, 3, 8)
    with torch.no_grad():
        training = from_exported_program(torch.export.export(layer.train(), (x,)))
    run = Evaluator(training)
    first, other = (arrays_of(run("main", x.numpy(), np.array(seed, "int64")))[0] for seed in (1, 2))
    assert first.shape == other.shape and (first != other).any()
    main: Any = from_exported_program(exported(layer, x))["main"]
    assert len(main.params) == 1


def test_seeds_of_compiled_functions() -> None:
    compiled = torch.compile(Wrapped(lambda x: (F.dropout(x, 0.5), torch.fft.fft(x))), backend=relax_dynamo())
    with torch.no_grad():
        torch.manual_seed(5)
        first, second = compiled(ONES), compiled(ONES)
        torch.manual_seed(5)
        again = compiled(ONES)
    assert torch.equal(first[0], again[0]) and not torch.equal(first[0], second[0])
    torch.testing.assert_close(first[1], torch.fft.fft(ONES), rtol=1e-4, atol=1e-4)


def test_what_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"without a converter: aten\.poisson\.default"):
        from_exported_program(exported(Wrapped(lambda x: torch.poisson(x)), ONES))
