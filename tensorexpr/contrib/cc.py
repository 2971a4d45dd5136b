"""The system's C compiler: objects to shared libraries, archives and programs.

The description that `Module.save("x.o")` writes beside an object (`x.o.json`) goes on to the shared library that is made of it, so
that `runtime.load_module` reads that too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import TensorExprError
from ..runtime.export import describe_linked

_COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
_NM_ROW = re.compile(r"^(?P<name>\S+) (?P<section>[A-Za-z])\b")

Words = Sequence[str] | None


def py_str(x: bytes) -> str:
    """What a program has written, as text."""
    return x.decode()


def get_cc() -> str | None:
    """The path of the system's C++ or C compiler: `CXX`, `CC`, else the first that there is; None without one."""
    for variable in ("CXX", "CC"):
        if os.environ.get(variable):
            return os.environ[variable]
    return next((found for name in _COMPILERS if (found := shutil.which(name))), None)


def _files(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    return [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(file) for file in files]


def _run(words: Sequence[str], cwd: str | None, env: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=env)
    except FileNotFoundError:
        raise TensorExprError(f"there is no program {words[0]!r}; install it, or name another one") from None
    if done.returncode:
        raise TensorExprError(f"`{' '.join(words)}` failed with code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _compiler(cc: str | None) -> list[str]:
    chosen = cc or get_cc()
    if chosen is None:
        raise TensorExprError(f"no C compiler is there: install one of {', '.join(_COMPILERS)}, set CC or CXX, or pass cc=")
    # CC="ccache gcc" is two words
    return chosen.split()


def run_compiler(cc: str | None, words: Sequence[str]) -> str:
    """Run a compiler, the system's by default; what it prints.

    Raises:
        TensorExprError: if there is none, or it fails.
    """
    return _run([*_compiler(cc), *words], None)


def _with_ccache(words: list[str], ccache_env: dict[str, str] | None) -> tuple[list[str], dict[str, str] | None]:
    if ccache_env is None:
        return words, None
    if shutil.which("ccache") is None:
        raise TensorExprError("ccache_env was given, and there is no program ccache")
    return ["ccache", *words], {**os.environ, **ccache_env}


def create_shared(
    output: str | os.PathLike[str],
    objects: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    options: Words = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: dict[str, str] | None = None,
) -> None:
    """Link objects (or C sources) to a shared library.

    Args:
        output: the library to write.
        objects: a file or several.
        options: further words for the compiler.
        cc: the compiler; the system's by default.
        cwd: the folder that it runs in.
        ccache_env: variables for ccache, which is used if this is given.

    Raises:
        TensorExprError: if there is no compiler, or it fails.
    """
    files = _files(objects)
    # libraries come last: a linker looks there for what is missing so far
    words = [*_compiler(cc), "-shared", "-fPIC", "-o", os.fspath(output), *files, *(options or ()), *_parallel(files, cwd)]
    words, env = _with_ccache(words, ccache_env)
    _run(words, cwd, env)
    describe_linked(os.path.join(cwd or "", os.fspath(output)), [os.path.join(cwd or "", file) for file in files])


def _parallel(files: Sequence[str], cwd: str | None) -> list[str]:
    """What objects and C sources with parallel loops need beside themselves."""
    for file in files:
        path = Path(cwd or "", file)
        # names of symbols stand in an object as they are, so nothing needs to read its tables
        sign = {".o": b"GOMP_parallel", ".c": b"#pragma omp"}.get(path.suffix)
        if sign is not None and path.is_file() and sign in path.read_bytes():
            return ["-fopenmp", "-lm"]
    return ["-lm"]


# Programs ask it which file it makes.
create_shared.output_format = "so"  # type: ignore[attr-defined]


def create_executable(
    output: str | os.PathLike[str],
    objects: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    options: Words = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: dict[str, str] | None = None,
) -> None:
    """Link objects (or C sources) to a program; arguments and errors as of `create_shared`."""
    files = _files(objects)
    words, env = _with_ccache([*_compiler(cc), "-o", os.fspath(output), *files, *(options or ()), *_parallel(files, cwd)], ccache_env)
    _run(words, cwd, env)


def create_staticlib(output: str | os.PathLike[str], inputs: Sequence[str | os.PathLike[str]], ar: str | None = None) -> None:
    """Put objects into a static library.

    Args:
        output: the library to write.
        inputs: objects, and `.tar` archives of objects.
        ar: the program that does it, "ar" by default.

    Raises:
        TensorExprError: if there is no such program, or it fails.
    """
    from .tar import normalize_file_list_by_unpacking_tars
    from .utils import tempdir

    with tempdir() as folder:
        files = normalize_file_list_by_unpacking_tars(folder, _files(inputs))
        _run([ar or "ar", "qcs", os.fspath(output), *(file for file in files if file.endswith(".o"))], None)


create_staticlib.output_format = "a"  # type: ignore[attr-defined]


def get_target_by_dump_machine(compiler: str | None) -> Callable[[], str | None]:
    """A function that asks a compiler for the triple that it makes code for."""

    def get_target_triple() -> str | None:
        return _run([*compiler.split(), "-dumpmachine"], None).strip() if compiler else None

    return get_target_triple


def get_global_symbol_section_map(path: str | os.PathLike[str], *, nm: str | None = None) -> dict[str, str]:
    """The global symbols of a library or object, each with the letter that nm gives its section."""
    rows = _run([nm or "nm", "-gP", os.fspath(path)], None).splitlines()
    return {match["name"]: match["section"] for match in map(_NM_ROW.match, rows) if match}


def cross_compiler(
    compile_func: str | Callable[..., Any],
    options: Words = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Words = None,
) -> Callable[..., Any]:
    """A function for `export_library(fcompile=...)` that links with another compiler.

    Args:
        compile_func: the compiler's name, or a function like `create_shared`.
        options: words for it, always.
        output_format: the ending of what it makes, such as "so".
        get_target_triple: a function that says which platform it makes code for.
        add_files: further files to link.
    """
    name = compile_func if isinstance(compile_func, str) else None
    base_options, files = list(options or ()), list(add_files or ())

    def compile_with(output: Any, objects: Any, options: Words = None, **kwargs: Any) -> None:
        words = [*base_options, *(options or ())]
        if name is not None:
            create_shared(output, [*_files(objects), *files], words, cc=name, **kwargs)
        else:
            assert callable(compile_func)
            compile_func(output, [*_files(objects), *files], options=words, **kwargs)

    compile_with.output_format = output_format or getattr(compile_func, "output_format", "so")  # type: ignore[attr-defined]
    compile_with.get_target_triple = get_target_triple or get_target_by_dump_machine(name)  # type: ignore[attr-defined]
    return compile_with
