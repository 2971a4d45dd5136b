# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((10, 18), "float32"), out: T.Buffer((8, 16), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in T.parallel(2):
            B = T.Buffer((10, 16))
            T.realize(B[0:3, 0:16])
            for i_inner in range(4):
                if i_inner == 0:
                    for i in range(2):
                        for j in T.vectorized(16):
                            B[(i_outer * 4 + i_inner + i) % 3, j] = A[i_outer * 4 + i_inner + i, j] + A[i_outer * 4 + i_inner + i, j + 1] + A[i_outer * 4 + i_inner + i, j + 2]
                for j in T.vectorized(16):
                    B[(i_outer * 4 + i_inner + 2) % 3, j] = A[i_outer * 4 + i_inner + 2, j] + A[i_outer * 4 + i_inner + 2, j + 1] + A[i_outer * 4 + i_inner + 2, j + 2]
                for j in T.vectorized(16):
                    out[i_outer * 4 + i_inner, j] = B[(i_outer * 4 + i_inner) % 3, j] + B[(i_outer * 4 + i_inner + 1) % 3, j] + B[(i_outer * 4 + i_inner + 2) % 3, j]
