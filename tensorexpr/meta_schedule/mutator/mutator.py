"""The protocol of mutators: how a program is varied."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...schedule.blocks import Trace
from ..tune_context import Contextual


class Mutator(Contextual, what="set of mutators"):
    """Varies the decisions of a trace.

    `defaults` has for each kind of target what makes its mutators, with their probabilities.
    """

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """A trace with another decision; None if this one has none to vary.

        Args:
            trace: all decisions made.
            rand_state: a seed; users' mutators may leave this argument out.
        """
        raise NotImplementedError


class PyMutator(Mutator):
    """Base of mutators that users write."""


def mutated(mutator: Mutator, trace: Trace, seed: int) -> Trace | None:
    """What a mutator makes of a trace, whether it takes a seed or not."""
    return mutator.apply(trace, seed) if _takes_seed(type(mutator).apply) else mutator.apply(trace)


@lru_cache(maxsize=256)
def _takes_seed(apply: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(apply).parameters.values())
    return len(parameters) > 2 or any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)


create = Mutator.create
