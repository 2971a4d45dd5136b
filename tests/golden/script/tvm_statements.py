# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((16,), "int32"), n: T.int32):
    while A[0] < 10:
        A[0] = A[0] + 1
    if n > 3:
        A[1] = T.Div(n, 2)
    else:
        A[1] = T.truncmod(n, 3) + T.bitwise_and(n, 7)
    x: T.int32 = n * 2
    T.call_extern("int32", "touch", A.data, x)
    T.call_packed("trace", n)
