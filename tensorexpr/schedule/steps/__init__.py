"""The schedule steps: the one vocabulary that every front door writes its schedules in."""

from ..factors import Factor
from .balanced import BalancedSplit
from .base import REGISTRY, Step, step_from_json
from .bind_loops import BindLoops
from .by_blocks import ByBlocks
from .caching import CacheRead, CacheReadOne, CacheReadWide, CacheWrite, ReindexCacheRead
from .contract import Contract
from .distribute import Distribute
from .exact_split import ExactSplit
from .grouping import CreateGroup, GroupComputeAt, GroupComputeRoot
from .knob import Knob
from .loops import PRAGMAS, Annotate, Fuse, Pragma, Reorder, Split
from .materialize import Materialize
from .padding import SkipPadding
from .pick import Pick
from .placement import ComputeAt, ComputeInline, ComputeRoot, SetScope
from .pre_transformed import PreTransformed
from .prefetch import Prefetch
from .rfactor import RFactor
from .rolling_buffer import RollingBuffer
from .sampling import SampleCategorical, Sampled, SamplePerfectTile, SampleTile, Sampling
from .storage import DoubleBuffer, MultiBuffer, StorageAlign
from .store_nontemporal import StoreNontemporal
from .store_predicate import SetStorePredicate
from .tensorize import Tensorize
from .threads import Bind, EnvThreads
from .transform_layout import TransformLayout

__all__ = [
    "PRAGMAS",
    "REGISTRY",
    "Annotate",
    "BalancedSplit",
    "Bind",
    "BindLoops",
    "ByBlocks",
    "CacheRead",
    "CacheReadOne",
    "CacheReadWide",
    "CacheWrite",
    "ComputeAt",
    "ComputeInline",
    "ComputeRoot",
    "Contract",
    "CreateGroup",
    "Distribute",
    "DoubleBuffer",
    "EnvThreads",
    "ExactSplit",
    "Factor",
    "Fuse",
    "GroupComputeAt",
    "GroupComputeRoot",
    "Knob",
    "Materialize",
    "MultiBuffer",
    "Pick",
    "Pragma",
    "PreTransformed",
    "Prefetch",
    "RFactor",
    "ReindexCacheRead",
    "Reorder",
    "RollingBuffer",
    "SampleCategorical",
    "SamplePerfectTile",
    "SampleTile",
    "Sampled",
    "Sampling",
    "SetScope",
    "SetStorePredicate",
    "SkipPadding",
    "Split",
    "Step",
    "StorageAlign",
    "StoreNontemporal",
    "Tensorize",
    "TransformLayout",
    "step_from_json",
]
