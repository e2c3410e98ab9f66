/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * PTX vocabulary
 *
 * The closed sets from which a parsed instruction is made: opcodes, types and
 * what the dot-separated modifiers of an opcode mean. Values are dense and start
 * at 0 with "not written" where a modifier may be absent. The lists are X-macros
 * so that the spelling used in messages is the one the parser accepts.
 */

/*
 * Families of opcodes, each lowered by one function. Opcodes of ARITHMETIC are real or
 * integer by their type; a HINT is no operation.
 */
enum ptx_family {
	PTX_FAMILY_NONE, /* of PTX_OP_UNSUPPORTED */
	PTX_FAMILY_ARITHMETIC,
	PTX_FAMILY_INTEGER,
	PTX_FAMILY_REAL,
	PTX_FAMILY_COMPARE,
	PTX_FAMILY_CONVERT,
	PTX_FAMILY_MEMORY,
	PTX_FAMILY_TEXTURE,
	PTX_FAMILY_WARP,
	PTX_FAMILY_MATRIX,
	PTX_FAMILY_CONTROL,
	PTX_FAMILY_CALL,
	PTX_FAMILY_STACK,
	PTX_FAMILY_VIDEO,
	PTX_FAMILY_ASYNC,
	PTX_FAMILY_HINT,
	_PTX_FAMILY_N,
};

/*
 * Opcodes that are decoded in full, with the operands each one has, in the order
 * of ptx_body.operands. The parser fills every position, an operand that may be
 * left out and was left out has kind PTX_OPERAND_NONE:
 *
 *	d	destination register, or NONE for the sink `_`
 *	D	destination: register, sink or vector
 *	q	predicate after `|`, or NONE
 *	s	source: register, immediate, special register, symbol
 *	S	source: as s, or vector
 *	n, N	as s and S, or a negated predicate
 *	p	predicate source: register or immediate, possibly negated
 *	a	address: ADDRESS_REG, ADDRESS_SYMBOL, ADDRESS_ELEMENT or
 *		ADDRESS_INT
 *	A	address, or source
 *	l	label
 *	b	branch table (label list)
 *	M	address, or map of a tensor with coordinates: 2 places
 *	t	texture or surface: its address, a sampler or NONE, coordinates: 3 places
 *	x	destination register, or parts of it: see PTX_PARTS_*
 *	y	source register, possibly negated, or parts of it; or an immediate
 *	?	all that follow may be missing
 *
 * An opcode of several words is one where the later ones make another instruction of it.
 * Cache policies (the operand of .L2::cache_hint) and cache modifiers are dropped.
 *
 * X(enumerator, spelling, operands, family)
 */
/* clang-format off */
#define PTX_OPS(X) \
	X(ABS, "abs", "ds", ARITHMETIC) \
	X(ACTIVEMASK, "activemask", "d", WARP) \
	X(ADD, "add", "dss", ARITHMETIC) \
	X(ADDC, "addc", "dss", INTEGER) \
	X(ALLOCA, "alloca", "ds?s", STACK) /* last: alignment */ \
	X(AND, "and", "dnn", INTEGER) \
	X(APPLYPRIORITY, "applypriority", "as", HINT) \
	X(ATOM, "atom", "DaS?s", MEMORY) /* last: the new value of cas */ \
	X(BAR, "bar", "dssp", CONTROL) /* see PTX_MODE_BAR_* below */ \
	X(BARRIER, "barrier", "dssp", CONTROL) /* bar, of threads that diverge */ \
	X(BARRIER_CLUSTER, "barrier.cluster", "", CONTROL) \
	X(BFE, "bfe", "dsss", INTEGER) \
	X(BFI, "bfi", "dssss", INTEGER) \
	X(BFIND, "bfind", "ds", INTEGER) \
	X(BMSK, "bmsk", "dss", INTEGER) \
	X(BRA, "bra", "l", CONTROL) \
	X(BREV, "brev", "ds", INTEGER) \
	X(BRKPT, "brkpt", "", CONTROL) \
	X(BRX, "brx", "sb", CONTROL) /* index, table */ \
	X(CALL, "call", "call", CALL) /* see struct ptx_instr */ \
	X(CLUSTERLAUNCHCONTROL_QUERY_CANCEL, "clusterlaunchcontrol.query_cancel", "Ds", \
		ASYNC) \
	X(CLUSTERLAUNCHCONTROL_TRY_CANCEL, "clusterlaunchcontrol.try_cancel", "aa", \
		ASYNC) /* answer, barrier */ \
	X(CLZ, "clz", "ds", INTEGER) \
	X(CNOT, "cnot", "ds", INTEGER) \
	X(COPYSIGN, "copysign", "dss", REAL) \
	X(COS, "cos", "ds", REAL) \
	X(CP_ASYNC, "cp.async", "aas?ss", ASYNC) /* to, from, bytes, bytes of these */ \
	X(CP_ASYNC_BULK, "cp.async.bulk", "aas?As", ASYNC) /* last: barrier */ \
	X(CP_ASYNC_BULK_COMMIT_GROUP, "cp.async.bulk.commit_group", "", HINT) \
	X(CP_ASYNC_BULK_PREFETCH, "cp.async.bulk.prefetch", "as", HINT) \
	X(CP_ASYNC_BULK_PREFETCH_TENSOR, "cp.async.bulk.prefetch.tensor", "M?SS", HINT) \
	X(CP_ASYNC_BULK_TENSOR, "cp.async.bulk.tensor", "MM?ASS", ASYNC) /* to, from */ \
	X(CP_ASYNC_BULK_WAIT_GROUP, "cp.async.bulk.wait_group", "s", HINT) \
	X(CP_ASYNC_COMMIT_GROUP, "cp.async.commit_group", "", HINT) \
	X(CP_ASYNC_MBARRIER, "cp.async.mbarrier", "a", ASYNC) \
	X(CP_ASYNC_WAIT_ALL, "cp.async.wait_all", "", HINT) \
	X(CP_ASYNC_WAIT_GROUP, "cp.async.wait_group", "s", HINT) \
	X(CP_REDUCE_ASYNC_BULK, "cp.reduce.async.bulk", "aas?As", ASYNC) \
	X(CP_REDUCE_ASYNC_BULK_TENSOR, "cp.reduce.async.bulk.tensor", "Ma?s", ASYNC) \
	X(CREATEPOLICY, "createpolicy", "d?Ass", MEMORY) \
	X(CVT, "cvt", "ds?ss", CONVERT) /* types: destination, source; .pack has more */ \
	X(CVTA, "cvta", "ds", CONVERT) \
	X(DISCARD, "discard", "as", HINT) \
	X(DIV, "div", "dss", ARITHMETIC) \
	X(DP2A, "dp2a", "dsss", INTEGER) \
	X(DP4A, "dp4a", "dsss", INTEGER) \
	X(ELECT, "elect", "dqs", WARP) \
	X(EX2, "ex2", "ds", REAL) \
	X(EXIT, "exit", "", CONTROL) \
	X(FENCE, "fence", "?as", MEMORY) \
	X(FMA, "fma", "dsss", REAL) \
	X(FNS, "fns", "dsss", INTEGER) \
	X(GETCTARANK, "getctarank", "ds", CONTROL) \
	X(GRIDDEPCONTROL, "griddepcontrol", "", HINT) \
	X(ISSPACEP, "isspacep", "ds", MEMORY) \
	X(ISTYPEP, "istypep", "ds", MEMORY) \
	X(LD, "ld", "Da", MEMORY) \
	X(LDMATRIX, "ldmatrix", "Da", MATRIX) \
	X(LDU, "ldu", "Da", MEMORY) \
	X(LG2, "lg2", "ds", REAL) \
	X(LOP3, "lop3", "dqssss?p", INTEGER) /* last: source of the .BoolOp form */ \
	X(MAD, "mad", "dsss", ARITHMETIC) \
	X(MAD24, "mad24", "dsss", INTEGER) \
	X(MADC, "madc", "dsss", INTEGER) \
	X(MAPA, "mapa", "dss", CONTROL) \
	X(MATCH, "match", "dqss", WARP) \
	X(MAX, "max", "dss?s", ARITHMETIC) \
	X(MBARRIER_ARRIVE, "mbarrier.arrive", "da?s", ASYNC) /* state, barrier, count */ \
	X(MBARRIER_ARRIVE_DROP, "mbarrier.arrive_drop", "da?s", ASYNC) \
	X(MBARRIER_COMPLETE_TX, "mbarrier.complete_tx", "as", ASYNC) \
	X(MBARRIER_EXPECT_TX, "mbarrier.expect_tx", "as", ASYNC) \
	X(MBARRIER_INIT, "mbarrier.init", "as", ASYNC) \
	X(MBARRIER_INVAL, "mbarrier.inval", "a", ASYNC) \
	X(MBARRIER_PENDING_COUNT, "mbarrier.pending_count", "ds", ASYNC) \
	X(MBARRIER_TEST_WAIT, "mbarrier.test_wait", "das", ASYNC) /* state or parity */ \
	X(MBARRIER_TRY_WAIT, "mbarrier.try_wait", "das?s", ASYNC) /* last: time limit */ \
	X(MEMBAR, "membar", "", MEMORY) \
	X(MIN, "min", "dss?s", ARITHMETIC) \
	X(MMA, "mma", "DSSS", MATRIX) /* types: d, a, b, c */ \
	X(MMA_SP, "mma.sp", "DSSSss", MATRIX) /* last: metadata, selector */ \
	X(MMA_SP_ORDERED, "mma.sp::ordered_metadata", "DSSSss", MATRIX) \
	X(MOV, "mov", "DN", INTEGER) \
	X(MOVMATRIX, "movmatrix", "ds", MATRIX) \
	X(MUL, "mul", "dss", ARITHMETIC) \
	X(MUL24, "mul24", "dss", INTEGER) \
	X(NANOSLEEP, "nanosleep", "s", CONTROL) \
	X(NEG, "neg", "ds", ARITHMETIC) \
	X(NOT, "not", "dn", INTEGER) \
	X(OR, "or", "dnn", INTEGER) \
	X(PMEVENT, "pmevent", "s", HINT) \
	X(POPC, "popc", "ds", INTEGER) \
	X(PREFETCH, "prefetch", "a", HINT) \
	X(PREFETCHU, "prefetchu", "a", HINT) \
	X(PRMT, "prmt", "dsss", INTEGER) \
	X(RCP, "rcp", "ds", REAL) \
	X(RED, "red", "aS", MEMORY) \
	X(RED_ASYNC, "red.async", "as?a", MEMORY) /* last: barrier */ \
	X(REDUX, "redux", "dss", WARP) \
	X(REM, "rem", "dss", INTEGER) \
	X(RET, "ret", "", CONTROL) \
	X(RSQRT, "rsqrt", "ds", REAL) \
	X(SAD, "sad", "dsss", INTEGER) \
	X(SELP, "selp", "dssp", COMPARE) \
	X(SET, "set", "dss?p", COMPARE) /* types: destination, source */ \
	X(SETMAXNREG, "setmaxnreg", "s", HINT) \
	X(SETP, "setp", "dqss?p", COMPARE) \
	X(SHF, "shf", "dsss", INTEGER) \
	X(SHFL, "shfl", "dqsss?s", WARP) /* last: membermask of the .sync form */ \
	X(SHL, "shl", "dss", INTEGER) \
	X(SHR, "shr", "dss", INTEGER) \
	X(SIN, "sin", "ds", REAL) \
	X(SLCT, "slct", "dsss", COMPARE) /* types: a and b, c */ \
	X(SQRT, "sqrt", "ds", REAL) \
	X(ST, "st", "aS", MEMORY) \
	X(ST_ASYNC, "st.async", "aS?a", MEMORY) /* last: barrier */ \
	X(ST_BULK, "st.bulk", "ass", MEMORY) /* bytes, the value 0 */ \
	X(STACKRESTORE, "stackrestore", "s", STACK) \
	X(STACKSAVE, "stacksave", "d", STACK) \
	X(STMATRIX, "stmatrix", "aS", MATRIX) \
	X(SUB, "sub", "dss", ARITHMETIC) \
	X(SUBC, "subc", "dss", INTEGER) \
	X(SULD, "suld", "Dt", TEXTURE) \
	X(SUQ, "suq", "da", TEXTURE) \
	X(SURED, "sured", "tS", TEXTURE) \
	X(SUST, "sust", "tS", TEXTURE) \
	X(SZEXT, "szext", "dss", INTEGER) \
	X(TANH, "tanh", "ds", REAL) \
	X(TENSORMAP_CP_FENCEPROXY, "tensormap.cp_fenceproxy", "aas", ASYNC) \
	X(TENSORMAP_REPLACE, "tensormap.replace", "as?s", ASYNC) /* number, value */ \
	X(TESTP, "testp", "ds", COMPARE) \
	X(TEX, "tex", "Dqt?SSSS", TEXTURE) \
	X(TLD4, "tld4", "Dqt?SS", TEXTURE) \
	X(TRAP, "trap", "", CONTROL) \
	X(TXQ, "txq", "da?s", TEXTURE) \
	X(VABSDIFF, "vabsdiff", "xyy?s", VIDEO) /* d, a, b; with atom, its on c */ \
	X(VABSDIFF2, "vabsdiff2", "xyys", VIDEO) \
	X(VABSDIFF4, "vabsdiff4", "xyys", VIDEO) \
	X(VADD, "vadd", "xyy?s", VIDEO) \
	X(VADD2, "vadd2", "xyys", VIDEO) \
	X(VADD4, "vadd4", "xyys", VIDEO) \
	X(VAVRG2, "vavrg2", "xyys", VIDEO) \
	X(VAVRG4, "vavrg4", "xyys", VIDEO) \
	X(VMAD, "vmad", "dyyy", VIDEO) \
	X(VMAX, "vmax", "xyy?s", VIDEO) \
	X(VMAX2, "vmax2", "xyys", VIDEO) \
	X(VMAX4, "vmax4", "xyys", VIDEO) \
	X(VMIN, "vmin", "xyy?s", VIDEO) \
	X(VMIN2, "vmin2", "xyys", VIDEO) \
	X(VMIN4, "vmin4", "xyys", VIDEO) \
	X(VOTE, "vote", "dp?s", WARP) /* last: membermask of the .sync form */ \
	X(VSET, "vset", "xyy?s", VIDEO) /* types: a, b */ \
	X(VSET2, "vset2", "xyys", VIDEO) \
	X(VSET4, "vset4", "xyys", VIDEO) \
	X(VSHL, "vshl", "xyy?s", VIDEO) \
	X(VSHR, "vshr", "xyy?s", VIDEO) \
	X(VSUB, "vsub", "xyy?s", VIDEO) \
	X(VSUB2, "vsub2", "xyys", VIDEO) \
	X(VSUB4, "vsub4", "xyys", VIDEO) \
	X(WMMA_LOAD, "wmma.load", "Da?s", MATRIX) /* last: stride */ \
	X(WMMA_MMA, "wmma.mma", "DSSS", MATRIX) /* types: as mma, or of d and c */ \
	X(WMMA_STORE, "wmma.store", "aS?s", MATRIX) \
	X(XOR, "xor", "dnn", INTEGER)
/* clang-format on */

/*
 * The parts of a register that a video instruction names, in ptx_operand.imm: their
 * kind, how many, and the number of each in 4 bits, the highest first. 0: all of it.
 */
#define PTX_PARTS_BYTES 0x100000
#define PTX_PARTS_HALVES 0x200000
#define PTX_PARTS_COUNT_SHIFT 16 /* 3 bits: 1 to 4 */

enum ptx_op {
	/* A known instruction that is not decoded: only ptx_instr.name identifies it. */
	PTX_OP_UNSUPPORTED,
#define PTX_OP_ENUM(_name, _text, _operands, _family) PTX_OP_##_name,
	PTX_OPS(PTX_OP_ENUM)
#undef PTX_OP_ENUM
		_PTX_OP_N,
};

/* X(enumerator, spelling, size in bytes) */
#define PTX_TYPES(X)                                                                     \
	X(B8, "b8", 1)                                                                   \
	X(B16, "b16", 2)                                                                 \
	X(B32, "b32", 4)                                                                 \
	X(B64, "b64", 8)                                                                 \
	X(B128, "b128", 16)                                                              \
	X(U8, "u8", 1)                                                                   \
	X(U16, "u16", 2)                                                                 \
	X(U32, "u32", 4)                                                                 \
	X(U64, "u64", 8)                                                                 \
	X(S8, "s8", 1)                                                                   \
	X(S16, "s16", 2)                                                                 \
	X(S32, "s32", 4)                                                                 \
	X(S64, "s64", 8)                                                                 \
	X(U16X2, "u16x2", 4)                                                             \
	X(S16X2, "s16x2", 4)                                                             \
	X(F16, "f16", 2)                                                                 \
	X(F16X2, "f16x2", 4)                                                             \
	X(BF16, "bf16", 2)                                                               \
	X(BF16X2, "bf16x2", 4)                                                           \
	X(TF32, "tf32", 4)                                                               \
	X(F32, "f32", 4)                                                                 \
	X(F32X2, "f32x2", 8)                                                             \
	X(F64, "f64", 8)                                                                 \
	X(E4M3X2, "e4m3x2", 2)                                                           \
	X(E5M2X2, "e5m2x2", 2)                                                           \
	X(PRED, "pred", 1)                                                               \
	X(TEXREF, "texref", 8)                                                           \
	X(SAMPLERREF, "samplerref", 8)                                                   \
	X(SURFREF, "surfref", 8)                                                         \
	X(U2, "u2", 1) /* from here: of instructions alone */                            \
	X(U4, "u4", 1)                                                                   \
	X(S2, "s2", 1)                                                                   \
	X(S4, "s4", 1)                                                                   \
	X(B1, "b1", 1)                                                                   \
	X(E4M3, "e4m3", 1)                                                               \
	X(E5M2, "e5m2", 1)                                                               \
	X(E2M3, "e2m3", 1)                                                               \
	X(E3M2, "e3m2", 1)                                                               \
	X(E2M1, "e2m1", 1)                                                               \
	X(UE8M0, "ue8m0", 1)                                                             \
	X(E2M3X2, "e2m3x2", 2)                                                           \
	X(E3M2X2, "e3m2x2", 2)                                                           \
	X(E2M1X2, "e2m1x2", 1)                                                           \
	X(UE8M0X2, "ue8m0x2", 2)                                                         \
	X(B8X16, "b8x16", 1) /* of ldmatrix */                                           \
	X(B6X16_P32, "b6x16_p32", 1)                                                     \
	X(B4X16_P64, "b4x16_p64", 1)

enum ptx_type {
	PTX_TYPE_NONE,
#define PTX_TYPE_ENUM(_name, _text, _size) PTX_TYPE_##_name,
	PTX_TYPES(PTX_TYPE_ENUM)
#undef PTX_TYPE_ENUM
		_PTX_TYPE_N,
};

/* State space; NONE is generic addressing. Sub-spaces (`::cta`) are folded in. */
enum ptx_space {
	PTX_SPACE_NONE,
	PTX_SPACE_REG,
	PTX_SPACE_CONST,
	PTX_SPACE_GLOBAL,
	PTX_SPACE_LOCAL,
	PTX_SPACE_PARAM, /* entry or function parameter, according to the operand's symbol
			  */
	PTX_SPACE_SHARED,
	PTX_SPACE_SHARED_CLUSTER,
	PTX_SPACE_TEX,
	_PTX_SPACE_N,
};

enum ptx_round {
	PTX_ROUND_NONE,
	PTX_ROUND_RN,
	PTX_ROUND_RZ,
	PTX_ROUND_RM,
	PTX_ROUND_RP,
	PTX_ROUND_RNA,
	PTX_ROUND_RNI, /* these four round to an integral value */
	PTX_ROUND_RZI,
	PTX_ROUND_RMI,
	PTX_ROUND_RPI,
	_PTX_ROUND_N,
};

enum ptx_approx {
	PTX_APPROX_NONE,
	PTX_APPROX_APPROX,
	PTX_APPROX_FULL,
	_PTX_APPROX_N,
};

/* setp and set; the U forms are true for NaN, LO to HS compare unsigned. */
enum ptx_cmp {
	PTX_CMP_NONE,
	PTX_CMP_EQ,
	PTX_CMP_NE,
	PTX_CMP_LT,
	PTX_CMP_LE,
	PTX_CMP_GT,
	PTX_CMP_GE,
	PTX_CMP_LO,
	PTX_CMP_LS,
	PTX_CMP_HI,
	PTX_CMP_HS,
	PTX_CMP_EQU,
	PTX_CMP_NEU,
	PTX_CMP_LTU,
	PTX_CMP_LEU,
	PTX_CMP_GTU,
	PTX_CMP_GEU,
	PTX_CMP_NUM,
	PTX_CMP_NAN,
	_PTX_CMP_N,
};

/* How setp, set and lop3 combine their result with a predicate source. */
enum ptx_bool {
	PTX_BOOL_NONE,
	PTX_BOOL_AND,
	PTX_BOOL_OR,
	PTX_BOOL_XOR,
	_PTX_BOOL_N,
};

enum ptx_mul {
	PTX_MUL_NONE,
	PTX_MUL_LO,
	PTX_MUL_HI,
	PTX_MUL_WIDE,
	_PTX_MUL_N,
};

/* Memory order of ld, st, atom, red and fence. */
enum ptx_sem {
	PTX_SEM_NONE,
	PTX_SEM_WEAK,
	PTX_SEM_VOLATILE,
	PTX_SEM_RELAXED,
	PTX_SEM_ACQUIRE,
	PTX_SEM_RELEASE,
	PTX_SEM_ACQ_REL,
	PTX_SEM_SC,
	PTX_SEM_MMIO,
	_PTX_SEM_N,
};

/* membar.gl is written as GPU. */
enum ptx_scope {
	PTX_SCOPE_NONE,
	PTX_SCOPE_CTA,
	PTX_SCOPE_CLUSTER,
	PTX_SCOPE_GPU,
	PTX_SCOPE_SYS,
	_PTX_SCOPE_N,
};

/* The operation of atom, red, redux and bar.red. */
enum ptx_atom {
	PTX_ATOM_NONE,
	PTX_ATOM_ADD,
	PTX_ATOM_MIN,
	PTX_ATOM_MAX,
	PTX_ATOM_INC,
	PTX_ATOM_DEC,
	PTX_ATOM_AND,
	PTX_ATOM_OR,
	PTX_ATOM_XOR,
	PTX_ATOM_EXCH,
	PTX_ATOM_CAS,
	PTX_ATOM_POPC,
	_PTX_ATOM_N,
};

/*
 * The variant of an instruction that is a family. bar and barrier, operands
 * (d, id, count, p), what a form does not have is NONE:
 *
 *	BAR_SYNC	-, id, count or NONE, -
 *	BAR_ARRIVE	-, id, count, -
 *	BAR_RED		d, id, count or NONE, p	atom: AND, OR (predicate) or POPC
 *	BAR_WARP_SYNC	-, membermask, -, -
 */
enum ptx_mode {
	PTX_MODE_NONE,
	PTX_MODE_BAR_SYNC,
	PTX_MODE_BAR_ARRIVE,
	PTX_MODE_BAR_RED,
	PTX_MODE_BAR_WARP_SYNC,
	PTX_MODE_CLUSTER_ARRIVE,
	PTX_MODE_CLUSTER_WAIT,
	PTX_MODE_SHFL_UP,
	PTX_MODE_SHFL_DOWN,
	PTX_MODE_SHFL_BFLY,
	PTX_MODE_SHFL_IDX,
	PTX_MODE_ALL, /* vote and match */
	PTX_MODE_ANY,
	PTX_MODE_UNI,
	PTX_MODE_BALLOT,
	PTX_MODE_PRMT_F4E,
	PTX_MODE_PRMT_B4E,
	PTX_MODE_PRMT_RC8,
	PTX_MODE_PRMT_ECL,
	PTX_MODE_PRMT_ECR,
	PTX_MODE_PRMT_RC16,
	PTX_MODE_SHF_L,
	PTX_MODE_SHF_R,
	PTX_MODE_TESTP_FINITE,
	PTX_MODE_TESTP_INFINITE,
	PTX_MODE_TESTP_NUMBER,
	PTX_MODE_TESTP_NOTANUMBER,
	PTX_MODE_TESTP_NORMAL,
	PTX_MODE_TESTP_SUBNORMAL,
	PTX_MODE_TEX_BASE,
	PTX_MODE_TEX_LEVEL, /* also of txq */
	PTX_MODE_TEX_GRAD,
	PTX_MODE_SHR7, /* vmad */
	PTX_MODE_SHR15,
	PTX_MODE_TLD4_R,
	PTX_MODE_TLD4_G,
	PTX_MODE_TLD4_B,
	PTX_MODE_TLD4_A,
	PTX_MODE_ASYNC_EXPECT_TX, /* mbarrier.arrive: bytes instead of a count */
	PTX_MODE_ASYNC_NO_COMPLETE,
	PTX_MODE_ASYNC_PARITY,	    /* of test_wait and try_wait */
	PTX_MODE_ASYNC_NOINC,	    /* cp.async.mbarrier.arrive counts as an arrival */
	PTX_MODE_ASYNC_COMPLETE_TX, /* cp.async.bulk signals a barrier */
	PTX_MODE_ASYNC_BULK_GROUP,
	PTX_MODE_MATRIX_A, /* wmma.load, wmma.store */
	PTX_MODE_MATRIX_B,
	PTX_MODE_MATRIX_C,
	PTX_MODE_MATRIX_D,
	_PTX_MODE_N,
};

/* The width modifier of shf, bmsk and szext. */
enum ptx_wrap {
	PTX_WRAP_NONE,
	PTX_WRAP_WRAP,
	PTX_WRAP_CLAMP,
	PTX_WRAP_TRAP, /* suld, sust, sured: what is outside of the surface */
	PTX_WRAP_ZERO,
	_PTX_WRAP_N,
};

/* The shape of a texture or surface in tex, suld and their kind. */
enum ptx_geometry {
	PTX_GEOMETRY_NONE,
	PTX_GEOMETRY_1D,
	PTX_GEOMETRY_2D,
	PTX_GEOMETRY_3D,
	PTX_GEOMETRY_A1D,
	PTX_GEOMETRY_A2D,
	PTX_GEOMETRY_CUBE,
	PTX_GEOMETRY_ACUBE,
	PTX_GEOMETRY_2DMS, /* of several samples */
	PTX_GEOMETRY_A2DMS,
	_PTX_GEOMETRY_N,
};

/*
 * The shapes of matrices: rows and columns of the result, and how many products each of
 * its elements is the sum of; 0 where no product is made
 */
#define PTX_SHAPES(X)                                                                    \
	X(8, 8, 0)                                                                       \
	X(8, 16, 0)                                                                      \
	X(16, 8, 0)                                                                      \
	X(16, 16, 0)                                                                     \
	X(8, 8, 4)                                                                       \
	X(8, 8, 16)                                                                      \
	X(8, 8, 32)                                                                      \
	X(8, 8, 128)                                                                     \
	X(16, 8, 4)                                                                      \
	X(16, 8, 8)                                                                      \
	X(16, 8, 16)                                                                     \
	X(16, 8, 32)                                                                     \
	X(16, 8, 64)                                                                     \
	X(16, 8, 128)                                                                    \
	X(16, 8, 256)                                                                    \
	X(16, 16, 8)                                                                     \
	X(16, 16, 16)                                                                    \
	X(32, 8, 16)                                                                     \
	X(8, 32, 16)

enum ptx_shape {
	PTX_SHAPE_NONE,
#define PTX_SHAPE_ENUM(_m, _n, _k) PTX_SHAPE_M##_m##N##_n##K##_k,
	PTX_SHAPES(PTX_SHAPE_ENUM)
#undef PTX_SHAPE_ENUM
		_PTX_SHAPE_N,
};

/* The order of a matrix in memory. */
enum ptx_layout {
	PTX_LAYOUT_NONE,
	PTX_LAYOUT_ROW,
	PTX_LAYOUT_COL,
};

/*
 * The initial value of a .texref or .samplerref. From bit 0 there are two bits for each
 * axis, its address mode by the number of the Driver API.
 */
enum ptx_sampling {
	PTX_SAMPLING_MODES = 0x3f,
	PTX_SAMPLING_LINEAR = 1 << 6,
	PTX_SAMPLING_UNNORMALIZED = 1 << 7, /* coordinates, whatever the texture says */
	PTX_SAMPLING_NORMALIZED = 1 << 8,
	PTX_SAMPLING_GIVEN = 1 << 9, /* there is an initial value */
};

/* The queries of txq and suq. */
enum ptx_query {
	PTX_QUERY_NONE,
	PTX_QUERY_WIDTH,
	PTX_QUERY_HEIGHT,
	PTX_QUERY_DEPTH,
	PTX_QUERY_LAYERS,
	PTX_QUERY_N_LEVELS,
	PTX_QUERY_DATA_TYPE,
	PTX_QUERY_ORDER,
	PTX_QUERY_IS_NORMALIZED,
	PTX_QUERY_FILTER,
	PTX_QUERY_ADDRESS_0,
	PTX_QUERY_ADDRESS_1,
	PTX_QUERY_ADDRESS_2,
	PTX_QUERY_N_SAMPLES,
	PTX_QUERY_IS_LINEAR,
	PTX_QUERY_IS_UNNORMALIZED,
	_PTX_QUERY_N,
};

/* How a tensor is accessed, in the field of enum ptx_geometry. */
enum ptx_tensor {
	PTX_TENSOR_NONE, /* as a tile */
	PTX_TENSOR_TILE,
	PTX_TENSOR_GATHER4,
	PTX_TENSOR_IM2COL,
	PTX_TENSOR_IM2COL_NO_OFFS,
	PTX_TENSOR_IM2COL_W,
	PTX_TENSOR_IM2COL_W_128, /* this and the next one: of other devices */
	PTX_TENSOR_SCATTER4,
};

/* Of clusterlaunchcontrol, in the field of enum ptx_query. */
enum ptx_cancel {
	PTX_CANCEL_NONE,
	PTX_CANCEL_ALL_BLOCKS, /* the answer is for all of the cluster */
	PTX_CANCEL_IS_CANCELED,
	PTX_CANCEL_FIRST, /* from here on: coordinates of the first block */
	PTX_CANCEL_FIRST_X,
	PTX_CANCEL_FIRST_Y,
	PTX_CANCEL_FIRST_Z,
};

/* What of a map tensormap.replace sets, in the field of enum ptx_query. */
enum ptx_field {
	PTX_FIELD_NONE,
	PTX_FIELD_ADDRESS,
	PTX_FIELD_RANK,
	PTX_FIELD_BOX,
	PTX_FIELD_SIZE,
	PTX_FIELD_STRIDE,
	PTX_FIELD_STEP,
	PTX_FIELD_TYPE,
	PTX_FIELD_INTERLEAVE,
	PTX_FIELD_SWIZZLE,
	PTX_FIELD_ATOM,
	PTX_FIELD_FILL,
};

/* Modifiers that are there or not, bits of ptx_instr.flags. */
enum ptx_flag {
	PTX_FLAG_FTZ = 1u << 0,
	PTX_FLAG_SAT = 1u << 1,
	PTX_FLAG_SATFINITE = 1u << 2,
	PTX_FLAG_RELU = 1u << 3,
	PTX_FLAG_CC = 1u << 4,	      /* writes the carry flag: add sub mad and c-forms */
	PTX_FLAG_UNI = 1u << 5,	      /* bra, call, ret */
	PTX_FLAG_SYNC = 1u << 6,      /* shfl, vote, match, redux: has a membermask */
	PTX_FLAG_ALIGNED = 1u << 7,   /* barrier */
	PTX_FLAG_NC = 1u << 8,	      /* ld */
	PTX_FLAG_TO = 1u << 9,	      /* cvta.to: from generic */
	PTX_FLAG_SHIFTAMT = 1u << 10, /* bfind */
	PTX_FLAG_NAN = 1u << 11,      /* min, max: NaN wins; redux */
	PTX_FLAG_XORSIGN = 1u << 12,  /* min, max */
	PTX_FLAG_ABS = 1u << 13,      /* min, max after XORSIGN; redux */
	PTX_FLAG_NOFTZ = 1u << 14,    /* atom, red: always so on the CPU */
	PTX_FLAG_FORMATTED = 1u << 15, /* suld, sust, sured: .p instead of .b */
	PTX_FLAG_PACK = 1u << 16,      /* cvt */
	PTX_FLAG_PLUS_ONE = 1u << 17,  /* vmad.po */
	PTX_FLAG_TRANS = 1u << 18,     /* ldmatrix, stmatrix, movmatrix */
	PTX_FLAG_POPC = 1u << 19,      /* mma of bits */
	PTX_FLAG_MULTICAST = 1u << 20, /* cp.async.bulk: to several blocks */
	PTX_FLAG_CP_MASK = 1u << 21,   /* cp.async.bulk: some bytes of each 16 */
};

/*
 * Special registers. A vector one has a component each; clusters are of one CTA.
 * X(enumerator, spelling, type)
 */
#define PTX_SREGS(X)                                                                     \
	X(TID_X, "tid.x", U32)                                                           \
	X(TID_Y, "tid.y", U32)                                                           \
	X(TID_Z, "tid.z", U32)                                                           \
	X(NTID_X, "ntid.x", U32)                                                         \
	X(NTID_Y, "ntid.y", U32)                                                         \
	X(NTID_Z, "ntid.z", U32)                                                         \
	X(CTAID_X, "ctaid.x", U32)                                                       \
	X(CTAID_Y, "ctaid.y", U32)                                                       \
	X(CTAID_Z, "ctaid.z", U32)                                                       \
	X(NCTAID_X, "nctaid.x", U32)                                                     \
	X(NCTAID_Y, "nctaid.y", U32)                                                     \
	X(NCTAID_Z, "nctaid.z", U32)                                                     \
	X(LANEID, "laneid", U32)                                                         \
	X(WARPID, "warpid", U32)                                                         \
	X(NWARPID, "nwarpid", U32)                                                       \
	X(SMID, "smid", U32)                                                             \
	X(NSMID, "nsmid", U32)                                                           \
	X(GRIDID, "gridid", U64)                                                         \
	X(LANEMASK_EQ, "lanemask_eq", U32)                                               \
	X(LANEMASK_LE, "lanemask_le", U32)                                               \
	X(LANEMASK_LT, "lanemask_lt", U32)                                               \
	X(LANEMASK_GE, "lanemask_ge", U32)                                               \
	X(LANEMASK_GT, "lanemask_gt", U32)                                               \
	X(CLOCK, "clock", U32)                                                           \
	X(CLOCK_HI, "clock_hi", U32)                                                     \
	X(CLOCK64, "clock64", U64)                                                       \
	X(GLOBALTIMER, "globaltimer", U64)                                               \
	X(GLOBALTIMER_LO, "globaltimer_lo", U32)                                         \
	X(GLOBALTIMER_HI, "globaltimer_hi", U32)                                         \
	X(ENVREG, "envreg", B32) /* operand.imm: the number, 0 to 31 */                  \
	X(PM, "pm", U32)	 /* operand.imm: the number, 0 to 7 */                   \
	X(PM0_64, "pm0_64", U64)                                                         \
	X(PM1_64, "pm1_64", U64)                                                         \
	X(PM2_64, "pm2_64", U64)                                                         \
	X(PM3_64, "pm3_64", U64)                                                         \
	X(PM4_64, "pm4_64", U64)                                                         \
	X(PM5_64, "pm5_64", U64)                                                         \
	X(PM6_64, "pm6_64", U64)                                                         \
	X(PM7_64, "pm7_64", U64)                                                         \
	X(DYNAMIC_SMEM_SIZE, "dynamic_smem_size", U32)                                   \
	X(TOTAL_SMEM_SIZE, "total_smem_size", U32)                                       \
	X(AGGR_SMEM_SIZE, "aggr_smem_size", U32)                                         \
	X(RESERVED_SMEM_OFFSET_BEGIN, "reserved_smem_offset_begin", B32)                 \
	X(RESERVED_SMEM_OFFSET_CAP, "reserved_smem_offset_cap", B32)                     \
	X(RESERVED_SMEM_OFFSET_END, "reserved_smem_offset_end", B32)                     \
	X(RESERVED_SMEM_OFFSET, "reserved_smem_offset_", B32) /* operand.imm: 0 or 1 */  \
	X(CURRENT_GRAPH_EXEC, "current_graph_exec", U64)                                 \
	X(CLUSTERID_X, "clusterid.x", U32)                                               \
	X(CLUSTERID_Y, "clusterid.y", U32)                                               \
	X(CLUSTERID_Z, "clusterid.z", U32)                                               \
	X(NCLUSTERID_X, "nclusterid.x", U32)                                             \
	X(NCLUSTERID_Y, "nclusterid.y", U32)                                             \
	X(NCLUSTERID_Z, "nclusterid.z", U32)                                             \
	X(CLUSTER_CTAID_X, "cluster_ctaid.x", U32)                                       \
	X(CLUSTER_CTAID_Y, "cluster_ctaid.y", U32)                                       \
	X(CLUSTER_CTAID_Z, "cluster_ctaid.z", U32)                                       \
	X(CLUSTER_NCTAID_X, "cluster_nctaid.x", U32)                                     \
	X(CLUSTER_NCTAID_Y, "cluster_nctaid.y", U32)                                     \
	X(CLUSTER_NCTAID_Z, "cluster_nctaid.z", U32)                                     \
	X(CLUSTER_CTARANK, "cluster_ctarank", U32)                                       \
	X(CLUSTER_NCTARANK, "cluster_nctarank", U32)                                     \
	X(IS_EXPLICIT_CLUSTER, "is_explicit_cluster", PRED)

enum ptx_sreg {
#define PTX_SREG_ENUM(_name, _text, _type) PTX_SREG_##_name,
	PTX_SREGS(PTX_SREG_ENUM)
#undef PTX_SREG_ENUM
		_PTX_SREG_N,
};

/* Returns: the spelling, for messages; "?" where there is none. */
const char *ptx_op_name(enum ptx_op op);
enum ptx_family ptx_op_family(enum ptx_op op);
const char *ptx_type_name(enum ptx_type type);

/* Returns: bytes a value of the type occupies in memory; 0 for NONE. */
unsigned int ptx_type_size(enum ptx_type type);

/* Returns: the type of a special register. */
enum ptx_type ptx_sreg_type(enum ptx_sreg sreg);
