"""The protocol of mutators: how a program is varied."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import Any, ClassVar

from ...schedule.blocks import Trace
from ..utils import Contextual, chosen


class Mutator(Contextual):
    """Varies the decisions of a trace.

    `defaults` has for each kind of target what makes its mutators, with their probabilities.
    """

    defaults: ClassVar[dict[str, Callable[[], dict[Mutator, float]]]] = {}

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with another decision; None if this one has none to vary.

        Args:
            trace: all decisions made.
            rand_state: a seed; users' mutators may leave this argument out.
        """
        raise NotImplementedError

    def clone(self) -> Mutator:
        """A mutator like this one that belongs to no task yet."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """The mutators for a kind of target, with their probabilities.

        Raises:
            TuningError: for a kind without any.
        """
        made: dict[Mutator, float] = chosen(kind, Mutator.defaults, "set of mutators")()
        return made


class PyMutator(Mutator):
    """Base of mutators that users write."""


def mutated(mutator: Mutator, trace: Trace, seed: int) -> Trace | None:
    """What a mutator makes of a trace, whether it takes a seed or not."""
    return mutator.apply(trace, seed) if _takes_seed(type(mutator).apply) else mutator.apply(trace)


@lru_cache(maxsize=256)
def _takes_seed(apply: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(apply).parameters.values())
    return len(parameters) > 2 or any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)


def create(kind: str) -> dict[Any, float]:
    """The mutators for a kind of target, see `Mutator.create`."""
    return dict(Mutator.create(kind))
