# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((20,), "float32"), D: T.Buffer((18,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in range(5):
            B = T.allocate([6], "float32", "register")
            B_1 = T.Buffer((6,), data=B, scope="register")
            B_1[0] = A[i_outer * 4] + T.float32(1.0)
            B_1[1] = A[i_outer * 4 + 1] + T.float32(1.0)
            B_1[2] = A[i_outer * 4 + 2] + T.float32(1.0)
            B_1[3] = A[i_outer * 4 + 3] + T.float32(1.0)
            if T.likely(i_outer * 4 + 4 < 20):
                B_1[4] = A[i_outer * 4 + 4] + T.float32(1.0)
            if T.likely(i_outer * 4 + 5 < 20):
                B_1[5] = A[i_outer * 4 + 5] + T.float32(1.0)
            C = T.allocate([4], "float32", "register")
            C_1 = T.Buffer((4,), data=C, scope="register")
            C_1[0] = B_1[0] * T.float32(2.0)
            C_1[1] = B_1[1] * T.float32(2.0)
            C_1[2] = B_1[2] * T.float32(2.0)
            C_1[3] = B_1[3] * T.float32(2.0)
            D[i_outer * 4] = C_1[0] - B_1[2]
            D[i_outer * 4 + 1] = C_1[1] - B_1[3]
            if T.likely(i_outer * 4 + 2 < 18):
                D[i_outer * 4 + 2] = C_1[2] - B_1[4]
            if T.likely(i_outer * 4 + 3 < 18):
                D[i_outer * 4 + 3] = C_1[3] - B_1[5]
