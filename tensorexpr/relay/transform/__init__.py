"""Passes on Relay's modules by their names. None is needed to build: `relay.build` has passes of its own, those on graphs.

Rewrites of single calls are made here, on Relay's expressions; what looks at a whole network is the pass on graphs of the same purpose,
between `to_graph` and `from_graph`: operators that Relay has no word for are those of graphs (`relax.nn.gelu`) behind it.
"""

from __future__ import annotations

from ...later import later, stand_for
from ...lower.context import PassContext
from ...lower.instruments import PassInstrument
from ...lower.transform import Sequential, module_pass
from ..alter_layout import AlterOpLayout, LayoutConfig
from ..build_module import build_config
from ..closures import EtaExpand, LambdaLift
from ..cps import to_cps, un_cps
from ..fuse import FuseOps
from ..gradient import FirstOrderGradient, gradient
from ..inline import Inline
from ..partial_eval import PartialEvaluate
from ..partitioning import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph
from ..recast import recast
from .common import function_pass
from .fake_quantization_to_integer import FakeQuantizationToInteger
from .functions import (
    AnnotateSpans,
    DeadCodeElimination,
    DefuseOps,
    EliminateCommonSubexpr,
    InferType,
    InferTypeLocal,
    ManifestLifetimes,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
    RemoveUnusedFunctions,
    ToANormalForm,
    ToANormalFormExpr,
    ToBasicBlockNormalForm,
    ToGraphNormalForm,
)
from .mixed_precision import ToMixedPrecision
from .operators import (
    BackwardFoldScaleAxis,
    CanonicalizeOps,
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
    ConvertLayout,
    DivToMul,
    DynamicToStatic,
    FastMath,
    FlattenAtrousConv,
    FoldConstant,
    FoldConstantExpr,
    FoldExplicitPadding,
    FoldScaleAxis,
    ForwardFoldScaleAxis,
    LazyGradientInit,
    Legalize,
    SimplifyExpr,
    SimplifyInference,
    SplitArgs,
)

stand_for(__name__, "transform=..transform")
__getattr__, __dir__ = later(
    __name__, {"..flexible_shape": "ChangeBatch FlexibleShapeDispatch", "..defunctionalize": "Defunctionalization"}
)

__all__ = [
    "AlterOpLayout",
    "AnnotateSpans",
    "AnnotateTarget",
    "BackwardFoldScaleAxis",
    "CanonicalizeOps",
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "ConvertLayout",
    "DeadCodeElimination",
    "DefuseOps",
    "DivToMul",
    "DynamicToStatic",
    "EliminateCommonSubexpr",
    "EtaExpand",
    "FakeQuantizationToInteger",
    "FastMath",
    "FirstOrderGradient",
    "FlattenAtrousConv",
    "FoldConstant",
    "FoldConstantExpr",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FuseOps",
    "InferType",
    "InferTypeLocal",
    "Inline",
    "LambdaLift",
    "LayoutConfig",
    "LazyGradientInit",
    "Legalize",
    "ManifestLifetimes",
    "MergeCompilerRegions",
    "MergeComposite",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
    "PartialEvaluate",
    "PartitionGraph",
    "PassContext",
    "PassInstrument",
    "RemoveUnusedFunctions",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "SplitArgs",
    "ToANormalForm",
    "ToANormalFormExpr",
    "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "build_config",
    "function_pass",
    "gradient",
    "module_pass",
    "recast",
    "to_cps",
    "un_cps",
]  # fmt: skip
