"""A schedule as a PrimFunc: the nests of all stages in order, with storage for what is no argument."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field
from ...errors import InternalError, LoweringError
from ...log import once
from ...schedule.attachment import enclosing_loops
from ...schedule.domain import StageDomain
from ...schedule.exact import check_exact
from ...schedule.given_layouts import relaid
from ...schedule.legality import check_tree
from ...schedule.loop_order import check_order
from ...schedule.scans import storage_of
from ...schedule.te_schedule import Schedule
from ...schedule.thread_legality import check_extents, storage_scope
from ...schedule.tree import At, Inline, Root, ScheduleTree, StageNode
from ...te.extern import ExternOp
from ...te.hybrid_op import HybridOp
from ...te.operation import PlaceholderOp
from ...te.scan_op import ScanOp
from ...te.tensor import Tensor
from ...tir.arithmetic import is_const_int
from ...tir.attrs import EMPTY, EXTERN_SCOPE, NONTEMPORAL_STORE, PREFETCH_SCOPE, FrozenMap
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import BufferLoad, IntImm, PrimExpr, ProducerLoad, Range, Reduce, SizeVar, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import NOP, AttrStmt, BufferRealize, For, Stmt, seq
from ...tir.stmt_functor import Renaming
from .argument_coverage import check_covers
from .cross_thread import cross_thread_nest, shared_axes
from .extern_body import extern_body
from .fused_sizes import counted
from .infer_bound import infer_bound
from .inline_stages import inline_stages, reads_of_range
from .loop_nest import LoopNest
from .repeated_arguments import may_repeat
from .rolling_buffer import RollingPlan, plan_rolling_buffers
from .scan_nest import scan_nest
from .tensorize import tensorized_axis, tensorized_nest

_logger = logging.getLogger(__name__)
TRUE = IntImm("bool", 1)


def schedule_to_func(
    schedule: Schedule,
    args: Sequence[Tensor | Var | Buffer],
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    noalias: bool = True,
    keep_trivial_loops: bool = False,
) -> PrimFunc:
    """The loop nests of a schedule, as a function of `args`.

    Args:
        args: tensors (inputs, outputs and any intermediate that the caller wants), scalar variables, or buffers.
        binds: the buffer to use for a tensor; by default a compact one of the tensor's shape.
        noalias: promise that no two arguments overlap.

    Raises:
        ScheduleError: if the schedule as a whole is illegal.
        LoweringError: if an input or output is missing from `args`, or something in it has no place there.
    """
    if schedule.tree.by_blocks:
        check_tree(schedule.tree)
        if binds:
            raise LoweringError("a program that is scheduled by a trace of blocks has buffers of its own; leave binds out")
        # Few programs are, and the schedules of blocks are many modules.
        from .by_blocks import scheduled_by_blocks

        return scheduled_by_blocks(schedule.tree.by_blocks, args, name)
    return func_and_tensors(schedule, args, name, binds, noalias, keep_trivial_loops)[0]


def func_and_tensors(
    schedule: Schedule,
    args: Sequence[Tensor | Var | Buffer],
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    noalias: bool = True,
    keep_trivial_loops: bool = False,
) -> tuple[PrimFunc, dict[Buffer, Tensor]]:
    """`schedule_to_func`, and for each of its buffers the tensor that lives there."""
    tree = schedule.tree
    check_tree(tree)
    if tree.by_blocks:
        raise LoweringError("the loops of a program that is scheduled by a trace of blocks are no nests of stages; lower it as a whole")
    params, bound = _parameters(tree, args, binds or {})
    _check_complete(tree, bound)
    bodies = inline_stages(tree)
    analyzer = Analyzer()
    for size in _sizes(bound.values()):
        # A size may be 0, so no proof may rest on there being elements.
        analyzer.bind(size, Range.from_min_extent(IntImm(size.dtype, 0), IntImm(size.dtype, (1 << 31) - 1)))
    arguments = {number for number, _ in bound}
    domains = infer_bound(tree, bodies, analyzer, arguments)
    check_extents(tree, domains)
    for stage in tree.in_order():
        if stage.id in arguments and isinstance(stage.attach, At):
            check_covers(tree, stage, domains, analyzer)
    for domain in domains.values():
        check_exact(domain, analyzer)
        check_order(domain)
    program = _Program(tree, bodies, domains, dict(bound), keep_trivial_loops, plan_rolling_buffers(tree, domains, analyzer))
    buffer_map = {var: param for var, param in params.items() if param is not None}
    attrs = FrozenMap({"global_symbol": name, "from_legacy_te_schedule": True, "tir.noalias": noalias})
    func = PrimFunc(tuple(params), counted(domains.values(), program.build()), None, buffer_map, attrs)
    return func, program.tensors()


Key = tuple[int, int]  # stage, output


def _parameters(
    tree: ScheduleTree, args: Sequence[Any], binds: Mapping[Tensor, Buffer]
) -> tuple[dict[Var, Buffer | None], dict[Key, Buffer]]:
    """The parameters in order, each with its buffer if it is no scalar, and the buffers that stages live in."""
    params: dict[Var, Buffer | None] = {}
    bound: dict[Key, Buffer] = {}
    if not isinstance(binds, Mapping):
        raise LoweringError(f"binds says which buffer a tensor lives in, as in binds={{A: buffer}}, not {binds!r}")
    # Programs pass either the tensor or the buffer that they bound it to.
    by_buffer = {buffer: tensor for tensor, buffer in binds.items()}
    for position, arg in enumerate(args):
        if isinstance(arg, Var):
            params[arg] = None
            continue
        tensor = by_buffer.get(arg) if isinstance(arg, Buffer) else arg
        if not isinstance(tensor, Tensor):
            raise LoweringError(f"argument {position} is {arg!r}; args takes the tensors and scalar variables (te.var) of the function")
        stage = tree.find(tensor.op)
        if stage is None and not isinstance(tensor.op, PlaceholderOp):
            raise LoweringError(
                f"argument {position}, {tensor.name}, is no part of the schedule, which doesn't compute it; its tensors: {_names(tree)}"
            )
        declared, tensor = tensor, relaid(tree, tensor)
        unused = -1 - position  # an input that nothing reads
        key = (unused, 0) if stage is None else storage_of(tree, stage, tensor.value_index)
        if key in bound:
            raise LoweringError(f"argument {position}, {tensor.name}, is given twice; each tensor is one argument")
        # The layout may have been changed by the schedule: users bind the tensor as they declared it.
        given = binds.get(declared) or binds.get(tensor)
        cuts = stage.separators if stage is not None else ()
        buffer = arg if isinstance(arg, Buffer) else given
        if buffer is None:
            kind = "auto_broadcast" if stage is not None and may_repeat(tree, stage) else ""
            buffer = decl_buffer(tensor.shape, tensor.dtype, tensor.name, buffer_type=kind, axis_separators=cuts)
        _check_buffer(position, tensor, buffer)
        bound[key] = buffer
        params[Var(buffer.name, "handle")] = buffer
    return params, bound


def _check_buffer(position: int, tensor: Tensor, buffer: Buffer) -> None:
    """A buffer that stands for a tensor holds just its elements, the first of them where the argument's pointer points."""
    where = f"argument {position}, {tensor.name}"
    shape, wanted = (", ".join(map(str, extents)) for extents in (buffer.shape, tensor.shape))
    if buffer.dtype != tensor.dtype:
        raise LoweringError(f"{where}: its buffer holds {buffer.dtype}, the tensor {tensor.dtype}; declare the buffer with {tensor.dtype}")
    same = len(buffer.shape) == len(tensor.shape)
    analyzer = Analyzer()
    # Symbolic extents may be spelled differently: n * 4 and 4 * n.
    if not same or not all(a is b or analyzer.known_equal(a, b) for a, b in zip(buffer.shape, tensor.shape, strict=True)):
        raise LoweringError(
            f"{where}: its buffer has the shape [{shape}], the tensor [{wanted}]; declare the buffer with the tensor's shape, "
            "and with strides if its elements are apart"
        )
    offset = buffer.elem_offset
    if isinstance(offset, IntImm) and offset.value != 0:
        raise LoweringError(
            f"{where}: its buffer starts at element {offset.value}, but an argument points at its first element; "
            "leave elem_offset out and pass a view that starts there, such as x[4:]"
        )


def _names(tree: ScheduleTree) -> str:
    return ", ".join(stage.name for stage in tree.in_order())


def _check_complete(tree: ScheduleTree, bound: Mapping[Key, Buffer]) -> None:
    for stage in tree.in_order():
        outputs = range(stage.origin.num_outputs)
        missing = [n for n in outputs if (stage.id, n) not in bound]
        if stage.is_placeholder and stage.id not in tree.carried and missing and tree.consumers(stage):
            ends = ", ".join(s.name for s in tree.in_order() if s.is_placeholder or s.is_output)
            raise LoweringError(f"placeholder {stage.name} is read but missing from args; pass every input, as in args=[{ends}]")
        if stage.aligns and len(missing) < len(outputs):
            raise LoweringError(f"{stage.name} is an argument, so the caller lays it out: leave storage_align out, or take it out of args")
        if isinstance(stage.attach, At) and (stage.rolling_buffer or stage.double_buffer) and len(missing) < len(outputs):
            what = "rolling_buffer" if stage.rolling_buffer else "double_buffer"
            raise LoweringError(f"{stage.name} is an argument, which keeps all of its elements: leave {what} out, or take it out of args")
        if isinstance(stage.attach, Inline) and len(missing) < len(outputs):
            once(_logger, f"{stage.name} is an argument, but it is inlined: nothing writes to it; take it out of args, or compute it")


def _sizes(buffers: Any) -> dict[Var, None]:
    """The variables that occur in shapes: sizes, so never negative."""
    found: dict[Var, None] = {}
    for buffer in buffers:
        for extent in buffer.shape:
            # The dtype of a SizeVar says it already.
            if isinstance(extent, Var) and not isinstance(extent, SizeVar):
                found[extent] = None
    return found


@dataclass(frozen=True, eq=False)
class _Program:
    tree: ScheduleTree
    bodies: Mapping[int, tuple[PrimExpr, ...]]
    domains: Mapping[int, StageDomain]
    buffers: dict[Key, Buffer]
    keep_trivial_loops: bool
    rolling: Mapping[int, RollingPlan]
    loop_vars: set[Var] = field(default_factory=set)
    attached: dict[tuple[int, int], list[StageNode]] = field(default_factory=dict)  # by stage and axis

    def __post_init__(self) -> None:
        for stage in self.tree.in_order():
            if isinstance(stage.attach, At):
                self.attached.setdefault((stage.attach.stage, stage.attach.axis), []).append(stage)

    def build(self) -> Stmt:
        """All root stages in order."""
        roots = [s for s in self.tree.in_order() if not s.is_placeholder and isinstance(s.attach, Root)]
        # Before the others are declared: so far only arguments have buffers.
        params = set(self.buffers)
        for stage in self.tree.in_order():
            self._declare(stage)
        params |= self._share_storage()
        return self._realized(roots, params, NOP)

    def tensors(self) -> dict[Buffer, Tensor]:
        """What lives in each buffer; where stages share one, as those of a scan do, the last of them."""
        stages = [stage for stage in self.tree.in_order() if not isinstance(stage.attach, Inline)]
        keys = [(stage, number) for stage in stages for number in range(stage.origin.num_outputs)]
        return {self.buffers[stage.id, number]: stage.origin.output(number) for stage, number in keys if (stage.id, number) in self.buffers}

    def _share_storage(self) -> set[Key]:
        """Let the states and updates of scans live in the results; gives the outputs that so have no storage of their own."""
        shared = set()
        for number in self.tree.carried:
            for output in range(self.tree[number].origin.num_outputs):
                place = storage_of(self.tree, self.tree[number], output)
                if place != (number, output):
                    self.buffers[number, output] = self.buffers[place]
                    shared.add((number, output))
        return shared

    def _declare(self, stage: StageNode) -> None:
        if stage.is_placeholder or isinstance(stage.attach, Inline):
            return
        for number in range(stage.origin.num_outputs):
            tensor = stage.origin.output(number)
            if (stage.id, number) not in self.buffers:
                name = stage.name if stage.origin.num_outputs == 1 else f"{stage.name}.v{number}"
                scope = storage_scope(stage, enclosing_loops(self.tree, stage))
                self.buffers[stage.id, number] = decl_buffer(tensor.shape, tensor.dtype, name, scope=scope)

    def _realized(self, stages: Sequence[StageNode], params: set[Key], rest: Stmt) -> Stmt:
        """The nests of `stages` before `rest`, each with storage that lasts to the end unless it is a parameter."""
        # From the last on: a stage's storage is around its nest and all that follows, which may read it.
        for stage in reversed(stages):
            rest = seq(self._nest(stage, params), rest)
            for number in reversed(range(stage.origin.num_outputs)):
                if (stage.id, number) not in params and stage.id not in self.rolling:
                    rest = BufferRealize(self.buffers[stage.id, number], self._bounds(stage, number), TRUE, rest, self._storage(stage))
        return rest

    def _storage(self, stage: StageNode) -> FrozenMap:
        """What the schedule says about a stage's storage. Where the loop has one iteration there is nothing to overlap."""
        said: dict[str, Any] = {"storage_align": stage.aligns} if stage.aligns else {}
        attach = stage.attach
        if stage.double_buffer and isinstance(attach, At) and not is_const_int(self.domains[attach.stage].extents[attach.axis], 1):
            said["double_buffer_scope"] = True if stage.double_buffer == 2 else stage.double_buffer
        return FrozenMap(said) if said else EMPTY

    def _bounds(self, stage: StageNode, number: int) -> tuple[Range, ...]:
        """The box of output `number` that one visit computes."""
        # Code that was written by hand fills its outputs whole, and the result of a scan holds all of its steps.
        if not stage.has_loops or isinstance(stage.op, ScanOp):
            return tuple(Range.from_min_extent(IntImm(extent.dtype, 0), extent) for extent in stage.origin.output_shape(number))
        region = self.domains[stage.id].region
        return tuple(region[axis] for axis in stage.spatial)

    def _nest(self, stage: StageNode, params: set[Key]) -> Stmt:
        if isinstance(stage.op, ExternOp):
            return extern_body(stage.op, lambda tensor: self._buffer(stage, tensor))

        def prepend(axis: int, body: Stmt) -> Stmt:
            body = self._realized(self.attached.get((stage.id, axis), ()), params, body)
            return self._prefetched(stage, axis, body) if stage.prefetches else body

        def enclose(axis: int, loop: Stmt) -> Stmt:
            loop = self._with_own_variable(loop)
            for other in self.attached.get((stage.id, axis), ()):
                # Its storage has to outlive the loop's iterations, as each leaves elements for the next: so around the loop, not in it.
                if other.id in self.rolling:
                    for number in range(other.origin.num_outputs):
                        box, storage = self.rolling[other.id].bounds(), self._storage(other)
                        loop = BufferRealize(self.buffers[other.id, number], box, TRUE, loop, storage)
            return loop

        bodies = tuple(post_order_rewrite(body, self._read_buffers) for body in self.bodies[stage.id])
        buffers = tuple(self.buffers[stage.id, number] for number in range(stage.origin.num_outputs))
        plan = self.rolling.get(stage.id)
        if plan is not None:
            first, each = (
                LoopNest(part, bodies, buffers, prepend, self.keep_trivial_loops, enclose, plan.place).build()
                for part in (plan.first, plan.each)
            )
            return plan.visit(first, each)
        threads = self._threads(stage)
        loops = LoopNest(self.domains[stage.id], bodies, buffers, prepend, self.keep_trivial_loops, enclose, threads=threads)
        if isinstance(stage.op, ScanOp):
            return scan_nest(stage.op, loops)
        axis = tensorized_axis(stage)
        if axis is not None:
            nest = tensorized_nest(loops, axis, self._analyzer())
        else:
            nest = cross_thread_nest(loops) if shared_axes(stage) else loops.build()
        # The ranges of a reduction may read tensors too (rows of a sparse matrix), and they stand in the nest, not in a body.
        if any(reads_of_range(part) for body in bodies[:1] if isinstance(body, Reduce) for part in body.axis):
            nest = post_order_rewrite(nest, self._read_buffers)
        for number, buffer in enumerate(buffers if stage.nontemporal else ()):
            # Of memory that the function itself allocates the next stage reads soon: going past the caches would only cost.
            if (stage.id, number) in params:
                nest = AttrStmt(buffer.data, NONTEMPORAL_STORE, IntImm("int32", 1), nest)
        return AttrStmt(0, EXTERN_SCOPE, IntImm("int32", 0), nest) if isinstance(stage.origin, HybridOp) else nest

    def _threads(self, stage: StageNode) -> dict[str, Var]:
        """The variables of the loops over threads around a stage's stores, by tag."""
        own = [(stage, axis) for axis in stage.leaf]
        pairs = [(node, axis, node.mark(axis).thread) for node, axis in (*own, *enclosing_loops(self.tree, stage))]
        found: dict[str, Var] = {}
        for node, axis, thread in pairs:
            if thread is not None:
                found.setdefault(thread.tag, node.axes[axis].var)
        return found

    def _with_own_variable(self, loop: Stmt) -> Stmt:
        """The loop with a variable that no loop before it has: stages may share a reduce_axis."""
        if not isinstance(loop, For):
            return loop
        var = loop.loop_var
        if var in self.loop_vars:
            return Renaming({var: Var(var.name, var.dtype)}, folding=False).apply(loop)
        self.loop_vars.add(var)
        return loop

    def _analyzer(self) -> Analyzer:
        """One that knows the range of every loop."""
        analyzer = Analyzer()
        for domain in self.domains.values():
            for var, bounds in domain.loops().items():
                analyzer.bind(var, bounds)
        return analyzer

    def _prefetched(self, stage: StageNode, axis: int, body: Stmt) -> Stmt:
        """A loop's body under the prefetches that the schedule wants there."""
        for mark in stage.prefetches:
            if mark.axis == axis:
                body = AttrStmt(self.buffers[mark.producer, mark.output], PREFETCH_SCOPE, IntImm("int32", mark.offset), body)
        return body

    def _buffer(self, stage: StageNode, tensor: Tensor) -> Buffer:
        """The buffer of a tensor that an extern stage reads or writes."""
        owner = stage if tensor.op is stage.op else self.tree.find(tensor.op)
        if owner is None:
            raise InternalError(f"{tensor} is no part of the schedule")
        return self.buffers[owner.id, tensor.value_index]

    def _read_buffers(self, node: Node) -> Node | None:
        if not isinstance(node, ProducerLoad) or not isinstance(node.producer, Tensor):
            return None
        stage = self.tree.producer(node)
        plan = self.rolling.get(stage.id)
        return BufferLoad(self.buffers[stage.id, node.producer.value_index], node.indices if plan is None else plan.place(node.indices))
