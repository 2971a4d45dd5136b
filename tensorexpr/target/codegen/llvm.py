"""LLVM's own knowledge of targets and CPUs, as the LLVM inside llvmlite has it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ... import processor
from ...errors import TargetError
from ..target import Target, TargetLike

# Architectures that LLVM may have been built with; which of them are there is asked.
_ARCHITECTURES = (
    *("aarch64", "aarch64_be", "aarch64_32", "amdgcn", "arm", "armeb", "avr", "bpfeb", "bpfel", "hexagon", "i386", "lanai"),
    *("loongarch32", "loongarch64", "mips", "mips64", "mips64el", "mipsel", "msp430", "nvptx", "nvptx64", "ppc32", "ppc64", "ppc64le"),
    *("r600", "riscv32", "riscv64", "sparc", "sparcel", "sparcv9", "spirv", "spirv32", "spirv64", "systemz", "thumb", "thumbeb"),
    *("ve", "wasm32", "wasm64", "x86_64", "xcore"),
)
_HELP = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""
_ROW = re.compile(r"^  (\S+)\s+- (.*)$")


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The first number of LLVM's version. LLVM is always there, so `allow_none` has no effect."""
    import llvmlite.binding as llvm

    return int(llvm.llvm_version_info[0])


@lru_cache(maxsize=1)
def llvm_get_targets() -> list[str]:
    """The architectures that LLVM was built with."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()

    def is_there(name: str) -> bool:
        try:
            llvm.Target.from_triple(name)
        except RuntimeError:
            return False
        return True

    return [name for name in _ARCHITECTURES if is_there(name)]


@lru_cache(maxsize=8)
def _help(triple: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The CPUs of a platform, and its features with what LLVM says of each. LLVM prints them, once in the life of a process."""
    made = subprocess.run([sys.executable, "-c", _HELP, triple], capture_output=True, text=True, check=False, timeout=60)
    cpus, features = made.stderr.partition("Available features")[::2]
    if not features:
        raise TargetError(f"LLVM lists no CPUs for triple {triple!r}; architectures that it has: {', '.join(llvm_get_targets())}")
    rows = [match.groups() for match in map(_ROW.match, features.splitlines()) if match]
    return tuple(match[1] for match in map(_ROW.match, cpus.splitlines()) if match), {name: says.rstrip(".") for name, says in rows}


def _target(target: TargetLike | None) -> Target:
    return Target.target_or_current(target)


def llvm_get_cpu_archlist(target: TargetLike | None = None) -> list[str]:
    """The names of CPUs that LLVM knows for the target's platform.

    Raises:
        TargetError: for a platform that LLVM hasn't.
    """
    return list(_help(_target(target).triple)[0])


def llvm_get_cpu_features(target: TargetLike | None = None) -> dict[str, str]:
    """The features of the target's CPU with what LLVM says of each.

    Raises:
        TargetError: for a CPU or a feature that LLVM doesn't know.
    """
    chosen = _target(target)
    described = _help(chosen.triple)[1]
    return {name: described.get(name, "") for name in sorted(chosen.features)}


def llvm_cpu_has_features(cpu_features: str | Sequence[str], target: TargetLike | None = None) -> bool:
    """Whether the target's CPU has all of some features, by LLVM's names."""
    wanted = {cpu_features} if isinstance(cpu_features, str) else set(cpu_features)
    return wanted <= _target(target).features


def target_has_features(cpu_features: str | Sequence[str], target: TargetLike | None = None) -> bool:
    """Whether the target has all of some features, by LLVM's names."""
    return llvm_cpu_has_features(cpu_features, target)


def llvm_get_system_cpu() -> str:
    """LLVM's name of this machine's CPU."""
    return processor.host_cpu()


def llvm_get_system_triple() -> str:
    """LLVM's name of this machine's platform."""
    return processor.host_triple()


def llvm_get_system_x86_vendor() -> str:
    """ "intel", "amd" or "other"; "unknown" where the CPU is no x86."""
    if processor.architecture(processor.host_triple()) != "x86_64":
        return "unknown"
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "other"
    return "intel" if "GenuineIntel" in text else "amd" if "AuthenticAMD" in text else "other"


def llvm_lookup_intrinsic_id(name: str) -> str:
    """What calls of an LLVM intrinsic take for it: here, its name."""
    return name


def llvm_get_intrinsic_name(intrin_id: str) -> str:
    """The name of an LLVM intrinsic by what `llvm_lookup_intrinsic_id` gave."""
    return str(intrin_id)
