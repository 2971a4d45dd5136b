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
	imulq	$17424, %rdi, %rdi
	imulq	$17424, %r9, %rax
	movq	24(%rbx), %rdx
	imulq	$17424, %r10, %r8
	addq	%rdi, %rax
	movq	%rcx, %rdi
	shlq	$14, %rdi
	addq	%r8, %rax
	addq	32(%rbx), %rax
	leaq	-4(%rdi,%rdx), %rdx
	movw	$-2, %di
	kmovd	%edi, %k0
	movb	$1, %dil
	kmovd	%edi, %k1
	.p2align	4
.LBB0_5:
	movl	$256, %edi
	movl	$-1, %r8d
	movq	%rdx, %r9
	.p2align	4
.LBB0_6:
	cmpl	$64, %r8d
	sbbl	%r10d, %r10d
	cmpl	$64, %r8d
	kmovd	%r10d, %k2
	sbbl	%r10d, %r10d
	incl	%r8d
	kandw	%k0, %k2, %k3
	vmovups	-256(%r9), %zmm0 {%k3} {z}
	vmovups	%zmm0, -256(%rax,%rdi)
	vmovups	-192(%r9), %zmm0 {%k2} {z}
	vmovups	%zmm0, -192(%rax,%rdi)
	vmovups	-128(%r9), %zmm0 {%k2} {z}
	vmovups	%zmm0, -128(%rax,%rdi)
	vmovups	-64(%r9), %zmm0 {%k2} {z}
	kmovd	%r10d, %k2
	kandw	%k1, %k2, %k2
	kshiftlb	$6, %k2, %k2
	kshiftrb	$6, %k2, %k2
	vmovups	%zmm0, -64(%rax,%rdi)
	vmovups	(%r9), %xmm0 {%k2} {z}
	addq	$256, %r9
	vmovlps	%xmm0, (%rax,%rdi)
	addq	$264, %rdi
	cmpq	$17680, %rdi
	jne	.LBB0_6
	incq	%rcx
	addq	$17424, %rax
	addq	$16384, %rdx
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

	.p2align	4
	.type	default_function_parallel_1,@function
default_function_parallel_1:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$184, %rsp
	movq	%rdi, %rbx
	callq	omp_get_num_threads@PLT
	movl	%eax, %r14d
	callq	omp_get_thread_num@PLT
	movl	%eax, %ecx
	movq	(%rbx), %r9
	movq	8(%rbx), %rax
	subq	%r9, %rax
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
	addq	%rsi, %r9
	xorl	%esi, %esi
	addq	%rdi, %r9
	cmpq	%rcx, %rdx
	setg	%sil
	addq	%rax, %rsi
	addq	%r9, %rsi
	movq	%rsi, 32(%rsp)
	cmpq	%rsi, %r9
	jge	.LBB1_16
	movq	40(%rbx), %rdx
	movq	32(%rbx), %rcx
	movq	%r9, %rsi
	movq	48(%rbx), %rdi
	movq	24(%rbx), %rax
	shlq	$8, %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	movq	%rdx, 24(%rsp)
	leaq	(%rsi,%r9,8), %rdx
	movq	%rdi, 16(%rsp)
	leaq	60(%rcx,%rdx), %rcx
	movq	%rcx, 8(%rsp)
	.p2align	4
.LBB1_5:
	movq	%r9, 40(%rsp)
	shlq	$8, %r9
	addq	16(%rsp), %r9
	movq	24(%rsp), %rdi
	xorl	%r11d, %r11d
	.p2align	4
.LBB1_6:
	movq	%r11, %rcx
	shlq	$6, %rcx
	movq	8(%rsp), %r8
	movq	%r11, %rbx
	shlq	$18, %rbx
	xorl	%r15d, %r15d
	vbroadcastss	(%rax,%rcx), %zmm1
	vbroadcastss	4(%rax,%rcx), %zmm2
	vbroadcastss	8(%rax,%rcx), %zmm3
	vbroadcastss	12(%rax,%rcx), %zmm4
	vbroadcastss	16(%rax,%rcx), %zmm5
	vbroadcastss	20(%rax,%rcx), %zmm6
	vbroadcastss	24(%rax,%rcx), %zmm7
	vbroadcastss	28(%rax,%rcx), %zmm8
	vbroadcastss	32(%rax,%rcx), %zmm9
	vbroadcastss	36(%rax,%rcx), %zmm10
	vbroadcastss	40(%rax,%rcx), %zmm11
	vbroadcastss	44(%rax,%rcx), %zmm12
	vbroadcastss	48(%rax,%rcx), %zmm13
	vbroadcastss	52(%rax,%rcx), %zmm14
	vbroadcastss	56(%rax,%rcx), %zmm15
	vbroadcastss	60(%rax,%rcx), %zmm16
	addq	%r9, %rbx
	vmovups	%zmm1, 112(%rsp)
	vmovups	%zmm2, 48(%rsp)
	.p2align	4
.LBB1_7:
	vxorps	%xmm17, %xmm17, %xmm17
	movq	%r8, %r14
	movq	%rdi, %rdx
	xorl	%ebp, %ebp
	vxorps	%xmm25, %xmm25, %xmm25
	vxorps	%xmm18, %xmm18, %xmm18
	vxorps	%xmm26, %xmm26, %xmm26
	vxorps	%xmm19, %xmm19, %xmm19
	vxorps	%xmm27, %xmm27, %xmm27
	vxorps	%xmm20, %xmm20, %xmm20
	vxorps	%xmm28, %xmm28, %xmm28
	vxorps	%xmm21, %xmm21, %xmm21
	vxorps	%xmm29, %xmm29, %xmm29
	vxorps	%xmm22, %xmm22, %xmm22
	vxorps	%xmm30, %xmm30, %xmm30
	vxorps	%xmm23, %xmm23, %xmm23
	vxorps	%xmm31, %xmm31, %xmm31
	vxorps	%xmm24, %xmm24, %xmm24
	vxorps	%xmm1, %xmm1, %xmm1
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
	vmovups	(%r13), %zmm2
	addq	$64, %r13
	vfmadd231ps	-48(%r12,%rcx){1to16}, %zmm2, %zmm17
	vfmadd231ps	-44(%r12,%rcx){1to16}, %zmm2, %zmm25
	vfmadd231ps	-40(%r12,%rcx){1to16}, %zmm2, %zmm18
	vfmadd231ps	-36(%r12,%rcx){1to16}, %zmm2, %zmm26
	vfmadd231ps	-32(%r12,%rcx){1to16}, %zmm2, %zmm19
	vfmadd231ps	-28(%r12,%rcx){1to16}, %zmm2, %zmm27
	vfmadd231ps	-24(%r12,%rcx){1to16}, %zmm2, %zmm20
	vfmadd231ps	-20(%r12,%rcx){1to16}, %zmm2, %zmm28
	vfmadd231ps	-16(%r12,%rcx){1to16}, %zmm2, %zmm21
	vfmadd231ps	-12(%r12,%rcx){1to16}, %zmm2, %zmm29
	vfmadd231ps	-8(%r12,%rcx){1to16}, %zmm2, %zmm22
	vfmadd231ps	-4(%r12,%rcx){1to16}, %zmm2, %zmm30
	vfmadd231ps	(%r12,%rcx){1to16}, %zmm2, %zmm23
	vfmadd231ps	4(%r12,%rcx){1to16}, %zmm2, %zmm31
	vfmadd231ps	8(%r12,%rcx){1to16}, %zmm2, %zmm24
	vfmadd231ps	12(%r12,%rcx){1to16}, %zmm2, %zmm1
	addq	$4, %rcx
	jne	.LBB1_10
	incq	%rsi
	addq	$192, %r10
	addq	$264, %r12
	cmpq	$3, %rsi
	jne	.LBB1_9
	incq	%rbp
	addq	$576, %rdx
	addq	$17424, %r14
	cmpq	$64, %rbp
	jne	.LBB1_8
	vunpcklps	%zmm25, %zmm17, %zmm2
	vunpckhps	%zmm25, %zmm17, %zmm17
	vunpcklps	%zmm26, %zmm18, %zmm25
	vunpckhps	%zmm26, %zmm18, %zmm18
	vunpcklps	%zmm27, %zmm19, %zmm26
	vunpckhps	%zmm27, %zmm19, %zmm19
	vunpcklps	%zmm28, %zmm20, %zmm27
	vunpckhps	%zmm28, %zmm20, %zmm20
	vunpcklps	%zmm29, %zmm21, %zmm28
	vunpckhps	%zmm29, %zmm21, %zmm21
	vunpcklps	%zmm30, %zmm22, %zmm29
	vunpckhps	%zmm30, %zmm22, %zmm22
	vunpcklps	%zmm31, %zmm23, %zmm30
	vunpckhps	%zmm31, %zmm23, %zmm23
	vunpcklps	%zmm1, %zmm24, %zmm31
	vunpckhps	%zmm1, %zmm24, %zmm1
	movq	%r15, %rcx
	shlq	$6, %rcx
	incq	%r15
	addq	$64, %r8
	vunpcklpd	%zmm25, %zmm2, %zmm24
	vunpckhpd	%zmm25, %zmm2, %zmm2
	vunpcklpd	%zmm18, %zmm17, %zmm25
	vunpckhpd	%zmm18, %zmm17, %zmm17
	vunpcklpd	%zmm27, %zmm26, %zmm18
	vunpckhpd	%zmm27, %zmm26, %zmm26
	vunpcklpd	%zmm20, %zmm19, %zmm27
	vunpckhpd	%zmm20, %zmm19, %zmm19
	vunpcklpd	%zmm29, %zmm28, %zmm20
	vunpckhpd	%zmm29, %zmm28, %zmm28
	vunpcklpd	%zmm22, %zmm21, %zmm29
	vunpckhpd	%zmm22, %zmm21, %zmm21
	vunpcklpd	%zmm31, %zmm30, %zmm22
	vunpckhpd	%zmm31, %zmm30, %zmm30
	vunpcklpd	%zmm1, %zmm23, %zmm31
	vunpckhpd	%zmm1, %zmm23, %zmm1
	vshuff64x2	$136, %zmm18, %zmm24, %zmm23
	vshuff64x2	$221, %zmm18, %zmm24, %zmm18
	vshuff64x2	$136, %zmm27, %zmm25, %zmm24
	vshuff64x2	$221, %zmm27, %zmm25, %zmm25
	vshuff64x2	$136, %zmm26, %zmm2, %zmm27
	vshuff64x2	$221, %zmm26, %zmm2, %zmm2
	vshuff64x2	$136, %zmm19, %zmm17, %zmm26
	vshuff64x2	$221, %zmm19, %zmm17, %zmm17
	vshuff64x2	$136, %zmm22, %zmm20, %zmm19
	vshuff64x2	$221, %zmm22, %zmm20, %zmm20
	vshuff64x2	$136, %zmm31, %zmm29, %zmm22
	vshuff64x2	$221, %zmm31, %zmm29, %zmm29
	vshuff64x2	$136, %zmm30, %zmm28, %zmm31
	vshuff64x2	$221, %zmm30, %zmm28, %zmm28
	vshuff64x2	$136, %zmm1, %zmm21, %zmm30
	vshuff64x2	$221, %zmm1, %zmm21, %zmm1
	vshuff64x2	$136, %zmm19, %zmm23, %zmm21
	vshuff64x2	$221, %zmm19, %zmm23, %zmm19
	vshuff64x2	$136, %zmm22, %zmm24, %zmm23
	vshuff64x2	$221, %zmm22, %zmm24, %zmm22
	vshuff64x2	$136, %zmm31, %zmm27, %zmm24
	vshuff64x2	$221, %zmm31, %zmm27, %zmm27
	vshuff64x2	$136, %zmm30, %zmm26, %zmm31
	vshuff64x2	$221, %zmm30, %zmm26, %zmm26
	vshuff64x2	$136, %zmm20, %zmm18, %zmm30
	vshuff64x2	$221, %zmm20, %zmm18, %zmm18
	vshuff64x2	$136, %zmm29, %zmm25, %zmm20
	vshuff64x2	$221, %zmm29, %zmm25, %zmm25
	vshuff64x2	$136, %zmm28, %zmm2, %zmm29
	vshuff64x2	$221, %zmm28, %zmm2, %zmm2
	vshuff64x2	$136, %zmm1, %zmm17, %zmm28
	vshuff64x2	$221, %zmm1, %zmm17, %zmm1
	vaddps	112(%rsp), %zmm21, %zmm17
	vaddps	48(%rsp), %zmm24, %zmm21
	vaddps	%zmm23, %zmm3, %zmm23
	vaddps	%zmm20, %zmm7, %zmm20
	vaddps	%zmm18, %zmm13, %zmm18
	vaddps	%zmm2, %zmm14, %zmm2
	vaddps	%zmm1, %zmm16, %zmm1
	vmaxps	%zmm0, %zmm2, %zmm2
	vmaxps	%zmm0, %zmm1, %zmm1
	vmaxps	%zmm0, %zmm17, %zmm17
	vmovups	%zmm17, (%rbx,%rcx)
	vmaxps	%zmm0, %zmm21, %zmm17
	vaddps	%zmm31, %zmm4, %zmm21
	vmovups	%zmm17, 16384(%rbx,%rcx)
	vmaxps	%zmm0, %zmm23, %zmm17
	vaddps	%zmm30, %zmm5, %zmm23
	vmovups	%zmm17, 32768(%rbx,%rcx)
	vmaxps	%zmm0, %zmm21, %zmm17
	vaddps	%zmm29, %zmm6, %zmm21
	vmovups	%zmm17, 49152(%rbx,%rcx)
	vmaxps	%zmm0, %zmm23, %zmm17
	vmovups	%zmm17, 65536(%rbx,%rcx)
	vmaxps	%zmm0, %zmm21, %zmm17
	vaddps	%zmm28, %zmm8, %zmm21
	vmovups	%zmm17, 81920(%rbx,%rcx)
	vmaxps	%zmm0, %zmm20, %zmm17
	vaddps	%zmm19, %zmm9, %zmm20
	vaddps	%zmm27, %zmm10, %zmm19
	vmovups	%zmm17, 98304(%rbx,%rcx)
	vmaxps	%zmm0, %zmm21, %zmm17
	vmovups	%zmm17, 114688(%rbx,%rcx)
	vmaxps	%zmm0, %zmm20, %zmm17
	vaddps	%zmm22, %zmm11, %zmm20
	vmovups	%zmm17, 131072(%rbx,%rcx)
	vmaxps	%zmm0, %zmm19, %zmm17
	vaddps	%zmm26, %zmm12, %zmm19
	vmovups	%zmm17, 147456(%rbx,%rcx)
	vmaxps	%zmm0, %zmm20, %zmm17
	vmovups	%zmm17, 163840(%rbx,%rcx)
	vmaxps	%zmm0, %zmm19, %zmm17
	vmovups	%zmm17, 180224(%rbx,%rcx)
	vmaxps	%zmm0, %zmm18, %zmm17
	vmovups	%zmm17, 196608(%rbx,%rcx)
	vaddps	%zmm25, %zmm15, %zmm17
	vmovups	%zmm2, 212992(%rbx,%rcx)
	vmaxps	%zmm0, %zmm17, %zmm2
	vmovups	%zmm2, 229376(%rbx,%rcx)
	vmovups	%zmm1, 245760(%rbx,%rcx)
	cmpq	$4, %r15
	jne	.LBB1_7
	incq	%r11
	addq	$36864, %rdi
	cmpq	$4, %r11
	jne	.LBB1_6
	movq	40(%rsp), %r9
	addq	$264, 8(%rsp)
	incq	%r9
	cmpq	32(%rsp), %r9
	jne	.LBB1_5
.LBB1_16:
	addq	$184, %rsp
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
	movl	$1115136, %esi
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
	movq	$64, 8(%rsp)
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
