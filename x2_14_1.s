	.file	"<string>"
	.text
	.p2align	4
	.type	default_function_parallel_0,@function
default_function_parallel_0:
	pushq	%r14
	pushq	%rbx
	pushq	%rax
	movq	%rdi, %rbx
	callq	omp_get_num_threads@PLT
	movl	%eax, %r14d
	callq	omp_get_thread_num@PLT
	movl	%eax, %r8d
	movq	(%rbx), %rdi
	movq	8(%rbx), %rax
	subq	%rdi, %rax
	movq	%rax, %rcx
	shrq	$32, %rcx
	je	.LBB0_1
	cqto
	idivq	%r14
	jmp	.LBB0_3
.LBB0_1:
	xorl	%edx, %edx
	divl	%r14d
.LBB0_3:
	cmpq	%rdx, %r8
	movq	%rdx, %r9
	movq	%rax, %r10
	cmovlq	%r8, %r9
	imulq	%r8, %r10
	xorl	%esi, %esi
	leaq	(%rdi,%r9), %rcx
	addq	%r10, %rcx
	cmpq	%r8, %rdx
	setg	%sil
	addq	%rax, %rsi
	addq	%rcx, %rsi
	cmpq	%rsi, %rcx
	jge	.LBB0_8
	imulq	$13456, %rdi, %rdi
	imulq	$13456, %r9, %rax
	movq	24(%rbx), %rdx
	imulq	$13456, %r10, %r8
	addq	%rdi, %rax
	imulq	$12544, %rcx, %rdi
	addq	%r8, %rax
	addq	32(%rbx), %rax
	leaq	-36(%rdi,%rdx), %rdx
	movw	$-2, %di
	kmovd	%edi, %k0
	movw	$511, %di
	kmovd	%edi, %k1
	movw	$1023, %di
	kmovd	%edi, %k2
	.p2align	4
.LBB0_5:
	movl	$192, %edi
	movl	$-1, %r8d
	movq	%rdx, %r9
	.p2align	4
.LBB0_6:
	cmpl	$56, %r8d
	sbbl	%r10d, %r10d
	incl	%r8d
	kmovd	%r10d, %k3
	kandw	%k0, %k3, %k4
	vmovups	-192(%r9), %zmm0 {%k4} {z}
	vmovups	%zmm0, -192(%rax,%rdi)
	vmovups	-128(%r9), %zmm0 {%k3} {z}
	vmovups	%zmm0, -128(%rax,%rdi)
	vmovups	-64(%r9), %zmm0 {%k3} {z}
	kandw	%k1, %k3, %k3
	vmovups	%zmm0, -64(%rax,%rdi)
	vmovups	(%r9), %zmm0 {%k3} {z}
	addq	$224, %r9
	vmovups	%zmm0, (%rax,%rdi) {%k2}
	addq	$232, %rdi
	cmpq	$13648, %rdi
	jne	.LBB0_6
	incq	%rcx
	addq	$13456, %rax
	addq	$12544, %rdx
	cmpq	%rsi, %rcx
	jne	.LBB0_5
.LBB0_8:
	addq	$8, %rsp
	popq	%rbx
	popq	%r14
	vzeroupper
	retq
.Lfunc_end0:
	.size	default_function_parallel_0, .Lfunc_end0-default_function_parallel_0

	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI1_0:
	.long	16
	.long	0
	.long	0
	.long	0
	.long	20
	.long	4
	.long	4
	.long	4
	.long	24
	.long	8
	.long	8
	.long	8
	.long	28
	.long	12
	.long	12
	.long	12
.LCPI1_1:
	.long	17
	.long	1
	.long	1
	.long	1
	.long	21
	.long	5
	.long	5
	.long	5
	.long	25
	.long	9
	.long	9
	.long	9
	.long	29
	.long	13
	.long	13
	.long	13
.LCPI1_2:
	.long	18
	.long	2
	.long	2
	.long	2
	.long	22
	.long	6
	.long	6
	.long	6
	.long	26
	.long	10
	.long	10
	.long	10
	.long	30
	.long	14
	.long	14
	.long	14
.LCPI1_3:
	.long	19
	.long	3
	.long	3
	.long	3
	.long	23
	.long	7
	.long	7
	.long	7
	.long	27
	.long	11
	.long	11
	.long	11
	.long	31
	.long	15
	.long	15
	.long	15
	.text
	.p2align	4
	.type	default_function_parallel_1,@function
default_function_parallel_1:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$312, %rsp
	movq	%rdi, %rbx
	callq	omp_get_num_threads@PLT
	movl	%eax, %r14d
	callq	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movq	(%rbx), %r8
	movq	8(%rbx), %rax
	subq	%r8, %rax
	movq	%rax, %rdx
	shrq	$32, %rdx
	je	.LBB1_1
	cqto
	idivq	%r14
	jmp	.LBB1_3
.LBB1_1:
	xorl	%edx, %edx
	divl	%r14d
.LBB1_3:
	cmpq	%rdx, %rcx
	movq	%rdx, %rsi
	movq	%rax, %rdi
	cmovlq	%rcx, %rsi
	imulq	%rcx, %rdi
	addq	%rsi, %r8
	xorl	%esi, %esi
	addq	%rdi, %r8
	cmpq	%rcx, %rdx
	setg	%sil
	addq	%rax, %rsi
	addq	%r8, %rsi
	movq	%rsi, 24(%rsp)
	cmpq	%rsi, %r8
	jge	.LBB1_16
	movq	48(%rbx), %rdi
	movq	32(%rbx), %rcx
	movq	40(%rbx), %rdx
	movq	24(%rbx), %rax
	imulq	$232, %r8, %rsi
	vxorps	%xmm4, %xmm4, %xmm4
	movq	%rdi, 8(%rsp)
	leaq	52(%rsi,%rcx), %rdi
	movw	$16383, %cx
	movq	%rdx, 16(%rsp)
	kmovd	%ecx, %k1
	.p2align	4
.LBB1_5:
	imulq	$224, %r8, %rcx
	addq	8(%rsp), %rcx
	movq	16(%rsp), %r9
	xorl	%r11d, %r11d
	movq	%r8, 32(%rsp)
	movq	%rcx, 40(%rsp)
	.p2align	4
.LBB1_6:
	movq	%r11, %rcx
	shlq	$6, %rcx
	imulq	$200704, %r11, %rbx
	addq	40(%rsp), %rbx
	movq	%rdi, %r8
	xorl	%r15d, %r15d
	vbroadcastss	4(%rax,%rcx), %zmm1
	vbroadcastss	(%rax,%rcx), %zmm0
	vbroadcastss	8(%rax,%rcx), %zmm2
	vbroadcastss	16(%rax,%rcx), %zmm9
	vbroadcastss	20(%rax,%rcx), %zmm10
	vbroadcastss	24(%rax,%rcx), %zmm11
	vbroadcastss	28(%rax,%rcx), %zmm12
	vbroadcastss	32(%rax,%rcx), %zmm13
	vbroadcastss	36(%rax,%rcx), %zmm14
	vbroadcastss	40(%rax,%rcx), %zmm15
	vbroadcastss	44(%rax,%rcx), %zmm16
	vbroadcastss	48(%rax,%rcx), %zmm17
	vbroadcastss	52(%rax,%rcx), %zmm18
	vbroadcastss	56(%rax,%rcx), %zmm19
	vbroadcastss	60(%rax,%rcx), %zmm20
	vmovups	%zmm1, 176(%rsp)
	vbroadcastss	12(%rax,%rcx), %zmm1
	vmovups	%zmm0, 240(%rsp)
	vmovups	%zmm2, 112(%rsp)
	vmovups	%zmm1, 48(%rsp)
	.p2align	4
.LBB1_7:
	vxorps	%xmm21, %xmm21, %xmm21
	movq	%r8, %r14
	movq	%r9, %rdx
	xorl	%ebp, %ebp
	vxorps	%xmm23, %xmm23, %xmm23
	vxorps	%xmm29, %xmm29, %xmm29
	vxorps	%xmm24, %xmm24, %xmm24
	vxorps	%xmm30, %xmm30, %xmm30
	vxorps	%xmm25, %xmm25, %xmm25
	vxorps	%xmm31, %xmm31, %xmm31
	vxorps	%xmm26, %xmm26, %xmm26
	vxorps	%xmm0, %xmm0, %xmm0
	vxorps	%xmm27, %xmm27, %xmm27
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm28, %xmm28, %xmm28
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm22, %xmm22, %xmm22
	.p2align	4
.LBB1_8:
	movq	%r14, %r12
	movq	%rdx, %r10
	xorl	%esi, %esi
	.p2align	4
.LBB1_9:
	movq	$-12, %rcx
	movq	%r10, %r13
	.p2align	4
.LBB1_10:
	vmovups	(%r13), %zmm3
	addq	$64, %r13
	vfmadd231ps	-40(%r12,%rcx){1to16}, %zmm3, %zmm23
	vfmadd231ps	-36(%r12,%rcx){1to16}, %zmm3, %zmm29
	vfmadd231ps	-32(%r12,%rcx){1to16}, %zmm3, %zmm24
	vfmadd231ps	-28(%r12,%rcx){1to16}, %zmm3, %zmm30
	vfmadd231ps	-24(%r12,%rcx){1to16}, %zmm3, %zmm25
	vfmadd231ps	-20(%r12,%rcx){1to16}, %zmm3, %zmm31
	vfmadd231ps	-16(%r12,%rcx){1to16}, %zmm3, %zmm26
	vfmadd231ps	-12(%r12,%rcx){1to16}, %zmm3, %zmm0
	vfmadd231ps	-8(%r12,%rcx){1to16}, %zmm3, %zmm27
	vfmadd231ps	-4(%r12,%rcx){1to16}, %zmm3, %zmm1
	vfmadd231ps	(%r12,%rcx){1to16}, %zmm3, %zmm28
	vfmadd231ps	4(%r12,%rcx){1to16}, %zmm3, %zmm2
	vfmadd231ps	8(%r12,%rcx){1to16}, %zmm3, %zmm22
	vfmadd231ps	12(%r12,%rcx){1to16}, %zmm3, %zmm21
	addq	$4, %rcx
	jne	.LBB1_10
	incq	%rsi
	addq	$192, %r10
	addq	$232, %r12
	cmpq	$3, %rsi
	jne	.LBB1_9
	incq	%rbp
	addq	$576, %rdx
	addq	$13456, %r14
	cmpq	$64, %rbp
	jne	.LBB1_8
	vmovaps	.LCPI1_0(%rip), %zmm5
	vmovaps	.LCPI1_1(%rip), %zmm6
	vmovaps	.LCPI1_2(%rip), %zmm7
	vmovaps	.LCPI1_3(%rip), %zmm8
	vunpcklps	%zmm29, %zmm23, %zmm3
	vunpckhps	%zmm29, %zmm23, %zmm23
	vunpcklps	%zmm30, %zmm24, %zmm29
	vunpckhps	%zmm30, %zmm24, %zmm24
	vunpcklps	%zmm31, %zmm25, %zmm30
	vunpckhps	%zmm31, %zmm25, %zmm25
	vunpcklps	%zmm0, %zmm26, %zmm31
	vunpckhps	%zmm0, %zmm26, %zmm0
	vunpcklps	%zmm1, %zmm27, %zmm26
	vunpckhps	%zmm1, %zmm27, %zmm1
	vunpcklps	%zmm2, %zmm28, %zmm27
	vunpckhps	%zmm2, %zmm28, %zmm2
	imulq	$56, %r15, %rcx
	incq	%r15
	addq	$56, %r8
	vunpcklpd	%zmm29, %zmm3, %zmm28
	vunpckhpd	%zmm29, %zmm3, %zmm3
	vunpcklpd	%zmm24, %zmm23, %zmm29
	vunpckhpd	%zmm24, %zmm23, %zmm23
	vunpcklpd	%zmm31, %zmm30, %zmm24
	vunpckhpd	%zmm31, %zmm30, %zmm30
	vunpcklpd	%zmm0, %zmm25, %zmm31
	vunpckhpd	%zmm0, %zmm25, %zmm0
	vunpcklpd	%zmm27, %zmm26, %zmm25
	vunpckhpd	%zmm27, %zmm26, %zmm26
	vunpcklpd	%zmm2, %zmm1, %zmm27
	vunpckhpd	%zmm2, %zmm1, %zmm1
	vmovaps	%zmm21, %zmm2
	vpermt2ps	%zmm22, %zmm5, %zmm2
	vmovaps	%zmm21, %zmm5
	vpermt2ps	%zmm22, %zmm6, %zmm5
	vmovaps	%zmm21, %zmm6
	vpermt2ps	%zmm22, %zmm8, %zmm21
	vpermt2ps	%zmm22, %zmm7, %zmm6
	vshuff64x2	$136, %zmm24, %zmm28, %zmm22
	vshuff64x2	$221, %zmm24, %zmm28, %zmm24
	vshuff64x2	$136, %zmm31, %zmm29, %zmm28
	vshuff64x2	$221, %zmm31, %zmm29, %zmm29
	vshuff64x2	$136, %zmm30, %zmm3, %zmm31
	vshuff64x2	$221, %zmm30, %zmm3, %zmm3
	vshuff64x2	$136, %zmm0, %zmm23, %zmm30
	vshuff64x2	$221, %zmm0, %zmm23, %zmm23
	vshuff64x2	$136, %zmm2, %zmm25, %zmm8
	vshuff64x2	$221, %zmm2, %zmm25, %zmm2
	vshuff64x2	$136, %zmm6, %zmm27, %zmm25
	vshuff64x2	$221, %zmm6, %zmm27, %zmm6
	vshuff64x2	$136, %zmm5, %zmm26, %zmm27
	vshuff64x2	$221, %zmm5, %zmm26, %zmm5
	vshuff64x2	$136, %zmm21, %zmm1, %zmm26
	vshuff64x2	$221, %zmm21, %zmm1, %zmm21
	vshuff64x2	$136, %zmm8, %zmm22, %zmm7
	vaddps	240(%rsp), %zmm7, %zmm7
	vshuff64x2	$221, %zmm25, %zmm28, %zmm0
	vshuff64x2	$221, %zmm8, %zmm22, %zmm22
	vshuff64x2	$136, %zmm25, %zmm28, %zmm8
	vshuff64x2	$136, %zmm27, %zmm31, %zmm25
	vshuff64x2	$136, %zmm26, %zmm30, %zmm28
	vshuff64x2	$221, %zmm26, %zmm30, %zmm26
	vshuff64x2	$136, %zmm2, %zmm24, %zmm30
	vshuff64x2	$221, %zmm2, %zmm24, %zmm2
	vshuff64x2	$136, %zmm6, %zmm29, %zmm24
	vshuff64x2	$221, %zmm6, %zmm29, %zmm1
	vshuff64x2	$136, %zmm5, %zmm3, %zmm6
	vshuff64x2	$221, %zmm5, %zmm3, %zmm3
	vshuff64x2	$136, %zmm21, %zmm23, %zmm5
	vshuff64x2	$221, %zmm21, %zmm23, %zmm21
	vaddps	176(%rsp), %zmm25, %zmm23
	vaddps	112(%rsp), %zmm8, %zmm8
	vshuff64x2	$221, %zmm27, %zmm31, %zmm27
	vaddps	%zmm6, %zmm10, %zmm6
	vaddps	%zmm5, %zmm12, %zmm5
	vaddps	%zmm0, %zmm15, %zmm0
	vaddps	%zmm2, %zmm17, %zmm2
	vaddps	%zmm3, %zmm18, %zmm3
	vcmpltps	%zmm7, %zmm4, %k2
	vmovaps	%zmm7, %zmm7 {%k2} {z}
	vcmpltps	%zmm23, %zmm4, %k2
	vmovups	%zmm7, (%rbx,%rcx) {%k1}
	vmovaps	%zmm23, %zmm7 {%k2} {z}
	vaddps	48(%rsp), %zmm28, %zmm23
	vcmpltps	%zmm8, %zmm4, %k2
	vmovups	%zmm7, 12544(%rbx,%rcx) {%k1}
	vmovaps	%zmm8, %zmm7 {%k2} {z}
	vaddps	%zmm30, %zmm9, %zmm8
	vmovups	%zmm7, 25088(%rbx,%rcx) {%k1}
	vcmpltps	%zmm23, %zmm4, %k2
	vmovaps	%zmm23, %zmm7 {%k2} {z}
	vcmpltps	%zmm8, %zmm4, %k2
	vmovups	%zmm7, 37632(%rbx,%rcx) {%k1}
	vmovaps	%zmm8, %zmm7 {%k2} {z}
	vmovups	%zmm7, 50176(%rbx,%rcx) {%k1}
	vaddps	%zmm24, %zmm11, %zmm7
	vcmpltps	%zmm6, %zmm4, %k2
	vmovaps	%zmm6, %zmm6 {%k2} {z}
	vmovups	%zmm6, 62720(%rbx,%rcx) {%k1}
	vcmpltps	%zmm7, %zmm4, %k2
	vmovaps	%zmm7, %zmm6 {%k2} {z}
	vaddps	%zmm22, %zmm13, %zmm7
	vcmpltps	%zmm5, %zmm4, %k2
	vmovups	%zmm6, 75264(%rbx,%rcx) {%k1}
	vaddps	%zmm27, %zmm14, %zmm6
	vmovaps	%zmm5, %zmm5 {%k2} {z}
	vmovups	%zmm5, 87808(%rbx,%rcx) {%k1}
	vcmpltps	%zmm7, %zmm4, %k2
	vmovaps	%zmm7, %zmm5 {%k2} {z}
	vcmpltps	%zmm6, %zmm4, %k2
	vmovups	%zmm5, 100352(%rbx,%rcx) {%k1}
	vmovaps	%zmm6, %zmm5 {%k2} {z}
	vmovups	%zmm5, 112896(%rbx,%rcx) {%k1}
	vaddps	%zmm26, %zmm16, %zmm5
	vcmpltps	%zmm0, %zmm4, %k2
	vmovaps	%zmm0, %zmm0 {%k2} {z}
	vmovups	%zmm0, 125440(%rbx,%rcx) {%k1}
	vcmpltps	%zmm5, %zmm4, %k2
	vmovaps	%zmm5, %zmm0 {%k2} {z}
	vcmpltps	%zmm2, %zmm4, %k2
	vmovups	%zmm0, 137984(%rbx,%rcx) {%k1}
	vmovaps	%zmm2, %zmm0 {%k2} {z}
	vaddps	%zmm1, %zmm19, %zmm2
	vcmpltps	%zmm3, %zmm4, %k2
	vaddps	%zmm21, %zmm20, %zmm1
	vmovups	%zmm0, 150528(%rbx,%rcx) {%k1}
	vmovaps	%zmm3, %zmm0 {%k2} {z}
	vmovups	%zmm0, 163072(%rbx,%rcx) {%k1}
	vcmpltps	%zmm2, %zmm4, %k2
	vmovaps	%zmm2, %zmm0 {%k2} {z}
	vcmpltps	%zmm1, %zmm4, %k2
	vmovups	%zmm0, 175616(%rbx,%rcx) {%k1}
	vmovaps	%zmm1, %zmm0 {%k2} {z}
	vmovups	%zmm0, 188160(%rbx,%rcx) {%k1}
	cmpq	$4, %r15
	jne	.LBB1_7
	incq	%r11
	addq	$36864, %r9
	cmpq	$4, %r11
	jne	.LBB1_6
	movq	32(%rsp), %r8
	addq	$232, %rdi
	incq	%r8
	cmpq	24(%rsp), %r8
	jne	.LBB1_5
.LBB1_16:
	addq	$312, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end1:
	.size	default_function_parallel_1, .Lfunc_end1-default_function_parallel_1

	.globl	default_function
	.p2align	4
	.type	default_function,@function
default_function:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	andq	$-64, %rsp
	subq	$192, %rsp
	movq	%rsi, %r12
	movq	%rdi, %r15
	movl	$64, %edi
	movl	$861184, %esi
	movq	%rcx, %r14
	movq	%rdx, %r13
	callq	aligned_alloc@PLT
	movq	%rax, %rbx
	testq	%rax, %rax
	je	.LBB2_1
	leaq	default_function_parallel_0(%rip), %rdi
	leaq	64(%rsp), %rsi
	movq	$0, 64(%rsp)
	movq	$64, 72(%rsp)
	movl	$0, 80(%rsp)
	movq	%r15, 88(%rsp)
	movq	%rbx, 96(%rsp)
	xorl	%r15d, %r15d
	xorl	%edx, %edx
	xorl	%ecx, %ecx
	callq	GOMP_parallel@PLT
	leaq	default_function_parallel_1(%rip), %rdi
	movq	$0, (%rsp)
	movq	$56, 8(%rsp)
	movl	$0, 16(%rsp)
	movq	%r13, 24(%rsp)
	movq	%rbx, 32(%rsp)
	movq	%r12, 40(%rsp)
	movq	%r14, 48(%rsp)
	movq	%rsp, %rsi
	xorl	%edx, %edx
	xorl	%ecx, %ecx
	callq	GOMP_parallel@PLT
	jmp	.LBB2_3
.LBB2_1:
	movl	$1, %r15d
.LBB2_3:
	movq	%rbx, %rdi
	callq	free@PLT
	movl	%r15d, %eax
	leaq	-40(%rbp), %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	retq
.Lfunc_end2:
	.size	default_function, .Lfunc_end2-default_function

	.globl	default_function__packed
	.p2align	4
	.type	default_function__packed,@function
default_function__packed:
	movq	(%rdi), %rax
	movq	8(%rdi), %rsi
	movq	16(%rdi), %rdx
	movq	24(%rdi), %rcx
	movq	%rax, %rdi
	jmp	default_function@PLT
.Lfunc_end3:
	.size	default_function__packed, .Lfunc_end3-default_function__packed

	.section	".note.GNU-stack","",@progbits
