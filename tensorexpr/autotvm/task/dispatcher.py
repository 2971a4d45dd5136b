"""Which configuration a template runs with: the innermost context that knows its workload says so."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import IO, Any, ClassVar, TypeAlias

from ...errors import TuningError
from ...target import Target
from ...tune.contexts import inner_to_outer
from ..env import GLOBAL_SCOPE
from .space import ConfigSpace, FallbackConfigEntity

logger = logging.getLogger(__name__)
Workload: TypeAlias = "tuple[Any, ...] | None"
Records: TypeAlias = "str | bytes | Path | IO[str] | Iterable[Any] | None"


class DispatchContext:
    """Says which configuration a workload gets on a target. Used by `with`, or set for good by `DispatchContext.current`."""

    current: ClassVar[DispatchContext]
    # What was said once isn't said again.
    warning_messages: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        self._made_within: list[DispatchContext] = [DispatchContext.current] if hasattr(DispatchContext, "current") else []
        self._entered_within: list[DispatchContext] = []

    @property
    def _around(self) -> list[DispatchContext]:
        """What it was entered within; for one that is set for good, what it was made within."""
        return self._entered_within or self._made_within

    def query(self, target: Any, workload: Workload) -> Any:
        """The configuration of a workload.

        Args:
            target: what code is made for.
            workload: the name of a task and its arguments; None outside of templates.
        """
        answers = (context._query_inside(target, workload) for context in inner_to_outer(self, lambda one: one._around))
        # the outermost context knows every workload
        return next(found for found in answers if found is not None)

    def recorded(self, target: Any, workload: Workload) -> Any:
        """As `query`, without a configuration where no context has one of the workload: None. Builds of graphs ask, kernel by kernel."""
        answers = (context._recorded_inside(target, workload) for context in inner_to_outer(self, lambda one: one._around))
        return next((found for found in answers if found is not None), None)

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Let a workload have a configuration from now on.

        Raises:
            TuningError: if this context can't.
        """
        raise TuningError(f"{type(self).__name__} takes no configurations of single workloads")

    def _query_inside(self, target: Any, workload: Workload) -> ConfigSpace | None:
        raise NotImplementedError

    def _recorded_inside(self, target: Any, workload: Workload) -> ConfigSpace | None:
        return self._query_inside(target, workload)

    def __enter__(self) -> DispatchContext:
        self._entered_within.append(DispatchContext.current)
        DispatchContext.current = self
        return self

    def __exit__(self, *_: object) -> None:
        DispatchContext.current = self._entered_within.pop()


class ApplyConfig(DispatchContext):
    """Every workload gets one configuration.

    Args:
        config: it.
    """

    def __init__(self, config: ConfigSpace) -> None:
        super().__init__()
        self._config = config
        self.workload: Workload = None

    def _query_inside(self, target: Any, workload: Workload) -> ConfigSpace:
        self.workload = workload
        return self._config

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Let all workloads have another configuration."""
        self.workload, self._config = workload, cfg


class ApplyFixedConfig(DispatchContext):
    """The tasks of a list get their first configurations, for the operators of which a schedule is named.

    Args:
        tasks: the tasks.
        schedule_names: of operators, such as "conv2d_NCHWc.x86".
    """

    def __init__(self, tasks: Sequence[Any], schedule_names: str | Sequence[str]) -> None:
        super().__init__()
        self._schedule_names = [schedule_names] if isinstance(schedule_names, str) else list(schedule_names)
        self._tasks = list(tasks)
        self.workload: Workload = None

    def _query_inside(self, target: Any, workload: Workload) -> ConfigSpace:
        """The first configuration of the task with this workload; one that says it isn't valid for other operators.

        Raises:
            TuningError: without a workload or a target.
        """
        if not workload or target is None:
            raise TuningError("apply_fixed_config needs a target and the workload of an operator; use it within `with target:`")
        task = next((task for task in self._tasks if task.name == workload[0]), None)
        found: ConfigSpace = FallbackConfigEntity() if task is None else task.config_space.get(0)
        if not any(name in workload[0] for name in self._schedule_names):
            found.cost = math.inf  # whoever chooses among implementations leaves it
        else:
            found.cost = 1e-9
        return found

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Note the workload."""
        self.workload = workload


class ApplyHistoryBest(DispatchContext):
    """Each workload gets the fastest configuration that a log has for it.

    A log's records serve all targets that share a label (key) with theirs, and first those of the same model.

    Args:
        records: the path of a log, an open one, pairs of inputs and results, or a list of any of these; None for none yet.

    Raises:
        RecordError: if a log can't be read. Its lines that are no records are skipped with a warning.
    """

    def __init__(self, records: Records) -> None:
        super().__init__()
        self.best_by_targetkey: dict[tuple[str, tuple[Any, ...]], tuple[Any, Any]] = {}
        self.best_by_model: dict[tuple[str, tuple[Any, ...]], tuple[Any, Any]] = {}
        self._best_user_defined: dict[tuple[str, tuple[Any, ...]], ConfigSpace] = {}
        if records is not None:
            self.load(records)

    def __len__(self) -> int:
        return len({workload for _, workload in self.best_by_targetkey})

    def __bool__(self) -> bool:
        return True

    def load(self, records: Records) -> None:
        """Take up the records of a log too; see the class."""
        counter = 0
        for made, result in pairs_of(records):
            counter += 1
            if result.error_no != 0:
                continue
            workload = made.task.workload
            keys = [(label, workload) for label in made.target.keys]
            # targets that name no model would share an entry, whatever they are
            model = (made.target.model, workload)
            for place, table in [(key, self.best_by_targetkey) for key in keys] + [(model, self.best_by_model)] * (model[0] != "unknown"):
                if place not in table or beats(result, table[place][1]):
                    table[place] = (made, result)
        logger.debug("loaded %d records", counter)

    def _query_inside(self, target: Any, workload: Workload) -> ConfigSpace | None:
        """The best known configuration; None if there is none.

        Raises:
            TuningError: without a target.
        """
        if target is None:
            raise TuningError("a log's configurations are for targets; use the template within `with target:`")
        if workload is None:
            return None
        for table, names in ((self.best_by_model, [target.model]), (self.best_by_targetkey, target.keys)):
            for name in names:
                own = self._best_user_defined.get((name, workload))
                if own is not None:
                    return own
                if (name, workload) in table:
                    found: ConfigSpace = table[(name, workload)][0].config
                    return found
        return None

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Let a workload have a configuration, whatever the log says."""
        cfg.cost = 0
        names = [target.model] if target.model != "unknown" else []
        for name in [*names, *target.keys]:
            self._best_user_defined[(name, workload or ())] = cfg


def beats(result: Any, other: Any) -> bool:
    """Whether a result is better than another: the mean of its costs is less. What was timed again, in turn with others, comes first."""
    again, before = (bool(getattr(one, "timed_again", False)) for one in (result, other))
    if again != before:
        return again
    return fmean(result.costs) < fmean(other.costs)


class FallbackContext(DispatchContext):
    """The outermost context: each workload gets a `FallbackConfigEntity`, which is said once."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[tuple[str, Any], ConfigSpace] = {}

    def _query_inside(self, target: Any, workload: Workload) -> ConfigSpace:
        key = (str(target), workload)
        if key not in self.memory:
            if not GLOBAL_SCOPE.silent and workload is not None:
                message = (
                    f"Cannot find config for target={target}, workload={workload}. A fallback configuration is used, which may bring great "
                    "performance regression."
                )
                if message not in self.warning_messages:
                    self.warning_messages.add(message)
                    logger.warning(message)
            self.memory[key] = FallbackConfigEntity()
            self.memory[key].cost = 0
        return self.memory[key]

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Let a workload have a configuration from now on."""
        self.memory[(str(target), workload)] = cfg

    def _recorded_inside(self, target: Any, workload: Workload) -> ConfigSpace | None:
        return None

    def clear_cache(self, target: Any, workload: Workload) -> None:
        """Forget the configuration of a workload."""
        self.memory.pop((str(target), workload), None)


class ApplyGraphBest(DispatchContext):
    """The nodes of a graph get the configurations of a list, one after the other, each time one is asked for.

    Args:
        records: as for `ApplyHistoryBest`, in the order of the nodes.
    """

    def __init__(self, records: Records) -> None:
        super().__init__()
        self._records = list(pairs_of(records))
        self._counter = 0
        self._global_cfg_dict: dict[tuple[str, Any], ConfigSpace] = {}

    def _query_inside(self, target: Any, workload: Workload) -> ConfigSpace:
        if self._counter < len(self._records):
            made = self._records[self._counter][0]
            self._counter += 1
            self.update(target, workload, made.config)
            found: ConfigSpace = made.config
            return found
        key = (str(target), workload)
        if key not in self._global_cfg_dict:
            self._global_cfg_dict[key] = FallbackConfigEntity()
        return self._global_cfg_dict[key]

    def _recorded_inside(self, target: Any, workload: Workload) -> ConfigSpace | None:
        """That of the first node of this workload: kernels are asked for in an order of their own, each once."""
        return next((made.config for made, _ in self._records if made.task.workload == workload), None)

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Let a workload have a configuration when the list is used up."""
        self._global_cfg_dict[(str(target), workload)] = cfg


def pairs_of(records: Records) -> Iterable[tuple[Any, Any]]:
    """The pairs of inputs and results of a log, an open one, a list of pairs, or a list of logs."""
    # logs need `beats` of this module
    from ..logs import load_from_buffer, load_from_file

    if records is None:
        return
    given: Any = records
    if isinstance(given, (str, bytes)) or hasattr(given, "__fspath__"):
        yield from load_from_file(given)
    elif hasattr(given, "read"):
        yield from load_from_buffer(given)
    else:
        for item in given:
            # a pair of texts is two logs
            if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[0], (str, bytes)):
                yield item
            else:
                yield from pairs_of(item)


def clear_fallback_cache(target: Any, workload: Workload) -> None:
    """Forget the fallback configuration of a workload, which a template may have changed."""
    contexts = inner_to_outer(DispatchContext.current, lambda one: one._around)
    fallback = next((context for context in contexts if isinstance(context, FallbackContext)), None)
    if fallback is not None:
        fallback.clear_cache(target, workload)


def current_query(workload: Workload) -> Any:
    """The configuration of a workload on the current target."""
    return DispatchContext.current.query(Target.current(), workload)


DispatchContext.current = FallbackContext()
