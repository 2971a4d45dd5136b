"""The primitives of a stage that change its loops, and how they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr, Var
from ..tir.rewriting import walk
from .axis_expression import encode
from .stage_axes import StageAxes
from .steps import (
    Annotate,
    BalancedSplit,
    Bind,
    BindLoops,
    EnvThreads,
    ExactSplit,
    Fuse,
    Pragma,
    Prefetch,
    Reorder,
    Sampled,
    Split,
    Tensorize,
)
from .steps.loops import checked_pragma
from .steps.prefetch import checked_offset
from .steps.threads import checked_thread
from .tree import StageNode


class LoopPrimitives(StageAxes):
    """Splitting, fusing, reordering and marking loops."""

    def split(
        self, parent: IterVar, factor: Any = None, nparts: Any = None, disable_predication: bool = False, balanced: bool = False
    ) -> tuple[IterVar, IterVar]:
        """Split an axis into (outer, inner); exactly one of `factor` (extent of inner) and `nparts` (of outer) is given.

        for i in n:  ->  for i.outer in ceil(n / factor): for i.inner in factor: if i.outer*factor + i.inner < n: ...

        `disable_predication` promises that the parts make up the extent, and holds you to it. See `steps.ExactSplit`.
        `balanced` makes tiles whose sizes differ by at most one, none above `factor`. See `steps.BalancedSplit`.

        Raises:
            ScheduleError: for an axis of another stage, a factor below 1 or both or none of factor and nparts.
        """
        node = self._node
        if (factor is None) == (nparts is None):
            raise node.refused("split takes exactly one of factor and nparts")
        if disable_predication and balanced:
            raise node.refused("a balanced split guards its smaller tiles; leave disable_predication out")
        axis = self._axis(parent, "split")
        count = len(node.axes)
        value = self._factor(parent, factor if factor is not None else nparts, balanced)
        kind = BalancedSplit if balanced else ExactSplit if disable_predication else Split
        self._schedule.apply_step(kind(self.id, axis, (None, value) if factor is not None else (value, None)))
        outer, inner = self._new_axes(count)
        return outer, inner

    def _factor(self, parent: IterVar, factor: Any, balanced: bool) -> Any:
        """A factor as the step has it: a number, a sample, or an expression over sizes, which the schedule knows from now on."""
        if isinstance(factor, Sampled):
            return (factor.sample, 0)
        if isinstance(factor, PrimExpr) and as_int(factor) is None and not balanced and parse_dtype(factor.dtype).is_int:
            used = {node: node.name for node in walk(factor) if isinstance(node, Var)}
            sizes = self._schedule.tree.sizes()
            known = {**sizes, **{name: var for var, name in used.items()}}
            # A name stands for one variable: of the factor's own ones, and of the program's.
            if any(known[name] is not var or sizes.get(name, var) is not var for var, name in used.items()):
                raise self._node.refused(
                    f"split of {parent.name!r} by {factor}: the program has another size of that name; "
                    "give its variables names of their own"
                )
            self._schedule.know(known)
            return encode(factor, used)
        return _checked_factor(self._node, parent, factor)

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two axes and put both outer parts outside both inner ones; returns x.outer, y.outer, x.inner, y.inner."""
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *args: IterVar | Sequence[IterVar]) -> IterVar:
        """Make adjacent axes, outermost first, one axis; of a single axis returns it, of none makes one of extent 1, outermost."""
        listed = [axis for arg in args for axis in (arg if isinstance(arg, (list, tuple)) else [arg])]
        axes = tuple(self._axis(axis, "fuse") for axis in listed)
        if len(axes) == 1:
            return self._node.axes[axes[0]]
        self._schedule.apply_step(Fuse(self.id, axes))
        return self._node.axes[-1]

    def reorder(self, *args: IterVar) -> None:
        """Put the listed axes in the given order, at the places they hold together."""
        self._schedule.apply_step(Reorder(self.id, tuple(self._axis(axis, "reorder") for axis in args)))

    def parallel(self, var: IterVar) -> None:
        """Run the iterations of a spatial axis on several threads."""
        self._schedule.apply_step(Annotate(self.id, self._axis(var, "parallel"), "parallel"))

    def vectorize(self, var: IterVar) -> None:
        """Run the iterations of a spatial axis as the lanes of vectors."""
        self._schedule.apply_step(Annotate(self.id, self._axis(var, "vectorize"), "vectorize"))

    def unroll(self, var: IterVar) -> None:
        """Write the iterations of an axis out one after the other."""
        self._schedule.apply_step(Annotate(self.id, self._axis(var, "unroll"), "unroll"))

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Make the iterations of an axis threads. See `steps.Bind`.

        Args:
            ivar: a loop of this stage.
            thread_ivar: what it is bound to, such as te.thread_axis("vthread") or te.thread_axis((0, 8), "threadIdx.x").

        Raises:
            ScheduleError: for virtual threads of a reduction axis, an axis that is marked or bound, or a tag that an enclosing loop has.
        """
        self._schedule.apply_step(Bind(self.id, self._axis(ivar, "bind"), *checked_thread(self._node, thread_ivar)))
        self._schedule.threads[thread_ivar.var] = thread_ivar.thread_tag

    def bind_loops(self) -> None:
        """Run the loops of an extern in threads of a device, as kernels one after the other. See `steps.BindLoops`.

        Raises:
            ScheduleError: for a stage that is no extern.
        """
        self._schedule.apply_step(BindLoops(self.id))

    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Let the threads of a device run through all steps of a scan. See `steps.EnvThreads`.

        Raises:
            ScheduleError: for a stage that is no scan, and for threads of no grid.
        """
        listed = [threads] if isinstance(threads, IterVar) else list(threads)
        self._schedule.apply_step(EnvThreads(self.id, tuple(checked_thread(self._node, thread)[0] for thread in listed)))

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Let an intrinsic of `te.decl_tensor_intrin` do what the loop and all loops inside it do. See `steps.Tensorize`."""
        axis = self._axis(var, "tensorize")
        if not isinstance(tensor_intrin, TensorIntrin):
            raise self._node.refused(f"tensorize takes an intrinsic of te.decl_tensor_intrin, not {tensor_intrin!r}")
        self._schedule.apply_step(Tensorize(self.id, axis, tensor_intrin.name, tensor_intrin.digest))

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a hint to a loop: `auto_unroll_max_step` (int), `unroll_explicit`, `loop_partition_hint`, `no_load_merge` (bool).

        See `steps.Pragma` for what each means.
        """
        self._schedule.apply_step(Pragma(self.id, self._axis(var, "pragma"), pragma_type, checked_pragma(pragma_value)))

    def prefetch(self, tensor: Tensor, var: IterVar, offset: Any) -> None:
        """In each iteration of `var` fetch the cache lines of `tensor` that the iteration `offset` later reads. See `steps.Prefetch`.

        Raises:
            ScheduleError: if `var` is no loop or a vectorised one, or nothing inside it reads `tensor` from memory.
        """
        producer = self._schedule[tensor]
        output = tensor.value_index if isinstance(tensor, Tensor) else 0
        distance = checked_offset(self._node, offset)
        self._schedule.apply_step(Prefetch(self.id, producer.id, output, self._axis(var, "prefetch"), distance))


def _checked_factor(node: StageNode, parent: IterVar, factor: Any) -> int:
    # Programs compute factors by division, which gives floats: 64 / 4 is 16.0.
    value = int(factor) if isinstance(factor, float) and factor.is_integer() else as_int(factor)
    if value is None and isinstance(factor, PrimExpr) and parse_dtype(factor.dtype).is_int:
        raise node.refused(f"a balanced split of {parent.name!r} by {factor}, which is no constant; a factor is an integer of at least 1")
    if value is None or isinstance(factor, bool) or value < 1:
        raise node.refused(f"split of {parent.name!r} by {factor!r}; a factor is an integer of at least 1")
    return value
