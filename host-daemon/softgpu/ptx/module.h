/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A parsed PTX module
 *
 * The result of the parser, which all later stages read. ptx_module_new() reads the whole
 * text once for declarations: module variables, functions and their parameters. The body
 * of a function is only skipped then (braces, strings and comments are honoured), its
 * place in the text is kept and ptx_function_parse() parses it on demand: most kernels of
 * a large module are never launched. The module keeps a private copy of the text, no
 * structure here points into it; all arrays of a module live in one arena, those of a
 * body in another which ptx_function_drop() or ptx_module_free() releases.
 *
 * References are indices into the arrays below. The parser has verified that every index
 * is in range, registers, symbols and labels are declared, each operand has a kind that
 * its position allows (see PTX_OPS in isa.h), names are unique and all sizes are below
 * the named limits. It has not verified that types, modifiers and register types fit the
 * opcode and each other.
 *
 * A module is not locked: parse and drop bodies under the caller's lock; a parsed
 * body never changes and may be read by any number of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx/isa.h"

/*
 * Limits on what a hostile text can make the parser allocate or visit, each with the
 * largest value in 507 real files.
 */
#define PTX_TEXT_SIZE_MAX (64u << 20)	 /* bytes of text; whole libraries: 25 MiB */
#define PTX_FUNCTIONS_MAX 65536u	 /* declarations and definitions */
#define PTX_VARIABLES_MAX 65536u	 /* of a module; the same for a body */
#define PTX_VARIABLE_SIZE_MAX (1u << 30) /* bytes of one variable */
#define PTX_INITIALISER_MAX (64u << 20)	 /* written initialiser bytes of a module */
#define PTX_RELOCS_MAX (1u << 20)	 /* addresses in the initialisers of a module */
#define PTX_PARAMS_MAX 4096u		 /* parameters of one function */
#define PTX_ALL_PARAMS_MAX (1u << 20)	/* of a module's functions, a body's prototypes */
#define PTX_PARAM_SIZE_MAX 32764u	/* bytes of all parameters: CUDA's own limit */
#define PTX_REGISTERS_MAX (1u << 20)	/* declared in one body; 31 187 */
#define PTX_INSTRS_MAX (1u << 20)	/* of one body; 10 817 */
#define PTX_LABELS_MAX (1u << 18)	/* of one body; the same for prototypes */
#define PTX_NESTING_MAX 64u		/* depth of { } in a body; 4 */
#define PTX_NAME_SIZE_MAX 4096u		/* bytes of an identifier; mangled: ~2 000 */
#define PTX_LOCAL_SIZE_MAX (512u << 10) /* bytes of .local a thread: CUDA's limit */
#define PTX_SHARED_SIZE_MAX (227u << 10) /* bytes of static .shared of one body */

#define PTX_VERSION_MAX 91 /* PTX ISA 9.1 as major * 10 + minor */

#define PTX_INDEX_NONE UINT32_MAX

/* How the linker's result begins: in it, weak definitions give way to others. */
#define PTX_LINKED_MARK "// linked of several modules\n"

/* Conditions of ptx_module_new() and ptx_function_parse(); see ptx_result(). */
enum {
	_PTX_E_SUCCESS,
	PTX_E_INVALID, /* the text is not PTX, or breaks a limit: CUDA error 218 */
	PTX_E_VERSION, /* .version is newer than PTX_VERSION_MAX: CUDA error 222 */
	PTX_E_TARGET,  /* .target needs another device: CUDA error 209 */
};

/* The error and its line; the text for a JIT error log. */
struct ptx_error {
	uint32_t line; /* 0: no particular line */
	char message[248];
};

/*
 * Operands
 */

enum ptx_operand_kind {
	PTX_OPERAND_NONE,	    /* left out, or the sink `_` */
	PTX_OPERAND_REG,	    /* index: register; negated: `!p` as a source */
	PTX_OPERAND_INT,	    /* imm: integer, also 0 or 1 for a predicate */
	PTX_OPERAND_F32,	    /* imm: the bits, written as 0f... */
	PTX_OPERAND_F64,	    /* imm: the bits, written as 0d... or with a point */
	PTX_OPERAND_SREG,	    /* index: enum ptx_sreg; imm: its number */
	PTX_OPERAND_SYMBOL,	    /* symbol, index; imm: offset. The address itself */
	PTX_OPERAND_ADDRESS_REG,    /* index: register; imm: offset */
	PTX_OPERAND_ADDRESS_SYMBOL, /* symbol, index; imm: offset */
	PTX_OPERAND_ADDRESS_INT,    /* imm: the address */
	/* index: the SYMBOL with its offset, then the REG that counts elements; count:
	 * their size. The address itself, and the value there. */
	PTX_OPERAND_ELEMENT,
	PTX_OPERAND_ADDRESS_ELEMENT,
	PTX_OPERAND_VECTOR,	  /* index: first element in operands; count */
	PTX_OPERAND_LABEL,	  /* index: label */
	PTX_OPERAND_BRANCH_TABLE, /* index: table */
	PTX_OPERAND_PROTOTYPE,	  /* index: prototype */
	_PTX_OPERAND_N,
};

/* Which array `index` of a symbol refers to. */
enum ptx_symbol {
	PTX_SYMBOL_NONE,
	PTX_SYMBOL_VARIABLE, /* ptx_module.variables */
	PTX_SYMBOL_FUNCTION, /* ptx_module.functions */
	PTX_SYMBOL_LOCAL,    /* ptx_body.variables */
	PTX_SYMBOL_PARAM,    /* ptx_function.params of this function */
	PTX_SYMBOL_RETURN,   /* ptx_function.returns of this function */
	_PTX_SYMBOL_N,
};

struct ptx_operand {
	uint8_t kind;	/* enum ptx_operand_kind */
	uint8_t symbol; /* enum ptx_symbol */
	uint8_t negated;
	uint8_t reserved;
	uint32_t index;
	union {
		int64_t imm;
		uint32_t count;
	};
};

/*
 * Instructions
 */

/*
 * One instruction. Fields that its opcode does not use, or that were not written,
 * are 0. call has four operands:
 *
 *	0	VECTOR of what receives the results (SYMBOL of .param, REG, VECTOR of
 *		registers, or NONE for `_`), or NONE
 *	1	the callee: SYMBOL of a function, or REG holding its address
 *	2	VECTOR of arguments (SYMBOL of .param, REG, VECTOR of registers, or
 *		immediate), or NONE
 *	3	PROTOTYPE of an indirect call, or NONE
 */
struct ptx_instr {
	uint16_t op; /* enum ptx_op */
	uint8_t n_types;
	uint8_t types[4]; /* in the order written */
	uint8_t n_operands;
	uint8_t guard_negated;	/* runs where the guard is false */
	uint32_t guard;		/* register of the predicate, PTX_INDEX_NONE: always */
	uint32_t first_operand; /* in ptx_body.operands */
	uint32_t line;		/* of the PTX text */
	uint32_t name;		/* offset in ptx_body.names: opcode with its modifiers */

	uint32_t flags;	    /* enum ptx_flag */
	uint8_t round;	    /* enum ptx_round */
	uint8_t approx;	    /* enum ptx_approx */
	uint8_t cmp;	    /* enum ptx_cmp */
	uint8_t bool_op;    /* enum ptx_bool */
	uint8_t spaces[2];  /* enum ptx_space, in the order written */
	uint8_t vector;	    /* 1, 2, 4 or 8 elements: ld, st, mov, atom, red, ldmatrix */
	uint8_t sem;	    /* enum ptx_sem */
	uint8_t scope;	    /* enum ptx_scope */
	uint8_t atom;	    /* enum ptx_atom */
	uint8_t mode;	    /* enum ptx_mode */
	uint8_t mul;	    /* enum ptx_mul; also lo/hi of dp2a */
	uint8_t wrap;	    /* enum ptx_wrap */
	uint8_t geometry;   /* enum ptx_geometry */
	uint8_t query;	    /* enum ptx_query */
	uint8_t shape;	    /* enum ptx_shape */
	uint8_t layouts[2]; /* enum ptx_layout, in the order written */
};

/*
 * Variables and functions
 */

/* The address of a symbol to be stored in an initialiser. */
struct ptx_reloc {
	uint32_t offset; /* in the variable's bytes */
	uint8_t size;	 /* bytes to store: 1, 2, 4 or 8 */
	uint8_t shift;	 /* the address is shifted right by this many bits first */
	uint8_t generic; /* the generic address, not the one in its space */
	uint8_t symbol;	 /* enum ptx_symbol: VARIABLE or FUNCTION */
	uint32_t index;
	int64_t addend;
};

enum ptx_linkage {
	PTX_LINKAGE_NONE, /* known in this module only */
	PTX_LINKAGE_VISIBLE,
	PTX_LINKAGE_EXTERN,
	PTX_LINKAGE_WEAK,
	PTX_LINKAGE_COMMON,
};

struct ptx_variable {
	const char *name;
	uint32_t line;
	uint8_t space;	 /* enum ptx_space: GLOBAL, CONST, SHARED, LOCAL, PARAM, TEX */
	uint8_t type;	 /* enum ptx_type of an element */
	uint8_t vector;	 /* 1, 2, 4 or 8 */
	uint8_t linkage; /* enum ptx_linkage */
	bool managed;
	bool unsized; /* extern .shared x[]: starts where static shared memory ends */
	uint16_t sampling; /* enum ptx_sampling of a .texref or .samplerref */
	uint32_t align;	   /* a power of two */
	uint64_t size;	   /* bytes; 0 if unsized */
	/*
	 * For a variable in a body: its offset in the body's .local, .shared or .param
	 * block. The caller places module variables.
	 */
	uint64_t offset;
	const uint8_t *init; /* NULL: zeros; else the first init_size bytes */
	uint64_t init_size;
	uint32_t first_reloc; /* in ptx_module.relocs */
	uint32_t n_relocs;
};

struct ptx_param {
	const char *name; /* "" in a prototype that gives none */
	uint8_t type;	  /* enum ptx_type of an element */
	bool is_register; /* old .func syntax: a .reg parameter, see reg */
	uint8_t vector;	  /* of a register: 1, 2, 4 or 8 */
	uint32_t reg;	  /* its first register in the body */
	uint32_t align;
	uint32_t size;	 /* bytes of all elements */
	uint32_t count;	 /* elements, 1 unless an array */
	uint32_t offset; /* in the parameter block of this list */
};

/* A variable that is declared inside of a function: where its name is in the text. */
struct ptx_inside {
	size_t off;
	uint32_t index; /* in ptx_module.variables */
};

struct ptx_body;

struct ptx_function {
	const char *name;
	uint32_t line;
	bool is_entry;
	bool is_defined; /* has a body */
	bool is_noreturn;
	uint8_t linkage; /* enum ptx_linkage */

	struct ptx_param *params;
	uint32_t n_params;
	uint32_t params_size; /* bytes of the block, offsets and alignment included */
	struct ptx_param *returns;
	uint32_t n_returns;
	uint32_t returns_size;

	/* Performance directives; 0: not written. */
	uint32_t maxntid[3]; /* .maxntid, missing dimensions are 1 */
	uint32_t reqntid[3]; /* .reqntid */
	uint32_t minnctapersm;
	uint32_t maxnreg;
	uint32_t reqnctapercluster[3];
	uint32_t maxclusterrank;
	bool is_cluster_explicit; /* .explicitcluster */
	bool blocks_are_clusters;

	/* Private to the parser: the position of the body in the text. */
	size_t body_off;
	uint32_t body_line;

	struct ptx_body *body; /* NULL until ptx_function_parse() */
};

/* The signature of an indirect call, by .callprototype. */
struct ptx_prototype {
	struct ptx_param *params;
	struct ptx_param *returns;
	uint32_t n_params;
	uint32_t n_returns;
	uint32_t params_size;
	uint32_t returns_size;
};

struct ptx_branch_table {
	uint32_t first; /* in ptx_body.branch_targets, each a label */
	uint32_t count;
};

struct ptx_body {
	struct ptx_instr *instrs;
	uint32_t n_instrs;
	struct ptx_operand *operands;
	uint32_t n_operands;

	uint8_t *registers; /* enum ptx_type of each register that is mentioned */
	uint32_t n_registers;

	uint32_t *labels; /* instruction index, n_instrs at the very end */
	uint32_t n_labels;
	struct ptx_branch_table *branch_tables;
	uint32_t n_branch_tables;
	uint32_t *branch_targets;
	uint32_t n_branch_targets;

	struct ptx_variable *variables; /* only .local, .shared and .param */
	uint32_t n_variables;
	uint32_t local_size; /* bytes of the blocks in which offsets lie */
	uint32_t local_align;
	uint32_t shared_size;
	uint32_t shared_align;
	uint32_t param_size;
	uint32_t param_align;

	struct ptx_prototype *prototypes;
	uint32_t n_prototypes;

	char *names; /* opcode spellings, see ptx_instr.name */
	uint32_t names_size;
	uint32_t first_unsupported; /* instruction index or PTX_INDEX_NONE */

	struct ptx_arena *arena;
};

struct ptx_module {
	uint32_t version;     /* .version as major * 10 + minor */
	uint32_t target;      /* 75 for sm_75 */
	char target_kind;     /* 'a', 'f' or 0 */
	uint8_t address_size; /* 32 or 64 */
	bool is_linked;	      /* begins with PTX_LINKED_MARK */
	size_t head_size;     /* of the text, with .version and .target */

	struct ptx_function *functions;
	uint32_t n_functions;
	struct ptx_variable *variables;
	uint32_t n_variables;
	struct ptx_reloc *relocs;
	uint32_t n_relocs;

	char *text; /* the private copy, ends with a NUL */
	size_t text_size;
	struct ptx_declaration *registers; /* declared outside of functions */
	uint32_t n_registers;
	struct ptx_inside *inside; /* by ascending place */
	uint32_t n_inside;
	struct ptx_names *names; /* module scope: name to symbol */
	struct ptx_arena *arena;
};

/**
 * ptx_module_new() - read the declarations of a PTX text
 * @modulep:	the module; unchanged unless 0 is returned
 * @text:	need not end with a NUL; what follows a first NUL is ignored
 * @size:	bytes of text
 * @cc:		compute capability of the device, 121 for 12.1
 * @error:	filled where a positive condition is returned
 *
 * Return: 0, -ENOMEM, or PTX_E_*. The caller frees the module by ptx_module_free().
 */
int ptx_module_new(struct ptx_module **modulep, const char *text, size_t size,
	unsigned int cc, struct ptx_error *error);
struct ptx_module *ptx_module_free(struct ptx_module *module);

/**
 * ptx_function_parse() - parse the body of a function unless that has been done
 *
 * Sets functions[index].body. An instruction that is known but not decoded is no
 * error: it is there with op PTX_OP_UNSUPPORTED, body.first_unsupported finds it.
 *
 * Return: 0, -ENOMEM, PTX_E_INVALID (with @error filled), and -EINVAL where the
 * function has no body.
 */
int ptx_function_parse(
	struct ptx_module *module, uint32_t index, struct ptx_error *error);

/* Releases a parsed body; ptx_function_parse() may be called again. */
void ptx_function_drop(struct ptx_module *module, uint32_t index);

/* Returns: index of that name in functions or variables, or PTX_INDEX_NONE. */
uint32_t ptx_module_find_function(const struct ptx_module *module, const char *name);
uint32_t ptx_module_find_variable(const struct ptx_module *module, const char *name);

/* Returns: the variable whose declaration in a body has its name at @text. */
uint32_t ptx_inside_find(const struct ptx_module *module, const char *text);

/**
 * ptx_operand_bits() - an immediate in the representation of a type
 *
 * Return: the bits for operands of kind INT, F32 and F64; a literal in double
 * precision is rounded where @type is f32.
 */
uint64_t ptx_operand_bits(const struct ptx_operand *operand, enum ptx_type type);

/* Returns: the CUresult of a PTX_E_* condition. */
int ptx_result(int condition);

static inline const struct ptx_operand *ptx_instr_operand(
	const struct ptx_body *body, const struct ptx_instr *instr, unsigned int i)
{
	return &body->operands[instr->first_operand + i];
}

static inline const char *ptx_instr_name(
	const struct ptx_body *body, const struct ptx_instr *instr)
{
	return body->names + instr->name;
}

static inline void ptx_module_freep(struct ptx_module **modulep)
{
	ptx_module_free(*modulep);
}
