"""Lists, options and trees, with what functional programs do with them: `p = relay.prelude.Prelude(mod)`, then `p.map(f, xs)`.

The names are those of TVM's library; the functions are read from the text below, in Relay's syntax, and are functions of the module.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..tir.function import GlobalVar, IRModule
from .parser import parse

_LIBRARY = {
    "prelude.rly": """
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
type Tree[A] { Rose(A, List[Tree[A]]) }

def @id[A](%x: A) -> A { %x }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C { fn (%x: A) -> C { %f(%g(%x)) } }
def @flip[A, B, C](%f: fn (A, B) -> C) -> fn (B, A) -> C { fn (%b: B, %a: A) -> C { %f(%a, %b) } }
def @iterate[A](%f: fn (A) -> A, %times: int32) -> fn (A) -> A {
  if (%times == 0) { @id } else { @compose(%f, @iterate(%f, %times - 1)) }
}

def @hd[A](%xs: List[A]) -> A { match? (%xs) { Cons(%x, _) => %x } }
def @tl[A](%xs: List[A]) -> List[A] { match? (%xs) { Cons(_, %rest) => %rest } }
def @nth[A](%xs: List[A], %n: int32) -> A { if (%n == 0) { @hd(%xs) } else { @nth(@tl(%xs), %n - 1) } }
def @update[A](%xs: List[A], %n: int32, %value: A) -> List[A] {
  if (%n == 0) { Cons(%value, @tl(%xs)) } else { Cons(@hd(%xs), @update(@tl(%xs), %n - 1, %value)) }
}
def @length[A](%xs: List[A]) -> int32 { match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 } }
def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil }
}
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) { Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest), Nil => %acc }
}
def @foldr[A, B](%f: fn (A, B) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => %f(%x, @foldr(%f, %acc, %rest)), Nil => %acc }
}
def @foldr1[A](%f: fn (A, A) -> A, %xs: List[A]) -> A {
  match? (%xs) { Cons(%x, Nil) => %x, Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest)) }
}
def @sum(%xs: List[int32]) -> int32 { @foldl(fn (%a: int32, %b: int32) -> int32 { %a + %b }, 0, %xs) }
def @concat[A](%xs: List[A], %ys: List[A]) -> List[A] {
  match (%xs) { Cons(%x, %rest) => Cons(%x, @concat(%rest, %ys)), Nil => %ys }
}
def @filter[A](%f: fn (A) -> bool, %xs: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => { if (%f(%x)) { Cons(%x, @filter(%f, %rest)) } else { @filter(%f, %rest) } },
    Nil => Nil,
  }
}
def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match ((%xs, %ys)) { (Cons(%x, %more), Cons(%y, %rest)) => Cons((%x, %y), @zip(%more, %rest)), _ => Nil }
}
def @rev[A](%xs: List[A]) -> List[A] { @foldl(fn (%made: List[A], %x: A) -> List[A] { Cons(%x, %made) }, Nil, %xs) }
def @map_accuml[A, B, C](%f: fn (A, B) -> (A, C), %acc: A, %xs: List[B]) -> (A, List[C]) {
  @foldl(fn (%so_far: (A, List[C]), %x: B) -> (A, List[C]) {
    let %one = %f(%so_far.0, %x);
    (%one.0, Cons(%one.1, %so_far.1))
  }, (%acc, Nil), %xs)
}
def @map_accumr[A, B, C](%f: fn (A, B) -> (A, C), %acc: A, %xs: List[B]) -> (A, List[C]) {
  match (%xs) {
    Cons(%x, %rest) => {
      let %others = @map_accumr(%f, %acc, %rest);
      let %one = %f(%others.0, %x);
      (%one.0, Cons(%one.1, %others.1))
    },
    Nil => (%acc, Nil),
  }
}
def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) { Some((%next, %x)) => Cons(%x, @unfoldr(%f, %next)), None => Nil }
}
def @unfoldl[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] { @rev(@unfoldr(%f, %seed)) }
def @tmap[A, B](%f: fn (A) -> B, %tree: Tree[A]) -> Tree[B] {
  match (%tree) {
    Rose(%x, %below) => Rose(%f(%x), @map(fn (%one: Tree[A]) -> Tree[B] { @tmap(%f, %one) }, %below))
  }
}
def @size[A](%tree: Tree[A]) -> int32 {
  match (%tree) { Rose(_, %below) => 1 + @sum(@map(fn (%one: Tree[A]) -> int32 { @size(%one) }, %below)) }
}
""",
    "core.rly": "",
    "nat.rly": """
type nat { Z, S(nat) }

def @nat_double(%n: nat) -> nat { match (%n) { Z => Z, S(%less) => S(S(@nat_double(%less))) } }
def @nat_add(%a: nat, %b: nat) -> nat { match (%a) { Z => %b, S(%less) => S(@nat_add(%less, %b)) } }
def @nat_iterate[A](%f: fn (A) -> A, %times: nat) -> fn (A) -> A {
  match (%times) {
    Z => fn (%x: A) -> A { %x },
    S(%less) => { let %others = @nat_iterate(%f, %less); fn (%x: A) -> A { %f(%others(%x)) } },
  }
}
""",
}


def add_library(mod: IRModule, name: str) -> None:
    """Add a file of the library to a module, in place.

    Raises:
        ArgumentError: for a file that there isn't.
    """
    if name not in _LIBRARY:
        raise ArgumentError(
            f"no library file {name!r}; there are {', '.join(_LIBRARY)}. References (gradient.rly) aren't there: "
            "relay.transform.gradient makes derivatives without them"
        )
    made = parse(_LIBRARY[name], name)
    known = {var.name_hint for var in mod.get_global_type_vars()}
    if not {var.name_hint for var in made.get_global_type_vars()} <= known:
        mod.update(made)


class Prelude:
    """The library of a module: its types and functions by name: `p.map`, `p.mod.get_type("List")`.

    Args:
        mod: the module, to which the library is added; an empty one if None.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        add_library(self.mod, "prelude.rly")

    def __getattr__(self, name: str) -> GlobalVar:
        if name.startswith("_") or name not in self.__dict__.get("mod", ()):
            raise AttributeError(
                f"the library has no function {name!r}; it has {', '.join(v.name_hint for v in self.mod.get_global_vars())}"
            )
        return GlobalVar(name)

    def get_type(self, name: str) -> list[Any]:
        """The name of a type, then its constructors."""
        return self.mod.get_type(name)

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Any:
        """Refused: `get_tensor_array` says why."""
        raise self._no_arrays(ty_name)

    def get_tensor_ctor(self, name: str, dtype: str) -> Any:
        """Refused: `get_tensor_array` says why."""
        raise self._no_arrays(name)

    @staticmethod
    def _no_arrays(name: str) -> ArgumentError:
        return ArgumentError(f"{name}: tensor arrays aren't there; a List of tensors, or relax's sequences, hold tensors of any shapes")


class StaticTensorArrayOps:
    """Refused: tensor arrays are what importers of TensorFlow made; lists of tensors take their place."""

    def __init__(self, prelude: Prelude, dtype: str, shape: Any, batch_dim: Any = None) -> None:
        raise Prelude._no_arrays("StaticTensorArrayOps")


__all__ = ["Prelude", "StaticTensorArrayOps", "add_library"]
