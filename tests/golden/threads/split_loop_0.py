# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        B = T.allocate([16], "float32", "global")
        B_1 = T.Buffer((16,), data=B)
        A_1 = T.Buffer((48,), data=A.data)
        for j in range(8):
            B_1[j] = A_1[j] + T.float32(1.0)
        for i in range(6):
            if i + 1 < 6:
                for j in range(8):
                    B_1[j + (i + 1) % 2 * 8] = A_1[(i + 1) * 8 + j] + T.float32(1.0)
            for j in range(8):
                C_1 = T.Buffer((48,), data=C.data)
                C_1[i * 8 + j] = B_1[j + i % 2 * 8] * T.float32(2.0)
