"""The full check of a call's arguments, in Python: what it lets through, native code may trust.

It explains every refusal. Calls that need no explanation take the same checks natively, see fastcall.py.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from typing import Any, NoReturn

import numpy as np

from ..codegen.signature import BufferParam, Signature
from ..dataclass import dataclass
from ..errors import ArgumentError
from ..tir.dtype import int_limits, parse_dtype, to_numpy
from ..tir.expr import IntImm, SizeVar
from . import binding, dlpack
from .binding import Define, Fixed, Formula, Match, Place, Solve
from .layout import data_pointer
from .ndarray import NDArray

_Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
_WORD = 1 << 64
_UNSET = -1


@dataclass(frozen=True, slots=True)
class ArrayCheck:
    """What is checked of one array without knowing the others. `shape` is None if it is not constant."""

    position: int
    param: BufferParam
    dtype: np.dtype[Any]
    ndim: int
    shape: tuple[int, ...] | None
    compact: bool


class ArgumentChecker:
    """Checks the arguments of one function and packs them into a block of words: one per parameter, one per symbol."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.plan = binding.make_plan(signature)
        self._arrays = {i: _array_check(i, p) for i, p in enumerate(signature.params) if isinstance(p, BufferParam)}
        constant = {i for i, check in self._arrays.items() if check.shape is not None}
        # Constant shapes are compared whole, by `_array`.
        self._steps = [s for s in self.plan.steps if not (s.place.kind == "shape" and s.place.param in constant)]
        # Numbers alone: each is its own word, nothing is to agree with it, and no symbol is to be found.
        if all(step.place.kind == "value" for step in self._steps):
            self._steps = []
        self._written = [i for i, check in self._arrays.items() if check.param.is_written]

    def block(self, args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """The words for the native entry, and the objects that must live as long as they are used.

        Raises:
            ArgumentError: for the first argument that does not fit, with what is needed instead.
        """
        params = self.signature.params
        if len(args) != len(params):
            raise ArgumentError(f"{self.signature.name} takes {len(params)} arguments, {self._wanted()}; got {len(args)}")
        held: list[Any] = []
        words: list[int] = []
        for position, arg in enumerate(args):
            check = self._arrays.get(position)
            if check is None:
                value, word = self._scalar(position, arg)
                held.append(value)
            else:
                array = self._array(check, arg)
                held.append(array)
                word = data_pointer(array)
                if array.size and word % check.param.alignment:  # of an empty array nothing is read
                    self._fail(
                        position,
                        f"starts at address {word:#x}, needs a multiple of {check.param.alignment}",
                        _copied(check, "copy it: ", "x.copy()"),
                    )
            words.append(word)
        # After all arrays: a shape may be defined by a later argument.
        symbols = self._bind(held) if self._steps else []
        self._check_overlap(held)
        words += symbols[: len(self.signature.symbols)]
        return (ctypes.c_uint64 * max(len(words), 1))(*words), held

    def adopt(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the arrays of other libraries as NumPy arrays on the same memory; `args` itself if there are none.

        Raises:
            ArgumentError: if one can't be shared.
        """
        foreign = [i for i in self._arrays if i < len(args) and not isinstance(args[i], (np.ndarray, NDArray))]
        if not foreign:
            return args
        return tuple(self._convert(self._arrays[i], arg) if i in foreign else arg for i, arg in enumerate(args))

    def _array(self, check: ArrayCheck, arg: Any) -> _Array:
        array = arg if isinstance(arg, np.ndarray) else self._convert(check, arg)
        if array.dtype != check.dtype:
            self._fail(
                check.position,
                f"has dtype {array.dtype}, needs {check.dtype}",
                _copied(check, "convert it with ", f"x.astype({check.dtype.name!r})"),
            )
        if array.ndim != check.ndim:
            shape = self._shape_text(check.param)
            self._fail(check.position, f"has {array.ndim} dimensions {array.shape}, needs {check.ndim}: {shape}", "reshape it")
        if check.shape is not None and array.shape != check.shape:
            self._fail(check.position, f"has shape {array.shape}, needs {check.shape}")
        flags = array.flags
        if check.compact and not flags.c_contiguous:
            self._fail(
                check.position, f"has strides {array.strides}, needs compact rows", _copied(check, "pass ", "np.ascontiguousarray(x)")
            )
        if check.param.is_written:
            self._check_writable(check, array)
        return array

    def _convert(self, check: ArrayCheck, arg: Any) -> _Array:
        if isinstance(arg, NDArray):
            if type(arg) is not NDArray:
                self._fail(check.position, f"lives on {arg.device}", "call a function of its session, or pass x.numpy()")
            return arg._array
        if not hasattr(arg, "__dlpack__") or isinstance(arg, np.generic):
            what = f"is a {type(arg).__name__}, needs an array {self._describe(check.param)}"
            self._fail(check.position, what, "pass a NumPy array, an nd.array, or anything with __dlpack__")
        try:
            return dlpack.borrow(arg, check.param.is_written)
        except ArgumentError as error:
            self._fail(check.position, str(error))

    def _check_writable(self, check: ArrayCheck, array: _Array) -> None:
        if not array.flags.writeable:
            self._fail(
                check.position,
                "is read-only, and the function writes it",
                "pass a writable array, such as x.copy()",
            )
        if not array.flags.c_contiguous and _may_repeat(array):  # compact rows repeat nothing
            self._fail(check.position, f"is written, and its strides {array.strides} repeat elements", "pass x.copy()")

    def _scalar(self, position: int, arg: Any) -> tuple[Any, int]:
        """The value of a scalar argument and its word."""
        param = self.signature.params[position]
        if parse_dtype(param.dtype).is_float:
            if not isinstance(arg, (int, float, np.number)) or isinstance(arg, np.complexfloating):
                self._fail(position, f"is a {type(arg).__name__}, needs a number ({param.dtype})")
            try:
                return arg, int(struct.unpack("<Q", struct.pack("<d", arg))[0])
            except (OverflowError, struct.error):
                self._fail(position, f"is an integer of {int(arg).bit_length()} bits, which {param.dtype} can't hold", "pass float('inf')")
        try:
            # NumPy's bool is no index to Python, though Python's own is.
            value = operator.index(arg) if not isinstance(arg, np.bool_) else int(arg)
        except TypeError:
            self._fail(position, f"is a {type(arg).__name__}, needs an integer ({param.dtype})")
        low, high = int_limits(param.dtype)
        if not low <= value <= high:
            self._fail(position, f"is {value}, which {param.dtype} can't hold: it ends at {low} and {high}")
        return value, value % _WORD  # negative ones in two's complement

    def _bind(self, held: list[Any]) -> list[int]:
        """The values of all slots, from the numbers that define them; every other number is compared."""
        values = [_UNSET] * len(self.plan.slots)
        for step in self._steps:
            number = self._number(step, held)
            if number is None:
                continue
            match step.rule:
                case Define(slot=slot, limit=limit):
                    self._check_limit(step.place, slot, number, limit)
                    # No lower limit: extents of arrays are never negative.
                    values[slot] = number
                case Match(slot=slot):
                    if number != values[slot]:
                        self._disagree(step.place, slot, number, values)
                case Fixed(value=value):
                    if number != value:
                        self._fail(step.place.param, f"has {self._where(step.place)} {number}, needs {value}")
                case Formula(evaluate=evaluate, expr=expr):
                    self._check_formula(step.place, number, evaluate, expr, values)
                case Solve():
                    values[step.rule.slot] = self._solve(step.place, number, step.rule, values)
        return [value % _WORD for value in values]

    def _number(self, step: binding.Step, held: list[Any]) -> int | None:
        """The number that a step looks at; None where it says nothing (the stride of an axis that is not walked)."""
        place = step.place
        value = held[place.param]
        match place.kind:
            case "value":
                return int(value)
            case "shape":
                return int(value.shape[place.axis])
            case "offset":
                return 0
        # NumPy may give such an axis any stride. A buffer that broadcasts multiplies it, so it has to be 0 there.
        if value.shape[place.axis] <= 1:
            param = self.signature.params[place.param]
            if isinstance(param, BufferParam) and param.broadcasts:
                return 0
            # A rule that defines a variable must get some number, so the stride that NumPy tells is taken.
            if isinstance(step.rule, (Fixed, Match, Formula)):
                return None
        count, rest = divmod(value.strides[place.axis], value.itemsize)
        if rest:
            self._fail(place.param, f"has a stride of {value.strides[place.axis]} bytes, no multiple of its {value.itemsize}-byte elements")
        return int(count)

    def _check_limit(self, place: Place, slot: int, number: int, limit: int) -> None:
        if number > limit:
            var = self.plan.slots[slot]
            self._fail(place.param, f"has {self._where(place)} {number}, too large for {var.name} ({var.dtype})", "declare it as int64")

    def _solve(self, place: Place, number: int, rule: Solve, values: list[int]) -> int:
        # Exact for a negative coefficient too: the remainder is 0 or it isn't solvable.
        result, rest = divmod(number - rule.rest(values), rule.coefficient)
        var = self.plan.slots[rule.slot]
        if rest:
            self._fail(place.param, f"has {self._where(place)} {number}, but no {var.name} gives {binding.text(rule.expr)} = {number}")
        self._check_limit(place, rule.slot, result, rule.limit)
        if result < 0 and isinstance(var, SizeVar):  # code was simplified with var >= 0; an array of n + 3 elements may be shorter
            self._fail(place.param, f"has {self._where(place)} {number}, so {var.name} would be {result}; a size is 0 or more")
        return result

    def _check_formula(self, place: Place, number: int, evaluate: binding.Evaluate, expr: Any, values: list[int]) -> None:
        try:
            needed = evaluate(values)
        except ZeroDivisionError:
            self._fail(place.param, f"has {self._where(place)} {binding.text(expr)}, which divides by zero")
        if number != needed:
            self._fail(place.param, f"has {self._where(place)} {number}, needs {binding.text(expr)} = {needed}")

    def _check_overlap(self, held: list[Any]) -> None:
        for position in self._written:
            for other in self._arrays:
                if other == position or (other < position and other in self._written):  # two written arrays are a pair once
                    continue
                # The exact test can take exponential time, so only where the address ranges meet.
                if np.may_share_memory(held[position], held[other]) and np.shares_memory(held[position], held[other]):
                    name = self.signature.params[other].name
                    self._fail(position, f"is written and overlaps argument {name} ({other + 1}) in memory", f"pass a copy as {name}")

    def _disagree(self, place: Place, slot: int, number: int, values: list[int]) -> NoReturn:
        origin = self.plan.origins[slot]
        source = self.signature.params[origin.param].name
        first = f"{self._where(origin)} of {source}" if origin.kind != "value" else f"argument {source}"
        name = self.plan.slots[slot].name
        self._fail(place.param, f"has {self._where(place)} {number}, but {name} is {values[slot]} ({first})")

    def _fail(self, position: int, what: str, remedy: str = "") -> NoReturn:
        param = self.signature.params[position]
        place = f"{self.signature.name}: argument {param.name} ({position + 1} of {len(self.signature.params)})"
        raise ArgumentError(f"{place} {what}{'; ' if remedy else ''}{remedy}")

    def _where(self, place: Place) -> str:
        return {"shape": f"extent {place.axis}", "stride": f"stride {place.axis}", "offset": "offset", "value": "value"}[place.kind]

    def _wanted(self) -> str:
        return ", ".join(f"{p.name}: {self._describe(p) if isinstance(p, BufferParam) else p.dtype}" for p in self.signature.params)

    def _describe(self, param: BufferParam) -> str:
        return f"{to_numpy(param.dtype).name}{self._shape_text(param)}"

    def _shape_text(self, param: BufferParam) -> str:
        return f"[{', '.join(binding.text(extent) for extent in binding.extents(param))}]"


def _array_check(position: int, param: BufferParam) -> ArrayCheck:
    extents = binding.extents(param)
    shape = tuple(extent.value for extent in extents if isinstance(extent, IntImm))
    constant = shape if len(shape) == len(extents) else None
    return ArrayCheck(position, param, to_numpy(param.dtype), len(extents), constant, not param.strides)


def _may_repeat(array: _Array) -> bool:
    """False if no two indices lead to one address, for sure: each axis steps over all that the axes with smaller steps reach."""
    reach = array.itemsize
    for step, extent in sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1):
        if step < reach:
            return array.size > 0
        reach += step * (extent - 1)
    return False


def _copied(check: ArrayCheck, how: str, copy: str) -> str:
    """What to do with an array that has to be copied: of one that is written the result has to come back."""
    return f"{how}{copy}" if not check.param.is_written else f"the function writes it, so pass y = {copy} and then do x[...] = y"
