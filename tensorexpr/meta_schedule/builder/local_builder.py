"""`LocalBuilder`: programs to object code, in worker processes of this machine."""

from __future__ import annotations

import atexit
import traceback
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from typing import Any

from ...dataclass import dataclass
from ...errors import TuningError
from ...fleet.plugs import FleetBuilder
from ...lower.context import PassContext
from ...lower.plain_context import context_to_json
from ...runtime.build import build
from ...runtime.code import CompiledCode
from ...runtime.entries import entry_name
from ...runtime.module import Module
from ...runtime.registry import get_global_func
from ...schedule.trace import Trace
from ...target import Target
from ...tir.function import IRModule
from ...tir.serialize.module_graph import module_to_graph
from ...tune.measure.builder import Builder as BuildingHere
from ...tune.measure.builder import Failure
from ...tune.measure.compiled import CompiledCandidate
from ...tune.measure.folder import SharedFolder
from ...tune.measure.object_code import arguments_of
from ...tune.measure.places import Building, OpenBuilding
from ...tune.measure.results import MeasureOptions, Program
from ...tune.measure.spills import spills_in_object
from ..utils import TIMED_OUT, thread_count, within
from .artifact import Artifact, write_artifact
from .builder import BuilderInput, BuilderResult, PyBuilder

PLUG = "tensorexpr.tune.measure.module_compiling:make_compiler"
# As programs are built in the end: LLVM's passes matter where loops are left to it.
OPT_LEVEL = 3
Build = Callable[..., Any]


@dataclass(frozen=True)
class _Text(Program):
    """A program as its text, for the workers."""

    text: str = ""

    @cached_property
    def steps(self) -> list[Any]:
        """The text."""
        return [self.text]


class LocalBuilder(PyBuilder, kind="local"):
    """Builds in worker processes, each program within a limit of time; a program that crashes a worker harms no other.

    Functions of the caller run in this process, one program after another: f_build, f_export, initializer. One that takes longer than
    the limit counts as failed, but nothing ends it.

    Args:
        max_workers: processes; as many as cores if None.
        timeout_sec: limit of each program.
        f_build: takes (module, target, params) and gives a built module; or the name of a registered function. None builds as
            `tensorexpr.build` does.
        f_export: takes a built module and gives the path of a file; None writes one that LocalRunner measures.
        initializer: called at once; it may register functions.
    """

    building: OpenBuilding = staticmethod(BuildingHere)

    def __init__(
        self,
        *,
        max_workers: int | None = None,
        timeout_sec: float = 30.0,
        f_build: str | Build | None = None,
        f_export: str | Build | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self.max_workers = thread_count("logical") if max_workers is None else max_workers
        self.timeout_sec = timeout_sec
        if initializer is not None:
            initializer()  # it may register what the names stand for
        self.f_build = get_global_func(f_build) if isinstance(f_build, str) else f_build
        self.f_export = get_global_func(f_export) if isinstance(f_export, str) else f_export
        self._folder: SharedFolder | None = None
        self._workers: dict[str, Building] = {}
        self._numbers = count()

    @staticmethod
    def of(given: FleetBuilder) -> LocalBuilder:
        """A fleet's builder as one of this front door.

        Raises:
            TuningError: for one with a compiler of its own, which compiles traces of stages.
        """
        if given.build_func != "default":
            raise TuningError("fleet.builder(build_func=...) compiles programs of auto_scheduler; leave it out for meta_schedule")
        made = LocalBuilder() if given.timeout is None else LocalBuilder(timeout_sec=given.timeout)
        made.building = given.open
        return made

    def prepare(self, target: Target) -> None:
        """Start the workers for a target, without waiting for them."""
        if self.f_build is None:
            self._workers_for(target).start()

    def close(self) -> None:
        """End the workers and remove the files. A later build starts new ones."""
        for workers in self._workers.values():
            workers.close()
        self._workers = {}
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Build programs; a result for each, in their order.

        Raises:
            TuningError: if no worker can be started.
        """
        if self.f_build is not None or self.f_export is not None:
            return [self._here(given) for given in build_inputs]
        results: dict[int, BuilderResult] = {}
        # workers compile for one target, as LLVM is warmed up for it
        by_target: dict[str, list[int]] = {}
        for place, given in enumerate(build_inputs):
            by_target.setdefault(str(given.target.resolved()), []).append(place)
        for places in by_target.values():
            results.update(self._in_workers(places, build_inputs))
        return [results[place] for place in range(len(build_inputs))]

    def _in_workers(self, places: Sequence[int], inputs: Sequence[BuilderInput]) -> dict[int, BuilderResult]:
        """The results of programs for one target, by place."""
        target, results, texts = inputs[places[0]].target, dict[int, BuilderResult](), list[_Text]()
        for place in places:
            try:
                texts.append(_Text(place, Trace(), text=module_to_graph(inputs[place].mod)))
            # one program that has no text doesn't stop the others of its round
            except Exception as error:
                results[place] = BuilderResult(None, f"the program can't be sent to a worker: {error}")
        for position, done in self._workers_for(target).build(texts, OPT_LEVEL):
            given = texts[position]
            results[given.number] = self._written(done.made, given.text, target)
        return results

    def _written(self, made: CompiledCandidate | Failure, text: str, target: Target) -> BuilderResult:
        if isinstance(made, Failure):
            return BuilderResult(None, f"{made.error_no.error_type}: {made.message}\n{made.detail}".strip())
        return BuilderResult(write_artifact(self._the_folder().path, next(self._numbers), Artifact(made, text, str(target.resolved()))))

    def _the_folder(self) -> SharedFolder:
        if self._folder is None:
            self._folder = SharedFolder()
            atexit.register(self._folder.close)  # not when the builder goes: what it built may be run later
        return self._folder

    def _workers_for(self, target: Target) -> Building:
        """The workers for a target and the current PassContext's options."""
        options = context_to_json(PassContext.current())
        key = f"{target.resolved()} {options}"
        if key not in self._workers:
            limits = MeasureOptions(n_parallel=self.max_workers, build_timeout_s=self.timeout_sec, compiler=PLUG)
            task = {"target": str(target.resolved()), "pass_options": options}
            self._workers[key] = self.building(task, limits, None)
            weakref.finalize(self, self._workers[key].close)
        return self._workers[key]

    def _here(self, given: BuilderInput) -> BuilderResult:
        """Build a program with the caller's functions."""
        try:
            return within(self.timeout_sec, self._built_by_caller, given)
        except TimeoutError:
            return BuilderResult(None, f"LocalBuilder: {TIMED_OUT.format(self.timeout_sec)}")
        except Exception:
            return BuilderResult(None, f"LocalBuilder: An exception occurred\n{traceback.format_exc()}")

    def _built_by_caller(self, given: BuilderInput) -> BuilderResult:
        made = (self.f_build or _default_build)(given.mod, given.target, given.params)
        if self.f_export is not None:
            return BuilderResult(str(self.f_export(made)))
        return self._written(compiled_of(made), module_to_graph(given.mod), given.target)


def _default_build(mod: IRModule, target: Target, params: Any) -> Module:
    return build(mod, target=target)


def compiled_of(module: Any) -> CompiledCandidate:
    """What a runner needs of a built module.

    Raises:
        TuningError: if it is no module that `build` made, with one function.
    """
    code = getattr(module, "_code", None)
    if not isinstance(module, Module) or not isinstance(code, CompiledCode) or len(code.signatures) != 1:
        raise TuningError(f"f_build gives a module that build made, with one function, not {module!r}; with another one pass f_export too")
    name, signature = next(iter(code.signatures.items()))
    spills = spills_in_object(code.data)
    return CompiledCandidate(code.data, entry_name(name), arguments_of(signature), tuple(signature.errors), dict(code.timings), spills, 0)
