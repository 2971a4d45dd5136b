"""The names of the intrinsics for x86 that come with the package, for `tir.Schedule.tensorize`."""

VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"
AVX512_BF16_DOT_16x2_INTRIN = "dot_16x2_avx512_bf16"
