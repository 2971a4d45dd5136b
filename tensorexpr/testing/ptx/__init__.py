"""PTX run without a GPU: `emulator()` is a device that interprets it in NumPy and finds races, wild accesses and lost barriers.

emulator   the device: arrays, launches, counters
machine    threads of a block: paths, barriers
compute, alu, access, warps, warpgroups, wmma, bulk_copies    what instructions do
barriers   mbarriers, and what they put in order
memory     arrays of a launch, shared memory that is watched
poison     values that nobody may use
units      what matrix units see of memory and registers
parser     PTX text as instructions
faults     what is found wrong, one class for each kind
assembler  registers and spills by the vendor's assembler
loops      instructions of a text's loops
"""

from .assembler import Usage, assembled, ptxas
from .emulator import Emulator, emulator
from .faults import (
    BarrierMisuse,
    DataRace,
    Deadlock,
    DivergentBarrier,
    MisalignedAccess,
    MissingFence,
    OutOfBounds,
    PtxFault,
    Trapped,
    UnfinishedCopy,
    UnfinishedProduct,
    UninitialisedRead,
    UnknownInstruction,
)
from .loops import longest_loop
from .memory import Counters

__all__ = [
    "BarrierMisuse",
    "Counters",
    "DataRace",
    "Deadlock",
    "DivergentBarrier",
    "Emulator",
    "MisalignedAccess",
    "MissingFence",
    "OutOfBounds",
    "PtxFault",
    "Trapped",
    "UnfinishedCopy",
    "UnfinishedProduct",
    "UninitialisedRead",
    "UnknownInstruction",
    "Usage",
    "assembled",
    "emulator",
    "longest_loop",
    "ptxas",
]
