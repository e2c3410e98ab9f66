/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: loads and stores
 *
 * A warp's access takes the first of these ways that fits:
 *
 *	linear	 all lanes, in each half of the warp one element after the other, as where
 *		 a block is 16 threads wide: a check and a copy for each half
 *	uniform	 all lanes, each half loads from one address: a check and a load for each
 *	near	 the range from the lowest to the highest address is allowed as a whole
 *	single	 each lane is checked by itself; this way finds the lane at fault
 *
 * Shared addresses are offsets of 32 bits in the block's shared memory; global ones
 * are addresses in this process. Alignment is that of the whole vector, as in PTX.
 *
 * Whether addresses are linear or uniform is their step. Of several accesses with the
 * same address in a block of operations the first one notes it, or that there is none, or
 * that not all lanes were there; lower/notes.c says which. What an access does with a
 * step depends on the addresses of two lanes, which it checks: a wrong note could lead to
 * other results, but to no other memory.
 */

#include "exec/memory.h"
#include "exec/near-any.h"
#include "exec/wide.h"

#define HALF (LANES / 2)

/* Returns: whether the addresses of each half of the warp go up by @step. */
SCALAR bool halves_64(const uint64_t *address, uint64_t step)
{
	uint64_t low = address[0], high = address[HALF], differ = 0;

	if (address[HALF - 1] - low != step * (HALF - 1) ||
		address[LANES - 1] - high != step * (HALF - 1))
		return false;
	for (unsigned int i = 0; i < HALF; i++) {
		differ |= address[i] ^ (low + step * i);
		differ |= address[HALF + i] ^ (high + step * i);
	}
	return !differ;
}

SCALAR bool halves_32(const uint32_t *address, uint32_t step)
{
	uint32_t low = address[0], high = address[HALF], differ = 0;

	if (address[HALF - 1] - low != step * (HALF - 1) ||
		address[LANES - 1] - high != step * (HALF - 1))
		return false;
	for (unsigned int i = 0; i < HALF; i++) {
		differ |= address[i] ^ (low + step * i);
		differ |= address[HALF + i] ^ (high + step * i);
	}
	return !differ;
}

#define STEP_NONE UINT32_MAX

/* Returns: by how much the addresses of each half go up, @size or (@is_load) 0, or none;
 * or what was noted. */
#define FIND_STEP(_bits)                                                                 \
	SCALAR uint32_t step_##_bits(struct warp *w, const struct insn *ip,              \
		const u##_bits *address, uint32_t mask, uint32_t size, bool is_load)     \
	{                                                                                \
		uint32_t *note = &w->notes[ip->reserved >> ACCESS_NOTE_SHIFT &           \
					   (ACCESS_NOTES_MAX - 1)];                      \
		uint32_t step = STEP_NONE;                                               \
                                                                                         \
		if (mask == UINT32_MAX) {                                                \
			if (ip->reserved & ACCESS_NOTED && *note != STEP_NONE)           \
				return *note;                                            \
			if (halves_##_bits(address, size))                               \
				step = size;                                             \
			else if (is_load && halves_##_bits(address, 0))                  \
				step = 0;                                                \
		}                                                                        \
		if (ip->reserved & ACCESS_NOTES)                                         \
			*note = step;                                                    \
		return step;                                                             \
	}

FIND_STEP(32)
FIND_STEP(64)

/* Returns: whether @size bytes for each half are allowed; often they are one piece. */
SCALAR bool halves_allowed(const struct warp *w, uint64_t low, uint64_t high,
	uint64_t size, unsigned int access)
{
	const struct softgpu_space *space = &w->block->space;

	if (high == low + size)
		return softgpu_space_check(space, low, 2 * size, access);
	return softgpu_space_check(space, low, size, access) &&
	       (high == low || softgpu_space_check(space, high, size, access));
}

SCALAR bool halves_shared(
	const struct warp *w, uint32_t low, uint32_t high, uint32_t size)
{
	uint32_t have = w->block->shared_size;

	return have >= size && low <= have - size && high <= have - size;
}

/* Finds the lane that made a global or shared access fail. */
static const struct insn *global_fault(struct warp *w, const struct insn *ip,
	const uint64_t *address, uint32_t mask, uint32_t size, unsigned int access)
{
	int code;

	EACH_SET_LANE(i, mask)
	{
		uint64_t at = address[i] + (uint64_t)(int64_t)ip->off;

		code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
		if (at & (size - 1))
			code = SOFTGPU_ERROR_MISALIGNED_ADDRESS;
		else if (softgpu_space_check(&w->block->space, at, size, access))
			continue;
		return warp_fault(w, ip, code, i, at, fault_sentence(code));
	}
	return NULL;
}

static const struct insn *shared_fault(struct warp *w, const struct insn *ip,
	const uint32_t *address, uint32_t mask, uint32_t size)
{
	int code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;

	EACH_SET_LANE(i, mask)
	{
		uint32_t at = address[i] + (uint32_t)ip->off;

		if (at & (size - 1))
			code = SOFTGPU_ERROR_MISALIGNED_ADDRESS;
		else if ((uint64_t)at + size <= w->block->shared_size)
			continue;
		return warp_fault(w, ip, code, i, at, fault_sentence(code));
	}
	return warp_fault(w, ip, code, 0, address[0], fault_sentence(code));
}

/*
 * The four ways, for @n elements of type @_M that become registers of type @_R
 */

#define LOAD_ELEMENTS(_M, _R, _n, _from)                                                 \
	do {                                                                             \
		const _M *from_ = (const _M *)(_from);                                   \
                                                                                         \
		d0[i] = (_R)from_[0];                                                    \
		if (_n > 1)                                                              \
			d1[i] = (_R)from_[1];                                            \
		if (_n > 2) {                                                            \
			d2[i] = (_R)from_[2];                                            \
			d3[i] = (_R)from_[3];                                            \
		}                                                                        \
	} while (0)

#define STORE_ELEMENTS(_M, _n, _to)                                                      \
	do {                                                                             \
		_M *to_ = (_M *)(_to);                                                   \
                                                                                         \
		to_[0] = (_M)s0[i];                                                      \
		if (_n > 1)                                                              \
			to_[1] = (_M)s1[i];                                              \
		if (_n > 2) {                                                            \
			to_[2] = (_M)s2[i];                                              \
			to_[3] = (_M)s3[i];                                              \
		}                                                                        \
	} while (0)

/* An element for each half of the warp. */
#define UNIFORM_ELEMENTS(_M, _R, _n, _low, _high)                                        \
	do {                                                                             \
		const _M *x_ = (const _M *)(_low), *y_ = (const _M *)(_high);            \
                                                                                         \
		UNIFORM_HALVES(_R, d0, x_[0], y_[0]);                                    \
		if (_n > 1)                                                              \
			UNIFORM_HALVES(_R, d1, x_[_n > 1 ? 1 : 0], y_[_n > 1 ? 1 : 0]);  \
		if (_n > 2) {                                                            \
			UNIFORM_HALVES(_R, d2, x_[_n > 2 ? 2 : 0], y_[_n > 2 ? 2 : 0]);  \
			UNIFORM_HALVES(_R, d3, x_[_n > 2 ? 3 : 0], y_[_n > 2 ? 3 : 0]);  \
		}                                                                        \
	} while (0)

#define UNIFORM_HALVES(_R, _d, _x, _y)                                                   \
	do {                                                                             \
		_R low_ = (_R)(_x), high_ = (_R)(_y);                                    \
                                                                                         \
		for (unsigned int i = 0; i < HALF; i++)                                  \
			_d[i] = low_;                                                    \
		for (unsigned int i = HALF; i < LANES; i++)                              \
			_d[i] = high_;                                                   \
	} while (0)

/* The linear way: @_what for each lane, whose elements are at from or to + _n * i. */
#define LINEAR_HALVES(_M, _pointer, _n, _low, _high, _what)                              \
	do {                                                                             \
		_M *_pointer = (_M *)(_low);                                             \
                                                                                         \
		_Pragma("GCC ivdep") for (unsigned int i = 0; i < HALF; i++) _what;      \
		_pointer = (_M *)((uintptr_t)(_high)-HALF * _n * sizeof(_M));            \
		_Pragma("GCC ivdep") for (unsigned int i = HALF; i < LANES; i++) _what;  \
	} while (0)

/* The same in order: of lanes that store at one place the last one counts. */
#define SCATTER(_mask, _what)                                                            \
	do {                                                                             \
		if ((_mask) == UINT32_MAX)                                               \
			for (uint32_t i = 0; i < LANES; i++)                             \
				_what;                                                   \
		else                                                                     \
			EACH_SET_LANE(i, _mask) _what;                                   \
	} while (0)

/* Lane by lane; all of them is common enough for a loop without a search for bits. */
#define GATHER(_mask, _what)                                                             \
	do {                                                                             \
		if ((_mask) == UINT32_MAX)                                               \
			EACH_LANE _what;                                                 \
		else                                                                     \
			EACH_SET_LANE(i, _mask) _what;                                   \
	} while (0)

#define LOAD_REGISTERS(_R, _n)                                                           \
	_R *d0 = REG(_R, ip->d), *d1 = REG(_R, _n > 1 ? ip->b : ip->d);                  \
	_R *d2 = REG(_R, _n > 2 ? ip->e : ip->d), *d3 = REG(_R, _n > 2 ? ip->f : ip->d); \
                                                                                         \
	(void)d1, (void)d2, (void)d3

#define STORE_REGISTERS(_R, _n)                                                          \
	const _R *s0 = REG(_R, ip->b), *s1 = REG(_R, _n > 1 ? ip->c : ip->b);            \
	const _R *s2 = REG(_R, _n > 2 ? ip->e : ip->b);                                  \
	const _R *s3 = REG(_R, _n > 2 ? ip->f : ip->b);                                  \
                                                                                         \
	(void)s1, (void)s2, (void)s3

/* The near and the single way, a function of its own: it needs registers that the others
 * would have to save. */
#define REST(_op) HANDLER_NAME(_op##_rest)
#define HANDLER_REST(_op)                                                                \
	__attribute__((noinline)) static const struct insn *REST(_op)(                   \
		struct warp * w, const struct insn *ip, uint32_t mask)

#define LOAD_GLOBAL(_op, _M, _R, _n)                                                     \
	HANDLER_REST(_op)                                                                \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M);                                   \
		const int64_t off = ip->off;                                             \
		const struct insn *fault;                                                \
		LOAD_REGISTERS(_R, _n);                                                  \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (!near_global(w, address, off, mask, size, SOFTGPU_READ)) {           \
			fault = global_fault(w, ip, address, mask, size, SOFTGPU_READ);  \
			if (fault)                                                       \
				return fault;                                            \
		}                                                                        \
		GATHER(mask, LOAD_ELEMENTS(_M, _R, _n,                                   \
				     (uintptr_t)(address[i] + (uint64_t)off)));          \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M);                                   \
		uint64_t low = address[0] + (uint64_t)(int64_t)ip->off;                  \
		uint64_t high = address[HALF] + (uint64_t)(int64_t)ip->off;              \
		uint32_t step = step_64(w, ip, address, mask, size, true);               \
		LOAD_REGISTERS(_R, _n);                                                  \
                                                                                         \
		if (step == STEP_NONE || (low | high) & (size - 1))                      \
			return REST(_op)(w, ip, mask);                                   \
		if (step == size &&                                                      \
			halves_allowed(w, low, high, HALF * size, SOFTGPU_READ)) {       \
			LINEAR_HALVES(const _M, from, _n, low, high,                     \
				LOAD_ELEMENTS(_M, _R, _n, from + _n * i));               \
			return ip + 1;                                                   \
		}                                                                        \
		if (step == 0 && halves_allowed(w, low, high, size, SOFTGPU_READ)) {     \
			UNIFORM_ELEMENTS(_M, _R, _n, low, high);                         \
			return ip + 1;                                                   \
		}                                                                        \
		return REST(_op)(w, ip, mask);                                           \
	}

#define STORE_GLOBAL(_op, _M, _R, _n)                                                    \
	HANDLER_REST(_op)                                                                \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M);                                   \
		const int64_t off = ip->off;                                             \
		const struct insn *fault;                                                \
		STORE_REGISTERS(_R, _n);                                                 \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (!near_global(w, address, off, mask, size, SOFTGPU_WRITE)) {          \
			fault = global_fault(w, ip, address, mask, size, SOFTGPU_WRITE); \
			if (fault)                                                       \
				return fault;                                            \
		}                                                                        \
		SCATTER(mask, STORE_ELEMENTS(                                            \
				      _M, _n, (uintptr_t)(address[i] + (uint64_t)off))); \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M);                                   \
		uint64_t low = address[0] + (uint64_t)(int64_t)ip->off;                  \
		uint64_t high = address[HALF] + (uint64_t)(int64_t)ip->off;              \
		uint32_t step = step_64(w, ip, address, mask, size, false);              \
		STORE_REGISTERS(_R, _n);                                                 \
                                                                                         \
		if (step != size || (low | high) & (size - 1) ||                         \
			!halves_allowed(w, low, high, HALF * size, SOFTGPU_WRITE))       \
			return REST(_op)(w, ip, mask);                                   \
		LINEAR_HALVES(                                                           \
			_M, to, _n, low, high, STORE_ELEMENTS(_M, _n, to + _n * i));     \
		return ip + 1;                                                           \
	}

#define LOAD_SHARED(_op, _M, _R, _n)                                                     \
	HANDLER_REST(_op)                                                                \
	{                                                                                \
		const uint32_t *address = REG(uint32_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M), off = (uint32_t)ip->off;          \
		const uint8_t *shared = w->block->shared;                                \
		LOAD_REGISTERS(_R, _n);                                                  \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (!near_shared(w, address, off, mask, size))                           \
			return shared_fault(w, ip, address, mask, size);                 \
		GATHER(mask, LOAD_ELEMENTS(_M, _R, _n,                                   \
				     shared + (uint32_t)(address[i] + off)));            \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint32_t *address = REG(uint32_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M);                                   \
		const uint8_t *shared = w->block->shared;                                \
		uint32_t low = address[0] + (uint32_t)ip->off;                           \
		uint32_t high = address[HALF] + (uint32_t)ip->off;                       \
		uint32_t step = step_32(w, ip, address, mask, size, true);               \
		LOAD_REGISTERS(_R, _n);                                                  \
                                                                                         \
		if (ip->reserved & ACCESS_POLLS)                                         \
			w->polled = true;                                                \
		if (step == STEP_NONE || (low | high) & (size - 1))                      \
			return REST(_op)(w, ip, mask);                                   \
		if (step == size && halves_shared(w, low, high, HALF * size)) {          \
			LINEAR_HALVES(const _M, from, _n, shared + low, shared + high,   \
				LOAD_ELEMENTS(_M, _R, _n, from + _n * i));               \
			return ip + 1;                                                   \
		}                                                                        \
		if (step == 0 && halves_shared(w, low, high, size)) {                    \
			UNIFORM_ELEMENTS(_M, _R, _n, shared + low, shared + high);       \
			return ip + 1;                                                   \
		}                                                                        \
		return REST(_op)(w, ip, mask);                                           \
	}

#define STORE_SHARED(_op, _M, _R, _n)                                                    \
	HANDLER_REST(_op)                                                                \
	{                                                                                \
		const uint32_t *address = REG(uint32_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M), off = (uint32_t)ip->off;          \
		uint8_t *shared = w->block->shared;                                      \
		STORE_REGISTERS(_R, _n);                                                 \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (!near_shared(w, address, off, mask, size))                           \
			return shared_fault(w, ip, address, mask, size);                 \
		SCATTER(mask,                                                            \
			STORE_ELEMENTS(_M, _n, shared + (uint32_t)(address[i] + off)));  \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint32_t *address = REG(uint32_t, ip->a);                          \
		const uint32_t size = _n * sizeof(_M);                                   \
		uint8_t *shared = w->block->shared;                                      \
		uint32_t low = address[0] + (uint32_t)ip->off;                           \
		uint32_t high = address[HALF] + (uint32_t)ip->off;                       \
		uint32_t step = step_32(w, ip, address, mask, size, false);              \
		STORE_REGISTERS(_R, _n);                                                 \
                                                                                         \
		if (step != size || (low | high) & (size - 1) ||                         \
			!halves_shared(w, low, high, HALF * size))                       \
			return REST(_op)(w, ip, mask);                                   \
		LINEAR_HALVES(_M, to, _n, shared + low, shared + high,                   \
			STORE_ELEMENTS(_M, _n, to + _n * i));                            \
		return ip + 1;                                                           \
	}

#define LOADS(_, _suffix, _M, _R)                                                        \
	LOAD_GLOBAL(LDG_##_suffix, _M, _R, 1)                                            \
	LOAD_GLOBAL(LDG2_##_suffix, _M, _R, 2)                                           \
	LOAD_GLOBAL(LDG4_##_suffix, _M, _R, 4)                                           \
	LOAD_SHARED(LDS_##_suffix, _M, _R, 1)                                            \
	LOAD_SHARED(LDS2_##_suffix, _M, _R, 2)                                           \
	LOAD_SHARED(LDS4_##_suffix, _M, _R, 4)

#define STORES(_suffix, _M, _R)                                                          \
	STORE_GLOBAL(STG_##_suffix, _M, _R, 1)                                           \
	STORE_GLOBAL(STG2_##_suffix, _M, _R, 2)                                          \
	STORE_GLOBAL(STG4_##_suffix, _M, _R, 4)                                          \
	STORE_SHARED(STS_##_suffix, _M, _R, 1)                                           \
	STORE_SHARED(STS2_##_suffix, _M, _R, 2)                                          \
	STORE_SHARED(STS4_##_suffix, _M, _R, 4)

SOFTGPU_ACCESS(LOADS, _)
STORES(U8, u8, u32)
STORES(U16, u16, u32)
STORES(32, u32, u32)
STORES(64, u64, u64)

/*
 * Parameters at a fixed place: the same for all lanes, in range by construction
 */
#define LOAD_PARAM(_, _suffix, _M, _R)                                                   \
	HANDLER(LDP_##_suffix)                                                           \
	{                                                                                \
		_R *d = REG(_R, ip->d);                                                  \
		_M x;                                                                    \
                                                                                         \
		memcpy(&x, w->block->params + ip->off, sizeof(x));                       \
		EACH_LANE                                                                \
		{                                                                        \
			_R old = d[i];                                                   \
			d[i] = mask & lane_bit[i] ? (_R)x : old;                         \
		}                                                                        \
		return ip + 1;                                                           \
	}

SOFTGPU_ACCESS(LOAD_PARAM, _)

/*
 * Any space, with an address of 64 bits. Where all lanes are near each other in global
 * memory, or in their own parts of local memory, one check is enough (wide.h); else each
 * lane is resolved by itself. The forms with a memory order are the same with atomic
 * accesses; a load of that kind is what a waiting thread does.
 */

#define LOAD_GENERIC(_op, _M, _R, _read, _polls)                                         \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const _M *from;                                                          \
		_R *d = REG(_R, ip->d);                                                  \
		int code;                                                                \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		w->polled |= _polls;                                                     \
		if (near_generic(w, ip, address, mask, sizeof(_M), SOFTGPU_READ)) {      \
			EACH_SET_LANE(i, mask)                                           \
			{                                                                \
				from = (const _M *)global_place(ip, address[i]);         \
				d[i] = (_R)_read;                                        \
			}                                                                \
			return ip + 1;                                                   \
		}                                                                        \
		if (near_local(w, ip, address, mask, sizeof(_M))) {                      \
			EACH_SET_LANE(i, mask)                                           \
			{                                                                \
				from = (const _M *)local_place(w, ip, address[i], i);    \
				d[i] = (_R)*from;                                        \
			}                                                                \
			return ip + 1;                                                   \
		}                                                                        \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint64_t at = generic_address(ip, address[i]);                   \
                                                                                         \
			from = warp_resolve(w, i, at, sizeof(_M),                        \
				ip->reserved & ACCESS_ALIGN, SOFTGPU_READ, &code);       \
			if (!from)                                                       \
				return warp_fault(                                       \
					w, ip, code, i, at, fault_sentence(code));       \
			d[i] = (_R)_read;                                                \
		}                                                                        \
		return ip + 1;                                                           \
	}

#define STORE_GENERIC(_op, _M, _R, _write)                                               \
	HANDLER(_op)                                                                     \
	{                                                                                \
		const uint64_t *address = REG(uint64_t, ip->a);                          \
		const _R *s = REG(_R, ip->b);                                            \
		_M *to, x;                                                               \
		int code;                                                                \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		if (near_generic(w, ip, address, mask, sizeof(_M), SOFTGPU_WRITE)) {     \
			EACH_SET_LANE(i, mask)                                           \
			{                                                                \
				to = (_M *)global_place(ip, address[i]);                 \
				x = (_M)s[i];                                            \
				_write;                                                  \
			}                                                                \
			return ip + 1;                                                   \
		}                                                                        \
		if (near_local(w, ip, address, mask, sizeof(_M))) {                      \
			EACH_SET_LANE(i, mask)                                           \
			*(_M *)local_place(w, ip, address[i], i) = (_M)s[i];             \
			return ip + 1;                                                   \
		}                                                                        \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint64_t at = generic_address(ip, address[i]);                   \
                                                                                         \
			to = warp_resolve(w, i, at, sizeof(_M),                          \
				ip->reserved & ACCESS_ALIGN, SOFTGPU_WRITE, &code);      \
			x = (_M)s[i];                                                    \
			if (!to)                                                         \
				return warp_fault(                                       \
					w, ip, code, i, at, fault_sentence(code));       \
			_write;                                                          \
		}                                                                        \
		return ip + 1;                                                           \
	}

#define LOADS_GENERIC(_, _suffix, _M, _R)                                                \
	LOAD_GENERIC(LD_##_suffix, _M, _R, *from, false)                                 \
	LOAD_GENERIC(LDV_##_suffix, _M, _R, __atomic_load_n(from, __ATOMIC_ACQUIRE), true)

#define STORES_GENERIC(_suffix, _M, _R)                                                  \
	STORE_GENERIC(ST_##_suffix, _M, _R, *to = x)                                     \
	STORE_GENERIC(STV_##_suffix, _M, _R, __atomic_store_n(to, x, __ATOMIC_RELEASE))

SOFTGPU_ACCESS(LOADS_GENERIC, _)
STORES_GENERIC(U8, u8, u32)
STORES_GENERIC(U16, u16, u32)
STORES_GENERIC(32, u32, u32)
STORES_GENERIC(64, u64, u64)

/* Shared memory belongs to the thread that runs the block; the rest others may write. */
HANDLER(LDV_128)
{
	const uint64_t *address = REG(uint64_t, ip->a);
	uint64_t *low = REG(uint64_t, ip->d), *high = REG(uint64_t, ip->b);
	wide_t x;
	int code;

	w->polled = true;
	EACH_SET_LANE(i, mask)
	{
		uint64_t at = generic_address(ip, address[i]);
		wide_t *from = warp_resolve(w, i, at, sizeof(x),
			ip->reserved & ACCESS_ALIGN, SOFTGPU_READ, &code);

		if (!from)
			return warp_fault(w, ip, code, i, at, fault_sentence(code));
		x = at < SOFTGPU_GLOBAL_LOWEST ? wide_read(from) : wide_load(from);
		low[i] = (uint64_t)x;
		high[i] = (uint64_t)(x >> 64);
	}
	return ip + 1;
}

HANDLER(STV_128)
{
	const uint64_t *address = REG(uint64_t, ip->a);
	const uint64_t *low = REG(uint64_t, ip->b), *high = REG(uint64_t, ip->c);
	int code;

	EACH_SET_LANE(i, mask)
	{
		uint64_t at = generic_address(ip, address[i]);
		wide_t x = (wide_t)high[i] << 64 | low[i];
		wide_t *to = warp_resolve(w, i, at, sizeof(x),
			ip->reserved & ACCESS_ALIGN, SOFTGPU_WRITE, &code);

		if (!to)
			return warp_fault(w, ip, code, i, at, fault_sentence(code));
		if (at < SOFTGPU_GLOBAL_LOWEST)
			wide_write(to, x);
		else
			wide_store(to, x);
	}
	return ip + 1;
}

/* st.bulk: units of 8 bytes, and of shared memory alone. */
HANDLER(ST_ZEROS)
{
	const uint64_t *address = REG(uint64_t, ip->a), *size = REG(uint64_t, ip->b);
	const char *text = "illegal address";
	int code;

	EACH_SET_LANE(i, mask)
	{
		uint64_t at = generic_address(ip, address[i]), n = size[i];
		bool fits = at - SOFTGPU_GENERIC_SHARED < SOFTGPU_GENERIC_RANGE &&
			    n <= SOFTGPU_SHARED_MAX;
		void *to;

		if (n % 8)
			return warp_fault(w, ip, SOFTGPU_ERROR_MISALIGNED_ADDRESS, i, n,
				"a size that is no multiple of 8");
		code = SOFTGPU_ERROR_ILLEGAL_ADDRESS;
		to = fits ? warp_resolve(w, i, at, (uint32_t)n, 7, SOFTGPU_WRITE, &code)
			  : NULL;
		if (!to)
			return warp_fault(
				w, ip, code, i, at, fits ? fault_sentence(code) : text);
		memset(to, 0, n);
	}
	return ip + 1;
}

HANDLER(ISSPACEP)
{
	const uint64_t *a = REG(uint64_t, ip->a);
	uint64_t low = ip->imm;
	uint32_t in = 0;

	EACH_SET_LANE(i, mask)
	if (low ? a[i] - low < SOFTGPU_GENERIC_RANGE : a[i] >= SOFTGPU_GLOBAL_LOWEST)
		in |= lane_bit[i];
	pred_write(w, ip->d, mask, in);
	return ip + 1;
}

/* The block's own memory alone, by either of its addresses. */
HANDLER(IS_OWN_SHARED)
{
	const uint64_t *a = REG(uint64_t, ip->a);
	uint32_t in = 0;

	EACH_SET_LANE(i, mask)
	{
		uint64_t off = a[i] - SOFTGPU_GENERIC_SHARED;
		uint64_t number = off / SOFTGPU_CLUSTER_STRIDE;

		if (off < SOFTGPU_GENERIC_RANGE &&
			(!number || number == w->block->rank + 1))
			in |= lane_bit[i];
	}
	pred_write(w, ip->d, mask, in);
	return ip + 1;
}

/* A thread that orders its accesses may wait for another one, by plain loads. */
HANDLER(FENCE)
{
	w->polled = true;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ip + 1;
}
