"""Phase 0: from a schedule to raw loop nests over multi-dimensional buffers.

inline_stages     inlined stages disappear into what reads them
infer_bound       which box of each stage is computed, with what loops
loop_nest         the loops of one stage, with init, update and guards
schedule_to_func  all of it, as a PrimFunc
"""

from .schedule_to_func import schedule_to_func

__all__ = ["schedule_to_func"]
