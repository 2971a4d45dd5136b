# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        for i0, j in T.grid(4, 16):
            for i1 in T.vectorized(4):
                if T.likely(i0 * 4 + i1 < 15):
                    B_1 = T.Buffer((256,), data=B.data)
                    A_1 = T.Buffer((256,), data=A.data)
                    B_1[i0 * 64 + i1 * 16 + j] = A_1[i0 * 64 + i1 * 16 + j]
