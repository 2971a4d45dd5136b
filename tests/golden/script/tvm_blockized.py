# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        C_local = T.alloc_buffer((128, 128), scope="local")
        for i_0 in T.thread_binding(8, thread="blockIdx.x"):
            for j_0 in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("C_o"):
                    v_i_o, v_j_o = T.axis.remap("SS", [i_0, j_0])
                    v_k_o = T.axis.reduce(1, 0)
                    T.reads(A[v_i_o * 16:v_i_o * 16 + 16, 0:128], B[0:128, v_j_o * 16:v_j_o * 16 + 16])
                    T.writes(C_local[v_i_o * 16:v_i_o * 16 + 16, v_j_o * 16:v_j_o * 16 + 16])
                    T.block_attr({"note": "x"})
                    with T.init():
                        for i_1, j_1 in T.grid(16, 16):
                            with T.block("C_init"):
                                v_i_i_init, v_j_i_init = T.axis.remap("SS", [i_1, j_1])
                                T.reads()
                                T.writes(C_local[v_i_o * 16 + v_i_i_init, v_j_o * 16 + v_j_i_init])
                                C_local[v_i_o * 16 + v_i_i_init, v_j_o * 16 + v_j_i_init] = T.float32(0.0)
                    for i_1, j_1, k in T.grid(16, 16, 128):
                        with T.block("C"):
                            v_i_i, v_j_i, v_k_i = T.axis.remap("SSR", [i_1, j_1, k])
                            T.reads(C_local[v_i_o * 16 + v_i_i, v_j_o * 16 + v_j_i], A[v_i_o * 16 + v_i_i, v_k_i], B[v_k_i, v_j_o * 16 + v_j_i])
                            T.writes(C_local[v_i_o * 16 + v_i_i, v_j_o * 16 + v_j_i])
                            C_local[v_i_o * 16 + v_i_i, v_j_o * 16 + v_j_i] = C_local[v_i_o * 16 + v_i_i, v_j_o * 16 + v_j_i] + A[v_i_o * 16 + v_i_i, v_k_i] * B[v_k_i, v_j_o * 16 + v_j_i]
                for ax0, ax1 in T.grid(16, 16):
                    with T.block("C_local"):
                        v0 = T.axis.spatial(128, i_0 * 16 + ax0)
                        v1 = T.axis.spatial(128, j_0 * 16 + ax1)
                        T.reads(C_local[v0, v1])
                        T.writes(C[v0, v1])
                        C[v0, v1] = C_local[v0, v1]
