"""The door of C text: functions in, the text of one C file and the functions' signatures out.

Each function has the packed signature that TVM gives its functions: arguments come as values with type codes, arrays as DLPack's
tensors. The file needs nothing but the standard headers; where TVM's or DLPack's own are included before it, it takes their types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..dataclass import dataclass, replace
from ..errors import CodegenError
from ..target import Target
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, SizeVar, Var
from ..tir.function import PrimFunc
from ..tir.returned import returned_dtype, with_result
from . import c_calls
from .c_context import CContext, CModule
from .c_expressions import EXPRESSIONS
from .c_lanes import without_vectors
from .c_parameters import Parameters, Places
from .c_statements import STATEMENTS, statement
from .c_types import KEYWORDS, function_in_c
from .c_unused import without_unused
from .emit import deep_recursion
from .signature import Signature, describe

PACKED = "void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle"
# Programs that rework the text take "TVM_DLL" out of it everywhere, and the definition of TVM_EXPORTS with it.
_TYPES = """\
#if defined(TVM_EXPORTS) && !defined(TVM_RUNTIME_C_RUNTIME_API_H_)
#define TVM_DLL
#endif
#if !defined(DLPACK_DLPACK_H_) && !defined(DLTENSOR_DEFINED)
#define DLTENSOR_DEFINED
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
#endif
#if !defined(TVM_RUNTIME_C_RUNTIME_API_H_) && !defined(TVMVALUE_DEFINED)
#define TVMVALUE_DEFINED
typedef union { int64_t v_int64; double v_float64; void* v_handle; const char* v_str; } TVMValue;
#endif
"""
INT_CODE, FLOAT_CODE, ARRAY_CODE = 0, 2, 7  # of arguments and results
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFINED = re.compile(r"static inline \S+ (\w+)\(")
_TABLE = {**EXPRESSIONS, SizeVar: EXPRESSIONS[Var], Call: c_calls.call}


@dataclass(frozen=True, slots=True)
class EmittedC:
    """The text of a C file, how its functions are called, and where these find the variables of shapes, in the order of the signature's."""

    text: str
    signatures: Mapping[str, Signature]
    places: Mapping[str, Places]

    @property
    def is_parallel(self) -> bool:
        """Whether there are loops for OpenMP."""
        return "#pragma omp" in self.text


def emit_c(funcs: Mapping[str, PrimFunc], target: Target) -> EmittedC:
    """Write the functions as one C file. A function's symbol is its "global_symbol", else its key.

    Args:
        funcs: lowered functions.
        target: of the kind "c".

    Raises:
        CodegenError: for what has no C, and names that are no identifiers of it.
    """
    names = {key: str(func.attrs.get("global_symbol", key)) for key, func in funcs.items()}
    for name in names.values():
        if not _IDENTIFIER.fullmatch(name) or name in KEYWORDS:
            raise CodegenError(f"a C function can't be called {name!r}: set a global_symbol of letters, digits and _")
    if len(set(names.values())) < len(names):
        raise CodegenError(f"two functions of the module have one symbol: {', '.join(sorted(names.values()))}; set distinct global_symbol")
    module = CModule(target, _TABLE, STATEMENTS, frozenset(names.values()))
    bodies, signatures, places = [], {}, {}
    with deep_recursion():
        for key, func in funcs.items():
            text, signatures[names[key]], places[names[key]] = _function(module, names[key], func)
            bodies.append(text)
    return EmittedC(_file(module, bodies), signatures, places)


def _file(module: CModule, bodies: list[str]) -> str:
    code = "\n".join(bodies)
    helpers = _used(module.helpers.text(), code)
    imported = "\n".join(module.imports)
    externs = [line for name, line in module.externs.items() if not re.search(rf"\b{re.escape(name)}\s*\(", imported)]
    headers = ["math.h", "stdbool.h", "stddef.h", "stdint.h"]
    headers += [header for header, word in (("stdlib.h", "malloc("), ("string.h", "memcpy(")) if word in code + helpers]
    head = [f"// target: {module.target}", "// Compile with -fwrapv where sums of signed integers overflow, which wrap here."]
    head += [*(f"// {note}" for note in module.notes), "#define TVM_EXPORTS"]
    head += sorted({*(f"#include <{header}>" for header in headers), *(line for line in externs if line.startswith("#"))})
    head += ["#if defined(__cplusplus) && !defined(restrict)", "#define restrict __restrict__", "#endif"]
    parts = ["\n".join(head), _TYPES.rstrip("\n"), imported, helpers.rstrip("\n")]
    parts += ["\n".join(_linkage(line) if line.startswith("extern") else line for line in externs if not line.startswith("#")), code]
    return "\n\n".join(part for part in parts if part) + "\n"


def _linkage(line: str) -> str:
    return f'#ifdef __cplusplus\nextern "C"\n#endif\n{line.removeprefix("extern ")}'


def _used(helpers: str, code: str) -> str:
    """The helpers that the code calls: what one was made for may have been written otherwise, or dropped."""
    kept: list[str] = []
    for text in reversed(helpers.split("\n\n") if helpers else []):
        found = _DEFINED.match(text)
        if found is None or re.search(rf"\b{found[1]}\(", code + "\n".join(kept)):
            kept.insert(0, text)
    return "\n\n".join(kept)


def _function(module: CModule, name: str, func: PrimFunc) -> tuple[str, Signature, Places]:
    returned = returned_dtype(func)
    whole = func if returned is None else with_result(func, returned)
    scalar = without_vectors(whole)
    ctx = CContext(module, name, noalias=bool(func.attrs.get("tir.noalias", False)))
    ctx.names.fresh(name)
    parameters = Parameters(ctx, whole, returned)
    statement(ctx, scalar.body)
    if returned is not None:
        _give_back(ctx, parameters.result, returned)
    signature = describe(name, whole, ctx.read_through, ctx.written_through)
    declared = f'#ifdef __cplusplus\nextern "C"\n#endif\nTVM_DLL int32_t {function_in_c(name)}({PACKED})'
    lines = without_unused([*parameters.lines(), *ctx.lines], ctx.effects)
    text = "\n".join([f"{declared};", f"{declared} {{", *lines, "  return 0;", "}", ""])
    return text, replace(signature, errors=tuple(ctx.errors), returns=returned), parameters.places(lines)


def _give_back(ctx: CContext, result: str, returned: str) -> None:
    is_float = parse_dtype(returned).is_float
    ctx.emit(f"((TVMValue*)out_ret_value)[0].{'v_float64' if is_float else 'v_int64'} = {result}[0];")
    ctx.emit(f"out_ret_tcode[0] = {FLOAT_CODE if is_float else INT_CODE};")
