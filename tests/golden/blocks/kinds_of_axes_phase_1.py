# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(C: T.Buffer((4, 4), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        for i, j in T.grid(4, 4):
            C_1 = T.Buffer((16,), data=C.data)
            C_1[i * 4 + j] = T.Cast("float32", j + 2)
