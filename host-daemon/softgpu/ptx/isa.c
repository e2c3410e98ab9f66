/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX vocabulary
 */

#include "ptx/isa.h"

static const char *const op_names[_PTX_OP_N] = {
#define OP_NAME(_name, _text, _operands, _family) [PTX_OP_##_name] = _text,
	PTX_OPS(OP_NAME)
#undef OP_NAME
};

static const unsigned char op_families[_PTX_OP_N] = {
#define OP_FAMILY(_name, _text, _operands, _family)                                      \
	[PTX_OP_##_name] = PTX_FAMILY_##_family,
	PTX_OPS(OP_FAMILY)
#undef OP_FAMILY
};

static const struct {
	const char *name;
	unsigned int size;
} types[_PTX_TYPE_N] = {
#define TYPE_INFO(_name, _text, _size) [PTX_TYPE_##_name] = { _text, _size },
	PTX_TYPES(TYPE_INFO)
#undef TYPE_INFO
};

static const unsigned char sreg_types[_PTX_SREG_N] = {
#define SREG_TYPE(_name, _text, _type) [PTX_SREG_##_name] = PTX_TYPE_##_type,
	PTX_SREGS(SREG_TYPE)
#undef SREG_TYPE
};

const char *ptx_op_name(enum ptx_op op)
{
	return op < _PTX_OP_N && op_names[op] ? op_names[op] : "?";
}

enum ptx_family ptx_op_family(enum ptx_op op)
{
	return op < _PTX_OP_N ? (enum ptx_family)op_families[op] : PTX_FAMILY_NONE;
}

const char *ptx_type_name(enum ptx_type type)
{
	return type < _PTX_TYPE_N && types[type].name ? types[type].name : "?";
}

unsigned int ptx_type_size(enum ptx_type type)
{
	return type < _PTX_TYPE_N ? types[type].size : 0;
}

enum ptx_type ptx_sreg_type(enum ptx_sreg sreg)
{
	return sreg < _PTX_SREG_N ? (enum ptx_type)sreg_types[sreg] : PTX_TYPE_NONE;
}
