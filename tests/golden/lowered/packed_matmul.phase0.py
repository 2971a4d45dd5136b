# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((9, 40), "float32"), B: T.Buffer((40, 24), "float32"), C: T.Buffer((9, 24), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(2):
            B_global = T.Buffer((2, 40, 16))
            T.realize(B_global[j_outer:j_outer + 1, 0:40, 0:16])
            for ax0 in range(40):
                for ax1_i in T.vectorized(16):
                    B_global[j_outer, ax0, ax1_i] = T.if_then_else(T.likely(j_outer * 16 + ax1_i < 24), B[ax0, j_outer * 16 + ax1_i], T.float32(0.0))
            for i_outer in range(3):
                C_local = T.Buffer((9, 24), scope="local")
                T.realize(C_local[i_outer * 4:i_outer * 4 + 4, j_outer * 16:j_outer * 16 + 16])
                for i_c_init in T.unroll(4):
                    for j_c_init in T.vectorized(16):
                        if T.likely(i_outer * 4 + i_c_init < 9):
                            C_local[i_outer * 4 + i_c_init, j_outer * 16 + j_c_init] = T.float32(0.0)
                for k in range(40):
                    for i_c in T.unroll(4):
                        for j_c in T.vectorized(16):
                            if T.likely(i_outer * 4 + i_c < 9):
                                C_local[i_outer * 4 + i_c, j_outer * 16 + j_c] = C_local[i_outer * 4 + i_c, j_outer * 16 + j_c] + A[i_outer * 4 + i_c, k] * B_global[(j_outer * 16 + j_c) // 16, k, (j_outer * 16 + j_c) % 16]
                for i_inner in range(4):
                    for j_inner in T.vectorized(16):
                        if T.likely(i_outer * 4 + i_inner < 9) and T.likely(j_outer * 16 + j_inner < 24):
                            C[i_outer * 4 + i_inner, j_outer * 16 + j_inner] = C_local[i_outer * 4 + i_inner, j_outer * 16 + j_inner]
