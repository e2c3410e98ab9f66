/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The operations of the interpreter
 *
 * Lists from which the enumeration, the signatures that lower/ checks operands
 * against, and most handlers are made. Types name what a lane computes with
 * (scalar.h); a, b and c are the source lanes, imm the immediate.
 *
 * A signature has one letter for each of the operand fields d, a, b, c, e and f:
 *
 *	w x p	reads a 32-bit, 64-bit, predicate operand
 *	W X P	writes one
 *	-	the field is not an operand
 */

/* texture.c; options in off. TEX_PUT stores operands and runs the next operation at once.
 */
#define SOFTGPU_OPS_TEXTURE(X)                                                           \
	X(TEX_PUT, "-wwwww") /* off: rows of block.texture_operands, in fives */         \
	X(TEX, "WxW-WW")     /* enum texture_option */                                   \
	X(TXQ, "Wxw---")     /* b: level; off: enum texture_property, TXQ_SURFACE */     \
	X(SULD_32, "WxW-WW") /* enum surface_option */                                   \
	X(SULD_64, "XxX-XX")                                                             \
	X(SUST_32, "-xwwww")                                                             \
	X(SUST_64, "-xxxxx")                                                             \
	X(SUST_P, "-xwwww")                                                              \
	X(SURED_32, "-xw---")                                                            \
	X(SURED_64, "-xx---")

/* X(name, type of d, type of a, expression) */
#define SOFTGPU_OPS_UNARY(X)                                                             \
	X(MOV_32, u32, u32, a)                                                           \
	X(MOV_64, u64, u64, a)                                                           \
	X(NOT_32, u32, u32, ~a)                                                          \
	X(NOT_64, u64, u64, ~a)                                                          \
	X(NEG_32, u32, u32, 0u - a)                                                      \
	X(NEG_64, u64, u64, 0u - a)                                                      \
	X(ABS_S16, u32, s16, (u32)(a < 0 ? -a : a))                                      \
	X(ABS_S32, u32, s32, a < 0 ? 0u - (u32)a : (u32)a)                               \
	X(ABS_S64, u64, s64, a < 0 ? 0u - (u64)a : (u64)a)                               \
	X(CNOT_16, u32, u16, a == 0)                                                     \
	X(CNOT_32, u32, u32, a == 0)                                                     \
	X(CNOT_64, u64, u64, a == 0)                                                     \
	X(POPC_32, u32, u32, popc_32(a))                                                 \
	X(POPC_64, u32, u64, popc_32((u32)a) + popc_32((u32)(a >> 32)))                  \
	X(CLZ_32, u32, u32, clz_32(a))                                                   \
	X(CLZ_64, u32, u64, clz_64(a))                                                   \
	X(BREV_32, u32, u32, brev_32(a))                                                 \
	X(BREV_64, u64, u64, brev_64(a))                                                 \
	X(BFIND_U32, u32, u32, bfind_64(a, 0, 31, imm))                                  \
	X(BFIND_S32, u32, s32, bfind_64((u64)(s64)a, a < 0, 31, imm))                    \
	X(BFIND_U64, u32, u64, bfind_64(a, 0, 63, imm))                                  \
	X(BFIND_S64, u32, s64, bfind_64((u64)a, a < 0, 63, imm))                         \
	/* Conversions that cut or widen: named by source type, then width */            \
	X(EXT_U8_32, u32, u8, a)                                                         \
	X(EXT_S8_32, u32, s8, (u32)(s32)a)                                               \
	X(EXT_U16_32, u32, u16, a)                                                       \
	X(EXT_S16_32, u32, s16, (u32)(s32)a)                                             \
	X(EXT_U32_64, u64, u32, a)                                                       \
	X(EXT_S32_64, u64, s32, (u64)(s64)a)                                             \
	X(LOW_64, u32, u64, (u32)a)                                                      \
	X(HIGH_64, u32, u64, (u32)(a >> 32))                                             \
	X(HIGH_32, u32, u32, a >> 16)                                                    \
	X(F32_FROM_S32, f32, s32, (f32)a)                                                \
	X(F32_FROM_U32, f32, u32, (f32)a)                                                \
	X(F64_FROM_S32, f64, s32, (f64)a)                                                \
	X(F64_FROM_U32, f64, u32, (f64)a)                                                \
	X(F64_FROM_S64, f64, s64, (f64)a)                                                \
	X(F64_FROM_U64, f64, u64, (f64)a)                                                \
	X(F64_FROM_F32, f64, f32, (f64)a)                                                \
	X(F32_FROM_F64, f32, f64, canon((f32)a))                                         \
	X(S32_FROM_F32_RZ, u32, f32, s32_from_f32(a))                                    \
	X(U32_FROM_F32_RZ, u32, f32, u32_from_f32(a))                                    \
	X(S32_FROM_F32_RN, u32, f32, s32_from_f32(rintf(a)))                             \
	X(S32_FROM_F32_RM, u32, f32, s32_from_f32(floorf(a)))                            \
	X(S32_FROM_F32_RP, u32, f32, s32_from_f32(ceilf(a)))                             \
	X(S32_FROM_F64_RZ, u32, f64, s32_from_f64(a))                                    \
	X(RINT_F32, f32, f32, canon(rintf(a)))                                           \
	X(TRUNC_F32, f32, f32, canon(truncf(a)))                                         \
	X(FLOOR_F32, f32, f32, canon(floorf(a)))                                         \
	X(CEIL_F32, f32, f32, canon(ceilf(a)))                                           \
	X(RINT_F64, f64, f64, rint(a))                                                   \
	X(TRUNC_F64, f64, f64, trunc(a))                                                 \
	X(FLOOR_F64, f64, f64, floor(a))                                                 \
	X(CEIL_F64, f64, f64, ceil(a))                                                   \
	X(FTZ_F32, f32, f32, ftz(a))                                                     \
	X(RELU_F32, f32, f32, a > 0 || a != a ? a : 0.0f)                                \
	X(RELU_F64, f64, f64, a > 0 || a != a ? a : 0.0)                                 \
	X(FTZ_F16, u32, u32, a & 0x7c00u ? a : a & 0x8000u)                              \
	X(FTZ_BF16, u32, u32, a & 0x7f80u ? a : a & 0x8000u)                             \
	X(SAT_F32, f32, f32, sat_f32(a))                                                 \
	X(SAT_F64, f64, f64, sat_f64(a))                                                 \
	X(ABS_F32, f32, f32, abs_f32(a))                                                 \
	X(NEG_F32, f32, f32, neg_f32(a))                                                 \
	X(ABS_F64, f64, f64, abs_f64(a))                                                 \
	X(NEG_F64, f64, f64, neg_f64(a))                                                 \
	X(SQRT_F32, f32, f32, canon(__builtin_sqrtf(a)))                                 \
	X(RSQRT_F32, f32, f32, canon((f32)(1.0 / __builtin_sqrt((f64)a))))               \
	X(RCP_F32, f32, f32, canon(1.0f / a))                                            \
	X(SQRT_F64, f64, f64, __builtin_sqrt(a))                                         \
	X(RSQRT_F64, f64, f64, 1.0 / __builtin_sqrt(a))                                  \
	X(RCP_F64, f64, f64, 1.0 / a)                                                    \
	X(RCP_UPPER_F64, f64, f64, upper_out(1.0 / upper_in(a)))                         \
	X(RSQRT_UPPER_F64, f64, f64, rsqrt_upper(upper_in(a)))                           \
	X(EX2_F32, f32, f32, canon(exp2f(a)))                                            \
	X(LG2_F32, f32, f32, canon(log2f(a)))                                            \
	X(SIN_F32, f32, f32, canon(sinf(a)))                                             \
	X(COS_F32, f32, f32, canon(cosf(a)))                                             \
	X(TANH_F32, f32, f32, canon(tanhf(a)))

/* X(name, type of d, type of a, type of b, expression) */
#define SOFTGPU_OPS_BINARY(X)                                                            \
	X(ADD_32, u32, u32, u32, a + b)                                                  \
	X(ADD_64, u64, u64, u64, a + b)                                                  \
	X(ADD_SAT_S32, u32, s32, s32, sat_add(a, b))                                     \
	X(SUB_32, u32, u32, u32, a - b)                                                  \
	X(SUB_64, u64, u64, u64, a - b)                                                  \
	X(SUB_SAT_S32, u32, s32, s32, sat_sub(a, b))                                     \
	X(MUL_32, u32, u32, u32, a *b)                                                   \
	X(MUL_64, u64, u64, u64, a *b)                                                   \
	X(MULHI_U16, u32, u16, u16, (u32)a *b >> 16)                                     \
	X(MULHI_S16, u32, s16, s16, (u32)((s32)a * b) >> 16)                             \
	X(MULHI_U32, u32, u32, u32, (u32)((u64)a * b >> 32))                             \
	X(MULHI_S32, u32, s32, s32, (u32)((u64)((s64)a * b) >> 32))                      \
	X(MULHI_U64, u64, u64, u64, umulhi_64(a, b))                                     \
	X(MULHI_S64, u64, s64, s64, smulhi_64(a, b))                                     \
	X(MULWIDE_U16, u32, u16, u16, (u32)a *b)                                         \
	X(MULWIDE_S16, u32, s16, s16, (u32)((s32)a * b))                                 \
	X(MULWIDE_U32, u64, u32, u32, (u64)a *b)                                         \
	X(MULWIDE_S32, u64, s32, s32, (u64)((s64)a * b))                                 \
	X(DIV_U16, u32, u16, u16, udiv_32(a, b))                                         \
	X(DIV_S16, u32, s16, s16, sdiv_32(a, b))                                         \
	X(DIV_U32, u32, u32, u32, udiv_32(a, b))                                         \
	X(DIV_S32, u32, s32, s32, sdiv_32(a, b))                                         \
	X(DIV_U64, u64, u64, u64, udiv_64(a, b))                                         \
	X(DIV_S64, u64, s64, s64, sdiv_64(a, b))                                         \
	X(REM_U16, u32, u16, u16, urem_32(a, b))                                         \
	X(REM_S16, u32, s16, s16, srem_32(a, b))                                         \
	X(REM_U32, u32, u32, u32, urem_32(a, b))                                         \
	X(REM_S32, u32, s32, s32, srem_32(a, b))                                         \
	X(REM_U64, u64, u64, u64, urem_64(a, b))                                         \
	X(REM_S64, u64, s64, s64, srem_64(a, b))                                         \
	X(MIN_U16, u32, u16, u16, a < b ? a : b)                                         \
	X(MIN_S16, u32, s16, s16, (u32)(s32)(a < b ? a : b))                             \
	X(MIN_U32, u32, u32, u32, a < b ? a : b)                                         \
	X(MIN_S32, u32, s32, s32, (u32)(a < b ? a : b))                                  \
	X(MIN_U64, u64, u64, u64, a < b ? a : b)                                         \
	X(MIN_S64, u64, s64, s64, (u64)(a < b ? a : b))                                  \
	X(MAX_U16, u32, u16, u16, a > b ? a : b)                                         \
	X(MAX_S16, u32, s16, s16, (u32)(s32)(a > b ? a : b))                             \
	X(MAX_U32, u32, u32, u32, a > b ? a : b)                                         \
	X(MAX_S32, u32, s32, s32, (u32)(a > b ? a : b))                                  \
	X(MAX_U64, u64, u64, u64, a > b ? a : b)                                         \
	X(MAX_S64, u64, s64, s64, (u64)(a > b ? a : b))                                  \
	X(AND_32, u32, u32, u32, a &b)                                                   \
	X(AND_64, u64, u64, u64, a &b)                                                   \
	X(OR_32, u32, u32, u32, a | b)                                                   \
	X(OR_64, u64, u64, u64, a | b)                                                   \
	X(XOR_32, u32, u32, u32, a ^ b)                                                  \
	X(XOR_64, u64, u64, u64, a ^ b)                                                  \
	X(SHL_32, u32, u32, u32, shl_32(a, b))                                           \
	X(SHL_64, u64, u64, u32, shl_64(a, b))                                           \
	X(SHR_U16, u32, u16, u32, shr_32(a, b))                                          \
	X(SHR_S16, u32, s16, u32, sar_32(a, b))                                          \
	X(SHR_U32, u32, u32, u32, shr_32(a, b))                                          \
	X(SHR_S32, u32, s32, u32, sar_32(a, b))                                          \
	X(SHR_U64, u64, u64, u32, shr_64(a, b))                                          \
	X(SHR_S64, u64, s64, u32, sar_64(a, b))                                          \
	X(BMSK_32, u32, u32, u32, bmsk_32(a, b, imm))                                    \
	X(SZEXT_U32, u32, u32, u32, szext_32(a, b, imm, false))                          \
	X(SZEXT_S32, u32, u32, u32, szext_32(a, b, imm, true))                           \
	X(PACK_32, u32, u16, u16, a | (u32)b << 16)                                      \
	X(PACK_64, u64, u32, u32, a | (u64)b << 32)                                      \
	X(ADD_X16, u32, u32, u32,                                                        \
		(u16)(a + b) | ((a & 0xffff0000u) + (b & 0xffff0000u)))                  \
	X(MIN_U16X2, u32, u32, u32,                                                      \
		(u16)((u16)a < (u16)b ? a : b) |                                         \
			(a >> 16 < b >> 16 ? a : b) >> 16 << 16)                         \
	X(MAX_U16X2, u32, u32, u32,                                                      \
		(u16)((u16)a > (u16)b ? a : b) |                                         \
			(a >> 16 > b >> 16 ? a : b) >> 16 << 16)                         \
	X(MIN_S16X2, u32, u32, u32,                                                      \
		(u16)((s16)a < (s16)b ? a : b) |                                         \
			((s32)a >> 16 < (s32)b >> 16 ? a : b) >> 16 << 16)               \
	X(MAX_S16X2, u32, u32, u32,                                                      \
		(u16)((s16)a > (s16)b ? a : b) |                                         \
			((s32)a >> 16 > (s32)b >> 16 ? a : b) >> 16 << 16)               \
	X(ADD_F32, f32, f32, f32, canon(a + b))                                          \
	X(SUB_F32, f32, f32, f32, canon(a - b))                                          \
	X(MUL_F32, f32, f32, f32, canon(a *b))                                           \
	X(DIV_F32, f32, f32, f32, canon(a / b))                                          \
	X(DIV_APPROX_F32, f32, f32, f32, canon(a / approx_divisor(b)))                   \
	X(MIN_F32, f32, f32, f32, min_f32(a, b))                                         \
	X(MAX_F32, f32, f32, f32, max_f32(a, b))                                         \
	X(NAN_F32, f32, f32, f32, nan_f32(a, b, 0.0f))                                   \
	X(ADD_FTZ_F32, f32, f32, f32, canon(ftz(ftz(a) + ftz(b))))                       \
	X(SUB_FTZ_F32, f32, f32, f32, canon(ftz(ftz(a) - ftz(b))))                       \
	X(MUL_FTZ_F32, f32, f32, f32, canon(ftz(ftz(a) * ftz(b))))                       \
	X(MIN_NAN_F32, f32, f32, f32, nan_f32(a, b, min_f32(a, b)))                      \
	X(MAX_NAN_F32, f32, f32, f32, nan_f32(a, b, max_f32(a, b)))                      \
	X(COPYSIGN_F32, f32, f32, f32,                                                   \
		make_f32((bits_f32(a) & 0x80000000u) | (bits_f32(b) & 0x7fffffffu)))     \
	X(ADD_F64, f64, f64, f64, a + b)                                                 \
	X(SUB_F64, f64, f64, f64, a - b)                                                 \
	X(MUL_F64, f64, f64, f64, a *b)                                                  \
	X(DIV_F64, f64, f64, f64, a / b)                                                 \
	X(MIN_F64, f64, f64, f64, min_f64(a, b))                                         \
	X(MAX_F64, f64, f64, f64, max_f64(a, b))                                         \
	X(COPYSIGN_F64, f64, f64, f64,                                                   \
		make_f64((bits_f64(a) & (UINT64_C(1) << 63)) |                           \
			 (bits_f64(b) & INT64_MAX)))

/* X(name, type of d, type of a, type of b, type of c, expression) */
#define SOFTGPU_OPS_TERNARY(X)                                                           \
	X(MAD_32, u32, u32, u32, u32, a *b + c)                                          \
	X(MAD_64, u64, u64, u64, u64, a *b + c)                                          \
	X(MADWIDE_U16, u32, u16, u16, u32, (u32)a *b + c)                                \
	X(MADWIDE_S16, u32, s16, s16, u32, (u32)((s32)a * b) + c)                        \
	X(MADWIDE_U32, u64, u32, u32, u64, (u64)a *b + c)                                \
	X(MADWIDE_S32, u64, s32, s32, u64, (u64)((s64)a * b) + c)                        \
	X(SAD_U16, u32, u16, u16, u32, c + (u32)(a < b ? b - a : a - b))                 \
	X(SAD_S16, u32, s16, s16, u32, c + (u32)(a < b ? b - a : a - b))                 \
	X(SAD_U32, u32, u32, u32, u32, c + (a < b ? b - a : a - b))                      \
	X(SAD_S32, u32, s32, s32, u32, c + (a < b ? (u32)b - (u32)a : (u32)a - (u32)b))  \
	X(SAD_U64, u64, u64, u64, u64, c + (a < b ? b - a : a - b))                      \
	X(SAD_S64, u64, s64, s64, u64, c + (a < b ? (u64)b - (u64)a : (u64)a - (u64)b))  \
	X(BFE_U32, u32, u32, u32, u32, (u32)bfe_u64(a, b, c, 32))                        \
	X(BFE_S32, u32, s32, u32, u32, (u32)bfe_s64(a, b, c, 32))                        \
	X(BFE_U64, u64, u64, u32, u32, bfe_u64(a, b, c, 64))                             \
	X(BFE_S64, u64, s64, u32, u32, bfe_s64(a, b, c, 64))                             \
	X(PRMT_32, u32, u32, u32, u32, prmt_32(a, b, c))                                 \
	X(PRMT_MODE_32, u32, u32, u32, u32, prmt_32(a, b, prmt_selector((u32)imm, c)))   \
	X(LOP3_32, u32, u32, u32, u32, lop3_32(a, b, c, imm))                            \
	X(SHF_L_WRAP, u32, u32, u32, u32, shf_l(a, b, c & 31))                           \
	X(SHF_L_CLAMP, u32, u32, u32, u32, shf_l(a, b, c > 32 ? 32 : c))                 \
	X(SHF_R_WRAP, u32, u32, u32, u32, shf_r(a, b, c & 31))                           \
	X(SHF_R_CLAMP, u32, u32, u32, u32, shf_r(a, b, c > 32 ? 32 : c))                 \
	X(FNS_32, u32, u32, u32, s32, fns_32(a, b, c))                                   \
	X(DP2A_32, u32, u32, u32, u32, dp2a_32(a, b, c, imm))                            \
	X(FMA_F32, f32, f32, f32, f32, canon(fma_f32(a, b, c)))                          \
	X(FMA_ODD_F64, f64, f64, f64, f64, fma_odd_f64(a, b, c))                         \
	X(FMA_FTZ_F32, f32, f32, f32, f32, canon(ftz(fma_f32(ftz(a), ftz(b), ftz(c)))))  \
	X(FMA_F64, f64, f64, f64, f64, fma_f64(a, b, c))

/* X(name, type of a and b, expression); the result is inverted where imm is not 0 */
#define SOFTGPU_OPS_COMPARE(X)                                                           \
	X(EQ_U16, u16, a == b)                                                           \
	X(LT_U16, u16, a < b)                                                            \
	X(LT_S16, s16, a < b)                                                            \
	X(EQ_U32, u32, a == b)                                                           \
	X(LT_U32, u32, a < b)                                                            \
	X(LT_S32, s32, a < b)                                                            \
	X(EQ_U64, u64, a == b)                                                           \
	X(LT_U64, u64, a < b)                                                            \
	X(LT_S64, s64, a < b)                                                            \
	X(EQ_F32, f32, a == b)                                                           \
	X(NE_F32, f32, (a < b) | (a > b))                                                \
	X(LT_F32, f32, a < b)                                                            \
	X(LE_F32, f32, a <= b)                                                           \
	X(NUM_F32, f32, (a == a) & (b == b))                                             \
	X(EQ_FTZ_F32, f32, ftz(a) == ftz(b))                                             \
	X(NE_FTZ_F32, f32, (ftz(a) < ftz(b)) | (ftz(a) > ftz(b)))                        \
	X(LT_FTZ_F32, f32, ftz(a) < ftz(b))                                              \
	X(LE_FTZ_F32, f32, ftz(a) <= ftz(b))                                             \
	X(EQ_F64, f64, a == b)                                                           \
	X(NE_F64, f64, (a < b) | (a > b))                                                \
	X(LT_F64, f64, a < b)                                                            \
	X(LE_F64, f64, a <= b)                                                           \
	X(NUM_F64, f64, (a == a) & (b == b))                                             \
	X(FINITE_F32, f32, (bits_f32(a) & 0x7fffffffu) < 0x7f800000u)                    \
	X(INFINITE_F32, f32, (bits_f32(a) & 0x7fffffffu) == 0x7f800000u)                 \
	X(NORMAL_F32, f32, ((bits_f32(a) & 0x7fffffffu) - 0x00800000u) < 0x7f000000u)    \
	X(SUBNORMAL_F32, f32, ((bits_f32(a) & 0x7fffffffu) - 1u) < 0x007fffffu)          \
	X(FINITE_F64, f64, fabs(a) <= 0x1.fffffffffffffp+1023)                           \
	X(INFINITE_F64, f64, fabs(a) > 0x1.fffffffffffffp+1023)                          \
	X(NORMAL_F64, f64,                                                               \
		(fabs(a) >= 0x1p-1022) & (fabs(a) <= 0x1.fffffffffffffp+1023))           \
	X(SUBNORMAL_F64, f64, (fabs(a) > 0) & (fabs(a) < 0x1p-1022))

/*
 * The sizes of memory access: X(suffix, type in memory, type of the register)
 */
#define SOFTGPU_ACCESS(X, _name)                                                         \
	X(_name, U8, u8, u32)                                                            \
	X(_name, S8, s8, u32)                                                            \
	X(_name, U16, u16, u32)                                                          \
	X(_name, S16, s16, u32)                                                          \
	X(_name, 32, u32, u32)                                                           \
	X(_name, 64, u64, u64)

/*
 * Operations of later versions of PTX. memory.c, atomic.c: halves of 128 bits in d and b,
 * in b and c; in d and f, with new ones in b and c; ATOM_PUT_128 stores the comparand of
 * CAS_128. call.c: imm is the index of the subroutine + 1. warpop.c: off is enum redux.
 */
#define SOFTGPU_OPS_NEWER(X)                                                             \
	X(LDV_128, "XxX---")                                                             \
	X(STV_128, "-xxx--")                                                             \
	X(ST_ZEROS, "-xx---")                                                            \
	X(ATOM_PUT_128, "-xx---")                                                        \
	X(ATOM_CAS_128, "Xxxx-X")                                                        \
	X(ATOM_EXCH_128, "Xxxx-X")                                                       \
	X(ATOM_MIN_F16, "Wxw---")                                                        \
	X(ATOM_MAX_F16, "Wxw---")                                                        \
	X(ATOM_MIN_F16X2, "Wxw---")                                                      \
	X(ATOM_MAX_F16X2, "Wxw---")                                                      \
	X(ATOM_MIN_BF16, "Wxw---")                                                       \
	X(ATOM_MAX_BF16, "Wxw---")                                                       \
	X(ATOM_MIN_BF16X2, "Wxw---")                                                     \
	X(ATOM_MAX_BF16X2, "Wxw---")                                                     \
	X(REDUX_MIN_F32, "Ww--w-")                                                       \
	X(REDUX_MAX_F32, "Ww--w-")                                                       \
	X(ELECT, "W---wP")                                                               \
	X(CLUSTER_ARRIVE, "------")                                                      \
	X(CLUSTER_WAIT, "------")                                                        \
	X(ALLOCA, "Xx----")                                                              \
	X(STACK_GET, "X-----")                                                           \
	X(STACK_SET, "-x----")

/*
 * async.c: addresses in a, of the source in b; of barriers the operand in b. reserved as
 * in memory.c, and MBARRIER_YIELDS.
 */
#define SOFTGPU_OPS_ASYNC(X)                                                             \
	X(CP_ASYNC, "-xxw--")	    /* c: bytes that are copied, the others are 0 */     \
	X(CP_BULK, "-xxw--")	    /* bulk.c */                                         \
	X(CP_BULK_MASKED, "-xxww-") /* e: bytes of each 16 */                            \
	X(CP_BULK_CAST, "-xxwxw")   /* e: barrier, f: blocks */                          \
	X(REDUCE_BULK, "-xxw--")    /* off: enum update, enum ptx_atom above */          \
	X(COPIES_WAIT, "------")    /* where a kernel is watched; async.c */             \
	X(COPIES_SIGNAL, "-x----")                                                       \
	X(TENSOR_LOAD, "-xxxw-")    /* tensor.c; b: map, c: barrier, e: blocks */        \
	X(TENSOR_STORE, "-xx---")   /* b: map */                                         \
	X(TENSOR_REPLACE, "-xx---") /* off: enum ptx_field, the number above */          \
	X(TRY_CANCEL, "-xx---") /* cancel.c; b: barrier; imm: for all of the cluster */  \
	X(MBARRIER_INIT, "-xw---")                                                       \
	X(MBARRIER_INVAL, "-xw---") /* b: any */                                         \
	X(MBARRIER_EXPECT, "-xw---")                                                     \
	X(MBARRIER_COMPLETE, "-xw---")                                                   \
	X(MBARRIER_ARRIVE, "Xxw---") /* d: the state */                                  \
	X(MBARRIER_DROP, "Xxw---")                                                       \
	X(MBARRIER_TEST, "Pxx---") /* b: a state */                                      \
	X(MBARRIER_PARITY, "Pxw---")                                                     \
	X(MBARRIER_PENDING, "Wx----") /* a: a state */

/*
 * The rest, written by hand: X(name, signature)
 *
 * A load has its elements in d, b, e, f and the address in a; a store has its
 * elements in b, c, e, f. Shared, local and parameter addresses have 32 bits.
 */
/* clang-format off */
#define SOFTGPU_OPS_OTHER(X)                                                             \
	SOFTGPU_OPS_TEXTURE(X)                                                           \
	SOFTGPU_OPS_NEWER(X)                                                             \
	SOFTGPU_OPS_ASYNC(X)                                                             \
	/* video.c; imm: enum video */                                                   \
	X(VIDEO, "Wwww--")                                                               \
	X(VIDEO_MAD, "Wwww--")                                                           \
	X(VIDEO_2, "Wwww--")                                                             \
	X(VIDEO_4, "Wwww--")                                                             \
	/* alu.c */                                                                      \
	X(SELP_32, "Wwwp--")                                                             \
	X(SELP_64, "Xxxp--")                                                             \
	X(BFI_32, "Wwwww-") /* c position, e length */                                   \
	X(BFI_64, "Xxxww-")                                                              \
	X(DP4A_32, "Wwww--") /* imm: bit 0 a is signed, bit 1 b is signed */             \
	X(CARRY_32, "Wwww--") /* imm: enum carry */                                      \
	X(CARRY_64, "Xxxx--")                                                            \
	X(MOV_P, "Pp----")                                                               \
	X(AND_P, "Ppp---")                                                               \
	X(OR_P, "Ppp---")                                                                \
	X(XOR_P, "Ppp---")                                                               \
	/* round.c; imm: enum ptx_round, flags above */                                  \
	X(ROUND_ADD_F32, "Www---")                                                       \
	X(ROUND_MUL_F32, "Www---")                                                       \
	X(ROUND_FMA_F32, "Wwww--")                                                       \
	X(ROUND_DIV_F32, "Www---")                                                       \
	X(ROUND_SQRT_F32, "Ww----")                                                      \
	X(ROUND_ADD_F64, "Xxx---")                                                       \
	X(ROUND_MUL_F64, "Xxx---")                                                       \
	X(ROUND_FMA_F64, "Xxxx--")                                                       \
	X(ROUND_DIV_F64, "Xxx---")                                                       \
	X(ROUND_SQRT_F64, "Xx----")                                                      \
	/* convert.c; imm: struct conversion */                                          \
	X(CVT_32_32, "Ww----")                                                           \
	X(CVT_32_64, "Wx----")                                                           \
	X(CVT_64_32, "Xw----")                                                           \
	X(CVT_64_64, "Xx----")                                                           \
	/* memory.c */                                                                   \
	X(LDG_U8, "Wx----")                                                              \
	X(LDG_S8, "Wx----")                                                              \
	X(LDG_U16, "Wx----")                                                             \
	X(LDG_S16, "Wx----")                                                             \
	X(LDG_32, "Wx----")                                                              \
	X(LDG_64, "Xx----")                                                              \
	X(LDG2_U8, "WxW---")                                                             \
	X(LDG2_S8, "WxW---")                                                             \
	X(LDG2_U16, "WxW---")                                                            \
	X(LDG2_S16, "WxW---")                                                            \
	X(LDG2_32, "WxW---")                                                             \
	X(LDG2_64, "XxX---")                                                             \
	X(LDG4_U8, "WxW-WW")                                                             \
	X(LDG4_S8, "WxW-WW")                                                             \
	X(LDG4_U16, "WxW-WW")                                                            \
	X(LDG4_S16, "WxW-WW")                                                            \
	X(LDG4_32, "WxW-WW")                                                             \
	X(LDG4_64, "XxX-XX")                                                             \
	X(STG_U8, "-xw---")                                                              \
	X(STG_U16, "-xw---")                                                             \
	X(STG_32, "-xw---")                                                              \
	X(STG_64, "-xx---")                                                              \
	X(STG2_U8, "-xww--")                                                             \
	X(STG2_U16, "-xww--")                                                            \
	X(STG2_32, "-xww--")                                                             \
	X(STG2_64, "-xxx--")                                                             \
	X(STG4_U8, "-xwwww")                                                             \
	X(STG4_U16, "-xwwww")                                                            \
	X(STG4_32, "-xwwww")                                                             \
	X(STG4_64, "-xxxxx")                                                             \
	X(LDS_U8, "Ww----")                                                              \
	X(LDS_S8, "Ww----")                                                              \
	X(LDS_U16, "Ww----")                                                             \
	X(LDS_S16, "Ww----")                                                             \
	X(LDS_32, "Ww----")                                                              \
	X(LDS_64, "Xw----")                                                              \
	X(LDS2_U8, "WwW---")                                                             \
	X(LDS2_S8, "WwW---")                                                             \
	X(LDS2_U16, "WwW---")                                                            \
	X(LDS2_S16, "WwW---")                                                            \
	X(LDS2_32, "WwW---")                                                             \
	X(LDS2_64, "XwX---")                                                             \
	X(LDS4_U8, "WwW-WW")                                                             \
	X(LDS4_S8, "WwW-WW")                                                             \
	X(LDS4_U16, "WwW-WW")                                                            \
	X(LDS4_S16, "WwW-WW")                                                            \
	X(LDS4_32, "WwW-WW")                                                             \
	X(LDS4_64, "XwX-XX")                                                             \
	X(STS_U8, "-ww---")                                                              \
	X(STS_U16, "-ww---")                                                             \
	X(STS_32, "-ww---")                                                              \
	X(STS_64, "-wx---")                                                              \
	X(STS2_U8, "-www--")                                                             \
	X(STS2_U16, "-www--")                                                            \
	X(STS2_32, "-www--")                                                             \
	X(STS2_64, "-wxx--")                                                             \
	X(STS4_U8, "-wwwww")                                                             \
	X(STS4_U16, "-wwwww")                                                            \
	X(STS4_32, "-wwwww")                                                             \
	X(STS4_64, "-wxxxx")                                                             \
	/* lane by lane, any space; reserved: ACCESS_ALIGN and the space */              \
	X(LD_U8, "Wx----")                                                               \
	X(LD_S8, "Wx----")                                                               \
	X(LD_U16, "Wx----")                                                              \
	X(LD_S16, "Wx----")                                                              \
	X(LD_32, "Wx----")                                                               \
	X(LD_64, "Xx----")                                                               \
	X(ST_U8, "-xw---")                                                               \
	X(ST_U16, "-xw---")                                                              \
	X(ST_32, "-xw---")                                                               \
	X(ST_64, "-xx---")                                                               \
	/* parameters, at off */                                                         \
	X(LDP_U8, "W-----")                                                              \
	X(LDP_S8, "W-----")                                                              \
	X(LDP_U16, "W-----")                                                             \
	X(LDP_S16, "W-----")                                                             \
	X(LDP_32, "W-----")                                                              \
	X(LDP_64, "X-----")                                                              \
	X(ISSPACEP, "Px----") /* imm: low end of the generic range, 0 global */          \
	X(IS_OWN_SHARED, "Px----")                                                       \
	X(FENCE, "------")                                                               \
	/* atomic.c; reserved: the space */                                              \
	X(ATOM_ADD_32, "Wxw---")                                                         \
	X(ATOM_ADD_64, "Xxx---")                                                         \
	X(ATOM_ADD_F32, "Wxw---")                                                        \
	X(ATOM_ADD_F64, "Xxx---")                                                        \
	X(ATOM_MIN_S32, "Wxw---")                                                        \
	X(ATOM_MIN_U32, "Wxw---")                                                        \
	X(ATOM_MIN_S64, "Xxx---")                                                        \
	X(ATOM_MIN_U64, "Xxx---")                                                        \
	X(ATOM_MAX_S32, "Wxw---")                                                        \
	X(ATOM_MAX_U32, "Wxw---")                                                        \
	X(ATOM_MAX_S64, "Xxx---")                                                        \
	X(ATOM_MAX_U64, "Xxx---")                                                        \
	X(ATOM_INC_32, "Wxw---")                                                         \
	X(ATOM_DEC_32, "Wxw---")                                                         \
	X(ATOM_AND_32, "Wxw---")                                                         \
	X(ATOM_AND_64, "Xxx---")                                                         \
	X(ATOM_OR_32, "Wxw---")                                                          \
	X(ATOM_OR_64, "Xxx---")                                                          \
	X(ATOM_XOR_32, "Wxw---")                                                         \
	X(ATOM_XOR_64, "Xxx---")                                                         \
	X(ATOM_EXCH_32, "Wxw---")                                                        \
	X(ATOM_EXCH_64, "Xxx---")                                                        \
	X(ATOM_CAS_16, "Wxww--")                                                         \
	X(ATOM_CAS_32, "Wxww--")                                                         \
	X(ATOM_CAS_64, "Xxxx--")                                                         \
	X(ATOM_ADD_F16, "Wxw---")                                                        \
	X(ATOM_ADD_F16X2, "Wxw---")                                                      \
	X(ATOM_ADD_BF16, "Wxw---")                                                       \
	X(ATOM_ADD_BF16X2, "Wxw---")                                                     \
	X(LDV_U8, "Wx----")                                                              \
	X(LDV_S8, "Wx----")                                                              \
	X(LDV_U16, "Wx----")                                                             \
	X(LDV_S16, "Wx----")                                                             \
	X(LDV_32, "Wx----")                                                              \
	X(LDV_64, "Xx----")                                                              \
	X(STV_U8, "-xw---")                                                              \
	X(STV_U16, "-xw---")                                                             \
	X(STV_32, "-xw---")                                                              \
	X(STV_64, "-xx---")                                                              \
	/* warpop.c; e of the sync forms: membermask */                                  \
	X(SHFL_UP, "WwwwwP")                                                             \
	X(SHFL_DOWN, "WwwwwP")                                                           \
	X(SHFL_BFLY, "WwwwwP")                                                           \
	X(SHFL_IDX, "WwwwwP")                                                            \
	X(VOTE_ALL, "P-p-w-")                                                            \
	X(VOTE_ANY, "P-p-w-")                                                            \
	X(VOTE_UNI, "P-p-w-")                                                            \
	X(VOTE_BALLOT, "W-p-w-")                                                         \
	X(MATCH_ANY_32, "Ww--w-")                                                        \
	X(MATCH_ANY_64, "Wx--w-")                                                        \
	X(MATCH_ALL_32, "Ww--wP")                                                        \
	X(MATCH_ALL_64, "Wx--wP")                                                        \
	X(REDUX_ADD, "Ww--w-")                                                           \
	X(REDUX_MIN_S32, "Ww--w-")                                                       \
	X(REDUX_MIN_U32, "Ww--w-")                                                       \
	X(REDUX_MAX_S32, "Ww--w-")                                                       \
	X(REDUX_MAX_U32, "Ww--w-")                                                       \
	X(REDUX_AND, "Ww--w-")                                                           \
	X(REDUX_OR, "Ww--w-")                                                            \
	X(REDUX_XOR, "Ww--w-")                                                           \
	X(ACTIVEMASK, "W-----")                                                          \
	X(WARP_SYNC, "----w-")                                                           \
	/* fragment.c; reserved of the first two: the space, and MATRIX_COUNT */         \
	X(LDMATRIX, "WxW-WW")                                                            \
	X(STMATRIX, "-xwwww")                                                            \
	X(LDMATRIX_BYTES, "WxW-WW") /* reserved: as above, and MATRIX_PACKING_* */       \
	X(STMATRIX_BYTES, "-xwwww")                                                      \
	X(MOVMATRIX, "Ww----")                                                           \
	X(MATRIX_PUT, "-wwwww") /* off: rows of block.matrix, in fives */                \
	X(MATRIX_PUT_64, "-xxxxx")                                                       \
	X(MATRIX_TAKE, "WWWW--") /* imm: rows, in fours */                               \
	X(MATRIX_TAKE_64, "XXXX--")                                                      \
	X(MATRIX_LOAD, "-xw---") /* stride; reserved: the space; e: see MATRIX_SHAPE */  \
	X(MATRIX_STORE, "-xw---")                                                        \
	/* product.c; imm: enum matrix_field */                                          \
	X(MMA_REAL, "------")                                                            \
	X(MMA_INTEGER, "------")                                                         \
	X(MMA_BITS, "------")                                                            \
	X(MMA_QUADS, "------")                                                           \
	X(MMA_F64, "------") /* double.c */                                              \
	/* runtime.c */                                                                  \
	X(VPRINTF, "Wxx---") /* format, argument block */                                \
	X(ASSERT_FAIL, "-xxwx-") /* message, file, line, function */                     \
	X(MALLOC, "Xx----")                                                              \
	X(FREE, "-x----")                                                                \
	X(SET_CONDITION, "-xw---") /* handle, value */                                   \
	X(SERVE, "------")         /* service.c; off: the call */                        \
	/* control.c */                                                                  \
	X(BRA, "------")                                                                 \
	X(BRX, "-w----") /* off: first of the kernel's targets, e: how many */           \
	X(EXIT, "------")                                                                \
	X(TRAP, "------")                                                                \
	/* call.c; off: the call */                                                      \
	X(CALL, "------")                                                                \
	X(CALL_POINTER, "-x----")                                                        \
	X(RETURN, "------")                                                              \
	X(REFUSE, "------")                                                              \
	X(FRAME, "X-----")                                                               \
	/* control.c */                                                                  \
	X(NOP, "------")                                                                 \
	X(NANOSLEEP, "------")                                                           \
	X(BAR_SYNC, "-w----") /* a: barrier */                                           \
	X(BAR_SYNC_N, "-ww---") /* b: threads */                                         \
	X(BAR_ARRIVE, "-ww---")                                                          \
	X(BAR_RED_AND, "Pwwp--")                                                         \
	X(BAR_RED_OR, "Pwwp--")                                                          \
	X(BAR_RED_POPC, "Wwwp--")                                                        \
	X(MAPA_32, "Www---") /* imm: where shared addresses begin */                     \
	X(MAPA_64, "Xxw---")                                                             \
	X(RANK_32, "Ww----")                                                             \
	X(RANK_64, "Wx----")                                                             \
	X(IS_CLUSTER, "P-----")                                                          \
	X(READ_CLOCK, "X-----")                                                          \
	X(READ_TIMER, "X-----")
/* clang-format on */

/* clang-format off */
enum op {
#define OP_ENUM(_name, ...) OP_##_name,
	SOFTGPU_OPS_UNARY(OP_ENUM)
	SOFTGPU_OPS_BINARY(OP_ENUM)
	SOFTGPU_OPS_TERNARY(OP_ENUM)
	SOFTGPU_OPS_COMPARE(OP_ENUM)
	SOFTGPU_OPS_OTHER(OP_ENUM)
#undef OP_ENUM
	/* Comparisons before a branch, in the same order as above: both are run at once.
	 */
#define OP_ENUM(_name, ...) OP_##_name##_BRA,
	SOFTGPU_OPS_COMPARE(OP_ENUM)
#undef OP_ENUM
	_OP_N,
};
/* clang-format on */

/* off of TEX */
enum texture_option {
	TEX_SHAPE = 7,		/* mask: enum texture_shape */
	TEX_INTEGER = 8,	/* coordinates are */
	TEX_GRADIENT = 16,	/* instead of a level */
	TEX_F16 = 32,		/* results are f16 */
	TEX_F16X2 = 64,		/* results are two pairs of f16 */
	TEX_GATHER = 128,	/* one channel of four texels */
	TEX_CHANNEL_SHIFT = 8,	/* which one */
	TEX_OFFSETS = 1 << 10,	/* of texels, are added to the coordinates */
	TEX_SAMPLER = 1 << 11,	/* there is a separate one: */
	TEX_SAMPLER_SHIFT = 12, /* enum ptx_sampling, 8 bits */
};

/* off of SULD_*, SUST_*, SURED_* */
enum surface_option {
	SURFACE_SHAPE = 7,	  /* mask: enum texture_shape */
	SURFACE_BOUNDS_SHIFT = 3, /* 2 bits: enum surface_bounds */
	SURFACE_SIZE_SHIFT = 5,	  /* 2 bits: logarithm of an element's bytes */
	SURFACE_COUNT_SHIFT = 7,  /* 3 bits: elements */
	SURFACE_ATOM_SHIFT = 10,  /* 4 bits: enum ptx_atom */
	SURFACE_SIGNED = 1 << 14,
	SURFACE_FORMATTED = 1 << 15, /* SURED_*: texels of the surface's format */
};

/* off of TXQ: the object is a surface */
#define TXQ_SURFACE 64u

/* The types of elements that REDUCE_BULK and TENSOR_STORE update. */
enum update {
	UPDATE_U32,
	UPDATE_S32,
	UPDATE_U64,
	UPDATE_S64,
	UPDATE_F16,
	UPDATE_BF16,
	UPDATE_F32,
	UPDATE_F64,
};

#define UPDATE_ATOM_SHIFT 8

/*
 * off of TENSOR_*; the coordinates are in the first five rows of block.matrix, the
 * offsets in the next
 */
enum tensor_option {
	TENSOR_RANK = 7,       /* mask */
	TENSOR_MODE_SHIFT = 3, /* 3 bits: enum ptx_tensor */
	TENSOR_CAST = 64,      /* to the blocks of a mask */
	TENSOR_ATOM_SHIFT = 8, /* 8 bits: enum ptx_atom, 0: none */
};

#define TENSOR_COORDINATES 5u

/* off of REDUX_*_F32 */
enum redux {
	REDUX_ABS = 1,
	REDUX_NAN = 2,
};

/* reserved of LD_*, ST_*, LDV_*, STV_* and ATOM_*: alignment - 1, and a space above */
#define ACCESS_ALIGN 255u
#define ACCESS_SPACE_SHIFT 8 /* two bits */

/* reserved of LDS_*, and of STS_*: it has a memory order, as where a thread waits */
#define ACCESS_POLLS 1u

/*
 * reserved of LDG_*, LDS_*, STG_* and STS_*: several of a block have the same address,
 * but for the offset in the instruction. The first one notes how it goes on from lane to
 * lane, in the warp, where the others find it; 3 bits: where.
 */
#define ACCESS_NOTES 2u
#define ACCESS_NOTED 4u
#define ACCESS_NOTE_SHIFT 4
#define ACCESS_NOTES_MAX 8u

/* reserved of MBARRIER_TEST and MBARRIER_PARITY: a thread that waits lets others run; of
 * MBARRIER_COMPLETE: the bytes are those of the copy before */
#define MBARRIER_YIELDS 1u
#define MBARRIER_OF_COPY 1u

enum access_space {
	ACCESS_GENERIC, /* and global: the same addresses */
	ACCESS_SHARED,
	ACCESS_LOCAL,
	ACCESS_PARAM,
};

/* imm of VIDEO_*: the operation in the low 4 bits, and what else there is */
enum video {
	VIDEO_OP = 15, /* mask: enum video_op */
	VIDEO_SIGNED_D = 1 << 4,
	VIDEO_SIGNED_A = 1 << 5,
	VIDEO_SIGNED_B = 1 << 6,
	VIDEO_SAT = 1 << 7,
	VIDEO_WRAP = 1 << 8,	 /* of shifts */
	VIDEO_PLUS_ONE = 1 << 9, /* of VIDEO_MAD, and the two below */
	VIDEO_NEGATE_PRODUCT = 1 << 10,
	VIDEO_NEGATE_C = 1 << 11,
	VIDEO_SECOND_SHIFT = 12, /* 2 bits: 0 none, add, min, max */
	VIDEO_CMP_SHIFT = 14,	 /* 3 bits: enum ptx_cmp - PTX_CMP_EQ */
	VIDEO_SCALE_SHIFT = 17,	 /* 4 bits: 0, 7 or 15 */
	/* Of VIDEO: parts, 3 bits each: 0 all, 1 to 4 bytes, 5 and 6 halves. */
	VIDEO_PART_D_SHIFT = 24,
	VIDEO_PART_A_SHIFT = 27,
	VIDEO_PART_B_SHIFT = 30,
	/* Of VIDEO_2 and VIDEO_4: the lanes that count, and for each where it is from. */
	VIDEO_MASK_SHIFT = 24,
	VIDEO_FROM_A_SHIFT = 32, /* 3 bits a lane, the lowest lane first */
	VIDEO_FROM_B_SHIFT = 48,
};

enum video_op {
	VIDEO_ADD,
	VIDEO_SUB,
	VIDEO_ABSDIFF,
	VIDEO_MIN,
	VIDEO_MAX,
	VIDEO_SHL,
	VIDEO_SHR,
	VIDEO_SET,
	VIDEO_AVRG,
};

/* reserved of LDMATRIX and STMATRIX */
enum matrix_access {
	MATRIX_COUNT = 7, /* mask: matrices */
	MATRIX_TRANS = 8,
	MATRIX_PACKING_SHIFT = 4, /* 2 bits: enum matrix_packing */
};

/* How 16 bytes have 16 elements of a matrix of bytes. */
enum matrix_packing {
	MATRIX_PACKING_NONE,
	MATRIX_PACKING_6, /* bits each, in the first 12 */
	MATRIX_PACKING_4,
};

/* What the elements of a matrix are. */
enum matrix_type {
	MATRIX_F16,
	MATRIX_BF16,
	MATRIX_TF32,
	MATRIX_E4M3,
	MATRIX_E5M2,
	MATRIX_F32,
	MATRIX_F64,
	MATRIX_U8,
	MATRIX_S8,
	MATRIX_U4,
	MATRIX_S4,
	MATRIX_S32,
	MATRIX_B1,
};

/* imm of MMA_*: where each field is; those without a width are one bit */
enum matrix_field {
	MATRIX_M = 0,  /* 3 bits: rows of the result, in eights */
	MATRIX_N = 3,  /* 3 bits: columns, in eights */
	MATRIX_K = 6,  /* 10 bits: columns of A, rows of B */
	MATRIX_A = 16, /* 4 bits each: enum matrix_type */
	MATRIX_B = 20,
	MATRIX_C = 24,
	MATRIX_D = 28,
	MATRIX_SATFINITE = 32,
	MATRIX_AND = 33, /* of bits: else exclusive or */
	MATRIX_SPARSE = 34,
	MATRIX_SELECTOR = 35, /* 2 bits: lanes of four with the metadata */
	MATRIX_COL_A = 37,    /* of MMA_QUADS: the order of the fragment */
	MATRIX_COL_B = 38,
	MATRIX_ROUND = 40, /* 8 bits: enum ptx_round */
	/* Of MMA_REAL: A or B is that of the one before, as block.matrix_a and _b. */
	MATRIX_KEEPS_A = 48,
	MATRIX_KEEPS_B = 49,
	/* Of all but MMA_F64 and MMA_QUADS, see lower/matrix.c */
	MATRIX_PUTS = 50,  /* 3 bits: MATRIX_PUT behind it, and again after MATRIX_TAKE */
	MATRIX_TAKES = 53, /* 2 bits: MATRIX_TAKE */
	MATRIX_APART = 55, /* each register of D is none of C, or that in its place */
};

/* imm of MATRIX_LOAD and MATRIX_STORE: MATRIX_M, _N and _K as above, 32 bits higher, and
 */
enum matrix_place {
	MATRIX_SHAPE = 32,
	MATRIX_ROLE = 48, /* 2 bits: enum matrix_role */
	MATRIX_TYPE = 50, /* 4 bits */
	MATRIX_COL = 54,  /* columns are contiguous in memory */
};

enum matrix_role {
	MATRIX_ROLE_A,
	MATRIX_ROLE_B,
	MATRIX_ROLE_C, /* and D */
};

/* imm of CARRY_*: how the sum is made */
enum carry {
	CARRY_IN = 1,	 /* uses the flag */
	CARRY_OUT = 2,	 /* sets it */
	CARRY_SUB = 4,	 /* a - b instead of a + b */
	CARRY_LOW = 8,	 /* a * b + c, low half */
	CARRY_HIGH = 16, /* a * b + c, high half */
	CARRY_SIGNED = 32,
};

/* imm of ROUND_*: enum ptx_round in the low byte */
enum round_flag {
	ROUND_FTZ = 256,
	ROUND_SAT = 512,
	ROUND_NEGATE = 1024, /* b is negated: sub */
};

/* imm of CVT_*: what convert.c needs to know */
enum conversion {
	CONVERT_TO = 0,	    /* 8 bits: enum ptx_type */
	CONVERT_FROM = 8,   /* 8 bits */
	CONVERT_ROUND = 16, /* 8 bits: enum ptx_round */
	CONVERT_FTZ = 1 << 24,
	CONVERT_SAT = 1 << 25,
	CONVERT_RELU = 1 << 26,
	CONVERT_SATFINITE = 1 << 27,
};
