# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((2, 8), "uint8"), B: T.Buffer((2, 2, 16, 4), "int8"), C: T.Buffer((2, 32), "int32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(2):
            for j_outer_init in T.unroll(2):
                out = T.match_buffer(C[i:i + 1, j_outer_init * 16:j_outer_init * 16 + 16], (16,), "int32", elem_offset="out_elem_offset")
                out[0:16] = T.Broadcast(0, 16)
            for k_outer in range(2):
                for j_outer in T.unroll(2):
                    a = T.match_buffer(A[i:i + 1, k_outer * 4:k_outer * 4 + 4], (4,), "uint8", elem_offset="a_elem_offset")
                    b = T.match_buffer(B[j_outer:j_outer + 1, k_outer:k_outer + 1, 0:16, 0:4], (16, 4), "int8", strides=(4, 1), elem_offset="b_elem_offset")
                    out = T.match_buffer(C[i:i + 1, j_outer * 16:j_outer * 16 + 16], (16,), "int32", elem_offset="out_elem_offset")
                    b_flat = T.decl_buffer((64,), "int8", data=b.data, elem_offset=b.elem_offset)
                    out[0:16] = T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", out[0:16], T.reinterpret("uint8x64", T.Broadcast(T.reinterpret("int32", a[0:4]), 16)), b_flat[0:64])
