# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        n = T.int32()
        A_1 = T.match_buffer(A, (n,))
        B_1 = T.match_buffer(B, (n,))
        for i_outer in T.parallel((n + 15) // 16):
            for i_inner in T.vectorized(16):
                if T.likely(i_outer * 16 + i_inner < n):
                    B_1[i_outer * 16 + i_inner] = A_1[i_outer * 16 + i_inner] * T.float32(2.0)
