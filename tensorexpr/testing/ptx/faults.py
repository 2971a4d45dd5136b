"""What the interpreter of PTX finds wrong with a program, one class for each kind."""

from __future__ import annotations

from ...errors import TensorExprError


class PtxFault(TensorExprError):
    """A program that does what no program may do; the message says where, by kernel, line of the PTX text and threads."""


class DataRace(PtxFault):
    """Two threads of a block access one place of shared memory between two barriers, and one of them writes."""


class OutOfBounds(PtxFault):
    """An access outside the arrays of the launch, or outside shared or local memory."""


class MisalignedAccess(PtxFault):
    """An access at an address that isn't a multiple of its size."""


class UninitialisedRead(PtxFault):
    """A read of memory or of a register that nothing has written."""


class UnfinishedCopy(PtxFault):
    """An access to shared memory for which an asynchronous copy is under way that nobody has waited for, or the end of its block."""


class MissingFence(PtxFault):
    """Matrix units read shared memory, or add to registers, that threads accessed before with no fence between."""


class UnfinishedProduct(PtxFault):
    """An access to registers that an asynchronous product still adds to, or a write to shared memory that it still reads."""


class DivergentBarrier(PtxFault):
    """A barrier that some threads of the block, or an exchange that some threads of the warp, never reach."""


class Deadlock(PtxFault):
    """Threads wait at an mbarrier for arrivals or bytes that never come."""


class BarrierMisuse(PtxFault):
    """An mbarrier that nobody has made, that is made while it is in use, or at which more threads arrive than it waits for."""


class Trapped(PtxFault):
    """The program stopped itself: an assertion failed."""


class UnknownInstruction(PtxFault):
    """An instruction that the interpreter doesn't know."""
