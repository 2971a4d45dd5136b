# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((12,), "float32"), out: T.Buffer((8,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        B = T.allocate([8], "float32", "register")
        B_1 = T.Buffer((8,), data=B, scope="register")
        B_1[0] = A[2] + T.float32(1.0)
        B_1[1] = A[3] + T.float32(1.0)
        B_1[2] = A[4] + T.float32(1.0)
        B_1[3] = A[5] + T.float32(1.0)
        B_1[4] = A[6] + T.float32(1.0)
        B_1[5] = A[7] + T.float32(1.0)
        B_1[6] = A[8] + T.float32(1.0)
        B_1[7] = A[9] + T.float32(1.0)
        out[0] = B_1[0] * T.float32(2.0)
        out[2] = B_1[2] * T.float32(2.0)
        out[4] = B_1[4] * T.float32(2.0)
        out[6] = B_1[6] * T.float32(2.0)
