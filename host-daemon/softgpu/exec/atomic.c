/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: atomic operations
 *
 * Lane after lane, so that the lanes of a warp see each other's updates in order; their
 * addresses are checked together where they are near each other.
 * Global memory is shared with other threads of this process and the operation is a
 * C11 atomic one, sequentially consistent whatever the instruction asks for. Shared
 * memory belongs to the thread that runs the block. Other spaces have no atomic
 * operations.
 */

#include "exec/memory.h"
#include "exec/near-any.h"
#include "exec/update.h"
#include "exec/wide.h"

/*
 * _update computes the new value from `old` and the lane's operand x (and y). Operations
 * with a machine instruction do not use a loop.
 */
#define ATOMIC_LOOP(_update)                                                             \
	do {                                                                             \
		old = __atomic_load_n(p, __ATOMIC_RELAXED);                              \
		do                                                                       \
			r = (_update);                                                   \
		while (!__atomic_compare_exchange_n(                                     \
			p, &old, r, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));          \
	} while (0)

#define HANDLER_ATOM(_name, _T, _R, _update, _native)                                    \
	HANDLER(_name)                                                                   \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		_R *d = REG(_R, ip->d);                                                  \
		const _R *b = REG(_R, ip->b), *c = REG(_R, ip->c);                       \
		uint32_t have = w->block->shared_size;                                   \
		int code;                                                                \
                                                                                         \
		(void)c;                                                                 \
		w->polled = true;                                                        \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (near_small(ip, address, mask, sizeof(_T), ACCESS_SHARED, have)) {    \
			EACH_SET_LANE(i, mask)                                           \
			{                                                                \
				_T *p = (_T *)shared_place(w, ip, address[i]);           \
				_T x = (_T)b[i], y = (_T)c[i], old = *p;                 \
                                                                                         \
				(void)x, (void)y;                                        \
				*p = (_T)(_update);                                      \
				d[i] = (_R)old;                                          \
			}                                                                \
			return ip + 1;                                                   \
		}                                                                        \
		if (near_generic(w, ip, address, mask, sizeof(_T),                       \
			    SOFTGPU_READ | SOFTGPU_WRITE)) {                             \
			EACH_SET_LANE(i, mask)                                           \
			{                                                                \
				_T *p = (_T *)global_place(ip, address[i]);              \
				_T x = (_T)b[i], y = (_T)c[i], old, r;                   \
                                                                                         \
				(void)r, (void)y;                                        \
				_native;                                                 \
				d[i] = (_R)old;                                          \
			}                                                                \
			return ip + 1;                                                   \
		}                                                                        \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint64_t at = generic_address(ip, address[i]);                   \
			_T *p = warp_resolve(w, i, at, sizeof(_T),                       \
				(sizeof(_T) - 1) | (ip->reserved & ACCESS_ALIGN),        \
				SOFTGPU_READ | SOFTGPU_WRITE, &code);                    \
			_T x = (_T)b[i], y = (_T)c[i], old, r;                           \
                                                                                         \
			(void)r, (void)y;                                                \
			if (is_never_atomic(at))                                         \
				p = NULL, code = SOFTGPU_ERROR_INVALID_ADDRESS_SPACE;    \
			if (!p)                                                          \
				return warp_fault(                                       \
					w, ip, code, i, at, fault_sentence(code));       \
			if (at < SOFTGPU_GLOBAL_LOWEST) {                                \
				old = *p;                                                \
				*p = (_T)(_update);                                      \
			} else {                                                         \
				_native;                                                 \
			}                                                                \
			d[i] = (_R)old;                                                  \
		}                                                                        \
		return ip + 1;                                                           \
	}

#define HANDLER_ATOM_LOOP(_name, _T, _R, _update)                                        \
	HANDLER_ATOM(_name, _T, _R, _update, ATOMIC_LOOP(_update))

#define HANDLER_ATOM_FETCH(_name, _T, _update, _fetch)                                   \
	HANDLER_ATOM(_name, _T, _T, _update, old = _fetch(p, x, __ATOMIC_SEQ_CST))

HANDLER_ATOM_FETCH(ATOM_ADD_32, u32, old + x, __atomic_fetch_add)
HANDLER_ATOM_FETCH(ATOM_ADD_64, u64, old + x, __atomic_fetch_add)
HANDLER_ATOM_FETCH(ATOM_AND_32, u32, old &x, __atomic_fetch_and)
HANDLER_ATOM_FETCH(ATOM_AND_64, u64, old &x, __atomic_fetch_and)
HANDLER_ATOM_FETCH(ATOM_OR_32, u32, old | x, __atomic_fetch_or)
HANDLER_ATOM_FETCH(ATOM_OR_64, u64, old | x, __atomic_fetch_or)
HANDLER_ATOM_FETCH(ATOM_XOR_32, u32, old ^ x, __atomic_fetch_xor)
HANDLER_ATOM_FETCH(ATOM_XOR_64, u64, old ^ x, __atomic_fetch_xor)
HANDLER_ATOM_FETCH(ATOM_EXCH_32, u32, x, __atomic_exchange_n)
HANDLER_ATOM_FETCH(ATOM_EXCH_64, u64, x, __atomic_exchange_n)

HANDLER_ATOM(ATOM_ADD_F32, u32, u32, float_add(old, x), ATOMIC_LOOP(flushing_add(old, x)))
HANDLER_ATOM_LOOP(ATOM_ADD_F64, u64, u64, bits_f64(make_f64(old) + make_f64(x)))
HANDLER_ATOM_LOOP(ATOM_ADD_F16, u16, u32, (u16)half_add(old, x))
HANDLER_ATOM_LOOP(
	ATOM_ADD_F16X2, u32, u32, half_add(old, x) | half_add(old >> 16, x >> 16) << 16)
HANDLER_ATOM_LOOP(ATOM_ADD_BF16, u16, u32, (u16)bfloat_add(old, x))
HANDLER_ATOM_LOOP(ATOM_ADD_BF16X2, u32, u32,
	bfloat_add(old & 0xffff, x & 0xffff) | bfloat_add(old >> 16, x >> 16) << 16)
HANDLER_ATOM_LOOP(ATOM_MIN_S32, u32, u32, (s32)old < (s32)x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MIN_U32, u32, u32, old < x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MIN_S64, u64, u64, (s64)old < (s64)x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MIN_U64, u64, u64, old < x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MAX_S32, u32, u32, (s32)old > (s32)x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MAX_U32, u32, u32, old > x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MAX_S64, u64, u64, (s64)old > (s64)x ? old : x)
HANDLER_ATOM_LOOP(ATOM_MAX_U64, u64, u64, old > x ? old : x)
HANDLER_ATOM_LOOP(ATOM_INC_32, u32, u32, old >= x ? 0 : old + 1)
HANDLER_ATOM_LOOP(ATOM_DEC_32, u32, u32, old == 0 || old > x ? x : old - 1)

/* The loop would write the old value back and so take the line; this does not fail. */
#define ATOMIC_CAS                                                                       \
	do {                                                                             \
		old = x;                                                                 \
		__atomic_compare_exchange_n(                                             \
			p, &old, y, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
	} while (0)

HANDLER_ATOM(ATOM_CAS_16, u16, u32, old == x ? y : old, ATOMIC_CAS)
HANDLER_ATOM(ATOM_CAS_32, u32, u32, old == x ? y : old, ATOMIC_CAS)
HANDLER_ATOM(ATOM_CAS_64, u64, u64, old == x ? y : old, ATOMIC_CAS)

#define HANDLER_ATOM_HALVES(_name, _of)                                                  \
	HANDLER_ATOM_LOOP(ATOM_##_name, u16, u32, (u16)_of(old, x))                      \
	HANDLER_ATOM_LOOP(ATOM_##_name##X2, u32, u32,                                    \
		_of(old & 0xffff, x & 0xffff) | _of(old >> 16, x >> 16) << 16)

HANDLER_ATOM_HALVES(MIN_F16, half_least)
HANDLER_ATOM_HALVES(MAX_F16, half_greatest)
HANDLER_ATOM_HALVES(MIN_BF16, bfloat_least)
HANDLER_ATOM_HALVES(MAX_BF16, bfloat_greatest)

/*
 * 128 bits: the comparand is in the block, where the previous operation has put it, low
 * halves first.
 */
HANDLER(ATOM_PUT_128)
{
	uint64_t(*rows)[LANES] = (uint64_t(*)[LANES])w->block->texture_operands;

	memcpy(rows[0], REG(uint64_t, ip->a), sizeof(rows[0]));
	memcpy(rows[1], REG(uint64_t, ip->b), sizeof(rows[1]));
	return ip + 1;
}

#define HANDLER_ATOM_WIDE(_name, _plain, _native)                                        \
	HANDLER(_name)                                                                   \
	{                                                                                \
		uint64_t(*rows)[LANES] = (uint64_t(*)[LANES])w->block->texture_operands; \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const uint64_t *b = REG(uint64_t, ip->b), *c = REG(uint64_t, ip->c);     \
		uint64_t *low = REG(uint64_t, ip->d), *high = REG(uint64_t, ip->f);      \
		int code;                                                                \
                                                                                         \
		w->polled = true;                                                        \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint64_t at = generic_address(ip, address[i]);                   \
			wide_t y = (wide_t)c[i] << 64 | b[i], old;                       \
			wide_t x = (wide_t)rows[1][i] << 64 | rows[0][i];                \
			wide_t *p = warp_resolve(w, i, at, sizeof(y), sizeof(y) - 1,     \
				SOFTGPU_READ | SOFTGPU_WRITE, &code);                    \
                                                                                         \
			(void)x;                                                         \
			if (is_never_atomic(at))                                         \
				p = NULL, code = SOFTGPU_ERROR_INVALID_ADDRESS_SPACE;    \
			if (!p)                                                          \
				return warp_fault(                                       \
					w, ip, code, i, at, fault_sentence(code));       \
			if (at < SOFTGPU_GLOBAL_LOWEST) {                                \
				old = wide_read(p);                                      \
				wide_write(p, _plain);                                   \
			} else {                                                         \
				old = _native;                                           \
			}                                                                \
			low[i] = (uint64_t)old;                                          \
			high[i] = (uint64_t)(old >> 64);                                 \
		}                                                                        \
		return ip + 1;                                                           \
	}

HANDLER_ATOM_WIDE(ATOM_CAS_128, old == x ? y : old, wide_swap(p, x, y))
HANDLER_ATOM_WIDE(ATOM_EXCH_128, y, wide_exchange(p, y))
