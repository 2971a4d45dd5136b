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
	subq	$2104, %rsp
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
	movq	%rsi, 16(%rsp)
	cmpq	%rsi, %r8
	jge	.LBB1_16
	movq	48(%rbx), %rsi
	movq	24(%rbx), %rax
	movq	32(%rbx), %rcx
	movq	40(%rbx), %rdx
	movq	%rsi, 8(%rsp)
	imulq	$232, %r8, %rsi
	addq	$64, %rcx
	movq	%rcx, 32(%rsp)
	leaq	52(%rsi,%rax), %rdi
	movw	$16383, %ax
	kmovd	%eax, %k1
	.p2align	4
.LBB1_5:
	imulq	$224, %r8, %rax
	addq	8(%rsp), %rax
	movb	$1, %r10b
	movq	%r8, 24(%rsp)
	movq	%rax, 40(%rsp)
	xorl	%eax, %eax
	.p2align	4
.LBB1_6:
	movq	%rax, %rcx
	shlq	$7, %rcx
	leaq	(%rax,%rax,8), %r9
	imulq	$401408, %rax, %r11
	addq	40(%rsp), %r11
	movq	%rdi, %r8
	xorl	%r15d, %r15d
	vbroadcastss	4(%rdx,%rcx), %zmm1
	vbroadcastss	8(%rdx,%rcx), %zmm2
	vbroadcastss	(%rdx,%rcx), %zmm0
	shlq	$13, %r9
	addq	32(%rsp), %r9
	vmovups	%zmm1, 1968(%rsp)
	vbroadcastss	12(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1904(%rsp)
	vbroadcastss	16(%rdx,%rcx), %zmm2
	vmovups	%zmm0, 2032(%rsp)
	vmovups	%zmm1, 1840(%rsp)
	vbroadcastss	20(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1776(%rsp)
	vbroadcastss	24(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 1712(%rsp)
	vbroadcastss	28(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1648(%rsp)
	vbroadcastss	32(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 1584(%rsp)
	vbroadcastss	36(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1520(%rsp)
	vbroadcastss	40(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 1456(%rsp)
	vbroadcastss	44(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1392(%rsp)
	vbroadcastss	48(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 1328(%rsp)
	vbroadcastss	52(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1264(%rsp)
	vbroadcastss	56(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 1200(%rsp)
	vbroadcastss	60(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1136(%rsp)
	vbroadcastss	64(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 1072(%rsp)
	vbroadcastss	68(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 1008(%rsp)
	vbroadcastss	72(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 944(%rsp)
	vbroadcastss	76(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 880(%rsp)
	vbroadcastss	80(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 816(%rsp)
	vbroadcastss	84(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 752(%rsp)
	vbroadcastss	88(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 688(%rsp)
	vbroadcastss	92(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 624(%rsp)
	vbroadcastss	96(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 560(%rsp)
	vbroadcastss	100(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 496(%rsp)
	vbroadcastss	104(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 432(%rsp)
	vbroadcastss	108(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 368(%rsp)
	vbroadcastss	112(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 304(%rsp)
	vbroadcastss	116(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 240(%rsp)
	vbroadcastss	120(%rdx,%rcx), %zmm2
	vmovups	%zmm1, 176(%rsp)
	vbroadcastss	124(%rdx,%rcx), %zmm1
	vmovups	%zmm2, 112(%rsp)
	vmovups	%zmm1, 48(%rsp)
	.p2align	4
.LBB1_7:
	vxorps	%xmm20, %xmm20, %xmm20
	movq	%r8, %r14
	movq	%r9, %rsi
	xorl	%ebp, %ebp
	vxorps	%xmm22, %xmm22, %xmm22
	vxorps	%xmm8, %xmm8, %xmm8
	vxorps	%xmm23, %xmm23, %xmm23
	vxorps	%xmm9, %xmm9, %xmm9
	vxorps	%xmm24, %xmm24, %xmm24
	vxorps	%xmm10, %xmm10, %xmm10
	vxorps	%xmm25, %xmm25, %xmm25
	vxorps	%xmm11, %xmm11, %xmm11
	vxorps	%xmm26, %xmm26, %xmm26
	vxorps	%xmm12, %xmm12, %xmm12
	vxorps	%xmm27, %xmm27, %xmm27
	vxorps	%xmm13, %xmm13, %xmm13
	vxorps	%xmm28, %xmm28, %xmm28
	vxorps	%xmm14, %xmm14, %xmm14
	vxorps	%xmm29, %xmm29, %xmm29
	vxorps	%xmm15, %xmm15, %xmm15
	vxorps	%xmm30, %xmm30, %xmm30
	vxorps	%xmm16, %xmm16, %xmm16
	vxorps	%xmm31, %xmm31, %xmm31
	vxorps	%xmm17, %xmm17, %xmm17
	vxorps	%xmm0, %xmm0, %xmm0
	vxorps	%xmm18, %xmm18, %xmm18
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm19, %xmm19, %xmm19
	vxorps	%xmm21, %xmm21, %xmm21
	vxorps	%xmm7, %xmm7, %xmm7
	vxorps	%xmm6, %xmm6, %xmm6
	.p2align	4
.LBB1_8:
	movq	%r14, %r12
	movq	%rsi, %rbx
	xorl	%ecx, %ecx
	.p2align	4
.LBB1_9:
	movq	$-12, %rax
	movq	%rbx, %r13
	.p2align	4
.LBB1_10:
	vbroadcastss	-36(%r12,%rax), %zmm4
	vmovups	-64(%r13), %zmm3
	vmovups	(%r13), %zmm2
	vbroadcastss	-40(%r12,%rax), %zmm5
	subq	$-128, %r13
	vfmadd231ps	%zmm4, %zmm3, %zmm23
	vfmadd231ps	%zmm4, %zmm2, %zmm9
	vbroadcastss	-28(%r12,%rax), %zmm4
	vfmadd231ps	%zmm5, %zmm3, %zmm22
	vfmadd231ps	%zmm5, %zmm2, %zmm8
	vbroadcastss	-32(%r12,%rax), %zmm5
	vfmadd231ps	%zmm4, %zmm3, %zmm25
	vfmadd231ps	%zmm4, %zmm2, %zmm11
	vbroadcastss	-24(%r12,%rax), %zmm4
	vfmadd231ps	%zmm5, %zmm3, %zmm24
	vfmadd231ps	%zmm5, %zmm2, %zmm10
	vbroadcastss	-12(%r12,%rax), %zmm5
	vfmadd231ps	%zmm4, %zmm3, %zmm26
	vfmadd231ps	%zmm4, %zmm2, %zmm12
	vbroadcastss	-20(%r12,%rax), %zmm4
	vfmadd231ps	%zmm5, %zmm3, %zmm29
	vfmadd231ps	%zmm5, %zmm2, %zmm15
	vbroadcastss	4(%r12,%rax), %zmm5
	vfmadd231ps	%zmm4, %zmm3, %zmm27
	vfmadd231ps	%zmm4, %zmm2, %zmm13
	vbroadcastss	-16(%r12,%rax), %zmm4
	vfmadd231ps	%zmm5, %zmm3, %zmm1
	vfmadd231ps	%zmm5, %zmm2, %zmm19
	vbroadcastss	12(%r12,%rax), %zmm5
	vfmadd231ps	%zmm4, %zmm3, %zmm28
	vfmadd231ps	%zmm4, %zmm2, %zmm14
	vbroadcastss	-8(%r12,%rax), %zmm4
	vfmadd231ps	%zmm3, %zmm5, %zmm20
	vfmadd231ps	%zmm5, %zmm2, %zmm6
	vfmadd231ps	%zmm4, %zmm3, %zmm30
	vfmadd231ps	%zmm4, %zmm2, %zmm16
	vbroadcastss	-4(%r12,%rax), %zmm4
	vfmadd231ps	%zmm4, %zmm3, %zmm31
	vfmadd231ps	%zmm4, %zmm2, %zmm17
	vbroadcastss	(%r12,%rax), %zmm4
	vfmadd231ps	%zmm4, %zmm3, %zmm0
	vfmadd231ps	%zmm4, %zmm2, %zmm18
	vbroadcastss	8(%r12,%rax), %zmm4
	addq	$4, %rax
	vfmadd231ps	%zmm4, %zmm3, %zmm21
	vfmadd231ps	%zmm4, %zmm2, %zmm7
	jne	.LBB1_10
	incq	%rcx
	addq	$384, %rbx
	addq	$232, %r12
	cmpq	$3, %rcx
	jne	.LBB1_9
	incq	%rbp
	addq	$1152, %rsi
	addq	$13456, %r14
	cmpq	$64, %rbp
	jne	.LBB1_8
	vunpcklps	%zmm23, %zmm22, %zmm2
	vunpckhps	%zmm23, %zmm22, %zmm3
	vunpcklps	%zmm25, %zmm24, %zmm4
	vunpckhps	%zmm25, %zmm24, %zmm5
	vunpcklps	%zmm27, %zmm26, %zmm22
	vunpckhps	%zmm27, %zmm26, %zmm23
	vunpcklps	%zmm29, %zmm28, %zmm24
	vunpckhps	%zmm29, %zmm28, %zmm25
	vunpcklps	%zmm1, %zmm0, %zmm28
	vunpcklps	%zmm31, %zmm30, %zmm29
	vunpckhps	%zmm31, %zmm30, %zmm27
	vunpckhps	%zmm1, %zmm0, %zmm0
	vmovaps	.LCPI1_1(%rip), %zmm30
	vmovaps	.LCPI1_2(%rip), %zmm31
	imulq	$56, %r15, %rcx
	incq	%r15
	addq	$56, %r8
	vunpcklpd	%zmm4, %zmm2, %zmm1
	vunpckhpd	%zmm4, %zmm2, %zmm2
	vunpcklpd	%zmm5, %zmm3, %zmm4
	vunpckhpd	%zmm5, %zmm3, %zmm3
	vunpcklpd	%zmm24, %zmm22, %zmm5
	vunpckhpd	%zmm24, %zmm22, %zmm22
	vunpcklpd	%zmm25, %zmm23, %zmm24
	vunpckhpd	%zmm25, %zmm23, %zmm23
	vunpcklpd	%zmm28, %zmm29, %zmm25
	vunpckhpd	%zmm28, %zmm29, %zmm26
	vmovaps	.LCPI1_0(%rip), %zmm29
	vunpcklpd	%zmm0, %zmm27, %zmm28
	vunpckhpd	%zmm0, %zmm27, %zmm0
	vmovaps	%zmm20, %zmm27
	vpermt2ps	%zmm21, %zmm29, %zmm27
	vmovaps	%zmm20, %zmm29
	vpermt2ps	%zmm21, %zmm30, %zmm29
	vmovaps	%zmm20, %zmm30
	vpermt2ps	%zmm21, %zmm31, %zmm30
	vmovaps	.LCPI1_3(%rip), %zmm31
	vpermt2ps	%zmm21, %zmm31, %zmm20
	vshuff64x2	$136, %zmm5, %zmm1, %zmm21
	vshuff64x2	$221, %zmm5, %zmm1, %zmm1
	vshuff64x2	$136, %zmm24, %zmm4, %zmm5
	vshuff64x2	$221, %zmm24, %zmm4, %zmm4
	vshuff64x2	$136, %zmm22, %zmm2, %zmm24
	vshuff64x2	$221, %zmm22, %zmm2, %zmm2
	vshuff64x2	$136, %zmm23, %zmm3, %zmm22
	vshuff64x2	$221, %zmm23, %zmm3, %zmm3
	vshuff64x2	$136, %zmm27, %zmm25, %zmm23
	vshuff64x2	$221, %zmm27, %zmm25, %zmm25
	vshuff64x2	$136, %zmm30, %zmm28, %zmm27
	vshuff64x2	$221, %zmm30, %zmm28, %zmm28
	vshuff64x2	$136, %zmm29, %zmm26, %zmm30
	vshuff64x2	$221, %zmm29, %zmm26, %zmm26
	vshuff64x2	$136, %zmm23, %zmm21, %zmm31
	vaddps	2032(%rsp), %zmm31, %zmm31
	vshuff64x2	$221, %zmm23, %zmm21, %zmm21
	vshuff64x2	$136, %zmm27, %zmm5, %zmm23
	vaddps	1904(%rsp), %zmm23, %zmm23
	vaddps	1520(%rsp), %zmm21, %zmm21
	vshuff64x2	$136, %zmm20, %zmm0, %zmm29
	vshuff64x2	$221, %zmm20, %zmm0, %zmm20
	vshuff64x2	$221, %zmm27, %zmm5, %zmm0
	vshuff64x2	$136, %zmm30, %zmm24, %zmm5
	vaddps	1968(%rsp), %zmm5, %zmm5
	vshuff64x2	$221, %zmm30, %zmm24, %zmm24
	vxorpd	%xmm30, %xmm30, %xmm30
	vaddps	1392(%rsp), %zmm0, %zmm0
	vshuff64x2	$136, %zmm29, %zmm22, %zmm27
	vshuff64x2	$221, %zmm29, %zmm22, %zmm22
	vshuff64x2	$136, %zmm25, %zmm1, %zmm29
	vshuff64x2	$221, %zmm25, %zmm1, %zmm1
	vshuff64x2	$136, %zmm28, %zmm4, %zmm25
	vshuff64x2	$221, %zmm28, %zmm4, %zmm4
	vshuff64x2	$136, %zmm26, %zmm2, %zmm28
	vshuff64x2	$221, %zmm26, %zmm2, %zmm2
	vshuff64x2	$136, %zmm20, %zmm3, %zmm26
	vshuff64x2	$221, %zmm20, %zmm3, %zmm3
	vaddps	1264(%rsp), %zmm1, %zmm1
	vaddps	1136(%rsp), %zmm4, %zmm4
	vcmpltps	%zmm31, %zmm30, %k2
	vmovaps	%zmm31, %zmm20 {%k2} {z}
	vmovups	%zmm20, (%r11,%rcx) {%k1}
	vaddps	1840(%rsp), %zmm27, %zmm20
	vcmpltps	%zmm5, %zmm30, %k2
	vmovaps	%zmm5, %zmm5 {%k2} {z}
	vcmpltps	%zmm23, %zmm30, %k2
	vmovups	%zmm5, 12544(%r11,%rcx) {%k1}
	vmovaps	%zmm23, %zmm5 {%k2} {z}
	vaddps	1776(%rsp), %zmm29, %zmm23
	vmovups	%zmm5, 25088(%r11,%rcx) {%k1}
	vcmpltps	%zmm20, %zmm30, %k2
	vmovaps	%zmm20, %zmm5 {%k2} {z}
	vaddps	1712(%rsp), %zmm28, %zmm20
	vmovups	%zmm5, 37632(%r11,%rcx) {%k1}
	vcmpltps	%zmm23, %zmm30, %k2
	vmovaps	%zmm23, %zmm5 {%k2} {z}
	vaddps	1648(%rsp), %zmm25, %zmm23
	vmovups	%zmm5, 50176(%r11,%rcx) {%k1}
	vcmpltps	%zmm20, %zmm30, %k2
	vmovaps	%zmm20, %zmm5 {%k2} {z}
	vaddps	1584(%rsp), %zmm26, %zmm20
	vmovups	%zmm5, 62720(%r11,%rcx) {%k1}
	vcmpltps	%zmm23, %zmm30, %k2
	vmovaps	%zmm23, %zmm5 {%k2} {z}
	vmovups	%zmm5, 75264(%r11,%rcx) {%k1}
	vcmpltps	%zmm20, %zmm30, %k2
	vmovaps	%zmm20, %zmm5 {%k2} {z}
	vaddps	1456(%rsp), %zmm24, %zmm20
	vcmpltps	%zmm21, %zmm30, %k2
	vmovups	%zmm5, 87808(%r11,%rcx) {%k1}
	vmovaps	%zmm21, %zmm5 {%k2} {z}
	vmovups	%zmm5, 100352(%r11,%rcx) {%k1}
	vcmpltps	%zmm20, %zmm30, %k2
	vmovaps	%zmm20, %zmm5 {%k2} {z}
	vmovups	%zmm5, 112896(%r11,%rcx) {%k1}
	vaddps	1328(%rsp), %zmm22, %zmm5
	vcmpltps	%zmm0, %zmm30, %k2
	vunpcklps	%zmm11, %zmm10, %zmm20
	vmovaps	%zmm0, %zmm0 {%k2} {z}
	vmovups	%zmm0, 125440(%r11,%rcx) {%k1}
	vcmpltps	%zmm5, %zmm30, %k2
	vmovaps	%zmm5, %zmm0 {%k2} {z}
	vcmpltps	%zmm1, %zmm30, %k2
	vmovups	%zmm0, 137984(%r11,%rcx) {%k1}
	vunpckhps	%zmm13, %zmm12, %zmm5
	vmovaps	%zmm1, %zmm0 {%k2} {z}
	vaddps	1200(%rsp), %zmm2, %zmm1
	vaddps	1072(%rsp), %zmm3, %zmm2
	vmovups	%zmm0, 150528(%r11,%rcx) {%k1}
	vunpckhps	%zmm11, %zmm10, %zmm3
	vunpckhps	%zmm17, %zmm16, %zmm11
	vcmpltps	%zmm1, %zmm30, %k2
	vmovaps	%zmm1, %zmm1 {%k2} {z}
	vcmpltps	%zmm4, %zmm30, %k2
	vmovups	%zmm1, 163072(%r11,%rcx) {%k1}
	vunpckhps	%zmm9, %zmm8, %zmm1
	vmovaps	%zmm4, %zmm0 {%k2} {z}
	vcmpltps	%zmm2, %zmm30, %k2
	vunpcklps	%zmm13, %zmm12, %zmm4
	vmovups	%zmm0, 175616(%r11,%rcx) {%k1}
	vunpcklps	%zmm19, %zmm18, %zmm12
	vunpckhps	%zmm19, %zmm18, %zmm13
	vmovaps	.LCPI1_2(%rip), %zmm19
	vmovaps	.LCPI1_3(%rip), %zmm18
	vmovaps	%zmm2, %zmm0 {%k2} {z}
	vmovups	%zmm0, 188160(%r11,%rcx) {%k1}
	vunpcklps	%zmm9, %zmm8, %zmm0
	vunpcklps	%zmm15, %zmm14, %zmm8
	vunpckhps	%zmm15, %zmm14, %zmm9
	vunpcklps	%zmm17, %zmm16, %zmm15
	vunpcklpd	%zmm3, %zmm1, %zmm2
	vunpckhpd	%zmm3, %zmm1, %zmm1
	vmovaps	.LCPI1_1(%rip), %zmm16
	vunpcklpd	%zmm8, %zmm4, %zmm3
	vunpckhpd	%zmm8, %zmm4, %zmm4
	vunpcklpd	%zmm9, %zmm5, %zmm8
	vunpckhpd	%zmm9, %zmm5, %zmm5
	vunpcklpd	%zmm12, %zmm15, %zmm9
	vunpckhpd	%zmm12, %zmm15, %zmm10
	vmovaps	.LCPI1_0(%rip), %zmm15
	vunpcklpd	%zmm13, %zmm11, %zmm12
	vunpckhpd	%zmm13, %zmm11, %zmm11
	vmovaps	%zmm6, %zmm13
	vunpcklpd	%zmm20, %zmm0, %zmm14
	vunpckhpd	%zmm20, %zmm0, %zmm0
	vshuff64x2	$136, %zmm5, %zmm1, %zmm17
	vshuff64x2	$221, %zmm5, %zmm1, %zmm5
	vpermt2ps	%zmm7, %zmm15, %zmm13
	vmovaps	%zmm6, %zmm15
	vpermt2ps	%zmm7, %zmm16, %zmm15
	vmovaps	%zmm6, %zmm16
	vpermt2ps	%zmm7, %zmm19, %zmm16
	vpermt2ps	%zmm7, %zmm18, %zmm6
	vshuff64x2	$136, %zmm3, %zmm14, %zmm7
	vshuff64x2	$221, %zmm3, %zmm14, %zmm3
	vshuff64x2	$136, %zmm8, %zmm2, %zmm14
	vshuff64x2	$221, %zmm8, %zmm2, %zmm2
	vshuff64x2	$136, %zmm4, %zmm0, %zmm8
	vshuff64x2	$221, %zmm4, %zmm0, %zmm4
	vshuff64x2	$136, %zmm13, %zmm9, %zmm0
	vshuff64x2	$221, %zmm13, %zmm9, %zmm1
	vshuff64x2	$136, %zmm16, %zmm12, %zmm9
	vshuff64x2	$221, %zmm16, %zmm12, %zmm12
	vshuff64x2	$136, %zmm15, %zmm10, %zmm13
	vshuff64x2	$221, %zmm15, %zmm10, %zmm10
	vshuff64x2	$136, %zmm6, %zmm11, %zmm15
	vshuff64x2	$221, %zmm6, %zmm11, %zmm6
	vshuff64x2	$136, %zmm0, %zmm7, %zmm11
	vshuff64x2	$221, %zmm0, %zmm7, %zmm7
	vshuff64x2	$221, %zmm9, %zmm14, %zmm0
	vshuff64x2	$136, %zmm9, %zmm14, %zmm16
	vshuff64x2	$136, %zmm13, %zmm8, %zmm9
	vshuff64x2	$221, %zmm13, %zmm8, %zmm8
	vshuff64x2	$136, %zmm15, %zmm17, %zmm13
	vshuff64x2	$221, %zmm15, %zmm17, %zmm14
	vshuff64x2	$136, %zmm1, %zmm3, %zmm15
	vshuff64x2	$221, %zmm1, %zmm3, %zmm3
	vshuff64x2	$136, %zmm12, %zmm2, %zmm20
	vshuff64x2	$221, %zmm12, %zmm2, %zmm1
	vaddps	1008(%rsp), %zmm11, %zmm12
	vaddps	944(%rsp), %zmm9, %zmm11
	vaddps	880(%rsp), %zmm16, %zmm9
	vshuff64x2	$136, %zmm6, %zmm5, %zmm18
	vshuff64x2	$221, %zmm6, %zmm5, %zmm5
	vshuff64x2	$136, %zmm10, %zmm4, %zmm19
	vaddps	688(%rsp), %zmm19, %zmm2
	vaddps	496(%rsp), %zmm7, %zmm7
	vaddps	368(%rsp), %zmm0, %zmm0
	vshuff64x2	$221, %zmm10, %zmm4, %zmm4
	vcmpltps	%zmm12, %zmm30, %k2
	vmovaps	%zmm12, %zmm6 {%k2} {z}
	vcmpltps	%zmm11, %zmm30, %k2
	vmovups	%zmm6, 200704(%r11,%rcx) {%k1}
	vmovaps	%zmm11, %zmm6 {%k2} {z}
	vcmpltps	%zmm9, %zmm30, %k2
	vaddps	816(%rsp), %zmm13, %zmm11
	vmovups	%zmm6, 213248(%r11,%rcx) {%k1}
	vmovaps	%zmm9, %zmm6 {%k2} {z}
	vaddps	752(%rsp), %zmm15, %zmm9
	vmovups	%zmm6, 225792(%r11,%rcx) {%k1}
	vcmpltps	%zmm11, %zmm30, %k2
	vmovaps	%zmm11, %zmm6 {%k2} {z}
	vcmpltps	%zmm9, %zmm30, %k2
	vmovups	%zmm6, 238336(%r11,%rcx) {%k1}
	vmovaps	%zmm9, %zmm6 {%k2} {z}
	vaddps	624(%rsp), %zmm20, %zmm9
	vmovups	%zmm6, 250880(%r11,%rcx) {%k1}
	vaddps	560(%rsp), %zmm18, %zmm6
	vcmpltps	%zmm2, %zmm30, %k2
	vmovaps	%zmm2, %zmm2 {%k2} {z}
	vmovups	%zmm2, 263424(%r11,%rcx) {%k1}
	vcmpltps	%zmm9, %zmm30, %k2
	vmovaps	%zmm9, %zmm2 {%k2} {z}
	vcmpltps	%zmm6, %zmm30, %k2
	vmovups	%zmm2, 275968(%r11,%rcx) {%k1}
	vmovaps	%zmm6, %zmm2 {%k2} {z}
	vaddps	432(%rsp), %zmm8, %zmm6
	vcmpltps	%zmm7, %zmm30, %k2
	vmovups	%zmm2, 288512(%r11,%rcx) {%k1}
	vmovaps	%zmm7, %zmm2 {%k2} {z}
	vmovups	%zmm2, 301056(%r11,%rcx) {%k1}
	vcmpltps	%zmm6, %zmm30, %k2
	vmovaps	%zmm6, %zmm2 {%k2} {z}
	vaddps	304(%rsp), %zmm14, %zmm6
	vmovups	%zmm2, 313600(%r11,%rcx) {%k1}
	vaddps	240(%rsp), %zmm3, %zmm2
	vcmpltps	%zmm0, %zmm30, %k2
	vaddps	176(%rsp), %zmm4, %zmm3
	vmovaps	%zmm0, %zmm0 {%k2} {z}
	vmovups	%zmm0, 326144(%r11,%rcx) {%k1}
	vcmpltps	%zmm6, %zmm30, %k2
	vmovaps	%zmm6, %zmm0 {%k2} {z}
	vcmpltps	%zmm2, %zmm30, %k2
	vmovups	%zmm0, 338688(%r11,%rcx) {%k1}
	vmovaps	%zmm2, %zmm0 {%k2} {z}
	vaddps	112(%rsp), %zmm1, %zmm2
	vaddps	48(%rsp), %zmm5, %zmm1
	vcmpltps	%zmm3, %zmm30, %k2
	vmovups	%zmm0, 351232(%r11,%rcx) {%k1}
	vmovaps	%zmm3, %zmm0 {%k2} {z}
	vmovups	%zmm0, 363776(%r11,%rcx) {%k1}
	vcmpltps	%zmm2, %zmm30, %k2
	vmovaps	%zmm2, %zmm0 {%k2} {z}
	vcmpltps	%zmm1, %zmm30, %k2
	vmovups	%zmm0, 376320(%r11,%rcx) {%k1}
	vmovaps	%zmm1, %zmm0 {%k2} {z}
	vmovups	%zmm0, 388864(%r11,%rcx) {%k1}
	cmpq	$4, %r15
	jne	.LBB1_7
	movl	$1, %eax
	testb	$1, %r10b
	movl	$0, %r10d
	jne	.LBB1_6
	movq	24(%rsp), %r8
	addq	$232, %rdi
	incq	%r8
	cmpq	16(%rsp), %r8
	jne	.LBB1_5
.LBB1_16:
	addq	$2104, %rsp
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
	movq	%rsi, %r13
	movq	%rdi, %r12
	movl	$64, %edi
	movl	$861184, %esi
	movq	%rcx, %r14
	movq	%rdx, %r15
	callq	aligned_alloc@PLT
	movq	%rax, %rbx
	testq	%rax, %rax
	je	.LBB2_1
	leaq	default_function_parallel_0(%rip), %rdi
	leaq	64(%rsp), %rsi
	movq	$0, 64(%rsp)
	movq	$64, 72(%rsp)
	movl	$0, 80(%rsp)
	movq	%r12, 88(%rsp)
	movq	%rbx, 96(%rsp)
	xorl	%r12d, %r12d
	xorl	%edx, %edx
	xorl	%ecx, %ecx
	callq	GOMP_parallel@PLT
	leaq	default_function_parallel_1(%rip), %rdi
	movq	$0, (%rsp)
	movq	$56, 8(%rsp)
	movl	$0, 16(%rsp)
	movq	%rbx, 24(%rsp)
	movq	%r13, 32(%rsp)
	movq	%r15, 40(%rsp)
	movq	%r14, 48(%rsp)
	movq	%rsp, %rsi
	xorl	%edx, %edx
	xorl	%ecx, %ecx
	callq	GOMP_parallel@PLT
	jmp	.LBB2_3
.LBB2_1:
	movl	$1, %r12d
.LBB2_3:
	movq	%rbx, %rdi
	callq	free@PLT
	movl	%r12d, %eax
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
