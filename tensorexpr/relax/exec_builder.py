"""Executables from instructions on registers, as TVM's virtual machine runs them.

    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=2):
        ib.emit_call("my_add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    relax.VirtualMachine(ib.get(), tvm.cpu())["main"](a, b)

The instructions become a function of a graph: each write of a register is a variable of its own, and a jump is what follows its target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..runtime.ndarray import NDArray
from ..target import Target
from ..tir.dtype import DataType
from ..tir.expr import IntImm
from ..tir.function import GlobalVar, IRModule
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    Var,
    VarBinding,
)
from .runtime.executable import Executable
from .struct_info import ObjectStructInfo, ShapeExpr

_MOST = 4096  # bindings of a function: what follows a choice stands in both of its branches


@dataclass(frozen=True)
class Operand:
    """What an instruction reads or writes: a register, a constant or a function by its number or name, or a number."""

    kind: str
    value: Any = None


@dataclass(frozen=True)
class _Instruction:
    """An instruction; `offset` counts from it to the next one."""

    kind: str
    operands: Sequence[Operand] = ()
    name: str = ""
    target: Operand | None = None
    offset: int = 1


@dataclass
class _Routine:
    """A function that is being made."""

    parameters: Sequence[str]
    code: list[_Instruction] = field(default_factory=list)


class ExecBuilder:
    """Makes an executable of functions, each a list of instructions."""

    def __init__(self) -> None:
        self._routines: dict[str, _Routine] = {}
        self._open: str | None = None
        self._constants: list[Any] = []

    @contextmanager
    def function(self, func_name: str, num_inputs: int | None = 0, param_names: Sequence[str] | None = None) -> Iterator[None]:
        """The function whose instructions are emitted inside; its arguments are in the first registers.

        Args:
            func_name: of it.
            num_inputs: how many arguments it takes.
            param_names: what they are called.

        Raises:
            DeclarationError: inside of another one, or for a name that is taken.
        """
        if self._open is not None or func_name in self._routines:
            raise DeclarationError(f"function {func_name!r}: {'there is one already' if self._open is None else f'{self._open!r} is open'}")
        names = list(param_names or ()) or [f"param_{n}" for n in range(num_inputs or 0)]
        self._routines[func_name], self._open = _Routine(names), func_name
        try:
            yield
        finally:
            self._open = None

    def r(self, idx: int) -> Operand:
        """A register."""
        return Operand("register", idx)

    def imm(self, value: int) -> Operand:
        """An integer."""
        return Operand("immediate", int(value))

    def c(self, idx: int) -> Operand:
        """A constant by its number, as `convert_constant` gives it."""
        return Operand("constant", idx)

    def f(self, name: str) -> Operand:
        """A function of the executable, or a registered one."""
        return Operand("function", name)

    def void_arg(self) -> Operand:
        """No value; as a target: the result is dropped."""
        return Operand("void")

    def vm_state(self) -> Operand:
        """The machine itself, which some registered functions take first; here it is no value."""
        return Operand("void")

    def convert_constant(self, const: Any) -> Operand:
        """A constant: an array, a tuple of integers (a shape), a string, a dtype, a number; equal ones are one."""
        for number, other in enumerate(self._constants):
            if _same(other, const):
                return self.c(number)
        self._constants.append(const)
        return self.c(len(self._constants) - 1)

    def declare_function(self, func_name: str, kind: Any = None) -> None:
        """Accepted: functions are found by their names when they are called."""

    def emit_call(self, name: str | Operand, args: Sequence[Any] | None = None, dst: Operand | None = None) -> None:
        """Call a function of the executable or a registered one.

        Args:
            name: of it.
            args: operands, or constants.
            dst: the register of the result.
        """
        callee = name.value if isinstance(name, Operand) else name
        operands = [one if isinstance(one, Operand) else self.convert_constant(one) for one in args or ()]
        self._emit(_Instruction("call", operands, callee, dst))

    def emit_ret(self, result: Operand) -> None:
        """Return a value."""
        self._emit(_Instruction("ret", (result,)))

    def emit_goto(self, pc_offset: int) -> None:
        """Go on so many instructions further."""
        self._emit(_Instruction("goto", (), offset=pc_offset))

    def emit_if(self, cond: Operand, false_offset: int) -> None:
        """Go on with the next instruction if a number isn't 0, else so many instructions further."""
        self._emit(_Instruction("if", (cond,), offset=false_offset))

    def _emit(self, instruction: _Instruction) -> None:
        if self._open is None:
            raise DeclarationError('instructions stand in `with ib.function("main", num_inputs=1):`')
        if instruction.offset < 1:
            raise DeclarationError(f"{instruction.kind} goes back by {-instruction.offset}: a loop is a function that calls itself")
        self._routines[self._open].code.append(instruction)

    def get(self) -> Executable:
        """The executable.

        Raises:
            DeclarationError: for a register that is read before it is written, or a way that ends without a result.
        """
        functions: dict[str, Any] = {name: self._made(name, routine) for name, routine in self._routines.items()}
        return Executable(IRModule(functions), None, Target("llvm"), {})  # type: ignore[arg-type]

    def _made(self, name: str, routine: _Routine) -> Function:
        params = [Var(one, ObjectStructInfo()) for one in routine.parameters]
        body = _Reader(name, routine.code, self._operand).sequence(0, dict(enumerate(params)))
        return Function(tuple(params), body, ObjectStructInfo(), False, {"global_symbol": name})  # type: ignore[arg-type]

    def _operand(self, operand: Operand) -> Any:
        """An operand that is no register, as an expression."""
        match operand.kind:
            case "immediate":
                return PrimValue(operand.value)
            case "constant":
                return _constant(self._constants[operand.value])
            case "function":
                return GlobalVar(operand.value) if operand.value in self._routines else ExternFunc(operand.value)
        return Tuple(())


class _Reader:
    """Follows the instructions of a function to its results."""

    def __init__(self, name: str, code: Sequence[_Instruction], constant: Callable[[Operand], Any]) -> None:
        self._name, self._code, self._constant = name, code, constant
        self._count = 0

    def sequence(self, place: int, before: Mapping[int, Any]) -> SeqExpr:
        """What happens from an instruction on.

        Args:
            place: the number of the instruction.
            before: the values of registers.
        """
        registers = dict(before)
        bindings: list[Binding] = []
        while place < len(self._code):
            one = self._code[place]
            values = [self._value(operand, registers, place) for operand in one.operands]
            if one.kind == "ret":
                return SeqExpr((BindingBlock(tuple(bindings)),) if bindings else (), values[0])
            if one.kind != "goto":
                self._count += 1
                if self._count > _MOST:
                    raise DeclarationError(f"{self._name} becomes more than {_MOST} calls; functions that it calls make it shorter")
                value: Any = self._call(one, values) if one.kind == "call" else self._choice(one, values[0], place, registers)
                bindings.append(VarBinding(Var(f"v{self._count}", ObjectStructInfo()), value))
                if one.kind == "if":
                    return SeqExpr((BindingBlock(tuple(bindings)),), bindings[-1].var)
                if one.target is not None and one.target.kind == "register":
                    registers[one.target.value] = bindings[-1].var
            place += one.offset
        raise DeclarationError(f"{self._name} goes past its {len(self._code)} instructions: each way ends with emit_ret")

    def _value(self, operand: Operand, registers: Mapping[int, Any], place: int) -> Any:
        if operand.kind != "register":
            return self._constant(operand)
        if operand.value not in registers:
            raise DeclarationError(f"{self._name}: instruction {place} reads register {operand.value}, which nothing has written")
        return registers[operand.value]

    def _call(self, one: _Instruction, values: Sequence[Any]) -> Call:
        callee = self._constant(Operand("function", one.name))
        return Call(callee, values, None, () if isinstance(callee, GlobalVar) else ObjectStructInfo(), ObjectStructInfo())

    def _choice(self, one: _Instruction, cond: Any, place: int, registers: Mapping[int, Any]) -> If:
        return If(cond, self.sequence(place + 1, registers), self.sequence(place + one.offset, registers))


def _constant(value: Any) -> Any:
    """A constant as an expression."""
    if isinstance(value, (NDArray, np.ndarray)):
        return Constant(value)
    if isinstance(value, DataType):
        return DataTypeImm(str(value))
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (int, float)):
        return PrimValue(value)  # type: ignore[arg-type]
    return ShapeExpr(tuple(IntImm("int64", int(extent)) for extent in value))


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (NDArray, np.ndarray)):
        x, y = (one.numpy() if isinstance(one, NDArray) else one for one in (a, b))
        return x.dtype == y.dtype and np.array_equal(x, y)
    return bool(a == b)


__all__ = ["ExecBuilder"]
