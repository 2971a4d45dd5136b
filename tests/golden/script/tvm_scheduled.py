# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        for i_0 in T.parallel(8, annotations={"pragma_auto_unroll_max_step": 64}):
            for j_0 in range(3):
                for i_1_init in range(16):
                    for j_1_init in T.vectorized(48):
                        with T.block("C_init"):
                            v_i = T.axis.spatial(128, i_0 * 16 + i_1_init)
                            v_j = T.axis.spatial(128, j_0 * 48 + j_1_init)
                            T.where(j_0 * 48 + j_1_init < 128)
                            T.reads()
                            T.writes(C[v_i, v_j])
                            C[v_i, v_j] = T.float32(0.0)
                for k, i_1 in T.grid(128, 16):
                    for j_1 in T.vectorized(48):
                        with T.block("C_update"):
                            v_i = T.axis.spatial(128, i_0 * 16 + i_1)
                            v_j = T.axis.spatial(128, j_0 * 48 + j_1)
                            v_k = T.axis.reduce(128, k)
                            T.where(j_0 * 48 + j_1 < 128)
                            T.reads(C[v_i, v_j], A[v_i, v_k], B[v_k, v_j])
                            T.writes(C[v_i, v_j])
                            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
