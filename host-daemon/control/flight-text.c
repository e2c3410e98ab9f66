/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight recorder as text
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/flight-text.h"
#include "vgpu/frame.h"
#include "vgpu/g-calls.h"
#include "vgpu/handle.h"
#include "vgpu/launch.h"
#include "vgpu/names.h"

/* Shown of a string. */
#define STRING_MAX 80u
/* Kept of a line for the end of its call. */
#define END_MAX 56u

/* The types of fields in a protobuf message. */
enum {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

struct line {
	char *text;
	size_t size; /* with the NUL */
	size_t used;
};

/* One field of a message; `bytes` are those of them that were kept. */
struct field {
	uint32_t number;
	uint32_t wire;
	uint64_t value; /* of a number, or the length of bytes */
	const uint8_t *bytes;
	size_t n_bytes;
};

static __attribute__((__format__(__printf__, 2, 3))) void add(
	struct line *line, const char *format, ...)
{
	const size_t room = line->size - line->used;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line->text + line->used, room, format, ap);
	va_end(ap);
	if (n > 0)
		line->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_printable(struct line *line, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n && bytes[i]; i++)
		add(line, "%c", bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?');
}

void flight_time_now(struct flight_time *time)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	time->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	time->ticks = __builtin_ia32_rdtsc();
}

static int compare(const void *a, const void *b)
{
	const struct flight_call *const *left = a, *const *right = b;

	return (*left)->number < (*right)->number ? -1
						  : (*left)->number > (*right)->number;
}

size_t flight_order(const struct flight_call calls[FLIGHT_CALLS],
	const struct flight_call *order[FLIGHT_CALLS])
{
	size_t n = 0;

	for (size_t i = 0; i < FLIGHT_CALLS; i++)
		if (calls[i].number)
			order[n++] = &calls[i];
	qsort(order, n, sizeof(*order), compare);
	return n;
}

const char *flight_result(int32_t result, char text[32])
{
	const char *name = vgpu_result_name(result);

	if (name)
		return name;
	snprintf(text, 32, "CUresult %" PRId32, result);
	return text;
}

/* Reads a varint. Return: false if it is not complete in the bytes. */
static bool take_varint(const uint8_t **bytesp, const uint8_t *end, uint64_t *valuep)
{
	const uint8_t *bytes = *bytesp;
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && bytes < end; shift += 7) {
		value |= (uint64_t)(*bytes & 0x7f) << shift;
		if (*bytes++ & 0x80)
			continue;
		*bytesp = bytes;
		*valuep = value;
		return true;
	}
	return false;
}

static bool take_fixed(
	const uint8_t **bytesp, const uint8_t *end, size_t size, uint64_t *valuep)
{
	if ((size_t)(end - *bytesp) < size)
		return false;
	*valuep = 0;
	memcpy(valuep, *bytesp, size);
	*bytesp += size;
	return true;
}

/* Reads one field. Return: false at the end of what was kept, or of what makes sense. */
static bool take_field(const uint8_t **bytesp, const uint8_t *end, struct field *field)
{
	uint64_t tag;

	if (!take_varint(bytesp, end, &tag) || tag >> 3 > UINT32_MAX)
		return false;
	*field = (struct field){ .number = (uint32_t)(tag >> 3), .wire = tag & 7 };
	switch (field->wire) {
	case WIRE_VARINT:
		return take_varint(bytesp, end, &field->value);
	case WIRE_FIXED64:
		return take_fixed(bytesp, end, 8, &field->value);
	case WIRE_FIXED32:
		return take_fixed(bytesp, end, 4, &field->value);
	case WIRE_BYTES:
		if (!take_varint(bytesp, end, &field->value))
			return false;
		field->bytes = *bytesp;
		field->n_bytes = (size_t)(end - *bytesp);
		if (field->n_bytes > field->value)
			field->n_bytes = field->value;
		*bytesp += field->n_bytes;
		return true;
	default:
		return false;
	}
}

/* Finds the name of a field in a list of vgpu_call_fields(). Return: its length. */
static size_t find_name(
	const char *list, uint32_t number, const char **namep, bool *is_stringp)
{
	while (*list) {
		char *end;
		const unsigned long found = strtoul(list, &end, 10);
		const char *name = end + (*end == ' ');

		*is_stringp = *name == '$';
		name += *is_stringp;
		list = name + strcspn(name, ",");
		if (found == number) {
			*namep = name;
			return (size_t)(list - name);
		}
		list += *list == ',';
	}
	return 0;
}

static void add_number(struct line *line, const struct flight *flight, uint64_t value)
{
	const uint8_t kind = vgpu_handle_kind(value);

	/* What takes more than 32 bits is an address or a handle. */
	add(line, value >> 32 ? "%#" PRIx64 : "%" PRIu64, value);
	if (kind != VGPU_HANDLE_FUNCTION && kind != VGPU_HANDLE_KERNEL)
		return;
	for (size_t i = 0; i < FLIGHT_NAMES; i++) {
		const struct flight_name *name = &flight->names[i];

		if (name->handle != value)
			continue;
		add(line, " \"");
		add_printable(line, (const uint8_t *)name->text, sizeof(name->text));
		add(line, "\"");
		return;
	}
}

static bool add_dims(struct line *line, const struct field *field)
{
	struct vgpu_launch_dims dims;

	if (field->n_bytes != field->value ||
		!vgpu_launch_dims_read(&dims, field->bytes, field->n_bytes))
		return false;
	add(line, "grid=%u,%u,%u block=%u,%u,%u shared=%u", dims.axis[0].grid,
		dims.axis[1].grid, dims.axis[2].grid, dims.axis[0].block,
		dims.axis[1].block, dims.axis[2].block, dims.shared_bytes);
	return true;
}

static void add_field(struct line *line, const struct flight *flight, const char *fields,
	const struct field *field)
{
	bool is_string = false;
	const char *name = "";
	const size_t size = find_name(fields, field->number, &name, &is_string);

	if (size == 4 && !strncmp(name, "dims", 4) && field->wire == WIRE_BYTES &&
		add_dims(line, field))
		return;
	if (size)
		add(line, "%.*s=", (int)size, name);
	else
		add(line, "%u=", field->number);
	if (field->wire != WIRE_BYTES) {
		add_number(line, flight, field->value);
	} else if (is_string) {
		add(line, "\"");
		add_printable(line, field->bytes,
			field->n_bytes < STRING_MAX ? field->n_bytes : STRING_MAX);
		add(line, "\"");
	} else {
		add(line, "{%" PRIu64 " bytes}", field->value);
	}
}

static void add_fields(
	struct line *line, const struct flight *flight, const struct flight_call *call)
{
	const char *fields = vgpu_call_fields(call->call);
	const bool is_cut = call->body_size > FLIGHT_BODY_SIZE;
	const uint8_t *bytes = call->body;
	const uint8_t *end = bytes + (is_cut ? FLIGHT_BODY_SIZE : call->body_size);
	const char *separator = "";
	struct field field;

	while (bytes < end && take_field(&bytes, end, &field)) {
		add(line, "%s", separator);
		add_field(line, flight, fields, &field);
		separator = ", ";
	}
	if (is_cut && bytes < end)
		add(line, "%s...", separator);
}

/* How long ago a call was; a dash if the clocks make no sense. */
static void add_age(struct line *line, const struct flight *flight,
	const struct flight_call *call, const struct flight_time *now)
{
	double ns;

	if (!flight->base_ns || flight->base_ns >= now->ns ||
		flight->base_ticks >= now->ticks || call->ticks > now->ticks ||
		call->ticks < flight->base_ticks) {
		add(line, "-");
		return;
	}
	ns = (double)(now->ticks - call->ticks) * (double)(now->ns - flight->base_ns) /
	     (double)(now->ticks - flight->base_ticks);
	add(line, "%.6f s ago", ns / 1e9);
}

void flight_format(const struct flight *flight, const struct flight_call *call,
	const struct flight_time *now, char text[FLIGHT_LINE_MAX])
{
	struct line line = { text, FLIGHT_LINE_MAX - END_MAX, 0 };
	const char *name = vgpu_call_name(call->call);
	char number[32];

	text[0] = '\0';
	add(&line, "#%" PRIu64 " ", call->number);
	add_age(&line, flight, call, now);
	if (*name == '?')
		add(&line, " lane %u: call %u(", call->lane, call->call);
	else
		add(&line, " lane %u: %s(", call->lane, name);
	add_fields(&line, flight, call);
	line.size = FLIGHT_LINE_MAX;
	if (call->result == FLIGHT_RUNNING)
		add(&line, ") has not returned");
	else
		add(&line, ") = %s", flight_result(call->result, number));
}
