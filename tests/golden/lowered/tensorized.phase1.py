# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((2, 8), "uint8"), B: T.Buffer((2, 2, 16, 4), "int8"), C: T.Buffer((2, 32), "int32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(2):
            C_1 = T.Buffer((64,), "int32", data=C.data)
            for j_outer_init in T.unroll(2):
                C_1[i * 32 + j_outer_init * 16:i * 32 + j_outer_init * 16 + 16] = T.Broadcast(0, 16)
            for k_outer in range(2):
                for j_outer in T.unroll(2):
                    A_1 = T.Buffer((16,), "uint8", data=A.data)
                    B_1 = T.Buffer((256,), "int8", data=B.data)
                    C_1[i * 32 + j_outer * 16:i * 32 + j_outer * 16 + 16] = T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", C_1[i * 32 + j_outer * 16:i * 32 + j_outer * 16 + 16], T.reinterpret("uint8x64", T.Broadcast(T.reinterpret("int32", A_1[i * 8 + k_outer * 4:i * 8 + k_outer * 4 + 4]), 16)), B_1[j_outer * 128 + k_outer * 64:j_outer * 128 + k_outer * 64 + 64])
