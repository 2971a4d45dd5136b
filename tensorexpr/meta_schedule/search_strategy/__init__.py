"""Which programs to measure next.

search_strategy      the protocol, and what is proposed
search_state         what a search under way knows
population           the programs of traces: drawn, varied, finished;  population_space: spaces that explore themselves
replay_func, replay_trace, evolutionary_search
"""

from __future__ import annotations

from .evolutionary_search import EvolutionarySearch
from .population_space import PopulationSpace
from .replay_func import ReplayFunc
from .replay_trace import ReplayTrace
from .search_strategy import MeasureCandidate, PySearchStrategy, SearchStrategy, create

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
