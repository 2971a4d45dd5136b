"""A network runs on inputs that are like those that it will get, and what its products and convolutions read is watched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass, replace
from ...errors import ArgumentError, DeclarationError
from ...target import TargetLike
from ...tir.dtype import to_numpy
from ...tir.function import IRModule
from ..build import build
from ..expr import BindingBlock, Function, SeqExpr, Tuple, Var, VarBinding
from ..runtime.machine import VirtualMachine
from ..transform.dataflow import ConvertToDataflow, ToNonDataflow
from ..transform.fold_scale import ANCHORS
from ..transform.pipeline import run_phases
from ..transform.static_quantization import Site, StaticQuantization, sites
from .ranges import BINS, METHODS, Seen

Sample = Mapping[str, Any]
_SKIPPED = "it is left out by its number"
_SIMPLIFIED = 1  # the phase behind which norms are in the weights that are quantised


@dataclass(frozen=True)
class Quantization:
    """A network with quantize and dequantize around its products and convolutions.

    Args:
        module: the network, which any build makes integer kernels of.
        sites: its products and convolutions, each with the reason why it stays in floats, if it does.
        ranges: the range of what each site that is quantised reads, by name of the site's variable.
        samples: how many inputs were seen.
    """

    module: IRModule
    sites: tuple[Site, ...]
    ranges: Mapping[str, tuple[float, float]]
    samples: int

    def __str__(self) -> str:
        whole = [site for site in self.sites if not site.reason]
        samples = "sample" if self.samples == 1 else "samples"
        lines = [f"{len(whole)} of {len(self.sites)} products and convolutions on integers; {self.samples} {samples} seen"]
        left: dict[tuple[str, str], list[str]] = {}
        for site in self.sites:
            if site.reason:
                left.setdefault((site.operator, site.reason), []).append(site.shapes)
        for (operator, reason), shapes in left.items():
            more = f" and {len(shapes) - 1} more" if len(shapes) > 1 else ""
            lines.append(f"  in floats: {operator} of {shapes[0]}{more}: {reason}")
        return "\n".join(lines)


def quantize(
    mod: IRModule, samples: Sequence[Sample], target: TargetLike = "llvm", activations: str = "uint8", per_channel: bool = True,
    method: str = "minmax", percentile: float = 99.999, operators: Sequence[str] | None = None, limit: float | None = None,
    skip: Sequence[int] = (),
) -> Quantization:  # fmt: skip
    """Quantise a network after training, by rules as of onnxruntime: weights symmetric, activations by range with 0 in it.

    Args:
        mod: a module of graphs with "main", whose parameters are its inputs.
        samples: inputs like those that it will get, arrays by name; all are run, once for "minmax" and twice for the others.
        target: what the runs are built for.
        activations: "uint8" or "int8"; weights are int8.
        per_channel: whether weights have a scale for each result, or one.
        method: how ranges come of what was seen: "minmax", "entropy" or "percentile".
        percentile: how many percent of the numbers the last one keeps.
        operators: which operators, such as ["nn.conv2d", "matmul"]; all if None.
        limit: the range of all that is read, -limit to limit, which needs no samples.
        skip: the numbers of convolutions that stay in floats, from 0.

    Raises:
        DeclarationError: for options or operators that there aren't, a module without "main", or if nothing can be quantised.
        ArgumentError: for samples that don't fit, or none.
    """
    if method not in METHODS:
        raise DeclarationError(f"method {method!r}: there are {', '.join(METHODS)}")
    if not 0 < percentile <= 100:
        raise DeclarationError(f"a percentile is more than 0 and at most 100, not {percentile}")
    known = sorted(str(op).removeprefix("relax.") for op in ANCHORS)
    if unknown := [name for name in operators or () if name not in known]:
        raise DeclarationError(f"no operator {', '.join(map(repr, unknown))} is quantised; there are {', '.join(known)}")
    if not samples and limit is None:
        raise ArgumentError("quantize needs samples: inputs like those that the network will get")
    simple = ToNonDataflow()(run_phases(mod, upto=_SIMPLIFIED))
    if "main" not in simple or not isinstance(simple["main"], Function):
        raise DeclarationError('quantize takes a module of graphs with a function "main"')
    main: Any = simple["main"]
    found = _left_out(sites(main, operators), skip)
    chosen = [site for site in found if not site.reason]
    if not chosen:
        reasons = "; ".join(sorted({f"{site.operator}: {site.reason}" for site in found})) or "it has no products or convolutions"
        raise DeclarationError(f"nothing of this network can be quantised: {reasons}")
    kept = {site.data for site in found if site.reason == _SKIPPED}
    chosen = [site for site in chosen if site.data not in kept]
    watched = list(dict.fromkeys(site.data for site in chosen))
    if limit is None:
        seen = _seen(simple, main, watched, samples, target, method != "minmax")
        options = {"percentile": percentile} if method == "percentile" else {}
        ranges = {var: METHODS[method](seen[var], **options) for var in watched}
    else:
        ranges = dict.fromkeys(watched, (-limit, limit))
    made = StaticQuantization(ranges, activations, per_channel, operators)(simple)
    named = {site.var.name_hint: ranges[site.data] for site in chosen}
    return Quantization(ConvertToDataflow(1)(made), tuple(found), named, len(samples))


def _left_out(found: Sequence[Site], skip: Sequence[int]) -> list[Site]:
    """Sites of which convolutions of these numbers stay in floats."""
    convolutions = [site for site in found if "conv" in site.operator]
    skipped = {id(convolutions[n]) for n in skip if -len(convolutions) <= n < len(convolutions)}
    return [replace(site, reason=_SKIPPED) if id(site) in skipped and not site.reason else site for site in found]


def _seen(
    mod: IRModule, main: Function, watched: Sequence[Any], samples: Sequence[Sample], target: TargetLike, is_counted: bool
) -> dict[Any, Seen]:
    """What samples make of variables: their extremes, and in a second run how often which numbers occur."""
    inside = [var for var in watched if var not in main.params]
    fields = Tuple(tuple(inside))
    whole = Var("watched", fields.struct_info)
    body = SeqExpr((*main.body.blocks, BindingBlock((VarBinding(whole, fields),))), whole)
    around = mod.clone()
    watching: Any = Function(main.params, body, is_pure=main.is_pure, attrs=main.attrs)
    around.update_func("main", watching)
    run = VirtualMachine(build(ConvertToDataflow(1)(around), target))["main"] if inside else None

    def values() -> Iterable[tuple[Any, Any]]:
        for sample in samples:
            given = _arguments(main, sample)
            results = run(*given) if run is not None else ()
            arrays = [one.numpy() for one in results]
            yield from zip((*inside, *main.params), (*arrays, *given), strict=True)

    limits: dict[Any, tuple[float, float]] = {}
    for var, array in values():
        if var in watched and array.size:
            low, high = limits.get(var, (np.inf, -np.inf))
            limits[var] = min(low, float(array.min())), max(high, float(array.max()))
    for var in watched:
        if not np.isfinite(limits.setdefault(var, (0.0, 0.0))).all():
            raise ArgumentError(f"{var.name_hint} has numbers that aren't finite on these samples, and no range")
    if not is_counted:
        return {var: Seen(*limits[var]) for var in watched}
    counts = {var: np.zeros(BINS) for var in watched}
    for var, array in values():
        if var in counts and limits[var][0] < limits[var][1]:
            counts[var] += np.histogram(array, BINS, limits[var])[0]
    return {var: Seen(*limits[var], counts[var]) for var in watched}


def _arguments(main: Function, sample: Sample) -> list[Any]:
    names = [param.name_hint for param in main.params]
    if set(sample) != set(names):
        raise ArgumentError(f"a sample has {', '.join(sample) or 'nothing'}; the network takes {', '.join(names)}")
    given = [np.asarray(sample[name]) for name in names]
    # floats of another precision are rounded, as an executor does with its inputs
    dtypes = [str(getattr(param.struct_info, "dtype", "")) for param in main.params]
    return [
        array.astype(to_numpy(dtype)) if array.dtype.kind == "f" and dtype.startswith("float") else array
        for array, dtype in zip(given, dtypes, strict=True)
    ]
