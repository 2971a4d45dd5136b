# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((16, 16), "int8"), S: T.Buffer((8, 8), "int32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i, j, k in T.grid(8, 8, 16):
        with T.block("S"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[T.min(v_i, v_j):T.min(v_i, v_j) + (T.max(v_i, v_j) + 1 - T.min(v_i, v_j)), v_k])
            T.writes(S[v_i, v_j])
            T.block_attr({"foo": "bar"})
            with T.init():
                S[v_i, v_j] = 0
            S[v_i, v_j] = S[v_i, v_j] + T.Cast("int32", A[v_i, v_k]) * T.Cast("int32", A[v_j, v_k])
