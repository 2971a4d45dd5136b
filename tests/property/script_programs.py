"""Random programs of every statement and expression, built node by node, so that nothing in them is canonical."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from tensorexpr import tir
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import pointer_var

TRUE = tir.const(True)
DTYPES = ("int32", "int64", "float32", "bool")
INTEGERS = (tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod, tir.Min, tir.Max)
FLOATS = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Min, tir.Max)
COMPARISONS = (tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)
NUMBERS = (0.0, -0.0, 1.0, 0.1, -2.5, 1e30, 3e-45, math.inf, -math.inf)
KINDS = (tir.ForKind.SERIAL, tir.ForKind.SERIAL, tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED)
NOTES: tuple[dict[str, object], ...] = (
    {},
    {},
    {"hint": 3},
    {"text": 'a "quoted" one', "list": [1, {"deep": 2.5}], "flag": True, "none": None},
)


class Programs:
    """Draws one program. Variables and buffers of the place are kept in lists that grow and shrink with the scopes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.variables: list[tir.Var] = []
        self.loop_variables: set[tir.Var] = set()
        self.buffers: list[tir.Buffer] = []
        self.blocks = 0

    def function(self, blocks: bool) -> tir.PrimFunc:
        """A function; of blocks, or of plain statements."""
        size = self.rng.choice([tir.Var, tir.SizeVar])("n", self.rng.choice(["int32", "int64"]))
        step = self.rng.choice([tir.Var, tir.SizeVar])("s", self.rng.choice(["int32", "int64"]))
        scalars = [tir.Var("i"), tir.Var("l", "int64"), tir.Var("x", "float32"), tir.Var("b", "bool"), tir.Var("i")]
        buffers = [
            tir.decl_buffer((8, 8), name="A"),
            tir.decl_buffer((16,), "int32", name="A"),
            tir.decl_buffer((size,), name="B", strides=[step]),
            tir.decl_buffer((), "int64", name="for", elem_offset=self.rng.choice([0, 4]), offset_factor=self.rng.choice([1, 4])),
            tir.decl_buffer((4, 4), "bool", name="C", scope=self.rng.choice(["global", "shared"]), data_alignment=128),
        ]
        handles = [tir.Var(buffer.name, "handle") for buffer in buffers]
        self.variables, self.buffers = [*scalars, size], list(buffers)
        body = self.blocks_of(2) if blocks else self.statements(3)
        if blocks:
            self.buffers = list(buffers)
            root = tir.Block((), (), (), "root", body, alloc_buffers=self.local_buffers())
            body = tir.BlockRealize((), TRUE, root)
        attrs = FrozenMap({"global_symbol": self.rng.choice(["main", "other"]), **self.rng.choice(NOTES)})
        return tir.PrimFunc((*handles, *scalars), body, None, dict(zip(handles, buffers, strict=True)), attrs)

    # Expressions.

    def expr(self, dtype: str, depth: int) -> tir.PrimExpr:
        """Any expression of a dtype."""
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(dtype)
        return self.rng.choice(self.forms(dtype))(dtype, depth - 1)

    def leaf(self, dtype: str) -> tir.PrimExpr:
        known = [var for var in self.variables if var.dtype == dtype]
        loads = [buffer for buffer in self.buffers if buffer.dtype == dtype]
        pick = self.rng.random()
        if known and pick < 0.5:
            return self.rng.choice(known)
        if loads and pick < 0.7:
            buffer = self.rng.choice(loads)
            return tir.BufferLoad(buffer, tuple(self.small_index() for _ in buffer.shape))
        if dtype == "float32":
            return tir.const(self.rng.choice(NUMBERS))
        return tir.const(self.rng.random() < 0.5) if dtype == "bool" else tir.const(self.rng.randint(-9, 99), dtype)

    def forms(self, dtype: str) -> list[Callable[[str, int], tir.PrimExpr]]:
        common = [self.chosen, self.conditional, self.let]
        if dtype == "bool":
            return [*common, self.comparison, self.comparison, self.connective, self.negation]
        return [*common, self.arithmetic, self.arithmetic, self.arithmetic, self.converted, self.called]

    def arithmetic(self, dtype: str, depth: int) -> tir.PrimExpr:
        kind = self.rng.choice(FLOATS if dtype == "float32" else INTEGERS)
        return kind(self.expr(dtype, depth), self.expr(dtype, depth))

    def converted(self, dtype: str, depth: int) -> tir.PrimExpr:
        return tir.Cast(dtype, self.expr(self.rng.choice([other for other in DTYPES if other != dtype]), depth))

    def called(self, dtype: str, depth: int) -> tir.PrimExpr:
        args = self.expr(dtype, depth), self.expr(dtype, depth)
        if dtype == "float32":
            name, count = self.rng.choice([("exp", 1), ("pow", 2), ("fabs", 1), ("copysign", 2)])
        else:
            name, count = self.rng.choice([("popcount", 1), ("bitwise_xor", 2), ("shift_right", 2), ("bitwise_not", 1), ("fabs", 1)])
        if self.rng.random() < 0.2:
            return tir.call_pure_extern(dtype, "f", *args)
        return tir.Call(dtype, f"tir.{name}", args[:count])

    def chosen(self, dtype: str, depth: int) -> tir.PrimExpr:
        return tir.Select(self.expr("bool", depth), self.expr(dtype, depth), self.expr(dtype, depth))

    def conditional(self, dtype: str, depth: int) -> tir.PrimExpr:
        arms = self.expr("bool", depth), self.expr(dtype, depth), self.expr(dtype, depth)
        return tir.Call(dtype, "tir.if_then_else", arms)

    def let(self, dtype: str, depth: int) -> tir.PrimExpr:
        var = tir.Var("k", self.rng.choice(DTYPES))
        value = self.expr(var.dtype, depth)
        self.variables.append(var)
        body = self.expr(dtype, depth)
        self.variables.pop()
        return tir.Let(var, value, body)

    def comparison(self, dtype: str, depth: int) -> tir.PrimExpr:
        kind = self.rng.choice(DTYPES)
        return self.rng.choice(COMPARISONS)(self.expr(kind, depth), self.expr(kind, depth))

    def connective(self, dtype: str, depth: int) -> tir.PrimExpr:
        return self.rng.choice([tir.And, tir.Or])(self.expr("bool", depth), self.expr("bool", depth))

    def negation(self, dtype: str, depth: int) -> tir.PrimExpr:
        inside = self.expr("bool", depth)
        return tir.Not(inside) if self.rng.random() < 0.7 else tir.Call("bool", "tir.likely", (inside,))

    def small_index(self) -> tir.PrimExpr:
        known = [var for var in self.variables if var.dtype == "int32"]
        return self.rng.choice(known) if known and self.rng.random() < 0.7 else tir.const(self.rng.randint(0, 3))

    def vector(self, dtype: str, lanes: int) -> tir.PrimExpr:
        """A vector out of a buffer, a scalar or a shuffle."""
        buffers = [buffer for buffer in self.buffers if buffer.dtype == dtype and buffer.ndim == 1]
        if buffers and self.rng.random() < 0.6:
            buffer = self.rng.choice(buffers)
            index = self.ramp(lanes)
            mask = self.mask(lanes) if self.rng.random() < 0.3 else None
            return tir.BufferLoad(buffer, (index,), mask)
        wide = tir.Broadcast(self.expr(dtype, 1), lanes)
        return tir.Shuffle((wide, wide), tuple(self.rng.randrange(2 * lanes) for _ in range(lanes))) if self.rng.random() < 0.3 else wide

    def ramp(self, lanes: int) -> tir.PrimExpr:
        return tir.Ramp(self.expr("int32", 1), tir.const(self.rng.choice([1, 1, 3, -1])), lanes)

    def mask(self, lanes: int) -> tir.PrimExpr:
        return tir.LT(self.ramp(lanes), tir.Broadcast(self.expr("int32", 1), lanes))

    # Statements.

    def statements(self, depth: int) -> tir.Stmt:
        """One to three statements."""
        return tir.stmt_seq(*(self.statement(depth) for _ in range(self.rng.randint(1, 3))))

    def statement(self, depth: int) -> tir.Stmt:
        if depth <= 0:
            return self.rng.choice([self.store, self.store, self.vector_store, self.evaluate])(0)
        forms = [self.store, self.loop, self.loop, self.branch, self.allocate, self.bind, self.check, self.attribute, self.again]
        return self.rng.choice([*forms, self.view, self.box, self.realize, self.vector_store, self.evaluate])(depth - 1)

    def store(self, depth: int) -> tir.Stmt:
        buffer = self.rng.choice([buffer for buffer in self.buffers if buffer.dtype in DTYPES])
        return tir.BufferStore(buffer, self.expr(buffer.dtype, 3), tuple(self.expr("int32", 1) for _ in buffer.shape))

    def vector_store(self, depth: int) -> tir.Stmt:
        buffer = self.rng.choice([buffer for buffer in self.buffers if buffer.ndim == 1 and buffer.dtype in DTYPES])
        lanes = self.rng.choice([2, 4, 5])
        mask = self.mask(lanes) if self.rng.random() < 0.3 else None
        return tir.BufferStore(buffer, self.vector(buffer.dtype, lanes), (self.ramp(lanes),), mask)

    def evaluate(self, depth: int) -> tir.Stmt:
        call = tir.call_extern("int32", "touch", self.rng.choice(self.buffers).data, "text", self.expr("float32", 1))
        packed = tir.call_packed("hello", self.rng.choice(self.buffers), self.expr("int32", 1))
        return tir.Evaluate(self.rng.choice([call, packed, self.expr("int64", 2)]))

    def loop(self, depth: int) -> tir.Stmt:
        dtype = self.rng.choice(["int32", "int32", "int64"])
        var = tir.Var(self.rng.choice("ij"), dtype)
        low = tir.const(0, dtype) if self.rng.random() < 0.6 else self.expr(dtype, 1)
        extent = self.rng.choice([tir.const(self.rng.randint(1, 8), dtype), self.expr(dtype, 1)])
        kind = self.rng.choice(KINDS)
        thread = None
        if self.rng.random() < 0.1:
            kind, thread = tir.ForKind.THREAD_BINDING, tir.IterVar(None, tir.Var("t", dtype), tir.IterVar.THREAD_INDEX, "threadIdx.x")
        self.variables.append(var)
        body = self.statements(depth)
        self.variables.remove(var)
        return tir.For(var, low, extent, kind, body, thread, FrozenMap(self.rng.choice(NOTES)))

    def branch(self, depth: int) -> tir.Stmt:
        other = self.statements(depth) if self.rng.random() < 0.5 else None
        return tir.IfThenElse(self.expr("bool", 2), self.statements(depth), other)

    def again(self, depth: int) -> tir.Stmt:
        return tir.While(self.expr("bool", 2), self.statements(depth))

    def allocate(self, depth: int) -> tir.Stmt:
        dtype = self.rng.choice(DTYPES)
        data = pointer_var("D", dtype, self.rng.choice(["global", "local"]))
        view = tir.decl_buffer((16,), dtype, "D", data)
        self.buffers.append(view)
        body = self.statements(depth)
        if self.rng.random() < 0.5:
            body = tir.DeclBuffer(view, body)
        self.buffers.pop()
        condition = TRUE if self.rng.random() < 0.8 else self.expr("bool", 1)
        return tir.Allocate(data, dtype, (tir.const(4), self.expr("int32", 1)), condition, body, FrozenMap(self.rng.choice(NOTES)))

    def bind(self, depth: int) -> tir.Stmt:
        pointer = self.rng.random() < 0.2
        var = pointer_var("q", "float32", "shared") if pointer else tir.Var("v", self.rng.choice(DTYPES))
        value = self.rng.choice(self.buffers).data if pointer else self.expr(var.dtype, 2)
        self.variables.append(var)
        body = self.statements(depth)
        self.variables.pop()
        return tir.LetStmt(var, value, body)

    def check(self, depth: int) -> tir.Stmt:
        return tir.AssertStmt(self.expr("bool", 2), tir.StringImm('it\'s "so"\\n'), self.statements(depth))

    def attribute(self, depth: int) -> tir.Stmt:
        tag, key = self.rng.choice([("vthread", "virtual_thread"), ("threadIdx.x", "thread_extent"), ("", "pragma"), ("vthread", "odd")])
        if self.rng.random() < 0.5:
            axis = tir.IterVar(None, tir.Var("t"), tir.IterVar.THREAD_INDEX, tag)
            self.variables.append(axis.var)
            body = self.statements(depth)
            self.variables.pop()
            return tir.AttrStmt(axis, key, self.expr("int32", 1), body)
        node = self.rng.choice([self.rng.choice(self.buffers), self.rng.choice(self.buffers).data, "name", 3, None])
        return tir.AttrStmt(node, key, self.rng.choice([tir.StringImm("text"), self.expr("bool", 1)]), self.statements(depth))

    def view(self, depth: int) -> tir.Stmt:
        """The same memory in another shape, with or without a statement."""
        of = self.rng.choice(self.buffers)
        buffer = tir.decl_buffer((2, self.small_index()), of.dtype, of.name, of.data, elem_offset=self.rng.choice([0, 5]))
        self.buffers.append(buffer)
        body = self.statements(depth)
        self.buffers.pop()
        return tir.DeclBuffer(buffer, body) if self.rng.random() < 0.5 else body

    def box(self, depth: int) -> tir.Stmt:
        """A buffer that stands for a part of another."""
        of = self.rng.choice(self.buffers)
        region = tuple(tir.Range.from_min_extent(self.expr("int32", 1), tir.const(4)) for _ in of.shape)
        offset = self.rng.choice([tir.Var("e"), tir.Var("e", "int64")])
        steps = [self.rng.choice([tir.Var("s"), tir.SizeVar("s")]) for _ in of.shape] if self.rng.random() < 0.5 else None
        buffer = tir.decl_buffer((4,) * of.ndim, of.dtype, "M", strides=steps, elem_offset=offset)
        return self.within(buffer, depth, lambda body: tir.BufferBind(buffer, tir.BufferRegion(of, region), body))

    def realize(self, depth: int) -> tir.Stmt:
        buffer = tir.decl_buffer((8, 8), self.rng.choice(DTYPES), "R", scope=self.rng.choice(["global", "local"]))
        bounds = tuple(tir.Range.from_min_extent(self.expr("int32", 1), self.expr("int32", 1)) for _ in buffer.shape)
        notes = FrozenMap(self.rng.choice(NOTES))
        return self.within(buffer, depth, lambda body: tir.BufferRealize(buffer, bounds, self.expr("bool", 1), body, notes))

    def within(self, buffer: tir.Buffer, depth: int, around: Callable[[tir.Stmt], tir.Stmt]) -> tir.Stmt:
        """`around` statements that may use a buffer."""
        self.buffers.append(buffer)
        body = self.statements(depth)
        self.buffers.pop()
        return around(body)

    # Blocks.

    def local_buffers(self) -> tuple[tir.Buffer, ...]:
        return tuple(tir.decl_buffer((4,), self.rng.choice(DTYPES), "L", scope="local") for _ in range(self.rng.randint(0, 2)))

    def blocks_of(self, depth: int) -> tir.Stmt:
        """One or two blocks, each under loops."""
        return tir.stmt_seq(*(self.under_loops(depth) for _ in range(self.rng.randint(1, 2))))

    def under_loops(self, depth: int) -> tir.Stmt:
        loops = [tir.Var(name, self.rng.choice(["int32", "int32", "int64"])) for name in "xyz"[: self.rng.randint(0, 3)]]
        self.variables.extend(loops)
        self.loop_variables.update(loops)
        stmt = self.block(loops, depth)
        del self.variables[len(self.variables) - len(loops) :]
        for var in reversed(loops):
            stmt = tir.For(var, tir.const(0, var.dtype), tir.const(8, var.dtype), self.rng.choice(KINDS), stmt)
        return stmt

    def block(self, loops: list[tir.Var], depth: int) -> tir.Stmt:
        """A block that says it touches every buffer, whole or in part."""
        self.blocks += 1
        axes, values = [], []
        for number in range(self.rng.randint(0, 3)):
            value: tir.PrimExpr = self.rng.choice(loops) if loops and self.rng.random() < 0.6 else self.expr("int32", 1)
            low, kind = self.rng.choice([0, 0, 0, 2]) if value not in loops else 0, self.rng.choice([0, 0, 2, 3, 4])
            var = tir.Var(f"v{number}", value.dtype)
            dom = tir.Range.from_min_extent(tir.const(low, var.dtype), tir.const(self.rng.choice([8, 100]), var.dtype))
            axes.append(tir.IterVar(dom, var, kind))
            values.append(value if not isinstance(value, tir.IntImm) else dom.min)
        outer, outer_buffers = list(self.variables), list(self.buffers)
        predicate = TRUE if self.rng.random() < 0.7 else self.expr("bool", 2)
        if axes:  # such a block speaks of its axes alone
            self.variables = [var for var in self.variables if var not in self.loop_variables]
        self.variables.extend(axis.var for axis in axes)
        touched = tuple(self.region(buffer) for buffer in self.buffers)
        local = self.local_buffers()
        self.buffers.extend(local)
        views = tuple(self.match() for _ in range(self.rng.choice([0, 0, 1])))
        self.buffers.extend(view.buffer for view in views)
        reduces = any(axis.iter_type == tir.IterVar.COMM_REDUCE for axis in axes)
        init = self.statements(1) if reduces and self.rng.random() < 0.5 else None
        body = self.blocks_of(depth - 1) if depth > 0 and self.rng.random() < 0.3 else self.statements(1)
        self.variables, self.buffers = outer, outer_buffers
        notes = FrozenMap(self.rng.choice(NOTES))
        made = tir.Block(tuple(axes), touched, touched, self.rng.choice(["", "C", "a b"]), body, init, local, views, notes)
        return tir.BlockRealize(tuple(values), predicate, made)

    def region(self, buffer: tir.Buffer) -> tir.BufferRegion:
        if self.rng.random() < 0.5:
            return tir.BufferRegion.full_region(buffer)
        return tir.BufferRegion(
            buffer, tuple(tir.Range.from_min_extent(self.small_index(), tir.const(self.rng.choice([1, 4]))) for _ in buffer.shape)
        )

    def match(self) -> tir.MatchBufferRegion:
        of = self.rng.choice(self.buffers)
        region = tir.BufferRegion(of, tuple(tir.Range.from_min_extent(self.small_index(), tir.const(4)) for _ in of.shape))
        buffer = tir.decl_buffer((4,) * of.ndim, of.dtype, "M", elem_offset=tir.Var("e"))
        return tir.MatchBufferRegion(buffer, region)
