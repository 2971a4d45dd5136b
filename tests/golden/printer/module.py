# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    I.module_attrs({"version": 3})
    @T.prim_func
    def alias(A: T.Buffer((), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
        A[()] = A[()] + T.float32(1.0)

    @T.prim_func(private=True)
    def second(A: T.Buffer((), "float32")):
        T.func_attr({"note": [1, {"b": 2.5}]})
        T.evaluate(0)

    @T.prim_func
    def main(A: T.Buffer((), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        A[()] = A[()] + T.float32(1.0)
