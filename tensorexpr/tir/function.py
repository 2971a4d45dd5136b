"""Functions and modules: what is lowered, printed and built."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ..dataclass import dataclass, field, replace
from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import convert
from .attrs import EMPTY, FrozenMap
from .buffer import Buffer
from .expr import Call, IntImm, PrimExpr, Type, Var
from .global_info import GlobalInfo, checked_infos
from .interning import ADAPTERS, Built
from .node import Object
from .stmt import Evaluate, Stmt

ADAPTERS["Mapping[Var, Buffer]"] = (Mapping, dict, None)

_MAKING = threading.RLock()  # of later bodies


class LaterBody:
    """A body that is made when somebody looks at it: a kernel that is found on disk by what it computes needs none."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Stmt]) -> None:
        self._make: Callable[[], Stmt] | None = make

    @property
    def is_made(self) -> bool:
        """Whether somebody has looked at it."""
        return self._make is None

    def __call__(self) -> Stmt:
        """The body, the same one each time."""
        with _MAKING:
            if self._make is not None:
                self._made, self._make = self._make(), None
        return self._made


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class PrimFunc(Built, Object):
    """A loop-level function.

    `params` are scalars and handles; `buffer_map` says which buffer a handle stands for. Variables that
    occur in the shapes and strides of those buffers are defined by the arguments of a call.
    """

    _specialize: ClassVar[Callable[[PrimFunc, Mapping[Var, Any]], PrimFunc]]  # `tir.specialize` puts it here, as it rewrites functions

    params: tuple[Var, ...]
    body: Stmt
    ret_type: Type | None = None
    buffer_map: Mapping[Var, Buffer] = field(default_factory=dict)
    attrs: FrozenMap = EMPTY
    # Under which options the body was lowered; None if it wasn't. No function that is made of this one has it.
    _lowered_under: object = field(default_factory=lambda: None, init=False, repr=False)
    _later: LaterBody | None = field(default_factory=lambda: None, init=False, repr=False)

    @staticmethod
    def _normal(args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with a handle for each parameter that is a buffer, or memory of the IR builder."""
        params, body, ret_type, buffer_map, *rest = args
        buffers = [param if isinstance(param, Buffer) else getattr(param, "buffer", None) for param in params]
        if not any(isinstance(buffer, Buffer) for buffer in buffers):
            return args
        found = dict(buffer_map) if isinstance(buffer_map, Mapping) else {}
        handles: list[Any] = []
        for param, buffer in zip(params, buffers, strict=True):
            handles.append(Var(buffer.name, "handle") if isinstance(buffer, Buffer) else param)
            if isinstance(buffer, Buffer):
                found[handles[-1]] = buffer
        return (handles, body, ret_type, found, *rest)

    @staticmethod
    def of_later_body(params: tuple[Var, ...], body: LaterBody, buffer_map: Mapping[Var, Buffer], attrs: FrozenMap) -> PrimFunc:
        """A function whose body is made when somebody looks at it; with other attributes it has the same one."""
        made = PrimFunc(params, Evaluate(IntImm("int32", 0)), None, buffer_map, attrs)
        object.__setattr__(made, "_later", body)
        object.__delattr__(made, "body")
        return made

    if not TYPE_CHECKING:  # of which a checker would conclude that a function has any attribute

        def __getattr__(self, name: str) -> Any:
            # Python asks here for what isn't there, as the body that nobody has looked at.
            if name != "body" or self._later is None:
                raise AttributeError(f"'PrimFunc' object has no attribute {name!r}")
            object.__setattr__(self, "body", self._later())
            return self.body

    @property
    def body_identity(self) -> object:
        """An object that functions share which have one body: the body, or what makes it."""
        return self.body if self._later is None else self._later

    @property
    def has_later_body(self) -> bool:
        """Whether nobody has looked at the body yet, which is made then."""
        return self._later is not None and not self._later.is_made

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> PrimFunc:
        """This function with one attribute, or all of a mapping, set."""
        new = attr_key_or_dict if isinstance(attr_key_or_dict, Mapping) else {attr_key_or_dict: attr_value}
        return self._with({**self.attrs, **new})

    def with_attrs(self, attr_map: Mapping[str, Any]) -> PrimFunc:
        """This function with other attributes in place of its own, or itself if they are the same."""
        return self if dict(attr_map) == dict(self.attrs) else self._with(attr_map)

    def _with(self, attrs: Mapping[str, Any]) -> PrimFunc:
        if self._later is None:
            return replace(self, attrs=FrozenMap(attrs))
        return PrimFunc.of_later_body(self.params, self._later, self.buffer_map, FrozenMap(attrs))

    def specialize(self, param_map: Mapping[Var, Any]) -> PrimFunc:
        """This function for known sizes.

        Args:
            param_map: scalar parameters -> numbers or expressions, which takes them out of the parameters; handles ->
                buffers (tir.decl_buffer), whose shapes give the sizes in the declared ones their values.

        Raises:
            DeclarationError: if a key is no parameter, or a buffer does not fit the one declared.
        """
        return PrimFunc._specialize(self, param_map)

    def without_attr(self, attr_key: str) -> PrimFunc:
        """This function without an attribute."""
        return self._with({k: v for k, v in self.attrs.items() if k != attr_key})

    def with_body(self, new_body: Stmt) -> PrimFunc:
        """This function around another body; itself if the body is the same."""
        return self if new_body is self.body else replace(self, body=new_body)

    def marked_lowered(self, options: object) -> PrimFunc:
        """A copy that remembers under which options it was lowered, for as long as nothing of it is changed."""
        copy = replace(self)
        object.__setattr__(copy, "_lowered_under", options)
        return copy

    @property
    def lowered_under(self) -> object:
        """The options that it was lowered under and not changed since; None if it wasn't lowered."""
        return self._lowered_under

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__


class GlobalVar(Object):
    """The name of a function in a module.

    Args:
        name_hint: the name.
        type_annot: the function's type, where a pass has looked it up; names are equal with and without.
    """

    __slots__ = ("name_hint", "type_annotation")

    def __init__(self, name_hint: str, type_annot: Any = None) -> None:
        self.name_hint, self.type_annotation = name_hint, type_annot

    @property
    def checked_type(self) -> Any:
        """The type of the function.

        Raises:
            TypeMismatchError: if no pass has looked it up.
        """
        if self.type_annotation is None:
            raise TypeMismatchError(f"the type of @{self.name_hint} isn't known: relay.transform.InferType() states those of a module")
        return self.type_annotation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and other.name_hint == self.name_hint

    def __hash__(self) -> int:
        return hash(self.name_hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalVar, (self.name_hint, self.type_annotation)

    def __call__(self, *args: Any) -> Any:
        """As `call_tir`; with values of a graph, its call of the function."""
        # Of the class: what is known of a value may be an error that another place reports.
        graph = next((arg for arg in args if hasattr(type(arg), "struct_info") and not isinstance(arg, GlobalVar)), None)
        return call_tir(self, *args) if graph is None else graph._by("call", self, args, None)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The name as Relay's text has it, `@main`; nothing of it is in other places, nor has remarks."""
        return f"@{self.name_hint}"

    def __repr__(self) -> str:
        return f'I.GlobalVar("{self.name_hint}")'


def call_tir(global_var: GlobalVar, *args: Any) -> PrimExpr:
    """A call of a function by another of the same module, as a statement has it: without a value.

    Raises:
        TypeMismatchError: for a name that is no GlobalVar.
    """
    if not isinstance(global_var, GlobalVar):
        raise TypeMismatchError(f"call_tir takes a GlobalVar of the module, as mod.get_global_var(name) gives it, not {global_var!r}")
    return Call("void", global_var, tuple(map(convert, args)))  # type: ignore[arg-type]


class FunctionMap(dict["GlobalVar", "PrimFunc"]):
    """The functions of a module. As in TVM `values()` can be given to `next`, which gives the first, and `items()[0]` is the first pair."""

    def items(self) -> list[tuple[GlobalVar, PrimFunc]]:  # type: ignore[override]
        """The global variables with their functions, as a list, which has a first."""
        return list(super().items())

    def values(self) -> Iterator[PrimFunc]:  # type: ignore[override]
        """The functions, one after the other."""
        return iter(super().values())


class IRModule(Object):
    """Functions by name. `mod["main"]` is one of them; `update_func` replaces one in place.

    Args:
        functions: by name or global variable.
        attrs: attributes.
        global_infos: lists of `GlobalInfo` by name, such as the devices under "vdevice".
        type_definitions: algebraic types of Relay by their names.
    """

    def __init__(
        self,
        functions: Mapping[str | GlobalVar, PrimFunc] | None = None,
        attrs: Mapping[str, Any] | None = None,
        global_infos: Mapping[str, Sequence[GlobalInfo]] | None = None,
        *,
        type_definitions: Mapping[Any, Any] | None = None,
    ) -> None:
        self._functions = _checked(functions or {})
        self.type_definitions: dict[Any, Any] = dict(type_definitions or {})
        self.attrs = FrozenMap(attrs)
        self.global_infos = checked_infos(global_infos)

    # Other nodes are their own copies; a module changes in place.
    def __copy__(self) -> IRModule:
        return self._with(self.attrs)

    def __deepcopy__(self, memo: dict[int, Any]) -> IRModule:
        return self._with(self.attrs)

    def __reduce__(self) -> tuple[Any, ...]:
        made = dict(self._functions), dict(self.attrs), dict(self.global_infos)
        return partial(IRModule, type_definitions=self.type_definitions), made

    def clone(self) -> IRModule:
        """A copy that can be changed on its own."""
        return self._with(self.attrs)

    @staticmethod
    def from_expr(
        expr: Any,  # PrimFunc | IRModule | a function or expression of graphs
        functions: Mapping[str | GlobalVar, PrimFunc] | None = None,
        type_defs: Mapping[Any, Any] | None = None,
    ) -> IRModule:
        """A module of one function, named by its `global_symbol` or "main", and of those given besides; a module is itself.

        Args:
            expr: the function; of another expression of Relay, the function of its free variables.
            functions: others, by name.
            type_defs: algebraic types by their names.
        """
        if isinstance(expr, IRModule):
            return expr
        func = expr.as_function() if hasattr(expr, "as_function") else expr
        return IRModule({**(functions or {}), str(func.attrs.get("global_symbol", "main")): func}, type_definitions=type_defs)

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The module as TVMScript.

        Args:
            show_meta_data: with what the text refers to as metadata.
            annotate: of graphs; without effect here.
        """
        return self.script(show_meta=show_meta_data)

    def update_global_info(self, name: str, global_info: Sequence[GlobalInfo]) -> None:
        """Set the global infos of a name, in place.

        Raises:
            DeclarationError: for values that are none.
        """
        self.global_infos |= checked_infos({name: global_info})

    def replace_global_vars(self, replacements: Mapping[str | GlobalVar, str | GlobalVar]) -> IRModule:
        """A module whose functions have other names, where they are defined and where they are called.

        Args:
            replacements: old names -> new ones.

        Raises:
            DeclarationError: if two functions would have one name.
        """
        renamed: IRModule = importlib.import_module("tensorexpr.tir.rename").renamed(
            self, {_name(k): _name(v) for k, v in replacements.items()}
        )
        return renamed

    def get_global_type_vars(self) -> list[Any]:
        """The names of the algebraic types that the module defines."""
        return list(self.type_definitions)

    def get_global_type_var(self, name: str) -> Any:
        """The name of an algebraic type.

        Raises:
            ValueError: if the module defines none of that name.
        """
        for one in self.type_definitions:
            if one.name_hint == name:
                return one
        known = ", ".join(str(one) for one in self.type_definitions)
        raise ValueError(
            f"the module defines no type {name!r}; it defines {known or 'none'}. relay.prelude.Prelude(mod) adds lists and trees"
        )

    def get_type(self, name: str) -> list[Any]:
        """The name of an algebraic type, then its constructors."""
        var = self.get_global_type_var(name)
        return [var, *self.type_definitions[var].constructors]

    def get_constructor(self, tag: int) -> Any:
        """The constructor of a type, by its number.

        Raises:
            ValueError: if no type of the module has it.
        """
        for definition in self.type_definitions.values():
            for one in definition.constructors:
                if one.tag == tag:
                    return one
        raise ValueError(f"no type that the module defines has a constructor {tag}")

    def import_from_std(self, file_to_import: str) -> None:
        """Add a file of Relay's library, in place: "prelude.rly" or "nat.rly".

        Raises:
            ValueError: for another one.
        """
        importlib.import_module("tensorexpr.relay.prelude").add_library(self, file_to_import)

    @property
    def functions(self) -> FunctionMap:
        """The functions by global variable."""
        return FunctionMap((GlobalVar(name), func) for name, func in self._functions.items())

    def functions_items(self) -> list[tuple[GlobalVar, PrimFunc]]:
        """The functions in order of insertion."""
        return list(self.functions.items())

    def __getitem__(self, var: str | GlobalVar) -> PrimFunc:
        if var in self.type_definitions:
            return self.type_definitions[var]  # type: ignore[no-any-return]
        name = _name(var)
        if name not in self._functions:
            raise DeclarationError(f"the module has no function {name!r}; it has {', '.join(self._functions) or 'none'}")
        return self._functions[name]

    def __setitem__(self, var: str | GlobalVar, func: PrimFunc) -> None:
        self.update_func(var, func)

    def __delitem__(self, var: str | GlobalVar) -> None:
        self[var]  # an error that names those that are there
        self._functions.pop(_name(var), None)

    def __contains__(self, var: str | GlobalVar) -> bool:
        return _name(var) in self._functions

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of the function `name`.

        Raises:
            DeclarationError: if there is none; the message lists those that are there.
        """
        self[name]
        return GlobalVar(name)

    def get_global_vars(self) -> list[GlobalVar]:
        """All function variables."""
        return list(self.functions)

    def update_func(self, var: str | GlobalVar, func: PrimFunc) -> None:
        """Set the function of `var`, or the definition of a type, in place."""
        if not isinstance(var, (str, GlobalVar)) and hasattr(func, "constructors"):
            self.type_definitions[var] = func
            return
        func = func.as_function() if hasattr(func, "as_function") else func
        self._functions.update(_checked({var: func}))

    def update(self, other: IRModule | Mapping[str | GlobalVar, PrimFunc]) -> None:
        """Take over all functions and types of `other`, in place."""
        if isinstance(other, IRModule):
            self.type_definitions.update(other.type_definitions)
        self._functions.update(other._functions if isinstance(other, IRModule) else _checked(other))

    def get_attr(self, attr_key: str) -> Any:
        """An attribute, or None."""
        return self.attrs.get(attr_key)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        """A copy of this module with one attribute set."""
        return self._with({**self.attrs, attr_key: attr_value})

    def with_attrs(self, attr_map: Mapping[str, Any]) -> IRModule:
        """A copy of this module with all attributes of a mapping set."""
        return self._with({**self.attrs, **attr_map})

    def without_attr(self, attr_key: str) -> IRModule:
        """A copy of this module without an attribute."""
        return self._with({key: value for key, value in self.attrs.items() if key != attr_key})

    def _with(self, attrs: Mapping[str, Any]) -> IRModule:
        copy = IRModule(attrs=attrs, global_infos=self.global_infos)
        copy.update(self)
        return copy

    def map_functions(self, transform: Any) -> IRModule:
        """A new module with every function transformed."""
        made: dict[Any, Any] = {name: transform(func) for name, func in self._functions.items()}
        return IRModule(made, self.attrs, self.global_infos, type_definitions=self.type_definitions)

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__


def _name(var: str | GlobalVar) -> str:
    return var.name_hint if isinstance(var, GlobalVar) else var


def _checked(functions: Any) -> dict[str, PrimFunc]:
    """Functions by name.

    Raises:
        DeclarationError: for what is no mapping of names to functions.
    """
    if not isinstance(functions, Mapping):
        raise DeclarationError(f'a module is made of functions by name, as in IRModule({{"main": func}}), not of {functions!r}')
    for key, func in functions.items():
        if not (isinstance(key, (str, GlobalVar)) and isinstance(func, Object)):
            raise DeclarationError(f"a module takes functions by name, not {func!r} by {key!r}")
    return {_name(key): func for key, func in functions.items()}


def __getattr__(name: str) -> Any:
    if name == "TensorIntrin":  # which is made of functions, and looked for here too
        return importlib.import_module("tensorexpr.tir.tensor_intrin").TensorIntrin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
