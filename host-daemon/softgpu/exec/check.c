/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check: handlers of kernels that are watched
 *
 * Each notes what its instruction is about to do in memory, in all lanes, then calls the
 * handler that does it. Addresses are checked by that one: what is not memory is none to
 * watch.
 */

#include <string.h>

#include "exec/check.h"
#include "exec/fragment.h"
#include "exec/memory.h"
#include "exec/report.h"
#include "exec/watch.h"
#include "ptx/place.h"

/* Bits of softgpu_kernel.reported. */
#define REPORTED_RACE 1u
#define REPORTED_UNWRITTEN 2u

/* What one lane loads or stores. */
#define ACCESS_SIZE_MAX 32u

enum form {
	FORM_NONE,
	FORM_GLOBAL,   /* an address of 64 bits in a */
	FORM_SHARED,   /* of 32 bits, in shared memory */
	FORM_ANY,      /* the space is in reserved */
	FORM_MBARRIER, /* of 64 bits */
	FORM_COMPLETE, /* MBARRIER_COMPLETE */
	FORM_ASYNC,    /* CP_ASYNC */
	FORM_BULK,     /* CP_BULK, REDUCE_BULK */
	FORM_CAST,     /* CP_BULK_CAST: its barrier is in e, the blocks in f */
	FORM_TENSOR,   /* TENSOR_LOAD: in c and e */
	FORM_ANSWER,   /* TRY_CANCEL */
	FORM_WAIT,     /* COPIES_WAIT */
	FORM_SIGNAL,   /* COPIES_SIGNAL */
	FORM_ZEROS,    /* ST_ZEROS */
	FORM_ROWS,     /* LDMATRIX, STMATRIX */
	FORM_TALL,     /* LDMATRIX_BYTES: a transposed matrix has 16 rows */
	FORM_LINES,    /* MATRIX_LOAD, MATRIX_STORE */
	FORM_BARRIER,  /* its number is in a */
	FORM_CLUSTER,
};

/* What an operation does; @size in bytes, @n elements of them. */
struct action {
	uint8_t form;
	uint8_t kind; /* enum watch_kind */
	uint8_t n;
	uint8_t size;
	bool waits; /* of a barrier */
};

#define ROW_LOAD(_op, _form, _n, _suffix, _size)                                         \
	[OP_##_op##_suffix] = { _form, WATCH_READ, _n, _size, false },
#define ROW_STORE(_op, _form, _n, _suffix, _size)                                        \
	[OP_##_op##_suffix] = { _form, WATCH_WRITE, _n, _size, false },

#define ROWS_LOAD(_op, _form, _n)                                                        \
	ROW_LOAD(_op, _form, _n, _U8, 1)                                                 \
	ROW_LOAD(_op, _form, _n, _S8, 1)                                                 \
	ROW_LOAD(_op, _form, _n, _U16, 2)                                                \
	ROW_LOAD(_op, _form, _n, _S16, 2)                                                \
	ROW_LOAD(_op, _form, _n, _32, 4)                                                 \
	ROW_LOAD(_op, _form, _n, _64, 8)

#define ROWS_STORE(_op, _form, _n)                                                       \
	ROW_STORE(_op, _form, _n, _U8, 1)                                                \
	ROW_STORE(_op, _form, _n, _U16, 2)                                               \
	ROW_STORE(_op, _form, _n, _32, 4)                                                \
	ROW_STORE(_op, _form, _n, _64, 8)

#define ORDERED(_op, _kind, _size) [OP_##_op] = { FORM_ANY, _kind, 1, _size, false },

#define ATOM(_what, _size)                                                               \
	[OP_ATOM_##_what] = { FORM_ANY, WATCH_ATOMIC, 1, _size, false },

#define OTHER(_op, _form, _kind) [OP_##_op] = { _form, _kind, 1, 0, false },

#define BARRIER(_op, _form, _waits) [OP_##_op] = { _form, WATCH_READ, 1, 0, _waits },

/* clang-format off */
static const struct action actions[_OP_N] = {
	ROWS_LOAD(LDG, FORM_GLOBAL, 1)
	ROWS_LOAD(LDG2, FORM_GLOBAL, 2)
	ROWS_LOAD(LDG4, FORM_GLOBAL, 4)
	ROWS_LOAD(LDS, FORM_SHARED, 1)
	ROWS_LOAD(LDS2, FORM_SHARED, 2)
	ROWS_LOAD(LDS4, FORM_SHARED, 4)
	ROWS_LOAD(LD, FORM_ANY, 1)
	ROWS_STORE(STG, FORM_GLOBAL, 1)
	ROWS_STORE(STG2, FORM_GLOBAL, 2)
	ROWS_STORE(STG4, FORM_GLOBAL, 4)
	ROWS_STORE(STS, FORM_SHARED, 1)
	ROWS_STORE(STS2, FORM_SHARED, 2)
	ROWS_STORE(STS4, FORM_SHARED, 4)
	ROWS_STORE(ST, FORM_ANY, 1)
	ORDERED(LDV_U8, WATCH_ORDERED_READ, 1)
	ORDERED(LDV_S8, WATCH_ORDERED_READ, 1)
	ORDERED(LDV_U16, WATCH_ORDERED_READ, 2)
	ORDERED(LDV_S16, WATCH_ORDERED_READ, 2)
	ORDERED(LDV_32, WATCH_ORDERED_READ, 4)
	ORDERED(LDV_64, WATCH_ORDERED_READ, 8)
	ORDERED(LDV_128, WATCH_ORDERED_READ, 16)
	ORDERED(STV_U8, WATCH_ORDERED_WRITE, 1)
	ORDERED(STV_U16, WATCH_ORDERED_WRITE, 2)
	ORDERED(STV_32, WATCH_ORDERED_WRITE, 4)
	ORDERED(STV_64, WATCH_ORDERED_WRITE, 8)
	ORDERED(STV_128, WATCH_ORDERED_WRITE, 16)
	ATOM(ADD_32, 4) ATOM(ADD_64, 8) ATOM(ADD_F32, 4) ATOM(ADD_F64, 8)
	ATOM(MIN_S32, 4) ATOM(MIN_U32, 4) ATOM(MIN_S64, 8) ATOM(MIN_U64, 8)
	ATOM(MAX_S32, 4) ATOM(MAX_U32, 4) ATOM(MAX_S64, 8) ATOM(MAX_U64, 8)
	ATOM(INC_32, 4) ATOM(DEC_32, 4) ATOM(AND_32, 4) ATOM(AND_64, 8)
	ATOM(OR_32, 4) ATOM(OR_64, 8) ATOM(XOR_32, 4) ATOM(XOR_64, 8)
	ATOM(EXCH_32, 4) ATOM(EXCH_64, 8) ATOM(EXCH_128, 16)
	ATOM(CAS_16, 2) ATOM(CAS_32, 4) ATOM(CAS_64, 8) ATOM(CAS_128, 16)
	ATOM(ADD_F16, 2) ATOM(ADD_F16X2, 4) ATOM(ADD_BF16, 2) ATOM(ADD_BF16X2, 4)
	ATOM(MIN_F16, 2) ATOM(MIN_F16X2, 4) ATOM(MIN_BF16, 2) ATOM(MIN_BF16X2, 4)
	ATOM(MAX_F16, 2) ATOM(MAX_F16X2, 4) ATOM(MAX_BF16, 2) ATOM(MAX_BF16X2, 4)
	OTHER(MBARRIER_INIT, FORM_MBARRIER, WATCH_ORDERED_WRITE)
	OTHER(MBARRIER_INVAL, FORM_MBARRIER, WATCH_ATOMIC)
	OTHER(MBARRIER_EXPECT, FORM_MBARRIER, WATCH_ATOMIC)
	OTHER(MBARRIER_COMPLETE, FORM_COMPLETE, WATCH_ATOMIC)
	OTHER(MBARRIER_ARRIVE, FORM_MBARRIER, WATCH_ATOMIC)
	OTHER(MBARRIER_DROP, FORM_MBARRIER, WATCH_ATOMIC)
	OTHER(MBARRIER_TEST, FORM_MBARRIER, WATCH_ORDERED_READ)
	OTHER(MBARRIER_PARITY, FORM_MBARRIER, WATCH_ORDERED_READ)
	OTHER(COPIES_WAIT, FORM_WAIT, WATCH_READ)
	OTHER(COPIES_SIGNAL, FORM_SIGNAL, WATCH_READ)
	OTHER(CP_ASYNC, FORM_ASYNC, WATCH_WRITE)
	OTHER(CP_BULK, FORM_BULK, WATCH_WRITE)
	OTHER(CP_BULK_MASKED, FORM_BULK, WATCH_WRITE)
	OTHER(CP_BULK_CAST, FORM_CAST, WATCH_WRITE)
	OTHER(REDUCE_BULK, FORM_BULK, WATCH_ATOMIC)
	OTHER(TENSOR_LOAD, FORM_TENSOR, WATCH_ATOMIC)
	OTHER(TRY_CANCEL, FORM_ANSWER, WATCH_WRITE)
	OTHER(ST_ZEROS, FORM_ZEROS, WATCH_WRITE)
	OTHER(LDMATRIX, FORM_ROWS, WATCH_READ)
	OTHER(STMATRIX, FORM_ROWS, WATCH_WRITE)
	OTHER(LDMATRIX_BYTES, FORM_TALL, WATCH_READ)
	OTHER(STMATRIX_BYTES, FORM_ROWS, WATCH_WRITE)
	OTHER(MATRIX_LOAD, FORM_LINES, WATCH_READ)
	OTHER(MATRIX_STORE, FORM_LINES, WATCH_WRITE)
	BARRIER(BAR_SYNC, FORM_BARRIER, true)
	BARRIER(BAR_SYNC_N, FORM_BARRIER, true)
	BARRIER(BAR_ARRIVE, FORM_BARRIER, false)
	BARRIER(BAR_RED_AND, FORM_BARRIER, true)
	BARRIER(BAR_RED_OR, FORM_BARRIER, true)
	BARRIER(BAR_RED_POPC, FORM_BARRIER, true)
	BARRIER(CLUSTER_ARRIVE, FORM_CLUSTER, false)
	BARRIER(CLUSTER_WAIT, FORM_CLUSTER, true)
};
/* clang-format on */

/* An instruction while it is watched. */
struct scene {
	struct warp *w;
	const struct insn *ip;
	uint32_t lane;
	bool is_fatal; /* a finding has ended the kernel */
};

static const void *row_of(const struct scene *s, uint16_t slot)
{
	return s->w->regs + (size_t)slot * SLOT_BYTES;
}

/*
 * Findings
 */

/* Each instruction once: the next warp most likely does the same. */
static bool is_new(const struct scene *s, uint8_t bit)
{
	const struct softgpu_kernel *kernel = s->w->block->kernel;
	uint8_t *reported = &kernel->reported[s->ip - kernel->code];

	return !(__atomic_fetch_or(reported, bit, __ATOMIC_RELAXED) & bit);
}

/* Blocks are named where there are several. */
static void describe_other(struct softgpu_fault *finding, const struct scene *s,
	const struct watch_access *other)
{
	const struct block *block = s->w->block;
	const struct softgpu_kernel *kernel = block->kernel;
	const uint32_t *dim = block->launch->block;
	const struct warp *w =
		watch_warp(block->cluster, block->watch->clocks, other->agent);
	uint32_t thread = w->first_thread + other->lane;
	uint32_t line = kernel->lines[other->code];
	char place[128];

	softgpu_report_add(finding, "; the earlier access is %s",
		other->agent & 1 ? "a copy of " : "of ");
	if (w->block != block)
		softgpu_report_add(finding, "block (%u, %u, %u), ", w->block->ctaid[0],
			w->block->ctaid[1], w->block->ctaid[2]);
	softgpu_report_add(finding, "thread (%u, %u, %u), line %u", thread % dim[0],
		thread / dim[0] % dim[1], thread / dim[0] / dim[1], line);
	if (ptx_place_find(kernel->text, line, place, sizeof(place)))
		softgpu_report_add(finding, ", %s", place);
}

/*
 * @code: decides whether the description says what is at the address
 * @block: whose shared memory that is, or NULL
 */
static void report(struct scene *s, uint8_t bit, int code, const char *text,
	uint64_t address, const struct block *block, const struct watch_access *other)
{
	const struct softgpu_checks *checks = s->w->block->watch->checks;
	struct softgpu_fault finding;
	struct warp *w = s->w;

	w->at = s->ip;
	w->fault_code = code;
	w->fault_lane = s->lane;
	w->fault_address = address;
	w->fault_text = text;
	if (is_new(s, bit)) {
		softgpu_report_fault(&finding, w->block, w);
		if (block && block != w->block)
			softgpu_report_add(&finding,
				"; the memory is that of block (%u, %u, %u)",
				block->ctaid[0], block->ctaid[1], block->ctaid[2]);
		if (other)
			describe_other(&finding, s, other);
		finding.code = SOFTGPU_ERROR_LAUNCH_FAILED;
		checks->report(checks->data, &finding);
	}
	if (!(checks->kinds & SOFTGPU_CHECK_FATAL))
		return;
	w->event = EVENT_FAULT;
	w->fault_code = SOFTGPU_ERROR_LAUNCH_FAILED;
	s->is_fatal = true;
}

/*
 * Accesses of one lane
 */

static void watch_races(struct scene *s, const struct watch_what *what)
{
	struct watch_access other;
	const char *hazard;

	if (!what->block->watch->bytes)
		return;
	hazard = softgpu_watch_access(s->w, s->ip, s->lane, what, &other);
	if (hazard)
		report(s, REPORTED_RACE, SOFTGPU_ERROR_LAUNCH_FAILED, hazard, what->first,
			what->block, &other);
}

static void watch_shared(struct scene *s, const struct watch_what *what)
{
	uint8_t *unwritten = what->block->watch->unwritten;

	if (unwritten && what->kind != WATCH_WRITE && what->kind != WATCH_ORDERED_WRITE &&
		softgpu_bits_any(unwritten, what->first, what->size))
		report(s, REPORTED_UNWRITTEN, SOFTGPU_ERROR_LAUNCH_FAILED,
			"a load of shared memory that nothing has written", what->first,
			what->block, NULL);
	if (unwritten && what->kind != WATCH_READ && what->kind != WATCH_ORDERED_READ)
		softgpu_bits_set(unwritten, what->first, what->size, false);
	watch_races(s, what);
}

static void watch_global(
	struct scene *s, uint64_t address, uint32_t size, enum watch_kind kind)
{
	const struct softgpu_window *window =
		softgpu_space_find(&s->w->block->space, address, size);
	uint64_t off;

	if (!window || !window->unwritten || !s->w->block->watch->unwritten)
		return;
	off = address - window->base;
	if (kind != WATCH_WRITE && kind != WATCH_ORDERED_WRITE &&
		softgpu_bits_any(window->unwritten, off, size))
		report(s, REPORTED_UNWRITTEN, SOFTGPU_ERROR_ILLEGAL_ADDRESS,
			"a load of memory that nothing has written", address, NULL, NULL);
	if (kind != WATCH_READ && kind != WATCH_ORDERED_READ)
		softgpu_bits_set(window->unwritten, off, size, false);
}

/* Returns: NULL where not all of it is watched. */
static const struct block *find_watched(
	const struct scene *s, uint64_t address, uint32_t size, uint32_t *firstp)
{
	const struct block *block = softgpu_watch_find(s->w->block, address, firstp);

	return block && size <= block->watch->size - *firstp ? block : NULL;
}

/* At a generic address. */
static void watch_any(struct scene *s, uint64_t address, struct watch_what what)
{
	if (!what.size)
		return;
	if (address >= SOFTGPU_GLOBAL_LOWEST) {
		watch_global(s, address, what.size, what.kind);
		return;
	}
	what.block = find_watched(s, address, what.size, &what.first);
	if (what.block)
		watch_shared(s, &what);
}

static void watch_access(struct scene *s, uint64_t address, uint32_t size,
	enum watch_kind kind, const uint8_t *value)
{
	watch_any(s, address,
		(struct watch_what){ .kind = kind, .size = size, .value = value });
}

/* The same of a copy that the lane has issued. */
static void watch_copied(
	struct scene *s, uint64_t address, uint32_t size, enum watch_kind kind)
{
	watch_any(s, address,
		(struct watch_what){ .kind = kind, .size = size, .is_copy = true });
}

bool softgpu_check_copy(struct warp *w, const struct insn *ip, uint32_t lane,
	uint64_t address, uint32_t size, bool writes)
{
	struct scene s = { .w = w, .ip = ip, .lane = lane };
	struct watch_what what = {
		.kind = writes ? WATCH_WRITE : WATCH_READ, .size = size, .is_copy = true
	};

	if (!w->block->watch)
		return true;
	softgpu_watch_issue(w);
	what.block = find_watched(&s, address, size, &what.first);
	/* What of a box is outside of the tensor is not read. */
	if (what.block && !writes)
		watch_races(&s, &what);
	else if (what.block)
		watch_shared(&s, &what);
	return !s.is_fatal;
}

/*
 * Instructions
 */

/* What a plain store writes in the lane. */
static const uint8_t *gather_value(const struct scene *s, const struct action *action,
	uint8_t value[ACCESS_SIZE_MAX])
{
	const uint16_t slots[] = { s->ip->b, s->ip->c, s->ip->e, s->ip->f };
	const uint32_t width = action->size == 8 ? 8 : 4;

	for (unsigned int i = 0; i < action->n; i++)
		memcpy(value + i * action->size,
			(const uint8_t *)row_of(s, slots[i]) + s->lane * width,
			action->size);
	return value;
}

static void watch_plain(struct scene *s, const struct action *action)
{
	const struct insn *ip = s->ip;
	uint8_t value[ACCESS_SIZE_MAX];
	const uint8_t *stored = NULL;
	uint8_t kind = action->kind;
	uint64_t at;

	if (action->form == FORM_SHARED) {
		at = ((const uint32_t *)row_of(s, ip->a))[s->lane];
		at = SOFTGPU_GENERIC_SHARED +
		     (uint32_t)((uint32_t)at + (uint32_t)ip->off);
		if (ip->reserved & ACCESS_POLLS)
			kind = kind == WATCH_READ ? WATCH_ORDERED_READ
						  : WATCH_ORDERED_WRITE;
	} else {
		at = ((const uint64_t *)row_of(s, ip->a))[s->lane];
		at = action->form == FORM_ANY ? generic_address(ip, at)
					      : at + (uint64_t)(int64_t)ip->off;
	}
	if (kind == WATCH_WRITE)
		stored = gather_value(s, action, value);
	watch_access(s, at, (uint32_t)action->n * action->size, kind, stored);
	if (kind >= WATCH_ATOMIC)
		softgpu_watch_order(s->w, at, kind);
}

static uint64_t address_of(const struct scene *s)
{
	return generic_address(s->ip, ((const uint64_t *)row_of(s, s->ip->a))[s->lane]);
}

static void watch_mbarrier(struct scene *s, const struct action *action)
{
	uint64_t at = address_of(s);

	watch_access(s, at, sizeof(uint64_t), action->kind, NULL);
	softgpu_watch_order(s->w, at, action->kind);
}

/* Bytes have come: by a copy, or by a store that the warp itself has made. */
static void watch_complete(struct scene *s, const struct action *action)
{
	if (!(s->ip->reserved & MBARRIER_OF_COPY)) {
		watch_mbarrier(s, action);
		return;
	}
	watch_copied(s, address_of(s), sizeof(uint64_t), action->kind);
	softgpu_watch_signal(s->w, address_of(s));
}

static uint64_t wide_operand(const struct scene *s, uint16_t slot)
{
	return ((const uint64_t *)row_of(s, slot))[s->lane];
}

static uint32_t operand(const struct scene *s, uint16_t slot)
{
	return ((const uint32_t *)row_of(s, slot))[s->lane];
}

static void watch_copy(struct scene *s, const struct action *action)
{
	const struct insn *ip = s->ip;
	uint64_t to = wide_operand(s, ip->a);
	uint32_t n = operand(s, ip->c), size = n;

	if (action->form == FORM_ASYNC) {
		size = (ip->reserved & ACCESS_ALIGN) + 1u;
		n = n < size ? n : size;
		to = generic_address(ip, to);
	}
	if (n > SOFTGPU_SHARED_MAX)
		return;
	softgpu_watch_issue(s->w);
	watch_copied(s, wide_operand(s, ip->b), n, WATCH_READ);
	watch_copied(s, to, size, action->kind);
}

/* The barriers of these blocks learn that the copies are done. */
static void signal_blocks(struct scene *s, uint64_t barrier, uint32_t blocks)
{
	for (uint32_t rank = 0; rank < SOFTGPU_CLUSTER_MAX; rank++)
		if (blocks & 1u << rank && is_shared(barrier))
			softgpu_watch_signal(s->w, shared_of_rank(barrier, rank));
}

/* To the same place of each block. */
static void watch_cast(
	struct scene *s, uint64_t to, uint32_t size, uint64_t barrier, uint32_t blocks)
{
	for (uint32_t rank = 0; rank < SOFTGPU_CLUSTER_MAX; rank++)
		if (blocks & 1u << rank && is_shared(to))
			watch_copied(s, shared_of_rank(to, rank), size, WATCH_WRITE);
	signal_blocks(s, barrier, blocks);
}

static void watch_copy_to_blocks(struct scene *s)
{
	const struct insn *ip = s->ip;
	uint32_t n = operand(s, ip->c);

	if (n > SOFTGPU_SHARED_MAX)
		return;
	softgpu_watch_issue(s->w);
	watch_copied(s, wide_operand(s, ip->b), n, WATCH_READ);
	watch_cast(
		s, wide_operand(s, ip->a), n, wide_operand(s, ip->e), operand(s, ip->f));
}

/* After its handler, which notes what a copy of a tensor does in memory. */
static void watch_tensor(struct scene *s)
{
	uint64_t barrier = wide_operand(s, s->ip->c);

	if ((uint32_t)s->ip->off & TENSOR_CAST)
		signal_blocks(s, barrier, operand(s, s->ip->e));
	else
		softgpu_watch_signal(s->w, barrier);
}

static void watch_answer(struct scene *s)
{
	uint64_t to = wide_operand(s, s->ip->a), barrier = wide_operand(s, s->ip->b);
	uint32_t n = s->w->block->cluster->n_blocks;

	softgpu_watch_issue(s->w);
	if (s->ip->imm) {
		watch_cast(s, to, 16, barrier, (1u << n) - 1);
		return;
	}
	watch_copied(s, to, 16, WATCH_WRITE);
	softgpu_watch_signal(s->w, barrier);
}

static void watch_zeros(struct scene *s)
{
	uint64_t size = wide_operand(s, s->ip->b);

	if (size <= SOFTGPU_SHARED_MAX)
		watch_access(s, address_of(s), (uint32_t)size, WATCH_WRITE, NULL);
}

/* Rows of 16 bytes: the lane has the address of one, or of none. */
static void watch_row(struct scene *s, const struct action *action)
{
	bool is_tall = action->form == FORM_TALL && s->ip->reserved & MATRIX_TRANS;

	if (s->lane < (is_tall ? 16u : 8u) * (s->ip->reserved & MATRIX_COUNT))
		watch_access(s, address_of(s), 16, action->kind, NULL);
}

/* All lines of a matrix, for which the first lane stands. */
static void watch_lines(struct scene *s, const struct action *action)
{
	const struct insn *ip = s->ip;
	uint32_t stride = *(const uint32_t *)row_of(s, ip->b), n, size;
	uint64_t first = generic_address(ip, *(const uint64_t *)row_of(s, ip->a));
	uint64_t step = (uint64_t)stride * matrix_bits(ip->imm >> MATRIX_TYPE & 15) / 8;

	if (s->lane)
		return;
	matrix_lines(ip->imm, &n, &size);
	for (uint32_t i = 0; i < n; i++)
		watch_access(s, first + i * step, size, action->kind, NULL);
}

static void watch_lane(struct scene *s, const struct action *action)
{
	switch (action->form) {
	case FORM_GLOBAL:
	case FORM_SHARED:
	case FORM_ANY:
		watch_plain(s, action);
		break;
	case FORM_MBARRIER:
		watch_mbarrier(s, action);
		break;
	case FORM_ASYNC:
	case FORM_BULK:
		watch_copy(s, action);
		break;
	case FORM_COMPLETE:
		watch_complete(s, action);
		break;
	case FORM_CAST:
		watch_copy_to_blocks(s);
		break;
	case FORM_TENSOR:
		watch_tensor(s);
		break;
	case FORM_WAIT:
		softgpu_watch_collect(s->w);
		break;
	case FORM_SIGNAL:
		softgpu_watch_signal(s->w, address_of(s));
		break;
	case FORM_ANSWER:
		watch_answer(s);
		break;
	case FORM_ZEROS:
		watch_zeros(s);
		break;
	case FORM_ROWS:
	case FORM_TALL:
		watch_row(s, action);
		break;
	case FORM_LINES:
		watch_lines(s, action);
		break;
	}
}

/* The number of a barrier, BARRIERS + 1 if there is none. */
static unsigned int barrier_of(
	const struct scene *s, const struct action *action, uint32_t mask)
{
	const uint32_t *id = row_of(s, s->ip->a);

	if (action->form == FORM_CLUSTER)
		return CLUSTER_BARRIER;
	return id[__builtin_ctz(mask)] < BARRIERS ? id[__builtin_ctz(mask)]
						  : BARRIERS + 1;
}

static const struct insn *run_barrier(
	struct scene *s, const struct action *action, uint32_t mask, insn_fn fn)
{
	unsigned int id = barrier_of(s, action, mask);
	bool arrives = action->form != FORM_CLUSTER || !action->waits;
	const struct insn *next;

	if (id > BARRIERS)
		return fn(s->w, s->ip, mask);
	if (arrives)
		softgpu_watch_arrive(s->w, id);
	next = fn(s->w, s->ip, mask);
	if (action->waits)
		softgpu_watch_pass(s->w, id);
	return next;
}

static const struct insn *run_checked(
	struct warp *w, const struct insn *ip, uint32_t mask, enum op op)
{
	const struct action *action = &actions[op];
	insn_fn fn = w->block->kernel->handlers[op];
	struct scene s = { .w = w, .ip = ip };
	const struct insn *next = NULL;

	if (!w->block->watch || !mask)
		return fn(w, ip, mask);
	if (action->form == FORM_BARRIER || action->form == FORM_CLUSTER)
		return run_barrier(&s, action, mask, fn);
	if (action->form == FORM_TENSOR) {
		next = fn(w, ip, mask);
		if (next == LEAVE)
			return next;
	}
	for (s.lane = 0; s.lane < LANES && !s.is_fatal; s.lane++)
		if (mask & 1u << s.lane)
			watch_lane(&s, action);
	if (s.is_fatal)
		return LEAVE;
	return next ? next : fn(w, ip, mask);
}

#define CHECKED(_name, ...)                                                              \
	static const struct insn *check_##_name(                                         \
		struct warp *w, const struct insn *ip, uint32_t mask)                    \
	{                                                                                \
		return run_checked(w, ip, mask, OP_##_name);                             \
	}

#define ENTRY(_name, ...) [OP_##_name] = check_##_name,

SOFTGPU_OPS_OTHER(CHECKED)

static const insn_fn handlers[_OP_N] = { SOFTGPU_OPS_OTHER(ENTRY) };

insn_fn softgpu_checked_handler(enum op op)
{
	return actions[op].form ? handlers[op] : NULL;
}
