/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: instructions in which lanes see each other
 *
 * The .sync forms name the lanes that must take part, each lane its own set. A group that
 * lacks some waits (EVENT_SYNC) until the others reach the same instruction, have exited,
 * or nothing else in the warp can run: w->forced then lets it continue with the lanes it
 * has. Lanes whose own set is complete need not wait for the rest. A set of 0 means the
 * forms without .sync: the active lanes.
 */

#include "exec/warp.h"

/*
 * Returns: the lanes of *maskp that may continue now; they are left in *maskp and, if
 * they are not all, made a group of their own. 0: all have to wait.
 */
static uint32_t gather_members(struct warp *w, const struct insn *ip, uint32_t mask)
{
	const uint32_t *members = REG(uint32_t, ip->e);
	uint32_t here = w->active | w->dead, ready = 0, missing = 0;

	if (here == UINT32_MAX) {
		w->forced = false;
		return mask;
	}
	EACH_LANE missing |= mask & lane_bit[i] ? members[i] & ~here : 0;
	if (!missing) {
		w->forced = false;
		return mask;
	}
	EACH_SET_LANE(i, mask)
	if (!(members[i] & ~here))
		ready |= lane_bit[i];
	if (ready == mask || w->forced) {
		w->forced = false;
		return mask;
	}
	if (ready)
		softgpu_warp_park(w, ip, mask & ~ready);
	return ready;
}

#define GATHER_MEMBERS                                                                   \
	do {                                                                             \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		mask = gather_members(w, ip, mask);                                      \
		if (!mask) {                                                             \
			w->event = EVENT_SYNC;                                           \
			w->at = ip;                                                      \
			return LEAVE;                                                    \
		}                                                                        \
	} while (0)

/* The lanes that take part with this one. */
SCALAR uint32_t members_of(const uint32_t *members, uint32_t lane, uint32_t mask)
{
	return members[lane] ? members[lane] & mask : mask;
}

/*
 * c packs the clamp (bits 0 to 4) and the mask that divides the warp into segments (bits
 * 8 to 12); a lane reads itself if the other lane is outside the segment. PTX does not
 * define the value read from a lane that does not take part. Here it is 0: its register
 * may contain a value of code that it never executed, and partial sums over a warp, which
 * are written that way, are correct.
 */
#define HANDLER_SHFL(_name, _from, _within)                                              \
	HANDLER(_name)                                                                   \
	{                                                                                \
		const uint32_t *b = REG(uint32_t, ip->b), *c = REG(uint32_t, ip->c);     \
		const uint32_t *members = REG(uint32_t, ip->e);                          \
		uint32_t *d = REG(uint32_t, ip->d), a[LANES], in = 0;                    \
		uint32_t froms[LANES];                                                   \
                                                                                         \
		GATHER_MEMBERS;                                                          \
		memcpy(a, REG(uint32_t, ip->a), sizeof(a));                              \
		EACH_LANE                                                                \
		{                                                                        \
			int32_t lane = i, by = (int32_t)(b[i] & 31);                     \
			int32_t segment = (int32_t)(c[i] >> 8 & 31);                     \
			int32_t low = lane & segment;                                    \
			int32_t high = low | ((int32_t)(c[i] & 31) & ~segment);          \
			int32_t from = (_from);                                          \
			bool is_within = (_within);                                      \
                                                                                         \
			(void)low, (void)by;                                             \
			in |= is_within ? lane_bit[i] : 0;                               \
			froms[i] = (uint32_t)(is_within ? from : lane) & 31;             \
		}                                                                        \
		EACH_LANE                                                                \
		{                                                                        \
			uint32_t there = members_of(members, (u32)i, mask);              \
			uint32_t r, old = d[i];                                          \
                                                                                         \
			there = (there | lane_bit[i]) >> froms[i] & 1;                   \
			r = a[froms[i]] & (0u - there);                                  \
			d[i] = mask & lane_bit[i] ? r : old;                             \
		}                                                                        \
		pred_write(w, ip->f, mask, in);                                          \
		return ip + 1;                                                           \
	}

HANDLER_SHFL(SHFL_UP, lane - by, from >= high)
HANDLER_SHFL(SHFL_DOWN, lane + by, from <= high)
HANDLER_SHFL(SHFL_BFLY, lane ^ by, from <= high)
HANDLER_SHFL(SHFL_IDX, low | (by & ~segment), from <= high)

#define HANDLER_VOTE(_name, _result)                                                     \
	HANDLER(_name)                                                                   \
	{                                                                                \
		const uint32_t *members = REG(uint32_t, ip->e);                          \
		uint32_t vote, out = 0;                                                  \
                                                                                         \
		GATHER_MEMBERS;                                                          \
		vote = pred_read(w, ip->b);                                              \
		EACH_LANE                                                                \
		{                                                                        \
			uint32_t all = members_of(members, (u32)i, mask);                \
			uint32_t yes = vote & all;                                       \
                                                                                         \
			(void)all;                                                       \
			out |= (_result) ? lane_bit[i] : 0;                              \
		}                                                                        \
		pred_write(w, ip->d, mask, out);                                         \
		return ip + 1;                                                           \
	}

HANDLER_VOTE(VOTE_ALL, yes == all)
HANDLER_VOTE(VOTE_ANY, yes != 0)
HANDLER_VOTE(VOTE_UNI, yes == all || yes == 0)

HANDLER(VOTE_BALLOT)
{
	const uint32_t *members = REG(uint32_t, ip->e);
	uint32_t *d = REG(uint32_t, ip->d), vote;

	GATHER_MEMBERS;
	vote = pred_read(w, ip->b);
	EACH_LANE
	{
		uint32_t r = vote & members_of(members, (u32)i, mask), old = d[i];

		d[i] = mask & lane_bit[i] ? r : old;
	}
	return ip + 1;
}

#define HANDLER_MATCH(_size, _T)                                                         \
	static uint32_t HANDLER_PASTE(equal_##_size, SOFTGPU_ISA)(                       \
		const _T *a, _T x, uint32_t lanes)                                       \
	{                                                                                \
		uint32_t r = 0;                                                          \
                                                                                         \
		EACH_SET_LANE(k, lanes)                                                  \
		if (a[k] == x)                                                           \
			r |= lane_bit[k];                                                \
		return r;                                                                \
	}                                                                                \
                                                                                         \
	HANDLER(MATCH_ANY_##_size)                                                       \
	{                                                                                \
		const uint32_t *members = REG(uint32_t, ip->e);                          \
		uint32_t *d = REG(uint32_t, ip->d);                                      \
		_T a[LANES];                                                             \
                                                                                         \
		GATHER_MEMBERS;                                                          \
		memcpy(a, REG(_T, ip->a), sizeof(a));                                    \
		EACH_SET_LANE(i, mask)                                                   \
		d[i] = HANDLER_PASTE(equal_##_size, SOFTGPU_ISA)(                        \
			a, a[i], members_of(members, i, mask));                          \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(MATCH_ALL_##_size)                                                       \
	{                                                                                \
		const uint32_t *members = REG(uint32_t, ip->e);                          \
		uint32_t *d = REG(uint32_t, ip->d), out = 0;                             \
		_T a[LANES];                                                             \
                                                                                         \
		GATHER_MEMBERS;                                                          \
		memcpy(a, REG(_T, ip->a), sizeof(a));                                    \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint32_t all = members_of(members, i, mask);                     \
			bool same = HANDLER_PASTE(equal_##_size, SOFTGPU_ISA)(           \
					    a, a[i], all) == all;                        \
                                                                                         \
			d[i] = same ? all : 0;                                           \
			out |= same ? lane_bit[i] : 0;                                   \
		}                                                                        \
		pred_write(w, ip->f, mask, out);                                         \
		return ip + 1;                                                           \
	}

HANDLER_MATCH(32, uint32_t)
HANDLER_MATCH(64, uint64_t)

#define HANDLER_REDUX(_name, _T, _combine)                                               \
	HANDLER(REDUX_##_name)                                                           \
	{                                                                                \
		const uint32_t *members = REG(uint32_t, ip->e);                          \
		uint32_t *d = REG(uint32_t, ip->d), all;                                 \
		_T a[LANES];                                                             \
                                                                                         \
		GATHER_MEMBERS;                                                          \
		memcpy(a, REG(_T, ip->a), sizeof(a));                                    \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			_T r = a[i];                                                     \
                                                                                         \
			all = members_of(members, i, mask) & ~lane_bit[i];               \
			EACH_SET_LANE(k, all)                                            \
			{                                                                \
				_T x = a[k];                                             \
				r = _combine;                                            \
			}                                                                \
			d[i] = (uint32_t)r;                                              \
		}                                                                        \
		return ip + 1;                                                           \
	}

HANDLER_REDUX(ADD, uint32_t, r + x)
HANDLER_REDUX(MIN_S32, int32_t, x < r ? x : r)
HANDLER_REDUX(MIN_U32, uint32_t, x < r ? x : r)
HANDLER_REDUX(MAX_S32, int32_t, x > r ? x : r)
HANDLER_REDUX(MAX_U32, uint32_t, x > r ? x : r)
HANDLER_REDUX(AND, uint32_t, r &x)
HANDLER_REDUX(OR, uint32_t, r | x)
HANDLER_REDUX(XOR, uint32_t, r ^ x)

/* NaN counts only with .NaN, or if all values are NaN. */
#define HANDLER_REDUX_F32(_name, _combine)                                               \
	HANDLER(REDUX_##_name)                                                           \
	{                                                                                \
		const uint32_t *members = REG(uint32_t, ip->e);                          \
		f32 *d = REG(f32, ip->d), a[LANES];                                      \
                                                                                         \
		GATHER_MEMBERS;                                                          \
		memcpy(a, REG(f32, ip->a), sizeof(a));                                   \
		for (int i = 0; i < LANES && ip->off & REDUX_ABS; i++)                   \
			a[i] = abs_f32(a[i]);                                            \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			uint32_t all = members_of(members, i, mask) | lane_bit[i];       \
			f32 r = a[i];                                                    \
			bool nan = false;                                                \
                                                                                         \
			EACH_SET_LANE(k, all)                                            \
			{                                                                \
				r = _combine(r, a[k]);                                   \
				nan |= a[k] != a[k];                                     \
			}                                                                \
			d[i] = nan && ip->off & REDUX_NAN ? make_f32(0x7fffffff) : r;    \
		}                                                                        \
		return ip + 1;                                                           \
	}

HANDLER_REDUX_F32(MIN_F32, min_f32)
HANDLER_REDUX_F32(MAX_F32, max_f32)

/* The lowest lane that is there: the same one each time for the same lanes. */
HANDLER(ELECT)
{
	const uint32_t *members = REG(uint32_t, ip->e);
	uint32_t *d = REG(uint32_t, ip->d), leaders = 0;

	GATHER_MEMBERS;
	EACH_SET_LANE(i, mask)
	{
		uint32_t there = members_of(members, i, mask) | lane_bit[i];

		d[i] = (u32)__builtin_ctz(there);
		leaders |= lane_bit[i] & (there & (0u - there));
	}
	pred_write(w, ip->f, mask, leaders);
	return ip + 1;
}

HANDLER(ACTIVEMASK)
{
	uint32_t *d = REG(uint32_t, ip->d);

	EACH_SET_LANE(i, mask)
	d[i] = mask;
	return ip + 1;
}

HANDLER(WARP_SYNC)
{
	GATHER_MEMBERS;
	return ip + 1;
}
