"""Gradients of compiled graphs: results are ours, and PyTorch computes a graph once more where its derivatives are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

Run = Callable[..., Sequence[Any]]


@cache
def _function() -> Any:
    import torch

    class Recomputed(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, run: Run, again: Run, *args: Any) -> tuple[Any, ...]:
            ctx.again, ctx.numbers = again, [None if isinstance(one, torch.Tensor) else one for one in args]
            ctx.save_for_backward(*(one if isinstance(one, torch.Tensor) else None for one in args))
            results = tuple(run(*args))
            whole = [one for one in results if isinstance(one, torch.Tensor) and not (one.is_floating_point() or one.is_complex())]
            ctx.mark_non_differentiable(*whole)
            return results

        @staticmethod
        def backward(ctx: Any, *slopes: Any) -> tuple[Any, ...]:
            with torch.enable_grad():
                tensors = [None if one is None else one.detach().requires_grad_(one.requires_grad) for one in ctx.saved_tensors]
                args = [number if one is None else one for one, number in zip(tensors, ctx.numbers, strict=True)]
                results = ctx.again(*args)
            pairs = [
                (one, slope) for one, slope in zip(results, slopes, strict=True)
                if isinstance(one, torch.Tensor) and one.requires_grad and slope is not None
            ]  # fmt: skip
            wanted = [n for n, one in enumerate(tensors) if one is not None and one.requires_grad]
            found = torch.autograd.grad(
                [one for one, _ in pairs], [tensors[n] for n in wanted], [one for _, one in pairs], allow_unused=True
            )
            by_place = dict(zip(wanted, found, strict=True))
            return None, None, *(by_place.get(n) for n in range(len(args)))

    return Recomputed


def with_gradients(run: Run, again: Run, args: Sequence[Any]) -> list[Any]:
    """What `run` returns for tensors and numbers, with derivatives by what `again` does, which is the same in PyTorch."""
    return list(_function().apply(run, again, *args))
