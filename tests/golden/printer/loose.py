for i in range(16):
    n = T.int32()
    A = T.Buffer((16, 16))
    if n < 3:
        j = T.int32()
        A_1 = T.Buffer((n,), data=A.data)
        A[i, j] = A_1[i]
    A[0, i] = T.float32(0.0)
