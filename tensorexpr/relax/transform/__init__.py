"""Passes of graphs, by their customary names: `relax.transform.LegalizeOps()(mod)`."""

from .annotate_pattern import AnnotateTIROpPattern
from .bind import BindParams, BindSymbolicVars
from .canonicalize import CanonicalizeBindings
from .closures import LambdaLift
from .common import EliminateCommonSubexpr
from .dataflow import ConvertToDataflow, ToNonDataflow
from .fuse_ops import FuseOps
from .fuse_tir import FuseTIR
from .inline import InlinePrivateFunctions
from .legalize import LegalizeOps
from .normalize import AttachGlobalSymbol, Normalize, NormalizeGlobalVar
from .order import TopologicalSort
from .parameters import BundleModelParams, UpdateParamStructInfo
from .passes import function_pass
from .purity import RemovePurityChecking
from .signatures import ExpandTupleArguments, RemoveUnusedOutputs, RemoveUnusedParameters
from .simple import DeadCodeElimination, FoldConstant

__all__ = [
    "AnnotateTIROpPattern", "AttachGlobalSymbol", "BindParams", "BindSymbolicVars", "BundleModelParams", "CanonicalizeBindings",
    "ConvertToDataflow", "DeadCodeElimination", "EliminateCommonSubexpr", "ExpandTupleArguments", "FoldConstant", "FuseOps", "FuseTIR",
    "InlinePrivateFunctions", "LambdaLift", "LegalizeOps", "Normalize", "NormalizeGlobalVar", "RemovePurityChecking",
    "RemoveUnusedOutputs", "RemoveUnusedParameters", "ToNonDataflow", "TopologicalSort", "UpdateParamStructInfo", "function_pass",
]  # fmt: skip
