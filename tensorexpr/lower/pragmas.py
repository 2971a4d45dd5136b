"""Loop annotations that passes read."""

MAX_STEP = "pragma_auto_unroll_max_step"
"""Loops of at most so many statements in total are expanded, in this loop and inside it."""

EXPLICIT = "pragma_unroll_explicit"
"""False: loops under the pragma are not expanded here."""

KEEP_LOOP = "pragma_register_tile"
"""The reduction around a large register tile: only an UNROLLED kind expands it."""

PARTITION_HINT = "pragma_loop_partition_hint"
"""Loop partition also cuts at conditions that are not `likely`, such as those of padding, in this loop and inside it."""

NO_LOAD_MERGE = "pragma_no_load_merge"
"""If the loop is expanded, each of its iterations loads for itself what others load too."""

PARALLEL_FROM = "pragma_parallel_from"
"""A parallel loop of fewer iterations than this, which only a call can tell, runs on the caller's thread."""

MIN_BLOCKS = "pragma_min_blocks"
"""On a GPU so many blocks share a multiprocessor at least: no thread takes more than its part of the registers."""

BULK = "pragma_bulk_copy"
"""The loop copies boxes of a tensor into shared memory, which a GPU's engine does where there is one; 32, 64 or 128 are the bytes of rows
that are swizzled there."""

VECTOR_REDUCTION = "pragma_vector_reduction"
"""A vector loop over a reduction axis: its terms may be combined in any order."""

UNROLL_PRAGMAS = (MAX_STEP, EXPLICIT, KEEP_LOOP, NO_LOAD_MERGE)
