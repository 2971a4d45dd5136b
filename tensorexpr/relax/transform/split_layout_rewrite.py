"""SplitLayoutRewritePreproc: blocks that rewrite the layout of a weight, marked by schedules, become functions of their own.

    gv = R.call_tir(cls.f, (x, w), ...)    ->    lv = R.call_tir(cls.f_weight_prepack, (w,), ...)
                                                 gv = R.call_tir(cls.f_prepacked, (x, lv), ...)

So `LiftTransformParams` can take them out of the function, to run once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass, replace
from ...lower.passes import ModulePass
from ...lower.transform.remove_weight_layout_rewrite_block import MARK
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ...tir.rewriting import post_order_rewrite
from ...tir.rewriting import walk as walk_loops
from ...tir.stmt import BufferStore, SeqStmt, Stmt, seq
from ...tir.stmt_functor import renew_defs
from ..expr import Call, Function, Tuple, TupleGetItem
from ..struct_info import TensorStructInfo, TupleStructInfo
from ..visitor import walk
from .fused_functions import free_name
from .layout_free import LAYOUT_FREE
from .passes import graph_pass
from .rewriting import Rewriter


@dataclass(frozen=True)
class _Split:
    """A function in two parts.

    Args:
        places: the arguments that are rewritten.
        made: what each becomes.
        prepack: takes these arguments, and writes what they become.
        rest: takes what they became in their places.
    """

    places: tuple[int, ...]
    made: tuple[Buffer, ...]
    prepack: PrimFunc
    rest: PrimFunc


def _is_marked(stmt: Stmt) -> bool:
    return any(isinstance(node, Block) and MARK in node.annotations for node in walk_loops(stmt))


def _buffers(stmt: Stmt, kind: type[BufferLoad] | type[BufferStore]) -> set[Buffer]:
    return {node.buffer for node in walk_loops(stmt) if isinstance(node, (BufferLoad, BufferStore)) and isinstance(node, kind)}


def _unmarked(node: Any) -> Any:
    """Block by block, without the mark."""

    def rule(one: Any) -> Any:
        if not isinstance(one, Block) or MARK not in one.annotations:
            return None
        return replace(one, annotations=type(one.annotations)({k: v for k, v in one.annotations.items() if k != MARK}))

    return post_order_rewrite(node, rule)


def _split(func: PrimFunc) -> _Split | None:
    """The parts of a function; None if it has no marked blocks, or what they do can't be taken out."""
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    if root is None or not isinstance(root.body, SeqStmt):
        return None
    marked = [stmt for stmt in root.body.seq if _is_marked(stmt)]
    others = [stmt for stmt in root.body.seq if not _is_marked(stmt)]
    params = [func.buffer_map.get(param) for param in func.params]
    found: dict[int, Buffer] = {}
    for stmt in marked:
        read, written = _buffers(stmt, BufferLoad), _buffers(stmt, BufferStore)
        # One whole argument into one whole buffer; nothing else may need the argument as it was.
        if len(read) != 1 or len(written) != 1 or not read <= set(params) or not written <= set(root.alloc_buffers):
            return None
        place = params.index(next(iter(read)))
        if place in found or any(_buffers(other, kind) & read for other in others for kind in (BufferLoad, BufferStore)):
            return None
        found[place] = next(iter(written))
        if any(as_int(extent) is None for extent in found[place].shape):
            return None
    if not found or not others:
        return None
    places = tuple(sorted(found))
    made = tuple(found[place] for place in places)
    attrs = {key: value for key, value in func.attrs.items() if key not in (LAYOUT_FREE, "global_symbol")}
    kept = tuple(buffer for buffer in root.alloc_buffers if buffer not in made)
    results = [Var(f"{buffer.name}_handle", "handle") for buffer in made]
    prepack = PrimFunc(
        (*(func.params[place] for place in places), *results),
        _body(func, _unmarked(seq(*marked)), ()),
        None,
        {**{func.params[place]: func.buffer_map[func.params[place]] for place in places}, **dict(zip(results, made, strict=True))},
    )
    inner = dict(zip(places, results, strict=True))
    taken = tuple(inner.get(place, param) for place, param in enumerate(func.params))
    buffers = {param: found[place] if place in found else func.buffer_map[param] for place, param in enumerate(taken) if params[place]}
    rest = PrimFunc(taken, _body(func, seq(*others), kept), None, buffers).with_attrs(attrs)
    return _Split(places, made, renew_defs(prepack), renew_defs(rest))


def _body(func: PrimFunc, body: Stmt, allocated: Sequence[Buffer]) -> Stmt:
    """The root block with some of its statements."""
    assert isinstance(func.body, BlockRealize)
    return replace(func.body, block=replace(func.body.block, body=body, alloc_buffers=tuple(allocated)))


class _Caller(Rewriter):
    """Calls of both parts in place of those of whole functions."""

    def __init__(self, parts: dict[str, tuple[_Split, GlobalVar, GlobalVar]]) -> None:
        super().__init__({})
        self._parts = parts

    def rewrite(self, expr: Any) -> Any:
        """The call of the second part, behind that of the first one."""
        is_call = isinstance(expr, Call) and expr.op == "relax.call_tir" and isinstance(expr.args[0], GlobalVar)
        found = self._parts.get(expr.args[0].name_hint) if is_call and isinstance(expr.args[1], Tuple) else None
        if found is None:
            return expr
        split, prepack, rest = found
        args, infos = list(expr.args[1].fields), [TensorStructInfo(buffer.shape, buffer.dtype) for buffer in split.made]
        info: Any = infos[0] if len(infos) == 1 else TupleStructInfo(tuple(infos))
        packed = self.leaf(Call(Op.of("relax.call_tir"), (prepack, Tuple(tuple(args[n] for n in split.places))), None, info))
        for number, place in enumerate(split.places):
            args[place] = packed if len(infos) == 1 else self.leaf(TupleGetItem(packed, number))
        return Call(expr.op, (rest, Tuple(tuple(args)), *expr.args[2:]), expr.attrs, expr.sinfo_args)


def SplitLayoutRewritePreproc() -> ModulePass:
    """A pass: blocks with the annotation "meta_schedule.layout_rewrite_preproc" become functions of their own, which are called before.

    Of a function `f` they are `f_weight_prepack`, which takes the weights, and `f_prepacked` is the rest, which takes what these become. A
    function stays as it is where a block reads other than one argument, where the rest reads that argument, too, and where sizes are open.
    """

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        parts: dict[str, tuple[_Split, GlobalVar, GlobalVar]] = {}
        for var, func in mod.functions_items():
            split = _split(func) if isinstance(func, PrimFunc) else None
            if split is not None:
                name = var.name_hint
                prepack = GlobalVar(free_name(made, f"{name}_weight_prepack"))
                made.update_func(prepack, split.prepack)
                rest = GlobalVar(free_name(made, f"{name}_prepacked"))
                made.update_func(rest, split.rest)
                parts[name] = split, prepack, rest
        if not parts:
            return mod
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                made.update_func(var, _Caller(parts).function(func))
        graphs = [func for _, func in made.functions_items() if isinstance(func, Function)]
        called = {node.name_hint for func in graphs for node in walk(func) if isinstance(node, GlobalVar)}
        gone = {name for name in parts if name not in called and "global_symbol" not in mod[name].attrs}
        return IRModule({v.name_hint: f for v, f in made.functions_items() if v.name_hint not in gone}, made.attrs, made.global_infos)

    return graph_pass("SplitLayoutRewritePreproc", run)
