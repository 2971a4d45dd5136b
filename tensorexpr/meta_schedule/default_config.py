"""The parts of a search that are taken where nothing else is said."""

from __future__ import annotations

from typing import Any

from ..target import Target
from .builder import Builder, LocalBuilder
from .cost_model import CostModel, XGBModel
from .database import Database, JSONDatabase
from .measure_callback.measure_callback import MeasureCallback
from .mutator.mutator import Mutator
from .postproc.postproc import Postproc
from .runner import LocalRunner, Runner
from .schedule_rule.schedule_rule import ScheduleRule
from .space_generator.space_generator import FROM_TARGET, resolved
from .tune_context import normalize_mod


def builder() -> Builder:
    """Builds in worker processes."""
    return LocalBuilder()


def runner() -> Runner:
    """Runs in a process of its own."""
    return LocalRunner()


def database(work_dir: str) -> Database:
    """JSON files in a folder."""
    return JSONDatabase(work_dir=work_dir)


def callbacks() -> list[MeasureCallback]:
    """Add to the database, remove files, update the cost model."""
    return list(MeasureCallback.create("default"))


def cost_model() -> CostModel | None:
    """Boosted trees."""
    return XGBModel()


def schedule_rules(target: str = "llvm") -> list[ScheduleRule]:
    """The rules for a kind of target."""
    return list(resolved(FROM_TARGET, target, ScheduleRule))


def postproc(target: str = "llvm") -> list[Postproc]:
    """The postprocessors for a kind of target."""
    return list(resolved(FROM_TARGET, target, Postproc))


def mutator_probs(target: str = "llvm") -> dict[Mutator, float]:
    """The mutators for a kind of target."""
    return dict(resolved(FROM_TARGET, target, Mutator))


class Parse:
    """What arguments of searches become, as `tune.Parse` of releases of 2022 has it: themselves, or what stands for None."""

    _mod = staticmethod(normalize_mod)
    _target = staticmethod(Target)

    @staticmethod
    def _given(found: Any, usual: Any) -> Any:
        return usual() if found is None else found

    _builder = staticmethod(lambda given: Parse._given(given, builder))
    _runner = staticmethod(lambda given: Parse._given(given, runner))
    _cost_model = staticmethod(lambda given: Parse._given(given, cost_model))
    _callbacks = staticmethod(lambda given: Parse._given(given, callbacks))
    _database = staticmethod(lambda given, task_name, path: Parse._given(given, lambda: database(path)))
