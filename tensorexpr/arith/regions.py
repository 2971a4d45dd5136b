"""The set of points that a region covers while variables run over their ranges: from above, from below, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tir.expr import IntImm, Range, Var
from .index_analyzer import Analyzer
from .int_set import IntervalSet, int_set_of
from .iter_map_queries import detect_iter_map


def estimate_region_upper_bound(region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Any) -> list[IntervalSet]:
    """Intervals, one a dimension, that hold all points of the region.

    Args:
        region: the ranges of the dimensions, in terms of the variables.
        var_dom: the ranges of the variables.
        predicate: what holds of the variables.
    """
    exact = estimate_region_strict_bound(region, var_dom, predicate)
    if exact is not None:
        return exact
    analyzer = Analyzer()
    found = []
    for dom in region:
        low = int_set_of(analyzer, dom.min, var_dom)
        high = int_set_of(analyzer, analyzer.simplify(dom.min + dom.extent - 1), var_dom)
        found.append(IntervalSet(low.min_value, high.max_value))
    return found


def estimate_region_lower_bound(region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Any) -> list[IntervalSet] | None:
    """Intervals whose product the region covers entirely; None if none are found.

    Args:
        region: the ranges of the dimensions, in terms of the variables.
        var_dom: the ranges of the variables.
        predicate: what holds of the variables.
    """
    return estimate_region_strict_bound(region, var_dom, predicate)


def estimate_region_strict_bound(region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: Any) -> list[IntervalSet] | None:
    """Intervals whose product is the region; None if it isn't known to be such a box.

    Args:
        region: the ranges of the dimensions, in terms of the variables.
        var_dom: the ranges of the variables.
        predicate: what holds of the variables.
    """
    analyzer = Analyzer()
    for var, dom in var_dom.items():
        analyzer.bind(var, dom)
    maps = detect_iter_map([dom.min for dom in region], var_dom, predicate)
    if not maps.indices:
        return None
    found = []
    for dom, total in zip(region, maps.indices, strict=True):
        least = most = total.base
        if total.args:
            split = total.args[0]
            # Neighbouring starts are one scale apart, which the extent has to bridge.
            if not isinstance(split.scale, IntImm) or not analyzer.can_prove(dom.extent >= abs(split.scale.value)):
                return None
            reach = (split.extent - 1) * split.scale
            least, most = (least, most + reach) if split.scale.value > 0 else (least + reach, most)
        found.append(IntervalSet(analyzer.simplify(least), analyzer.simplify(most + dom.extent - 1)))
    return found
