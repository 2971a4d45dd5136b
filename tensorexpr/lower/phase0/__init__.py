"""Phase 0: from a schedule to raw loop nests over multi-dimensional buffers.

inline_stages     inlined stages disappear into what reads them
infer_bound       which box of each stage is computed, with what loops;  views: both for people and tests
short_tiles       tiles of two sizes, seen by the stages that are computed inside them
overcompute       which guards at borders can go, as computing past the end does no harm
neutral_terms     which guards at the end of a sum can go, as the terms past it add nothing
rolling_buffer    stages that keep what the next iteration needs again
loop_nest         the loops of one stage, with init, update and guards
tensor_match      what an intrinsic computes against what a region of loops does
tensorize         intrinsics in place of loops
fused_sizes       that fused loops of symbolic extents fit their variables
extern_body       the statement of an extern stage
scan_nest         the first rows of a scan, and its loop over time
post_process      the same from a bare statement, for programs that lower by hand
schedule_to_func  all of it, as a PrimFunc
"""

from .schedule_to_func import schedule_to_func

__all__ = ["schedule_to_func"]
