"""The protocol of builders: programs to files that a runner can measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...dataclass import dataclass
from ...target import Target
from ...tir.function import IRModule
from ..utils import Extensible


@dataclass(frozen=True, eq=False)
class BuilderInput:
    """A program to build.

    Args:
        mod: the scheduled module.
        target: what it is for.
        params: constant arguments, for builders of users.
    """

    mod: IRModule
    target: Target
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class BuilderResult:
    """What became of it: the path of a file, or why there is none."""

    artifact_path: str | None
    error_msg: str | None = None


class Builder(Extensible, what="builder", default="local"):
    """Builds programs."""

    BuilderType: ClassVar[Any] = "Builder | str"

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Build programs; a result for each, in their order."""
        raise NotImplementedError

    def prepare(self, target: Target) -> None:
        """Get ready to build for a target. Called before a search; nothing to do here."""

    def close(self) -> None:
        """Release what is held. Called after a search; nothing to do here."""


class PyBuilder(Builder):
    """Base of builders that users write."""


create = Builder.create
