# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((21,), "float32"), B: T.Buffer((21,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in range(3):
            for i_inner in T.vectorized(8):
                if T.likely(i_outer * 8 + i_inner < 21):
                    B[i_outer * 8 + i_inner] = T.exp(A[i_outer * 8 + i_inner])
