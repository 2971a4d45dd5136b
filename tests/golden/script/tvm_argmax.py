# from tvm.script import tir as T

@T.prim_func
def main(idx: T.Buffer((8, 16), "int32"), val: T.Buffer((8, 16), "float32"), T_v0: T.Buffer((8,), "int32"), T_v1: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i, k in T.grid(8, 16):
        with T.block("T"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.reads(val[v_i, v_k], idx[v_i, v_k])
            T.writes(T_v0[v_i], T_v1[v_i])
            with T.init():
                T_v0[v_i] = -1
                T_v1[v_i] = T.float32(-340282346638528859811704183484516925440.0)
            v_T_v0: T.int32 = T.Select(T_v1[v_i] >= val[v_i, v_k], T_v0[v_i], idx[v_i, v_k])
            v_T_v1: T.float32 = T.Select(T_v1[v_i] >= val[v_i, v_k], T_v1[v_i], val[v_i, v_k])
            T_v0[v_i] = v_T_v0
            T_v1[v_i] = v_T_v1
