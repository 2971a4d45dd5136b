"""Copies in bulk, the mbarriers that count their bytes, and the waits for them, as a device's instructions.

attr bulk_barriers n:                                create_barriers(n); first thread: init each for one arrival
    attr bulk_group turn:                            first thread: arrive at barrier `turn`, and announce all bytes
        ptx_cp_async_bulk_tensor(place, map, ...)  ->              ptx_cp_async_bulk_tensor(place, map, barrier `turn`, ...)
    attr bulk_wait turn, bulk_parity p: body         all threads: wait for the phase of parity p of barrier `turn`; body
"""

from __future__ import annotations

from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...tir.arithmetic import as_int
from ...tir.device_intrin import device_call
from ...tir.dtype import parse_dtype
from ...tir.expr import EQ, And, Call, IntImm, IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, Evaluate, For, IfThenElse, SeqStmt, Stmt, is_no_op, seq
from ...tir.thread import bound_tag
from ..async_queues import BULK_BARRIERS, BULK_COPY, BULK_GROUP, BULK_PARITY, BULK_WAIT
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements

_COPY = "tir.ptx_cp_async_bulk_tensor"


def LowerBulkCopies() -> Pass:
    """`ptx_cp_async_bulk_tensor` and mbarriers for the attributes of copies in bulk.

    Raises:
        LoweringError: when it runs, for copies that no loop fills ahead with, and for a loop of such copies inside of another loop.
    """
    return Pass("tir.LowerBulkCopies", _lowered)


def _lowered(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    if not any(isinstance(one, AttrStmt) and one.attr_key in (BULK_COPY, BULK_BARRIERS) for one in walk_statements(func.body)):
        return func
    return func.with_body(_kernel(func.body, ()))


def _kernel(stmt: Stmt, threads: tuple[tuple[Var, int | None], ...]) -> Stmt:
    """A kernel: behind its launch the barriers are made."""
    if not isinstance(stmt, AttrStmt) or stmt.attr_key != "thread_extent" or not isinstance(stmt.node, IterVar):
        return map_stmt(stmt, lambda inner: _kernel(inner, threads))
    if stmt.node.thread_tag.startswith("threadIdx"):
        threads = (*threads, (stmt.node.var, as_int(stmt.value)))
    if any(isinstance(inner, AttrStmt) and inner.attr_key == "thread_extent" for inner in walk_statements(stmt.body)):
        return replace(stmt, body=_kernel(stmt.body, threads))
    lowering = _Lowering([var for var, extent in threads if extent != 1])
    body = lowering.stmt(stmt.body, False)
    if not lowering.barriers:
        return replace(stmt, body=body)
    inits = [Evaluate(device_call("ptx_init_barrier_thread_count", number, 1)) for number in range(lowering.barriers)]
    made = Evaluate(device_call("create_barriers", lowering.barriers))
    sync = Evaluate(device_call("tvm_storage_sync", "shared"))
    return replace(stmt, body=seq(made, lowering.by_first(seq(*inits)), sync, body))


@dataclass
class _Lowering:
    threads: list[Var]
    barriers: int = 0
    first: int = 0  # of the loop's barriers

    def by_first(self, stmt: Stmt) -> Stmt:
        """What one thread of the block does."""
        condition: PrimExpr | None = None
        for var in self.threads:
            one = EQ(var, IntImm(var.dtype, 0))
            condition = one if condition is None else And(condition, one)
        return stmt if condition is None else IfThenElse(condition, stmt, None)

    def stmt(self, stmt: Stmt, repeated: bool) -> Stmt:
        """The statement with instructions; `repeated` inside of a loop."""
        if isinstance(stmt, AttrStmt):
            inner = stmt.body
            if stmt.attr_key == BULK_BARRIERS:
                return self._loop(stmt, repeated)
            if stmt.attr_key == BULK_GROUP:
                return self._group(inner, self._barrier(stmt.value))
            if stmt.attr_key == BULK_WAIT and isinstance(inner, AttrStmt) and inner.attr_key == BULK_PARITY:
                wait = Evaluate(device_call("ptx_wait_barrier", self._barrier(stmt.value), inner.value))
                return seq(wait, self.stmt(inner.body, repeated))
            if stmt.attr_key == BULK_COPY:
                raise LoweringError(
                    "a copy in bulk is waited for by an iteration of a loop that fills ahead: say multi_buffer(n), with n from 2, of its "
                    f"stage, whose loop around it has several iterations\n{stmt}"
                )
        inside = repeated or (isinstance(stmt, For) and bound_tag(stmt) is None and as_int(stmt.extent) != 1)
        return map_stmt(stmt, lambda inner: self.stmt(inner, inside))

    def _loop(self, stmt: AttrStmt, repeated: bool) -> Stmt:
        if repeated:  # its barriers would begin with whatever phase the last round ended with
            raise LoweringError(
                f"a loop that fills ahead by copies in bulk stands in no other loop of its kernel; bind that to blocks\n{stmt}"
            )
        self.first, self.barriers = self.barriers, self.barriers + (as_int(stmt.value) or 0)
        return self.stmt(stmt.body, repeated)

    def _barrier(self, turn: PrimExpr) -> PrimExpr:
        return turn + self.first if self.first else turn

    def _group(self, stmt: Stmt, barrier: PrimExpr) -> Stmt:
        """Copies that one barrier counts, under the condition that they have."""
        if isinstance(stmt, IfThenElse):
            return replace(stmt, then_case=self._group(stmt.then_case, barrier))
        if is_no_op(stmt):
            return stmt
        announced = Evaluate(device_call("ptx_arrive_barrier_expect_tx", barrier, _bytes(stmt)))
        return self.by_first(seq(announced, _told(stmt, barrier)))


def _bytes(stmt: Stmt) -> int:
    """What all copies of a group bring together."""
    match stmt:
        case Evaluate(Call(op=op, args=(Call() as into, *_)) as call) if op == _COPY:
            return (as_int(into.args[3]) or 0) * parse_dtype(call.dtype).itemsize
        case SeqStmt(parts):
            return sum(map(_bytes, parts))
        case For():
            return (as_int(stmt.extent) or 0) * _bytes(stmt.body)
        case AttrStmt():
            return _bytes(stmt.body)
    raise LoweringError(f"all that a loop with copies in bulk fills ahead is copied in bulk, or nothing, not this too:\n{stmt}")


def _told(stmt: Stmt, barrier: PrimExpr) -> Stmt:
    """Copies that tell a barrier."""
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == _COPY:
        into, offset, described, _, *starts = stmt.value.args
        return Evaluate(replace(stmt.value, args=(into, offset, described, barrier, *starts)))
    return map_stmt(stmt, lambda inner: _told(inner, barrier))
