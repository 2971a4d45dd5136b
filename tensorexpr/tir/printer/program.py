"""Functions, modules and loose statements as TVMScript."""

from __future__ import annotations

import sys

from ..block import BlockRealize, is_plain_root
from ..buffer import Buffer
from ..expr import IntImm, PrimExpr, PrimType, Var
from ..function import GlobalVar, IRModule, PrimFunc
from ..global_info import GlobalInfo, VDevice
from ..node import Object
from ..rewriting import walk
from ..scopes import parts
from .expressions import declared_type, quoted, script_map
from .options import MARK_LINE, Options
from .placement import Placement, place
from .statements import StatementPrinter
from .text import Names


def known_package() -> str:
    """The name under which the program around knows this package."""
    package = __name__.partition(".")[0]
    return "tvm" if sys.modules.get("tvm") is sys.modules[package] else package


def _header(language: str, name: str) -> str:
    """The import that makes a text readable."""
    return f"# from {known_package()}.script import {language} as {name}"


def script_function(func: PrimFunc, options: Options | None = None) -> str:
    """A function as a file of its own."""
    chosen = options or Options()
    name = chosen.name or str(func.attrs.get("global_symbol", "main"))
    return "\n".join([_header("tir", "T"), "", *_function_lines(func, name, 0, chosen)])


def _order(item: tuple[GlobalVar, PrimFunc]) -> tuple[bool, str]:
    """Functions stand in alphabetical order, and "main" at the end."""
    return item[0].name_hint == "main", item[0].name_hint


def statement_lines(program: IRModule | PrimFunc) -> dict[int, int]:
    """On which line of the script, counted from 1, each statement begins; by identity. Lines of a function count from its `def`."""
    starts: dict[int, int] = {}
    if isinstance(program, PrimFunc):
        _function_lines(program, "main", 0, Options(), starts)
        return {stmt: line - 1 for stmt, line in starts.items()}  # without the decorator
    script_module(program, starts=starts)
    return starts


def script_module(mod: IRModule, options: Options | None = None, starts: dict[int, int] | None = None) -> str:
    """A module with all its functions. The lines on which statements begin are noted in `starts`."""
    chosen = options or Options()
    # Modules of Relay's functions are written in a language of their own.
    written = next((one for one in (*mod.functions.values(), *mod.type_definitions.values()) if hasattr(one, "module_text")), None)
    if written is not None:
        return str(written.module_text(mod, chosen.show_meta))
    graphs = any(not isinstance(func, PrimFunc) for func in mod.functions.values())
    imports = [_header("tir", "T")] * bool(mod.functions) + [_header("relax", chosen.relax_prefix)] * graphs
    lines = [_header("ir", "I"), *imports, "", "@I.ir_module", f"class {chosen.name or 'Module'}:"]
    if mod.attrs:
        lines.append(f"    I.module_attrs({script_map(mod.attrs, Names(chosen))})")
    if mod.global_infos:
        lines.append(f"    I.module_global_infos({_infos(mod, Names(chosen))})")
    for number, (var, func) in enumerate(sorted(mod.functions_items(), key=_order)):
        own: dict[int, int] = {}
        lines += [""] if number else []
        before = len(lines)
        if isinstance(func, PrimFunc):
            lines += _function_lines(func, var.name_hint, 1, chosen, own)
        else:
            lines += Object._printers["graph_lines"](func, var.name_hint, 1, chosen, mod)
        if starts is not None:
            starts.update((stmt, before + line) for stmt, line in own.items())
    if id(mod) in chosen.marked:
        lines[3:] = [MARK_LINE + line if line else line for line in lines[3:]]
    if graphs and not any("T." in line for line in lines[3:]):
        lines.remove(_header("tir", "T"))  # nothing in the text is of that language
    return chosen.with_metadata("\n".join(lines if mod.functions or mod.attrs or mod.global_infos else [*lines, "    pass"]))


def _infos(mod: IRModule, names: Names) -> str:
    lists = (
        f"{quoted(name)}: [{', '.join(info_text(info, names) for info in mod.global_infos[name])}]" for name in sorted(mod.global_infos)
    )
    return f"{{{', '.join(lists)}}}"


def info_text(info: GlobalInfo, names: Names) -> str:
    """A global info: ``I.vdevice({"kind": "llvm"}, 0, "global")``."""
    if not isinstance(info, VDevice):
        return "I.dummy_global_info()"
    target = "None" if info.target is None else script_map(info.target.export(), names)
    return f"I.vdevice({target}, {info.vdevice_id}, {quoted(info.memory_scope)})"


def _function_lines(func: PrimFunc, name: str, indent: int, options: Options, starts: dict[int, int] | None = None) -> list[str]:
    private = "global_symbol" not in func.attrs
    given = {param: func.buffer_map[param] for param in func.params if param in func.buffer_map}
    buffers = list(given.values())
    known: set[Buffer | Var] = {*func.params, *buffers, *(b.data for b in buffers), *_shape_variables(buffers)}
    placement = place(func.body, known)
    printer = StatementPrinter(Names(options), placement, indent + 1)
    inline = {param for param in given if _is_shown_inline(func, param, placement, options)}
    params = ", ".join(_parameter(printer, func, p, p in inline) for p in func.params)
    shown = {k: v for k, v in func.attrs.items() if k != "global_symbol" or v != name}
    if shown:
        printer.line(f"T.func_attr({script_map(shown, printer.names)})")
    for param, buffer in given.items():
        if param not in inline:
            _match_buffer(printer, param, buffer)
    root = func.body if isinstance(func.body, BlockRealize) and is_plain_root(func.body) else None
    if options.syntax_sugar and root is not None and _is_implied(root):
        printer.write_root(root)
    else:
        printer.write(func.body)
    returned = f" -> T.{func.ret_type.dtype}" if isinstance(func.ret_type, PrimType) and func.ret_type.dtype != "void" else ""
    pad = "    " * indent
    decorator = "@T.prim_func(private=True)" if private else "@T.prim_func"
    if starts is not None:  # counted from 1, behind the decorator and the header
        starts.update((stmt, 3 + line) for stmt, line in printer.starts.items())
    lines = [f"{pad}{decorator}", f"{pad}def {name}({params}){returned}:", *printer.lines]
    return [MARK_LINE + line for line in lines] if id(func) in options.marked else lines


def _is_shown_inline(func: PrimFunc, param: Var, placement: Placement, options: Options) -> bool:
    """True for a buffer that stands in the signature: one of its own memory, whose handle nothing else uses."""
    buffer = func.buffer_map[param]
    # Of two buffers over one memory the second must say `data=`, which a signature can't.
    shared = any(other.data is buffer.data for other in func.buffer_map.values() if other is not buffer)
    return options.syntax_sugar and _is_inline(buffer) and not shared and param not in placement.used


def _is_implied(root: BlockRealize) -> bool:
    """True where a reader of the script knows that there is a root: it has buffers, or blocks with axes or loops around them."""
    body = root.block.body
    if root.block.alloc_buffers:
        return True
    if isinstance(body, BlockRealize):
        return len(body.iter_values) > 0
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, BlockRealize):
            return True
        stack.extend(parts(stmt).bodies)
    return False


def _shape_variables(buffers: list[Buffer]) -> set[Var]:
    exprs = [expr for b in buffers for expr in (*b.shape, *b.strides, b.elem_offset)]
    return {node for expr in exprs for node in walk(expr) if isinstance(node, Var)}


def _is_inline(buffer: Buffer) -> bool:
    """True where the signature says all there is to say about a buffer."""
    usual = Buffer(buffer.data, buffer.dtype, buffer.shape)
    plain = not buffer.strides and not buffer.axis_separators and buffer.scope() == "global" and buffer.elem_offset is usual.elem_offset
    defaults = (buffer.data_alignment, buffer.offset_factor) == (usual.data_alignment, usual.offset_factor)
    return plain and defaults and all(isinstance(extent, IntImm) for extent in buffer.shape)


def _parameter(printer: StatementPrinter, func: PrimFunc, param: Var, inline: bool) -> str:
    """One parameter of the signature."""
    if inline:
        buffer = func.buffer_map[param]
        shape = ", ".join(printer.expr(extent) for extent in buffer.shape)
        comma = "," if len(buffer.shape) == 1 else ""
        return f"{printer.define_buffer(buffer)}: T.Buffer(({shape}{comma}), {quoted(buffer.dtype)})"
    own = declared_type(param).removesuffix("()")
    return f"{printer.names.define(param, param.name)}: {'T.handle' if param in func.buffer_map else own}"


def _match_buffer(printer: StatementPrinter, param: Var, buffer: Buffer) -> None:
    """Declare the buffer behind a handle, and before it the variables that its shape defines."""
    new: list[Var] = []
    # A stride that is a variable needs no declaration: it reads as A.strides[0].
    shaped = (*buffer.shape, buffer.elem_offset, *(s for s in buffer.strides if not isinstance(s, Var)))
    for var in _variables(shaped):
        if var not in printer.names and var not in new:
            new.append(var)
    if new:
        names = ", ".join(printer.names.define(var, var.name) for var in new)
        printer.line(f"{names} = {', '.join(map(declared_type, new))}")
    arguments = printer.buffer_arguments(buffer, data=buffer.data in printer.names)
    handle = printer.names.get(param, param.name)
    printer.line(f"{printer.define_buffer(buffer)} = T.match_buffer({handle}, {arguments})")


def _variables(exprs: tuple[PrimExpr, ...]) -> list[Var]:
    return [node for expr in exprs for node in walk(expr) if isinstance(node, Var)]
