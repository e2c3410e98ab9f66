/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder as text, also of a worker that lies
 */

#include <string.h>

#include "control/flight-text.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "vgpu/handle.h"
#include "vgpu/launch.h"

static struct flight flight;
static const struct flight_time now = { .ticks = 5000, .ns = 9000 };
static char line[FLIGHT_LINE_MAX];

static struct flight_call make(uint16_t id, const void *body, size_t size)
{
	struct flight_call call = { .number = 3, .call = id, .lane = 2 };

	memset(&flight, 0, sizeof(flight));
	flight.base_ticks = 1000;
	flight.base_ns = 1000;
	call.ticks = 4000;
	call.body_size = (uint32_t)size;
	memcpy(call.body, body, size < sizeof(call.body) ? size : sizeof(call.body));
	return call;
}

static void check_line(const struct flight_call *call, const char *expected)
{
	flight_format(&flight, call, &now, line);
	check_str(line, expected);
}

TEST(a_launch_has_its_kernel_and_its_grid)
{
	const uint64_t handle = vgpu_handle_make(VGPU_HANDLE_FUNCTION, 1, 1);
	const struct vgpu_launch_dims dims = {
		.shared_bytes = 16,
		.axis = { { 4, 256 }, { 1, 1 }, { 1, 1 } },
	};
	uint8_t body[64] = { 2 << 3 }, *out = body + 1;
	struct flight_call call;

	for (uint64_t rest = handle; rest; rest >>= 7)
		*out++ = (uint8_t)((rest & 0x7f) | (rest >> 7 ? 0x80 : 0));
	*out++ = (uint8_t)((100 << 3 | 2) & 0x7f) | 0x80;
	*out++ = 100 << 3 >> 7;
	*out++ = 16;
	memcpy(out, &dims, 16);
	call = make(VGPU_CALL_cuLaunchKernel, body, (size_t)(out + 16 - body));
	flight.names[77].handle = handle;
	strcpy(flight.names[77].text, "vector_add");
	check_line(&call,
		"#3 0.000002 s ago lane 2: cuLaunchKernel(f=0x30000000100001 "
		"\"vector_add\", grid=4,1,1 block=256,1,1 shared=16) = CUDA_SUCCESS");
}

TEST(strings_and_names_are_made_printable)
{
	static const char body[] = "\x18\x05\x22\x04"
				   "a\x1b\nb";
	struct flight_call call =
		make(VGPU_CALL_cuModuleGetFunction, body, sizeof(body) - 1);

	call.result = 500;
	check_line(&call, "#3 0.000002 s ago lane 2: cuModuleGetFunction(hmod=5, "
			  "name=\"a??b\") = CUDA_ERROR_NOT_FOUND");
}

TEST(an_unterminated_name_ends_with_its_field)
{
	const uint64_t handle = vgpu_handle_make(VGPU_HANDLE_KERNEL, 1, 1);
	uint8_t body[16] = { 2 << 3 | 1 };
	struct flight_call call;

	memcpy(body + 1, &handle, sizeof(handle));
	call = make(VGPU_CALL_cuLaunchKernel, body, 9);
	flight.names[0].handle = handle;
	memset(flight.names[0].text, 'x', sizeof(flight.names[0].text));
	flight_format(&flight, &call, &now, line);
	check_eq(strspn(strchr(line, '"') + 1, "x"), sizeof(flight.names[0].text));
}

TEST(what_a_worker_cannot_have_written_is_shown_as_it_is)
{
	struct flight_call call = make(65535, "\xff\xff\xff", 3);

	call.result = -7;
	flight.base_ticks = 9999;
	check_line(&call, "#3 - lane 2: call 65535() = CUresult -7");
	call = make(0, "", 0);
	call.ticks = UINT64_MAX;
	call.result = FLIGHT_RUNNING;
	check_line(&call, "#3 - lane 2: padding() has not returned");
	/* A length beyond all that was kept, and more bytes than are there. */
	call = make(VGPU_CALL_cuModuleGetFunction,
		"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01xyz", 14);
	call.body_size = UINT32_MAX;
	flight_format(&flight, &call, &now, line);
	check(strstr(line, "name=\"xyz\""));
}

TEST(any_bytes_give_a_line)
{
	uint32_t state = 1;

	for (int i = 0; i < 200000; i++) {
		struct flight_call call;
		uint8_t bytes[sizeof(call)];

		for (size_t k = 0; k < sizeof(bytes); k++) {
			state = state * 1664525 + 1013904223;
			bytes[k] = state >> 24;
		}
		memcpy(&call, bytes, sizeof(call));
		if (i % 2)
			call.call %= _VGPU_CALL_N;
		flight_format(&flight, &call, &now, line);
		check(strlen(line) < sizeof(line));
		for (const char *c = line; *c; c++)
			check(*c >= ' ' && *c <= '~');
	}
}

TEST(entries_come_in_the_order_of_their_numbers)
{
	const struct flight_call *order[FLIGHT_CALLS];

	memset(&flight, 0, sizeof(flight));
	check_eq(flight_order(flight.calls, order), 0);
	flight.calls[9].number = 2;
	flight.calls[3].number = UINT64_MAX;
	flight.calls[200].number = 1;
	check_eq(flight_order(flight.calls, order), 3);
	check(order[0] == &flight.calls[200] && order[1] == &flight.calls[9] &&
		order[2] == &flight.calls[3]);
}
