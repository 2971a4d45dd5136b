"""Visitors and mutators of users: classes with a method for each kind of node.

    @relax.expr_functor.mutator
    class Squares(relax.PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            return relax.op.multiply(*call.args * 2) if call.op == Op.get("relax.square") else call

The decorators are customary; they check the base class.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import TypeMismatchError
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .rebuild import Rebuilder
from .struct_info import RelaxExpr, ShapeExpr, StructInfo
from .visitor import operands

_METHODS: dict[type, str] = {
    Constant: "visit_constant_", Tuple: "visit_tuple_", DataflowVar: "visit_dataflow_var_", Var: "visit_var_",
    ShapeExpr: "visit_shape_expr_", ExternFunc: "visit_extern_func_", GlobalVar: "visit_global_var_", Function: "visit_function_",
    Call: "visit_call_", SeqExpr: "visit_seq_expr_", If: "visit_if_", Op: "visit_op_", TupleGetItem: "visit_tuple_getitem_",
    PrimValue: "visit_prim_value_", StringImm: "visit_string_imm_", DataTypeImm: "visit_data_type_imm_",
}  # fmt: skip


class ExprFunctor:
    """Calls the method of a node's kind; `visit_default` where a class has none of its own."""

    def visit_default(self, op: Any) -> Any:
        """What happens to nodes whose method isn't overridden."""
        raise NotImplementedError

    def visit_expr(self, expr: Any) -> Any:
        """Visit an expression by the method of its kind.

        Raises:
            TypeMismatchError: for what is no expression.
        """
        # By the very type: a DataflowVar is a Var, and has a method of its own.
        name = _METHODS.get(type(expr))
        if name is None and not isinstance(expr, RelaxExpr):
            raise TypeMismatchError(f"a visitor visits expressions of graphs, not {type(expr).__name__}")
        return self.visit_default(expr) if name is None else getattr(self, name)(expr)

    def visit_binding(self, binding: Binding) -> Any:
        """Visit a binding by the method of its kind."""
        return self.visit_match_cast_(binding) if isinstance(binding, MatchCast) else self.visit_var_binding_(binding)  # type: ignore[arg-type]

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visit a block by the method of its kind."""
        return self.visit_dataflow_block_(block) if isinstance(block, DataflowBlock) else self.visit_binding_block_(block)

    def visit_var_def(self, var: Var) -> Any:
        """Visit a variable where it is defined."""
        return self.visit_dataflow_var_def_(var) if isinstance(var, DataflowVar) else self.visit_var_def_(var)

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        """A value and its variable."""
        raise NotImplementedError

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        """A value that is checked, and its variable."""
        raise NotImplementedError

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        """A block of bindings."""
        raise NotImplementedError

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        """A block of bindings without effects."""
        return self.visit_binding_block_(block)

    def visit_var_def_(self, var: Var) -> Any:
        """A variable that is defined."""
        return var

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        """A variable of a dataflow block that is defined."""
        return self.visit_var_def_(var)

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        """A use of a variable of a dataflow block."""
        return self.visit_var_(op)

    def _default(self, op: Any) -> Any:
        return self.visit_default(op)

    visit_constant_ = visit_tuple_ = visit_var_ = visit_shape_expr_ = visit_extern_func_ = visit_global_var_ = _default
    visit_function_ = visit_call_ = visit_seq_expr_ = visit_if_ = visit_op_ = visit_tuple_getitem_ = _default
    visit_prim_value_ = visit_string_imm_ = visit_data_type_imm_ = _default


class PyExprVisitor(ExprFunctor):
    """Visits all parts of what it is given; a method that is overridden decides whether to go on."""

    def visit_default(self, op: Any) -> Any:
        """Visit the operands, or what a sequence is made of, in order."""
        if isinstance(op, SeqExpr):
            for block in op.blocks:
                self.visit_binding_block(block)
            self.visit_expr(op.body)
        elif isinstance(op, Function):
            for param in op.params:
                self.visit_var_def(param)
            self.visit_expr(op.body)
        else:
            for one in operands(op):
                self.visit_expr(one)

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        """Visit the value, then the variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    visit_match_cast_ = visit_var_binding_  # type: ignore[assignment]

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        """Visit the bindings in order."""
        for binding in block.bindings:
            self.visit_binding(binding)


class PyExprMutator(Rebuilder, ExprFunctor):
    """Rewrites what it is given: a method returns what stands in place of its node.

    Values may nest, and more bindings may be emitted by `self.builder_`, which has the module.

    Args:
        mod: the module, for calls of its functions.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__(mod)

    def visit(self, expr: Any) -> Any:
        """As `visit_expr`; what is no node of graphs stays."""
        return self.visit_expr(expr) if type(expr) in _METHODS else expr

    def visit_default(self, op: Any) -> Any:
        """Rewrite the operands."""
        return self.visit_expr_post_order(op)

    def visit_expr_post_order(self, expr: Any) -> Any:
        """An expression whose operands are rewritten, and are variables or constants."""
        return self._variables.get(expr, expr) if isinstance(expr, Var) else self.builder_.normalize(self._mapped(expr))

    def block(self, block: BindingBlock) -> BindingBlock:
        """As `visit_binding_block`."""
        # Round about, by the methods that a class may override; theirs end at the Mutator's.
        made: BindingBlock = self.visit_binding_block(block)
        return made

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        """Rewrite the bindings in order."""
        return super().block(block)

    def emit_binding(self, binding: Any) -> None:
        """As `visit_binding`."""
        self.visit_binding(binding)

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        """Rewrite the value, and emit it under the variable."""
        super().emit_binding(binding)

    visit_match_cast_ = visit_var_binding_  # type: ignore[assignment]

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable in place of one, of a value of which this is known."""
        new = self.visit_var_def(var)
        if new is var:
            return super().define(var, info)
        self._variables[var] = new
        return new  # type: ignore[no-any-return]

    def lookup_binding(self, var: Var) -> Any:
        """What a variable that was emitted is bound to, or None."""
        return self.builder_.lookup_binding(var)

    def set_var_remap(self, vid: Any, var: Var) -> None:
        """Let a variable stand for another one (its `vid`) from here on."""
        self._variables[vid] = var

    def get_var_remap(self, vid: Any) -> Var:
        """The variable that stands for another one, or that one itself."""
        found: Var = self._variables.get(vid, vid)
        return found

    def visit_with_new_scope(self, expr: Any) -> Any:
        """An expression rewritten, with what is emitted for it in a sequence of its own."""
        outer = self.builder_.begin_scope()
        made = self.builder_.normalize(self.visit_expr(expr))
        blocks = self.builder_.end_scope(outer)
        return SeqExpr(blocks, made) if blocks or not isinstance(made, SeqExpr) else made

    def with_struct_info(self, var: Var, struct_info: StructInfo) -> Var:
        """A variable of the same name of which something else is known."""
        return var if var.struct_info == struct_info else type(var)(var.name_hint, struct_info)


ExprVisitor, ExprMutator = PyExprVisitor, PyExprMutator
_Class = TypeVar("_Class", bound=type)


def visitor(cls: _Class) -> _Class:
    """A decorator for classes of visitors.

    Raises:
        TypeMismatchError: for a class that is none.
    """
    if not issubclass(cls, PyExprVisitor):
        raise TypeMismatchError(f"@visitor stands before a class of relax.PyExprVisitor; {cls.__name__} is none")
    return cls


def mutator(cls: _Class) -> _Class:
    """A decorator for classes of mutators.

    Raises:
        TypeMismatchError: for a class that is none.
    """
    if not issubclass(cls, PyExprMutator):
        raise TypeMismatchError(f"@mutator stands before a class of relax.PyExprMutator; {cls.__name__} is none")
    return cls
