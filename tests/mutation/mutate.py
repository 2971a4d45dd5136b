"""Break the compiler on purpose, one line at a time, and see whether the tests notice.

    python tests/mutation/mutate.py                 every mutation
    python tests/mutation/mutate.py --list          what there is, by number
    python tests/mutation/mutate.py 3 17 20-25      some of them

The sources and tests are copied to a temporary folder. For each mutation one line of the copy is changed, the quick tests of
its area run with `-x`, and the line is put back. A mutation that no test notices has survived: either the line is not needed,
or a test is missing. The exit code is 1 if any survived; and if a line or a test is no longer there, before any is tried: the
mutation would prove nothing, and has to be written anew. It is a script and no test, as all of it takes minutes, but for the
last, which `test_mutations_stand.py` asks of every change; nothing of the working tree is touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 300

# Area -> the tests that should notice, quick and telling ones first.
TESTS: dict[str, tuple[str, ...]] = {
    "schedule": (
        "tests/unit/schedule",
        "tests/error/test_schedule_errors.py",
        "tests/error/test_scan_errors.py",
        "tests/error/test_thread_and_storage_errors.py",
        "tests/error/test_memory_primitive_errors.py",
        "tests/property/test_memory_primitives.py",
        "tests/property/test_lowering.py",
    ),
    "lower": (
        "tests/unit/lower",
        "tests/unit/te/test_scan.py",
        "tests/property/test_rolling_buffer.py",
        "tests/property/test_memory_primitives.py",
        "tests/unit/schedule/test_tensorize.py",
        "tests/error/test_tensorize_errors.py",
        "tests/error/test_tensor_intrin_errors.py",
        "tests/error/test_bound_buffer_errors.py",
        "tests/property/test_tensorize.py",
        "tests/property/test_lowering.py",
    ),
    "te": ("tests/error/test_scan_errors.py", "tests/unit/te"),
    "codegen": ("tests/unit/codegen", "tests/property/test_codegen_programs.py"),
    "arith": ("tests/unit/arith", "tests/property/test_index_algebra.py"),
}


@dataclass(frozen=True)
class Mutation:
    """In `file` of the package, `old` (which occurs there once) becomes `new`. `only`: the tests to run, if not all of the area."""

    file: str
    old: str
    new: str
    only: tuple[str, ...] = ()

    @property
    def area(self) -> str:
        """The package that the file belongs to."""
        return self.file.split("/")[0]

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that should notice."""
        return self.only or TESTS[self.area]

    def why_stale(self, root: Path = ROOT) -> str | None:
        """What of it the sources no longer have; None if it can be tried."""
        path = root / "tensorexpr" / self.file
        if not path.exists():
            return "there is no such file"
        found = path.read_text().count(self.old)
        if found != 1:
            return f"the line stands there {found} times"
        missing = [test for test in self.tests if not (root / test.partition("::")[0]).exists()]
        return f"there are no tests {', '.join(missing)}" if missing else None

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()}  ->  {self.new.strip()}"


_DOMAIN, _LEGALITY = "schedule/domain.py", "schedule/legality.py"
_NEST, _INFER = "lower/phase0/loop_nest.py", "lower/phase0/infer_bound.py"
_NARROW, _PARTITION, _VECTORIZE = "lower/phase1/narrow_dtype.py", "lower/phase2/loop_partition.py", "lower/phase2/vectorize_loop.py"
_VTHREAD, _DOUBLE = "lower/phase2/inject_virtual_thread.py", "lower/phase2/inject_double_buffer.py"
_BALANCED, _PADDING = "schedule/balanced.py", "schedule/steps/padding.py"
_SHORT, _TRIM, _LIVE = "lower/phase0/short_tiles.py", "lower/phase2/trim_no_ops.py", "lower/phase2/guard_bounds.py"
_ROLL, _MEMORY = "lower/phase0/rolling_buffer.py", "schedule/memory_rules.py"
_MATCH, _TENSORIZE, _BIND = "lower/phase0/tensor_match.py", "lower/phase0/tensorize.py", "lower/phase1/buffer_bind.py"
_SAME = "schedule/intrinsic_match.py"
_OVERCOMPUTE = "lower/phase2/reduce_branching_through_overcompute.py"
_DIVISION, _PARALLEL = "codegen/division.py", "codegen/parallel.py"

_LAYOUT = "schedule/steps/transform_layout.py"
_LANES, _CHUNKS = "lower/phase2/vector_reduction.py", "lower/phase2/split_vector_loop.py"
_SCANS, _SCAN_NEST, _EXTERN = "schedule/scans.py", "lower/phase0/scan_nest.py", "lower/phase0/extern_body.py"
_PROGRAM = "lower/phase0/schedule_to_func.py"

_LARGE = ("tests/property/test_large_extents.py",)
_SHARED = ("tests/property/test_shared_axes.py",)
_REGIONS = ("tests/property/test_compute_at_regions.py",)
_PACKED = ("tests/golden/test_lowered.py::test_lowered[packed_matmul-0]",)
_CONDITIONS = ("tests/property/test_vectorised_conditions.py",)
_REDUCED = ("tests/property/test_vector_reductions.py",)
_TENSORIZED = ("tests/unit/schedule/test_tensorize.py", "tests/error/test_tensorize_errors.py", "tests/property/test_tensorize.py")
_SPLIT = ("tests/unit/lower/test_split_vector_loop.py", *_CONDITIONS)
_RECURRENCES = ("tests/error/test_scan_errors.py", "tests/unit/te/test_scan.py")
_EXTERNS = ("tests/unit/te/test_extern.py", "tests/error/test_extern_errors.py")
_ARGUMENTS = ("tests/property/test_repeated_calls.py",)

_SCANS, _STEPS = "schedule/scans.py", "te/scan_body.py"

_STORE, _KEY = "runtime/store.py", "runtime/program_key.py"
_STORED, _CACHED = ("tests/unit/runtime/test_store.py",), ("tests/unit/runtime/test_cache.py",)
_GIVEN = ("tests/error/test_pre_transformed_errors.py", "tests/unit/auto_scheduler/test_layout_rewrite.py")
_ONCE = ("tests/unit/lower/test_lowered_once.py",)

# Primitives of tir.Schedule, and the tests of their subjects.
_B = "schedule/blocks"
_P = f"{_B}/primitives"
_OF = "test_tir_schedule"
_NESTED = (
    "tests/unit/schedule/test_tir_schedule_core.py",
    "tests/unit/schedule/test_tir_schedule_loops.py",
    f"tests/error/{_OF}_nests_errors.py",
    f"tests/property/{_OF}_nests.py",
)
_PLACED = (f"tests/error/{_OF}_placement_errors.py", f"tests/property/{_OF}_placement.py")
_COPIED = (f"tests/error/{_OF}_caching_errors.py", f"tests/golden/{_OF}_caching.py", f"tests/property/{_OF}_caching.py")
_KINDS = (f"tests/error/{_OF}_kinds_errors.py", f"tests/property/{_OF}_kinds.py")
_RECORDED = ("tests/unit/meta_schedule/test_database.py", "tests/property/test_meta_schedule_records.py")
_MS = "meta_schedule"
_RULES = tuple(f"tests/unit/meta_schedule/test_{name}.py" for name in ("mutators", "postprocs", "design_spaces"))

MUTATIONS = (
    # Recurrences: what a step may read, and what stays inside of the time loop
    Mutation(_SCANS, "if used or stage.mark(axis).kind not in (LoopKind.SERIAL, LoopKind.UNROLL):", "if False:"),
    Mutation(_SCANS, "if not any(target.id == owner for target, _ in path):", "if False:"),
    Mutation(_SCANS, "stage.origin is update.op and update.value_index == output", "False"),
    Mutation(_SCANS, "isinstance(scan.op, ScanOp) and not is_update(tree, stage)", "False"),
    Mutation("schedule/tree.py", "return Root() if scan is None else At(scan, 0)", "return Root()"),
    Mutation("lower/phase0/scan_nest.py", "extent = minimum(axis.dom.extent, end)", "extent = axis.dom.extent"),
    Mutation(_STEPS, "if not self.analyzer.known_nonnegative(row):", "if False:"),
    Mutation(_STEPS, "known_less(row, self.scan.scan_axis.var)", "known_less_equal(row, self.scan.scan_axis.var)"),
    # Guards and values of split and fused axes
    Mutation(_DOMAIN, "return analyzer.known_equal(covered(relation.parts, extents), extents[relation.parent])", "return True"),
    Mutation(_DOMAIN, "values[part] = binary(FloorMod, rest, extents[part])", "values[part] = rest"),
    Mutation(_DOMAIN, "above[relation.fused] = relation.parts[0]", "above[relation.fused] = relation.parts[-1]"),
    Mutation(_DOMAIN, "above[relation.parts[0]] = relation.parent", "above[relation.parts[-1]] = relation.parent"),
    Mutation(_DOMAIN, "known = known if factor is None else known * factor", "known = known if factor is None else factor"),
    # Tiles of two sizes, and terms that padding makes neutral
    Mutation(_BALANCED, "start + minimum(tile, self.longer)", "start + minimum(tile, self.longer + 1)"),
    Mutation(_BALANCED, "return start if is_const_int(self.longer, 0) else", "return start if True else"),
    Mutation(_BALANCED, "self.last * shorter + self.longer", "self.last * shorter + self.longer + 1"),
    Mutation(_BALANCED, "self.last * shorter + self.longer", "self.last * shorter + self.longer - 1"),
    Mutation(_BALANCED, "maximum(ceildiv(extent, size), IntImm(extent.dtype, 1))", "ceildiv(extent, size)"),
    Mutation(_DOMAIN, "return (*ends, *_short_tiles(stage, extents, values, analyzer))", "return tuple(ends)"),
    Mutation(_PADDING, "if chosen is None or not _is_zero(chosen[2]):", "if chosen is None:"),
    Mutation(_PADDING, "chosen[2] is self.reduce.combiner.identity_element[0]", "_is_zero(chosen[2])"),
    Mutation(_PADDING, "if isinstance(seen, Mul) and self._is_sum():", "if isinstance(seen, Mul):"),
    # What schedules may not do
    Mutation(_LEGALITY, "if not reads_inside and not is_inside(tree, reader, target.id, axis):", "if False:"),
    Mutation(_LEGALITY, "if inner and target.mark(axis).kind is LoopKind.PARALLEL:", "if False:"),
    Mutation(_LEGALITY, "if target.mark(axis).kind is LoopKind.VECTORIZE:", "if False:"),
    # The start of reductions, their conditions, and boxes of attached stages
    Mutation(_NEST, "(g for g in self.domain.guards if not g.reduction)", "()"),
    Mutation(_NEST, "(g for g in self.domain.guards if not g.reduction)", "self.domain.guards"),
    Mutation(_NEST, "return where(substitute(reduce.condition, roots), stmt)", "return stmt"),
    Mutation(_INFER, "yield Guard(axis, value < size, False)", "pass"),
    Mutation(_INFER, "yield Guard(axis, value >= 0, False)", "pass"),
    Mutation(_INFER, "return b if smaller else a", "return a if smaller else b"),
    Mutation(_INFER, "symbolic = self.analyzer.simplify(high - low + 1)", "symbolic = self.analyzer.simplify(high - low)"),
    # Layouts: padding, its values, and what is computed past the end
    Mutation(_LAYOUT, "condition=all_of(self.valid, body.condition)", "condition=body.condition"),
    Mutation(_LAYOUT, "return if_then_else(self.valid, body, pads[0]", "return if_then_else(self.valid, body, const(1, body.dtype)"),
    Mutation(_LAYOUT, "index_map.map_indices(node.indices)", "node.indices"),
    Mutation("lower/phase0/overcompute.py", "if self._reads_exist((*self.domain.guards, *without)):", "if True:"),
    Mutation("arith/padded_inverse.py", "(place >= 0, place < extent)", "(place >= 0,)"),
    Mutation("arith/padded_inverse.py", "divisor // gcd(divisor, k) if", "1 if"),
    # What stages in tiles of two sizes compute, trimmed loops, and parts of cut loops
    Mutation(_SHORT, "last = analyzer.simplify(domain.extents[axis] - 1)", "last = analyzer.simplify(domain.extents[axis] - 2)"),
    Mutation(_SHORT, "form.coefficient_of(loop) < 1", "form.coefficient_of(loop) == 0"),
    Mutation(_SHORT, "if short is None or (found", "if short is not None and (found"),
    Mutation(_TRIM, "to_expr(dtype), factor) + 1", "to_expr(dtype), factor)"),
    Mutation(_TRIM, "rest.shift(-factor - 1).to_expr(dtype)", "rest.shift(-factor).to_expr(dtype)"),
    Mutation(_TRIM, "if found and self._reduces(loop) else", "if found else"),
    Mutation(_TRIM, "used.isdisjoint(inner) and", ""),
    Mutation(_TRIM, "if part not in known", "if False"),
    Mutation(_OVERCOMPUTE, "bound.min_value >= 0 and bound.max_value < size", "bound.min_value >= 0"),
    Mutation(_OVERCOMPUTE, "or self._free(atom).isdisjoint(inner)", "or True"),
    Mutation(_OVERCOMPUTE, "inner = {loop.loop_var for loop in loops} | self._unknown", "inner = {loop.loop_var for loop in loops}"),
    Mutation(_OVERCOMPUTE, "or not stores[0].plain:", "or stores[0].guard is not None:"),
    Mutation(_PARTITION, "inside and high.value <= low.value", "False"),
    Mutation(_LIVE, "for part in stmt.seq) if low < high]", "for part in stmt.seq)]"),
    Mutation("lower/phase2/extrema.py", "return result.a if isinstance(result, Min)", "return result.a if isinstance(result, Max)"),
    # Tensor intrinsics: what matches, and where bound buffers lie
    Mutation(_MATCH, "if not variables(guard.condition).isdisjoint(inside):", "if False:"),
    Mutation(_MATCH, "if not analyzer.known_equal(points, _product((*spatial.extents, *reduction.extents))):", "if False:"),
    Mutation(_SAME, "if moving is not None:", "if False:", _TENSORIZED),
    Mutation(_SAME, "or not variables(ours).isdisjoint(self.local):", "or False:", _TENSORIZED),
    Mutation(_SAME, "self.places, self.values = places, values", "pass", _TENSORIZED),
    Mutation(_TENSORIZE, "(*loops, *inner)", "inner"),
    Mutation(_TENSORIZE, "(g for g in nest.domain.guards if not g.reduction)", "()"),
    Mutation(_BIND, "_refuse_stride(stmt, number, wanted, found)", "pass"),
    Mutation(_BIND, "strides = source.strides[left_out:]", "strides = source.strides[: bound.ndim]"),
    Mutation(_BIND, "if source.data_alignment % bound.data_alignment:", "if False:"),
    # Widths, partition, unrolling, vectors
    Mutation(_NARROW, "return cast(expr, wanted) if self._fits(expr) else None", "return cast(expr, wanted)"),
    Mutation(_NARROW, "type(expr) in _ARITHMETIC and self._fits_binary(expr):", "type(expr) in _ARITHMETIC:"),
    Mutation(_PARTITION, "low = begin if cut.low is None else cut.low", "low = begin"),
    Mutation(_PARTITION, "self._joined(maximum, found.lows)", "self._joined(minimum, found.lows)"),
    Mutation("lower/phase2/unroll_loop.py", "return body.steps * extent <= max_step or", "return body.steps <= max_step or"),
    Mutation(_VECTORIZE, "if values.varies(stmt.value) or self._rereads(stmt.value):", "if values.varies(stmt.value):"),
    Mutation(_VECTORIZE, "if stmt.else_case is None and not values.masks.reads_memory(stmt.condition):", "if stmt.else_case is None:"),
    # Virtual threads, double buffers, aligned storage
    Mutation(_VTHREAD, "survey(inner, differs or here)", "survey(inner, here)"),
    Mutation(_VTHREAD, "while len(found) > size:", "if len(found) > size:"),
    Mutation(_VTHREAD, "return stmt if private and not self._differs(stmt) else self._threads(stmt)", "return self._threads(stmt)"),
    Mutation(_VTHREAD, "if has_pointers(result.body, own) or any(", "if any("),
    Mutation(_VTHREAD, "any(_fills(inner, own) for inner in walk_statements(result.body))", "False"),
    Mutation(_DOUBLE, "if not made.isdisjoint(self._used(inside) | filled):", "if False:"),
    Mutation(_DOUBLE, "<= filled | private:", "<= filled | private | _written(seq(*plan.filling)):"),
    Mutation(_DOUBLE, "if not isinstance(loop.extent, IntImm):", "if False:"),
    Mutation(_DOUBLE, "result.kind is ForKind.SERIAL", "True"),
    Mutation("lower/phase1/layout.py", "floormod(offset - stride, factor)", "floormod(offset + stride, factor)"),
    Mutation("lower/copies.py", 'if offset.dtype == "int64" and not index.dtype.startswith("int64"):', "if False:"),
    Mutation("lower/phase2/storage_rewrite.py", "_AT_ONCE = (ForKind.PARALLEL, ForKind.THREAD_BINDING)", "_AT_ONCE = (ForKind.PARALLEL,)"),
    Mutation("schedule/thread_legality.py", "if first[2] is not extent:", "if False:"),
    Mutation("schedule/buffering_legality.py", "if mark.kind is not LoopKind.SERIAL:", "if False:"),
    Mutation("schedule/buffering_legality.py", "if not together and is_inside(", "if False and is_inside("),
    Mutation("schedule/exact.py", "if not analyzer.known_equal(covered(relation.parts, domain.extents), extent):", "if False:"),
    # Rolling buffers, store predicates, prefetches, non-temporal stores, separate loads
    Mutation(
        _ROLL,
        "floormod(index, self.size) if n == self.dimension else index",
        "floormod(index, self.size - 1) if n == self.dimension else index",
    ),
    Mutation(_ROLL, "start = EQ(self.loop, IntImm(self.loop.dtype, 0))", "start = EQ(self.loop, IntImm(self.loop.dtype, 1))"),
    Mutation(_ROLL, "if step.value >= size.value:", "if step.value > size.value:"),
    Mutation(_ROLL, "if step.value <= 0:", "if False:"),
    Mutation(_ROLL, "yield Guard(axis, value < size, False)", "pass"),
    Mutation(
        _MEMORY, "if kind in (LoopKind.PARALLEL, LoopKind.VECTORIZE, LoopKind.BIND):", "if kind in (LoopKind.VECTORIZE, LoopKind.BIND):"
    ),
    Mutation(_MEMORY, "proved = count < MAX_READS and analyzer.known_true(stored)", "proved = True"),
    Mutation(_MEMORY, "(no, logical_and(under, other))]", "(no, logical_and(under, known))]"),
    Mutation(_MEMORY, "if not isinstance(reader.op, ComputeOp):  # it may read everything", "if False:"),
    Mutation(
        _NEST, "update = where(self.stored(roots), self._update(first, roots, indices))", "update = self._update(first, roots, indices)"
    ),
    Mutation(_NEST, "stores = where(self.stored(roots), stores)", "pass"),
    Mutation(
        "lower/phase1/inject_prefetch.py", "later: dict[Var, PrimExpr] = {loop: add(loop, offset)}", "later: dict[Var, PrimExpr] = {}"
    ),
    Mutation("lower/phase1/inject_prefetch.py", "isinstance(total, IntImm) and total.value == 1", "isinstance(total, IntImm)"),
    Mutation("lower/phase3/instrument_bound_checkers.py", 'expr.op == "tir.prefetch":', "False:"),
    Mutation("lower/phase2/unroll_loop.py", "if loop.annotations.get(NO_LOAD_MERGE):  # of one", "if False:  # of one"),
    Mutation("lower/phase2/unroll_register_tile.py", "extents = _extents(tile)", "extents = _extents(loops)"),
    Mutation("codegen/nontemporal.py", "or alignment % whole or size % whole", "or size % whole"),
    Mutation("codegen/nontemporal.py", "or ctx.only_ordinary_stores or _reads(stmt.body, stmt.node):", "or ctx.only_ordinary_stores:"),
    Mutation(_PARALLEL, "    nontemporal.fence(body)", "    pass"),
    Mutation("codegen/address.py", "pointer = _own_copy(ctx, pointer)", "pass"),
    Mutation("codegen/control.py", "    ctx.load_epoch = outer_epoch", "    pass"),
    # Masks, division, memory and threads in machine code
    Mutation("codegen/masks.py", "elif not all(constant):", "elif not any(constant):"),
    Mutation(_DIVISION, "if low > 0 or high < -1:", "if low > 0 or high < 0:"),
    Mutation(_DIVISION, 'sign = self.write("ashr", self.a', 'sign = self.write("lshr", self.a'),
    Mutation("codegen/memo.py", "self.reads = outer | reads", "self.reads = outer"),
    Mutation(_PARALLEL, "    ctx.forget_reads()", "    pass"),
    Mutation(_PARALLEL, "return min(64, offset & -offset)", "return 64"),
    # Extents near the ends of integers
    Mutation(_DOMAIN, "_check_fits(stage, relation.fused, [extents[part] for part in relation.parts])", "pass", _LARGE),
    Mutation(_DOMAIN, "    _check_values(stage, extents)\n", "", _LARGE),
    Mutation(_DOMAIN, "if value > largest:", "if value > largest + 1:", _LARGE),
    Mutation("lower/phase1/layout.py", ">= 1 << 63:", ">= 1 << 64:", _LARGE),
    Mutation("lower/phase1/layout.py", '"int32" if small or plain else "int64"', '"int32"', _LARGE),
    Mutation("tir/arithmetic.py", "if numerator is not None and divisor:", "if False:", _LARGE),
    # One reduce_axis in several stages; what is computed where
    Mutation(_LEGALITY, "if target.axes[axis].var in own:", "if False:", _SHARED),
    Mutation(_PROGRAM, "if var in self.loop_vars:", "if False:", _SHARED),
    Mutation(_INFER, "if not domain.guards or any(guard.short for guard in domain.guards):", "if True:", _REGIONS),
    Mutation(_INFER, "if axis in domain.stage.leaf:  # its variable", "if False:  # its variable", _PACKED),
    Mutation(_INFER, "low = self._pick(low, interval.min, smaller=True)", "pass", _REGIONS),
    Mutation(_INFER, "passed = passed or (target.id, axis) == end", "passed = True", _REGIONS),
    # Vectors: reductions in lanes, registers, conditions
    Mutation(_LANES, "if mask is not None:", "if False:", _REDUCED),
    Mutation(_LANES, "if count % 2:", "if False:", _REDUCED),
    Mutation(_LANES, "tuple(range(half, 2 * half))", "tuple(range(half))", _REDUCED),
    Mutation(_LANES, "copysign(inf, value.value)", "copysign(inf, -value.value)", _REDUCED),
    Mutation(_LANES, "abs(value.value) > 1 else value", "abs(value.value) > 0 else value", _REDUCED),
    Mutation("schedule/lane_reduction.py", "if law_of_one(combiner, index) is None:", "if False:", _REDUCED),
    Mutation("schedule/lane_reduction.py", "broken = refuted_law(combiner, any_start=bool(body.init))", "broken = None", _REDUCED),
    Mutation(_CHUNKS, "loop.min + whole * lanes, rest", "loop.min, rest", _SPLIT),
    Mutation(_CHUNKS, "loop.min + chunk * lanes", "loop.min + chunk", _SPLIT),
    Mutation(
        "codegen/odd_vectors.py",
        "'i1 true' if n < lanes else 'i1 false'",
        "'i1 true' if n <= lanes else 'i1 false'",
        ("tests/unit/codegen", *_ARGUMENTS),
    ),
    Mutation("te/lazy_select.py", "if bound.min_value < 0:", "if False:", _CONDITIONS),
    Mutation("te/lazy_select.py", "and not analyzer.known_less(index, extent):", "and False:", _CONDITIONS),
    # Scans and externs
    Mutation(_SCANS, "if used or stage.mark(axis).kind not in (LoopKind.SERIAL, LoopKind.UNROLL):", "if used:", _RECURRENCES),
    Mutation(_SCANS, "if not any(target.id == owner for target, _ in path):", "if False:", _RECURRENCES),
    Mutation(_SCANS, "return {0}", "return set()", _RECURRENCES),
    Mutation(_SCAN_NEST, "extent = minimum(axis.dom.extent, end)", "extent = axis.dom.extent", _RECURRENCES),
    Mutation(_EXTERN, "if placeholder.data in pointers and not is_plain(plain[placeholder]):", "if False:", _EXTERNS),
    Mutation(_EXTERN, "for placeholder, tensor in reversed(op.pairs()):", "for placeholder, tensor in reversed(op.pairs()[1:]):", _EXTERNS),
    Mutation(_LEGALITY, "stage.aligns and is_plain(placeholder) and placeholder.data in pointers", "False", _EXTERNS),
    # Division that floors, and threads
    Mutation(_DIVISION, "if isinstance(self.node, (Div, Mod)):", "if True:", _CONDITIONS),
    # Bounds, congruences and rules of the index algebra
    Mutation("arith/bounds.py", "low, high = low + k * above, high + k * below", "low, high = low + k * below, high + k * above"),
    Mutation("arith/bounds.py", "fits_dtype = whole[0] <= found[0] and found[1] <= whole[1]", "fits_dtype = True"),
    Mutation("arith/modular.py", "gcd(a[0], b[0], a[1] - b[1])", "gcd(a[0], b[0])"),
    Mutation("arith/modular.py", "base // c) if coeff % c == 0 and floored else _ANYTHING", "base // c) if floored else _ANYTHING"),
    Mutation("arith/modular.py", "if coeff % c == 0 and floored else", "if coeff % c == 0 else"),
    Mutation("arith/rules/floordiv.py", "if form.constant or inner % divisor:", "if inner % divisor:"),
    # What is found in the cache is just what was asked for, and nobody else put it there
    Mutation(_STORE, "elif parts[0] == key:", "else:", _STORED),
    Mutation(_STORE, " or status.st_mode & 0o077", "", _STORED),
    Mutation(_STORE, "status.st_uid != os.getuid() or ", "", _STORED),
    Mutation(_STORE, " or data[len(_MAGIC) : start] != hashlib.sha256(body).digest()", "", _STORED),
    Mutation("runtime/cache.py", "target.feature_string, ", "", _CACHED),
    Mutation("runtime/cache.py", "_engine_digest(), ", "", _CACHED),
    Mutation(_KEY, 'ctx.config.get("tir.add_lower_pass") or ', "", _CACHED),
    Mutation(_KEY, "[_machine(target), _machine(Target.current())]", "[_machine(target)]", _CACHED),
    Mutation(_KEY, ', "steps": steps}', "}", _CACHED),
    Mutation(_KEY, " and arg.op in ops", "", _CACHED),
    Mutation(_KEY, " {status.st_ctime_ns}", "", _CACHED),
    # What was lowered is not lowered again, unless something changed
    Mutation("lower/pipeline.py", "dict(ctx.config), simple_mode", "simple_mode", _ONCE),
    Mutation("tir/function.py", "copy = replace(self)", "copy = self", _ONCE),
    # What the caller packs is a copy of an input, and nothing reads that input in another layout
    Mutation("schedule/steps/pre_transformed.py", "if others:", "if False:", _GIVEN),
    Mutation("schedule/steps/pre_transformed.py", "body is not load or ", "", _GIVEN),
    Mutation("schedule/tiled_layout.py", "if piece.step == coarsest else", "if True else", _GIVEN),
    # Primitives of tir.Schedule: what runs at once, and whose memory it is
    Mutation(f"{_P}/kinds.py", "if loop.loop_var in variables(value) and axis.iter_type != IterVar.DATA_PAR:", "if False:", _KINDS),
    Mutation(f"{_P}/kinds.py", "return why_ambiguous(realize.block)", "return None", _KINDS),
    Mutation(f"{_P}/kinds.py", "    _check_carried(program, loop, primitive)\n", "", _KINDS),
    Mutation(f"{_P}/kinds.py", "if not any(loop.loop_var in variables(value) for value in realize.iter_values):", "if False:", _KINDS),
    Mutation(f"{_B}/apart.py", " or _is_used(scope.block.body, buffer, loop):", ":", _KINDS),
    Mutation(f"{_B}/apart.py", "(buffer in read(first) and first.init is None)", "False", _KINDS),
    Mutation(f"{_B}/apart.py", "not (around & _reducing(program, top, buffer)) and ", "", _KINDS),
    Mutation(f"{_B}/apart.py", "IntImm(var.dtype, 1), loop.extent - 1", "IntImm(var.dtype, 2), loop.extent - 2", (*_KINDS, *_NESTED)),
    Mutation(f"{_B}/scope.py", "other = _read_elsewhere(block)", "other = None", _KINDS),
    # Loops and reductions: guards, values, inits and their names
    Mutation(f"{_P}/split.py", "disable_predication else total < loop.extent", "disable_predication else total < loop.extent + 1", _NESTED),
    Mutation(f"{_P}/split.py", "None if covered or disable_predication else total < loop.extent", "None", _NESTED),
    Mutation(f"{_P}/fuse.py", "whole = loop.extent * below", "whole = (loop.extent + 1) * below", _NESTED),
    Mutation(f"{_P}/reorder.py", "if reason is not None and not is_update(realize.block):", "if False:", _NESTED),
    Mutation(f"{_P}/reorder.py", "        if late:", "        if False:", _NESTED),
    Mutation(f"{_P}/reorder.py", "    _check_carried(program, chain[-1], below_all)\n", "", _NESTED),
    Mutation(f"{_P}/transform_block_layout.py", '    check_unambiguous(realize, "transform_block_layout")\n', "", _NESTED),
    Mutation(f"{_B}/coverage.py", "if any(len(variables(side.min) & axes) > 1 for side in region.region):", "if False:", _PLACED),
    Mutation(f"{_P}/decompose_reduction.py", "    _check_above_reduction(realize, loops[:place], loop)", "    pass", _NESTED),
    Mutation(f"{_P}/decompose_reduction.py", "    _check_moved(program, realize, loop)\n", "", _NESTED),
    Mutation(f"{_P}/decompose_reduction.py", "substitute(holds, fresh), made)", "IntImm('bool', 1), made)", _NESTED),
    Mutation(f"{_P}/decompose_reduction.py", "renamed={ref: BlockRef(ref.func, made.update)}", "renamed={}", _NESTED),
    Mutation(f"{_P}/rfactor.py", "if not variables(value) & apart:", "if not variables(value) & {self.loop.loop_var}:", _NESTED),
    Mutation(f"{_P}/rfactor.py", "    _check_partials_begin(realize, loops, loop)\n", "", _NESTED),
    Mutation(f"{_P}/rfactor.py", "factor_axis + ndim + 1 if", "factor_axis + ndim if", _NESTED),
    Mutation(f"{_P}/merge.py", "    _check_order(program, nodes[0], nests, made, bodies)\n", "", _NESTED),
    Mutation(f"{_P}/blockize.py", "made = _outer_block(name, axes, body, init)", "made = _outer_block(name, axes, body, None)", _NESTED),
    Mutation(f"{_P}/loop_partition.py", "lengths.append(extent - total)", "lengths.append(extent - total - 1)", _NESTED),
    # Where blocks are computed, and what is known of what they read
    Mutation(f"{_B}/moving.py", "(domain.span.max - domain.span.min + 1)", "(domain.span.max - domain.span.min)", _PLACED),
    Mutation(f"{_B}/moving.py", "if domain.cut and axis.dom is not None:", "if False:", _PLACED),
    Mutation(f"{_B}/moving.py", "if why := why_not_covered(made, producer, node):", "if why := None:", _PLACED),
    Mutation(f"{_B}/moving.py", "        if racing:", "        if False:", _PLACED),
    Mutation(f"{_P}/compute_at.py", "        if lacking is not None:", "        if False:", _PLACED),
    Mutation(f"{_P}/compute_inline.py", '    check_movable(program, node, "compute_inline")\n', "", _PLACED),
    Mutation(f"{_P}/reverse_compute_inline.py", "    if others:", "    if False:", _PLACED),
    Mutation(f"{_P}/reverse_compute_inline.py", "    if not is_true(condition) and not nest:", "    if False:", _PLACED),
    # Copies
    Mutation(f"{_P}/cache_read.py", "    _check_order(siblings, writer, readers, buffer)\n", "", _COPIED),
    Mutation(f"{_P}/cache_write.py", '    check_written_alone(program, node, region, "cache_write")\n', "", _COPIED),
    Mutation(f"{_B}/copying.py", "facts.simplify(last.max + 1)", "facts.simplify(last.max)", _COPIED),
    Mutation(f"{_B}/copying.py", "facts.simplify(minimum(count, whole - start))", "count", _COPIED),
    # meta_schedule: mutators, postprocessors and databases
    Mutation(f"{_MS}/mutator/sampled.py", "    factors[sink] *= divisor\n", "", _RULES),
    Mutation(f"{_MS}/mutator/sampled.py", "factors[sink] * divisor <= limit", "True", _RULES),
    Mutation(f"{_MS}/mutator/mutate_parallel.py", "if _plan(products, limit) not in plans:", "if True:", _RULES),
    Mutation(f"{_MS}/mutator/sampled.py", " and inst is not chosen", "", _RULES),
    Mutation(f"{_B}/thread_binding.py", "found |= reducing", "pass", _RULES),
    Mutation(f"{_MS}/postproc/blocks.py", "expected = stride * (as_int(loop.extent) or 1)", "expected = stride", _RULES),
    Mutation(f"{_MS}/postproc/verify.py", "isinstance(node.extent, IntImm)", "True", _RULES),
    Mutation(f"{_MS}/postproc/rewrite_parallel_vectorize_unroll.py", "independent or total > limit:", "independent:", _RULES),
    Mutation(f"{_MS}/database/memory_database.py", "and record.is_valid", "", _RECORDED),
    Mutation(f"{_MS}/database/memory_database.py", "record.workload is workload and ", "", _RECORDED),
    Mutation(f"{_MS}/database/json_database.py", "            self._lines.append(None)\n", "", _RECORDED),
    Mutation(f"{_MS}/database/database.py", "record.is_valid and (known is None", "(known is None", _RECORDED),
)


@contextmanager
def mutated(copy: Path, mutation: Mutation) -> Iterator[None]:
    """The copy with the mutation."""
    path = copy / "tensorexpr" / mutation.file
    text = path.read_text()
    try:
        _write(path, text.replace(mutation.old, mutation.new))
        yield
    finally:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    # Compiled files are told apart by second and size, and a mutation may keep both.
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[str, str]:
    """ "passed", "failed" or "timed out", and the line that names the first failure."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "TENSOREXPR_VERIFY": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "timed out", ""
    if done.returncode == 0:
        return "passed", ""
    if done.returncode < 0:
        return "crashed", f"the tests ended with signal {-done.returncode}"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "failed", (lines or [done.stderr.strip()])[0][:120]


def chosen(arguments: Sequence[str]) -> list[int]:
    """The numbers of ["3", "20-25"]; all if there are none."""
    numbers: list[int] = []
    for argument in arguments:
        first, _, last = argument.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers or list(range(len(MUTATIONS)))


def main() -> int:
    """Try the chosen mutations and report each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("numbers", nargs="*", help="such as 3 or 20-25; all by default")
    parser.add_argument("--list", action="store_true", help="print the mutations and stop")
    options = parser.parse_args()
    numbers = chosen(options.numbers)
    if options.list:
        print("\n".join(f"{number:3} {MUTATIONS[number]}" for number in numbers))
        return 0
    stale = [f"{number:3} {why}: {MUTATIONS[number]}" for number in numbers if (why := MUTATIONS[number].why_stale())]
    if stale:
        print("\n".join(stale), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("tensorexpr", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for tests in sorted({MUTATIONS[number].tests for number in numbers}):
            outcome, failure = run_tests(copy, tests)
            if outcome != "passed":
                print(f"{' '.join(tests)} don't pass without any mutation ({outcome}): {failure}", file=sys.stderr)
                return 1
        verdicts = [attempt(copy, number) for number in numbers]
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("caught", "survived")))
    return 0 if set(verdicts) == {"caught"} else 1


def attempt(copy: Path, number: int) -> str:
    """Try one mutation: "caught" or "survived"."""
    mutation, start = MUTATIONS[number], time.monotonic()
    with mutated(copy, mutation):
        outcome, failure = run_tests(copy, mutation.tests)
    verdict = "survived" if outcome == "passed" else "caught"
    print(f"{number:3} {verdict:8} {time.monotonic() - start:4.0f} s  {mutation}\n      {failure or outcome}", flush=True)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
