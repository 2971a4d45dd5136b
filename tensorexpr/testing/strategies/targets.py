"""Random targets: registers of 128 to 512 bits, 16 or 32 of them, with and without masks and fused multiply-adds, on some cores."""

from __future__ import annotations

from hypothesis import strategies as st

from ...target import Target

_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
# CPUs that differ in what code is made for them, with the widths of vectors that they have.
_CPUS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    (_X86, "x86-64", (128,)),
    (_X86, "x86-64-v2", (128,)),
    (_X86, "haswell", (256, 128)),
    (_X86, "znver3", (256, 128)),
    (_X86, "skylake-avx512", (512, 256, 128)),
    (_X86, "znver5", (512, 256, 128)),
    (_ARM, "neoverse-n1", (128,)),
    (_ARM, "apple-m1", (128,)),
)
_CORES = (1, 2, 3, 7)


@st.composite
def targets(draw: st.DrawFn, runnable: bool = False) -> Target:
    """A CPU that code is generated for, with a width of vectors and a number of cores; the first to draw is this machine.

    Args:
        runnable: leave out what this machine can't run.
    """
    cores = draw(st.sampled_from(_CORES))
    here = Target(f"llvm -num-cores={cores}")
    found = [here]
    for triple, cpu, widths in _CPUS:
        made = (Target(f"llvm -mtriple={triple} -mcpu={cpu} -vector-width={width} -num-cores={cores}") for width in widths)
        found += [one for one in made if not runnable or one.runs_here]
    return draw(st.sampled_from(found))
