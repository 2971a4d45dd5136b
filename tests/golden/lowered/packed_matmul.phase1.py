# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((9, 40), "float32"), B: T.Buffer((40, 24), "float32"), C: T.Buffer((9, 24), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(2):
            B_global = T.allocate([640], "float32", "global")
            B_global_1 = T.Buffer((640,), data=B_global)
            for ax0 in range(40):
                for ax1_i in T.vectorized(16):
                    B_1 = T.Buffer((960,), data=B.data)
                    B_global_1[ax0 * 16 + ax1_i] = T.if_then_else(T.likely(j_outer * 16 + ax1_i < 24), B_1[ax0 * 24 + j_outer * 16 + ax1_i], T.float32(0.0))
            for i_outer in range(3):
                C_local = T.allocate([64], "float32", "local")
                C_local_1 = T.Buffer((64,), data=C_local, scope="local")
                for i_c_init in T.unroll(4):
                    for j_c_init in T.vectorized(16):
                        if T.likely(i_outer * 4 + i_c_init < 9):
                            C_local_1[i_c_init * 16 + j_c_init] = T.float32(0.0)
                for k in range(40):
                    for i_c in T.unroll(4):
                        for j_c in T.vectorized(16):
                            if T.likely(i_outer * 4 + i_c < 9):
                                A_1 = T.Buffer((360,), data=A.data)
                                C_local_1[i_c * 16 + j_c] = C_local_1[i_c * 16 + j_c] + A_1[i_outer * 160 + i_c * 40 + k] * B_global_1[k * 16 + j_c]
                for i_inner in range(4):
                    for j_inner in T.vectorized(16):
                        if T.likely(i_outer * 4 + i_inner < 9) and T.likely(j_outer * 16 + j_inner < 24):
                            C_1 = T.Buffer((216,), data=C.data)
                            C_1[i_outer * 96 + i_inner * 24 + j_outer * 16 + j_inner] = C_local_1[i_inner * 16 + j_inner]
