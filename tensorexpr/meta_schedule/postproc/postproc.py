"""The protocol of postprocessors: what is done with every program before it is measured."""

from __future__ import annotations

from ...schedule.blocks import Schedule
from ..tune_context import Contextual


class Postproc(Contextual, what="list of postprocessors"):
    """Finishes a program whose decisions are made, or rejects it.

    `defaults` has for each kind of target what makes its postprocessors.
    """

    def apply(self, sch: Schedule) -> bool:
        """Finish the program in place; False rejects it."""
        raise NotImplementedError


class PyPostproc(Postproc):
    """Base of postprocessors that users write."""


create = Postproc.create
