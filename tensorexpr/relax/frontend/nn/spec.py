"""What arguments of exported methods are: `nn.spec.Tensor((1, "n"), "float32")`, `int`, tuples and lists of these.

    {"prefill": {"tokens": nn.spec.Tensor((1, "n"), "int32"), "position": int, "$": {"param_mode": "packed", "effect_mode": "none"}}}

is a module's specification as a dictionary; `ModuleSpec.from_raw` makes one of it. Under "$" stands how a method takes the parameters
and the effects of its module: each for itself ("plain"), all as one tuple ("packed"), or not at all ("none").
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....dataclass import dataclass
from ....errors import DeclarationError, TypeMismatchError

MODES = ("plain", "packed", "none")


@dataclass(frozen=True, repr=False)
class Tensor:
    """A tensor: extents are integers, names of symbols, which are one in all of a method, or expressions."""

    shape: Sequence[Any]
    dtype: str = "float32"

    def __repr__(self) -> str:
        return f"Tensor([{', '.join(map(str, self.shape))}], '{self.dtype}')"


@dataclass(frozen=True, repr=False)
class Int:
    """An integer, known when the graph runs; `int` is one too."""

    def __repr__(self) -> str:
        return "int"


@dataclass(frozen=True, repr=False)
class Object:
    """A value that is no tensor.

    object_type: a class derived from `nn.Object`, of which the method gets one.
    """

    object_type: Any

    def __repr__(self) -> str:
        return "object"


@dataclass(frozen=True, repr=False)
class Tuple:
    """A tuple or list of arguments."""

    name: str
    elements: Sequence[Any]

    def __repr__(self) -> str:
        return repr(self.elements)


def _spec(stated: Any, name: str, method: str) -> Any:
    """The specification of an argument.

    Raises:
        TypeMismatchError: for what is none.
    """
    if stated is int or stated is Int or stated == "int":
        return Int()
    if isinstance(stated, (Tensor, Int, Object)):
        return stated
    if isinstance(stated, Tuple):
        return Tuple(name, type(stated.elements)(_spec(one, f"{name}_{n}", method) for n, one in enumerate(stated.elements)))  # type: ignore[call-arg]
    if isinstance(stated, (tuple, list)):
        return Tuple(name, type(stated)(_spec(one, f"{name}_{n}", method) for n, one in enumerate(stated)))
    kinds = "nn.spec.Tensor(...), nn.spec.Object(...), int, or a tuple or list of these"
    raise TypeMismatchError(f"argument {name} of {method} is {kinds}, not {stated!r}")


@dataclass(frozen=True, repr=False)
class MethodSpec:
    """A method, its arguments in order, and how it takes parameters and effects.

    Raises:
        DeclarationError: for modes that there aren't.
    """

    method: Callable[..., Any]
    arg_names: Sequence[str]
    arg_specs: Sequence[Any]
    param_mode: str = "plain"
    effect_mode: str = "plain"

    def __post_init__(self) -> None:
        for key in ("param_mode", "effect_mode"):
            if getattr(self, key) not in MODES:
                raise DeclarationError(f"nn.spec: {key} is one of {', '.join(MODES)}, not {getattr(self, key)!r}")

    def shown(self, name: str) -> str:
        """The method with its arguments, under a name."""
        return f"{name}({', '.join(f'{arg}: {spec}' for arg, spec in zip(self.arg_names, self.arg_specs, strict=True))})"

    def __repr__(self) -> str:
        return self.shown("MethodSpec")

    @staticmethod
    def from_raw(spec: Any, method: Callable[..., Any]) -> MethodSpec:
        """A method's specification of a dictionary: names of arguments -> what they are.

        Raises:
            DeclarationError: for arguments that the method doesn't have, or that aren't stated.
        """
        if isinstance(spec, MethodSpec):
            return spec
        modes = dict(spec.get("$", {}))
        given = {name: stated for name, stated in spec.items() if name != "$"}
        signature = inspect.signature(method).parameters
        odd = [name for name in given if name not in signature]
        odd += [name for name, one in signature.items() if name not in given and one.default is one.empty and one.kind < 2]
        called = getattr(method, "__name__", "it")
        if odd:
            raise DeclarationError(f"export_tvm: method {called} takes {', '.join(signature)}; the spec has {', '.join(given)}")
        names = [name for name in signature if name in given]
        return MethodSpec(method, names, [_spec(given[name], name, called) for name in names], **modes)

    @staticmethod
    def from_torch(args: Sequence[Any], method: Callable[..., Any]) -> MethodSpec:
        """A method's specification of values for its arguments: tensors of PyTorch and integers."""
        names = list(inspect.signature(method).parameters)
        if len(names) != len(args):
            raise DeclarationError(f"nn.spec: the method takes {', '.join(names)}, not {len(args)} arguments")
        specs = [Int() if isinstance(one, int) else Tensor(list(one.shape), str(one.dtype).rpartition(".")[2]) for one in args]
        return MethodSpec(method, names, specs)


@dataclass(frozen=True, repr=False)
class ModuleSpec:
    """Methods of a module with their specifications."""

    module: Any
    method_names: Sequence[str]
    method_specs: Sequence[MethodSpec]

    def __repr__(self) -> str:
        lines = (f"  {one.shown(name)}" for name, one in zip(self.method_names, self.method_specs, strict=True))
        return "\n".join(["ModuleSpec:", *lines])

    @staticmethod
    def from_raw(spec: Any, module: Any) -> ModuleSpec:
        """A module's specification of a dictionary: names of methods -> names of arguments -> what they are.

        Raises:
            DeclarationError: for methods that there aren't.
        """
        if isinstance(spec, ModuleSpec):
            return spec
        methods: Mapping[str, Any] = {name: getattr(module, name, None) for name in spec}
        missing = [name for name, method in methods.items() if not callable(method)]
        if missing:
            raise DeclarationError(f"export_tvm: {type(module).__name__} has no method {missing[0]!r}")
        return ModuleSpec(module, list(methods), [MethodSpec.from_raw(spec[name], method) for name, method in methods.items()])


__all__ = ["Int", "MethodSpec", "ModuleSpec", "Object", "Tensor", "Tuple"]
