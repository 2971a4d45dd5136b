"""The protocol of space generators: the design spaces of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...target import Target
from ...target.chips import capability
from ...tir.function import IRModule
from ..mutator.mutator import Mutator
from ..postproc.postproc import Postproc
from ..schedule_rule.schedule_rule import ScheduleRule
from ..search_strategy.search_strategy import PopulationSpace
from ..tune_context import Contextual, TuneContext

FROM_TARGET = "from-target"
# Lists for CPUs with instructions that compute tiles: the features that each needs one of, the best first.
_CPU_LISTS = {"vnni": ("avx512vnni", "avxvnni"), "avx512": ("avx512bw",), "dotprod": ("dotprod",), "neon": ("neon",)}

# The capability from which on fragments of floats and of bytes are multiplied.
_TENSOR_CORES = 75


def kind_of_rules(target: Target) -> str:
    """The name of the lists of rules, postprocessors and mutators for a target: "vnni", "neon" and the like where its CPU has that,
    "cuda-tensorcore" for NVIDIA's GPUs from sm_75 on, "cuda" for all others, else the target's kind.
    """
    if target.kind.name == "llvm":
        features = target.resolved().features
        return next((kind for kind, needed in _CPU_LISTS.items() if features.intersection(needed)), "llvm")
    if target.kind.name == "cuda" and capability(str(target.attrs.get("arch", ""))) >= _TENSOR_CORES:
        return "cuda-tensorcore"
    return "cuda" if "gpu" in target.keys else target.kind.name


class SpaceGenerator(Contextual, what="space generator", default="post-order-apply"):
    """Makes the design spaces of a program: schedules with open decisions.

    Args:
        sch_rules: rules, the name of a list of them, "from-target", or None for none.
        postprocs: likewise, what finishes programs.
        mutator_probs: likewise, what varies them.
    """

    SpaceGeneratorType: ClassVar[Any] = "SpaceGenerator | str"
    ScheduleFnType: ClassVar[Any] = Callable[[Schedule], Any]
    sch_rules: Any = FROM_TARGET
    postprocs: Any = FROM_TARGET
    mutator_probs: Any = FROM_TARGET

    def __init__(self, sch_rules: Any = FROM_TARGET, postprocs: Any = FROM_TARGET, mutator_probs: Any = FROM_TARGET) -> None:
        self.sch_rules = sch_rules
        self.postprocs = postprocs
        self.mutator_probs = mutator_probs

    def adopt(self, context: TuneContext) -> None:
        """Work for a task: choose the lists for its target, and give it to all in them and to the generator itself."""
        kind = kind_of_rules(context.target)
        self.sch_rules = resolved(self.sch_rules, kind, ScheduleRule)
        self.postprocs = resolved(self.postprocs, kind, Postproc)
        self.mutator_probs = resolved(self.mutator_probs, kind, Mutator)
        parts: list[Contextual] = [*(self.sch_rules or ()), *(self.postprocs or ()), *(self.mutator_probs or ())]
        for part in parts:
            if not hasattr(part, "_initialize_with_tune_context"):
                raise TuningError(f"a space is made of objects such as ms.schedule_rule.AutoInline(), not of {part!r}")
            part._initialize_with_tune_context(context)
        self._initialize_with_tune_context(context)

    @property
    def space_name(self) -> str:
        """What records call its design spaces where there are those of other generators too."""
        return type(self).__name__

    def generate_design_space(self, mod: IRModule) -> Sequence[Schedule | PopulationSpace]:
        """The design spaces of a program."""
        raise NotImplementedError

    def clone(self) -> SpaceGenerator:
        """A generator like this one, with rules, postprocessors and mutators of its own."""
        other = copy(self)
        other.sch_rules, other.postprocs = cloned(self.sch_rules), cloned(self.postprocs)
        probs = self.mutator_probs
        other.mutator_probs = {mutator.clone(): p for mutator, p in probs.items()} if isinstance(probs, Mapping) else probs
        return other


class PySpaceGenerator(SpaceGenerator):
    """Base of space generators that users write."""


def resolved(given: Any, kind: str, of: type[Contextual]) -> Any:
    """The list or mapping that is meant: given, by name, or for a kind of target.

    Raises:
        TuningError: for an unknown name.
    """
    if isinstance(given, str):
        found = kind if given == FROM_TARGET else given
        # a target that no list is made for has none; a name that is given must be known
        return of.create(found) if given != FROM_TARGET or found in of.kinds else []
    if given is None or isinstance(given, Mapping):
        return given
    if not isinstance(given, Iterable):
        raise TuningError(f'a {of.what} is given as a list, by name, or as "{FROM_TARGET}", not as {given!r}')
    return list(given)


def cloned(parts: Any) -> Any:
    """A list with clones of all in it; anything else as it is."""
    return [part.clone() for part in parts] if isinstance(parts, list) else parts


create = SpaceGenerator.create
