"""The primitives, one file each: a function from program to program, and the instruction that calls it.

queries, sampling                         blocks, loops, decisions
split, fuse, reorder, kinds, annotate     loops;  assert_, what must hold of decisions
cache_read, cache_write, cache_inplace,   copies of buffers
cache_index, reindex, reindex_cache, copy_at
transform_layout, transform_block_layout, layouts, and padding
pad_einsum, decompose_padding
compute_at, compute_inline,                where blocks are computed
reverse_compute_inline,
sample_compute_location
merge, loop_partition, add_unit_loop,     what stands in what
blockize, tensorize, reorder_block_iter_var
decompose_reduction, rfactor              reductions in parts
set_scope, storage_align, set_axis_separator, unsafe_set_dtype, memory of buffers, and what blocks state of it
annotate_buffer_access, unsafe_hide_buffer_access, rolling_buffer
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):  # each registers its instructions
    import_module(f"{__name__}.{_module.name}")
