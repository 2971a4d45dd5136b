# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((11, 5), "float32"), B: T.Buffer((5, 37), "float32"), C: T.Buffer((11, 37), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(3):
            for i_outer in range(3):
                C_local = T.Buffer((11, 37), scope="local")
                T.realize(C_local[i_outer * 4:i_outer * 4 + 4, j_outer * 16:j_outer * 16 + 16])
                for i_c_init in range(4):
                    for j_c_init in T.vectorized(16):
                        if T.likely(i_c_init + i_outer < 5) and T.likely(j_outer * 16 + j_c_init < 37):
                            C_local[i_outer * 4 + i_c_init, j_outer * 16 + j_c_init] = T.float32(0.0)
                for k, i_c in T.grid(5, 4):
                    for j_c in T.vectorized(16):
                        if T.likely(i_c + i_outer < 5) and T.likely(j_outer * 16 + j_c < 37):
                            C_local[i_outer * 4 + i_c, j_outer * 16 + j_c] = C_local[i_outer * 4 + i_c, j_outer * 16 + j_c] + A[i_outer * 4 + i_c, k] * B[k, j_outer * 16 + j_c]
                for i_inner in range(4):
                    for j_inner in T.vectorized(16):
                        if T.likely(j_outer * 16 + j_inner < 37) and T.likely(i_inner + i_outer < 5):
                            C[i_outer * 3 + T.min(i_outer, 2) + i_inner, j_outer * 16 + j_inner] = C_local[i_outer * 3 + T.min(i_outer, 2) + i_inner, j_outer * 16 + j_inner]
