"""Reads functions and modules."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from ...errors import LoweringError, ParseError
from ...ir.base import load_json
from ...ir.diagnostics import report
from ...tir.attrs import FrozenMap
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import Call, IntImm, PrimExpr, PrimType, Type, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.global_info import DummyGlobalInfo, GlobalInfo, VDevice, checked_infos
from ...tir.stmt import Stmt
from ...tir.verify import violations
from .context import Context, FunctionFrame
from .dtypes import is_type
from .frames import typed_variable
from .language import TIR
from .macros import macro_of
from .scope import Scope
from .source import Source
from .statements import StatementReader
from .values import Builder, Namespace, Pending, as_expr


class _Infos(dict[str, tuple[GlobalInfo, ...]]):
    """What I.module_global_infos says, told from attributes."""


IR = Namespace(
    "I",
    {
        "ir_module": Namespace("I.ir_module"),
        "module_attrs": Builder("I.module_attrs", lambda attrs: attrs),
        "module_global_infos": Builder("I.module_global_infos", lambda infos: _Infos(checked_infos(infos))),
        "vdevice": Builder("I.vdevice", VDevice),
        "dummy_global_info": Builder("I.dummy_global_info", DummyGlobalInfo),
    },
)
# The readers of functions of graphs, which enter themselves here: "read" of a function, "declare" of what it takes and returns.
GRAPHS: dict[str, Callable[..., Any]] = {}
# What the modules of Python that a program may name stand for.
MODULES: dict[str, Namespace] = {
    "tensorexpr.script.tir": TIR,
    "tensorexpr.tir": TIR,
    "tensorexpr.script.ir": IR,
}


class FunctionReader(StatementReader):
    """Reads a function: its parameters, then its statements."""

    def parameters(self, args: ast.arguments, frame: FunctionFrame) -> None:
        """Add the parameters to the function and name them."""
        odd = next((x for x in (*args.kwonlyargs, args.vararg, args.kwarg, *args.defaults) if x is not None), None)
        if odd is not None:
            self.fail(odd, "parameters have neither defaults nor stars")
        for arg in (*args.posonlyargs, *args.args):
            if arg.annotation is None:
                self.fail(arg, f'parameter {arg.arg} has no type; expected T.Buffer((16, 16), "float32"), T.handle, T.int32 or another')
            annotation = self.value(arg.annotation)
            self._scope.define(arg.arg, self.at(arg.annotation, _parameter, arg.arg, annotation, frame))

    def result_type(self, annotation: ast.expr | None) -> Type | None:
        """The type behind the arrow, where it is a word of the language."""
        if not isinstance(annotation, ast.Attribute) or not isinstance(annotation.value, ast.Name):
            return None
        known = self._scope.find(annotation.value.id)[0] and self.value(annotation.value) is TIR
        return type_of(self.value(annotation)) if known else None


def type_of(annotation: Any) -> Type | None:
    """The type of a result that an annotation states; None for none, or one that says nothing about numbers."""
    if isinstance(annotation, Type):
        return annotation
    if isinstance(annotation, Builder) and annotation.dtype not in ("", "handle", "void"):
        return PrimType(annotation.dtype)
    return None


def _parameter(name: str, annotation: Any, frame: FunctionFrame) -> Buffer | Var:
    """Add a parameter of an annotated type to a function; what its name stands for."""
    made = annotation.make(name).value if isinstance(annotation, Pending) else annotation
    return add_parameter(name, made if isinstance(made, (Buffer, Var)) else typed_variable(name, annotation, "int32"), frame)


def add_parameter(name: str, made: Buffer | Var, frame: FunctionFrame) -> Buffer | Var:
    """Add a parameter to a function; a buffer comes by a handle."""
    if isinstance(made, Var):
        frame.params.append(made)
        return made
    handle = Var(f"{name}_handle", "handle")
    frame.params.append(handle)
    frame.buffer_map[handle] = made
    return made


def finished_function(frame: FunctionFrame, body: Stmt) -> PrimFunc:
    """The function whose statements have been read."""
    named: dict[str, Any] = {} if frame.private else {"global_symbol": frame.name}
    attrs = FrozenMap({**named, **frame.attrs})
    whole = _with_root(frame, body)
    return PrimFunc(params=tuple(frame.params), body=whole, ret_type=frame.ret_type, buffer_map=frame.buffer_map, attrs=attrs)


class ProgramReader:
    """Reads one text: functions and modules in it."""

    def __init__(self, source: Source, captured: Mapping[str, Any], check_well_formed: bool = True) -> None:
        self._source = source
        self._captured = dict(captured)
        self._check = check_well_formed

    def program(self) -> PrimFunc | IRModule:
        """The one function or module of the text."""
        try:
            return self._program()
        except ParseError as error:
            report(error)
            raise

    def _program(self) -> PrimFunc | IRModule:
        tree = self._source.tree()
        # For functions of graphs alone: their readers stand in a higher row, and are loaded when a text needs them.
        if any(isinstance(node, ast.FunctionDef) and _decorator(node) == "function" for node in ast.walk(tree)):
            graphs()
            words = MODULES["tensorexpr.script.relax"]
            self._captured.setdefault("R", words)
            # Programs of 2022 write types without R, and Tensor whatever is called so around: no other one is a type of a graph.
            for name in ("Tensor", "Shape", "Object", "Tuple", "Callable"):
                if name not in self._captured or (name == "Tensor" and not isinstance(self._captured[name], Builder)):
                    self._captured[name] = words.find(name)
        found: list[ast.FunctionDef | ast.ClassDef] = []
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.FunctionDef) and _is_macro(node):
                self._captured[node.name] = macro_of(self._source, self._captured, node=node)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (saved := _saved_text(node.value)) is not None:
                self._captured[node.targets[0].id] = load_json(saved)  # metadata = tvm.ir.load_json("...")
            elif not isinstance(node, ast.Import) and not _is_docstring(node):
                self._fail(node, "expected a function under @T.prim_func or a class under @I.ir_module")
        if len(found) != 1:
            self._fail(found[1] if found else tree, f"expected one function or class, not {len(found)}; several belong in a class")
        return self._module(found[0]) if isinstance(found[0], ast.ClassDef) else self._function(found[0])

    def _import(self, node: ast.ImportFrom) -> None:
        """``from tvm.script import tir as T`` names the language."""
        # Whatever the package is called: scripts of TVM import from tvm.script.
        if (node.module or "").partition(".")[2].split(".")[0] != "script":
            return
        for alias in node.names:
            if alias.name == "relax":
                graphs()
            language = {"tir": TIR, "ir": IR, "relax": MODULES.get("tensorexpr.script.relax")}.get(alias.name)
            if language is not None:
                self._captured[alias.asname or alias.name] = language

    def _module(self, node: ast.ClassDef) -> IRModule:
        functions: dict[str, PrimFunc] = {}
        # Signatures of all members first: a function may call one that stands further down.
        members = {child.name: self._result(child) for child in node.body if isinstance(child, ast.FunctionDef)}
        self._captured |= {
            name: Namespace(name, {member: Builder(f"{name}.{member}", _call_of(member, result)) for member, result in members.items()})
            for name in (node.name, "cls")
        }
        attrs: dict[str, Any] = {}
        infos: dict[str, tuple[GlobalInfo, ...]] = {}
        later: list[ast.FunctionDef] = []
        for child in node.body:
            if isinstance(child, ast.FunctionDef):
                if child.name in functions:
                    self._fail(child, f"function {child.name!r} is defined twice")
                is_graph = _decorator(child) == "function"
                later += [child] * is_graph
                functions[child.name] = (
                    graphs()["declare"](self._source, self._captured, child, infos.get("vdevice", ()))
                    if is_graph
                    else self._function(child)
                )
            elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
                value = self._reader().value(child.value)
                if not isinstance(value, Mapping):
                    self._fail(child, "expected I.module_attrs({...}) or functions")
                (infos if isinstance(value, _Infos) else attrs).update(value)
            elif isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
                functions[child.targets[0].id] = self._registered(child)
            elif not isinstance(child, ast.Pass) and not _is_docstring(child):
                self._fail(child, "expected a function under @T.prim_func")
        module = IRModule({name: func for name, func in functions.items()}, attrs, infos)
        for child in later:  # functions of graphs call each other and the tensor functions, wherever these stand
            module.update_func(child.name, self._function(child, module))
        return module

    def _registered(self, node: ast.Assign) -> Any:
        """``add = R.ExternFunc("my_add")``: a registered function, by a name of the module."""
        value = self._reader().value(node.value)
        if not hasattr(value, "global_symbol"):
            self._fail(node, 'a module has functions, under @T.prim_func or @R.function, and registered ones: name = R.ExternFunc("name")')
        return value

    def _reader(self, context: Context | None = None) -> FunctionReader:
        return FunctionReader(self._source, Scope(self._captured), context or Context(), MODULES)

    def _function(self, node: ast.FunctionDef, module: IRModule | None = None) -> PrimFunc:
        options = self._options(node)
        if _decorator(node) == "function":
            made: PrimFunc = graphs()["read"](self._source, self._captured, node, options, module)
            return made
        private = options.get("private", False)
        frame = FunctionFrame(node.name, self._check and options.get("check_well_formed", True), private=private)
        reader = self._reader(Context(function=frame))
        reader.parameters(node.args, frame)
        frame.ret_type = reader.result_type(node.returns)
        func = finished_function(frame, reader.body(node.body))
        if frame.checked:
            self._verify(node, func)
        return func

    def _result(self, node: ast.FunctionDef) -> str:
        """The dtype of what a function returns, as its signature says it."""
        stated = node.returns.attr if isinstance(node.returns, ast.Attribute) else ""
        return stated if is_type(stated) else "void"

    def _options(self, node: ast.FunctionDef) -> Mapping[str | None, bool]:
        """The options of the decorator."""
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            target = call.func if call else decorator
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if name in ("prim_func", "function"):
                return {keyword.arg: self._option(keyword) for keyword in call.keywords} if call else {}
        place = node.decorator_list[0] if node.decorator_list else _header(node)
        self._fail(place, f"function {node.name!r} is not under @T.prim_func or @R.function, which are what can be read")

    def _option(self, keyword: ast.keyword) -> bool:
        value = self._reader().value(keyword.value)
        if not isinstance(value, bool):
            self._fail(keyword.value, f"the option {keyword.arg} of @T.prim_func is True or False")
        return value

    def _verify(self, node: ast.FunctionDef, func: PrimFunc) -> None:
        try:
            found = violations(func, regions=False)
        except LoweringError as error:
            found = [str(error)]
        if found:
            self._fail(_header(node), f"function {node.name} is not well formed: {'; '.join(found[:10])}")

    def _fail(self, node: ast.AST, message: str) -> NoReturn:
        raise self._source.error(node, message)


def graphs() -> Mapping[str, Callable[..., Any]]:
    """The readers of functions of graphs, which live in a higher row of the house."""
    if not GRAPHS:
        importlib.import_module("tensorexpr.relax.script_reader")
    return GRAPHS


def _decorator(node: ast.FunctionDef) -> str:
    """The name of the decorator that says what a function is."""
    names = [target.func if isinstance(target, ast.Call) else target for target in node.decorator_list]
    found = [target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "") for target in names]
    return next((name for name in found if name in ("prim_func", "function")), "")


def _is_macro(node: ast.FunctionDef) -> bool:
    """True under @T.macro."""
    return any(isinstance(decorator, ast.Attribute) and decorator.attr == "macro" for decorator in node.decorator_list)


def _saved_text(node: ast.expr) -> str | None:
    """The text of a call of load_json, else None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load_json" and len(node.args) == 1:
        text = node.args[0]
        return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None
    return None


def _call_of(name: str, result: str) -> Callable[..., PrimExpr]:
    """What makes calls of a function of the same module."""

    def build(*args: Any) -> PrimExpr:
        return Call(result, GlobalVar(name), tuple(map(as_expr, args)))  # type: ignore[arg-type]

    return build


def _header(node: ast.FunctionDef) -> ast.AST:
    """The place of the line with `def`."""
    place = ast.Pass()
    place.lineno, place.col_offset = node.lineno, node.col_offset
    return place


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _with_root(frame: FunctionFrame, body: Stmt) -> Stmt:
    """Blocks and buffers of a function belong to its root block, which scripts leave out."""
    # Without axes and around everything: the text states the root itself.
    stated = isinstance(body, BlockRealize) and not body.iter_values
    if isinstance(body, BlockRealize) and stated and body.block in frame.inferred:  # it is the root, which says nothing
        body = replace(body, block=replace(body.block, reads=(), writes=()))
    if not frame.allocated and (not frame.has_blocks or stated):
        return body
    root = Block((), (), (), "root", body, alloc_buffers=tuple(frame.allocated))
    return BlockRealize((), IntImm("bool", 1), root)
