"""The protocol of postprocessors: what is done with every program before it is measured."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar

from ...schedule.blocks import Schedule
from ..utils import Contextual, chosen


class Postproc(Contextual):
    """Finishes a program whose decisions are made, or rejects it.

    `defaults` has for each kind of target what makes its postprocessors.
    """

    defaults: ClassVar[dict[str, Callable[[], list[Postproc]]]] = {}

    def apply(self, sch: Schedule) -> bool:
        """Finish the program in place; False rejects it."""
        raise NotImplementedError

    def clone(self) -> Postproc:
        """A postprocessor like this one that belongs to no task yet."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The postprocessors for a kind of target, in order.

        Raises:
            TuningError: for a kind without any.
        """
        made: list[Postproc] = chosen(kind, Postproc.defaults, "list of postprocessors")()
        return made


class PyPostproc(Postproc):
    """Base of postprocessors that users write."""


def create(kind: str) -> list[Any]:
    """The postprocessors for a kind of target, see `Postproc.create`."""
    return list(Postproc.create(kind))
