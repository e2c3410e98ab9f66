/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: services of the runtime
 *
 * printf(), assert(), malloc() and free() of device code, and the conditions of graphs.
 * Format, strings and arguments are in device memory and as hostile as all of it: every
 * byte is read through the checked windows, the format is parsed here and only single
 * conversions written by this file reach the C library.
 */

#include <stdio.h>

#include "exec/memory.h"

/* Bytes of a format or a %s, of one conversion's output, of one line altogether. */
#define STRING_MAX 4096u
#define FIELD_MAX 512u
#define LINE_MAX_SIZE 8192u

struct line {
	char text[LINE_MAX_SIZE];
	size_t n;
};

static void line_add(struct line *line, const char *text, size_t n)
{
	if (n > sizeof(line->text) - line->n)
		n = sizeof(line->text) - line->n;
	memcpy(line->text + line->n, text, n);
	line->n += n;
}

static void print(const struct warp *w, const char *text, size_t n)
{
	const struct softgpu_hooks *hooks = w->block->launch->hooks;

	if (hooks && hooks->print && n)
		hooks->print(hooks->data, text, n);
}

static void print_error(const struct warp *w, const char *text, size_t n)
{
	const struct softgpu_hooks *hooks = w->block->launch->hooks;

	if (hooks && hooks->print_error)
		hooks->print_error(hooks->data, text, n);
	else
		print(w, text, n);
}

/* Copies a string of the lane; it ends at a NUL, the limit, or where memory ends. */
static size_t read_string(struct warp *w, uint32_t lane, uint64_t address, char *to)
{
	size_t n = 0;
	int code;

	while (n < STRING_MAX - 1) {
		const char *from =
			warp_resolve(w, lane, address + n, 1, 0, SOFTGPU_READ, &code);

		if (!from || !*from)
			break;
		to[n++] = *from;
	}
	to[n] = 0;
	return n;
}

/* The argument block: each argument aligned to its own size. */
struct arguments {
	struct warp *w;
	uint32_t lane;
	uint64_t at;
	uint32_t n;
};

static uint64_t next_argument(struct arguments *args, uint32_t size)
{
	uint64_t value = 0;
	const void *from;
	int code;

	args->at = (args->at + size - 1) & ~(uint64_t)(size - 1);
	from = warp_resolve(args->w, args->lane, args->at, size, 0, SOFTGPU_READ, &code);
	if (from)
		memcpy(&value, from, size);
	args->at += size;
	args->n++;
	return value;
}

struct spec {
	char flags[8];
	int width;     /* -1: none */
	int precision; /* -1: none */
	char length;   /* 'H' for hh, 'h', 'l' for all of 64 bits, 0 */
	char conversion;
};

static const char *parse_number(const char *at, int *valuep, struct arguments *args)
{
	const bool is_argument = *at == '*';
	int value = 0;

	if (is_argument) {
		value = (int)(int32_t)next_argument(args, 4);
		at++;
	}
	/* After an asterisk C allows no digits: they are ignored. */
	for (; *at >= '0' && *at <= '9'; at++)
		if (!is_argument && value < 1000)
			value = value * 10 + *at - '0';
	*valuep = value > (int)FIELD_MAX - 64 ? (int)FIELD_MAX - 64 : value;
	return at;
}

/* @at is the place after the percent sign. Returns: the place after the conversion. */
static const char *parse_spec(const char *at, struct spec *spec, struct arguments *args)
{
	size_t n = 0;

	*spec = (struct spec){ .width = -1, .precision = -1 };
	for (; *at && strchr("-+ #0", *at); at++)
		if (n < sizeof(spec->flags) - 2 && !strchr(spec->flags, *at))
			spec->flags[n++] = *at;
	if (*at == '*' || (*at >= '1' && *at <= '9'))
		at = parse_number(at, &spec->width, args);
	if (spec->width < -1) {
		spec->width = spec->width < -400 ? 400 : -spec->width;
		spec->flags[n] = '-';
	}
	if (*at == '.')
		at = parse_number(at + 1, &spec->precision, args);
	for (; *at && strchr("hlLzjtq", *at); at++)
		spec->length = *at != 'h' ? 'l' : spec->length == 'h' ? 'H' : 'h';
	spec->conversion = *at;
	return *at ? at + 1 : at;
}

/* Writes "%<flags><width><.precision><length><conversion>". */
static void write_spec(const struct spec *spec, const char *length, char format[48])
{
	int n = snprintf(format, 48, "%%%s", spec->flags);

	if (spec->width >= 0)
		n += snprintf(format + n, 48 - (size_t)n, "%d", spec->width);
	if (spec->precision >= 0)
		n += snprintf(format + n, 48 - (size_t)n, ".%d", spec->precision);
	snprintf(format + n, 48 - (size_t)n, "%s%c", length, spec->conversion);
}

static uint64_t integer_argument(struct arguments *args, const struct spec *spec)
{
	bool is_signed = spec->conversion == 'd' || spec->conversion == 'i';
	uint64_t value = next_argument(args, spec->length == 'l' ? 8 : 4);

	switch (spec->length) {
	case 'l':
		return value;
	case 'h':
		return is_signed ? (uint64_t)(int16_t)value : (uint16_t)value;
	case 'H':
		return is_signed ? (uint64_t)(int8_t)value : (uint8_t)value;
	default:
		return is_signed ? (uint64_t)(int32_t)value : (uint32_t)value;
	}
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void convert_argument(
	struct line *line, const struct spec *spec, struct arguments *args)
{
	char format[48], field[FIELD_MAX + STRING_MAX], string[STRING_MAX];
	uint64_t bits;
	double real;
	int n = 0;

	switch (spec->conversion) {
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		bits = integer_argument(args, spec);
		write_spec(spec, "ll", format);
		n = snprintf(field, sizeof(field), format, (unsigned long long)bits);
		break;
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		bits = next_argument(args, 8);
		memcpy(&real, &bits, sizeof(real));
		write_spec(spec, "", format);
		n = snprintf(field, sizeof(field), format, real);
		break;
	case 'c':
		write_spec(spec, "", format);
		n = snprintf(field, sizeof(field), format, (int)next_argument(args, 4));
		break;
	case 's':
		read_string(args->w, args->lane, next_argument(args, 8), string);
		write_spec(spec, "", format);
		n = snprintf(field, sizeof(field), format, string);
		break;
	case 'p':
		write_spec(spec, "", format);
		n = snprintf(field, sizeof(field), format,
			(void *)(uintptr_t)next_argument(args, 8));
		break;
	case 'n':
		next_argument(args, 8);
		return;
	case '%':
		line_add(line, "%", 1);
		return;
	default:
		line_add(line, "?", 1);
		return;
	}
	if (n > 0)
		line_add(line, field,
			(size_t)n < sizeof(field) ? (size_t)n : sizeof(field) - 1);
}
#pragma GCC diagnostic pop

static uint32_t print_lane(struct warp *w, uint32_t lane, uint64_t format, uint64_t block)
{
	struct arguments args = { .w = w, .lane = lane, .at = block };
	char text[STRING_MAX];
	struct line line;
	struct spec spec;
	const char *at = text;

	line.n = 0;
	read_string(w, lane, format, text);
	while (*at) {
		size_t plain = strcspn(at, "%");

		line_add(&line, at, plain);
		at += plain;
		if (!*at)
			break;
		at = parse_spec(at + 1, &spec, &args);
		convert_argument(&line, &spec, &args);
	}
	print(w, line.text, line.n);
	return args.n;
}

HANDLER(VPRINTF)
{
	const uint64_t *format = REG(uint64_t, ip->a), *block = REG(uint64_t, ip->b);
	uint32_t *d = REG(uint32_t, ip->d);

	EACH_SET_LANE(i, mask)
	d[i] = print_lane(w, i, format[i], block[i]);
	return ip + 1;
}

HANDLER(ASSERT_FAIL)
{
	const uint64_t *message = REG(uint64_t, ip->a), *file = REG(uint64_t, ip->b);
	const uint32_t *number = REG(uint32_t, ip->c);
	const uint64_t *function = REG(uint64_t, ip->e);
	const uint32_t *dim = w->block->launch->block, *cta = w->block->ctaid;
	char m[STRING_MAX], f[STRING_MAX], g[STRING_MAX], text[3 * STRING_MAX];

	if (!mask)
		return ip + 1;
	EACH_SET_LANE(i, mask)
	{
		uint32_t thread = w->first_thread + i;
		int n;

		read_string(w, i, message[i], m);
		read_string(w, i, file[i], f);
		read_string(w, i, function[i], g);
		n = snprintf(text, sizeof(text),
			"%.1024s:%u: %.1024s: block: [%u,%u,%u], thread: [%u,%u,%u] "
			"Assertion `%.1024s` failed.\n",
			f, number[i], g, cta[0], cta[1], cta[2], thread % dim[0],
			thread / dim[0] % dim[1], thread / dim[0] / dim[1], m);
		print_error(w, text, (size_t)n);
	}
	return warp_fault(w, ip, SOFTGPU_ERROR_ASSERT, (u32)__builtin_ctz(mask), 0,
		"failed assertion");
}

HANDLER(MALLOC)
{
	const struct softgpu_hooks *hooks = w->block->launch->hooks;
	const uint64_t *size = REG(uint64_t, ip->a);
	uint64_t *d = REG(uint64_t, ip->d);

	EACH_SET_LANE(i, mask)
	d[i] = hooks && hooks->malloc && hooks->free ? hooks->malloc(hooks->heap, size[i])
						     : 0;
	return ip + 1;
}

HANDLER(FREE)
{
	const struct softgpu_hooks *hooks = w->block->launch->hooks;
	const uint64_t *address = REG(uint64_t, ip->a);

	EACH_SET_LANE(i, mask)
	if (address[i] && hooks && hooks->malloc && hooks->free)
		hooks->free(hooks->heap, address[i]);
	return ip + 1;
}

HANDLER(SET_CONDITION)
{
	const struct softgpu_hooks *hooks = w->block->launch->hooks;
	const uint64_t *handle = REG(uint64_t, ip->a);
	const uint32_t *value = REG(uint32_t, ip->b);

	EACH_SET_LANE(i, mask)
	if (!hooks || !hooks->set_condition ||
		!hooks->set_condition(hooks->conditions, handle[i], value[i]))
		return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_ADDRESS, i, handle[i],
			"sets a condition that no graph of its context has, by the "
			"handle");
	return ip + 1;
}
