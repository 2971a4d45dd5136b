"""The parts of a search that are taken where nothing else is said."""

from __future__ import annotations

from .builder.builder import Builder
from .cost_model.cost_model import CostModel
from .database.database import Database
from .measure_callback.measure_callback import MeasureCallback
from .mutator.mutator import Mutator
from .postproc.postproc import Postproc
from .runner.runner import Runner
from .schedule_rule.schedule_rule import ScheduleRule
from .space_generator.space_generator import FROM_TARGET, resolved


def builder() -> Builder:
    """Builds in worker processes."""
    return Builder.create("local")


def runner() -> Runner:
    """Runs in a process of its own."""
    return Runner.create("local")


def database(work_dir: str) -> Database:
    """JSON files in a folder."""
    return Database.create("json", work_dir=work_dir)


def callbacks() -> list[MeasureCallback]:
    """Add to the database, remove files, update the cost model."""
    return MeasureCallback.create("default")


def cost_model() -> CostModel | None:
    """Boosted trees."""
    return CostModel.create("xgb")


def schedule_rules(target: str = "llvm") -> list[ScheduleRule]:
    """The rules for a kind of target."""
    return list(resolved(FROM_TARGET, target, ScheduleRule.defaults, "list of schedule rules"))


def postproc(target: str = "llvm") -> list[Postproc]:
    """The postprocessors for a kind of target."""
    return list(resolved(FROM_TARGET, target, Postproc.defaults, "list of postprocessors"))


def mutator_probs(target: str = "llvm") -> dict[Mutator, float]:
    """The mutators for a kind of target."""
    return dict(resolved(FROM_TARGET, target, Mutator.defaults, "set of mutators"))
