"""Relay's text read back: `relay.fromtext(mod.astext())`. The grammar is that of `text`; besides, as people write it:

    %a + %b * 2f        Python's operators, with its precedence
    { let %v = ...; %v }    a block where a value stands
    // ..., /* ... */, #[version = "0.0.5"]      passed over

A number that names a value (`%0 = ...;`) is that value wherever it is used, and isn't computed twice.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..ir.base import load_json
from ..lower.passes import deep_recursion
from ..relax import expr as graph
from ..relax.struct_info import ShapeExpr
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData
from .expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var, const, placed
from .ops.row import ROWS
from .references import REFERENCES, RefWrite
from .text import attribute_defaults
from .tokens import Token, Tokens
from .type_names import GlobalTypeVar

_METADATA = re.compile(r"^#\[metadata\]\s*$", re.MULTILINE)
# Binary signs from the weakest up, with their operators.
_LEVELS = (
    {"==": "equal", "!=": "not_equal"},
    {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    {"+": "add", "-": "subtract"},
    {"*": "multiply", "/": "divide"},
)
_WORDS = {"True": True, "False": False, "None": None}


@dataclass(slots=True)
class _Reader(Tokens):
    """Reads one text; `constants` is what `meta[relay.Constant][n]` is."""

    constants: list[Any] = field(default_factory=list)
    scopes: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    globals: dict[str, GlobalVar] = field(default_factory=dict)
    constructors: dict[str, Constructor] = field(default_factory=dict)

    def module(self, around: IRModule) -> IRModule:
        """All functions and types; those of the module around are known."""
        made: dict[Any, Any] = {}
        for definition in around.type_definitions.values():
            self.type_names[definition.header.name_hint] = definition.header
            self.constructors |= {one.name_hint: one for one in definition.constructors}
        types: dict[Any, TypeData] = {}
        while self.next().kind != "end":
            if self.next().text in ("type", "extern"):
                definition = self.definition()
                types[definition.header] = definition
                continue
            begin = self.at
            self.need("def")
            name = self.taken("global").removeprefix("@")
            if name in {var.name_hint for var in made}:
                self.fail(f"@{name} is defined twice")
            made[self.global_var(name)] = self.placed(self.function(), begin)
        return IRModule(made, type_definitions=types)

    def definition(self) -> TypeData:
        """`type List[A] { Cons(A, List[A]), Nil }`; of an extern type nothing is behind its parameters."""
        is_extern = self.take("extern")
        self.need("type")
        name = self.taken("name")
        if name in self.type_names:
            self.fail(f"type {name} is defined twice")
        header = self.type_names[name] = GlobalTypeVar(name)
        around = dict(self.type_names)
        own = self.type_params()
        made: list[Constructor] = []

        def constructor() -> None:
            one = self.taken("name")
            if one in self.constructors:
                self.fail(f"constructor {one} is defined twice")
            made.append(Constructor(one, self.listed(")", self.type)[0] if self.take("(") else (), header))
            self.constructors[one] = made[-1]

        if not is_extern:
            self.need("{")
            self.listed("}", constructor)
        self.type_names = around
        return TypeData(header, own, tuple(made))

    def global_var(self, name: str) -> GlobalVar:
        """The variable of a function, one for each name."""
        return self.globals.setdefault(name, GlobalVar(name))

    def function(self) -> Function:
        """Behind `fn` or the name: type parameters, parameters, attributes, type and body."""
        around = dict(self.type_names)
        types = self.type_params()
        self.need("(")
        self.scopes.append({})
        params: list[Var] = []
        attrs: dict[str, Any] = {}

        def parameter() -> None:
            if self.next().kind == "name":
                key = self.taken("name")
                self.need("=")
                attrs[key] = self.attribute()
            else:
                params.append(self.variable())

        self.listed(")", parameter)
        ret = self.type() if self.take("->") else None
        body = self.block()
        self.scopes.pop()
        self.type_names = around
        return Function(tuple(params), body, ret, types, attrs)  # type: ignore[arg-type]

    def variable(self) -> Var:
        """A variable with its type, which the rest of the block knows."""
        begin, name = self.at, self.taken("local")
        made: Var = self.placed(Var(name.removeprefix("%"), self.type() if self.take(":") else None), begin)
        self.scopes[-1][name] = made
        return made

    def block(self) -> Any:
        """`{ bindings; value }`."""
        self.need("{")
        self.scopes.append({})
        made = self.sequence()
        self.need("}")
        self.scopes.pop()
        return made

    def sequence(self) -> Any:
        """Bindings, each closed by `;`, and the value behind them."""
        lets: list[tuple[Var, Any]] = []
        while True:
            token, following = self.next(), self.tokens[min(self.at + 1, len(self.tokens) - 1)]
            if self.take("let"):
                made = self.variable()  # known in its own value: a function may call itself
                self.need("=")
                lets.append((made, self.value()))
            elif self.take("free_var"):
                self.variable()
            elif token.kind == "local" and following.text == "=":
                self.at += 2
                self.scopes[-1][token.text] = self.value()
            else:
                break
            self.need(";")
        found = self.value()
        while self.take(";"):  # a value that nobody uses
            lets.append((Var("_"), found))
            found = self.sequence()
        for var, value in reversed(lets):
            found = Let(var, value, found)
        return found

    def value(self, level: int = 0) -> Any:
        """An expression of signs at least as strong as those of a level."""
        if level == len(_LEVELS):
            return self.selected()
        begin = self.at
        found = self.value(level + 1)
        while self.next().kind == "sign" and self.next().text in _LEVELS[level]:
            name = _LEVELS[level][self.next().text]
            self.at += 1
            found = self.placed(Call(Op.of(name), (found, self.value(level + 1))), begin)
        return found

    def placed(self, node: Any, begin: int) -> Any:
        """A node that stands from a token on to the last one; what has a name stands where it was made."""
        return placed(node, self.span(begin)) if isinstance(node, Expr) and node.span is None else node

    def selected(self) -> Any:
        """An operand, with what follows it: calls and elements of tuples."""
        begin = self.at
        found = self.placed(self.operand(), begin)
        while True:
            if self.take("("):
                found = self.placed(self.call(found), begin)
            elif self.take("."):
                found = self.placed(TupleGetItem(found, self.integer()), begin)
            elif isinstance(found, Op):
                self.fail(f"operator {found} is not called")
            else:
                return found

    def operand(self) -> Any:
        token = self.next()
        self.at += 1
        match token.kind:
            case "local":
                return self.local(token.text)
            case "global":
                return self.global_var(token.text.removeprefix("@"))
            case "number":
                return self.constant(token.text)
            case "string":
                return graph.StringImm(_unquoted(token.text))
            case "name":
                return self.word(token)
        self.at -= 1
        if self.take("("):
            if self.next().text == "let":
                found = self.sequence()
                self.need(")")
                return found
            fields, comma = self.listed(")", self.value)
            return fields[0] if len(fields) == 1 and not comma else Tuple(fields)
        if self.take("["):
            return ShapeExpr(tuple(self.listed("]", self.extent)[0]))
        if token.text == "{":
            return self.block()
        self.fail(f"expected a value, not {token.text!r}")

    def local(self, name: str) -> Any:
        """The value of a variable or number."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        self.at -= 1
        self.fail(f"{name} isn't bound here")

    def word(self, token: Token) -> Any:
        """What begins with a word."""
        match token.text:
            case "fn":
                return self.function()
            case "if":
                self.need("(")
                condition = self.value()
                self.need(")")
                yes = self.block()
                self.need("else")
                return If(condition, yes, self.block())
            case "match":
                return self.match()
            case "ref" | "ref_read" | "ref_write":
                self.need("(")
                operands = self.listed(")", self.value)[0]
                kind = REFERENCES[token.text]
                if len(operands) != (2 if kind is RefWrite else 1):
                    self.fail(f"{token.text} doesn't take {len(operands)} values")
                return kind(*operands)
            case "True" | "False":
                return const(token.text == "True")
            case "prim_value" | "dtype":  # arguments of the operators of graphs
                self.need("(")
                made: Any
                if token.text == "dtype":
                    made = graph.DataTypeImm(_unquoted(self.taken("string")))
                else:
                    made = graph.PrimValue(self.attribute() if self.next().kind != "name" else self.extent())
                self.need(")")
                return made
            case "meta":
                return self.metadata()
        if token.text in self.constructors:
            made = self.constructors[token.text]
            return made() if not made.inputs and self.next().text != "(" else made
        if token.text not in ROWS and not token.text.startswith("relax."):
            self.at -= 1
            self.fail(f"no operator {token.text!r}; relay.op.list_op_names() lists those that there are")
        return Op.of(token.text)

    def match(self) -> Match:
        """Behind `match`: the value and its clauses."""
        complete = not self.take("?")
        self.need("(")
        data = self.value()
        self.need(")")
        self.need("{")
        return Match(data, tuple(self.listed("}", self.clause)[0]), complete)

    def clause(self) -> Clause:
        """`Cons(%h, _) => value`, maybe behind bindings, which need no braces here."""
        self.scopes.append({})
        pattern = self.pattern()
        self.need("=")
        self.need(">")
        made = Clause(pattern, self.sequence())
        self.scopes.pop()
        return made

    def pattern(self) -> Any:
        """A pattern, whose variables the rest of the clause knows."""
        if self.next().kind == "local":
            return PatternVar(self.variable())
        if self.take("("):
            return PatternTuple(tuple(self.listed(")", self.pattern)[0]))
        if self.take("_"):
            return PatternWildcard()
        begin, name = self.at, self.taken("name")
        if name not in self.constructors:
            self.at = begin
            self.fail(f"no constructor {name!r}; there are {', '.join(self.constructors) or 'none'}")
        return PatternConstructor(self.constructors[name], tuple(self.listed(")", self.pattern)[0]) if self.take("(") else ())

    def metadata(self) -> Any:
        """`meta[relay.Constant][n]`: one node, however often it is mentioned."""
        self.need("[")
        kind = self.taken("name")
        self.need("]")
        self.need("[")
        place = self.integer()
        self.need("]")
        if kind != "relay.Constant" or not 0 <= place < len(self.constants):
            self.at -= 1
            self.fail(f"meta[{kind}][{place}] isn't there: write programs with astext(show_meta_data=True), or give init_meta_table")
        return self.constants[place]

    def constant(self, text: str) -> Constant:
        """A number as a tensor without axes."""
        value, kind = self.number(text)
        return const(np.asarray(value), kind)

    def call(self, callee: Any) -> Any:
        """Behind the parenthesis of a call: arguments, then attributes by name."""
        args: list[Any] = []
        attrs: dict[str, Any] = {}

        def item() -> None:
            following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
            if self.next().kind == "name" and following.text == "=":
                key = self.taken("name")
                self.at += 1
                attrs[key] = self.attribute()
            else:
                args.append(self.value())

        begin = self.at
        self.listed(")", item)
        if not isinstance(callee, Op):
            return Call(callee, args, attrs)
        if callee not in ROWS:
            return graph.Call(callee, args, attrs)
        known = attribute_defaults(callee)
        unknown = [key for key in attrs if key not in known]
        if unknown:
            self.at = begin
            self.fail(f"{callee} has no attribute {unknown[0]!r}; there are {', '.join(known) or 'none'}")
        given = {key: attrs.get(key, default) for key, default in known.items()}
        return Call(callee, args, {key: None if value is inspect.Parameter.empty else value for key, value in given.items()})

    def attribute(self) -> Any:
        """The value of an attribute."""
        token = self.next()
        self.at += 1
        match token.kind:
            case "string":
                return _unquoted(token.text)
            case "number":
                # Attributes have no dtypes: one without a suffix may be longer than an int32.
                return int(token.text) if re.fullmatch(r"-?\d+", token.text) else self.number(token.text)[0]
            case "name" if token.text in _WORDS:
                return _WORDS[token.text]
        self.at -= 1
        if self.take("["):
            return tuple(self.listed("]", self.attribute)[0])
        if self.take("{"):
            return dict(self.listed("}", self.entry)[0])
        self.fail(f"expected the value of an attribute, not {token.text!r}")

    def entry(self) -> tuple[str, Any]:
        """`"key"=value`."""
        key = _unquoted(self.taken("string"))
        self.need("=")
        return key, self.attribute()


def _unquoted(text: str) -> str:
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), text[1:-1], flags=re.DOTALL)


def _reader(text: str, source_name: str, meta_table: Mapping[str, Any] | None) -> _Reader:
    program, *rest = _METADATA.split(text, maxsplit=1)
    table: Any = meta_table or (load_json(rest[0]) if rest else {})
    constants = [Constant(getattr(one, "data", one)) for one in table.get("relay.Constant", ())]
    return _Reader(program, source_name, constants=constants)


def parse_expr(source: str, source_name: str = "from_string") -> Any:
    """An expression or function that was written by itself.

    Raises:
        DeclarationError: where the text is no expression, with the line.
    """
    reader = _reader(source, source_name, None)
    with deep_recursion:
        made = reader.sequence()
    if reader.next().kind != "end":
        reader.fail(f"expected the end, not {reader.next().text!r}")
    return made


def parse(
    source: str, source_name: str = "from_string", init_module: IRModule | None = None, init_meta_table: Mapping[str, Any] | None = None
) -> IRModule:
    """A module in Relay's text.

    Args:
        source: the text, of `mod.astext()` or written by hand.
        source_name: how errors call it.
        init_module: a module whose functions are in the result, too.
        init_meta_table: {"relay.Constant": arrays}, for a text without its metadata.

    Raises:
        DeclarationError: where the text is no program, with the line.
    """
    reader = _reader(source, source_name, init_meta_table)
    with deep_recursion:
        made = reader.module(init_module or IRModule())
    if init_module is None:
        return made
    whole = init_module.clone()
    whole.update(made)
    return whole


def fromtext(source: str, source_name: str = "from_string") -> Any:
    """A module; of a text that is a function or an expression by itself, that one."""
    reader = _reader(source, source_name, None)
    return parse(source, source_name) if reader.next().text in ("def", "type", "extern", "the end") else parse_expr(source, source_name)
