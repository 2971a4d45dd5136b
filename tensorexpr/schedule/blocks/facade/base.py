"""What the methods of `tir.Schedule` stand on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ....arith import IndexMap
from ....errors import ScheduleError
from ....tir.arithmetic import as_int
from ....tir.block import Block, BlockRealize
from ....tir.expr import IntImm, PrimExpr, Var
from ....tir.function import GlobalVar, IRModule, PrimFunc
from ....tir.rewriting import substitute, variables
from ....tir.stmt import For, Stmt
from ..block_scope import StmtSRef
from ..diagnostics import LEVELS, UnknownHandleError, WrongTypeError, rendered
from ..handles import INLINE, RV, BlockRef, BlockRV, Gone, LoopRef, LoopRV, NoLoop, Ref
from ..instruction import Instruction, State, described, handle, primitive_of
from ..program import BlockProgram
from ..state import ScheduleState, debug_mask_of
from ..trace import Trace

MAIN = "main"
_Handle = TypeVar("_Handle", BlockRV, LoopRV, Var)


class ScheduleBase:
    """The state of a schedule: programs, the trace that led to them, and what handles stand for."""

    _state: State
    _trace: Trace | None
    _symbols: dict[RV, Ref | int]

    def _begin(
        self, mod: PrimFunc | IRModule, seed: int | None, error_render_level: str, traced: bool, debug_mask: str | int = "none"
    ) -> None:
        self.debug_mask = debug_mask_of(debug_mask)
        if error_render_level not in LEVELS:
            raise ScheduleError(f"error_render_level is one of {', '.join(LEVELS)}, not {error_render_level!r}")
        if not isinstance(mod, (PrimFunc, IRModule)):
            raise WrongTypeError(
                f"tir.Schedule takes a PrimFunc or an IRModule, not {type(mod).__name__}; see te.create_prim_func for tensors"
            )
        module = IRModule({MAIN: mod}) if isinstance(mod, PrimFunc) else mod
        functions = {gv.name_hint: func for gv, func in module.functions_items() if isinstance(func, PrimFunc)}
        if not functions:
            raise ScheduleError("a schedule needs a module with at least one function of loops (PrimFunc)")
        self._state = State({name: BlockProgram.of(func) for name, func in functions.items()}, random.Random(_seed(seed)))
        self._others: dict[str, PrimFunc] = {gv.name_hint: f for gv, f in module.functions_items() if gv.name_hint not in functions}
        self._attrs = module.attrs
        self._trace = Trace() if traced else None
        self._symbols = {}
        self._level = error_render_level
        self._working_on = MAIN if MAIN in functions else next(iter(functions)) if len(functions) == 1 else None
        self._module: tuple[State, IRModule] | None = None
        self._places: tuple[State, ScheduleState] | None = None

    @property
    def mod(self) -> IRModule:
        """The module as it is now: a value; scheduling on doesn't change it."""
        if self._module is None or self._module[0] is not self._state:
            functions: dict[str | GlobalVar, PrimFunc] = {name: program.func for name, program in self._state.programs.items()}
            functions.update(self._others)
            self._module = (self._state, IRModule(functions, self._attrs))
        return self._module[1]

    @property
    def trace(self) -> Trace | None:
        """The instructions so far; None if the schedule was made with traced=False."""
        return self._trace

    @property
    def func_working_on(self) -> GlobalVar | None:
        """The function whose blocks `get_block` finds; None while none is chosen."""
        return None if self._working_on is None else GlobalVar(self._working_on)

    def work_on(self, func_name: str) -> None:
        """Let `get_block` find the blocks of another function.

        Raises:
            ScheduleError: if the module has none of that name.
        """
        if func_name not in self._state.programs:
            raise ScheduleError(f"work_on: the module has no function {func_name!r}; functions: {', '.join(self._state.programs)}")
        self._working_on = func_name

    def seed(self, seed: int) -> None:
        """Start the random numbers anew: the same seed, the same choices."""
        self._state = State(self._state.programs, random.Random(_seed(seed)))

    def fork_seed(self) -> int:
        """A seed for another schedule, drawn from this one's random numbers."""
        return self._state.rng.randrange(1, 1 << 31)

    def run(self, kind: str, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any = None) -> list[RV]:
        """Apply one instruction, given by its name in traces; the handles it gives.

        Raises:
            ScheduleError: if it is illegal here; the schedule is as it was.
        """
        primitive = primitive_of(kind)
        try:
            applied = primitive.apply(self._state, [self._resolved(value) for value in inputs], attrs, decision)
        except ScheduleError as error:
            raise rendered(error, primitive.method, self._program_of(inputs), self._level) from error
        outputs = tuple(handle(output) for output in applied.outputs)
        # but for random numbers that were drawn nothing has changed so far: a primitive that raises leaves the schedule as it was
        self._state = applied.state
        if applied.renamed:
            self._follow(applied.renamed, primitive.method)
        self._symbols.update(zip(outputs, applied.outputs, strict=True))
        if self._trace is not None:
            self._trace.append(Instruction(kind, tuple(inputs), tuple(attrs), outputs), applied.decision)
        return list(outputs)

    def _follow(self, renamed: Mapping[BlockRef | LoopRef, BlockRef | LoopRef | None], primitive: str) -> None:
        """Let handles stand for what goes on for their blocks and loops."""
        for rv, ref in self._symbols.items():
            if isinstance(ref, (BlockRef, LoopRef)) and ref in renamed:
                self._symbols[rv] = renamed[ref] or Gone(described(ref), primitive)

    def _program_of(self, inputs: Sequence[Any]) -> BlockProgram:
        """The program that an instruction is about."""
        for value in inputs:
            ref = self._symbols.get(value) if isinstance(value, (BlockRV, LoopRV)) else None
            if isinstance(ref, (BlockRef, LoopRef)):
                return self._state[ref.func]
        return self._state[self._working_on or next(iter(self._state.programs))]

    def _resolved(self, value: Any) -> Any:
        """What an input stands for: blocks and loops of now, numbers that were sampled, as they are in expressions."""
        if isinstance(value, (BlockRV, LoopRV)):
            return self._meaning(value)
        if isinstance(value, PrimExpr):
            known = {var: IntImm(var.dtype, self._number(var)) for var in variables(value) if var in self._symbols}
            found = substitute(value, known)
            number = as_int(found)
            return found if number is None or not known else number
        if isinstance(value, IndexMap):
            return value.with_values({var: IntImm(var.dtype, self._number(var)) for var in value.free_variables if var in self._symbols})
        if isinstance(value, (list, tuple)):
            return type(value)(self._resolved(item) for item in value)
        return {key: self._resolved(item) for key, item in value.items()} if isinstance(value, dict) else value

    def _number(self, var: Var) -> int:
        found = self._symbols[var]
        assert isinstance(found, int)
        return found

    def _meaning(self, rv: RV) -> Ref | int:
        if rv not in self._symbols:
            raise UnknownHandleError("this handle is of another schedule, or was removed; ask this one with get_block and get_loops")
        found = self._symbols[rv]
        if isinstance(found, Gone):
            raise ScheduleError(f"{found.what} is gone: {found.primitive} removed it; ask for what is there with get_block and get_loops")
        return found

    def get(self, rand_var_or_sref: Any) -> Any:
        """What a handle stands for now: a Block, a For, or a number for an expression of sampled variables."""
        if isinstance(rand_var_or_sref, PrimExpr):
            found = self._resolved(rand_var_or_sref)
            return found if isinstance(found, int) or as_int(found) is None else as_int(found)
        return self._statement(rand_var_or_sref)

    def get_sref(self, rand_var_or_stmt: Any) -> StmtSRef | None:
        """The place in `state` of what a block or loop stands for now, or of a statement of the module.

        A place of no loop, as `sample_compute_location` may give, is `StmtSRef.root_mark()` or `StmtSRef.inline_mark()`.
        """
        if isinstance(rand_var_or_stmt, (Block, For)):
            return self.state.get_sref(rand_var_or_stmt)
        ref = self._meaning(rand_var_or_stmt)
        if isinstance(ref, NoLoop):
            return StmtSRef.inline_mark() if ref.place == INLINE else StmtSRef.root_mark()
        found = self._statement(rand_var_or_stmt)
        return self.state.get_sref(found) if isinstance(found, (Block, For)) else None

    @property
    def state(self) -> ScheduleState:
        """The module as it is now with the places of its blocks and loops; changes that are made to it by hand stay there."""
        # states are replaced, never changed, so identity tells whether the places are of this one
        if self._places is None or self._places[0] is not self._state:
            self._places = (self._state, ScheduleState(self.mod))
        return self._places[1]

    def _statement(self, value: Any) -> Stmt | None:
        """The statement that a handle or a place stands for now; None for no loop."""
        if isinstance(value, StmtSRef):
            return value.stmt
        ref = self._meaning(value)
        if isinstance(ref, BlockRef):
            return self._state[ref.func].block(ref.name)
        return self._state[ref.func].loop(ref.var) if isinstance(ref, LoopRef) else None

    def realization(self, block: BlockRV) -> BlockRealize:
        """The realization of a block: its axes bound to loops, and the predicate."""
        ref = self._meaning(block)
        if not isinstance(ref, BlockRef):
            raise WrongTypeError("realization takes a block, as get_block gives it")
        return self._state[ref.func].realize(ref.name)

    def remove_rv(self, rand_var: RV) -> None:
        """Forget a handle."""
        self._meaning(rand_var)
        del self._symbols[rand_var]

    def simplify_trace(self) -> None:
        """Leave instructions out of the trace that only asked for what nobody uses: what replays it asks less. Samples stay."""
        if self._trace is not None:
            self._trace = self._trace.simplified(remove_postproc=False, keep_samples=True)

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the module, and the trace if there is one."""
        self.mod.show(style, black_format)
        if self._trace is not None:
            self._trace.show(style, black_format)

    def _one(self, wanted: type[_Handle], kind: str, inputs: Sequence[Any], attrs: Sequence[Any] = (), decision: Any = None) -> _Handle:
        """The only handle that an instruction gives, which is a `wanted`."""
        (found,) = self.run(kind, inputs, attrs, decision)
        assert isinstance(found, wanted)
        return found

    def _block(self, block: Any) -> Any:
        """A block as an input: a name is looked up first, as an instruction of its own."""
        return self._one(BlockRV, "GetBlock", [], [block, self._function()]) if isinstance(block, str) else block

    def _block_now(self, block: Any) -> Block:
        """What a block that is an argument stands for now.

        Raises:
            ScheduleError: if it stands for a loop.
        """
        found = self.get(block)
        if not isinstance(found, Block):
            shown = f"the loop over {found.loop_var.name}" if isinstance(found, For) else repr(found)
            raise WrongTypeError(f"a block is needed here, as get_block gives it, not {shown}")
        return found

    def _function(self) -> str:
        if self._working_on is None:
            raise ScheduleError(f"the module has several functions, {', '.join(self._state.programs)}: name one, or call work_on first")
        return self._working_on

    def __deepcopy__(self, memo: Any) -> Any:
        raise ScheduleError("a schedule is copied with its method copy()")

    def _taken_over(self, other: ScheduleBase) -> None:
        """Become a copy of another schedule, whose handles stand for the same here; random numbers go on from a seed of their own."""
        self.__dict__.update(other.__dict__)
        self._symbols = dict(other._symbols)
        self._trace = other._trace.copy() if other._trace is not None else None
        self._state = State(other._state.programs, random.Random(other.fork_seed()))


def whole_numbers(what: str, values: Any) -> list[int]:
    """A list of whole numbers that a user gave.

    Raises:
        WrongTypeError: for anything else; the message says what it was given as.
    """
    try:
        return [int(value) for value in values]
    except (TypeError, ValueError):
        raise WrongTypeError(f"{what} takes a list of whole numbers, not {values!r}") from None


def _seed(seed: int | None) -> int | None:
    if not (seed is None or hasattr(seed, "__index__")):
        raise WrongTypeError(f"a seed is a whole number, or None for another one each time, not {seed!r}")
    return None if seed is None or seed < 0 else int(seed)
