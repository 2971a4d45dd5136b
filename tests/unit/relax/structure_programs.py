# mypy: ignore-errors
# ruff: noqa: F841  (what nothing uses is what passes look for)
# Functions under @R.function are read and never run: their annotations are no types of Python's.
"""Graphs before and after passes that change how functions are put together."""

from __future__ import annotations

from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T


@I.ir_module
class Nest:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = x
        with R.dataflow():
            a = R.add(y, y)
            t = (a, x)
            b = t[0]
            c = R.match_cast(b, R.Tensor((4,), "float32"))
            k = R.const(2.0, "float32")
            d = R.add(c, k)
            e = d
            u = R.exp(x)
            gv = e
            gv2 = u
            R.output(gv, gv2)
        z = R.negative(gv)
        return z


@I.ir_module
class Cse:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.add(x, y)
            c = R.multiply(a, b)
            t1 = (a, b)
            t2 = (b, a)
            s = R.reshape(x, R.shape([2, 2]))
            s2 = R.reshape(x, R.shape([2, 2]))
            d = R.add(R.const(1.0, "float32"), x)
            e = R.add(R.const(1.0, "float32"), x)
            gv = R.add(c, R.add(d, e))
            gv1 = R.add(x, y)
            R.output(gv, gv1)
        r = R.add(gv, gv1)
        return r


@I.ir_module
class Plain:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.add(x, x)
        b = R.exp(a)
        _ = R.print(b, format="{}")
        c = R.exp(b)
        return c


@I.ir_module
class Private:
    @R.function(private=True)
    def sub(
        x: R.Tensor((4,), "float32"), t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")), unused: R.Tensor((2,), "float32")
    ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, t[0])
            gv = R.exp(a)
            R.output(gv)
        return (gv, gv)

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Private
        with R.dataflow():
            r = cls.sub(x, (x, x), w)
            q = r[0]
            p = R.negative(q)
            R.output(p)
        return p


@I.ir_module
class Bundle:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            q = R.add(x, w)
            p = R.negative(q)
            o = R.exp(b)
            f = R.add(p, o)
            R.output(f)
        return f


@I.ir_module
class Closures:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        @R.function
        def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.add(a, y)

        @R.function
        def plain(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.add(a, a)

        z = inner(x)
        w = plain(z)
        return w


@I.ir_module
class Canonical:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a: R.Tensor((4,), "float32") = R.add(x, x)
            t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = (a, x)
            gv: R.Tensor((4,), "float32") = R.add(a, R.const(2.0, "float32"))
            u: R.Tensor((4,), "float32") = R.exp(x)
            R.output(gv)
        z: R.Tensor((4,), "float32") = R.negative(gv)
        return z


@I.ir_module
class Nondataflow:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y: R.Tensor((4,), "float32") = x
        a: R.Tensor((4,), "float32") = R.add(y, y)
        t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = (a, x)
        b: R.Tensor((4,), "float32") = t[0]
        c: R.Tensor((4,), "float32") = R.match_cast(b, R.Tensor((4,), "float32"))
        k: R.Tensor((), "float32") = R.const(2.0, "float32")
        d: R.Tensor((4,), "float32") = R.add(c, k)
        e: R.Tensor((4,), "float32") = d
        u: R.Tensor((4,), "float32") = R.exp(x)
        gv: R.Tensor((4,), "float32") = e
        gv2: R.Tensor((4,), "float32") = u
        z: R.Tensor((4,), "float32") = R.negative(gv)
        return z


@I.ir_module
class Common:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a: R.Tensor((4,), "float32") = R.add(x, y)
            b: R.Tensor((4,), "float32") = a
            c: R.Tensor((4,), "float32") = R.multiply(a, a)
            t1: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = (a, a)
            t2: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = t1
            s: R.Tensor((2, 2), "float32") = R.reshape(x, R.shape([2, 2]))
            s2: R.Tensor((2, 2), "float32") = s
            d: R.Tensor((4,), "float32") = R.add(R.const(1.0, "float32"), x)
            e: R.Tensor((4,), "float32") = d
            lv: R.Tensor((4,), "float32") = R.add(d, d)
            gv: R.Tensor((4,), "float32") = R.add(c, lv)
            gv1: R.Tensor((4,), "float32") = a
            R.output(gv, gv1)
        r: R.Tensor((4,), "float32") = R.add(gv, gv1)
        return r


@I.ir_module
class Dataflow:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a: R.Tensor((4,), "float32") = R.add(x, x)
            b: R.Tensor((4,), "float32") = R.exp(a)
            R.output(b)
        _: R.Tuple = R.print(b, format=R.str("{}"))
        with R.dataflow():
            c: R.Tensor((4,), "float32") = R.exp(b)
            R.output(c)
        return c


@I.ir_module
class Inlined:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a: R.Tensor((4,), "float32") = R.add(x, x)
            gv: R.Tensor((4,), "float32") = R.exp(a)
            p: R.Tensor((4,), "float32") = R.negative(gv)
            R.output(p)
        return p


@I.ir_module
class Expanded:
    @R.function(private=True)
    def sub(
        x: R.Tensor((4,), "float32"), t_0: R.Tensor((4,), "float32"), t_1: R.Tensor((4,), "float32"), unused: R.Tensor((2,), "float32")
    ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        with R.dataflow():
            a: R.Tensor((4,), "float32") = R.add(x, t_0)
            gv: R.Tensor((4,), "float32") = R.exp(a)
            R.output(gv)
        return (gv, gv)

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Expanded
        with R.dataflow():
            r: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = cls.sub(x, x, x, w)
            q: R.Tensor((4,), "float32") = r[0]
            p: R.Tensor((4,), "float32") = R.negative(q)
            R.output(p)
        return p


@I.ir_module
class FewerParameters:
    @R.function(private=True)
    def sub(x: R.Tensor((4,), "float32"), t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tuple(
        R.Tensor((4,), "float32"), R.Tensor((4,), "float32")
    ):
        with R.dataflow():
            lv: R.Tensor((4,), "float32") = t[0]
            a: R.Tensor((4,), "float32") = R.add(x, lv)
            gv: R.Tensor((4,), "float32") = R.exp(a)
            R.output(gv)
        return (gv, gv)

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((4,), "float32"):
        cls = FewerParameters
        with R.dataflow():
            r: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")) = cls.sub(x, (x, x))
            q: R.Tensor((4,), "float32") = r[0]
            p: R.Tensor((4,), "float32") = R.negative(q)
            R.output(p)
        return p


@I.ir_module
class FewerOutputs:
    @R.function(private=True)
    def sub(
        x: R.Tensor((4,), "float32"), t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")), unused: R.Tensor((2,), "float32")
    ) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            lv: R.Tensor((4,), "float32") = t[0]
            a: R.Tensor((4,), "float32") = R.add(x, lv)
            gv: R.Tensor((4,), "float32") = R.exp(a)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((4,), "float32"):
        cls = FewerOutputs
        with R.dataflow():
            lv: R.Tensor((4,), "float32") = cls.sub(x, (x, x), w)
            p: R.Tensor((4,), "float32") = R.negative(lv)
            R.output(p)
        return p


@I.ir_module
class Sorted:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            q: R.Tensor((4,), "float32") = R.add(x, w)
            o: R.Tensor((4,), "float32") = R.exp(b)
            p: R.Tensor((4,), "float32") = R.negative(q)
            f: R.Tensor((4,), "float32") = R.add(p, o)
            R.output(f)
        return f


@I.ir_module
class Bundled:
    @R.function
    def main(x: R.Tensor((4,), "float32"), model_params: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor(
        (4,), "float32"
    ):
        R.func_attr({"num_input": 1})
        w: R.Tensor((4,), "float32") = model_params[0]
        b: R.Tensor((4,), "float32") = model_params[1]
        with R.dataflow():
            q: R.Tensor((4,), "float32") = R.add(x, w)
            p: R.Tensor((4,), "float32") = R.negative(q)
            o: R.Tensor((4,), "float32") = R.exp(b)
            f: R.Tensor((4,), "float32") = R.add(p, o)
            R.output(f)
        return f


@I.ir_module
class Lifted:
    @R.function(private=True)
    def main_inner(a: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        gv: R.Tensor((4,), "float32") = R.add(a, y)
        return gv

    @R.function(private=True)
    def main_plain(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        gv1: R.Tensor((4,), "float32") = R.add(a, a)
        return gv1

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Lifted
        z: R.Tensor((4,), "float32") = cls.main_inner(x, y)
        w: R.Tensor((4,), "float32") = cls.main_plain(z)
        return w


@I.ir_module
class Numbers:
    @R.function
    def main(x: R.Tensor((4, "n"), "float32"), a: R.Prim("float32"), i: R.Prim("int64")):
        n = T.int64()
        row = R.take(x, i, axis=0)
        twice = R.add(a, a)
        return (R.multiply(R.maximum(x, a), twice), row, R.zeros((n, 2), "float32"))


@I.ir_module
class Groups:
    @T.prim_func(private=True)
    def scaled(x: T.Buffer((4,), "float32"), c: T.Buffer((), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("y"):
                vi = T.axis.spatial(4, i)
                y[vi] = x[vi] * c[()]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Groups
        with R.dataflow():
            a = R.call_tir(cls.scaled, (x, R.const(2.0, "float32")), R.Tensor((4,), "float32"))
            b = R.call_tir(cls.scaled, (a, R.const(3.0, "float32")), R.Tensor((4,), "float32"))
            R.output(b)
        return b


@I.ir_module
class Casts:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("k",), "float32")):
        n, a, b = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            z = R.match_cast(x, R.Tensor((a, b), "float32"))
            w = R.match_cast(y, R.Tensor((n,), "float32"))
            s = R.const(2.0, "float32")
            c = R.const(3.0, "float32")
            out = R.add(R.multiply(R.reshape(z, (a * b,)), s), R.sum(w))
            R.output(out, c)
        return (out, c)
