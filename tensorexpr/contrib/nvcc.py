"""What GPUs of a compute capability have, and NVIDIA's compiler of a CUDA text where it is installed.

Capabilities are written "major.minor", as in "8.0". Without one it is that of the target in scope; of a device that isn't there it is None.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

from ..errors import TensorExprError
from ..target import Target
from .utils import tempdir

_ARCH = re.compile(r"sm_(\d+)(\d)(\w*)")
_USUAL_FOLDER = Path("/usr/local/cuda")
_FORMATS = ("cubin", "ptx", "fatbin")


def find_cuda_path() -> str:
    """The folder that CUDA is installed in.

    Raises:
        RuntimeError: if there is none.
    """
    named = os.environ.get("CUDA_PATH")
    if named:
        return named
    compiler = shutil.which("nvcc")
    if compiler is not None:
        # resolved: what stands on the PATH may be a link into CUDA's folder
        return str(Path(compiler).resolve().parents[1])
    if (_USUAL_FOLDER / "bin" / "nvcc").exists():
        return str(_USUAL_FOLDER)
    raise RuntimeError("CUDA isn't found: there is no nvcc on the PATH; set CUDA_PATH to the folder that it is installed in")


def get_cuda_version(cuda_path: str | None = None) -> tuple[int, ...]:
    """The version of CUDA, as in (12, 4, 131).

    Raises:
        RuntimeError: if there is none, or its compiler says no version.
    """
    compiler = Path(cuda_path or find_cuda_path()) / "bin" / "nvcc"
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\bV(\d+(?:\.\d+)+)", said)
    if found is None:
        raise RuntimeError(f"{compiler} --version says no version: {said[:200]!r}")
    return tuple(map(int, found[1].split(".")))


def compile_cuda(
    code: str,
    target_format: str = "ptx",
    arch: str | list[str] | None = None,
    options: str | list[str] | None = None,
    path_target: str | None = None,
) -> bytearray:
    """A text of CUDA, compiled.

    Args:
        code: the text.
        target_format: "ptx", "cubin" or "fatbin".
        arch: such as "sm_80", or flags; by default that of the target in scope.
        options: more arguments of nvcc.
        path_target: where the result is written too.

    Raises:
        ValueError: for another format, or where nothing says the architecture.
        RuntimeError: if CUDA isn't installed.
        TensorExprError: with what nvcc says about the text.
    """
    if target_format not in _FORMATS:
        raise ValueError(f'compile_cuda makes "ptx", "cubin" or "fatbin", not {target_format!r}')
    if arch is None:
        arch = "sm_" + "".join(get_target_compute_version(Target.current(allow_none=True)).split("."))
    compiler = Path(find_cuda_path()) / "bin" / "nvcc"
    folder = tempdir()
    source, made = folder.relpath("code.cu"), path_target or folder.relpath(f"code.{target_format}")
    Path(source).write_text(code)
    flags = arch if isinstance(arch, list) else ["-arch", arch]
    more = [options] if isinstance(options, str) else options or []
    words: list[str | Path] = [compiler, f"--{target_format}", "-O3", *flags, *more, "-o", made, source]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TensorExprError(f"nvcc refuses the text:\n{done.stdout}{done.stderr}")
    return bytearray(Path(made).read_bytes())


def find_libdevice_path(arch: str) -> str:
    """The file with NVIDIA's functions on floats, as LLVM bitcode.

    Raises:
        RuntimeError: if there is none.
    """
    folder = Path(find_cuda_path()) / "nvvm" / "libdevice"
    found = sorted(folder.glob("libdevice*.bc")) if folder.is_dir() else []
    if not found:
        raise RuntimeError(f"there is no libdevice for {arch} in {folder}; install CUDA's toolkit, or set CUDA_PATH to its folder")
    return str(found[-1])


callback_libdevice_path = find_libdevice_path


def get_target_compute_version(target: Target | None = None) -> str:
    """The capability that a target is for: "8.0" of "cuda -arch=sm_80"; by default of the target in scope.

    Raises:
        ValueError: if it says none.
    """
    chosen = target or Target.current(allow_none=True)
    found = _ARCH.fullmatch(chosen.arch) if chosen is not None else None
    if found is None:
        raise ValueError("no CUDA architecture is known, as there is no such device here; add -arch=sm_80 or the like to the target")
    # "9.0.a" of sm_90a: features of that architecture alone
    return ".".join(part for part in found.groups() if part)


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """(7, 5) of "7.5".

    Raises:
        RuntimeError: for other texts.
    """
    found = re.match(r"(\d+)\.(\d+)", str(compute_version))
    if found is None:
        raise RuntimeError(f'{compute_version!r} is no compute capability; they are written as in "8.0"')
    return int(found[1]), int(found[2])


def have_fp16(compute_version: str) -> bool:
    """Whether GPUs of a capability compute in float16."""
    return parse_compute_version(compute_version) >= (5, 3)


def have_int8(compute_version: str) -> bool:
    """Whether they have products of four int8 at once."""
    return parse_compute_version(compute_version)[0] >= 6


def have_tensorcore(compute_version: str | None = None, target: Target | None = None) -> bool:
    """Whether they have tensor cores; without a capability that of a target, and False where none is known."""
    if compute_version is None:
        chosen = target or Target.current(allow_none=True)
        if chosen is None or not _ARCH.fullmatch(chosen.arch):
            warnings.warn("no tensor cores: no CUDA architecture is known; add -arch=sm_80 or the like to the target", stacklevel=2)
            return False
        compute_version = get_target_compute_version(chosen)
    return parse_compute_version(compute_version)[0] >= 7


def have_cudagraph() -> bool:
    """Whether the CUDA that is installed has graphs."""
    try:
        return get_cuda_version()[0] >= 10
    except (RuntimeError, OSError):
        return False


def have_bf16(compute_version: str) -> bool:
    """Whether they compute in bfloat16."""
    return parse_compute_version(compute_version)[0] >= 8


def have_fp8(compute_version: str) -> bool:
    """Whether they compute in float8."""
    return parse_compute_version(compute_version) >= (8, 9)
