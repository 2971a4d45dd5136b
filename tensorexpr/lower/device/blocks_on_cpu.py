"""A grid of threads as loops of a CPU: blocks in parallel, the threads of a block in turn from one barrier to the next.

with T.launch_thread("blockIdx.x", 4) as bx:             for bx in T.parallel(4):
    with T.launch_thread("threadIdx.x", 8) as tx:            s = T.allocate([8]); acc = T.allocate([1 * 8])
        s = T.allocate([8], scope="shared")                  for tx in range(8): acc[tx] = 0
        acc = T.allocate([1], scope="local")                 for k in range(16):
        acc[0] = 0                                               for tx in T.vectorized(8):
        for k in range(16):                        ->                s[tx] = A[k * 8 + tx]
            s[tx] = A[k * 8 + tx]                                for tx in T.vectorized(8):
            T.tvm_storage_sync("shared")                             acc[tx] = acc[tx] + s[7 - tx]
            acc[0] = acc[0] + s[7 - tx]                      for tx in T.vectorized(8): B[bx * 8 + tx] = acc[tx]
            T.tvm_storage_sync("shared")
        B[bx * 8 + tx] = acc[0]

A piece without barrier gets loops over the threads that it mentions; loops and conditions around a barrier, on which the threads
agree, stay outside of these. What one thread keeps across a barrier has a copy for each of them (`thread_memory`). What the threads of
a warp do together, as matrix units do, is pieces, too (`tir.warp_units`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from ...arith import detect_linear_equation
from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...tir.arithmetic import as_int, binary, cast, compare, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import EQ, LT, NE, Add, BufferLoad, Call, FloorMod, IntImm, IterVar, Mul, PrimExpr, Ramp, Select, Sub, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import post_order_rewrite, substitute, variables, walk
from ...tir.stmt import (
    NOP,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    is_no_op,
    seq,
    statements_of,
)
from ...tir.stmt_functor import Renaming
from ...tir.warp_units import WARP, WarpUnits, is_fragment, together
from ..context import PassContext
from ..copies import has_effect
from ..rebuild import Copier, map_stmt, own_expressions, pointer_like, pointer_scope, walk_statements
from ..register_file import RegisterFile
from .barriers import SHUFFLES, Meetings, Uniformity, barrier_scope, controls, has_address, mentions, shuffles_of
from .launches import launched_tag
from .limits import check_block
from .lone_units import SLOWEST_FIRST, linear, warps_of
from .thread_memory import Copied, ThreadMemory, is_one, product

_FEWEST_LANES = 4
TRUE, ZERO = IntImm("bool", 1), IntImm("int32", 0)


def blocks_on_cpu(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without threads of a grid; itself if there are none.

    Raises:
        LoweringError: for a barrier that not all threads of a block reach, for more threads or shared memory than a block may have.
    """
    name = str(func.attrs.get("global_symbol", "main"))

    def kernels(stmt: Stmt) -> Stmt:
        if launched_tag(stmt) is not None:
            return _Kernel(stmt, func, name).loops()
        return map_stmt(stmt, kernels)

    return func.with_body(kernels(func.body))


@dataclass(frozen=True)
class _Axis:
    """The threads or blocks of one tag."""

    tag: str
    var: Var
    extent: PrimExpr


class _Kernel:
    """One launch on its way to loops."""

    def __init__(self, launch: Stmt, func: PrimFunc, name: str) -> None:
        self._name = name
        axes: list[_Axis] = []
        while launched_tag(launch) is not None and isinstance(launch, AttrStmt):
            axes.append(_Axis(launch.node.thread_tag, launch.node.var, launch.value))
            launch = launch.body
        self._blocks = [axis for axis in axes if axis.tag.startswith("blockIdx")]
        by_tag = {axis.tag: axis for axis in axes}
        self._threads = [by_tag[tag] for tag in SLOWEST_FIRST if tag in by_tag]
        self._shared: list[Allocate] = []
        self._units, self._warps = WarpUnits(), warps_of([(axis.var, axis.extent) for axis in self._threads])
        self._body = self._taken_out(launch)
        check_block(name, func, [axis.extent for axis in self._threads], self._shared)
        self._x = by_tag.get("threadIdx.x")
        self._lanes = self._vector_lanes()
        self._outer, self._lane = Var("threadIdx_x_outer", "int32"), Var("threadIdx_x_lane", "int32")
        self._meetings = Meetings()
        self._memory = ThreadMemory()
        self._uniform = Uniformity({axis.var for axis in self._threads})
        self._inside: dict[Var, Allocate] = {}  # arrays of single threads that one piece has for itself
        self._active: list[PrimExpr] = []  # conditions of the threads that take part

    def loops(self) -> Stmt:
        """The loops over blocks, around storage for what their threads share, around the threads' pieces."""
        body = self._collective(self._body)
        for storage in reversed(self._shared):
            # On a CPU it is memory as any other.
            renaming = Renaming({storage.buffer_var: pointer_like(storage.buffer_var, "global", storage.dtype)}, folding=False)
            body = renaming.apply(replace(storage, body=body))
        sizes = [as_int(axis.extent) or 0 for axis in self._blocks]
        # One loop is run by the cores; of several the longest has the most for them to share.
        parallel = sizes.index(max(sizes)) if sizes else 0
        order = [n for n in range(len(sizes)) if n != parallel]
        for number in [*reversed(order), *([parallel] if sizes else [])]:
            axis = self._blocks[number]
            kind = ForKind.PARALLEL if number == parallel and sizes[number] != 1 else ForKind.SERIAL
            body = For(axis.var, const(0, axis.var.dtype), axis.extent, kind, body)
        return body

    def _taken_out(self, stmt: Stmt) -> Stmt:
        """The statement without storage that threads share, which from now on belongs to the block."""
        result = map_stmt(stmt, self._taken_out)
        if isinstance(result, Allocate) and pointer_scope(result.buffer_var).split(".")[0] == "shared":
            self._shared.append(result)
            return result.body
        if (call := together(stmt)) is not None:
            self._units.note(call)
        return result

    def _vector_lanes(self) -> int:
        """How many threads along x become the lanes of a vector: as many floats as a register has, or fewer that divide them."""
        count = None if self._x is None else as_int(self._x.extent)
        lanes = RegisterFile.current().bits // 32
        while count is not None and count % lanes:
            lanes //= 2
        return lanes if count and lanes >= _FEWEST_LANES else 1

    # Code for all threads

    def _collective(self, stmt: Stmt) -> Stmt:
        """What all threads of a block do, from the first to the last barrier in it."""
        meeting = self._meetings.first(stmt)
        if meeting is None:
            return self._piece(stmt)
        scope = barrier_scope(stmt)
        if scope is not None:
            if scope == "global":
                raise LoweringError(f"In {self._name}: {_shown(stmt)} lets blocks wait for each other; a CPU runs them one after the other")
            return NOP
        match stmt:
            case SeqStmt():
                return seq(*(self._collective(part) for part in self._parts(stmt)))
            case For() | While():
                self._check_agreed(stmt, meeting)
                kind = {"kind": ForKind.SERIAL} if isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL else {}
                return replace(stmt, body=self._collective(stmt.body), **kind)  # type: ignore[arg-type]
            case IfThenElse():
                return self._branch(stmt, meeting)
            case AssertStmt():
                self._check_agreed(stmt, meeting)
                return replace(stmt, body=self._collective(stmt.body))
            case LetStmt():
                return self._let(stmt)
            case Allocate():
                return self._allocate(stmt)
            case DeclBuffer():
                return self._collective(stmt.body)
            case AttrStmt():
                body = self._collective(stmt.body)
                return body if isinstance(stmt.node, (Var, IterVar)) else replace(stmt, body=body)
            case BufferStore() | Evaluate():
                call = together(stmt)
                return self._exchange(stmt) if call is None else self._as_warps(call)
        raise LoweringError(f"In {self._name}: a {type(stmt).__name__} around {_shown(meeting)} has no form on a CPU")

    def _parts(self, stmt: Stmt) -> Iterator[Stmt]:
        """The statements of a sequence, those without barriers between them as one."""
        run: list[Stmt] = []
        for part in statements_of(stmt):
            if self._meetings.first(part) is None:
                run.append(part)
                continue
            if run:
                yield seq(*run)
            run = []
            yield part
        if run:
            yield seq(*run)

    def _branch(self, stmt: IfThenElse, meeting: Stmt) -> Stmt:
        if self._uniform.holds(stmt.condition):
            other = None if stmt.else_case is None else self._collective(stmt.else_case)
            return IfThenElse(stmt.condition, self._collective(stmt.then_case), other)
        if not self._within_warps(stmt):
            self._check_agreed(stmt, meeting)
        # A warp goes through it as a whole; each thread's own answer is kept, as what the branch does may change the condition.
        kept, answer, storage = self._per_thread("taken", "int32")
        test = self._piece(BufferStore(kept, Select(stmt.condition, const(1, "int32"), ZERO), (ZERO,)))
        cases = []
        for case, holds in ((stmt.then_case, NE), (stmt.else_case, EQ)):
            if case is not None:
                self._active.append(compare(holds, answer, ZERO))
                cases.append(self._collective(case))
                self._active.pop()
        return storage(seq(test, *cases))

    def _within_warps(self, stmt: Stmt) -> bool:
        """Whether threads meet in a statement only with those of their warp, outside of loops of their own."""
        return all(barrier_scope(inner) in (None, "warp") for inner in walk_statements(stmt))

    def _check_agreed(self, stmt: Stmt, meeting: Stmt) -> None:
        """Refuse a barrier that some threads wouldn't reach, or not as often as others."""
        if isinstance(stmt, For) and stmt.kind is ForKind.VECTORIZED:
            raise LoweringError(f"In {self._name}: {_shown(meeting)} stands in the vectorized loop {stmt.loop_var.name}; make it serial")
        for expr in controls(stmt):
            reason = self._uniform.reason(expr)
            if reason is not None:
                self._divergent(stmt, expr, reason, meeting)

    def _divergent(self, stmt: Stmt, expr: PrimExpr, reason: str, meeting: Stmt) -> NoReturn:
        where = f"in the loop {stmt.loop_var.name}, which runs `{expr}` times" if isinstance(stmt, For) else f"under `{expr}`"
        raise LoweringError(
            f"In {self._name}: the barrier {_shown(meeting)} stands {where}, on which the threads of a block don't agree: it depends on "
            f"{reason}. Threads that don't come would be waited for forever; take the barrier out, or split the statement around it"
        )

    def _let(self, stmt: LetStmt) -> Stmt:
        if self._uniform.holds(stmt.value):
            return replace(stmt, body=self._collective(stmt.body))
        if not any(isinstance(node, (BufferLoad, Call)) for node in walk(stmt.value)):
            return self._collective(substitute(stmt.body, {stmt.var: stmt.value}))
        # What was read must be known after the barrier, where the memory may hold something else.
        kept, value, storage = self._per_thread(stmt.var.name, stmt.var.dtype)
        first = self._collective(BufferStore(kept, stmt.value, (ZERO,)))
        return storage(seq(first, self._collective(substitute(stmt.body, {stmt.var: value}))))

    # Memory

    def _allocate(self, stmt: Allocate) -> Stmt:
        scope = pointer_scope(stmt.buffer_var)
        if scope == "global":  # nothing says that it is a thread's own
            return replace(stmt, body=self._collective(stmt.body))
        size, own = product(*(cast(extent, "int32") for extent in stmt.extents)), pointer_like(stmt.buffer_var, "local", stmt.dtype)
        if scope == "warp" or is_fragment(scope):
            copied = self._copies(own, size, by_x=False) if scope == "warp" else self._of_warps(own, size)
        else:
            self._uniform.private.add(stmt.buffer_var)
            if self._is_for_one_piece(stmt):
                self._inside[stmt.buffer_var] = replace(stmt, body=NOP)
                return self._collective(stmt.body)
            number, count = self._linear(self._threads)
            # An address leads to elements side by side.
            by_address = has_address(stmt.body, stmt.buffer_var)
            copied = Copied(own, size, 1, number, None, count) if by_address else self._copies(own, size, by_x=True)
        self._memory.add(stmt.buffer_var, copied)
        body = self._collective(stmt.body)
        return replace(stmt, buffer_var=copied.data, extents=(copied.total,), body=body)

    def _copies(self, data: Var, size: PrimExpr, by_x: bool) -> Copied:
        """An array with a copy for each thread, or for the threads along x of each y and z."""
        others = [axis for axis in self._threads if axis is not self._x]
        group, groups = self._linear(others)
        if self._x is None or not by_x:
            return Copied(data, size, 1, group, None, groups)
        lanes = const(self._lanes, "int32")
        outer = cast(self._x.extent, "int32") // lanes
        return Copied(data, size, self._lanes, binary(Add, binary(Mul, group, outer), self._outer), self._lane, product(groups, outer))

    def _linear(self, axes: Sequence[_Axis]) -> tuple[PrimExpr, PrimExpr]:
        return linear([(axis.var, axis.extent) for axis in axes])

    def _per_thread(self, name: str, dtype: str) -> tuple[Buffer, PrimExpr, Callable[[Stmt], Stmt]]:
        """A value for each thread: where it is stored, the load of it, and what puts its storage around a statement."""
        buffer = decl_buffer((1,), dtype, name, scope="local")
        copied = self._copies(Var(name, "handle", buffer.data.type_annotation), const(1, "int32"), by_x=True)
        self._memory.add(buffer.data, copied)
        self._uniform.private.add(buffer.data)

        def around(body: Stmt) -> Stmt:
            return Allocate(copied.data, dtype, (copied.total,), TRUE, body)

        return buffer, BufferLoad(buffer, (ZERO,)), around

    def _is_for_one_piece(self, stmt: Allocate) -> bool:
        """Whether a single piece uses the array, which holds nothing from one round of a loop to the next."""
        found = [in_loop for piece, in_loop in self._pieces(stmt.body, False) if mentions(piece, stmt.buffer_var)]
        return len(found) == 1 and not found[0]

    def _pieces(self, stmt: Stmt, in_loop: bool) -> Iterator[tuple[Stmt, bool]]:
        """The pieces that a statement will be split into, and whether they stand in a loop of it."""
        if self._meetings.first(stmt) is None or isinstance(stmt, (BufferStore, Evaluate)):
            yield stmt, in_loop
            return
        if isinstance(stmt, (LetStmt, IfThenElse, While)):
            yield from ((Evaluate(expr), True) for expr in own_expressions(stmt))
        looping = in_loop or isinstance(stmt, (For, While))
        if isinstance(stmt, SeqStmt):
            inner: Sequence[Stmt] = tuple(self._parts(stmt))
        elif isinstance(stmt, IfThenElse):
            inner = [case for case in (stmt.then_case, stmt.else_case) if case is not None]
        else:
            inner = [stmt.body] if hasattr(stmt, "body") else []
        for part in inner:
            yield from self._pieces(part, looping)

    # Exchanges within a warp

    def _of_warps(self, data: Var, size: PrimExpr) -> Copied:
        """An array with a copy for each warp."""
        return Copied(data, size, 1, self._warps.number, None, const(self._warps.count or 1, "int32"))

    def _as_warps(self, call: Call) -> Stmt:
        """What the threads of a warp do together, in pieces; memory that they have for it lies around these."""
        if self._warps.count is None:
            extents = " x ".join(str(axis.extent) for axis in self._threads)
            raise LoweringError(
                f"In {self._name}: {call.op} is run by warps of {WARP} threads, and a block has {extents or 1}; launch whole warps"
            )
        taken = self._units.steps(call, self._warps.lane)
        storage = {buffer: self._of_warps(pointer_like(buffer.data, "local", buffer.dtype), buffer.shape[0]) for buffer in taken.memory}
        for buffer, copied in storage.items():
            self._memory.add(buffer.data, copied)
        result = seq(*(self._piece(step) for step in taken.steps))
        for buffer, copied in storage.items():
            result = Allocate(copied.data, buffer.dtype, (copied.total,), TRUE, result)
        return result

    def _exchange(self, stmt: Stmt) -> Stmt:
        """A statement with shuffles: first every thread offers its value, then it takes what another one offered."""
        offers: list[Stmt] = []
        known: dict[PrimExpr, PrimExpr] = {}
        around: list[Callable[[Stmt], Stmt]] = []
        for call in shuffles_of(stmt):
            value, lane, width = (self._offered(arg, known) for arg in call.args[1:4])
            buffer, _, storage = self._per_thread("offered", call.dtype)
            around.append(storage)
            offers.append(self._piece(BufferStore(buffer, value, (ZERO,))))
            known[call] = self._taken(call, buffer, lane, width)
        result = seq(*offers, self._piece(map_stmt(stmt, lambda inner: inner, lambda expr: self._offered(expr, known))))
        for storage in around:
            result = storage(result)
        return result

    def _offered(self, expr: PrimExpr, known: dict[PrimExpr, PrimExpr]) -> PrimExpr:
        return post_order_rewrite(expr, lambda node: known.get(node) if isinstance(node, Call) else None)

    def _taken(self, call: Call, buffer: Buffer, lane: PrimExpr, width: PrimExpr) -> PrimExpr:
        """What the thread of a shuffle's lane offered; where there is no such lane, one's own value."""
        copied = self._memory.arrays[buffer.data]
        own, _ = self._linear(self._threads)
        lane, width = cast(lane, "int32"), cast(width, "int32")
        here = binary(FloorMod, own, width)
        there = {SHUFFLES[0]: binary(FloorMod, lane, width), SHUFFLES[1]: binary(Sub, here, lane), SHUFFLES[2]: binary(Add, here, lane)}
        found = there[call.op]
        if call.op != SHUFFLES[0]:
            found = Select(compare(LT, found, width) if call.op == SHUFFLES[2] else compare(LT, here, lane).__invert__(), found, here)
        # One element each, so a copy lies where the thread's number says.
        return BufferLoad(replace(buffer, data=copied.data, shape=(copied.total,)), (binary(Add, binary(Sub, own, here), found),))

    # Pieces without barriers

    def _piece(self, stmt: Stmt) -> Stmt:
        """A statement without barriers, for every thread."""
        for pointer, storage in self._inside.items():
            if mentions(stmt, pointer):
                stmt = replace(storage, body=stmt)
        for condition in reversed(self._active):
            stmt = IfThenElse(condition, stmt)
        stmt = self._memory.stmt(_without_masks(stmt))
        if is_no_op(stmt):
            return stmt
        used = variables(stmt)
        if any(has_effect(inner) for inner in walk_statements(stmt)):  # every thread has it, whether or not it says its number
            used |= {axis.var for axis in self._threads}
        return self._threaded(stmt, used)

    def _threaded(self, stmt: Stmt, used: set[Var]) -> Stmt:
        """`stmt` in loops over the threads that it depends on: it does the same for all others, so that once is enough."""
        loops: list[tuple[Var, PrimExpr, ForKind]] = []
        mapping: dict[Var, PrimExpr] = {}
        x = self._x
        for axis in self._threads:
            if axis is not x and axis.var in used:
                mapping[axis.var] = fresh = Var(axis.var.name, axis.var.dtype)
                loops.append((fresh, axis.extent, ForKind.SERIAL))
        if x is not None and used & {x.var, self._outer, self._lane}:
            vector = self._lanes > 1 and self._has_vector_form(stmt)
            if not vector and not used & {self._outer, self._lane}:
                mapping[x.var] = fresh = Var(x.var.name, x.var.dtype)
                loops.append((fresh, x.extent, ForKind.SERIAL))
            else:
                loops += self._along_x(x, mapping, vector)
        stmt = Copier(mapping).stmt(stmt)
        for var, extent, kind in reversed(loops):
            stmt = For(var, const(0, var.dtype), extent, kind, stmt)
        return stmt

    def _along_x(self, x: _Axis, mapping: dict[Var, PrimExpr], vector: bool) -> list[tuple[Var, PrimExpr, ForKind]]:
        """The loops over vectors of threads and over the threads of one."""
        loops: list[tuple[Var, PrimExpr, ForKind]] = []
        lanes, kind = const(self._lanes, "int32"), ForKind.VECTORIZED if vector else ForKind.SERIAL
        outer, lane = cast(x.extent, "int32") // lanes, Var(x.var.name, "int32")
        mapping[self._outer] = ZERO
        if not is_one(outer):
            mapping[self._outer] = fresh = Var(x.var.name, "int32")
            loops.append((fresh, outer, ForKind.SERIAL))
        mapping[self._lane] = lane if self._lanes > 1 else ZERO
        mapping[x.var] = cast(binary(Add, binary(Mul, mapping[self._outer], lanes), mapping[self._lane]), x.var.dtype)
        return [*loops, (lane, lanes, kind)] if self._lanes > 1 else loops

    def _has_vector_form(self, stmt: Stmt) -> bool:
        """Whether the threads of a vector store side by side, and nothing is a vector already."""
        own = {inner.buffer_var for inner in walk_statements(stmt) if isinstance(inner, Allocate)}
        own |= {copied.data for copied in self._memory.arrays.values() if copied.lane is not None}
        for inner in walk_statements(stmt):
            if isinstance(inner, (While, Evaluate)) or (isinstance(inner, For) and inner.kind is ForKind.VECTORIZED):
                return False
            if isinstance(inner, BufferStore) and (
                any(isinstance(index, Ramp) for index in inner.indices) or not (inner.buffer.data in own or self._is_dense(inner))
            ):
                return False
        return True

    def _is_dense(self, store: BufferStore) -> bool:
        assert self._x is not None
        terms = detect_linear_equation(store.indices[0], [self._x.var])
        return bool(terms) and as_int(terms[0]) == 1


def _without_masks(stmt: Stmt) -> Stmt:
    """Where the lanes of a warp that run are asked for: all of them."""

    def on_expr(expr: PrimExpr) -> PrimExpr:
        return post_order_rewrite(
            expr, lambda node: const(0xFFFFFFFF, "uint32") if isinstance(node, Call) and node.op == "tir.tvm_warp_activemask" else None
        )

    def on_stmt(inner: Stmt) -> Stmt:
        return map_stmt(inner, on_stmt, on_expr)

    return on_stmt(stmt)


def _shown(stmt: Stmt) -> str:
    return f"`{str(stmt).strip().splitlines()[-1].strip()}`"
