/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: arithmetic, logic, comparison
 *
 * Where all lanes that live take part, a handler computes all 32 and stores them;
 * else it computes all 32 and keeps what the others had.
 */

#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "exec/branch.h"

#define ALL_LANES(_mask) __builtin_expect(((_mask) | w->dead) == UINT32_MAX, 1)

#define HANDLER_UNARY(_name, _D, _A, _expr)                                              \
	HANDLER(_name)                                                                   \
	{                                                                                \
		lane_##_D *d = REG(lane_##_D, ip->d);                                    \
		const lane_##_A *pa = REG(lane_##_A, ip->a);                             \
		const uint64_t imm = ip->imm;                                            \
                                                                                         \
		(void)imm;                                                               \
		if (ALL_LANES(mask)) {                                                   \
			EACH_LANE                                                        \
			{                                                                \
				_A a = (_A)pa[i];                                        \
				d[i] = (lane_##_D)(_expr);                               \
			}                                                                \
		} else {                                                                 \
			EACH_LANE                                                        \
			{                                                                \
				_A a = (_A)pa[i];                                        \
				lane_##_D r = (lane_##_D)(_expr), old = d[i];            \
				d[i] = mask & lane_bit[i] ? r : old;                     \
			}                                                                \
		}                                                                        \
		return ip + 1;                                                           \
	}

#define HANDLER_BINARY(_name, _D, _A, _B, _expr)                                         \
	HANDLER(_name)                                                                   \
	{                                                                                \
		lane_##_D *d = REG(lane_##_D, ip->d);                                    \
		const lane_##_A *pa = REG(lane_##_A, ip->a);                             \
		const lane_##_B *pb = REG(lane_##_B, ip->b);                             \
		const uint64_t imm = ip->imm;                                            \
                                                                                         \
		(void)imm;                                                               \
		if (ALL_LANES(mask)) {                                                   \
			EACH_LANE                                                        \
			{                                                                \
				_A a = (_A)pa[i];                                        \
				_B b = (_B)pb[i];                                        \
				d[i] = (lane_##_D)(_expr);                               \
			}                                                                \
		} else {                                                                 \
			EACH_LANE                                                        \
			{                                                                \
				_A a = (_A)pa[i];                                        \
				_B b = (_B)pb[i];                                        \
				lane_##_D r = (lane_##_D)(_expr), old = d[i];            \
				d[i] = mask & lane_bit[i] ? r : old;                     \
			}                                                                \
		}                                                                        \
		return ip + 1;                                                           \
	}

#define HANDLER_TERNARY(_name, _D, _A, _B, _C, _expr)                                    \
	HANDLER(_name)                                                                   \
	{                                                                                \
		lane_##_D *d = REG(lane_##_D, ip->d);                                    \
		const lane_##_A *pa = REG(lane_##_A, ip->a);                             \
		const lane_##_B *pb = REG(lane_##_B, ip->b);                             \
		const lane_##_C *pc = REG(lane_##_C, ip->c);                             \
		const uint64_t imm = ip->imm;                                            \
                                                                                         \
		(void)imm;                                                               \
		if (ALL_LANES(mask)) {                                                   \
			EACH_LANE                                                        \
			{                                                                \
				_A a = (_A)pa[i];                                        \
				_B b = (_B)pb[i];                                        \
				_C c = (_C)pc[i];                                        \
				d[i] = (lane_##_D)(_expr);                               \
			}                                                                \
		} else {                                                                 \
			EACH_LANE                                                        \
			{                                                                \
				_A a = (_A)pa[i];                                        \
				_B b = (_B)pb[i];                                        \
				_C c = (_C)pc[i];                                        \
				lane_##_D r = (lane_##_D)(_expr), old = d[i];            \
				d[i] = mask & lane_bit[i] ? r : old;                     \
			}                                                                \
		}                                                                        \
		return ip + 1;                                                           \
	}

/*
 * Comparisons: each lane is all ones or 0, in words as wide as the operands; then the
 * words become bits.
 */
#if defined(__AVX2__)
SCALAR u32 bits_of_32(const s32 is[LANES])
{
	u32 bits = 0;

	for (int i = 0; i < LANES; i += 8)
		bits |= (u32)_mm256_movemask_ps(_mm256_castsi256_ps(
				_mm256_load_si256((const __m256i *)(is + i))))
			<< i;
	return bits;
}

SCALAR u32 bits_of_64(const s64 is[LANES])
{
	u32 bits = 0;

	for (int i = 0; i < LANES; i += 4)
		bits |= (u32)_mm256_movemask_pd(_mm256_castsi256_pd(
				_mm256_load_si256((const __m256i *)(is + i))))
			<< i;
	return bits;
}
#elif defined(__SSE2__)
SCALAR u32 bits_of_32(const s32 is[LANES])
{
	u32 bits = 0;

	for (int i = 0; i < LANES; i += 4)
		bits |= (u32)_mm_movemask_ps(_mm_castsi128_ps(
				_mm_load_si128((const __m128i *)(is + i))))
			<< i;
	return bits;
}

SCALAR u32 bits_of_64(const s64 is[LANES])
{
	u32 bits = 0;

	for (int i = 0; i < LANES; i += 2)
		bits |= (u32)_mm_movemask_pd(_mm_castsi128_pd(
				_mm_load_si128((const __m128i *)(is + i))))
			<< i;
	return bits;
}
#else
SCALAR u32 bits_of_32(const s32 is[LANES])
{
	u32 bits = 0;

	EACH_LANE bits |= is[i] ? lane_bit[i] : 0;
	return bits;
}

SCALAR u32 bits_of_64(const s64 is[LANES])
{
	u32 bits = 0;

	EACH_LANE bits |= is[i] ? lane_bit[i] : 0;
	return bits;
}
#endif

#define WORD_u16 32
#define WORD_s16 32
#define WORD_u32 32
#define WORD_s32 32
#define WORD_f32 32
#define WORD_u64 64
#define WORD_s64 64
#define WORD_f64 64
#define WORD_PASTE_(_what, _bits) _what##_bits
#define WORD_PASTE(_what, _bits) WORD_PASTE_(_what, _bits)
#define WORD(_what, _T) WORD_PASTE(_what, WORD_##_T)

/* Alone, and with the branch that follows it, which is run at once. */
#define HANDLER_COMPARE(_name, _T, _expr)                                                \
	SCALAR void HANDLER_NAME(_name##_all)(                                           \
		struct warp * w, const struct insn *ip, uint32_t mask)                   \
	{                                                                                \
		const lane_##_T *pa = REG(lane_##_T, ip->a);                             \
		const lane_##_T *pb = REG(lane_##_T, ip->b);                             \
		WORD(s, _T) is[LANES] __attribute__((aligned(64)));                      \
                                                                                         \
		EACH_LANE                                                                \
		{                                                                        \
			_T a = (_T)pa[i];                                                \
			_T b = (_T)pb[i];                                                \
			(void)b;                                                         \
			is[i] = (_expr) ? -1 : 0;                                        \
		}                                                                        \
		pred_write(                                                              \
			w, ip->d, mask, WORD(bits_of_, _T)(is) ^ (0u - (u32)ip->imm));   \
	}                                                                                \
                                                                                         \
	HANDLER(_name)                                                                   \
	{                                                                                \
		HANDLER_NAME(_name##_all)(w, ip, mask);                                  \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(_name##_BRA)                                                             \
	{                                                                                \
		HANDLER_NAME(_name##_all)(w, ip, mask);                                  \
		return branch_at(w, ip + 1);                                             \
	}

SOFTGPU_OPS_UNARY(HANDLER_UNARY)
SOFTGPU_OPS_BINARY(HANDLER_BINARY)
SOFTGPU_OPS_TERNARY(HANDLER_TERNARY)
SOFTGPU_OPS_COMPARE(HANDLER_COMPARE)

#define HANDLER_SELP(_name, _T)                                                          \
	HANDLER(_name)                                                                   \
	{                                                                                \
		_T *d = REG(_T, ip->d);                                                  \
		const _T *a = REG(_T, ip->a), *b = REG(_T, ip->b);                       \
		uint32_t choice = pred_read(w, ip->c);                                   \
                                                                                         \
		if (ALL_LANES(mask)) {                                                   \
			EACH_LANE                                                        \
			{                                                                \
				_T x = a[i], y = b[i];                                   \
				d[i] = choice & lane_bit[i] ? x : y;                     \
			}                                                                \
		} else {                                                                 \
			EACH_LANE                                                        \
			{                                                                \
				_T x = a[i], y = b[i], old = d[i];                       \
				_T r = choice & lane_bit[i] ? x : y;                     \
				d[i] = mask & lane_bit[i] ? r : old;                     \
			}                                                                \
		}                                                                        \
		return ip + 1;                                                           \
	}

HANDLER_SELP(SELP_32, uint32_t)
HANDLER_SELP(SELP_64, uint64_t)

#define HANDLER_BFI(_name, _T, _size)                                                    \
	HANDLER(_name)                                                                   \
	{                                                                                \
		_T *d = REG(_T, ip->d);                                                  \
		const _T *a = REG(_T, ip->a), *b = REG(_T, ip->b);                       \
		const uint32_t *pos = REG(uint32_t, ip->c), *len = REG(uint32_t, ip->e); \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		d[i] = (_T)bfi_64(a[i], b[i], pos[i], len[i], _size);                    \
		return ip + 1;                                                           \
	}

HANDLER_BFI(BFI_32, uint32_t, 32)
HANDLER_BFI(BFI_64, uint64_t, 64)

/*
 * Products of four bytes. Two of them, the even or the odd ones, are multiplied and added
 * at once as pairs of 16 bits.
 */
#ifdef __SSE2__
#define DP4A_LANES 4

SCALAR __m128i byte_pairs(__m128i x, bool is_odd, bool is_signed)
{
	if (!is_odd)
		x = _mm_slli_epi16(x, 8);
	return is_signed ? _mm_srai_epi16(x, 8) : _mm_srli_epi16(x, 8);
}

SCALAR void dp4a_lanes(const u32 *pa, const u32 *pb, const u32 *pc, u64 imm, u32 *to)
{
	__m128i a = _mm_load_si128((const __m128i *)pa);
	__m128i b = _mm_load_si128((const __m128i *)pb);
	__m128i sums = _mm_load_si128((const __m128i *)pc);

	for (int odd = 0; odd < 2; odd++)
		sums = _mm_add_epi32(sums, _mm_madd_epi16(byte_pairs(a, odd, imm & 1),
						   byte_pairs(b, odd, imm & 2)));
	_mm_store_si128((__m128i *)to, sums);
}
#else
#define DP4A_LANES 1

SCALAR void dp4a_lanes(const u32 *pa, const u32 *pb, const u32 *pc, u64 imm, u32 *to)
{
	*to = dp4a_32(*pa, *pb, *pc, imm);
}
#endif

/* The constants make four loops of it. */
SCALAR void dp4a(const u32 *a, const u32 *b, const u32 *c, u64 imm, u32 *to)
{
	for (int i = 0; i < LANES; i += DP4A_LANES)
		dp4a_lanes(a + i, b + i, c + i, imm, to + i);
}

HANDLER(DP4A_32)
{
	const u32 *a = REG(u32, ip->a), *b = REG(u32, ip->b), *c = REG(u32, ip->c);
	u32 *d = REG(u32, ip->d), sums[LANES] __attribute__((aligned(64)));

	switch (ip->imm & 3) {
	case 0:
		dp4a(a, b, c, 0, sums);
		break;
	case 1:
		dp4a(a, b, c, 1, sums);
		break;
	case 2:
		dp4a(a, b, c, 2, sums);
		break;
	default:
		dp4a(a, b, c, 3, sums);
		break;
	}
	if (ALL_LANES(mask))
		memcpy(d, sums, sizeof(sums));
	else
		EACH_LANE d[i] = mask & lane_bit[i] ? sums[i] : d[i];
	return ip + 1;
}

/*
 * Sums with a carry. A difference is a + ~b + carry, with a carry of 1 if there is no
 * carry-in. The flag is always the adder's carry, so sub.cc leaves the complement of a
 * borrow: subc expects that, and addc sees the same as on a device.
 */
#define HANDLER_CARRY(_name, _U, _S, _WIDE_U, _WIDE_S, _size)                            \
	HANDLER(_name)                                                                   \
	{                                                                                \
		_U *d = REG(_U, ip->d);                                                  \
		const _U *a = REG(_U, ip->a), *b = REG(_U, ip->b), *c = REG(_U, ip->c);  \
		uint32_t flag = w->preds[PRED_CARRY], out = 0, how = (uint32_t)ip->imm;  \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			_U x = a[i], y = b[i],                                           \
			   carry = how & CARRY_IN ? flag >> i & 1 : 0;                   \
			_U sum;                                                          \
			bool over;                                                       \
                                                                                         \
			if (how & (CARRY_LOW | CARRY_HIGH)) {                            \
				_WIDE_U p = how & CARRY_SIGNED                           \
						    ? (_WIDE_U)((_WIDE_S)(_S)x * (_S)y)  \
						    : (_WIDE_U)x * y;                    \
				x = (_U)(how & CARRY_HIGH ? p >> _size : p);             \
				y = c[i];                                                \
			} else if (how & CARRY_SUB) {                                    \
				y = ~y;                                                  \
				carry |= !(how & CARRY_IN);                              \
			}                                                                \
			over = __builtin_add_overflow(x, y, &sum);                       \
			over |= __builtin_add_overflow(sum, carry, &sum);                \
			d[i] = sum;                                                      \
			if (over)                                                        \
				out |= lane_bit[i];                                      \
		}                                                                        \
		if (how & CARRY_OUT)                                                     \
			pred_write(w, PRED_CARRY, mask, out);                            \
		return ip + 1;                                                           \
	}

HANDLER_CARRY(CARRY_32, uint32_t, int32_t, uint64_t, int64_t, 32)
HANDLER_CARRY(CARRY_64, uint64_t, int64_t, unsigned __int128, __int128, 64)

#define HANDLER_PRED(_name, _expr)                                                       \
	HANDLER(_name)                                                                   \
	{                                                                                \
		uint32_t a = pred_read(w, ip->a), b = pred_read(w, ip->b);               \
                                                                                         \
		(void)b;                                                                 \
		pred_write(w, ip->d, mask, _expr);                                       \
		return ip + 1;                                                           \
	}

HANDLER_PRED(MOV_P, a)
HANDLER_PRED(AND_P, a &b)
HANDLER_PRED(OR_P, a | b)
HANDLER_PRED(XOR_P, a ^ b)
