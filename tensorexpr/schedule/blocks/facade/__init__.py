"""The methods of `tir.Schedule` by subject; each hands its arguments to the primitive of the same name.

base         what they stand on: running an instruction, handles, the module
questions    blocks and loops
samples      numbers that are decided
loops        transformations of loops, and how loops run
notes        annotations
caches       copies of buffers
layouts      layouts of buffers and of blocks, and padding
placement    where blocks are computed
nests        loops and blocks merged, divided and put around others
reductions   reductions in parts
memory       what the memory of buffers is like
"""
