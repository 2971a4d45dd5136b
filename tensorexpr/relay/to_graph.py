"""From Relay's functions to functions of graphs (`relax`): each value gets a name, operators become what they mean.

    fn (%x) { nn.relu(nn.dense(%x, w)) }      lv = R.permute_dims(w); lv1 = R.matmul(x, lv); gv = R.nn.relu(lv1)

A node that several others use is computed once where the code around computes it anyway, and else once in each branch or function that
meets it; calls of functions that stand where they are called are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..lower.context import PassContext
from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..relax.block_builder import BlockBuilder
from ..relax.ops.calls import call_dps_packed
from ..relax.ops.cells import ref_make, ref_read, ref_write
from ..relax.relations import struct_info_base_check
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from ..relax.transform.dataflow import ConvertToDataflow
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from . import generics
from .adt import Constructor, Match, unmatched
from .expr import Function, Let
from .matching import Matching, with_effects
from .ops.row import ROWS, emitted, with_extents
from .parameter_types import with_parameter_types
from .references import RefCreate, Reference, RefRead, check_write, held_by, made_of
from .tails import without_calls_of
from .ty import info_of
from .visitor import Steps, free_vars, has_effects, trampoline, walk

_LEAVES = (graph.Constant, GlobalVar, graph.PrimValue, graph.ShapeExpr, graph.StringImm, graph.DataTypeImm, graph.ExternFunc)


class _Emitter(Matching):
    """Emits the values of a function.

    Args:
        builder: where they are emitted.
        external: functions of the module that others compute: their names there -> what they are called by.
        signatures: of functions of the module, where a graph knows less of them.
        pure: whether no function of the module has effects.
    """

    def __init__(self, builder: BlockBuilder, external: Mapping[str, str], signatures: Mapping[str, StructInfo], pure: bool) -> None:
        super().__init__(builder, signatures, pure)
        self.external = external
        # What is known in each branch and function around: what a branch computes isn't there behind it.
        self.scopes: list[dict[Any, Any]] = [{}]
        self.certain: list[set[Any]] = []  # of each: what it computes whichever branches it takes

    def define(self, node: Any, value: Any) -> Any:
        """Remember the value of a node in the innermost scope."""
        self.scopes[-1][node] = value
        return value

    def known(self, node: Any) -> Any:
        """The value of a node, if there is one."""
        return next((scope[node] for scope in reversed(self.scopes) if node in scope), None)

    def value(self, expr: Any) -> Any:
        """The value of an expression, emitted with all that it needs."""
        found = self.known(expr)
        self.certain = [_certain(expr)]
        return trampoline(self.steps(expr), self.steps, self.known) if found is None else found

    def steps(self, expr: Any) -> Steps:
        """How an expression is computed: yields its operands, and returns its value."""
        match expr:
            case Let(var, value, body):
                # A function may mention itself by the variable, which so is there before its body.
                made = (yield from self.function(value, var)) if isinstance(value, Function) else (yield value)
                self.define(var, self.known_as(made, var.struct_info))
                return self.define(expr, (yield body))
            case Function():
                return self.define(expr, (yield from self.function(expr, None)))
            case Reference():
                return self.define(expr, (yield from self.reference(expr)))
            case graph.Call():
                return self.define(expr, (yield from self.call(expr)))
            case graph.Tuple(fields):
                parts = []
                for one in fields:
                    parts.append((yield one))
                return self.define(expr, graph.Tuple(tuple(parts)))
            case graph.TupleGetItem(value, index):
                whole = yield value
                if isinstance(whole, graph.Tuple):
                    return self.define(expr, whole.fields[index])
                known = getattr(self.info(whole), "fields", None)
                element = self.builder.emit(graph.TupleGetItem(whole, index))
                return self.define(expr, element if known is None else self.known_as(element, known[index]))
            case graph.If(cond, yes, no):
                condition = yield cond
                branches = []
                for one in (yes, no):
                    yield from self.shared(one)
                    branches.append((yield from self.branch(self.inside(one, {}))))
                return self.define(expr, self.chosen(condition, *branches))
            case Match():
                return self.define(expr, (yield from self.match(expr)))
            case Constructor():
                return self.define(expr, (yield from self.function(self.as_function(expr), None)))
            case graph.Var():
                raise DeclarationError(f"variable %{expr.name_hint} is used, and nothing binds it: it is no parameter and no Let's")
        if isinstance(expr, graph.Constant):  # Relay's are nodes that scripts and files of graphs don't know
            return self.define(expr, graph.Constant(expr.data, expr.stated))
        if isinstance(expr, _LEAVES):
            return self.define(expr, expr)
        raise TypeMismatchError(f"{type(expr).__name__} has no meaning in a graph")

    def inside(self, expr: Any, known: dict[Any, Any]) -> Steps:
        """A value in a scope of its own, in which `known` is known."""
        self.scopes.append(known)
        self.certain.append(_certain(expr))
        result = yield expr
        self.certain.pop()
        self.scopes.pop()
        return result

    def shared(self, expr: Any) -> Steps:
        """Before a scope begins: what the code around computes too, lest both do."""
        for one in _met(expr, self.certain[-1]):
            if self.known(one) is None:
                yield one

    def function(self, func: Function, name: Any, expected: Sequence[StructInfo] | None = None) -> Steps:
        """A function that is a value; `name` is the variable by which it calls itself, `expected` what parameters without types are."""
        infos = [one.struct_info for one in func.params]
        if expected is not None:
            infos = [generics.joined(own, other) for own, other in zip(infos, expected, strict=True)]
        # As the function says it, or the variable that it is bound to.
        known = None if name is None else name.struct_info_annotation
        signature: Any = func.struct_info if func.ret_type is not None else known if isinstance(known, FuncStructInfo) else None
        yield from self.shared(func.body)
        if signature is None and name is not None and name in free_vars(func):
            # What it returns where it doesn't call itself. That body is thrown away: it calls a value of which nothing is known.
            _, signature, _ = yield from self.body(without_calls_of(func, name), name, infos, None)
            if generics.is_open(signature.ret):
                raise DeclarationError(f"%{name.name_hint} calls itself: state its ret_type, from which the types in it follow")
        made, found, variable = yield from self.body(func, name, infos, signature)
        bound = self.builder.bind(made, name.name_hint if name is not None else "", False, var=variable)
        return self.known_as(bound, found)

    def body(self, func: Function, name: Any, infos: Sequence[StructInfo], signature: Any) -> Steps:
        """A function of the graph, what is known of it, and the variable that it calls itself by; `signature` is what is stated."""
        params = [self.parameter(one.name_hint, info) for one, info in zip(func.params, infos, strict=True)]
        signature = signature if signature is None or self.pure else with_effects(signature)
        stated = None if signature is None else signature.ret
        variable = None if name is None else graph.Var(name.name_hint, None if signature is None else generics.erased(signature))
        if variable is not None and signature is not None:
            self.known_as(variable, signature)
        outer = self.builder.begin_scope()
        values: dict[Any, Any] = dict(zip(func.params, params, strict=True))
        result = yield from self.inside(func.body, values if variable is None else {**values, name: variable})
        known_result = self.info(result) if stated is None else generics.joined(stated, self.info(result))
        ret = stated if stated is None or not generics.is_generic(stated) else generics.erased(stated)
        made = graph.Function(tuple(params), graph.SeqExpr(self.builder.end_scope(outer), result), ret, self.pure)  # type: ignore[arg-type]
        return made, FuncStructInfo(tuple(infos), known_result, self.pure), variable

    def reference(self, call: Any) -> Steps:
        """A reference that is made, read or written."""
        ref = yield call.args[0]
        if isinstance(call, RefCreate):
            return self.known_as(self.builder.emit(ref_make(ref)), made_of(self.info(ref)))
        if isinstance(call, RefRead):
            held = held_by(self.info(ref))  # before it is read: what is no reference is an error
            return self.known_as(self.builder.emit(ref_read(ref)), held)
        value = yield call.args[1]
        check_write(self.info(ref), self.info(value))
        self.builder.emit(ref_write(ref, value))
        return graph.Tuple(())

    def call(self, call: Any) -> Steps:
        """A call, by what its operator means."""
        if isinstance(call.op, Op):
            args = []
            for one in call.args:
                args.append((yield one))
            return self.emitted(call, args)
        callee = call.op if isinstance(call.op, (GlobalVar, Function, Constructor)) else (yield call.op)
        if isinstance(callee, Function):  # what it returns may follow from the arguments alone
            signature: StructInfo = FuncStructInfo(tuple(one.struct_info for one in callee.params), ObjectStructInfo())
        else:
            signature = callee.struct_info if isinstance(callee, Constructor) else self.info(callee)
        args = yield from self.arguments(call.args, signature)
        if isinstance(callee, Constructor):
            return self.made(callee, args)
        if isinstance(callee, Function):
            return (yield from self.inlined(callee, args))
        if isinstance(callee, GlobalVar) and callee.name_hint in self.external:
            return self.by_others(callee.name_hint, args)
        made = self.builder.emit(graph.Call(callee, args))
        if not isinstance(signature, FuncStructInfo) or not generics.is_generic(signature):
            return made
        return self.known_as(made, generics.returned(signature, [self.info(one) for one in args], str(callee)))

    def arguments(self, args: Sequence[Any], signature: StructInfo) -> Steps:
        """Arguments of a call. Functions without types come last: what the others are says what their parameters are."""
        asked = signature.params if isinstance(signature, FuncStructInfo) and len(signature.params or ()) == len(args) else None
        found: list[Any] = [None] * len(args)
        values: generics.Values = {}
        for late in (False, True):
            for place, one in enumerate(args):
                wanted = None if asked is None else asked[place]
                is_late = isinstance(wanted, FuncStructInfo) and isinstance(one, Function)
                if is_late is not late:
                    continue
                if is_late and len(one.params) == len(wanted.params or ()):  # type: ignore[union-attr]
                    infos = generics.instance(wanted, values)  # type: ignore[arg-type]
                    found[place] = self.define(one, (yield from self.function(one, None, infos.params)))  # type: ignore[attr-defined]
                else:
                    found[place] = yield one
                if wanted is not None:
                    generics.bind(wanted, self.info(found[place]), values)
        return found

    def by_others(self, name: str, args: list[Any]) -> Any:
        """The results of an external function, which writes into tensors that it gets."""
        func: Any = self.builder.get()[name]
        info = func.ret_struct_info
        fields = info.fields if isinstance(info, TupleStructInfo) else (info,)
        if any(not isinstance(one, TensorStructInfo) or one.extents is None for one in fields):
            raise DeclarationError(f"@{name} returns {info}; external functions write into tensors whose shapes are known")
        return self.builder.emit(call_dps_packed(self.external[name], tuple(args), info))

    def inlined(self, func: Function, args: list[Any]) -> Steps:
        """The body of a function that is called where it stands."""
        if len(args) != len(func.params):
            raise DeclarationError(f"a function of {len(func.params)} parameters is called with {len(args)} arguments")
        # A scope of its own: the same function may be called again with other arguments.
        yield from self.shared(func.body)
        known = {param: self.known_as(arg, param.struct_info) for param, arg in zip(func.params, args, strict=True)}
        return (yield from self.inside(func.body, known))

    def emitted(self, call: Any, args: list[Any]) -> Any:
        """The value of an operator."""
        row = ROWS.get(call.op)
        if row is None:
            if not str(call.op).startswith("relax."):
                raise DeclarationError(f"no operator {str(call.op)!r}; relay.op.list_op_names() lists those that there are")
            return self.builder.emit(graph.Call(call.op, args, call.attrs, call.sinfo_args))
        try:
            found = emitted(self.builder, row.meant(row.bound(type(call)(call.op, args, call.attrs))))
        except (DeclarationError, TypeMismatchError) as error:
            span = getattr(call, "span", None)
            raise type(error)(str(error) if span is None else f"{span}: {error}") from None
        info = with_extents(found.struct_info)
        # What uses the value may need to know its extents.
        return found if info is found.struct_info else self.builder.match_cast(found, info)


def _operands(expr: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """What an expression computes whenever it is computed, and what it may compute: branches, bodies of functions."""
    match expr:
        case Let(_, value, body):
            return (value, body), ()
        case Function():
            return (), (expr.body,)
        case graph.Call():
            # A constructor that is called is no value: it is one where it is passed on.
            is_value = isinstance(expr.op, graph.RelaxExpr) and not isinstance(expr.op, Constructor)
            return ((*expr.args, expr.op) if is_value else expr.args), ()
        case graph.Tuple(fields):
            return fields, ()
        case graph.TupleGetItem(value, _):
            return (value,), ()
        case graph.If(cond, yes, no):
            return (cond,), (yes, no)
        case Match(data, clauses):
            return (data,), [clause.rhs for clause in clauses]
    return (), ()


def _certain(expr: Any) -> set[Any]:
    """The nodes that are computed whenever `expr` is."""
    found, waiting = set[Any](), [expr]
    while waiting:
        node = waiting.pop()
        if node not in found and not isinstance(node, (Function, graph.Var, *_LEAVES)):
            found.add(node)
            waiting += _operands(node)[0]
    return found


def _met(expr: Any, nodes: set[Any]) -> list[Any]:
    """Those of `nodes` that are met first on each way down from `expr`."""
    found: dict[Any, None] = {}
    seen, waiting = set[Any](), [expr]
    while waiting:
        node = waiting.pop()
        if node in nodes:
            found[node] = None
        elif node not in seen:
            seen.add(node)
            waiting += [one for part in _operands(node) for one in part]
    return list(found)


def _callees(func: Any, mod: IRModule) -> Iterator[str]:
    for node in walk(func.body) if isinstance(func, Function) else ():
        if isinstance(node, GlobalVar) and node in mod:
            yield node.name_hint


def callees_first(mod: IRModule) -> list[str]:
    """Functions behind those that they call: what a call returns is known then."""
    found: list[str] = []
    entered: set[str] = set()
    stack = [(var.name_hint, False) for var, _ in reversed(list(mod.functions_items()))]
    while stack:
        name, done = stack.pop()
        if done:
            found.append(name)
        elif name not in entered:
            entered.add(name)
            stack.append((name, True))
            stack.extend((one, False) for one in _callees(mod[name], mod) if one not in entered)
    return found


def reachable(mod: IRModule, entries: Sequence[str]) -> IRModule:
    """A module without the functions that those of these names don't call."""
    found: dict[Any, None] = {}
    waiting = [mod.get_global_var(name) for name in entries]
    while waiting:
        var = waiting.pop()
        if var not in found:
            found[var] = None
            waiting += [GlobalVar(name) for name in _callees(mod[var], mod)]
    kept = {var: func for var, func in mod.functions_items() if var in found or not isinstance(func, Function)}
    return IRModule(kept, dict(mod.attrs), type_definitions=mod.type_definitions)  # type: ignore[arg-type]


def recursive(mod: IRModule) -> list[str]:
    """Functions of Relay that call themselves, by others or directly."""
    callees = {name: set(_callees(mod[name], mod)) for name in callees_first(mod)}
    found = []
    for name in callees:
        reached, waiting = set[str](), list(callees[name])
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += callees[one]
        if name in reached:
            found.append(name)
    return found


def function_to_graph(
    func: Function, name: str, builder: BlockBuilder, external: Mapping[str, str] | None = None, signatures: dict[str, Any] | None = None,
    pure: bool = True,
) -> Any:  # fmt: skip
    """Add a function of Relay to the module of a builder, as one of a graph; its signature to `signatures`. `pure`: none has effects.

    Raises:
        DeclarationError: if operands don't fit, or a variable is bound by nothing.
        TypeMismatchError: for a parameter without a type.
    """
    func = with_parameter_types(func)
    for param in func.params:
        if param.struct_info_annotation is None:
            raise TypeMismatchError(
                f'parameter %{param.name_hint} of @{name} has no type: relay.var("{param.name_hint}", shape=..., dtype=...)'
            )
    signatures = {} if signatures is None else signatures
    emitter = _Emitter(builder, external or {}, signatures, pure)
    params = [emitter.parameter(one.name_hint, one.struct_info) for one in func.params]
    attrs = {key: value for key, value in func.attrs.items() if key != "global_symbol"}
    with deep_recursion, builder.function(name, params, attrs, pure):
        emitter.scopes[0].update(zip(func.params, params, strict=True))
        result = emitter.value(func.body)
        builder.emit_func_output(result)
    made: Any = builder.get()[name]
    stated, known = info_of(func.ret_type), emitter.info(result)
    if stated is not None and struct_info_base_check(generics.erased(stated), made.ret_struct_info) < 2:
        raise DeclarationError(f"@{name} returns {made.ret_struct_info}, and its type states {stated}")
    whole = known if stated is None else generics.joined(stated, known)
    signatures[name] = FuncStructInfo(tuple(one.struct_info for one in func.params), whole, pure)
    return made


def _check_matches(mod: IRModule) -> None:
    """Raise where a match is said to be complete and isn't."""
    for var, func in mod.functions_items():
        nodes: Any = walk(func) if isinstance(func, Function) else ()
        for node in nodes:
            if isinstance(node, Match) and node.complete:
                definition: Any = mod.__getitem__
                left = next(unmatched([clause.lhs for clause in node.clauses], definition), None)
                if left is not None:
                    from .text import pattern_text

                    raise DeclarationError(
                        f"a match of @{var.name_hint} has no clause for {pattern_text(left)}: add one, or write `match?` (complete=False)"
                    )


def _declare(name: str, func: Any, result: StructInfo, builder: BlockBuilder, signatures: dict[str, Any], pure: bool) -> None:
    """Let a function be called before its body is there."""
    params = [graph.Var(one.name_hint, _plain(one.struct_info)) for one in func.params]
    signatures[name] = FuncStructInfo(tuple(one.struct_info for one in func.params), result, pure)
    builder.update_func(GlobalVar(name), graph.Function.create_empty(params, _plain(result), pure))


def _recursive_results(mod: IRModule, builder: BlockBuilder, external: Mapping[str, str] | None, pure: bool) -> dict[str, StructInfo]:
    """What functions that call themselves return: as stated, else as the branches that don't call them say.

    Raises:
        DeclarationError: for a function whose result nothing tells.
    """
    found: dict[str, StructInfo] = {}
    open_ones = []
    for name in recursive(mod):
        func: Any = mod[name]
        found[name] = info_of(func.ret_type) or ObjectStructInfo()
        open_ones += [name] if func.ret_type is None else []
    for name in open_ones:
        trial, signatures = BlockBuilder(builder.get()), dict[str, Any]()
        for one, info in found.items():
            _declare(one, mod[one], info, trial, signatures, pure)
        with suppress(DeclarationError, TypeMismatchError):  # what it computes of its own result can't be known yet
            function_to_graph(without_calls_of(mod[name], GlobalVar(name)), name, trial, external, signatures, pure)
        found[name] = signatures[name].ret
        if generics.is_open(found[name]):
            raise DeclarationError(f"@{name} calls itself: state its ret_type, from which the types in it follow")
    return found


def _plain(info: StructInfo) -> StructInfo:
    return generics.erased(info) if generics.is_generic(info) else info


def to_graph(mod: Any, external: Mapping[str, str] | None = None, signatures: dict[str, Any] | None = None) -> IRModule:
    """A module whose functions of Relay are functions of graphs; others stay as they are.

    Args:
        mod: a module, or one function, which becomes "main".
        external: functions that others compute: their names in the module -> what they are called by. They stay in the module.
        signatures: gets what is known of each function, algebraic types included.
    """
    whole = IRModule.from_expr(mod) if isinstance(mod, Function) else mod
    if not any(isinstance(func, Function) for _, func in whole.functions_items()):
        return whole
    others = {var: func for var, func in whole.functions_items() if not isinstance(func, Function)}
    _check_matches(whole)
    builder = BlockBuilder(IRModule(others, dict(whole.attrs)))
    signatures = {} if signatures is None else signatures
    pure = not any(has_effects(func) for _, func in whole.functions_items() if isinstance(func, Function))
    for name, stated in _recursive_results(whole, builder, external, pure).items():
        # All of them before the first body: of even(n) = odd(n - 1) and odd(n) = even(n - 1) neither comes first.
        _declare(name, whole[name], stated, builder, signatures, pure)
    for name in callees_first(whole):
        func = whole[name]
        if not isinstance(func, Function):
            continue
        function_to_graph(func, name, builder, external, signatures, pure)
    # Bindings without effects as dataflow: operators are fused, and common ones found, in such blocks only.
    # Not as a pass of its own, which whoever watches passes would see inside of another one.
    with deep_recursion:
        return ConvertToDataflow(1).transform(builder.get(), PassContext.current())
