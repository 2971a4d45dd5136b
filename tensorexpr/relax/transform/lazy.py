"""LazyTransformParams, LazyGetInput, LazySetOutput: weights come one by one when they are needed, and results go when they are there.

C = R.multiply(A, 2)           A = R.match_cast(R.call_packed("get_item", 0), R.Tensor((16, 16)))
D = R.add(C, B)          ->    C = R.multiply(A, 2)
return D, C                    B = R.match_cast(R.call_packed("get_item", 1), ...)
                               D = R.add(C, B);  R.call_packed("set_item", 0, D);  R.call_packed("set_item", 1, C)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.attrs import FrozenMap
from ...tir.expr import IntImm
from ...tir.function import IRModule
from ..analysis import defined_symbolic_vars
from ..expr import Binding, BindingBlock, Call, ExternFunc, Function, MatchCast, PrimValue, SeqExpr, StringImm, Tuple, TupleGetItem, Var
from ..expr import VarBinding as Bound
from ..ops.memory import kill_object
from ..relations import without_symbols
from ..struct_info import FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, StructInfo, TupleStructInfo, symbols_of
from ..visitor import Mutator, walk
from .dataflow import without_dataflow
from .passes import each_function, graph_pass

_OBJECT, _VOID = ObjectStructInfo(), TupleStructInfo(())


def _number(value: int) -> PrimValue:
    return PrimValue(IntImm("int64", value))


Load = Callable[[int, str], Call]
Store = Callable[[int, Any], Call]


def _inputs(func: Function) -> int:
    return int(func.attrs.get("num_input", 0))


class _Weights(Mutator):
    """The bindings of a function, each weight being loaded in front of the first one that reads it."""

    def __init__(self, func: Function, load: Load) -> None:
        super().__init__()
        self._load = load
        weights = func.params[_inputs(func) :]
        info: Any = weights[0].struct_info if len(weights) == 1 else None
        self._whole = weights[0] if isinstance(info, TupleStructInfo) else None
        self._places = {weight: n for n, weight in enumerate(weights) if self._whole is None}
        self._known: dict[int, Var] = {}
        self.loaded: set[Var] = set()

    def before(self, expr: Any) -> list[Binding]:
        """What loads the weights that an expression reads and that aren't there yet.

        Raises:
            DeclarationError: if the tuple of all weights is read at once.
        """
        made: list[Binding] = []
        elements = [node for node in walk(expr) if isinstance(node, TupleGetItem) and node.tuple_value is self._whole]
        if self._whole is not None and sum(node is self._whole for node in walk(expr)) > len(elements):
            raise DeclarationError(f"{self._whole.name_hint} is read as a whole: weights come one by one where elements are read alone")
        for node in walk(expr):
            if isinstance(node, Var) and node in self._places:
                self._cast(node, self._places.pop(node), node.struct_info, made)
            elif isinstance(node, TupleGetItem) and node.tuple_value is self._whole and node.index not in self._known:
                cast = Var(f"{self._whole.name_hint}_{node.index}", node.struct_info)
                self._known[node.index] = self._cast(cast, node.index, node.struct_info, made)
        return made

    def _cast(self, var: Var, place: int, info: StructInfo, into: list[Binding]) -> Var:
        call = self._load(place, var.name_hint)
        untyped = Var(f"{var.name_hint}_untyped", call.struct_info)
        into += [Bound(untyped, call), MatchCast(var, untyped, info)]
        self.loaded.add(var)
        return var

    def rewrite(self, expr: Any) -> Any:
        """The weight in place of an element of the tuple."""
        return self._known[expr.index] if isinstance(expr, TupleGetItem) and expr.tuple_value is self._whole else expr

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding behind what loads its weights; a name of a weight counts as the weight."""
        value = binding.value
        if not isinstance(value, TupleGetItem) or value.tuple_value is not self._whole:
            return [*self.before(value), *super().binding(binding)]
        loads = self.before(value)
        if not loads and isinstance(binding, Bound):
            self._variables[binding.var] = self._known[value.index]
            return []
        made = super().binding(binding)
        # Its readers read the variable of the program; one that ends with its block can't stand for the weight behind it.
        if type(made[-1].var) is Var:
            self.loaded.discard(self._known[value.index])
            self._known[value.index] = made[-1].var
            self.loaded.add(made[-1].var)
        return [*loads, *made]


def _with_loads(func: Function, load: Load, params: Sequence[Var], is_pure: bool) -> tuple[Function, set[Var]]:
    """A function of these parameters that loads its weights, and the variables that are weights."""
    weights = _Weights(func, load)
    blocks = [weights.block(block) for block in func.body.blocks]
    last = weights.before(func.body.body)
    body = SeqExpr((*blocks, *([BindingBlock(tuple(last))] if last else [])), weights.visit(func.body.body))
    # What only weights told is told by no argument.
    info = without_symbols(body.struct_info, {symbol for param in params for symbol in symbols_of(param.struct_info)})
    return replace(func, params=tuple(params), body=body, ret_struct_info=info, is_pure=is_pure), weights.loaded


def _results(func: Function) -> tuple[list[Any], Var | None]:
    """What a function returns one by one, and the variable of the tuple of these, if it has one."""
    result = func.body.body
    bound = {binding.var: binding.value for binding in func.body.bindings()}
    given = bound.get(result) if isinstance(result, Var) else result
    if isinstance(given, Tuple):
        return list(given.fields), result if isinstance(result, Var) else None
    info: Any = result.struct_info
    several = [TupleGetItem(result, n) for n in range(len(info.fields))] if isinstance(info, TupleStructInfo) else [result]
    return several, None


def _variables(expr: Any) -> Iterator[Var]:
    return (node for node in walk(expr) if isinstance(node, Var))


class _Stores:
    """Where the results of a function go, and where its weights are let go of."""

    def __init__(self, func: Function, store: Store, at_last_use: bool, loaded: set[Var]) -> None:
        self._results, self._whole = _results(func)
        self._store, self._loaded = store, loaded
        self._bindings = [binding for binding in func.body.bindings() if binding.var is not self._whole]
        self._ends: dict[Var, list[Var]] = {}
        seen: set[Var] = set()
        # What is read last at a binding ends there, in the order in which it is read; then what nothing reads.
        for binding in reversed(self._bindings):
            ended = [*dict.fromkeys(var for var in _variables(binding.value) if var not in seen)] if at_last_use else []
            seen.update(ended)
            self._ends[binding.var] = ended if binding.var in seen else [*ended, binding.var]

    def _of(self, var: Any) -> Iterator[Binding]:
        for n, result in enumerate(self._results):
            if (result.tuple_value if isinstance(result, TupleGetItem) else result) is var:
                call = self._store(n, result)
                yield Bound(Var("_", call.struct_info), call)

    def run(self, func: Function, params: Sequence[Var]) -> Function:
        """A function that stores its results, and returns none."""
        own = {binding.var for binding in self._bindings}
        made = [one for param in func.params for one in self._of(param)]
        for binding in self._bindings:
            made.append(binding)
            for var in self._ends[binding.var]:
                if var in own:
                    made += self._of(var)
                if var in self._loaded:
                    made.append(Bound(Var("_", _VOID), kill_object(var)))
        for result in self._results:
            if not isinstance(result, (Var, TupleGetItem)):
                made += self._of(result)
        output: Any = Tuple(())
        if self._whole is not None:
            made.append(Bound(Var(self._whole.name_hint, _VOID), output))
            output = made[-1].var
        return Function(tuple(params), SeqExpr((BindingBlock(tuple(made)),), output), _VOID, False, func.attrs)


def _without_force(func: Function) -> Function:
    return func.without_attr("relax.force_pure") if "relax.force_pure" in func.attrs else func


def LazyTransformParams(
    fget_item: str = "get_item",
    fset_item: str | None = "set_item",
    extra_get_item_params: Sequence[Var] | None = None,
    extra_set_item_params: Sequence[Var] | None = None,
) -> ModulePass:
    """A pass: functions whose names end with "transform_params" get weights by a registered function, and give results to another one.

    Weights, behind the first "num_input" parameters, are a tuple or parameters of their own. Each is let go of behind its last use.

    Args:
        fget_item: is called with the number of a weight.
        fset_item: is called with the number of a result and the result, and the function returns (); None for results that are returned.
        extra_get_item_params, extra_set_item_params: parameters of the function that these two get first.

    Raises:
        DeclarationError: without `fget_item`, or where the tuple of weights is read as a whole.
    """
    getting, setting = list(extra_get_item_params or ()), list(extra_set_item_params or ())
    if fget_item is None:
        raise DeclarationError("LazyTransformParams: results alone can't be lazy here; LazySetOutput makes them so")

    def load(n: int, name: str) -> Call:
        return Call(ExternFunc(fget_item), (*getting, _number(n)), None, (_OBJECT,))

    def store(n: int, value: Any) -> Call:
        return Call(ExternFunc(str(fset_item)), (*setting, _number(n), value), None, (_OBJECT,))

    def lazy(func: Function) -> Function:
        kept = [*func.params[: _inputs(func)], *getting, *setting]
        if defined_symbolic_vars(func):  # of which a weight alone may tell the value
            weights = [info for param in func.params[_inputs(func) :] for info in _flat(param.struct_info)]
            kept += [Var("symbolic_var_holder", info) for info in weights if isinstance(info, (PrimStructInfo, ShapeStructInfo))]
        made, loaded = _with_loads(_without_force(without_dataflow(func)), load, kept, False)
        return made if fset_item is None else _Stores(made, store, True, loaded).run(made, kept)

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function) and var.name_hint.endswith("transform_params"):
                made.update_func(var, lazy(func))
        return made

    return graph_pass("LazyTransformParams", run)


def _flat(info: StructInfo) -> Iterator[StructInfo]:
    if isinstance(info, TupleStructInfo):
        for one in info.fields:
            yield from _flat(one)
    else:
        yield info


def _callback(name: str, returned: StructInfo, is_pure: bool) -> Var:
    return Var(name, FuncStructInfo((PrimStructInfo("int64"), _OBJECT), returned, is_pure))


def _with_callback(func: Function, var: Var) -> tuple[list[Var], dict[str, Any]]:
    """Parameters and attributes of a function with one more input, which stands in front of its weights."""
    count = _inputs(func)
    return [*func.params[:count], var, *func.params[count:]], {"num_input": count + 1}


def LazyGetInput() -> ModulePass:
    """A pass: functions with a global symbol get their weights by calls of a parameter `fget_param(number, name)`.

    That one stands behind the first "num_input" parameters. A weight is loaded in front of the first binding that reads it.
    """

    def run(func: Function, mod: IRModule) -> Function:
        if "global_symbol" not in func.attrs:
            return func
        fget = _callback("fget_param", _OBJECT, True)
        params, attrs = _with_callback(func, fget)

        def load(n: int, name: str) -> Call:
            return Call(fget, (_number(n), StringImm(name)), None, (), _OBJECT)

        made, _ = _with_loads(func, load, params[: attrs["num_input"]], func.is_pure)
        return replace(made, attrs=FrozenMap({**made.attrs, **attrs}))

    return each_function("LazyGetInput", run)


def LazySetOutput() -> ModulePass:
    """A pass: functions with a global symbol give their results, when they are there, to a parameter `fset_output(number, value)`.

    That one stands behind the first "num_input" parameters, or behind all where there is no such attribute. They return ().
    """

    def run(func: Function, mod: IRModule) -> Function:
        if "global_symbol" not in func.attrs:
            return func
        fset = _callback("fset_output", _VOID, False)
        params, attrs = _with_callback(func, fset) if "num_input" in func.attrs else ([*func.params, fset], {})

        def store(n: int, value: Any) -> Call:
            return Call(fset, (_number(n), value), None, (), _VOID)

        plain = without_dataflow(func)
        made = _Stores(plain, store, False, set()).run(plain, params)
        return replace(made, attrs=FrozenMap({**made.attrs, **attrs}))

    return each_function("LazySetOutput", run)
