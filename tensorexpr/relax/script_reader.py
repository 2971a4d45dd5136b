"""Reads functions under @R.function: statements become bindings of a builder."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..script.parser.dtypes import TYPES
from ..script.parser.expressions import ExpressionReader
from ..script.parser.functions import GRAPHS, MODULES
from ..script.parser.macros import DEEPEST, Macro
from ..script.parser.scope import Scope
from ..script.parser.source import Source
from ..script.parser.values import Builder, Namespace, Pending, as_expr
from ..tir.expr import PrimExpr
from ..tir.expr import Var as Symbol
from ..tir.function import GlobalVar, IRModule
from ..tir.global_info import GlobalInfo
from .block_builder import BlockBuilder
from .expr import Call, DataflowVar, Function, If, RelaxExpr, SeqExpr, Tuple, TupleGetItem, Var, convert_to_expr
from .ops.row import row_of
from .relations import BaseCheckResult, bind_symbols, struct_info_base_check, without_symbols
from .script_words import PACKAGE, RELAX, Cast, EmitTe, GraphContext, Output, info_of
from .struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TupleStructInfo, symbols_of


class GraphReader(ExpressionReader):
    """Reads one function.

    Args:
        source, captured: the text, and what names around it mean.
        builder: takes its bindings; of the module that it belongs to.
        devices: those of the module, which texts such as "cuda:1" mean.
    """

    def __init__(self, source: Source, scope: Scope, builder: BlockBuilder, devices: Sequence[GlobalInfo] = ()) -> None:
        self._graph = GraphContext(self._extent, devices)
        super().__init__(source, scope, self._graph, MODULES)
        self._builder = builder
        self._depth = 0  # of macros around
        self._is_inner = False  # a closure, which knows the symbols of the function around
        self._outputs: list[dict[str, int]] = []  # of each dataflow block around: names -> the line of the binding that outlives it

    def _extent(self, text: str) -> PrimExpr:
        """The text of an extent. Names that mean nothing yet are new symbols."""
        tree = ast.parse(text, mode="eval").body
        for node in ast.walk(tree):
            # T and R, and numbers of the program around, aren't symbols.
            if isinstance(node, ast.Name) and node.id not in self._graph.symbols and not self._is_language(node.id):
                self._graph.symbols[node.id] = Symbol(node.id, "int64")
        for name, symbol in self._graph.symbols.items():
            self._scope.define(name, symbol)
        return as_expr(self.value(tree))

    def _is_language(self, name: str) -> bool:
        known = self._scope.find(name)[0]
        # Read as the name, as what stands for the words may be the module that has them.
        return known and isinstance(self.value(ast.Name(name, ast.Load())), (Namespace, PrimExpr))

    def value(self, node: ast.AST) -> Any:
        """What `node` is worth; calls of functions of the module and of values are calls of the graph."""
        if isinstance(node, ast.Call):
            callee = super().value(node.func)
            if isinstance(callee, Macro):
                return self._expanded(node, callee)
            if isinstance(callee, (GlobalVar, Var)):
                args, _ = self._arguments(node)
                return self.at(node, lambda: self._builder.normalize(Call(callee, [self._given(arg) for arg in args])))
        if isinstance(node, ast.Name) and node.id == "metadata" and not self._scope.find(node.id)[0]:
            self.fail(node, "the constants of this text were left out; print it with script(show_meta=True)")
        if isinstance(node, ast.Subscript):
            owner = self.value(node.value)
            if isinstance(owner, RelaxExpr):
                return self.at(node, lambda: owner[self.value(node.slice)])
        return super().value(node)

    def _given(self, value: Any) -> Any:
        """A value as an operand."""
        if isinstance(value, Pending):
            value = as_expr(value)
        if isinstance(value, EmitTe):
            return self._builder.call_te(value.func, *value.args, **value.kwargs)
        return convert_to_expr(value)

    def _expanded(self, node: ast.Call, macro: Macro) -> Any:
        """The statements of a macro, with its parameters standing for the values of the call; what it returns."""
        if self._depth >= DEEPEST:
            self.fail(node, f"macros are nested more than {DEEPEST} deep; does {macro.node.name} use itself?")
        args, kwargs = self._arguments(node)
        try:
            values = macro.values(args, kwargs)
        except TypeError as error:
            self.fail(node, f"the macro {macro.node.name}{macro.signature}: {error}")
        scope = Scope(macro.captured) if macro.hygienic else self._scope
        reader = GraphReader(macro.source, scope, self._builder, self._graph.devices)
        reader._graph, reader._depth = self._graph, self._depth + 1
        reader._outputs = [{}] if self._outputs else []  # what it defines ends with the dataflow block around the call
        scope.push()
        for name, value in values.items():
            scope.define(name, value)
        result = reader._statements(macro.node.body)
        scope.pop()
        return result

    def signature(self, node: ast.FunctionDef) -> tuple[list[Var], StructInfo | None]:
        """The parameters, and what is returned if that is stated."""
        args = node.args
        odd = next((x for x in (*args.kwonlyargs, args.vararg, args.kwarg, *args.defaults) if x is not None), None)
        if odd is not None:
            self.fail(odd, "parameters have neither defaults nor stars")
        params: list[Var] = []
        for arg in (*args.posonlyargs, *args.args):
            if arg.annotation is None:
                self.fail(arg, f'parameter {arg.arg} has no type; expected R.Tensor((1, 784), "float32") or another')
            annotation = arg.annotation
            params.append(Var(arg.arg, self.at(annotation, info_of, self.value(annotation))))
            self._scope.define(arg.arg, params[-1])
        if not self._is_inner:
            self._check_symbols(args, params)
        returns = node.returns
        if returns is None or (isinstance(returns, ast.Constant) and returns.value is None):  # -> None states nothing
            return params, None
        given = self.value(returns)
        stated = self.at(returns, info_of, given)
        # The bare word R.Tuple: a tuple of whatever the body returns; R.Tuple() is one of no fields.
        return params, None if stated is not given and stated == TupleStructInfo(()) and given is not None else stated

    def _check_symbols(self, args: ast.arguments, params: Sequence[Var]) -> None:
        """Refuse extents that no argument determines: each symbol is an extent by itself somewhere."""
        known: dict[Symbol, PrimExpr] = {}
        for param in params:
            bind_symbols(param.struct_info, param.struct_info, known)
        own = set(self._graph.symbols.values())
        for arg, param in zip((*args.posonlyargs, *args.args), params, strict=True):
            unknown = [one.name for one in symbols_of(param.struct_info) if one in own and one not in known]
            if unknown and not isinstance(param.struct_info, FuncStructInfo):
                self.fail(arg, f"{', '.join(unknown)} of {param.struct_info} stands alone in no parameter, so no argument says what it is")

    def function(self, node: ast.FunctionDef, options: Mapping[str | None, Any]) -> Function:
        """The function."""
        params, stated = self.signature(node)
        outer = self._builder.begin_scope()
        result = self._statements(node.body)
        if result is None:
            self.fail(node, f"function {node.name} returns nothing: end it with `return value`")
        body = SeqExpr(self._builder.end_scope(outer), result)
        # Only what contradicts: the rest is checked when it runs.
        if stated is not None and struct_info_base_check(stated, body.struct_info) <= BaseCheckResult.FAIL_L1:
            self.fail(node.returns or node, f"function {node.name} returns {body.struct_info}, where its signature says {stated}")
        attrs = dict(self._graph.function_attrs)
        if options.get("private", False) and "global_symbol" in attrs:
            self.fail(node, f"function {node.name} is private, which means that it has no global_symbol; leave out one of the two")
        if not options.get("private", False):
            attrs = {"global_symbol": node.name, **attrs}
        # Symbols of its inside mean nothing to those who call it.
        known = {symbol for param in params for symbol in symbols_of(param.struct_info)}
        result_info = stated or (body.struct_info if self._is_inner else without_symbols(body.struct_info, known))
        return Function(tuple(params), body, result_info, bool(options.get("pure", True)), attrs)  # type: ignore[arg-type]

    def _statements(self, nodes: Sequence[ast.stmt]) -> Any:
        """Read statements; what they return, if they do."""
        for number, node in enumerate(nodes):
            match node:
                case ast.Return():
                    if number != len(nodes) - 1:
                        self.fail(nodes[number + 1], "nothing follows a return")
                    if node.value is None:
                        self.fail(node, "a function returns a value")
                    return self._result(node.value)
                case ast.Assign(targets=[target]):
                    self._assign(target, node.value, None)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self._assign(target, value, self.at(node.annotation, info_of, self.value(node.annotation)))
                case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))]) if self._is_word(func, "dataflow"):
                    if isinstance(last := node.body[-1], ast.Return):
                        return self._returned_from(node.body[:-1], last, nodes[number + 1 :])
                    self._dataflow(node.body)
                case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Nonlocal() | ast.Global():
                    continue
                case ast.Expr():
                    self._effect(node)
                case ast.If():
                    self._branches(node)
                case ast.FunctionDef():
                    self._closure(node)
                case _:
                    self.fail(node, f"`{type(node).__name__}` has no place in a function of a graph")
        return None

    def _is_word(self, node: ast.AST, word: str) -> bool:
        found = self.value(node) if isinstance(node, (ast.Attribute, ast.Name)) else None
        return isinstance(found, Builder) and found.name == f"R.{word}"

    def _result(self, node: ast.expr) -> Any:
        value = self.at(node, self._given, self.value(node))
        made = self.at(node, self._builder.normalize, value)
        return self.at(node, self._builder.emit, made) if isinstance(made, (Call, If, TupleGetItem)) else made

    def _assign(self, target: ast.expr, node: ast.expr, stated: StructInfo | None) -> None:
        if isinstance(target, ast.Tuple):
            self._unpacked(target, node)
            return
        if not isinstance(target, ast.Name):
            self.fail(target, "expected a name")
        name, value = target.id, self.value(node)
        if isinstance(value, Pending) or (isinstance(value, Builder) and value.dtype and value.name.startswith("T.")):
            self.at(node, self._symbol, name, value)
        elif isinstance(value, (Namespace, IRModule, GlobalVar, str, StructInfo)):
            self._scope.define(name, value)  # another name for it, as in cls = Module
        elif isinstance(value, Symbol) and value.name == name and value not in self._graph.symbols.values():
            self._scope.define(name, self._graph.symbols.setdefault(name, value))  # n = T.Var("n", "int64"), as T.int64()
        elif isinstance(value, PrimExpr):
            self._scope.define(name, value)
        elif isinstance(value, Cast):
            self._scope.define(name, self.at(node, self._cast, value, name, target))
        else:
            self._scope.define(name, self.at(node, self._emit, value, name, target, stated))

    def _symbol(self, name: str, value: Any) -> None:
        """``n = T.int64()``: a symbol of the signature, or a new one."""
        if name not in self._graph.symbols:
            made = value.make(name).value if isinstance(value, Pending) else None
            self._graph.symbols[name] = made if isinstance(made, Symbol) else Symbol(name, "int64")
        symbol, dtype = self._graph.symbols[name], value.make(name).value.dtype if isinstance(value, Pending) else value.dtype
        if dtype != symbol.dtype:
            raise DeclarationError(f"{name} is an {symbol.dtype} already, as all extents of graphs, not T.{dtype}()")
        self._scope.define(name, symbol)

    def _returned_from(self, nodes: Sequence[ast.stmt], last: ast.Return, rest: Sequence[ast.stmt]) -> Any:
        """A dataflow block that ends with a return: what that one names outlives the block."""
        if rest:
            self.fail(rest[0], "nothing follows a return")
        names: list[ast.expr] = [one for one in ast.walk(last) if isinstance(one, ast.Name) and not self._scope.find(one.id)[0]]
        output = ast.Expr(ast.Call(ast.parse("R.output", mode="eval").body, names, []))
        self._dataflow([*nodes, output])
        return self._statements([last])

    def _outlives(self, name: str, target: ast.AST) -> bool:
        """Whether a binding is one that its dataflow block gives to what follows it."""
        return not self._outputs or self._outputs[-1].get(name) == getattr(target, "lineno", -1)

    def _cast(self, cast: Cast, name: str, target: ast.AST) -> Var:
        return self._builder.match_cast(cast.value, cast.info, name, outlives=self._outlives(name, target))

    def _emit(self, value: Any, name: str, target: ast.AST, stated: StructInfo | None) -> Var:
        """A variable for a value.

        Raises:
            DeclarationError: if it can't be what is stated.
        """
        made = self._builder.normalize(self._given(value))
        info = made.struct_info
        if stated is not None and isinstance(made, Call) and isinstance(info, ObjectStructInfo):
            made = made.with_struct_info(stated)
        elif stated is not None and struct_info_base_check(stated, info) <= BaseCheckResult.FAIL_L1:
            raise DeclarationError(f"{name} is stated as {stated}, and its value is {info}")
        return self._builder.bind(made, name, self._builder.current_block_is_dataflow() and not self._outlives(name, target), stated)

    def _unpacked(self, target: ast.Tuple, node: ast.expr) -> None:
        """``a, b = R.split(x, 2)``, ``n, m = T.int64(), T.int64()``."""
        if isinstance(node, ast.Tuple) and len(node.elts) == len(target.elts):
            for one, value in zip(target.elts, node.elts, strict=True):
                self._assign(one, value, None)
            return
        whole = self.at(node, self._emit, self.value(node), "lv", target, None)
        info = whole.struct_info
        if not isinstance(info, TupleStructInfo) or len(info.fields) != len(target.elts):
            self.fail(target, f"{len(target.elts)} names for {info}")
        for number, one in enumerate(target.elts):
            if not isinstance(one, ast.Name):
                self.fail(one, "expected a name")
            self._scope.define(one.id, self._emit(TupleGetItem(whole, number), one.id, one, None))

    def _dataflow(self, nodes: Sequence[ast.stmt]) -> None:
        """A dataflow block: the last statement says which of its values outlive it."""
        names: set[str] = set()
        for number, node in enumerate(nodes):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and self._is_word(node.value.func, "output"):
                if number != len(nodes) - 1:
                    self.fail(nodes[number + 1], "nothing follows R.output in its dataflow block")
                names |= {arg.id for arg in node.value.args if isinstance(arg, ast.Name)}
        lines: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name in names:
                lines[node.name] = node.lineno
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            for name in (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name) and one.id in names):
                # A name may be bound again: the last of its lines is the value that is given out.
                lines[name.id] = name.lineno
        missing = names - lines.keys()
        if missing:
            self.fail(nodes[-1], f"R.output names {', '.join(sorted(missing))}, which the block doesn't define")
        self._outputs.append(lines)
        self._scope.push()
        with self._builder.dataflow():
            self._statements(nodes)
        # What ends with the block has no meaning behind it; a name that it bound anew means there what it meant before.
        ended = self._scope.pop()
        self._outputs.pop()
        for word, value in ended.items():
            if not isinstance(value, DataflowVar):
                self._scope.define(word, value)

    def _effect(self, node: Any) -> Any:
        """A call for its effect: R.print, R.assert_op, a registered function; R.func_attr and R.output are about what is around.

        Returns:
            what the effect is worth, which is nothing but for registered functions.
        """
        value = self.value(node.value)
        if isinstance(value, Output) and not self._outputs:
            self.fail(node, "R.output stands at the end of a dataflow block: `with R.dataflow():`")
        if value is None or isinstance(value, (Output, Var)):
            return Tuple(())
        if isinstance(value, Cast):  # for the symbols that it defines
            self.at(node, self._cast, value, "_", node)
            return Tuple(())
        if not isinstance(value, Call):
            self.fail(node, "this has no effect; assign it to a name")
        made = self.at(node, self._builder.normalize, value)
        if isinstance(made, Call) and _is_unused_value(made):
            self.fail(node, f"{made.op} has no effect but its value, {made.struct_info}; assign it to a name")
        return self.at(node, self._builder.emit, made, "_")

    def _branches(self, node: ast.If) -> None:
        """``if``: both branches end with a binding of the same name, which is what the whole is."""
        cond = self._result(node.test)
        ends = [_last_name(branch) for branch in (node.body, node.orelse)]
        is_effect = all(branch and isinstance(branch[-1], ast.Expr) for branch in (node.body, node.orelse))  # of the whole
        if ends[0] != ends[1] or (None in ends and not is_effect):
            self.fail(node, "both branches of an if end with an assignment to the same name, and there is an else")
        sequences: list[SeqExpr] = []
        for branch in (node.body, node.orelse):
            outer = self._builder.begin_scope()
            self._scope.push()
            last = branch[-1]
            # Another name for a value of the branch is the value of the branch, and no binding in it.
            alias = last.value if isinstance(last, (ast.Assign, ast.AnnAssign)) and isinstance(last.value, ast.Name) else None
            self._statements(branch[:-1] if is_effect or alias is not None else branch)
            result = None if alias is None else self.value(alias)
            if is_effect:
                result = self._effect(last)
            elif not isinstance(result, Var):
                self._statements([] if alias is None else [last])
                result = self._scope.find(ends[0] or "")[1]
            self._scope.pop()
            sequences.append(SeqExpr(self._builder.end_scope(outer), result))
        name = ends[0] or "_"  # which the branches have used up: the whole is what has it
        self._builder.free_name(name)
        self._scope.define(name, self.at(node, self._emit, If(cond, *sequences), name, node, None))

    def _closure(self, node: ast.FunctionDef) -> None:
        """A function inside of a function, which may use what is around it."""
        reader = GraphReader(self._source, self._scope, self._builder, self._graph.devices)
        reader._is_inner = True
        reader._graph.symbols.update(self._graph.symbols)
        self._scope.push()
        params, stated = reader.signature(node)
        self._scope.pop()
        named = Var(node.name, FuncStructInfo(tuple(param.struct_info for param in params), stated or ObjectStructInfo()))
        self._scope.define(node.name, named)  # it may call itself
        self._scope.push()
        options = {
            keyword.arg: self.value(keyword.value) for one in node.decorator_list if isinstance(one, ast.Call) for keyword in one.keywords
        }
        func = reader.function(node, {**options, "private": True})
        self._scope.pop()
        self._scope.define(node.name, self._builder.bind(func, node.name, False, None, named if stated is not None else None))


def _is_unused_value(call: Call) -> bool:
    """Whether a call is there for a value alone."""
    row = row_of(call)
    return row is not None and row.is_pure and not isinstance(call.struct_info, (TupleStructInfo, ObjectStructInfo))


def _last_name(nodes: Sequence[ast.stmt]) -> str | None:
    """The name that the last statement of a branch defines."""
    last = nodes[-1] if nodes else None
    target = last.targets[0] if isinstance(last, ast.Assign) else last.target if isinstance(last, ast.AnnAssign) else None
    if isinstance(last, ast.If):
        return _last_name(last.body)
    if isinstance(last, ast.With):  # a dataflow block: the last of its bindings that it gives out, before R.output
        return _last_name(last.body[:-1])
    return target.id if isinstance(target, ast.Name) else None


def read_function(
    source: Source, captured: Mapping[str, Any], node: ast.FunctionDef, options: Mapping[str | None, Any], module: IRModule | None
) -> Any:
    """A function of a graph, alone or of a module whose functions are known by what they take and return."""
    builder = BlockBuilder()
    if module is not None:
        builder._module = module  # tensor functions that the function emits become the module's
        builder._names = {var.name_hint for var in module.get_global_vars()}
    builder.begin_scope()
    devices = () if module is None else module.global_infos.get("vdevice", ())
    return GraphReader(source, Scope(_members(captured, module)), builder, devices).function(node, options)


def _members(captured: Mapping[str, Any], module: IRModule | None) -> dict[str, Any]:
    """Names around a function, in which the functions of the module are its variables."""
    if module is None:
        return dict(captured)
    own = {var.name_hint: var for var in module.get_global_vars()}
    is_module = {name for name, value in captured.items() if isinstance(value, Namespace) and value.name == name and _is_of(value, own)}
    around = {name: Namespace(name, own) if name in is_module else value for name, value in captured.items()}
    return {**around, **own}  # programs of 2022 name functions of the module without it


def _is_of(namespace: Namespace, members: Mapping[str, Any]) -> bool:
    return bool(namespace.entries) and set(namespace.entries) <= set(members)


def declared(source: Source, captured: Mapping[str, Any], node: ast.FunctionDef, devices: Sequence[GlobalInfo] = ()) -> Function:
    """What a function takes and returns, for those that call it and stand in front of it."""
    reader = GraphReader(source, Scope(captured), BlockBuilder(), devices)
    params, stated = reader.signature(node)
    return Function.create_empty(params, stated or ObjectStructInfo())


GRAPHS.update(read=read_function, declare=declared)
MODULES.update({"tensorexpr.relax": PACKAGE, "tensorexpr.script.relax": RELAX, "tensorexpr.relax.script": RELAX})
__all__ = ["TYPES", "DataflowVar", "GraphReader", "Tuple", "declared", "read_function"]
