"""Modules that `torch.fx` has traced: they are exported for inputs of the stated shapes, and then read as exported programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...tir.function import IRModule
from .importer import example, from_exported_program
from .table import Converter


def from_fx(
    model: Any,
    input_info: Sequence[tuple[Sequence[int], str]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[Any, Converter] | None = None,
) -> IRModule:
    """A module of graphs with the function "main" of a traced module.

    Args:
        model: a `torch.fx.GraphModule`, or any module that can be exported; it is exported as it is in evaluation mode.
        input_info: shape and dtype of each input, such as [((1, 3, 224, 224), "float32")].
        keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, custom_convert_map: as of `from_exported_program`. A module
            that returns one tensor, and no tuple, gives a function that does.

    Raises:
        DeclarationError: for operators without a converter, or inputs that aren't stated as shape and dtype.
    """
    import torch

    try:
        inputs = tuple(example(shape, dtype) for shape, dtype in input_info)
    except (TypeError, ValueError, AttributeError) as error:
        raise DeclarationError(f'input_info states inputs as [((1, 3), "float32")], not {input_info!r}: {error}') from None
    was_training = model.training
    try:
        program = torch.export.export(model.eval(), inputs, strict=False)
    finally:
        model.train(was_training)
    is_single = program.call_spec.out_spec.is_leaf()
    return from_exported_program(
        program,
        keep_params_as_input=keep_params_as_input,
        unwrap_unit_return_tuple=unwrap_unit_return_tuple or is_single,
        no_bind_return_tuple=no_bind_return_tuple,
        custom_convert_map=custom_convert_map,
    )
