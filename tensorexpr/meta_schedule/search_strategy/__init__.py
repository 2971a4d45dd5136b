"""Which programs to measure next.

search_strategy      the protocols of strategies and of spaces that explore themselves, and what is proposed
population           the programs of traces: drawn, varied, finished;  trace_space: as a space of the search loop
tuned                spaces that the search loop explores
replay, evolutionary_search     the strategies: options of that loop
"""

from __future__ import annotations

from ...later import later
from ..tune_context import MeasureCandidate
from .evolutionary_search import EvolutionarySearch
from .replay import ReplayFunc, ReplayTrace
from .search_strategy import PopulationSpace, PySearchStrategy, SearchStrategy, create

__all__ = [
    "EvolutionarySearch",
    "MeasureCandidate",
    "PopulationSpace",
    "PySearchStrategy",
    "ReplayFunc",
    "ReplayTrace",
    "SearchStrategy",
    "create",
]

# Where releases of 2022 have them.
__getattr__, __dir__ = later(__name__, {"..tune_config": "EvolutionarySearchConfig ReplayFuncConfig ReplayTraceConfig"})
