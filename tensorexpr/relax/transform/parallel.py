"""CombineParallelMatmul: products of one matrix with several are one product, whose columns are split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.expr import PrimExpr
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Function, Tuple, TupleGetItem, Var, VarBinding
from ..ops.elementwise import add
from ..ops.linear import matmul
from ..ops.manipulate import concat, split
from ..relations import same_extents
from ..struct_info import TensorStructInfo
from .passes import each_function
from .rewriting import Rewriter

MATMUL, ADD = "relax.matmul", "relax.add"
_ACTIVATIONS = ("relax.nn.relu", "relax.nn.gelu", "relax.nn.silu")
Check = Callable[[Any, Sequence[Any], Sequence[Any], Mapping[int, str]], bool]


@dataclass
class Branch:
    """A product with what stands behind it.

    Args:
        place: of the product in its block.
        call: the product.
        last: the variable of its last value.
        bias: what is added, if something is.
        activation: the operator behind that.
    """

    place: int
    call: Call
    last: Var
    bias: Any = None
    activation: str = ""


def _columns(branch: Branch) -> PrimExpr | None:
    """The columns of a branch whose factor is of known shape, and whose bias is a vector."""
    info = branch.call.args[1].struct_info
    if not isinstance(info, TensorStructInfo) or info.extents is None or info.ndim < 2:
        return None
    count = info.extents[-1]
    if branch.bias is not None:
        own = branch.bias.struct_info
        if own.ndim != 1 or own.extents is None or same_extents(own.extents[0], count) is not True:
            return None
    return count


class _Combiner(Rewriter):
    """Rewrites one function."""

    def __init__(self, func: Function, check: Check | None) -> None:
        super().__init__({}, func)
        self._check = check
        self._starts: dict[Var, list[Branch]] = {}
        self._ends: dict[Var, tuple[Any, int]] = {}

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block, in a dataflow block with the products that are found in it."""
        if isinstance(block, DataflowBlock):
            for group in self._groups(block):
                self._starts[block.bindings[min(branch.place for branch in group)].var] = group
        return super().block(block)

    def _groups(self, block: DataflowBlock) -> list[list[Branch]]:
        places = {binding.var: n for n, binding in enumerate(block.bindings)}
        by_left: dict[Any, list[Branch]] = {}
        for place, binding in enumerate(block.bindings):
            call = binding.value
            if isinstance(binding, VarBinding) and isinstance(call, Call) and call.op == MATMUL and isinstance(call.args[0], Var):
                branch = self._branch(block, places, place, call)
                if _columns(branch) is not None and call.args[0].struct_info.ndim > 1:  # type: ignore[attr-defined]
                    # What one product can have only one of; biases and activations are in all branches or in none.
                    key = (
                        call.args[0],
                        call.attrs["out_dtype"],
                        call.args[1].struct_info.extents[:-1],
                        branch.bias is None,
                        branch.activation,
                    )
                    by_left.setdefault(key, []).append(branch)
        return [group for branches in by_left.values() for group in self._fitting(branches, places)]

    def _branch(self, block: DataflowBlock, places: Mapping[Var, int], place: int, call: Call) -> Branch:
        """A product, with a bias and an activation if nothing else reads what these do."""
        branch = Branch(place, call, block.bindings[place].var)
        reader = self._only_reader(block, places, branch.last)
        if reader is not None and reader.value.op == ADD and reader.value.args[0] is branch.last:
            added = Branch(place, call, reader.var, reader.value.args[1])
            branch = added if _columns(added) is not None else branch
            reader = self._only_reader(block, places, branch.last)
        if reader is not None and str(reader.value.op) in _ACTIVATIONS and reader.value.args[0] is branch.last:
            branch.last, branch.activation = reader.var, str(reader.value.op)
        return branch

    def _only_reader(self, block: DataflowBlock, places: Mapping[Var, int], var: Var) -> VarBinding | None:
        users = self.users(var)
        found = next((b for b in block.bindings if len(users) == 1 and b.value is users[0]), None)
        return found if isinstance(found, VarBinding) and isinstance(found.value, Call) else None

    def _fitting(self, branches: Sequence[Branch], places: Mapping[Var, int]) -> list[list[Branch]]:
        """Branches whose matrices and biases are there before the first product, if the check lets them."""
        # The one product stands where the first stood, and reads the matrices of all; -1 for what comes from outside of the block.
        first = min(branch.place for branch in branches)
        group = [b for b in branches if all(places.get(one, -1) < first for one in (b.call.args[1], b.bias) if isinstance(one, Var))]
        # The columns of the last part need no number, of the others a split tells where they end.
        known = [branch for branch in group if as_int(_columns(branch)) is not None]
        group = [*known, *[branch for branch in group if branch not in known][:1]]
        if len(group) < 2 or all(branch.place != first for branch in group):
            return []
        biases = [branch.bias for branch in group if branch.bias is not None]
        activations = {n: branch.activation for n, branch in enumerate(group) if branch.activation}
        wanted = self._check is None or self._check(group[0].call.args[0], [b.call.args[1] for b in group], biases, activations)
        return [group] if wanted else []

    def binding(self, binding: Binding) -> list[Binding]:
        """The combined product in front of the first one; a part of it in place of the last value of each."""
        group = self._starts.get(binding.var)
        if group is not None:
            rights = Tuple(tuple(self.visit(branch.call.args[1]) for branch in group))
            result: Any = group[0].call.struct_info
            side_by_side = concat(rights, rights.fields[0].struct_info.ndim - 1)
            made: Any = matmul(self.visit(group[0].call.args[0]), side_by_side, group[0].call.attrs["out_dtype"] or result.dtype)
            if group[0].bias is not None:
                made = add(made, concat(Tuple(tuple(self.visit(branch.bias) for branch in group)), 0))
            made = Call(group[0].call.op.of(group[0].activation), (made,)) if group[0].activation else made
            ends: list[int] = []
            for branch in group[:-1]:
                ends.append((ends[-1] if ends else 0) + (as_int(_columns(branch)) or 0))
            parts = self.emit(split(self.emit(made), ends, result.ndim - 1))
            self._ends.update((branch.last, (parts, n)) for n, branch in enumerate(group))
            self.changed = True
        if binding.var in self._ends:
            parts, n = self._ends[binding.var]
            return [*self._taken(), *super().binding(VarBinding(binding.var, TupleGetItem(parts, n)))]
        return super().binding(binding)


def CombineParallelMatmul(check: Check | None = None) -> ModulePass:
    """A pass: products of one value with several matrices become one product with their columns side by side, which is split.

    Biases and activations behind go along, if all of the products have them.

    Args:
        check: from the common value, the matrices, the biases and the activations by number ({0: "relax.nn.relu"}) to whether to combine
            them; all are if None.
    """
    from ..analysis import remove_all_unused

    def run(func: Function, mod: Any) -> Function:
        combiner = _Combiner(func, check)
        made = combiner.function(func)
        return remove_all_unused(made) if combiner.changed else func

    return each_function("CombineParallelMatmul", run)
