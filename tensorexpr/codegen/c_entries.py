"""How the runtime calls C text: entries of one form, `int32_t f__packed(const uint64_t* words)` (see `runtime.entries`).

An entry makes arrays of what it gets, one word for each parameter and each variable of shapes. Of extents and strides it fills in those
that are variables, as the function looks at no others.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..tir.dtype import parse_dtype
from .c_module import ARRAY_CODE, FLOAT_CODE, INT_CODE, EmittedC
from .c_parameters import Place, Places
from .c_types import function_in_c, memory_type
from .signature import BufferParam, Signature


def entries_c(emitted: EmittedC) -> str:
    """The entries of all functions, to stand behind them."""
    return "\n".join(_entry(signature, emitted.places[name]) for name, signature in emitted.signatures.items())


def _entry(signature: Signature, places: Places) -> str:
    lines = ["#ifdef __cplusplus", 'extern "C"', "#endif", f"int32_t {signature.name}__packed(const uint64_t* words);"]
    lines += ["#ifdef __cplusplus", 'extern "C"', "#endif", f"int32_t {signature.name}__packed(const uint64_t* words) {{"]
    params = signature.params if signature.returns is None else signature.params[:-1]
    lines += [f"  TVMValue values[{max(1, len(params))}];", f"  int32_t codes[{max(1, len(params))}];"]
    lines += ["  TVMValue result;", "  int32_t result_code = 0, code;", "  values[0].v_int64 = codes[0] = 0;", "  result.v_int64 = 0;"]
    for index, param in enumerate(params):
        if not isinstance(param, BufferParam):
            is_float = parse_dtype(param.dtype).is_float
            lines.append(f"  memcpy(&values[{index}], &words[{index}], 8);")
            lines.append(f"  codes[{index}] = {FLOAT_CODE if is_float else INT_CODE};")
            continue
        known = {place: number for number, place in enumerate(places, start=len(signature.params)) if place and place.param == index}
        lines += _tensor(index, param, known)
    lines.append(f"  code = {function_in_c(signature.name)}(values, codes, {len(params)}, &result, &result_code, NULL);")
    if signature.returns is not None:
        kind = memory_type(signature.returns)
        source = "v_float64" if parse_dtype(signature.returns).is_float else "v_int64"
        lines.append(f"  *({kind}*)(uintptr_t)words[{len(params)}] = ({kind})result.{source};")
    return "\n".join([*lines, "  return code;", "}", ""])


def _tensor(index: int, param: BufferParam, known: Mapping[Place, int]) -> list[str]:
    """Lines that make the DLTensor of a parameter, with what its function looks at: the extents and strides that are its variables."""
    rank, name = max(1, len(param.shape)), f"tensor{index}"
    lines = [f"  DLTensor {name};"]
    for kind in ("shape", "strides"):
        axes = [_word(Place(index, kind, axis), known) for axis in range(rank)]
        lines.append(f"  int64_t {kind}{index}[{rank}] = {{{', '.join(axes)}}};")
    if param.broadcasts:  # a stride of 0 is said to be one already
        lines[1] = f"  int64_t shape{index}[{rank}] = {{{', '.join(_extent(Place(index, 'shape', axis), known) for axis in range(rank))}}};"
    lines.append(f"  memset(&{name}, 0, sizeof({name}));")
    lines.append(f"  {name}.data = (void*)(uintptr_t)words[{index}];")
    lines.append(f"  {name}.ndim = {len(param.shape)};")
    lines.append(f"  {name}.shape = shape{index};")
    lines.append(f"  {name}.strides = strides{index};")
    lines += [f"  values[{index}].v_handle = &{name};", f"  codes[{index}] = {ARRAY_CODE};"]
    return lines


def _word(place: Place, known: Mapping[Place, int]) -> str:
    return f"(int64_t)words[{known[place]}]" if place in known else "0"


def _extent(place: Place, known: Mapping[Place, int]) -> str:
    return _word(place, known) if place in known else "2"
