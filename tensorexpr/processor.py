"""Facts about processors: usable cores, caches, and which features LLVM gives a named CPU."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from .errors import TargetError

# What vector code generation may depend on; other features never change what we emit.
VECTOR_FEATURES = {
    "x86_64": (
        *("sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "gfni", "avxvnni"),
        *("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16", "avx512fp16", "avx512ifma"),
        *("avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq", "avxvnniint8", "amx-tile", "amx-int8", "amx-bf16"),
    ),
    "aarch64": ("neon", "fp-armv8", "fullfp16", "dotprod", "i8mm", "bf16", "rdm", "lse", "crc", "aes", "sha2", "sve", "sve2", "sme"),
    "riscv64": (
        *("m", "a", "f", "d", "c", "v", "zba", "zbb", "zfhmin", "zvfh", "zvfhmin", "zvfbfmin"),
        *("zvl128b", "zvl256b", "zvl512b"),
    ),
}
# Every CPU of the architecture has it; LLVM gives it to no CPU it doesn't know.
_BASE_FEATURE = {"x86_64": "fxsr", "aarch64": "neon", "riscv64": "i"}
_BASE_CPU = {"x86_64": "x86-64", "aarch64": "generic", "riscv64": "generic-rv64"}
# Without it LLVM aborts the process on a CPU name it doesn't know, before we can say so.
_FORCED_FEATURE = {"x86_64": "+64bit", "aarch64": "", "riscv64": "+64bit"}
# Features that tell the family of a core, and the first CPU that had them.
_FIRST_WITH = {"amx-tile": "sapphirerapids"}
# Of Linux (linux/prctl.h); the length is in bytes.
_GET_SVE_LENGTH, _SVE_LENGTH_MASK = 51, 0xFFFF
_CACHE = re.compile(r"([1-9][0-9]{0,11})([KMG]?)/([1-9][0-9]{0,3})")
_CACHE_DIR = Path("/sys/devices/system/cpu")
_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def usable_cores() -> int:
    """The cores this process may run on, and no more than OMP_NUM_THREADS when that is set."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(wanted)) if wanted.isdigit() and int(wanted) > 0 else cores


@lru_cache(maxsize=1)
def caches() -> dict[int, tuple[int, int]]:
    """(bytes, ways) of the data caches that one core sees, by level; those that the system tells of."""
    found = {}
    for index in sorted(_CACHE_DIR.glob(f"cpu{_first_cpu()}/cache/index*")):
        names = ("type", "level", "size", "ways_of_associativity")
        try:
            kind, level, size, ways = ((index / name).read_text().strip() for name in names)
            known = parse_cache(f"{size}/{ways}")
            if kind in ("Data", "Unified") and known is not None:
                found[int(level)] = known
        except (OSError, ValueError):  # some virtual machines leave files out, or empty
            continue
    return found


def parse_cache(text: str) -> tuple[int, int] | None:
    """Bytes and ways of a cache that is written as "32K/8"; None for any other text."""
    match = _CACHE.fullmatch(text)
    return None if match is None else (int(match[1]) * _SIZE_UNITS.get(match[2], 1), int(match[3]))


def size_text(size: int) -> str:
    """Bytes with the largest unit that divides them: 32K, 1280K, 8M."""
    unit = next((name for name, factor in reversed(_SIZE_UNITS.items()) if size % factor == 0), "")
    return f"{size // _SIZE_UNITS.get(unit, 1)}{unit}"


def _first_cpu() -> int:
    return min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


@lru_cache(maxsize=1)
def host_triple() -> str:
    """LLVM's name of the platform this process runs on."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


@lru_cache(maxsize=1)
def host_cpu() -> str:
    """LLVM's name of this machine's CPU, or of the first that had its features."""
    import llvmlite.binding as llvm

    return _unmasked(str(llvm.get_host_cpu_name()), host_triple(), host_features())


def _unmasked(name: str, triple: str, features: frozenset[str]) -> str:
    """The CPU of a name, or the first with a feature that the named one lacks: a virtual machine may show another model's number."""
    shown = features_of(triple, name, "", ()) if features & _FIRST_WITH.keys() else features
    return next((cpu for feature, cpu in _FIRST_WITH.items() if feature in features - shown), name)


@lru_cache(maxsize=1)
def host_feature_string() -> str:
    """Every feature this machine has or lacks, as LLVM's `+a,-b` list. A virtual machine may hide features of its CPU."""
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_features().flatten())


def host_features() -> frozenset[str]:
    """The features that this machine has."""
    return _present(host_feature_string())


@lru_cache(maxsize=1)
def _present(features: str) -> frozenset[str]:
    return frozenset(name[1:] for name in features.split(",") if name.startswith("+"))


def host_sve_bits() -> int:
    """Bits of SVE's registers in this process; 0 if there are none."""
    if "sve" not in host_features():
        return 0
    found = ctypes.CDLL(None).prctl(_GET_SVE_LENGTH, 0, 0, 0, 0)
    return 0 if found < 0 else 8 * (found & _SVE_LENGTH_MASK)


def architecture(triple: str) -> str:
    """ "x86_64", "aarch64" or "riscv64".

    Raises:
        TargetError: for any other architecture.
    """
    name = triple.split("-")[0]
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)
    if name not in _BASE_FEATURE:
        raise TargetError(f"target triple {triple!r}: no code generation for {name!r}; known architectures: {', '.join(_BASE_FEATURE)}")
    return name


def base_cpu(triple: str) -> str:
    """The CPU whose features every CPU of a platform has."""
    return _BASE_CPU[architecture(triple)]


@lru_cache(maxsize=64)
def features_of(triple: str, mcpu: str, given: str, changes: tuple[str, ...]) -> frozenset[str]:
    """The features of a CPU as LLVM sees it: vector features of `mcpu`, those of the list `given`, then `changes` (`+a`, `-b`).

    LLVM has no query for this. But it inlines a function only into callers that have all features of the
    callee, so we let it inline one function per feature and see which calls are gone.

    Raises:
        TargetError: for a CPU or a change that LLVM doesn't know.
    """
    arch = architecture(triple)
    forced, first = _FORCED_FEATURE[arch], _BASE_FEATURE[arch]
    if arch == "riscv64" and ("-v" in changes or ("+v" not in changes and any(change.startswith("+zv") for change in changes))):
        raise TargetError("mattr: features that begin with zv go with +v, and -v takes V from no CPU: LLVM would end the process")
    told = ",".join(part for part in (forced, given, *changes) if part)
    known = {"base": (forced, f"{forced},+{first}")}
    # A name that is no feature changes nothing: the call is inlined even when the caller is told not to have it.
    for change in changes:
        name, base = change[1:], f"{forced}{_company(change[1:])}"
        known[f"?{name}"] = (f"{base},-{name}", f"{base},-{name},+{name}")
    with _without_complaints("is not a recognized"):
        inlined = _inlined_probes(triple, mcpu, known)
    if "base" not in inlined:
        raise TargetError(f"mcpu {mcpu!r} is no {arch} CPU that LLVM knows; this machine's is {host_cpu()!r}")
    unknown = sorted(name[1:] for name in inlined if name.startswith("?"))
    if unknown:
        some = ", ".join(VECTOR_FEATURES[arch])
        raise TargetError(f"mattr: {', '.join(unknown)} is no feature of {arch} that LLVM knows; some that it knows: {some}")
    named = (part[1:] for part in (*given.split(","), *changes) if part.startswith("+"))
    probes = {name: (told, f"{told}{_company(name)},+{name}") for name in sorted({*VECTOR_FEATURES[arch], *named})}
    return frozenset(_inlined_probes(triple, mcpu, probes))


def _company(name: str) -> str:
    """What LLVM wants beside a feature, or it aborts the process: lengths of RISC-V's vectors are nothing without these."""
    return ",+v" if name.startswith("zv") else ""


@contextmanager
def _without_complaints(about: str) -> Iterator[None]:
    """Leaves out the lines about something that LLVM itself writes to the error stream; an exception says the same once."""
    sys.stderr.flush()
    real = os.dup(2)
    import tempfile

    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(real, 2)
            os.close(real)
            caught.seek(0)
            for line in caught.readlines():
                if about.encode() not in line:
                    os.write(2, line)


def _inlined_probes(triple: str, mcpu: str, probes: dict[str, tuple[str, str]]) -> set[str]:
    """Which probes (name -> features of the caller, of the callee) LLVM inlines on this CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    lines = [f'target triple = "{triple}"']
    for number, (caller, callee) in enumerate(probes.values()):
        attributes = [f'"target-cpu"="{mcpu}" "target-features"="{features}"' for features in (callee, caller)]
        lines.append(f"define internal i32 @p{number}(i32 %x) {attributes[0]} {{\n%y = add i32 %x, {number + 1}\nret i32 %y }}")
        lines.append(f"define i32 @c{number}(i32 %x) {attributes[1]} {{\n%y = call i32 @p{number}(i32 %x)\nret i32 %y }}")
    module = llvm.parse_assembly("\n".join(lines))
    machine = llvm.Target.from_triple(triple).create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return {name for number, name in enumerate(probes) if f"@p{number}(" not in str(module.get_function(f"c{number}"))}
