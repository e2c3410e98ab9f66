/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opcodes and their modifiers
 *
 * A modifier belongs to a group, which is a field of struct ptx_instr or one of its
 * flags; an opcode accepts a set of groups. One spelling may have several meanings (.and
 * combines predicates in setp and words in atom): then the table has a row for each, and
 * the row whose group the opcode accepts applies.
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/modifier.h"
#include "ptx/module.h"

enum group {
	G_TYPE,
	G_ROUND,
	G_APPROX,
	G_CMP,
	G_BOOL,
	G_SPACE,
	G_VECTOR,
	G_SEM,
	G_SCOPE,
	G_ATOM,
	G_MUL,
	G_WRAP,
	G_BAR, /* groups from here to ASYNC are families of enum ptx_mode */
	G_SHFL,
	G_VOTE,
	G_PRMT,
	G_SHF,
	G_TESTP,
	G_TEX,
	G_SCALE,
	G_CLUSTER,
	G_MATRIX,
	G_TLD4,
	G_ASYNC,
	G_FTZ, /* groups from here to FORMATTED are flags */
	G_SAT,
	G_SATFINITE,
	G_RELU,
	G_CC,
	G_UNI,
	G_SYNC,
	G_ALIGNED,
	G_NC,
	G_TO,
	G_SHIFTAMT,
	G_NAN,
	G_XORSIGN,
	G_ABS,
	G_NOFTZ,
	G_PACK,
	G_PLUS_ONE,
	G_TRANS,
	G_POPC,
	G_FORMATTED,
	G_GEOMETRY,
	G_QUERY,
	G_SHAPE,
	G_LAYOUT,
	G_MULTICAST, /* a flag, as the next */
	G_CP_MASK,
	G_DIM,	   /* of tensors, in the field of .v2 and .v4 */
	G_TENSOR,  /* how they are accessed, in the field of textures' */
	G_FIELD,   /* of maps of tensors, in the field of queries */
	G_CANCEL,  /* of clusterlaunchcontrol, in that field, too */
	G_COUNT,   /* of matrices, in the field of .v2 and .v4 */
	G_BOUNDS,  /* of surfaces, in the field of .clamp and .wrap */
	G_CACHE,   /* cache modifiers: dropped */
	G_ORDER,   /* memory orders of asynchronous stores: dropped */
	G_IGNORED, /* words without effect here: dropped */
	_G_N,
};

#define M(_group) (1ull << (_group))

struct modifier {
	const char *text;
	uint8_t group;
	uint32_t value;
};

/* Sorted by text, as strcmp() does: a test checks it. */
static const struct modifier modifiers[] = {
	{ "1d", G_GEOMETRY, PTX_GEOMETRY_1D },
	{ "1d", G_DIM, 1 },
	{ "2d", G_GEOMETRY, PTX_GEOMETRY_2D },
	{ "2d", G_DIM, 2 },
	{ "2dms", G_GEOMETRY, PTX_GEOMETRY_2DMS },
	{ "3d", G_GEOMETRY, PTX_GEOMETRY_3D },
	{ "3d", G_DIM, 3 },
	{ "4d", G_DIM, 4 },
	{ "5d", G_DIM, 5 },
	{ "NaN", G_NAN, PTX_FLAG_NAN },
	{ "a", G_TLD4, PTX_MODE_TLD4_A },
	{ "a", G_MATRIX, PTX_MODE_MATRIX_A },
	{ "a1d", G_GEOMETRY, PTX_GEOMETRY_A1D },
	{ "a2d", G_GEOMETRY, PTX_GEOMETRY_A2D },
	{ "a2dms", G_GEOMETRY, PTX_GEOMETRY_A2DMS },
	{ "abs", G_ABS, PTX_FLAG_ABS },
	{ "acq_rel", G_SEM, PTX_SEM_ACQ_REL },
	{ "acquire", G_SEM, PTX_SEM_ACQUIRE },
	{ "acube", G_GEOMETRY, PTX_GEOMETRY_ACUBE },
	{ "add", G_ATOM, PTX_ATOM_ADD },
	{ "addr_mode_0", G_QUERY, PTX_QUERY_ADDRESS_0 },
	{ "addr_mode_1", G_QUERY, PTX_QUERY_ADDRESS_1 },
	{ "addr_mode_2", G_QUERY, PTX_QUERY_ADDRESS_2 },
	{ "alias", G_IGNORED, 0 },
	{ "aligned", G_ALIGNED, PTX_FLAG_ALIGNED },
	{ "all", G_VOTE, PTX_MODE_ALL },
	{ "and", G_ATOM, PTX_ATOM_AND },
	{ "and", G_BOOL, PTX_BOOL_AND },
	{ "any", G_VOTE, PTX_MODE_ANY },
	{ "approx", G_APPROX, PTX_APPROX_APPROX },
	{ "array_size", G_QUERY, PTX_QUERY_LAYERS },
	{ "arrive", G_BAR, PTX_MODE_BAR_ARRIVE },
	{ "arrive", G_CLUSTER, PTX_MODE_CLUSTER_ARRIVE },
	{ "arrive", G_IGNORED, 0 },
	{ "async", G_IGNORED, 0 },
	{ "async::generic", G_IGNORED, 0 },
	{ "b", G_TLD4, PTX_MODE_TLD4_B },
	{ "b", G_MATRIX, PTX_MODE_MATRIX_B },
	{ "b", G_IGNORED, 0 },
	{ "b1", G_TYPE, PTX_TYPE_B1 },
	{ "b1024", G_IGNORED, 0 },
	{ "b128", G_TYPE, PTX_TYPE_B128 },
	{ "b16", G_TYPE, PTX_TYPE_B16 },
	{ "b32", G_TYPE, PTX_TYPE_B32 },
	{ "b4e", G_PRMT, PTX_MODE_PRMT_B4E },
	{ "b4x16_p64", G_TYPE, PTX_TYPE_B4X16_P64 },
	{ "b64", G_TYPE, PTX_TYPE_B64 },
	{ "b6x16_p32", G_TYPE, PTX_TYPE_B6X16_P32 },
	{ "b8", G_TYPE, PTX_TYPE_B8 },
	{ "b8x16", G_TYPE, PTX_TYPE_B8X16 },
	{ "ballot", G_VOTE, PTX_MODE_BALLOT },
	{ "base", G_TEX, PTX_MODE_TEX_BASE },
	{ "bf16", G_TYPE, PTX_TYPE_BF16 },
	{ "bf16x2", G_TYPE, PTX_TYPE_BF16X2 },
	{ "bfly", G_SHFL, PTX_MODE_SHFL_BFLY },
	{ "box_dim", G_FIELD, PTX_FIELD_BOX },
	{ "bulk_group", G_ASYNC, PTX_MODE_ASYNC_BULK_GROUP },
	{ "c", G_MATRIX, PTX_MODE_MATRIX_C },
	{ "ca", G_CACHE, 0 },
	{ "cas", G_ATOM, PTX_ATOM_CAS },
	{ "cc", G_CC, PTX_FLAG_CC },
	{ "cg", G_CACHE, 0 },
	{ "channel_data_type", G_QUERY, PTX_QUERY_DATA_TYPE },
	{ "channel_order", G_QUERY, PTX_QUERY_ORDER },
	{ "clamp", G_WRAP, PTX_WRAP_CLAMP },
	{ "clamp", G_BOUNDS, PTX_WRAP_CLAMP },
	{ "cluster", G_SCOPE, PTX_SCOPE_CLUSTER },
	{ "col", G_LAYOUT, PTX_LAYOUT_COL },
	{ "const", G_SPACE, PTX_SPACE_CONST },
	{ "cp_mask", G_CP_MASK, PTX_FLAG_CP_MASK },
	{ "cs", G_CACHE, 0 },
	{ "cta", G_IGNORED, 0 },
	{ "cta", G_SCOPE, PTX_SCOPE_CTA },
	{ "cube", G_GEOMETRY, PTX_GEOMETRY_CUBE },
	{ "cv", G_CACHE, 0 },
	{ "cvt", G_IGNORED, 0 },
	{ "d", G_MATRIX, PTX_MODE_MATRIX_D },
	{ "dec", G_ATOM, PTX_ATOM_DEC },
	{ "depth", G_QUERY, PTX_QUERY_DEPTH },
	{ "down", G_SHFL, PTX_MODE_SHFL_DOWN },
	{ "e2m1x2", G_TYPE, PTX_TYPE_E2M1X2 },
	{ "e2m3x2", G_TYPE, PTX_TYPE_E2M3X2 },
	{ "e3m2x2", G_TYPE, PTX_TYPE_E3M2X2 },
	{ "e4m3", G_TYPE, PTX_TYPE_E4M3 },
	{ "e4m3x2", G_TYPE, PTX_TYPE_E4M3X2 },
	{ "e5m2", G_TYPE, PTX_TYPE_E5M2 },
	{ "e5m2x2", G_TYPE, PTX_TYPE_E5M2X2 },
	{ "ecl", G_PRMT, PTX_MODE_PRMT_ECL },
	{ "ecr", G_PRMT, PTX_MODE_PRMT_ECR },
	{ "element_stride", G_FIELD, PTX_FIELD_STEP },
	{ "elemtype", G_FIELD, PTX_FIELD_TYPE },
	{ "eq", G_CMP, PTX_CMP_EQ },
	{ "equ", G_CMP, PTX_CMP_EQU },
	{ "exch", G_ATOM, PTX_ATOM_EXCH },
	{ "expect_tx", G_ASYNC, PTX_MODE_ASYNC_EXPECT_TX },
	{ "f16", G_TYPE, PTX_TYPE_F16 },
	{ "f16x2", G_TYPE, PTX_TYPE_F16X2 },
	{ "f32", G_TYPE, PTX_TYPE_F32 },
	{ "f32x2", G_TYPE, PTX_TYPE_F32X2 },
	{ "f4e", G_PRMT, PTX_MODE_PRMT_F4E },
	{ "f64", G_TYPE, PTX_TYPE_F64 },
	{ "fill_mode", G_FIELD, PTX_FIELD_FILL },
	{ "filter_mode", G_QUERY, PTX_QUERY_FILTER },
	{ "finite", G_TESTP, PTX_MODE_TESTP_FINITE },
	{ "force_unnormalized_coords", G_QUERY, PTX_QUERY_IS_UNNORMALIZED },
	{ "fractional", G_IGNORED, 0 },
	{ "ftz", G_FTZ, PTX_FLAG_FTZ },
	{ "full", G_APPROX, PTX_APPROX_FULL },
	{ "g", G_TLD4, PTX_MODE_TLD4_G },
	{ "ge", G_CMP, PTX_CMP_GE },
	{ "get_first_ctaid", G_CANCEL, PTX_CANCEL_FIRST },
	{ "get_first_ctaid::x", G_CANCEL, PTX_CANCEL_FIRST_X },
	{ "get_first_ctaid::y", G_CANCEL, PTX_CANCEL_FIRST_Y },
	{ "get_first_ctaid::z", G_CANCEL, PTX_CANCEL_FIRST_Z },
	{ "geu", G_CMP, PTX_CMP_GEU },
	{ "gl", G_SCOPE, PTX_SCOPE_GPU },
	{ "global", G_SPACE, PTX_SPACE_GLOBAL },
	{ "global_address", G_FIELD, PTX_FIELD_ADDRESS },
	{ "global_dim", G_FIELD, PTX_FIELD_SIZE },
	{ "global_stride", G_FIELD, PTX_FIELD_STRIDE },
	{ "gpu", G_SCOPE, PTX_SCOPE_GPU },
	{ "grad", G_TEX, PTX_MODE_TEX_GRAD },
	{ "gt", G_CMP, PTX_CMP_GT },
	{ "gtu", G_CMP, PTX_CMP_GTU },
	{ "height", G_QUERY, PTX_QUERY_HEIGHT },
	{ "hi", G_CMP, PTX_CMP_HI },
	{ "hi", G_MUL, PTX_MUL_HI },
	{ "hs", G_CMP, PTX_CMP_HS },
	{ "idx", G_IGNORED, 0 },
	{ "idx", G_SHFL, PTX_MODE_SHFL_IDX },
	{ "im2col", G_TENSOR, PTX_TENSOR_IM2COL },
	{ "im2col::w", G_TENSOR, PTX_TENSOR_IM2COL_W },
	{ "im2col::w::128", G_TENSOR, PTX_TENSOR_IM2COL_W_128 },
	{ "im2col_no_offs", G_TENSOR, PTX_TENSOR_IM2COL_NO_OFFS },
	{ "inc", G_ATOM, PTX_ATOM_INC },
	{ "infinite", G_TESTP, PTX_MODE_TESTP_INFINITE },
	{ "interleave_layout", G_FIELD, PTX_FIELD_INTERLEAVE },
	{ "is_canceled", G_CANCEL, PTX_CANCEL_IS_CANCELED },
	{ "l", G_SHF, PTX_MODE_SHF_L },
	{ "launch_dependents", G_IGNORED, 0 },
	{ "le", G_CMP, PTX_CMP_LE },
	{ "leu", G_CMP, PTX_CMP_LEU },
	{ "level", G_TEX, PTX_MODE_TEX_LEVEL },
	{ "lo", G_CMP, PTX_CMP_LO },
	{ "lo", G_MUL, PTX_MUL_LO },
	{ "local", G_SPACE, PTX_SPACE_LOCAL },
	{ "ls", G_CMP, PTX_CMP_LS },
	{ "lt", G_CMP, PTX_CMP_LT },
	{ "ltu", G_CMP, PTX_CMP_LTU },
	{ "lu", G_CACHE, 0 },
	{ "m16n16", G_SHAPE, PTX_SHAPE_M16N16K0 },
	{ "m16n16k16", G_SHAPE, PTX_SHAPE_M16N16K16 },
	{ "m16n16k8", G_SHAPE, PTX_SHAPE_M16N16K8 },
	{ "m16n8", G_SHAPE, PTX_SHAPE_M16N8K0 },
	{ "m16n8k128", G_SHAPE, PTX_SHAPE_M16N8K128 },
	{ "m16n8k16", G_SHAPE, PTX_SHAPE_M16N8K16 },
	{ "m16n8k256", G_SHAPE, PTX_SHAPE_M16N8K256 },
	{ "m16n8k32", G_SHAPE, PTX_SHAPE_M16N8K32 },
	{ "m16n8k4", G_SHAPE, PTX_SHAPE_M16N8K4 },
	{ "m16n8k64", G_SHAPE, PTX_SHAPE_M16N8K64 },
	{ "m16n8k8", G_SHAPE, PTX_SHAPE_M16N8K8 },
	{ "m32n8k16", G_SHAPE, PTX_SHAPE_M32N8K16 },
	{ "m8n16", G_SHAPE, PTX_SHAPE_M8N16K0 },
	{ "m8n32k16", G_SHAPE, PTX_SHAPE_M8N32K16 },
	{ "m8n8", G_SHAPE, PTX_SHAPE_M8N8K0 },
	{ "m8n8k128", G_SHAPE, PTX_SHAPE_M8N8K128 },
	{ "m8n8k16", G_SHAPE, PTX_SHAPE_M8N8K16 },
	{ "m8n8k32", G_SHAPE, PTX_SHAPE_M8N8K32 },
	{ "m8n8k4", G_SHAPE, PTX_SHAPE_M8N8K4 },
	{ "mask", G_IGNORED, 0 },
	{ "max", G_ATOM, PTX_ATOM_MAX },
	{ "mbarrier::complete_tx::bytes", G_ASYNC, PTX_MODE_ASYNC_COMPLETE_TX },
	{ "mbarrier_init", G_IGNORED, 0 },
	{ "memory_layout", G_QUERY, PTX_QUERY_IS_LINEAR },
	{ "min", G_ATOM, PTX_ATOM_MIN },
	{ "mmio", G_SEM, PTX_SEM_MMIO },
	{ "mmio", G_ORDER, 0 },
	{ "multicast::cluster", G_MULTICAST, PTX_FLAG_MULTICAST },
	{ "multicast::cluster::all", G_CANCEL, PTX_CANCEL_ALL_BLOCKS },
	{ "nan", G_CMP, PTX_CMP_NAN },
	{ "nc", G_NC, PTX_FLAG_NC },
	{ "ne", G_CMP, PTX_CMP_NE },
	{ "neu", G_CMP, PTX_CMP_NEU },
	{ "noComplete", G_ASYNC, PTX_MODE_ASYNC_NO_COMPLETE },
	{ "noftz", G_NOFTZ, PTX_FLAG_NOFTZ },
	{ "noinc", G_ASYNC, PTX_MODE_ASYNC_NOINC },
	{ "normal", G_TESTP, PTX_MODE_TESTP_NORMAL },
	{ "normalized_coords", G_QUERY, PTX_QUERY_IS_NORMALIZED },
	{ "notanumber", G_TESTP, PTX_MODE_TESTP_NOTANUMBER },
	{ "num", G_CMP, PTX_CMP_NUM },
	{ "num_mipmap_levels", G_QUERY, PTX_QUERY_N_LEVELS },
	{ "num_samples", G_QUERY, PTX_QUERY_N_SAMPLES },
	{ "number", G_TESTP, PTX_MODE_TESTP_NUMBER },
	{ "or", G_ATOM, PTX_ATOM_OR },
	{ "or", G_BOOL, PTX_BOOL_OR },
	{ "p", G_FORMATTED, PTX_FLAG_FORMATTED },
	{ "pack", G_PACK, PTX_FLAG_PACK },
	{ "param", G_SPACE, PTX_SPACE_PARAM },
	{ "param::entry", G_SPACE, PTX_SPACE_PARAM },
	{ "param::func", G_SPACE, PTX_SPACE_PARAM },
	{ "parity", G_ASYNC, PTX_MODE_ASYNC_PARITY },
	{ "po", G_PLUS_ONE, PTX_FLAG_PLUS_ONE },
	{ "popc", G_ATOM, PTX_ATOM_POPC },
	{ "popc", G_POPC, PTX_FLAG_POPC },
	{ "pred", G_TYPE, PTX_TYPE_PRED },
	{ "proxy", G_IGNORED, 0 },
	{ "r", G_SHF, PTX_MODE_SHF_R },
	{ "r", G_TLD4, PTX_MODE_TLD4_R },
	{ "range", G_IGNORED, 0 },
	{ "rank", G_FIELD, PTX_FIELD_RANK },
	{ "rc16", G_PRMT, PTX_MODE_PRMT_RC16 },
	{ "rc8", G_PRMT, PTX_MODE_PRMT_RC8 },
	{ "read", G_IGNORED, 0 },
	{ "red", G_BAR, PTX_MODE_BAR_RED },
	{ "relaxed", G_SEM, PTX_SEM_RELAXED },
	{ "relaxed", G_ORDER, 0 },
	{ "release", G_SEM, PTX_SEM_RELEASE },
	{ "release", G_ORDER, 0 },
	{ "relu", G_RELU, PTX_FLAG_RELU },
	{ "rm", G_ROUND, PTX_ROUND_RM },
	{ "rmi", G_ROUND, PTX_ROUND_RMI },
	{ "rn", G_ROUND, PTX_ROUND_RN },
	{ "rna", G_ROUND, PTX_ROUND_RNA },
	{ "rni", G_ROUND, PTX_ROUND_RNI },
	{ "row", G_LAYOUT, PTX_LAYOUT_ROW },
	{ "rp", G_ROUND, PTX_ROUND_RP },
	{ "rpi", G_ROUND, PTX_ROUND_RPI },
	{ "rz", G_ROUND, PTX_ROUND_RZ },
	{ "rzi", G_ROUND, PTX_ROUND_RZI },
	{ "s16", G_TYPE, PTX_TYPE_S16 },
	{ "s16x2", G_TYPE, PTX_TYPE_S16X2 },
	{ "s2", G_TYPE, PTX_TYPE_S2 },
	{ "s32", G_TYPE, PTX_TYPE_S32 },
	{ "s4", G_TYPE, PTX_TYPE_S4 },
	{ "s64", G_TYPE, PTX_TYPE_S64 },
	{ "s8", G_TYPE, PTX_TYPE_S8 },
	{ "samplerref", G_TYPE, PTX_TYPE_SAMPLERREF },
	{ "sat", G_SAT, PTX_FLAG_SAT },
	{ "satfinite", G_SATFINITE, PTX_FLAG_SATFINITE },
	{ "sc", G_SEM, PTX_SEM_SC },
	{ "shared", G_SPACE, PTX_SPACE_SHARED },
	{ "shared::cluster", G_SPACE, PTX_SPACE_SHARED_CLUSTER },
	{ "shared::cta", G_SPACE, PTX_SPACE_SHARED },
	{ "shiftamt", G_SHIFTAMT, PTX_FLAG_SHIFTAMT },
	{ "shr15", G_SCALE, PTX_MODE_SHR15 },
	{ "shr7", G_SCALE, PTX_MODE_SHR7 },
	{ "subnormal", G_TESTP, PTX_MODE_TESTP_SUBNORMAL },
	{ "surfref", G_TYPE, PTX_TYPE_SURFREF },
	{ "swizzle_atomicity", G_FIELD, PTX_FIELD_ATOM },
	{ "swizzle_mode", G_FIELD, PTX_FIELD_SWIZZLE },
	{ "sync", G_BAR, PTX_MODE_BAR_SYNC },
	{ "sync", G_SYNC, PTX_FLAG_SYNC },
	{ "sync_restrict::shared::cluster", G_IGNORED, 0 },
	{ "sync_restrict::shared::cta", G_IGNORED, 0 },
	{ "sys", G_SCOPE, PTX_SCOPE_SYS },
	{ "tensormap", G_IGNORED, 0 },
	{ "tensormap::generic", G_IGNORED, 0 },
	{ "texref", G_TYPE, PTX_TYPE_TEXREF },
	{ "tf32", G_TYPE, PTX_TYPE_TF32 },
	{ "tile", G_TENSOR, PTX_TENSOR_TILE },
	{ "tile::gather4", G_TENSOR, PTX_TENSOR_GATHER4 },
	{ "tile::scatter4", G_TENSOR, PTX_TENSOR_SCATTER4 },
	{ "to", G_TO, PTX_FLAG_TO },
	{ "trans", G_TRANS, PTX_FLAG_TRANS },
	{ "trap", G_BOUNDS, PTX_WRAP_TRAP },
	{ "u16", G_TYPE, PTX_TYPE_U16 },
	{ "u16x2", G_TYPE, PTX_TYPE_U16X2 },
	{ "u2", G_TYPE, PTX_TYPE_U2 },
	{ "u32", G_TYPE, PTX_TYPE_U32 },
	{ "u4", G_TYPE, PTX_TYPE_U4 },
	{ "u64", G_TYPE, PTX_TYPE_U64 },
	{ "u8", G_TYPE, PTX_TYPE_U8 },
	{ "ue8m0x2", G_TYPE, PTX_TYPE_UE8M0X2 },
	{ "uni", G_UNI, PTX_FLAG_UNI },
	{ "uni", G_VOTE, PTX_MODE_UNI },
	{ "unified", G_CACHE, 0 },
	{ "up", G_SHFL, PTX_MODE_SHFL_UP },
	{ "v2", G_VECTOR, 2 },
	{ "v4", G_VECTOR, 4 },
	{ "v8", G_VECTOR, 8 },
	{ "volatile", G_SEM, PTX_SEM_VOLATILE },
	{ "wait", G_IGNORED, 0 },
	{ "wait", G_CLUSTER, PTX_MODE_CLUSTER_WAIT },
	{ "warp", G_BAR, PTX_MODE_BAR_WARP_SYNC },
	{ "wb", G_CACHE, 0 },
	{ "weak", G_SEM, PTX_SEM_WEAK },
	{ "weak", G_ORDER, 0 },
	{ "wide", G_MUL, PTX_MUL_WIDE },
	{ "width", G_QUERY, PTX_QUERY_WIDTH },
	{ "wrap", G_WRAP, PTX_WRAP_WRAP },
	{ "wt", G_CACHE, 0 },
	{ "x1", G_COUNT, 1 },
	{ "x2", G_COUNT, 2 },
	{ "x4", G_COUNT, 4 },
	{ "xor", G_ATOM, PTX_ATOM_XOR },
	{ "xor", G_BOOL, PTX_BOOL_XOR },
	{ "xorsign", G_XORSIGN, PTX_FLAG_XORSIGN },
	{ "zero", G_BOUNDS, PTX_WRAP_ZERO },
};

/* The field for a group's value. */
static const uint8_t group_fields[_G_N] = {
	[G_ROUND] = offsetof(struct ptx_instr, round),
	[G_APPROX] = offsetof(struct ptx_instr, approx),
	[G_CMP] = offsetof(struct ptx_instr, cmp),
	[G_BOOL] = offsetof(struct ptx_instr, bool_op),
	[G_VECTOR] = offsetof(struct ptx_instr, vector),
	[G_SEM] = offsetof(struct ptx_instr, sem),
	[G_SCOPE] = offsetof(struct ptx_instr, scope),
	[G_ATOM] = offsetof(struct ptx_instr, atom),
	[G_MUL] = offsetof(struct ptx_instr, mul),
	[G_WRAP] = offsetof(struct ptx_instr, wrap),
	[G_BOUNDS] = offsetof(struct ptx_instr, wrap),
	[G_GEOMETRY] = offsetof(struct ptx_instr, geometry),
	[G_QUERY] = offsetof(struct ptx_instr, query),
	[G_SHAPE] = offsetof(struct ptx_instr, shape),
	[G_COUNT] = offsetof(struct ptx_instr, vector),
	[G_DIM] = offsetof(struct ptx_instr, vector),
	[G_TENSOR] = offsetof(struct ptx_instr, geometry),
	[G_FIELD] = offsetof(struct ptx_instr, query),
	[G_CANCEL] = offsetof(struct ptx_instr, query),
	[G_BAR... G_ASYNC] = offsetof(struct ptx_instr, mode),
};

static const struct {
	uint64_t groups;
	uint8_t min_types;
	uint8_t max_types;
} opcodes[_PTX_OP_N] = {
	[PTX_OP_ABS] = { M(G_FTZ), 1, 1 },
	[PTX_OP_ACTIVEMASK] = { 0, 1, 1 },
	[PTX_OP_ADD] = { M(G_ROUND) | M(G_FTZ) | M(G_SAT) | M(G_CC), 1, 2 },
	[PTX_OP_ADDC] = { M(G_CC), 1, 1 },
	[PTX_OP_ALLOCA] = { 0, 1, 1 },
	[PTX_OP_AND] = { 0, 1, 1 },
	[PTX_OP_APPLYPRIORITY] = { M(G_SPACE) | M(G_CACHE), 0, 0 },
	[PTX_OP_ATOM] = { M(G_SEM) | M(G_SCOPE) | M(G_SPACE) | M(G_ATOM) | M(G_NOFTZ) |
				  M(G_VECTOR) | M(G_CACHE),
		1, 1 },
	[PTX_OP_BAR] = { M(G_BAR) | M(G_ATOM) | M(G_IGNORED) | M(G_ALIGNED), 0, 1 },
	[PTX_OP_BARRIER] = { M(G_BAR) | M(G_ATOM) | M(G_IGNORED) | M(G_ALIGNED), 0, 1 },
	[PTX_OP_BARRIER_CLUSTER] = { M(G_CLUSTER) | M(G_SEM) | M(G_ALIGNED), 0, 0 },
	[PTX_OP_BFE] = { 0, 1, 1 },
	[PTX_OP_BFI] = { 0, 1, 1 },
	[PTX_OP_BFIND] = { M(G_SHIFTAMT), 1, 1 },
	[PTX_OP_BMSK] = { M(G_WRAP), 1, 1 },
	[PTX_OP_BRA] = { M(G_UNI), 0, 0 },
	[PTX_OP_BREV] = { 0, 1, 1 },
	[PTX_OP_BRKPT] = { 0, 0, 0 },
	[PTX_OP_BRX] = { M(G_UNI) | M(G_IGNORED), 0, 0 },
	[PTX_OP_CALL] = { M(G_UNI), 0, 0 },
	[PTX_OP_CLUSTERLAUNCHCONTROL_QUERY_CANCEL] = { M(G_CANCEL) | M(G_VECTOR), 2, 2 },
	[PTX_OP_CLUSTERLAUNCHCONTROL_TRY_CANCEL] = { M(G_SPACE) | M(G_ASYNC) |
							     M(G_CANCEL) | M(G_IGNORED),
		1, 1 },
	[PTX_OP_CLZ] = { 0, 1, 1 },
	[PTX_OP_CNOT] = { 0, 1, 1 },
	[PTX_OP_COPYSIGN] = { 0, 1, 1 },
	[PTX_OP_COS] = { M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_CP_ASYNC] = { M(G_SPACE) | M(G_CACHE), 0, 0 },
	[PTX_OP_CP_ASYNC_BULK] = { M(G_SPACE) | M(G_ASYNC) | M(G_CACHE) | M(G_MULTICAST) |
					   M(G_CP_MASK),
		0, 0 },
	[PTX_OP_CP_ASYNC_BULK_COMMIT_GROUP] = { 0, 0, 0 },
	[PTX_OP_CP_ASYNC_BULK_PREFETCH] = { M(G_SPACE) | M(G_CACHE), 0, 0 },
	[PTX_OP_CP_ASYNC_BULK_PREFETCH_TENSOR] = { M(G_DIM) | M(G_SPACE) | M(G_TENSOR) |
							   M(G_CACHE),
		0, 0 },
	[PTX_OP_CP_ASYNC_BULK_TENSOR] = { M(G_DIM) | M(G_SPACE) | M(G_TENSOR) |
						  M(G_ASYNC) | M(G_MULTICAST) |
						  M(G_CACHE),
		0, 0 },
	[PTX_OP_CP_ASYNC_BULK_WAIT_GROUP] = { M(G_IGNORED), 0, 0 },
	[PTX_OP_CP_ASYNC_COMMIT_GROUP] = { 0, 0, 0 },
	[PTX_OP_CP_ASYNC_MBARRIER] = { M(G_SPACE) | M(G_ASYNC) | M(G_IGNORED), 1, 1 },
	[PTX_OP_CP_ASYNC_WAIT_ALL] = { 0, 0, 0 },
	[PTX_OP_CP_ASYNC_WAIT_GROUP] = { 0, 0, 0 },
	[PTX_OP_CP_REDUCE_ASYNC_BULK] = { M(G_SPACE) | M(G_ASYNC) | M(G_ATOM) |
						  M(G_NOFTZ) | M(G_CACHE),
		1, 1 },
	[PTX_OP_CP_REDUCE_ASYNC_BULK_TENSOR] = { M(G_DIM) | M(G_SPACE) | M(G_TENSOR) |
							 M(G_ASYNC) | M(G_ATOM) |
							 M(G_CACHE),
		0, 0 },
	[PTX_OP_CREATEPOLICY] = { M(G_SPACE) | M(G_CACHE) | M(G_IGNORED), 1, 1 },
	[PTX_OP_CVT] = { M(G_ROUND) | M(G_FTZ) | M(G_SAT) | M(G_SATFINITE) | M(G_RELU) |
				 M(G_PACK),
		2, 3 },
	[PTX_OP_CVTA] = { M(G_TO) | M(G_SPACE), 1, 1 },
	[PTX_OP_DISCARD] = { M(G_SPACE) | M(G_CACHE), 0, 0 },
	[PTX_OP_DIV] = { M(G_ROUND) | M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_DP2A] = { M(G_MUL), 2, 2 },
	[PTX_OP_DP4A] = { 0, 2, 2 },
	[PTX_OP_ELECT] = { M(G_SYNC), 0, 0 },
	[PTX_OP_EX2] = { M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_EXIT] = { 0, 0, 0 },
	[PTX_OP_FENCE] = { M(G_SEM) | M(G_SCOPE) | M(G_SPACE) | M(G_IGNORED), 0, 0 },
	[PTX_OP_FMA] = { M(G_ROUND) | M(G_FTZ) | M(G_SAT) | M(G_RELU), 1, 2 },
	[PTX_OP_FNS] = { 0, 1, 1 },
	[PTX_OP_GETCTARANK] = { M(G_SPACE), 1, 1 },
	[PTX_OP_GRIDDEPCONTROL] = { M(G_IGNORED), 0, 0 },
	[PTX_OP_ISSPACEP] = { M(G_SPACE), 0, 0 },
	[PTX_OP_ISTYPEP] = { 0, 1, 1 },
	[PTX_OP_LD] = { M(G_SEM) | M(G_SCOPE) | M(G_SPACE) | M(G_VECTOR) | M(G_NC) |
				M(G_CACHE),
		1, 1 },
	[PTX_OP_LDMATRIX] = { M(G_SHAPE) | M(G_COUNT) | M(G_TRANS) | M(G_SPACE) |
				      M(G_SYNC) | M(G_ALIGNED),
		1, 2 },
	[PTX_OP_LDU] = { M(G_SPACE) | M(G_VECTOR), 1, 1 },
	[PTX_OP_LG2] = { M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_LOP3] = { M(G_BOOL), 1, 1 },
	[PTX_OP_MAD] = { M(G_MUL) | M(G_ROUND) | M(G_FTZ) | M(G_SAT) | M(G_CC), 1, 1 },
	[PTX_OP_MAD24] = { M(G_MUL) | M(G_SAT), 1, 1 },
	[PTX_OP_MADC] = { M(G_MUL) | M(G_CC), 1, 1 },
	[PTX_OP_MAPA] = { M(G_SPACE), 1, 1 },
	[PTX_OP_MATCH] = { M(G_VOTE) | M(G_SYNC), 1, 1 },
	[PTX_OP_MAX] = { M(G_FTZ) | M(G_NAN) | M(G_XORSIGN) | M(G_ABS) | M(G_RELU), 1,
		1 },
	[PTX_OP_MBARRIER_ARRIVE] = { M(G_SPACE) | M(G_SEM) | M(G_SCOPE) | M(G_ASYNC), 1,
		1 },
	[PTX_OP_MBARRIER_ARRIVE_DROP] = { M(G_SPACE) | M(G_SEM) | M(G_SCOPE) | M(G_ASYNC),
		1, 1 },
	[PTX_OP_MBARRIER_COMPLETE_TX] = { M(G_SPACE) | M(G_SEM) | M(G_SCOPE), 1, 1 },
	[PTX_OP_MBARRIER_EXPECT_TX] = { M(G_SPACE) | M(G_SEM) | M(G_SCOPE), 1, 1 },
	[PTX_OP_MBARRIER_INIT] = { M(G_SPACE), 1, 1 },
	[PTX_OP_MBARRIER_INVAL] = { M(G_SPACE), 1, 1 },
	[PTX_OP_MBARRIER_PENDING_COUNT] = { 0, 1, 1 },
	[PTX_OP_MBARRIER_TEST_WAIT] = { M(G_SPACE) | M(G_SEM) | M(G_SCOPE) | M(G_ASYNC),
		1, 1 },
	[PTX_OP_MBARRIER_TRY_WAIT] = { M(G_SPACE) | M(G_SEM) | M(G_SCOPE) | M(G_ASYNC), 1,
		1 },
	[PTX_OP_MEMBAR] = { M(G_SCOPE) | M(G_IGNORED), 0, 0 },
	[PTX_OP_MIN] = { M(G_FTZ) | M(G_NAN) | M(G_XORSIGN) | M(G_ABS) | M(G_RELU), 1,
		1 },
	[PTX_OP_MMA] = { M(G_SHAPE) | M(G_LAYOUT) | M(G_SYNC) | M(G_ALIGNED) |
				 M(G_SATFINITE) | M(G_ROUND) | M(G_BOOL) | M(G_POPC),
		4, 4 },
	[PTX_OP_MMA_SP] = { M(G_SHAPE) | M(G_LAYOUT) | M(G_SYNC) | M(G_ALIGNED) |
				    M(G_SATFINITE),
		4, 4 },
	[PTX_OP_MMA_SP_ORDERED] = { M(G_SHAPE) | M(G_LAYOUT) | M(G_SYNC) | M(G_ALIGNED) |
					    M(G_SATFINITE),
		4, 4 },
	[PTX_OP_MOV] = { M(G_VECTOR), 1, 1 },
	[PTX_OP_MOVMATRIX] = { M(G_SHAPE) | M(G_TRANS) | M(G_SYNC) | M(G_ALIGNED), 1, 1 },
	[PTX_OP_MUL] = { M(G_MUL) | M(G_ROUND) | M(G_FTZ) | M(G_SAT), 1, 1 },
	[PTX_OP_MUL24] = { M(G_MUL) | M(G_SAT), 1, 1 },
	[PTX_OP_NANOSLEEP] = { 0, 1, 1 },
	[PTX_OP_NEG] = { M(G_FTZ), 1, 1 },
	[PTX_OP_NOT] = { 0, 1, 1 },
	[PTX_OP_OR] = { 0, 1, 1 },
	[PTX_OP_PMEVENT] = { M(G_IGNORED), 0, 0 },
	[PTX_OP_POPC] = { 0, 1, 1 },
	[PTX_OP_PREFETCH] = { M(G_SPACE) | M(G_CACHE) | M(G_IGNORED), 0, 0 },
	[PTX_OP_PREFETCHU] = { M(G_SPACE) | M(G_CACHE), 0, 0 },
	[PTX_OP_PRMT] = { M(G_PRMT), 1, 1 },
	[PTX_OP_RCP] = { M(G_ROUND) | M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_RED] = { M(G_SEM) | M(G_SCOPE) | M(G_SPACE) | M(G_ATOM) | M(G_NOFTZ) |
				 M(G_VECTOR) | M(G_CACHE),
		1, 1 },
	[PTX_OP_RED_ASYNC] = { M(G_ORDER) | M(G_SCOPE) | M(G_SPACE) | M(G_ASYNC) |
				       M(G_ATOM),
		1, 1 },
	[PTX_OP_REDUX] = { M(G_ATOM) | M(G_SYNC) | M(G_ABS) | M(G_NAN), 1, 1 },
	[PTX_OP_REM] = { 0, 1, 1 },
	[PTX_OP_RET] = { M(G_UNI), 0, 0 },
	[PTX_OP_RSQRT] = { M(G_ROUND) | M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_SAD] = { 0, 1, 1 },
	[PTX_OP_SELP] = { 0, 1, 1 },
	[PTX_OP_SET] = { M(G_CMP) | M(G_BOOL) | M(G_FTZ), 2, 2 },
	[PTX_OP_SETMAXNREG] = { M(G_ATOM) | M(G_SYNC) | M(G_ALIGNED) | M(G_IGNORED), 1,
		1 },
	[PTX_OP_SETP] = { M(G_CMP) | M(G_BOOL) | M(G_FTZ), 1, 1 },
	[PTX_OP_SHF] = { M(G_SHF) | M(G_WRAP), 1, 1 },
	[PTX_OP_SHFL] = { M(G_SHFL) | M(G_SYNC), 1, 1 },
	[PTX_OP_SHL] = { 0, 1, 1 },
	[PTX_OP_SHR] = { 0, 1, 1 },
	[PTX_OP_SIN] = { M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_SLCT] = { M(G_FTZ), 2, 2 },
	[PTX_OP_SQRT] = { M(G_ROUND) | M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_ST] = { M(G_SEM) | M(G_SCOPE) | M(G_SPACE) | M(G_VECTOR) | M(G_CACHE), 1,
		1 },
	[PTX_OP_ST_ASYNC] = { M(G_ORDER) | M(G_SCOPE) | M(G_SPACE) | M(G_ASYNC) |
				      M(G_VECTOR),
		1, 1 },
	[PTX_OP_ST_BULK] = { M(G_SEM) | M(G_SPACE), 0, 0 },
	[PTX_OP_STACKRESTORE] = { 0, 1, 1 },
	[PTX_OP_STACKSAVE] = { 0, 1, 1 },
	[PTX_OP_STMATRIX] = { M(G_SHAPE) | M(G_COUNT) | M(G_TRANS) | M(G_SPACE) |
				      M(G_SYNC) | M(G_ALIGNED),
		1, 1 },
	[PTX_OP_SUB] = { M(G_ROUND) | M(G_FTZ) | M(G_SAT) | M(G_CC), 1, 2 },
	[PTX_OP_SUBC] = { M(G_CC), 1, 1 },
	[PTX_OP_SULD] = { M(G_IGNORED) | M(G_FORMATTED) | M(G_GEOMETRY) | M(G_VECTOR) |
				  M(G_BOUNDS) | M(G_CACHE),
		1, 1 },
	[PTX_OP_SUQ] = { M(G_QUERY), 1, 1 },
	[PTX_OP_SURED] = { M(G_IGNORED) | M(G_FORMATTED) | M(G_GEOMETRY) | M(G_ATOM) |
				   M(G_BOUNDS),
		1, 1 },
	[PTX_OP_SUST] = { M(G_IGNORED) | M(G_FORMATTED) | M(G_GEOMETRY) | M(G_VECTOR) |
				  M(G_BOUNDS) | M(G_CACHE),
		1, 1 },
	[PTX_OP_SZEXT] = { M(G_WRAP), 1, 1 },
	[PTX_OP_TANH] = { M(G_APPROX) | M(G_FTZ), 1, 1 },
	[PTX_OP_TENSORMAP_CP_FENCEPROXY] = { M(G_SPACE) | M(G_ORDER) | M(G_SCOPE) |
						     M(G_SYNC) | M(G_ALIGNED) |
						     M(G_IGNORED),
		0, 0 },
	[PTX_OP_TENSORMAP_REPLACE] = { M(G_TENSOR) | M(G_FIELD) | M(G_SPACE) |
					       M(G_IGNORED),
		1, 1 },
	[PTX_OP_TESTP] = { M(G_TESTP), 1, 1 },
	[PTX_OP_TEX] = { M(G_TEX) | M(G_GEOMETRY) | M(G_VECTOR), 2, 2 },
	[PTX_OP_TLD4] = { M(G_TLD4) | M(G_GEOMETRY) | M(G_VECTOR), 2, 2 },
	[PTX_OP_TRAP] = { 0, 0, 0 },
	[PTX_OP_TXQ] = { M(G_TEX) | M(G_QUERY), 1, 1 },
	[PTX_OP_VABSDIFF] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VABSDIFF2] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VABSDIFF4] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VADD] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VADD2] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VADD4] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VAVRG2] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VAVRG4] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VMAD] = { M(G_SAT) | M(G_PLUS_ONE) | M(G_SCALE), 3, 3 },
	[PTX_OP_VMAX] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VMAX2] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VMAX4] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VMIN] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VMIN2] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VMIN4] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VOTE] = { M(G_VOTE) | M(G_SYNC), 1, 1 },
	[PTX_OP_VSET] = { M(G_CMP) | M(G_ATOM), 2, 2 },
	[PTX_OP_VSET2] = { M(G_CMP) | M(G_ATOM), 2, 2 },
	[PTX_OP_VSET4] = { M(G_CMP) | M(G_ATOM), 2, 2 },
	[PTX_OP_VSHL] = { M(G_SAT) | M(G_WRAP) | M(G_ATOM), 3, 3 },
	[PTX_OP_VSHR] = { M(G_SAT) | M(G_WRAP) | M(G_ATOM), 3, 3 },
	[PTX_OP_VSUB] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VSUB2] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_VSUB4] = { M(G_SAT) | M(G_ATOM), 3, 3 },
	[PTX_OP_WMMA_LOAD] = { M(G_MATRIX) | M(G_SHAPE) | M(G_LAYOUT) | M(G_SPACE) |
				       M(G_SYNC) | M(G_ALIGNED),
		1, 1 },
	[PTX_OP_WMMA_MMA] = { M(G_SHAPE) | M(G_LAYOUT) | M(G_SYNC) | M(G_ALIGNED) |
				      M(G_SATFINITE) | M(G_ROUND) | M(G_BOOL) | M(G_POPC),
		2, 4 },
	[PTX_OP_WMMA_STORE] = { M(G_MATRIX) | M(G_SHAPE) | M(G_LAYOUT) | M(G_SPACE) |
					M(G_SYNC) | M(G_ALIGNED),
		1, 1 },
	[PTX_OP_XOR] = { 0, 1, 1 },
};

static const struct {
	const char *text;
	const char *operands;
} decoded[_PTX_OP_N] = {
#define DECODED(_name, _text, _operands, _family) [PTX_OP_##_name] = { _text, _operands },
	PTX_OPS(DECODED)
#undef DECODED
};

/* Instructions of PTX ISA 9.0 that are not decoded, sorted. */
static const char *const unsupported[] = {
	"clusterlaunchcontrol", "cp", "cp.reduce", "cp.reduce.async", "mbarrier",
	"multimem", "tcgen05", "tensormap", "wgmma",
	"wmma", /* its second word makes an instruction of it, as of others here */
};

#define N_MODIFIERS (sizeof(modifiers) / sizeof(*modifiers))
#define N_UNSUPPORTED (sizeof(unsupported) / sizeof(*unsupported))

/* Compares a counted string with a terminated one. */
static int compare(const char *text, uint32_t size, const char *string)
{
	int r = size ? (unsigned char)*text - (unsigned char)*string : 0;

	/* For most rows that is enough, and a call less. */
	if (!r)
		r = strncmp(text, string, size);
	return r ? r : -(string[size] != '\0');
}

enum ptx_opcode_class ptx_opcode_find(const char *text, uint32_t size, uint16_t *opp)
{
	uint32_t low = PTX_OP_UNSUPPORTED + 1, high = _PTX_OP_N, middle;
	int r;

	while (low < high) {
		middle = low + (high - low) / 2;
		r = compare(text, size, decoded[middle].text);
		if (!r) {
			*opp = middle;
			return PTX_OPCODE_DECODED;
		}
		if (r < 0)
			high = middle;
		else
			low = middle + 1;
	}
	for (uint32_t i = 0; i < N_UNSUPPORTED; i++)
		if (!compare(text, size, unsupported[i]))
			return PTX_OPCODE_UNSUPPORTED;
	return PTX_OPCODE_UNKNOWN;
}

const char *ptx_opcode_operands(uint16_t op)
{
	return decoded[op].operands;
}

bool ptx_opcode_takes_types(uint16_t op, unsigned int n_types)
{
	return n_types >= opcodes[op].min_types && n_types <= opcodes[op].max_types;
}

bool ptx_opcode_has_more_types(uint16_t op, unsigned int n_types)
{
	return n_types > opcodes[op].max_types;
}

/* Returns: the first row of that spelling, or NULL. */
static const struct modifier *find_first(const char *text, uint32_t size)
{
	uint32_t low = 0, high = N_MODIFIERS, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (compare(text, size, modifiers[middle].text) <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == N_MODIFIERS || compare(text, size, modifiers[low].text))
		return NULL;
	return &modifiers[low];
}

static enum ptx_modifier_result set_field(
	struct ptx_instr *instr, const struct modifier *modifier)
{
	uint8_t *field = (uint8_t *)instr + group_fields[modifier->group];

	/* .warp.sync is one mode in two words */
	if (modifier->group == G_BAR && *field == PTX_MODE_BAR_WARP_SYNC &&
		modifier->value == PTX_MODE_BAR_SYNC)
		return PTX_MODIFIER_OK;
	/* .mmio.relaxed is an access that is made once, in the order of .relaxed */
	if (modifier->group == G_SEM && *field == PTX_SEM_MMIO &&
		modifier->value == PTX_SEM_RELAXED)
		return PTX_MODIFIER_OK;
	if (*field)
		return PTX_MODIFIER_REPEATED;
	*field = modifier->value;
	return PTX_MODIFIER_OK;
}

static enum ptx_modifier_result enter(
	struct ptx_instr *instr, const struct modifier *modifier)
{
	switch (modifier->group) {
	case G_CACHE:
	case G_ORDER:
	case G_IGNORED:
		return PTX_MODIFIER_OK;
	case G_TYPE:
		if (instr->n_types == sizeof(instr->types))
			return PTX_MODIFIER_REPEATED;
		instr->types[instr->n_types++] = modifier->value;
		return PTX_MODIFIER_OK;
	case G_SPACE:
		if (instr->spaces[1])
			return PTX_MODIFIER_REPEATED;
		instr->spaces[instr->spaces[0] != 0] = modifier->value;
		return PTX_MODIFIER_OK;
	case G_LAYOUT:
		if (instr->layouts[1])
			return PTX_MODIFIER_REPEATED;
		instr->layouts[instr->layouts[0] != 0] = modifier->value;
		return PTX_MODIFIER_OK;
	case G_FTZ ... G_FORMATTED:
	case G_MULTICAST:
	case G_CP_MASK:
		if (instr->flags & modifier->value)
			return PTX_MODIFIER_REPEATED;
		instr->flags |= modifier->value;
		return PTX_MODIFIER_OK;
	default:
		return set_field(instr, modifier);
	}
}

/* .L1::no_allocate, .L2::128B and the like are hints without effect here. */
static bool is_cache_level(const char *text, uint32_t size)
{
	return size >= 2 && text[0] == 'L' && (text[1] == '1' || text[1] == '2') &&
	       (size == 2 || text[2] == ':');
}

enum ptx_modifier_result ptx_modifier_apply(
	struct ptx_instr *instr, const char *text, uint32_t size)
{
	uint64_t groups = opcodes[instr->op].groups | M(G_TYPE);
	const struct modifier *modifier;

	if (groups & M(G_CACHE) && is_cache_level(text, size))
		return compare(text, size, "L2::cache_hint") ? PTX_MODIFIER_OK
							     : PTX_MODIFIER_CACHE_HINT;
	modifier = find_first(text, size);
	for (; modifier && modifier < modifiers + N_MODIFIERS &&
		!compare(text, size, modifier->text);
		modifier++)
		if (groups & M(modifier->group))
			return enter(instr, modifier);
	return PTX_MODIFIER_UNKNOWN;
}

bool ptx_modifiers_are_sorted(void)
{
	for (size_t i = 1; i < N_MODIFIERS; i++)
		if (strcmp(modifiers[i - 1].text, modifiers[i].text) > 0)
			return false;
	return true;
}
