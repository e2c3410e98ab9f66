/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of bytes, from and to shared memory
 */

#include "exec-body.h"

/*
 * Places in one order of all elements, by strides: of an element of the row whose address
 * a lane has, and of one that is in a byte of a lane's registers.
 */
static uint32_t transposed_place(uint32_t lane, uint32_t column)
{
	static const uint32_t strides[4] = { 16, 128, 32, 256 };

	return lane % 2 * strides[0] + lane / 2 % 2 * strides[1] +
	       lane / 4 % 4 * strides[2] + lane / 16 * strides[3] + column;
}

static uint32_t transposed_element(uint32_t lane, uint32_t byte)
{
	static const uint32_t strides[3] = { 16, 8, 128 };

	return lane % 4 * 32 + lane / 4 + byte % 2 * strides[0] +
	       byte / 2 % 2 * strides[1] + byte / 4 * strides[2];
}

static uint8_t element_of(const uint8_t *row, uint32_t column, uint32_t bits)
{
	uint32_t value = 0;

	for (uint32_t i = 0; i < bits; i++) {
		uint32_t at = column * bits + i;

		value |= (uint32_t)(row[at / 8] >> at % 8 & 1) << i;
	}
	return (uint8_t)value;
}

#define BYTES_BODY                                                                       \
	"mov.u32 %%r1, s; mad.lo.u32 %%r2, %%r0, 16, %%r1; mul.wide.u32 %%d3, %%r0, "    \
	"16;\n"                                                                          \
	"add.u64 %%d3, %%d3, %%d0; ld.global.v4.u32 {%%r3, %%r4, %%r5, %%r6}, "          \
	"[%%d3];\n"                                                                      \
	"st.shared.v4.u32 [%%r2], {%%r3, %%r4, %%r5, %%r6}; bar.warp.sync "              \
	"0xffffffff;\n"                                                                  \
	"%s\n"                                                                           \
	"bar.warp.sync 0xffffffff;\n"

TEST(bytes_are_loaded_and_transposed)
{
	static const struct {
		const char *load;
		uint32_t bits, n_registers;
		bool is_transposed;
	} rows[] = {
		{ "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r7, %r8}, [%r2];", 8,
			2, true },
		{ "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r7, %r8, %r9, "
		  "%r10}, "
		  "[%r2];",
			8, 4, true },
		{ "ldmatrix.sync.aligned.m16n16.x1.trans.shared::cta.b8x16.b6x16_p32 "
		  "{%r7, "
		  "%r8}, [%r2];",
			6, 2, true },
		{ "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64 {%r7, "
		  "%r8, "
		  "%r9, %r10}, [%r2];",
			4, 4, true },
		{ "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r7}, [%r2];",
			6, 1, false },
		{ "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%r7, %r8}, "
		  "[%r2];",
			4, 2, false },
		{ "cvt.u64.u32 %d4, %r2; cvta.shared.u64 %d4, %d4;\n"
		  "ldmatrix.sync.aligned.m8n16.x4.b8x16.b6x16_p32 {%r7, %r8, %r9, %r10}, "
		  "[%d4];",
			6, 4, false },
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		char body[2048];
		CLEAN_RIG rig = NULL;
		struct buffers b;
		uint8_t *bytes;

		snprintf(body, sizeof(body),
			BYTES_BODY "st.global.v4.u32 [%%d1], {%%r7, %%r8, %%r9, %%r10};",
			rows[k].load);
		rig = rig_of(".shared .align 16 .b8 s[512];", body);
		b = buffers_of(rig, 32);
		bytes = b.memory;
		for (uint32_t i = 0; i < 512; i++)
			bytes[i] = (uint8_t)(i * 167 + i / 7);
		run_well(rig, &b, 32);
		for (uint32_t lane = 0; lane < 32; lane++)
			for (uint32_t byte = 0; byte < 4 * rows[k].n_registers; byte++) {
				uint32_t row = byte / 4 * 8 + lane / 4;
				uint32_t column = lane % 4 * 4 + byte % 4, got;
				uint8_t want;

				for (uint32_t i = 0; rows[k].is_transposed && i < 512;
					i++)
					if (transposed_place(i / 16, i % 16) ==
						transposed_element(lane, byte)) {
						row = i / 16;
						column = i % 16;
					}
				want = element_of(bytes + 16 * row, column, rows[k].bits);
				got = b.out[lane][byte / 4] >> 8 * (byte % 4) & 0xff;
				if (got != want)
					test_fail(__FILE__, __LINE__,
						"%s: lane %u, byte %u: %02x, not %02x",
						rows[k].load, lane, byte, got, want);
			}
	}
}

/* The sums of a product: lanes have two elements of a row, and two of the row 8 below. */
TEST(bytes_are_stored_and_transposed)
{
	static const char *const stores[] = {
		"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r2], {%r3};",
		"stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r2], {%r3, %r4};",
		"stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%r2], {%r3, %r4, %r5, "
		"%r6};",
	};

	for (uint32_t k = 0; k < 3; k++) {
		uint8_t want[512], *bytes;
		char body[2048];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			BYTES_BODY "ld.shared.v4.u32 {%%r7, %%r8, %%r9, %%r10}, [%%r2];\n"
				   "st.global.v4.u32 [%%d1], {%%r7, %%r8, %%r9, %%r10};",
			stores[k]);
		rig = rig_of(".shared .align 16 .b8 s[512];", body);
		b = buffers_of(rig, 32);
		bytes = b.memory;
		for (uint32_t i = 0; i < 512; i++)
			bytes[i] = (uint8_t)(i * 167 + i / 7);
		memcpy(want, bytes, sizeof(want));
		for (uint32_t lane = 0; lane < 32; lane++)
			for (uint32_t byte = 0; byte < 4u << k; byte++) {
				uint32_t m = lane / 4 + byte % 4 / 2 * 8;
				uint32_t n = byte / 4 * 8 + lane % 4 * 2 + byte % 2;

				want[16 * n + m] = bytes[16 * lane + byte];
			}
		run_well(rig, &b, 32);
		for (uint32_t lane = 0; lane < 32; lane++)
			check(!memcmp(b.out[lane], want + 16 * lane, 16));
	}
}
