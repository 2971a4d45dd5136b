"""LLVM through llvmlite: text to verified, optimised machine code, and machine code to callable addresses."""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from .. import processor
from ..codegen.builder import OPEN_TO_VECTORS
from ..codegen.signature import PACKED_SYMBOL
from ..dataclass import dataclass, field
from ..errors import CodegenError, InternalError, TargetError
from ..target import Target
from ..target.chips import chip_of
from ..target.kinds import DEVICE_KINDS, SOURCE_KINDS
from . import openmp
from .elf import undefined_symbols

logger = logging.getLogger(__name__)

# Codegen levels: 1, 2 and 3 run alike on our IR; 2 compiles faster, 0 would cost 3-8x at run time.
_CODEGEN_LEVEL_FAST = 2
_CODEGEN_LEVEL_FINAL = 3
# Without it LLVM passes floats to RISC-V's functions in registers of integers, as no system does.
_ABIS = {"riscv64": "lp64d"}
# A loader keeps 9 KB of every object that it ever loaded, until it goes; it goes when all code of its time is gone.
_LOADS_PER_LOADER = 256
_names = itertools.count()


@dataclass(frozen=True)
class CompiledObject:
    """Machine code as the bytes of an object file, and the seconds that each step took."""

    data: bytes
    timings: Mapping[str, float]


@dataclass(frozen=True)
class LoadedCode:
    """Code in memory. It stays there as long as this object lives; addresses must not be used longer."""

    addresses: Mapping[str, int]
    seconds: float
    _keep: Any = field(repr=False)

    def __getitem__(self, name: str) -> int:
        return self.addresses[name]


def compile_text(text: str, target: Target, opt_level: int = 3) -> CompiledObject:
    """Compile LLVM IR text to an object file.

    Args:
        text: a module in LLVM's assembly language.
        target: the machine to compile for.
        opt_level: of LLVM's IR passes; 0 runs none, in half the time: plain loops are as fast within 10 %, others up to twice as slow.

    Raises:
        InternalError: if LLVM refuses the text; it is saved to a file that the message names.
        TargetError: if the CPU or a feature of the target is unknown to LLVM.
    """
    timings: dict[str, float] = {}
    clock = _Clock(timings)
    module = parse(text, target)
    clock.lap("parse")
    optimise(module, target, opt_level, OPEN_TO_VECTORS in text)
    clock.lap("optimise")
    data = bytes(_machine(target, opt_level).emit_object(module))
    clock.lap("codegen")
    return CompiledObject(data, timings)


def emit_assembly(text: str, target: Target, opt_level: int = 3) -> str:
    """The native assembly of LLVM IR text, optimised as `compile_text` does."""
    module = parse(text, target)
    optimise(module, target, opt_level, OPEN_TO_VECTORS in text)
    return str(_machine(target, opt_level).emit_assembly(module))


def emit_bitcode(text: str, target: Target) -> bytes:
    """LLVM bitcode of LLVM IR text, as it is."""
    return bytes(parse(text, target).as_bitcode())


def llvm_version() -> str:
    """The version of LLVM."""
    return ".".join(map(str, _llvm().llvm_version_info))


def new_context() -> Any:
    """A context of LLVM's, for modules that are to be linked."""
    return _llvm().create_context()


def parse(text: str, target: Target, context: Any = None) -> Any:
    """Parse and verify LLVM IR text, by default in a context of its own, so that nothing stays behind when the module dies."""
    # Outside the try: an unknown CPU is no fault of the text.
    layout = _data_layout(target)
    try:
        module = _llvm().parse_assembly(text, context=context or new_context())
        # The context deletes it: garbage in a ring, such as the frames of an interrupted build, is finalised in any order.
        module._owned = True
        module.triple = _platform(target)[0]
        module.data_layout = layout
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the generated code, saved as {_save(text)}: {error}") from None
    return module


def optimise(module: Any, target: Target, level: int, vectorise: bool = False) -> None:
    """Run LLVM's pipeline on a module in place, without its loop and SLP vectorisers and unrolling: schedules decide on those.

    Args:
        vectorise: run the loop vectoriser nevertheless, for the loops that no schedule has decided on.
    """
    if level == 0:
        return
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.loop_interleaving = vectorise
    options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(_machine(target, level), options)
    builder.getModulePassManager().run(module, builder)


def load_object(data: bytes, names: Iterable[str], symbols: Mapping[str, int] | None = None) -> LoadedCode:
    """Load an object file into this process.

    Args:
        data: its bytes, from `compile_text` for this machine.
        names: the symbols whose addresses are wanted.
        symbols: addresses of what the code calls, besides OpenMP and the C and math libraries.

    Raises:
        CodegenError: if the code calls an external function that nobody provides.
        InternalError: if it lacks one of `names`.
    """
    imports = {**runtime_symbols(), **(symbols or {})}
    # A search of the bytes: symbols are spelled out in the string table, and parsing it takes longer.
    if PACKED_SYMBOL.encode() in data:
        from . import packed  # not at the top: it passes arrays, whose module is loaded with this one

        imports[PACKED_SYMBOL] = packed.trampoline()[0]
    builder = _llvm().JITLibraryBuilder().add_object_img(data).add_current_process()
    for name, address in imports.items():
        builder.import_symbol(name, address)
    wanted = list(names)
    try:
        return _link(builder, wanted)
    except RuntimeError as error:
        # Only now: LLVM doesn't say which symbol it lacks, and the look into the file isn't free.
        missing = [name for name in undefined_symbols(data) if name not in imports and not _in_process(name)]
        if missing:
            raise CodegenError(
                f"{', '.join(wanted)}: the external function {', '.join(missing)} is in no library of this process; "
                "load it with ctypes.CDLL(path, ctypes.RTLD_GLOBAL) first"
            ) from None
        raise InternalError(f"code with {', '.join(wanted)} can't be loaded: {error}") from None


def check_externs(names: Iterable[str], target: Target) -> None:
    """Check that the C functions which code calls by name are there, if it is code for this machine.

    Raises:
        CodegenError: naming those that no library of this process has.
    """
    try:
        check_runs_here(target)
    except TargetError:  # of another machine's libraries nothing is known here
        return
    known = runtime_symbols()
    # As before loading, or `expf` would be reported missing that the loader finds.
    _expose_math_library()
    missing = [name for name in names if name not in known and not _in_process(name)]
    if missing:
        raise CodegenError(
            f"the external function {', '.join(missing)} is in no library of this process; "
            "load it with ctypes.CDLL(path, ctypes.RTLD_GLOBAL) first"
        )


def check_runs_here(target: Target) -> None:
    """Check that this machine can run code of a target.

    Raises:
        TargetError: if it is another platform, a CPU with features that this one lacks, or a GPU that isn't here.
    """
    here = Target("llvm")
    if target == here or target.kind in SOURCE_KINDS:  # what a C compiler made of source says itself where it can be loaded
        return
    if target.kind in DEVICE_KINDS:
        from .cuda_driver import check_device

        check_device(str(target.attrs.get("arch", "")))
        return
    target.check_built()
    if target.arch != here.arch:
        raise TargetError(
            f"code for {target.arch} can't run on this {here.arch} machine: save or export it for one that can, or build for this one, llvm"
        )
    missing = sorted(target.features - here.features)
    if missing:
        raise TargetError(
            f"code for {target} needs {', '.join(missing)}, which this machine ({here.mcpu}) lacks; build it for its CPU, "
            f'"llvm -mcpu={here.mcpu}"'
        )
    if not target.runs_here:
        raise TargetError(
            f"code for {target} needs registers of {target.sve_bits} bits, those of this machine have {processor.host_sve_bits()}"
        )


# One runtime per process: code loaded later must join the same team of threads.
@lru_cache(maxsize=1)
def runtime_symbols() -> Mapping[str, int]:
    """The addresses of what generated code calls for threads: of an OpenMP runtime, or of our serial stand-ins."""
    found = openmp.runtime()
    if found is not None:
        return found.symbols
    return _serial_runtime().addresses


@lru_cache(maxsize=1)
def _serial_runtime() -> LoadedCode:
    data = compile_text(openmp.SERIAL_IR, Target("llvm"), 0).data
    return _link(_llvm().JITLibraryBuilder().add_object_img(data), openmp.SYMBOLS)


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """llvmlite's binding, initialised."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()  # modules for other machines are made here too
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # imported code may hold assembly
    llvm.set_option("", "--nvptx-short-ptr")  # pointers to shared memory take 32 bits, one register
    return llvm


def _link(builder: Any, names: Iterable[str]) -> LoadedCode:
    """Load what the builder holds; RuntimeError if it can't be linked."""
    start = time.perf_counter()
    wanted = list(names)
    for name in wanted:
        builder.export_symbol(name)
    number = next(_names)
    # `next` of a counter is atomic, so threads that load at once get different numbers.
    loader = _loader(number // _LOADS_PER_LOADER)
    tracker = builder.link(loader, f"tensorexpr{number}")  # no two libraries of a loader share a name
    return LoadedCode({name: tracker[name] for name in wanted}, time.perf_counter() - start, (tracker, loader))


# One entry: a new generation drops the old loader, which its loaded code alone keeps from then on.
@lru_cache(maxsize=1)
def _loader(generation: int) -> Any:
    """The present loader. RuntimeDyld loads in 0.08 ms where JITLink takes 0.18."""
    logger.debug("loader %d", generation)
    _expose_math_library()
    return _llvm().create_lljit_compiler(use_jit_link=False, suppress_errors=True)


@lru_cache(maxsize=1)
def _expose_math_library() -> None:
    """Make the functions of libm visible to loaded code, as Python may have loaded it for itself alone."""
    try:
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        logger.debug("the math library is part of the C library here: %s", error)


def _in_process(name: str) -> bool:
    # `CDLL(None)` is all that is visible globally; hasattr is a dlsym.
    return hasattr(ctypes.CDLL(None), name)


def _machine(target: Target, opt_level: int) -> Any:
    # Never 0, which would cost more at run time than it saves here.
    codegen_level = _CODEGEN_LEVEL_FINAL if opt_level >= 3 else _CODEGEN_LEVEL_FAST
    return _target_machine(*_platform(target), codegen_level)


def _platform(target: Target) -> tuple[str, str, str]:
    """LLVM's names of the platform, the processor, and what is said of features."""
    if target.kind == "cuda":
        return "nvptx64-nvidia-cuda", target.arch, f"+ptx{chip_of(target.arch).ptx}"
    return target.triple, target.mcpu, target.feature_string


@lru_cache(maxsize=64)
def _target_machine(triple: str, mcpu: str, features: str, codegen_level: int) -> Any:
    llvm = _llvm()
    try:
        description = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise TargetError(f"target triple {triple!r}: {error}") from None
    # "pic": the same object may end in a shared library.
    options = {"opt": codegen_level, "reloc": "pic", "codemodel": "default", "abiname": _ABIS.get(triple.partition("-")[0], "")}
    return description.create_target_machine(cpu=mcpu, features=features, **options)


@lru_cache(maxsize=64)
def _data_layout(target: Target) -> str:
    # Asked for its features, a target with an unknown CPU raises; LLVM would take a generic one without a word.
    logger.debug("%s: %d CPU features", target, len(target.features))
    return str(_machine(target, 0).target_data)


def _save(text: str) -> str:
    import tempfile  # not worth its time where nothing goes wrong

    handle, path = tempfile.mkstemp(prefix="tensorexpr-", suffix=".ll")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return path


class _Clock:
    """Laps of wall time, written into a dict."""

    def __init__(self, laps: dict[str, float]) -> None:
        self._laps = laps
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Note the seconds since the last lap."""
        now = time.perf_counter()
        self._laps[name] = now - self._last
        self._last = now
