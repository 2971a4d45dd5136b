"""Binding loops to threads: the dimensions of a grid of threads, and virtual threads."""

from __future__ import annotations

from typing import Any, ClassVar

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ...te.scan_op import ScanOp
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar
from ...tir.insist import insisted
from ...tir.thread import HARDWARE_TAGS, VIRTUAL_TAGS, is_thread_tag, thread_tags
from ..naming import PythonNames
from ..tree import LoopKind, ScheduleTree, StageNode, ThreadAxis
from .base import StageStep, loops_of, stage_of


@dataclass(frozen=True)
class Bind(StageStep):
    """The iterations of a loop are threads.

    for i.outer in 2:            ->     threads i.outer of tag "vthread", extent 2:
        for i.inner in 8: ...               for i.inner in 8: ...

    Virtual threads ("vthread", "cthread") run anywhere: lowering interleaves them, statement by statement, so that the
    example becomes `for i.inner in 8: {body(0, i.inner); body(1, i.inner)}`, each with its own part of what is computed
    inside. Threads of "cthread" share no statement, those of "vthread" share what doesn't depend on the thread. The
    tags blockIdx.* and threadIdx.* are those of a grid; a CPU runs its blocks in parallel and the threads of each in turn. Threads
    of a block may share a reduction: each adds up its terms, then all of them together.

    extent: what the thread axis declares, or None; lowering checks that the loop has it.
    """

    code: ClassVar[str] = "bind"
    axis: int
    tag: str
    name: str
    extent: int | None

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the loop's mark, in place of an earlier one.

        Raises:
            ScheduleError: for an unknown tag, an extent below 1, a reduction on virtual threads, or a loop that is marked already.
        """
        stage = loops_of(tree, self.stage, (self.axis,), "bind")
        self._check(stage)
        thread = ThreadAxis(self.tag, self.name, self.extent)
        mark = replace(stage.mark(self.axis), kind=LoopKind.BIND, thread=thread)
        return tree.with_stage(replace(stage, marks={**stage.marks, self.axis: mark}))

    def _check(self, stage: StageNode) -> None:
        name, mark = stage.axes[self.axis].name, stage.mark(self.axis)
        where = f"In schedule for {stage.name}: can't bind {name!r}"
        if not is_thread_tag(self.tag):
            raise ScheduleError(f"{where} to {self.tag!r}, which is no tag of threads; tags: {thread_tags()}")
        if self.extent is not None and self.extent < 1:
            raise ScheduleError(f"{where} to {self.extent} threads; the extent of a thread axis is at least 1")
        if stage.is_reduction(self.axis) and self.tag in VIRTUAL_TAGS and not insisted():
            spatial = ", ".join(stage.axes[a].name for a in stage.leaf if not stage.is_reduction(a))
            raise ScheduleError(
                f"{where} to {self.tag}: it is a reduction axis, and its threads would race on one accumulator; "
                f"bind one of {spatial or '(no spatial axis is there)'}, or make it spatial with rfactor"
            )
        if mark.kind is not LoopKind.SERIAL:
            said = f"bound to {mark.thread.tag}" if mark.thread else f"marked {mark.kind.value}"
            raise ScheduleError(f"{where} to {self.tag}: it is {said} already; bind a serial axis, such as a part of a split")
        for other in stage.leaf:
            thread = stage.mark(other).thread
            # a grid has one dimension of each tag; virtual threads may nest
            if self.tag in HARDWARE_TAGS and thread is not None and thread.tag == self.tag:
                raise ScheduleError(
                    f"{where} to {self.tag}: {stage.axes[other].name!r} is bound to it already; "
                    f"fuse the two axes, or bind {name!r} to another tag: {thread_tags()}"
                )

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        dom = f"(0, {self.extent}), " if self.extent is not None else ""
        name = f", name={self.name!r}" if self.name != self.tag else ""
        tag = f'"{self.tag}"' if dom else f'tag="{self.tag}"'
        return f"{names.axis(stage, self.axis)}, te.thread_axis({dom}{tag}{name})"


@dataclass(frozen=True)
class EnvThreads(StageStep):
    """The threads of a device run through all steps of a scan: its stages are bound to threads of these tags.

    Nothing is launched anew at each step. Where threads are simulated, one after the other at each step, that is no difference.
    """

    code: ClassVar[str] = "env_threads"
    threads: tuple[str, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree as it is: the trace keeps the step, and a kernel around the steps launches its threads once.

        Raises:
            ScheduleError: if the stage is no scan, or a tag is unknown or given twice.
        """
        stage = stage_of(tree, self.stage, "env_threads")
        where = f"In schedule for {stage.name}: env_threads"
        if not isinstance(stage.op, ScanOp):
            raise ScheduleError(f"{where} is for the steps of a scan; bind the stage's own axes to threads")
        wrong = [tag for tag in self.threads if tag not in HARDWARE_TAGS]
        if wrong or len(set(self.threads)) != len(self.threads):
            raise ScheduleError(f"{where} takes different threads of a grid, not {', '.join(self.threads)}; tags: {thread_tags()}")
        return tree

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        listed = ", ".join(f'te.thread_axis("{tag}")' for tag in self.threads)
        return [f"s[{names.stage(after[self.stage])}].env_threads([{listed}])"]


def checked_thread(stage: StageNode, thread: Any) -> tuple[str, str, int | None]:
    """Tag, name and extent of what a loop of `stage` is to be bound to.

    Raises:
        ScheduleError: for anything but a thread axis of constant extent that counts from 0.
    """
    if not isinstance(thread, IterVar) or thread.iter_type != IterVar.THREAD_INDEX:
        raise stage.refused(f"bind takes a thread axis such as te.thread_axis('vthread') as its second argument, not {thread!r}")
    if thread.dom is None:
        return thread.thread_tag, thread.name, None
    low, extent = as_int(thread.dom.min), as_int(thread.dom.extent)
    if low != 0 or extent is None:
        raise stage.refused(
            f"the thread axis {thread.name!r} has the domain {thread.dom.min} to "
            f"{thread.dom.min + thread.dom.extent}; threads count from 0 to a constant, or leave the domain to the loop"
        )
    return thread.thread_tag, thread.name, extent
