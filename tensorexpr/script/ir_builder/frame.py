"""Frames: what is open in a builder. When a frame is left, its items become one thing, which its own frame gets."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...errors import DeclarationError
from ...tir.attrs import FrozenMap
from ...tir.expr import Range, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.global_info import GlobalInfo
from ...tir.stmt import Stmt
from ..parser.context import FunctionFrame
from ..parser.functions import finished_function
from ..parser.loops import loop_nest
from ..parser.sequences import sequence
from ..parser.values import Loops, Pending

if TYPE_CHECKING:
    from .builder import IRBuilder


class IRBuilderFrame:
    """Base of frames: a list of items, and callbacks that run when the frame is left."""

    def __init__(self, builder: IRBuilder) -> None:
        self.builder = builder
        self.items: list[Any] = []
        self._callbacks: list[Callable[[], Any]] = []

    def __enter__(self) -> Any:
        value = self.opened()
        self.builder.frames.append(self)
        return value

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        frames = self.builder.frames
        while kind is None and frames and frames[-1] is not self:  # entered without `with`, so they end with this one
            frames[-1].__exit__(None, None, None)
        # With all that an error left open inside.
        if self in frames:
            del frames[frames.index(self) :]
        if kind is not None:
            return
        for callback in reversed(self._callbacks):
            callback()
        made = self.closed()
        if made is not None:
            self.builder.add(made)

    def add_callback(self, callback: Callable[[], Any]) -> None:
        """Call `callback` when the frame is left, before it is closed."""
        self._callbacks.append(callback)

    def add(self, item: Any) -> None:
        """Add an item."""
        self.items.append(item)

    def opened(self) -> Any:
        """What `as` gives."""

    def closed(self) -> Any:
        """What the items become; None for nothing."""

    def body(self) -> Stmt:
        """The items as one statement: what goes around those that follow does so."""
        rest: list[Stmt] = []  # last first
        for item in reversed(self.items):
            if isinstance(item, Stmt):
                rest.append(item)
            elif callable(item):
                around = item(sequence(reversed(rest)))
                rest = [around] if around is not None else []
            else:
                raise DeclarationError(f"a {type(item).__name__} can't stand among statements")
        return sequence(reversed(rest))


class PendingFrame(IRBuilderFrame):
    """What opens a block in a script: T.block, T.allocate, T.If and the like."""

    def __init__(self, builder: IRBuilder, pending: Pending) -> None:
        super().__init__(builder)
        self.pending = pending
        self._around: Callable[[Stmt], Stmt | None] | None = None

    def opened(self) -> Any:
        """The variable or buffer that it defines."""
        made = self.pending.make("")
        self._around = made.around
        return made.value

    def closed(self) -> Any:
        """The statement around the items."""
        return self.body() if self._around is None else self._around(self.body())


class LoopFrame(IRBuilderFrame):
    """The loops of one header."""

    def __init__(self, builder: IRBuilder, loops: Loops) -> None:
        super().__init__(builder)
        self._specs = loops.specs
        self._variables: list[Var] = []

    def opened(self) -> Any:
        """The variable, or a list of them."""
        for spec in self._specs:
            var = Var("v", spec.extent.dtype)
            self._variables.append(var)
            self.builder.context.loops[var] = Range.from_min_extent(spec.min, spec.extent)
        return self._variables[0] if len(self._specs) == 1 else list(self._variables)

    def closed(self) -> Any:
        """The nest of loops."""
        for var in self._variables:
            del self.builder.context.loops[var]
        return loop_nest(self._variables, self._specs, self.body())


class PrimFuncFrame(IRBuilderFrame):
    """A function."""

    def __init__(self, builder: IRBuilder, is_private: bool) -> None:
        super().__init__(builder)
        self.function = FunctionFrame("", False, private=is_private)

    def opened(self) -> None:
        """Nothing: T.arg gives the parameters."""
        if self.builder.context.function is not None:
            raise DeclarationError("functions can't be nested; leave the T.prim_func() around first")
        self.builder.context.function = self.function

    def closed(self) -> PrimFunc:
        """The function."""
        self.builder.context.function, self.builder.function_name = None, self.function.name
        func = finished_function(self.function, self.body())
        if not self.builder.frames and not self.function.name and not self.function.private:
            return func.without_attr("global_symbol")
        return func


class IRModuleFrame(IRBuilderFrame):
    """A module of functions."""

    def __init__(self, builder: IRBuilder) -> None:
        super().__init__(builder)
        self.functions: dict[str, Any] = {}
        self.attrs: dict[str, Any] = {}
        self.global_infos: dict[str, tuple[GlobalInfo, ...]] = {}

    def add(self, item: Any) -> None:
        """Add a function under its name.

        Raises:
            DeclarationError: for what is no function, or one without a name.
        """
        if isinstance(item, Stmt) or not hasattr(item, "attrs"):  # functions of graphs are no PrimFuncs
            raise DeclarationError("a module holds functions; put statements into `with T.prim_func():`")
        name = self.builder.function_name or item.attrs.get("global_symbol")
        if not name:
            raise DeclarationError("a function of a module needs a name; say T.func_name(...) in it")
        self.functions[str(name)] = item

    def closed(self) -> IRModule:
        """The module.

        Raises:
            DeclarationError: if a function is declared and not defined.
        """
        missing = [name for name, func in self.functions.items() if func is None]
        if missing:
            raise DeclarationError(f"declared and never defined: {', '.join(missing)}")
        functions: dict[str | GlobalVar, PrimFunc] = dict(self.functions.items())
        return IRModule(functions, FrozenMap(self.attrs), self.global_infos)
