/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lowering: a parsed function becomes decoded code
 *
 *	translate.c	each PTX instruction becomes a few operations of exec/ops.h over
 *			values, of which there may be any number (integer.c, real.c,
 *			memory.c, control.c and convert.c do the families)
 *	call.c		calls: written out in place, or of subroutines
 *	wide.c		values of 128 bits
 *	bulk.c		copies and reductions of many bytes, and of tensors
 *	matrix.c	products of matrices, and their fragments
 *	factors.c	factors that two products have in common are converted once
 *	stack.c		memory that a function takes from the stack
 *	service.c	calls of the device runtime
 *	pointed.c	functions that pointers may lead to
 *	common.c	the subroutines of those, once for all kernels of a module
 *	liveness.c	from where to where each value is needed
 *	slots.c		values that are not needed together share a slot
 *	encode.c	checks each operation against its signature and writes the code
 *
 * A value is a register of a function instance, a temporary of one PTX instruction, an
 * immediate or a special register. A reference to a predicate may have the bit
 * VALUE_NEGATED. One struct lowering owns everything and lives for one kernel.
 *
 * Functions return 0 or a CUDA result; the function that raises it sets the message.
 */

#include "exec/code.h"
#include "exec/ops.h"
#include "ptx/module.h"

#define VALUE_NONE 0u
#define VALUE_TRUE 1u
#define VALUE_CARRY 2u
#define VALUE_NEGATED 0x80000000u

/* Entries of the tables that say where calls through pointers may lead. */
#define CANDIDATES_MAX (1u << 20)

/* Above this, calls are not written out in place any more. */
#define INLINE_OPS_MAX (1u << 16)

/* Alignment of a subroutine's frame and everything in it: that of the widest access. */
#define FRAME_ALIGN 16u

/* Bounds the work of finding the values that calls have to save, and the lists. */
#define SAVES_WORK_MAX (UINT64_C(1) << 28)
#define SAVES_MAX (1u << 20)

/*
 * Bounds the time of finding where values are live: looks at a block, each for 64 values
 * at once. Some seconds; code of 200 000 blocks and 100 000 registers that live briefly
 * needs a thousandth of it.
 */
#ifndef LIVENESS_WORK_MAX /* a test sets a lower one */
#define LIVENESS_WORK_MAX (UINT64_C(1) << 30)
#endif

/* Entries of branch tables, counted again for each inlined copy. */
#define TABLES_MAX (1u << 22)

/* Bytes of the register files of one block: all that 16-bit operands reach, 8 times. */
#define REGISTERS_SIZE_MAX (64u << 20)

/* The size limit of one kernel, including all its inlined calls. */
#define LOWER_OPS_MAX (1u << 20)
#define LOWER_VALUES_MAX (1u << 21)
#define LOWER_DEPTH_MAX 24u

enum value_class {
	CLASS_NONE,
	CLASS_32,
	CLASS_64,
	CLASS_PRED,
};

enum value_kind {
	VALUE_REGISTER,
	VALUE_TEMPORARY,
	VALUE_CONSTANT,
	VALUE_SREG,
	VALUE_FIXED, /* a predicate with a fixed slot: true, carry */
};

struct value {
	uint8_t class;
	uint8_t kind;
	uint8_t sreg;
	uint8_t number;
	bool is_shared_end; /* a constant to which the static shared size is added */
	bool is_param;	    /* a constant that is in the parameters, bits: where */
	uint32_t slot;
	uint32_t high; /* of a register of 128 bits: the value of its upper half */
	uint64_t bits;
	/* Half steps: 2n is before, 2n + 1 after operation n. Empty: start > end. */
	uint32_t start;
	uint32_t end;
	uint32_t global; /* number among the values that live across blocks, or 0 */
};

enum field {
	FIELD_D,
	FIELD_A,
	FIELD_B,
	FIELD_C,
	FIELD_E,
	FIELD_F,
	_FIELD_N,
};

struct operation {
	uint16_t op; /* enum op */
	uint16_t reserved;
	uint32_t field[_FIELD_N]; /* values */
	uint64_t imm;		  /* fields E and F lie over its upper half */
	uint32_t guard;
	uint32_t target; /* of BRA: label; of BRX: first of lowering.tables */
	uint32_t line;
};

/* A function while its body is written out. */
struct frame {
	const struct frame *caller;
	uint32_t function; /* in the module */
	const struct ptx_function *ptx;
	const struct ptx_body *body;
	uint32_t first_register; /* value of register 0 */
	uint32_t first_label;
	uint32_t return_label; /* PTX_INDEX_NONE in an entry function */
	/* In a subroutine: the value that all places below are relative to. */
	uint32_t base;
	uint32_t local_base; /* of the body's .local block in the thread's local memory */
	uint32_t param_base; /* of the body's .param variables, there too */
	uint32_t actual_base; /* what calls pass in registers, while they are made */
	uint32_t stack_mark;  /* value: the stack's top at the beginning, if it moves */
	uint32_t local_end;
	/* For a called function: the address of each parameter and result, in local
	 * memory. */
	uint32_t *param_places;
	uint32_t *return_places;
};

struct subroutine {
	uint32_t function;
	uint32_t first_op, end_op;
	uint32_t first_value, end_value;
	uint32_t frame_size;
	bool is_called; /* by its name; else only through pointers */
};

/* The tables of a kernel's code; see struct softgpu_kernel. */
enum lower_table {
	TABLE_CODE,
	TABLE_LINES,
	TABLE_TARGETS,
	TABLE_SUBROUTINES,
	TABLE_CALLS,
	TABLE_MOVES,
	TABLE_CANDIDATES,
	TABLE_SAVES,
	_TABLE_N,
};

/* Subroutines that several kernels share, and the tables that those have in common. */
struct lower_common {
	struct lower_common *next;
	bool *wanted; /* by function: whether a pointer may lead there */
	int refusal;  /* kernels cannot share these, or 0 */

	void *reservation;
	size_t reserved_size;
	void *tables[_TABLE_N];
	uint32_t n[_TABLE_N]; /* entries in use */
	char **refusals;
	uint32_t n_refusals;

	uint32_t *subroutines_of;
	uint32_t *shared_variables;
	uint32_t *shared_blocks;
	uint32_t shared_size;
	uint32_t shared_align;
	uint32_t n_slots;
	uint32_t n_preds;
	uint32_t n_live_max;
	struct common_constant {
		struct code_constant constant;
		bool is_shared_end; /* the kernel's shared size is to be added */
	} * constants;
	uint32_t n_constants;
	bool has_shared_end;
	struct code_sreg *sregs;
	uint32_t n_sregs;
};

/* State that lowering keeps from one kernel of a module to the next: initially all 0. */
struct lower_cache {
	bool is_watched;   /* kernels are: waits for copies become operations */
	uint32_t *pointed; /* by function: see lower_pointed() */
	struct lower_common *commons;
	uint64_t n_subroutines; /* bodies of subroutines that were lowered */
};

struct lowering {
	struct ptx_module *module;
	const uint64_t *addresses; /* of the module's variables */
	struct lower_cache *cache;
	const insn_fn *handlers;
	struct softgpu_message *messagep;

	/*
	 * The part that the kernel shares with others, or NULL. If wanted is not NULL,
	 * that part is being determined: calls through pointers only record their
	 * candidates.
	 */
	struct lower_common *common;
	bool *wanted;
	bool wants;
	uint32_t base[_TABLE_N]; /* entries that are others' */

	struct operation *ops;
	uint32_t n_ops;
	uint32_t ops_capacity;

	struct value *values;
	uint32_t n_values;
	uint32_t values_capacity;
	uint32_t *constants; /* hash table of constant values */
	uint32_t n_constants;
	uint32_t constants_capacity;

	uint32_t *labels; /* operation of each label of each instance */
	uint32_t n_labels;
	uint32_t labels_capacity;
	uint32_t *tables; /* labels of branch tables */
	uint32_t n_tables;
	uint32_t tables_capacity;

	/* Calls, see struct code_call; subroutines_of: by function, number + 1. */
	struct subroutine *subroutines;
	uint32_t n_subroutines;
	uint32_t subroutines_capacity;
	uint32_t first_subroutine; /* those before are common ones */
	uint32_t *subroutines_of;
	struct code_call *calls;
	uint32_t n_calls;
	uint32_t calls_capacity;
	struct code_move *moves;
	uint32_t n_moves;
	uint32_t moves_capacity;
	uint32_t *candidates;
	uint32_t n_candidates;
	uint32_t candidates_capacity;
	char **refusals; /* why a function cannot be called */
	uint32_t n_refusals;
	uint32_t refusals_capacity;
	uint32_t entry;		 /* operation at which the entry function begins */
	uint32_t n_entry_values; /* those above belong to subroutines */
	uint32_t subroutine;	 /* the one being translated, + 1 */
	bool uses_stack;	 /* by alloca */
	uint32_t extent;	 /* of the frame being translated, its calls included */

	/* Shared memory: where each variable and function block was put, + 1. */
	uint32_t *shared_variables;
	uint32_t *shared_blocks;
	uint32_t shared_size;
	uint32_t shared_align;
	uint32_t local_size;

	/* The instruction being translated. */
	const struct frame *frame;
	const struct ptx_instr *instr;
	const struct ptx_operand *operands;
	uint32_t guard;
	uint32_t n_unfinished; /* destinations that still have to be widened */
	int error;	       /* first failure of a helper that cannot return one */

	/* slots.c */
	uint32_t n_slots;
	uint32_t n_preds;
	uint32_t n_live_max; /* 32-bit registers */
};

/*
 * Decodes one entry function. The caller frees the kernel by lower_kernel_free(), and
 * after all kernels of the module the cache.
 */
int lower_kernel(struct softgpu_kernel **kernelp, struct ptx_module *module,
	uint32_t function, const uint64_t *addresses, struct lower_cache *cache,
	const insn_fn *handlers, struct softgpu_message *messagep);
struct softgpu_kernel *lower_kernel_free(struct softgpu_kernel *kernel);

int lowering_init(struct lowering *l);
void lowering_deinit(struct lowering *l);

/* simplify.c: fewer operations that do the same */
int lower_simplify(struct lowering *l);
/* Return: whether other operations than the next one may be run after that one. */
bool lower_leaves(const struct operation *o);

/* notes.c: accesses whose addresses are known to go on as those before */
int lower_notes(struct lowering *l);

/*
 * factors.c: products of matrices that have a factor in common with the one before
 *
 * @is_target:	by operation: a label is there
 * @is_gone:	it will be removed; updated
 */
void lower_factors(struct lowering *l, const bool *is_target, bool *is_gone);

/* From operations to code. */
int lower_code(
	struct lowering *l, struct softgpu_kernel *kernel, const insn_fn *handlers);

/*
 * common.c: the subroutines that l->wanted asks for. *commonp is NULL where they cannot
 * be shared: the kernel has its own then.
 */
int lower_common_get(struct lowering *l, struct lower_common **commonp);
struct lower_common *lower_common_free(struct lower_common *c);
void lower_cache_deinit(struct lower_cache *cache);

/* Room for n more entries of a table, zeroed; *basep: where entry 0 is. */
int lower_room(struct lowering *l, enum lower_table table, uint32_t n, void **basep,
	void **roomp);

/* build.c */
__attribute__((__format__(__printf__, 3, 4))) int lower_fail(
	struct lowering *l, int code, const char *format, ...);
int lower_unsupported(struct lowering *l);
int lower_refuse(struct lowering *l, const char *reason);
#define LOWER_FOR_TENSOR_MEMORY "PTX has it for sm_100a, sm_103a and sm_110a alone"
int lower_reserve(void *arrayp, uint32_t *capacityp, uint32_t need, size_t size);

enum value_class lower_class_of(unsigned int type);
bool lower_type_is_signed(unsigned int type);
uint32_t lower_value_new(
	struct lowering *l, enum value_class class, enum value_kind kind);
uint32_t lower_temporary(struct lowering *l, enum value_class class);
uint32_t lower_constant(struct lowering *l, enum value_class class, uint64_t bits);

struct operation *lower_emit(
	struct lowering *l, enum op op, uint32_t d, uint32_t a, uint32_t b, uint32_t c);
void lower_emit_imm(struct lowering *l, enum op op, uint32_t d, uint32_t a, uint32_t b,
	uint32_t c, uint64_t imm);

bool lower_has_operand(const struct lowering *l, unsigned int i);
uint32_t lower_source_of(
	struct lowering *l, const struct ptx_operand *operand, unsigned int type);
uint32_t lower_source(struct lowering *l, unsigned int i, unsigned int type);
uint32_t lower_predicate(struct lowering *l, unsigned int i);

/* A destination whose register is wider than the type needs widening afterwards. */
uint32_t lower_destination_of(
	struct lowering *l, const struct ptx_operand *operand, unsigned int type);
void lower_finish_of(struct lowering *l, const struct ptx_operand *operand,
	unsigned int type, uint32_t value);
uint32_t lower_destination(struct lowering *l, unsigned int i, unsigned int type);
void lower_finish_instruction(struct lowering *l);
void lower_finish(struct lowering *l, unsigned int i, unsigned int type, uint32_t value);

/* The address of a symbol in its own space. */
uint32_t lower_symbol_value(
	struct lowering *l, const struct ptx_operand *operand, enum value_class class);
uint32_t lower_element_value(struct lowering *l, const struct ptx_operand *operand);
bool lower_symbol_place(struct lowering *l, const struct ptx_operand *operand,
	enum ptx_space *spacep, uint64_t *placep, bool *is_shared_endp);

/* convert.c: where the generic range of a space begins; 0: the addresses are the same */
uint32_t lower_space_base(unsigned int space);

/* The families; each handles the current instruction. */
int translate_integer(struct lowering *l);
int translate_real(struct lowering *l);
int translate_compare(struct lowering *l);
int translate_convert(struct lowering *l);
int translate_memory(struct lowering *l);
int translate_control(struct lowering *l);
int translate_warp(struct lowering *l);
int translate_matrix(struct lowering *l);
int translate_texture(struct lowering *l);
int translate_video(struct lowering *l);
int translate_stack(struct lowering *l);
int translate_async(struct lowering *l);

/* memory.c: the address that an operand names, for accesses lane by lane */
struct lower_address {
	uint32_t value; /* of 64 bits */
	uint32_t off;	/* of the instruction */
	uint16_t space; /* bits of struct insn.reserved */
};

int lower_address(struct lowering *l, unsigned int i, unsigned int space,
	struct lower_address *address);

/* async.c: an address with its offset added, for operations that have one offset only */
int lower_absolute_address(
	struct lowering *l, unsigned int i, unsigned int space, uint32_t *valuep);

/* async.c: the barrier of operand @i learns that so many bytes have come. */
int lower_complete(struct lowering *l, unsigned int i, uint32_t size);

/* bulk.c */
int translate_bulk(struct lowering *l);

/* cancel.c */
int translate_cancel(struct lowering *l);

/* wide.c: operands of 128 bits, in halves */
bool lower_is_wide(const struct lowering *l);
int lower_wide_of(
	struct lowering *l, const struct ptx_operand *operand, uint32_t halves[2]);
int lower_wide_move(struct lowering *l);
int lower_wide_atomic(
	struct lowering *l, uint32_t address, uint32_t off, uint16_t reserved);

/* stack.c: at the beginning and the end of a function that is called */
void lower_stack_open(struct lowering *l, struct frame *frame);
void lower_stack_close(struct lowering *l, const struct frame *frame);

/* control.c */
void lower_branch(struct lowering *l, uint32_t label);

/* call.c; param.c: parameters that are registers, on either side of a call */
uint32_t lower_actuals_size(const struct ptx_body *body);
uint32_t lower_place_of_actual(const struct lowering *l, unsigned int i, uint32_t number);
bool lower_is_actual(const struct ptx_operand *operand);
void lower_store_actuals(struct lowering *l, const struct ptx_param *params, uint32_t n);
void lower_load_results(struct lowering *l, const struct ptx_param *params, uint32_t n);
void lower_load_formals(struct lowering *l);
void lower_store_returns(struct lowering *l, const struct frame *frame);
uint32_t lower_local_address(struct lowering *l, uint32_t place);
int translate_call(struct lowering *l);
int translate_subroutines(struct lowering *l);
/* Subroutines without an entry function: for each of them, then once. */
int lower_wanted(struct lowering *l, uint32_t function);
int lower_wanted_done(struct lowering *l);

/* service.c: a number of exec/service.h, with its flag */
#define SERVICE_NONE UINT32_MAX
uint32_t lower_service_of(const struct ptx_function *function);
bool lower_is_service(const char *name);

/*
 * pointed.c: for each function whose address is taken anywhere in the module the number
 * of the one that is defined under that name, + 1; else 0. Return: NULL: no memory.
 */
const uint32_t *lower_pointed(struct lowering *l);

/* translate.c */
int translate_function(struct lowering *l, struct frame *frame);
uint32_t lower_labels_new(struct lowering *l, uint32_t n);

int lower_liveness(struct lowering *l);
int lower_slots(struct lowering *l);

/* The values that each call has to save: after slots, with the code still as
 * operations. */
int lower_saves(struct lowering *l, struct softgpu_kernel *kernel);
int lower_encode(
	struct lowering *l, struct softgpu_kernel *kernel, const insn_fn *handlers);

/* Signature of an operation, see exec/ops.h. */
const char *op_signature(unsigned int op);
const char *op_name(unsigned int op);
