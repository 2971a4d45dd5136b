"""The step that puts an intrinsic in place of loops."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ...errors import DeclarationError
from ...te.tensor_intrin import TensorIntrin
from ..naming import PythonNames
from ..tensorize_legality import check_tensorized
from ..tree import LoopKind, ScheduleTree, StageNode
from .base import StageStep, loops_of


@dataclass(frozen=True)
class Tensorize(StageStep):
    """A loop and all loops inside it become one use of a tensor intrinsic, which computes just what they compute.

    for i.o in n // 16:                        ->     for i.o in n // 16:
        for i.i in 16:                                    intrinsic(C[i.o*16 : i.o*16+16], A[...], B[...])
            for k in 4: C[...] += A[...] * B[...]

    The intrinsic is named, and `digest` is that of its content (see `te.decl_tensor_intrin`). Whether it computes the
    same is proved when the schedule is lowered, where all extents are known. A second intrinsic for an axis takes the
    place of the first.
    """

    code: ClassVar[str] = "tensorize"
    axis: int
    intrin: str
    digest: str

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the loop's mark.

        Raises:
            ScheduleError: if the intrinsic is unknown, or the loops compute anything else than it does.
        """
        stage = loops_of(tree, self.stage, (self.axis,), "tensorize")
        try:
            TensorIntrin.get(self.intrin, self.digest)
        except DeclarationError as error:
            raise stage.refused(f"tensorize: {error}") from None
        self._check(stage)
        mark = replace(stage.mark(self.axis), kind=LoopKind.TENSORIZE, intrin=(self.intrin, self.digest))
        marked = replace(stage, marks={**stage.marks, self.axis: mark})
        after = tree.with_stage(marked)
        check_tensorized(after, marked)
        return after

    def _check(self, stage: StageNode) -> None:
        for axis in stage.leaf:
            name, mark = stage.axes[axis].name, stage.mark(axis)
            if mark.intrin is not None and axis != self.axis:
                raise stage.refused(
                    f"{name!r} is tensorized with {mark.intrin[0]} already; a stage has one intrinsic, "
                    "so compute another part of the work in a stage of its own (cache_write, rfactor)"
                )
        mark = stage.mark(self.axis)
        if mark.kind not in (LoopKind.SERIAL, LoopKind.TENSORIZE):
            raise stage.refused(
                f"can't tensorize {stage.axes[self.axis].name!r}: it is marked {mark.kind.value} already; "
                "tensorize a serial axis, such as the inner part of a split"
            )

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        return f"{names.axis(stage, self.axis)}, te.TensorIntrin.get({self.intrin!r}, {self.digest!r})"
