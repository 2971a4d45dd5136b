# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12,), "float32"), out: T.Buffer((8,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        B = T.allocate([12], "float32", "global")
        B_1 = T.Buffer((12,), data=B)
        for i in range(12):
            if i >= 2 and i < 10:
                B_1[i] = A[i] + T.float32(1.0)
        for i in range(8):
            if i % 2 == 0:
                out[i] = B_1[i + 2] * T.float32(2.0)
