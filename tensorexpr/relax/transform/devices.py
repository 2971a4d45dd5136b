"""RealizeVDevice and UpdateVDevice: on which of a module's devices the tensors of its graphs live."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...dataclass import replace
from ...errors import PassError
from ...lower.passes import ModulePass
from ...tir.function import IRModule
from ...tir.global_info import VDevice
from ...tir.op_registry import Op
from ..expr import Call, Function, Tuple, Var
from ..ops.layout import to_vdevice
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from ..visitor import Mutator, bindings_of, walk
from .passes import graph_pass

_HINT, _COPY = "relax.hint_on_device", "relax.to_vdevice"


def _device(value: Any) -> VDevice | None:
    info = value.struct_info if isinstance(value, Var) else value
    return info.vdevice if isinstance(info, TensorStructInfo) else None


def _is_call(value: Any, *names: str) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and str(value.op) in names


def _listed(mod: IRModule, hint: Call) -> VDevice:
    """The module's device that a hint means: of the same type and number, whatever else the module says of it."""
    wished: VDevice = hint.attrs["dst_vdevice"]
    listed = [info for info in mod.global_infos.get("vdevice", ()) if isinstance(info, VDevice) and info.target is not None]
    number = None if wished.target is None else wished.target.get_target_device_type()
    alike = (info for info in listed if info.target is not None and info.target.get_target_device_type() == number)
    found = next((info for info in alike if info.vdevice_id == wished.vdevice_id), None)
    if found is None:
        names = ", ".join(f"{info.kind}:{info.vdevice_id}" for info in listed) or "none"
        raise PassError(
            f"{hint} wishes for device {wished.kind}:{wished.vdevice_id}, and the module lists {names}; "
            'name it in I.module_global_infos({"vdevice": [...]})'
        )
    return found


def _returned(value: Any, info: StructInfo, bound: dict[Var, Any]) -> Iterator[tuple[Var, VDevice]]:
    """Variables that a function returns where its signature states a device."""
    if isinstance(info, TupleStructInfo):
        while isinstance(value, Var) and value in bound:
            value = bound[value]
        for one, stated in zip(value.fields, info.fields, strict=True) if isinstance(value, Tuple) else ():
            yield from _returned(one, stated, bound)
    elif isinstance(value, Var) and (device := _device(info)) is not None:
        yield value, device


class _Places:
    """Where variables live: what is stated first, then what is hinted of operands; both spread over all that is computed together."""

    def __init__(self, mod: IRModule, funcs: Iterable[Function]) -> None:
        self.known: dict[Var, VDevice] = {}
        self._together: dict[Var, list[Var]] = {}
        stated: dict[Var, VDevice] = {}
        hinted: dict[Var, VDevice] = {}
        for func in funcs:
            bindings = list(bindings_of(func))
            for var in (*(p for one in walk(func) if isinstance(one, Function) for p in one.params), *(b.var for b in bindings)):
                if (device := _device(var)) is not None:
                    stated[var] = device
            for binding in bindings:
                if _is_call(binding.value, _HINT):
                    stated[binding.var] = device = _listed(mod, binding.value)
                    hinted |= {arg: device for arg in binding.value.args if isinstance(arg, Var)}
                elif not _is_call(binding.value, _COPY):
                    self._join(binding.var, binding.value)
            for var, device in _returned(func.body.body, func.ret_struct_info, {b.var: b.value for b in bindings}):
                stated.setdefault(var, device)
        self._spread(stated)
        self._spread(hinted)

    def _join(self, var: Var, value: Any) -> None:
        for operand in walk(value):
            if isinstance(operand, Var):
                self._together.setdefault(var, []).append(operand)
                self._together.setdefault(operand, []).append(var)

    def _spread(self, places: dict[Var, VDevice]) -> None:
        fresh = deque(var for var, device in places.items() if self.known.setdefault(var, device) is device)
        while fresh:
            var = fresh.popleft()
            for other in self._together.get(var, ()):
                if other not in self.known:
                    self.known[other] = self.known[var]
                    fresh.append(other)


class _Realized(Mutator):
    """States where variables live; a hint is a copy, or nothing where the tensor is there already."""

    def __init__(self, mod: IRModule, known: dict[Var, VDevice]) -> None:
        super().__init__()
        self._mod, self._known = mod, known

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable on its device."""
        device = self._known.get(var)
        placed = isinstance(info, TensorStructInfo) and device is not None
        return super().define(var, replace(info, vdevice=device) if placed else info)  # type: ignore[type-var]

    def rewrite(self, expr: Any) -> Any:
        """A copy, or the tensor itself, in place of a hint."""
        if not _is_call(expr, _HINT):
            return expr
        device = _listed(self._mod, expr)
        return expr.args[0] if _device(expr.args[0].struct_info) == device else to_vdevice(expr.args[0], device)


class _Moved(Mutator):
    """Puts one device in the place of another."""

    def __init__(self, old: VDevice, new: VDevice) -> None:
        super().__init__()
        self._old, self._new = old, new

    def _info(self, info: StructInfo) -> StructInfo:
        if isinstance(info, TupleStructInfo):
            return TupleStructInfo(tuple(map(self._info, info.fields)))
        return replace(info, vdevice=self._new) if isinstance(info, TensorStructInfo) and info.vdevice == self._old else info

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable on the new device."""
        return super().define(var, self._info(info))

    def rewrite(self, expr: Any) -> Any:
        """Copies and stated results that name the device."""
        if not isinstance(expr, Call):
            return expr
        attrs = {key: self._new for key, value in expr.attrs.items() if value == self._old}
        infos = tuple(map(self._info, expr.sinfo_args))
        if not attrs and infos == expr.sinfo_args:
            return expr
        return Call(expr.op, expr.args, expr.attrs.set(**attrs), infos)


def _each(mod: IRModule, mutator: Callable[[], Mutator]) -> IRModule:
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, Function):
            made.update_func(var, mutator().function(func))
    return made


def RealizeVDevice() -> ModulePass:
    """A pass: tensors of which nothing is stated live where what they are computed with lives, and hints become copies or nothing.

    What is stated counts first (parameters, results, `hint_on_device`'s own value), then that operands of hints are where these wish
    them. The devices are those of the module, by type and number.

    Raises:
        PassError: for a hint at a device that the module doesn't list.
    """

    def run(mod: IRModule) -> IRModule:
        funcs: list[Any] = [func for func in mod.functions.values() if isinstance(func, Function)]
        known = _Places(mod, funcs).known
        return _each(mod, lambda: _Realized(mod, known))

    return graph_pass("RealizeVDevice", run)


def UpdateVDevice(new_vdevice: VDevice, index: int) -> ModulePass:
    """A pass: another device in place of one of the module's, in its list and for all tensors on it.

    Args:
        new_vdevice: the device.
        index: which of `mod.global_infos["vdevice"]` it replaces.

    Raises:
        PassError: if there is no such one.
    """

    def run(mod: IRModule) -> IRModule:
        listed = mod.global_infos.get("vdevice", ())
        if not 0 <= index < len(listed):
            raise PassError(f"the module lists {len(listed)} devices; none has the index {index}")
        old: Any = listed[index]
        made = _each(mod, lambda: _Moved(old, new_vdevice))
        made.update_global_info("vdevice", [new_vdevice if info == old else info for info in listed])
        return made

    return graph_pass("UpdateVDevice", run)
