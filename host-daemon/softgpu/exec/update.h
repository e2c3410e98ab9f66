/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The numbers that atomic operations and reductions leave in memory
 */

#include "exec/half.h"
#include "exec/ops.h"
#include "ptx/isa.h"

SCALAR u32 half_add(u32 a, u32 b)
{
	return half_from_f32(half_to_f32((u16)a) + half_to_f32((u16)b));
}

SCALAR u32 bfloat_add(u32 a, u32 b)
{
	u32 r = bits_f32(make_f32(a << 16) + make_f32(b << 16));

	if ((r & 0x7fffffffu) > 0x7f800000u)
		return 0x7fff;
	return (r + 0x7fff + (r >> 16 & 1)) >> 16;
}

/* Of min and max: which of two halves, by the rules of min_f32() and max_f32(). */
SCALAR u32 half_least(u32 a, u32 b)
{
	return half_from_f32(min_f32(half_to_f32((u16)a), half_to_f32((u16)b)));
}

SCALAR u32 half_greatest(u32 a, u32 b)
{
	return half_from_f32(max_f32(half_to_f32((u16)a), half_to_f32((u16)b)));
}

/* Each is one of the two, or NaN. */
SCALAR u32 bfloat_least(u32 a, u32 b)
{
	return bits_f32(min_f32(make_f32(a << 16), make_f32(b << 16))) >> 16;
}

SCALAR u32 bfloat_greatest(u32 a, u32 b)
{
	return bits_f32(max_f32(make_f32(a << 16), make_f32(b << 16))) >> 16;
}

SCALAR u32 float_add(u32 a, u32 b)
{
	return bits_f32(canon(make_f32(a) + make_f32(b)));
}

/* The adder of global memory flushes subnormal numbers, that of shared memory does
 * not. */
SCALAR u32 flushing_add(u32 a, u32 b)
{
	return bits_f32(canon(ftz(ftz(make_f32(a)) + ftz(make_f32(b)))));
}

/* @is_global: the sum of f32 flushes; of any other type and place it does not. */
SCALAR u64 updated_real(enum update type, u32 atom, u64 a, u64 b, bool is_global)
{
	u32 x = (u32)a, y = (u32)b;
	bool min = atom == PTX_ATOM_MIN;

	switch (type) {
	case UPDATE_F16:
		return atom == PTX_ATOM_ADD ? half_add(x, y)
		       : min		    ? half_least(x, y)
					    : half_greatest(x, y);
	case UPDATE_BF16:
		return atom == PTX_ATOM_ADD ? bfloat_add(x, y)
		       : min		    ? bfloat_least(x, y)
					    : bfloat_greatest(x, y);
	case UPDATE_F32:
		return is_global ? flushing_add(x, y) : float_add(x, y);
	default:
		return bits_f64(make_f64(a) + make_f64(b));
	}
}

SCALAR bool update_is_less(enum update type, u64 a, u64 b)
{
	switch (type) {
	case UPDATE_S32:
		return (s32)a < (s32)b;
	case UPDATE_S64:
		return (s64)a < (s64)b;
	default:
		return a < b;
	}
}

/* The value that follows @a, by an operand @b of that type. */
SCALAR u64 updated(enum update type, u32 atom, u64 a, u64 b, bool is_global)
{
	if (type >= UPDATE_F16)
		return updated_real(type, atom, a, b, is_global);
	switch (atom) {
	case PTX_ATOM_ADD:
		return a + b;
	case PTX_ATOM_MIN:
		return update_is_less(type, a, b) ? a : b;
	case PTX_ATOM_MAX:
		return update_is_less(type, a, b) ? b : a;
	case PTX_ATOM_INC:
		return a >= b ? 0 : a + 1;
	case PTX_ATOM_DEC:
		return !a || a > b ? b : a - 1;
	case PTX_ATOM_AND:
		return a & b;
	case PTX_ATOM_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* Bytes of an element. */
SCALAR u32 update_size(enum update type)
{
	switch (type) {
	case UPDATE_F16:
	case UPDATE_BF16:
		return 2;
	case UPDATE_U32:
	case UPDATE_S32:
	case UPDATE_F32:
		return 4;
	default:
		return 8;
	}
}

/* Other threads of the process update global memory at the same time. */
#define UPDATE_GLOBAL(_T)                                                                \
	do {                                                                             \
		_T *p_ = to, old_ = __atomic_load_n(p_, __ATOMIC_RELAXED), new_;         \
                                                                                         \
		do                                                                       \
			new_ = (_T)updated(type, atom, old_, *(const _T *)from, true);   \
		while (!__atomic_compare_exchange_n(                                     \
			p_, &old_, new_, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));     \
	} while (0)

#define UPDATE_SHARED(_T)                                                                \
	(*(_T *)to = (_T)updated(type, atom, *(_T *)to, *(const _T *)from, false))

/* Updates one element, which is aligned. */
SCALAR void update(enum update type, u32 atom, void *to, const void *from, bool is_global)
{
	switch (update_size(type)) {
	case 2:
		if (is_global)
			UPDATE_GLOBAL(u16);
		else
			UPDATE_SHARED(u16);
		break;
	case 4:
		if (is_global)
			UPDATE_GLOBAL(u32);
		else
			UPDATE_SHARED(u32);
		break;
	default:
		if (is_global)
			UPDATE_GLOBAL(u64);
		else
			UPDATE_SHARED(u64);
		break;
	}
}

/* Whether there is such an operation of elements of that type. */
SCALAR bool update_exists(enum update type, u32 atom)
{
	switch (atom) {
	case PTX_ATOM_ADD:
		return true;
	case PTX_ATOM_MIN:
	case PTX_ATOM_MAX:
		return type <= UPDATE_BF16;
	case PTX_ATOM_INC:
	case PTX_ATOM_DEC:
		return type == UPDATE_U32;
	case PTX_ATOM_AND:
	case PTX_ATOM_OR:
	case PTX_ATOM_XOR:
		return type <= UPDATE_S64;
	default:
		return false;
	}
}
