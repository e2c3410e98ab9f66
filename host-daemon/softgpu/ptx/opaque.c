/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: initial values of textures, samplers and surfaces
 *
 * `{ name = value, ... }`: the fields of a sampler are kept. All others describe an
 * object that the program binds, which has its own sizes and format.
 */

#include "ptx/parser.h"

enum field {
	FIELD_IGNORED,
	FIELD_ADDRESS_0,
	FIELD_ADDRESS_1,
	FIELD_ADDRESS_2,
	FIELD_FILTER,
	FIELD_NORMALIZED,
	FIELD_UNNORMALIZED,
};

static const struct {
	const char *text;
	uint8_t field;
} fields[] = {
	{ "addr_mode_0", FIELD_ADDRESS_0 },
	{ "addr_mode_1", FIELD_ADDRESS_1 },
	{ "addr_mode_2", FIELD_ADDRESS_2 },
	{ "array_size", FIELD_IGNORED },
	{ "channel_data_type", FIELD_IGNORED },
	{ "channel_order", FIELD_IGNORED },
	{ "depth", FIELD_IGNORED },
	{ "filter_mode", FIELD_FILTER },
	{ "force_unnormalized_coords", FIELD_UNNORMALIZED },
	{ "height", FIELD_IGNORED },
	{ "memory_layout", FIELD_IGNORED },
	{ "normalized_coords", FIELD_NORMALIZED },
	{ "num_mipmap_levels", FIELD_IGNORED },
	{ "num_samples", FIELD_IGNORED },
	{ "width", FIELD_IGNORED },
};

/* Names of values, with the numbers that the Driver API has for them. */
static const struct {
	const char *text;
	uint8_t value;
	bool is_filter;
} values[] = {
	{ "wrap", 0, false },
	{ "clamp_to_edge", 1, false },
	{ "mirror", 2, false },
	{ "clamp_to_border", 3, false },
	{ "nearest", 0, true },
	{ "linear", 1, true },
};

static int find_field(struct ptx_parser *p, enum field *fieldp)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (ptx_token_is(&p->token, PTX_TOKEN_NAME, fields[i].text)) {
			*fieldp = fields[i].field;
			ptx_next(p);
			return 0;
		}
	return ptx_fail(p, "\"%.*s\" is no field of a texture, sampler or surface",
		PTX_SHOWN(&p->token));
}

static int find_value(struct ptx_parser *p, bool is_filter, unsigned int *valuep)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (values[i].is_filter == is_filter &&
			ptx_token_is(&p->token, PTX_TOKEN_NAME, values[i].text)) {
			*valuep = values[i].value;
			ptx_next(p);
			return 0;
		}
	/* Also clamp_ogl, with which a filter reaches half a texel into the border. */
	return ptx_fail(
		p, "\"%.*s\" is not supported in a sampler", PTX_SHOWN(&p->token));
}

/* The value of an ignored field: a number or a name. */
static int skip_value(struct ptx_parser *p)
{
	uint64_t number;

	if (p->token.kind != PTX_TOKEN_NAME)
		return ptx_parse_int(p, &number);
	ptx_next(p);
	return 0;
}

static int parse_field(struct ptx_parser *p, uint16_t *samplingp)
{
	enum field field = FIELD_IGNORED;
	unsigned int value = 0;
	uint64_t flag = 0;
	int r;

	r = find_field(p, &field);
	if (!r)
		r = ptx_expect(p, '=');
	if (r)
		return r;
	switch (field) {
	case FIELD_ADDRESS_0:
	case FIELD_ADDRESS_1:
	case FIELD_ADDRESS_2:
		r = find_value(p, false, &value);
		*samplingp |= (uint16_t)(value << 2 * (field - FIELD_ADDRESS_0));
		return r;
	case FIELD_FILTER:
		r = find_value(p, true, &value);
		*samplingp |= value ? PTX_SAMPLING_LINEAR : 0;
		return r;
	case FIELD_NORMALIZED:
		r = ptx_parse_count(p, 1, "normalized_coords", &flag);
		*samplingp |= flag ? PTX_SAMPLING_NORMALIZED : 0;
		return r;
	case FIELD_UNNORMALIZED:
		r = ptx_parse_count(p, 1, "force_unnormalized_coords", &flag);
		*samplingp |= flag ? PTX_SAMPLING_UNNORMALIZED : 0;
		return r;
	default:
		return skip_value(p);
	}
}

int ptx_parse_opaque(struct ptx_parser *p, struct ptx_variable *variable)
{
	uint16_t sampling = PTX_SAMPLING_GIVEN;
	int r;

	r = ptx_expect(p, '{');
	if (r)
		return r;
	do {
		r = parse_field(p, &sampling);
		if (r)
			return r;
	} while (ptx_take(p, ','));
	variable->sampling = sampling;
	return ptx_expect(p, '}');
}
