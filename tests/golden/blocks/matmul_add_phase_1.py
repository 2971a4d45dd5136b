# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32"), out: T.Buffer((16, 16), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        matmul = T.allocate([256], "float32", "global")
        matmul_1 = T.Buffer((256,), data=matmul)
        for i, j in T.grid(16, 16):
            matmul_1[i * 16 + j] = T.float32(0.0)
            for k in range(16):
                A_1 = T.Buffer((256,), data=A.data)
                B_1 = T.Buffer((256,), data=B.data)
                matmul_1[i * 16 + j] = matmul_1[i * 16 + j] + A_1[i * 16 + k] * B_1[k * 16 + j]
        for i, j in T.grid(16, 16):
            out_1 = T.Buffer((256,), data=out.data)
            C_1 = T.Buffer((256,), data=C.data)
            out_1[i * 16 + j] = matmul_1[i * 16 + j] + C_1[i * 16 + j]
