# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        C_local = T.allocate([192], "float32", "local")
        for i_outer, j_outer in T.grid(8, 3):
            C_local_1 = T.Buffer((192,), data=C_local, scope="local")
            for i_c, j_c in T.grid(8, 24):
                C_local_1[i_c * 24 + j_c] = T.float32(0.0)
                if T.likely(j_outer * 3 + j_c // 8 < 8):
                    for k in range(64):
                        cse_var_1: T.int32 = i_c * 24 + j_c
                        A_1 = T.Buffer((4096,), data=A.data)
                        B_1 = T.Buffer((4096,), data=B.data)
                        C_local_1[cse_var_1] = C_local_1[cse_var_1] + A_1[i_outer * 512 + i_c * 64 + k] * B_1[k * 64 + j_outer * 24 + j_c]
            for i_inner, j_inner in T.grid(8, 24):
                if T.likely(j_outer * 3 + j_inner // 8 < 8):
                    C_1 = T.Buffer((4096,), data=C.data)
                    C_1[i_outer * 512 + i_inner * 64 + j_outer * 24 + j_inner] = C_local_1[i_inner * 24 + j_inner]
