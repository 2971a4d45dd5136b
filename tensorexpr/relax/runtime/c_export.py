"""Networks for C programs: a library, object or C text with everything in it, weights too, and a header.

    int32_t net_run(const void *const *inputs, void *const *outputs);

What it consists of is that of `export_library`: objects of kernels and of the stretch that calls them, and a few lines of C around.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, TensorExprError
from ...runtime import export
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from .c_text import c_network
from .executable import Executable
from .library import Constants, written_objects
from .native import constants_name, stretch_name
from .plain import PlainNetwork, plain_network


def export_c(executable: Executable, file_name: str | os.PathLike[str], name: str | None = None, options: Sequence[str] = ()) -> str:
    """Write a network as a library, object or C text for C programs, and its header beside it.

    Args:
        executable: what `relax.build` returns.
        file_name: "net.so"; "net.o", which is linked with -lm, and with -fopenmp where kernels run on several threads; or, of an
            executable for target c, "net.c", which any compiler of C99 takes, with -fwrapv where it knows that word.
        name: what functions and header are called; by default that of the file.
        options: words for the C compiler.

    Returns:
        The header's path.

    Raises:
        ArgumentError: for another ending, or a name that C has no place for.
        TensorExprError: for a network of open shapes or control flow, without a C compiler, or if it fails.
    """
    path = Path(file_name)
    title = check_c_name(path, name, executable.target)
    plain = plain_network(executable)
    if plain is None:
        raise TensorExprError(f"{path}: C can't run this network: it has {_not_plain(executable)}")
    if len({plain.stretch.buffers[one.buffer].place for one in plain.results}) != len(plain.results):
        raise TensorExprError(f"{path}: the network returns one tensor twice, which a C program gets in one array; return it once")
    if path.suffix == ".c":
        export.write_file(str(path), c_network(executable, plain, title).encode())
    else:
        _link(executable, plain, path, title, options)
    header = path.with_suffix(".h")
    header.write_text(_header(plain, title))
    return str(header)


def _link(executable: Executable, plain: PlainNetwork, path: Path, title: str, options: Sequence[str]) -> None:
    """Write a library or an object."""
    kernels = [] if executable.kernels is None else executable.kernels.objects(str(path))
    constants = Constants()
    for one in plain.stretch.constants:
        constants.number(one)
    compiler = export.c_compiler(str(path), {}, executable.target).split()
    with tempfile.TemporaryDirectory(prefix="tensorexpr-") as folder:
        weights, source, glue = (os.path.join(folder, part) for part in ("weights.bin", "glue.c", "glue.o"))
        with open(weights, "wb") as file:
            constants.write(file)
        Path(source).write_text(_source(plain, title, constants, weights))
        _run([*compiler, "-O1", "-fPIC", "-c", source, "-o", glue, *options], path)
        objects = [*written_objects(executable, kernels, folder), glue]
        # Programs may have several networks, whose kernels and stretches have names in common: the first one's would be called.
        is_elf = "linux" in executable.target.triple
        if path.suffix == ".so":
            shown = os.path.join(folder, "shown.map")
            Path(shown).write_text(f"{{ global: {title}_run; local: *; }};\n")
            script = [f"-Wl,--version-script={shown}"] if is_elf else []
            export.link_objects(executable.target, objects, str(path), None, {"options": [*options, *script]})
        else:
            _run([*compiler, "-nostdlib", "-r", "-o", str(path), *objects], path)
            if is_elf:
                _run([_objcopy(compiler, path), f"--keep-global-symbol={title}_run", str(path)], path)


def _objcopy(compiler: Sequence[str], path: Path) -> str:
    """The program that hides symbols of objects, which comes with linkers.

    Raises:
        TensorExprError: if there is none.
    """
    beside = re.sub(r"(gcc|cc|clang)(-[\d.]+)?$", "objcopy", os.path.basename(compiler[-1]))
    names = [beside, "objcopy", "llvm-objcopy"]
    for name in names:
        if found := shutil.which(name):
            return found
    raise TensorExprError(f"{path}: an object hides its kernels from other networks by objcopy, and there is none; write a library, x.so")


def check_c_name(file_name: str | os.PathLike[str], name: str | None = None, target: Target | None = None) -> str:
    """What functions and header of a library for C programs are called: as the file is, or `name`.

    Args:
        file_name: of the library.
        name: another name.
        target: what the network is for.

    Raises:
        ArgumentError: for another ending than x.so, x.o and x.c, a name that C has no place for, or a text of another target than c.
    """
    path = Path(file_name)
    title = path.stem if name is None else name
    if path.suffix not in (".so", ".o", ".c"):
        raise ArgumentError(f"what C programs use is a library x.so, an object x.o or a text x.c, not {path}: name one of these")
    if path.suffix == ".c" and target is not None and target.kind.name != "c":
        raise ArgumentError(f"{path}: kernels for target {target.kind} are machine code; C text is built for target c, --target c")
    if not re.fullmatch(r"[A-Za-z_]\w*", title):
        raise ArgumentError(f"{path}: {title!r} is no name of C, which functions get of it: another file, or name= of export_c, gives one")
    return title


def _not_plain(executable: Executable) -> str:
    """Why one native function can't compute a network, and what to do about it."""
    func = executable.functions.get("main")
    infos = {param.name_hint: param.struct_info for param in (func.params if func is not None else ())}
    if found := {name: info for name, info in infos.items() if any(as_int(one) is None for one in getattr(info, "extents", None) or ())}:
        shown = ", ".join(f"{name}: {info}" for name, info in found.items())
        return f"open shapes ({shown}); build it for known ones: --input-shapes, shape_dict="
    return "control flow, calls of Python between kernels, or results that are inputs; export_library, compile without -f c, writes these"


def _run(words: Sequence[str], path: Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TensorExprError(f"{path}: `{' '.join(words)}` failed: {done.stderr.strip()}")


def _source(plain: PlainNetwork, name: str, constants: Constants, weights: str) -> str:
    """The C around: addresses of constants, and words for the stretch."""
    stretch, entry, table = plain.stretch, stretch_name(plain.stretch.number), constants_name(plain.stretch.number)
    count = len(stretch.constants)
    places = [stretch.buffers[one.buffer].place for one in plain.results]
    lines = ["#include <stdint.h>", f"int32_t {entry}(const uint64_t *words);"]
    if count:
        offsets = ", ".join(str(constants.places[constants.number(one)]) for one in stretch.constants)
        lines += [
            f"extern void *{table}[{count}];",
            f"extern const unsigned char {name}_weights[];",
            f'__asm__(".section .rodata\\n.balign 64\\n{name}_weights:\\n.incbin \\"{weights}\\"\\n.previous\\n");',
            f"static const uint64_t offsets[{count}] = {{{offsets}}};",
        ]
    words = [f"(uint64_t)inputs[{n}]" for n in range(len(stretch.inputs))]
    words += [f"(uint64_t)outputs[{places.index(n)}]" for n in range(len(stretch.outputs))]
    lines += [f"int32_t {name}_run(const void *const *inputs, void *const *outputs) {{"]
    if count:
        # Threads may all do it: each writes the same addresses.
        cell = f"__atomic_store_n(&{table}[n], (void *)({name}_weights + offsets[n]), __ATOMIC_RELAXED)"
        lines.append(f"  for (int n = 0; n < {count}; ++n) {cell};")
    lines += [f"  const uint64_t words[] = {{{', '.join(words)}}};", f"  return {entry}(words);", "}", ""]
    return "\n".join(lines)


_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t"}


def _type(dtype: str) -> str:
    return _TYPES.get(dtype) or (f"{dtype}_t" if parse_dtype(dtype).is_int else "void")


def _header(plain: PlainNetwork, name: str) -> str:
    def line(n: int, title: str, shape: tuple[int, ...], dtype: str) -> str:
        return f" *   [{n}] {title}: {_type(dtype)}{''.join(f'[{extent}]' for extent in shape)} ({dtype})"

    stretch, guard = plain.stretch, f"{name.upper()}_H"
    inputs = [line(n, key, one.shape, one.dtype) for n, (key, (_, _, one)) in enumerate(zip(plain.names, stretch.inputs, strict=True))]
    outputs = [line(n, f"output_{n}", one.shape, one.dtype) for n, one in enumerate(plain.results)]
    return "\n".join([
        f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        f"#define {name.upper()}_INPUTS {len(inputs)}", f"#define {name.upper()}_OUTPUTS {len(outputs)}", "",
        "/* Run the network. Arrays are compact, and outputs at 64 bytes.", " * inputs:", *inputs, " * outputs:", *outputs,
        " * Returns 0; -2 if there is no memory; another number if a kernel failed. Threads may call it at one time.",
        " *", *_example(plain, name), " */",
        f"int32_t {name}_run(const void *const *inputs, void *const *outputs);", "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", "",
    ])  # fmt: skip


def _example(plain: PlainNetwork, name: str) -> list[str]:
    """A program that runs the network, as lines of a comment: a start for whoever reads the header."""
    tensors = {f"in{n}": one for n, (_, _, one) in enumerate(plain.stretch.inputs)}
    results = {f"out{n}": one for n, one in enumerate(plain.results)}
    kinds = {key: _type(one.dtype).replace("void", "uint8_t") for key, one in {**tensors, **results}.items()}
    arrays = [f"{kinds[key]} {key}[{max(1, math.prod(one.shape))}]" for key, one in {**tensors, **results}.items()]
    return [
        f" *   #include \"{name}.h\"", *(f" *   static _Alignas(64) {one};" for one in arrays), " *   int main(void) {",
        f" *     const void *inputs[] = {{{', '.join(tensors) or 0}}};", f" *     void *outputs[] = {{{', '.join(results) or 0}}};",
        f" *     return {name}_run(inputs, outputs);", " *   }", f" * cc main.c ./{name}.so -o main (of .o and .c with -fopenmp -lm)",
    ]  # fmt: skip


__all__: list[Any] = ["export_c"]
