"""FuseOps: bindings that one kernel can compute become a function of their own, with the attribute "Primitive".

Groups are made as TVM's relax makes them (`grouping`), so that programs that look for `fused_matmul_add_relu` find it.
Then transposes join products that can read or write their elements where they are (`moves`), so that attention's heads are never moved;
and what works row by row joins what reads its rows (`row_programs`), though others read them, too: such a group has several results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.context import PassContext
from ...lower.passes import ModulePass
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ..expr import Binding, Call, DataflowBlock, Function, Tuple, TupleGetItem, Var, VarBinding
from ..ops.row import Pattern, row_of
from ..struct_info import TensorStructInfo
from ..tensor_function import plain_tensors
from ..visitor import Mutator, walk
from .annotate_pattern import pattern_of_function
from .fused_functions import grouped
from .gradient_marks import Plain
from .grouping import Group, Grouping, edge_pattern, join, most_nodes, same_shape
from .legalize import has_known_shapes
from .moves import can_read_through, can_write_through, is_window_of_channels
from .passes import graph_pass
from .post_dominators import Edge
from .row_programs import Rows, rows_of, rows_read
from .views import VIEW


def pattern_of_binding(binding: Binding, mod: IRModule) -> Pattern:
    """How the value of a binding depends on what it reads; opaque for what no kernel computes."""
    call = binding.value
    if isinstance(call, Tuple):
        infos = [field.struct_info for field in call.fields]
        # Kernels give tensors, no tuples of tuples and no objects.
        is_of_tensors = all(isinstance(one, TensorStructInfo) and one.extents is not None for one in infos)
        return Pattern.TUPLE if is_of_tensors else Pattern.OPAQUE
    if not isinstance(binding, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, Op):
        return Pattern.OPAQUE
    if call.op == "relax.call_tir":
        func: Any = mod[call.args[0]] if isinstance(call.args[0], GlobalVar) else None
        is_told = len(call.args) == 2 or getattr(call.args[2].struct_info, "values", None) is not None
        return pattern_of_function(func) if isinstance(func, PrimFunc) and is_told else Pattern.OPAQUE
    row = row_of(call)
    if call.op == VIEW:  # it costs nothing, but computed in a group it does
        return Pattern.OPAQUE
    if row is None or row.te is None or not isinstance(call.struct_info, TensorStructInfo) or not has_known_shapes(call):
        return Pattern.OPAQUE
    return row.pattern


def _element_of(binding: Binding, numbers: Mapping[Any, int]) -> bool:
    """Whether a binding takes an element of a tuple that is made in its block."""
    return isinstance(binding, VarBinding) and isinstance(binding.value, TupleGetItem) and binding.value.tuple_value in numbers


def variables_of(expr: Any) -> list[Var]:
    """The variables that a value reads, each once."""
    return list(dict.fromkeys(node for node in walk(expr) if isinstance(node, Var)))


class Partition(Grouping):
    """The groups of a dataflow block.

    Args:
        block: of bindings.
        mod: where its callees are.
        leaves: variables that are used outside of the block.
        most: how many nodes a group has at most.
    """

    def __init__(self, block: DataflowBlock, mod: IRModule, leaves: set[Var], most: int) -> None:
        self.bindings = block.bindings
        patterns = [pattern_of_binding(binding, mod) for binding in self.bindings]
        numbers = {binding.var: number for number, binding in enumerate(self.bindings)}
        self._wholes = {n: numbers[b.value.tuple_value] for n, b in enumerate(self.bindings) if _element_of(b, numbers)}
        for number, whole in self._wholes.items():
            # An element of what a kernel gives several of, as a split does; TVM's pattern for it.
            patterns[number] = Pattern.INJECTIVE if patterns[whole] == Pattern.INJECTIVE else Pattern.OPAQUE
        readers: list[list[Edge]] = [[] for _ in self.bindings]
        for number, binding in enumerate(self.bindings):
            for var in variables_of(binding.value):
                if var in numbers:
                    readers[numbers[var]].append(Edge(number, edge_pattern(patterns[number], var.struct_info, binding.var.struct_info)))
        super().__init__(patterns, readers, [binding.var in leaves for binding in self.bindings], most)
        self._mod = mod
        self._computations: dict[str, list[Tensor]] = {}
        self._found_rows: dict[str, Rows | None] = {}

    def run(self) -> list[Group]:
        """Join groups; returns that of each binding."""
        self.by_phases()
        for number, edges in enumerate(self.readers):
            if self._is_of_reader(number) and self._size(number, edges[0].reader) <= self._most:
                join(self.groups[number], self.groups[edges[0].reader])
        for number, edges in enumerate(self.readers):
            # What others read, too, has to be in memory anyway.
            if len(edges) == 1 and not self._leaves[number] and self._size(number, edges[0].reader) <= self._most:
                self._join_move(number, edges[0].reader)
        for number, edges in enumerate(self.readers):
            for edge in edges:
                # Last, as row programs are made of groups that are finished.
                self._join_rows(number, edge.reader)
        found = [group.root() for group in self.groups]
        for number, whole in self._wholes.items():
            # What takes an element of a tuple from outside is no kernel's work.
            if found[whole] is not found[number]:
                found[number] = Group(Pattern.INJECTIVE, [number])
        return found

    def _join_move(self, number: int, reader: int) -> None:
        """Join a move and the product that alone reads it, or a product and the move that alone reads its result."""
        group, target = self.groups[number].root(), self.groups[reader].root()
        if group.size == 1 and self.patterns[reader] == Pattern.OUT_FUSABLE:
            call, var = self.bindings[reader].value, self.bindings[number].var
            places = [n for n, arg in enumerate(_operands(call)) if arg is var]
            fits = len(places) == 1 and can_read_through(self._computation(reader), places[0], self._computation(number))
        elif target.size == 1 and group.pattern == Pattern.OUT_FUSABLE:
            anchors = [n for n in group.members if self.patterns[n] == Pattern.OUT_FUSABLE]
            fits = len(anchors) == 1 and can_write_through(self._computation(anchors[0]), self._computation(reader))
        else:
            return
        if fits:
            join(self.groups[number], self.groups[reader])

    def _join_rows(self, number: int, reader: int) -> None:
        """Join the group that a value is the last one of, and one that reads its rows."""
        group, target = self.groups[number].root(), self.groups[reader].root()
        if group is target or group.size + target.size > self._most or self._last(group) != number:
            return
        members = sorted((*group.members, *target.members))
        values = {self.bindings[n].var for n in members}
        found: Rows | None = None
        for n in members:
            own = self._rows(n)
            if own is None:
                return
            inside = [m for m, arg in enumerate(_operands(self.bindings[n].value)) if arg in values]
            read = min((rows_read(self._computation(n), m) for m in inside), default=own.shared)
            found = own if found is None else found.with_(own, read)
        if found is not None and found.pays and not self._leads_back(group, target):
            join(group, target)

    def _rows(self, number: int) -> Rows | None:
        tensors = self._computation(number)
        if not tensors:
            return None
        name = self.bindings[number].value.args[0].name_hint
        if name not in self._found_rows:
            self._found_rows[name] = rows_of(tensors)
        return self._found_rows[name]

    def _last(self, group: Group) -> int:
        """The only member of a group that no other one reads; -1 if there are several."""
        ends = [n for n in group.members if not any(edge.reader in group.members for edge in self.readers[n])]
        return ends[0] if len(ends) == 1 else -1

    def _leads_back(self, *joined: Group) -> bool:
        """Whether something outside of some groups that are to be one is between them."""
        seen: set[Group] = set()
        waiting = list(joined)
        while waiting:
            group = waiting.pop()
            for reader in {self.groups[edge.reader].root() for n in group.members for edge in self.readers[n]} - seen:
                # a -> x -> b with a and b joined, and x outside: x would have to run behind and before the kernel.
                if reader in joined and group not in joined:
                    return True
                if reader not in joined:
                    seen.add(reader)
                    waiting.append(reader)
        return False

    def _computation(self, number: int) -> list[Tensor]:
        """What a binding that calls a tensor function computes; nothing for others."""
        call = self.bindings[number].value
        callee: Any = self._mod[call.args[0]] if _operands(call) else None
        if not isinstance(callee, PrimFunc):
            return []
        # By callee: layers of one shape call the same function.
        name = call.args[0].name_hint
        if name not in self._computations:
            try:
                self._computations[name] = plain_tensors(callee)
            except DeclarationError:
                self._computations[name] = []
        return self._computations[name]

    def _is_of_reader(self, number: int) -> bool:
        """Whether a value is bytes as floats, which its only reader, in another kernel than the product that made them, may as well widen.

        Functions of elements take longer on the tiles of such a product than by themselves, over a quarter of the memory that floats take:
        GELU behind it makes smart_turn's 41 ms 43 (Zen 3, in turn; 37 and 42 in another run), what only rounds SqueezeNet's 4.74 ms 4.66.

        Example:
            add(dequantize(bytes), y): the sum reads bytes.
        """
        edges = self.readers[number]
        if self.patterns[number] > Pattern.BROADCAST or len(edges) != 1 or self._leaves[number] or not _widens(self.bindings[number]):
            return False
        return edges[0].pattern <= Pattern.BROADCAST or self._reads_in_windows(edges[0].reader, number)

    def _reads_in_windows(self, reader: int, number: int) -> bool:
        """Whether a value is read by sums over a window of each channel alone, which read an element so seldom that each widens it."""
        call, var = self.bindings[reader].value, self.bindings[number].var
        places = [n for n, arg in enumerate(_operands(call)) if arg is var]
        return self.patterns[reader] == Pattern.OUT_FUSABLE and places == [0] and is_window_of_channels(self._computation(reader))


def _whole_operands(binding: Binding) -> list[TensorStructInfo]:
    """What a tensor function reads of the shape of its result."""
    result = binding.var.struct_info
    read = [arg.struct_info for arg in _operands(binding.value)]
    return [
        info for info in read if isinstance(info, TensorStructInfo) and isinstance(result, TensorStructInfo) and same_shape(info, result)
    ]


def _widens(binding: Binding) -> bool:
    """Whether a value is made of bytes of its shape, and of what has fewer elements, as floats."""
    result, whole = binding.var.struct_info, _whole_operands(binding)
    is_float = isinstance(result, TensorStructInfo) and bool(result.dtype) and parse_dtype(result.dtype).is_float
    return is_float and len(whole) == 1 and whole[0].dtype in ("int8", "uint8")


def _operands(call: Any) -> Sequence[Any]:
    """The tensors that a call of a tensor function passes; none for other values."""
    is_call = isinstance(call, Call) and call.op == "relax.call_tir" and isinstance(call.args[0], GlobalVar) and len(call.args) == 2
    return call.args[1].fields if is_call and isinstance(call.args[1], Tuple) else ()


def FuseOps(fuse_opt_level: int = -1, bind_numbers: bool = False) -> ModulePass:
    """A pass: values that one kernel can compute become private functions with the attribute "Primitive".

    Args:
        fuse_opt_level: 0 for none; else as the page says. -1 for the level of the current context.
        bind_numbers: whether constants of one element stay in the functions, where they become code; else all constants are arguments.

    Their size is limited by "relax.FuseOps.max_depth" of the context's configuration: 256 calls.
    """

    def run(mod: IRModule) -> IRModule:
        context = PassContext.current()
        level = context.opt_level if fuse_opt_level == -1 else fuse_opt_level
        if level == 0:
            return mod
        most = most_nodes(context)
        return fused(mod, lambda block, made, leaves: Partition(block, made, leaves, most).run(), bind_numbers=bind_numbers)

    return graph_pass("FuseOps", run)


def fused(
    mod: IRModule,
    partition: Callable[[DataflowBlock, IRModule, set[Var]], Sequence[Any]],
    names: Collection[str] | None = None,
    bind_numbers: bool = False,
) -> IRModule:
    """A module with the groups of each dataflow block as functions; what is in a group already stays.

    Args:
        mod: the module.
        partition: from a block, the module and the variables used outside of the block to what says of each binding which group it is in.
        names: of the functions to look into; all if None.
        bind_numbers: as of `FuseOps`.
    """
    made = mod.clone()
    for var, func in mod.functions_items():
        # What is a kernel already, ours or another code generator's, isn't taken apart.
        is_kernel = any(one in getattr(func, "attrs", ()) for one in ("Primitive", "Composite", "Codegen"))
        if isinstance(func, Function) and not is_kernel and (names is None or var.name_hint in names):
            new: Any = _Fuser(made, partition, bind_numbers).function(Plain(barriers=True).function(func))
            if new is not func:
                made.update_func(var, new)
    return made


class _Fuser(Mutator):
    """Rewrites the blocks of one function."""

    def __init__(self, mod: IRModule, partition: Callable[[DataflowBlock, IRModule, set[Var]], Sequence[Any]], bind_numbers: bool) -> None:
        super().__init__()
        self._mod, self._partition, self._bind_numbers = mod, partition, bind_numbers

    def block(self, block: Any) -> Any:
        """The block with calls of functions in place of groups."""
        if not isinstance(block, DataflowBlock):
            return super().block(block)
        # A DataflowVar, which is a Var too, ends with its block.
        leaves = {binding.var for binding in block.bindings if type(binding.var) is Var}
        return super().block(grouped(block, self._partition(block, self._mod, leaves), self._mod, self._bind_numbers))
