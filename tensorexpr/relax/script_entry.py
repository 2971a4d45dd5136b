"""The words of R that are types, by the names of the classes that TVM has for them: a bare `R.Tensor` is its `TensorProxy`."""

from .script_words import RELAX, TypeWord

StructInfoProxy = TypeWord
Callable = CallableProxy = RELAX.Callable
Object = ObjectProxy = RELAX.Object
Prim = PrimProxy = RELAX.Prim
Shape = ShapeProxy = RELAX.Shape
Tensor = TensorProxy = RELAX.Tensor
Tuple = TupleProxy = RELAX.Tuple
match_cast = RELAX.match_cast

__all__ = [
    "Callable", "CallableProxy", "Object", "ObjectProxy", "Prim", "PrimProxy", "Shape", "ShapeProxy", "StructInfoProxy", "Tensor",
    "TensorProxy", "Tuple", "TupleProxy", "match_cast",
]  # fmt: skip
