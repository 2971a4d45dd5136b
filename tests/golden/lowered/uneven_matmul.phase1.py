# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((11, 5), "float32"), B: T.Buffer((5, 37), "float32"), C: T.Buffer((11, 37), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(3):
            for i_outer in range(3):
                C_local = T.allocate([64], "float32", "local")
                C_local_1 = T.Buffer((64,), data=C_local, scope="local")
                for i_c_init in range(4):
                    for j_c_init in T.vectorized(16):
                        if T.likely(i_c_init + i_outer < 5) and T.likely(j_outer * 16 + j_c_init < 37):
                            C_local_1[i_c_init * 16 + j_c_init] = T.float32(0.0)
                for k, i_c in T.grid(5, 4):
                    for j_c in T.vectorized(16):
                        if T.likely(i_c + i_outer < 5) and T.likely(j_outer * 16 + j_c < 37):
                            A_1 = T.Buffer((55,), data=A.data)
                            B_1 = T.Buffer((185,), data=B.data)
                            C_local_1[i_c * 16 + j_c] = C_local_1[i_c * 16 + j_c] + A_1[i_outer * 20 + i_c * 5 + k] * B_1[k * 37 + j_outer * 16 + j_c]
                for i_inner in range(4):
                    for j_inner in T.vectorized(16):
                        if T.likely(j_outer * 16 + j_inner < 37) and T.likely(i_inner + i_outer < 5):
                            C_1 = T.Buffer((407,), data=C.data)
                            C_1[i_outer * 148 + i_inner * 37 + j_outer * 16 + j_inner] = C_local_1[i_inner * 16 + j_inner]
