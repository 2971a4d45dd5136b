"""Programs of PyTorch made of operators that have converters, by PyTorch's own passes."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from ...errors import DeclarationError
from .table import CONVERTERS, Converter

# Reads one element as a number.
READS = ("aten.item.default", "aten._local_scalar_dense.default")
# Arithmetic on sizes, which stays outside of tensors.
_ON_SIZES = frozenset((operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg))
# What PyTorch's own decomposition computes otherwise than the operator (2.13: classes behind a -1 count there).
_WRONG = frozenset(("aten.multilabel_margin_loss.default", "aten.multilabel_margin_loss_forward.default"))


def torch_module() -> Any:
    """PyTorch, which reads its own programs.

    Raises:
        DeclarationError: where it isn't installed.
    """
    try:
        import torch
    except ImportError as error:
        raise DeclarationError("programs of PyTorch are read by PyTorch: `pip install torch`") from error
    return torch


def converter_of(target: Any, own: Mapping[str, Converter]) -> Converter | None:
    """The converter of an operator of PyTorch, or None."""
    name = str(target).removeprefix("aten.")
    plain_name = name.rpartition(".")[0]  # "add" of "add.Tensor", "prims.expm1" of "prims.expm1.default"
    return own.get(name) or own.get(plain_name) or CONVERTERS.get(name) or CONVERTERS.get(plain_name)


def calls_of(program: Any) -> list[Any]:
    """All calls, those in functions that operators take among them."""
    graphs = [part.graph for part in program.graph_module.modules() if hasattr(part, "graph")]
    return [node for graph in graphs for node in graph.nodes if node.op == "call_function"]


def is_training(node: Any) -> bool:
    """Whether a norm of batches changes its statistics; without any it is a norm of each batch."""
    name = str(node.target)
    if name == "aten.batch_norm.default":
        return node.args[3] is not None and bool(node.args[5])
    return "batch_norm_legit_functional" in name or name == "aten._native_batch_norm_legit.default"


def _is_on_sizes(node: Any) -> bool:
    return node.target in _ON_SIZES or node.target is operator.getitem or "sym_size" in str(node.target)


def is_fixed(node: Any) -> bool:
    """Whether an operator makes a tensor of numbers alone, as windows are made: PyTorch says what is in it."""
    given = [*node.args, *node.kwargs.values()]
    seeded = any(str(tag).endswith("nondeterministic_seeded") for tag in getattr(node.target, "tags", ()))
    found = node.meta.get("val")
    return isinstance(found, torch_module().Tensor) and not node.all_input_nodes and bool(given) and not seeded


def _is_converted(node: Any) -> bool:
    """Whether a call needs no converter."""
    return _is_on_sizes(node) or str(node.target) in READS or is_fixed(node)


def _unknown(program: Any, own: Mapping[str, Converter]) -> list[Any]:
    """The operators without a converter."""
    torch = torch_module()
    # They give no value, and the export has made sure of what they check.
    checks = {f"aten.{name}" for name in ("_assert_tensor_metadata.default", "sym_constrain_range_for_size.default",
                                          "_assert_scalar.default", "_assert_async.msg", "_assert_async.default")}  # fmt: skip
    found = {node.target: None for node in calls_of(program) if converter_of(node.target, own) is None and not _is_converted(node)}
    on_tensors = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)  # the latter take functions, as torch.cond does
    sizes = {one for one in found if not isinstance(one, on_tensors)}  # such as comparisons of sizes, which only checks use
    return [one for one in found if one not in sizes and str(one) not in checks]


def simplified(program: Any, own: Mapping[str, Converter]) -> Any:
    """A program of functional operators, with PyTorch's own decompositions of those that have no converter.

    Raises:
        DeclarationError: naming all that are left.
    """
    torch = torch_module()
    # An empty table makes operators functional and takes none of them apart.
    program = program.run_decompositions({})
    seen: set[Any] = set()
    while unknown := set(_unknown(program, own)) - seen:
        # A decomposition may leave an operator as it is; what was tried isn't tried again, so the loop ends.
        seen |= unknown
        # The core set leaves some operators whole that the full table takes apart.
        tables = torch._decomp.core_aten_decompositions(), torch._decomp.decomposition_table
        simpler = {one: table[one] for table in tables for one in unknown if one in table and str(one) not in _WRONG}
        if not simpler:
            break
        try:
            program = program.run_decompositions(simpler)
        except RuntimeError:  # some are of PyTorch's own primitives, which its exports don't take
            break
    if left := _unknown(program, own):
        names = ", ".join(sorted(map(str, left)))
        raise DeclarationError(
            f"operators of PyTorch without a converter: {names}; give them by custom_convert_map={{'name': converter}}, "
            "or write the network with others"
        )
    return program
