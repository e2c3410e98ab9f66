/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation a row, against a reference in C
 */

#include <stdio.h>
#include <stdlib.h>

#include "exec-harness.h"
#include "exec-rows.h"
#include "test.h"

#define N 1280u
#define BLOCK 128u
#define KEPT UINT64_C(0x5a5a1234a5a5fedc)

static const unsigned int sizes[] = { 2, 2, 4, 4, 8, 8, 4, 8 };

static u64 state = 88172645463325252;

static u64 next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static u64 bits_f32(f32 x)
{
	u32 u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static u64 bits_f64(f64 x)
{
	u64 u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

static u64 edge_integer(u64 r)
{
	static const u64 edges[] = { 0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65,
		127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX,
		UINT64_MAX - 1, 0x8001, 0x80000001, 0xff80, 0x1f1f, 0x101 };

	return edges[r % (sizeof(edges) / sizeof(edges[0]))];
}

static f64 edge_real(u64 r)
{
	static const f64 edges[] = { 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0,
		1e-40, -1e-40, 1.17549435e-38, 1.1754942e-38, 3.4028235e38, -3.4028235e38,
		2147483648.0, -2147483648.0, 2147483647.0, -2147483649.0, 4294967296.0,
		4294967295.0, 9.2233720368547758e18, -9.2233720368547758e18,
		1.8446744073709552e19, 0.1, 127.5, 128.5, -128.5, 65535.5, 65504.0,
		65520.0, 6e-8, 255.5, 16777217.0, 1e300, 1e-310, INFINITY, -INFINITY,
		NAN };

	return edges[r % (sizeof(edges) / sizeof(edges[0]))];
}

static u64 input(enum row_type type, u64 i)
{
	u64 r = next_random(), how = next_random() % 8;
	f64 x = (f64)(s64)next_random() * 0x1p-63;

	if (type == ROW_f32 || type == ROW_f64) {
		if (how < 3)
			x = edge_real(i < 40 ? i : r);
		else if (how < 5)
			x = ldexp(x, (int)(r % 80) - 40);
		else if (how < 7)
			x *= 10;
		else
			return type == ROW_f32 ? (u32)r : r;
		return type == ROW_f32 ? bits_f32((f32)x) : bits_f64(x);
	}
	if (how < 3)
		return edge_integer(r);
	return how < 5 ? r % 100 : r;
}

static const char *class_of(enum row_type type)
{
	return sizes[type] == 2 ? "b16" : sizes[type] == 4 ? "b32" : "b64";
}

/* The kernel reads lane i of each array; the guard is true where i % 3 is 1. */
static void write_kernel(char *text, size_t size, const struct row *row, bool guarded)
{
	char body[512] = "", word[512], *at, *end;

	snprintf(word, sizeof(word), "%s", row->text);
	for (at = word; (end = strchr(at, ';')); at = end + 1) {
		*end = 0;
		strcat(body, guarded ? "@%g " : "");
		strcat(body, at);
		strcat(body, ";\n");
	}
	snprintf(text, size,
		".visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u64 p2,\n"
		".param .u64 p3) {\n"
		".reg .pred %%p, %%q, %%g; .reg .%s %%a; .reg .%s %%b; .reg .%s %%c;\n"
		".reg .v2 .u32 %%pair; .reg .v4 .u16 %%four;\n"
		".reg .%s %%d; .reg .b32 %%r<9>; .reg .b64 %%rd<9>; .reg .b16 %%h<4>;\n"
		"ld.param.u64 %%rd0, [p0]; ld.param.u64 %%rd1, [p1];\n"
		"ld.param.u64 %%rd2, [p2]; ld.param.u64 %%rd3, [p3];\n"
		"mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%ntid.x; mov.u32 %%r2, "
		"%%tid.x;\n"
		"mad.lo.u32 %%r0, %%r0, %%r1, %%r2; mul.wide.u32 %%rd4, %%r0, 8;\n"
		"add.u64 %%rd0, %%rd0, %%rd4; add.u64 %%rd1, %%rd1, %%rd4;\n"
		"add.u64 %%rd2, %%rd2, %%rd4; add.u64 %%rd3, %%rd3, %%rd4;\n"
		"rem.u32 %%r1, %%r0, 3; setp.eq.u32 %%g, %%r1, 1;\n"
		"ld.global.%s %%a, [%%rd1]; ld.global.%s %%b, [%%rd2];\n"
		"ld.global.%s %%c, [%%rd3]; ld.global.%s %%d, [%%rd0];\n"
		"%s\n"
		"st.global.%s [%%rd0], %%d; ret; }\n",
		guarded ? "guarded" : "full", class_of(row->a), class_of(row->b),
		class_of(row->c), class_of(row->d), class_of(row->a), class_of(row->b),
		class_of(row->c), class_of(row->d), body, class_of(row->d));
}

static bool is_nan(enum row_type type, u64 bits)
{
	f32 x;
	f64 y;

	memcpy(&x, &bits, sizeof(x));
	memcpy(&y, &bits, sizeof(y));
	return type == ROW_f32 ? isnan(x) : type == ROW_f64 && isnan(y);
}

static bool same(const struct row *row, u64 got, u64 want)
{
	u64 mask = UINT64_MAX >> (64 - 8 * sizes[row->d]);
	f32 x, y;

	if (((got ^ want) & mask) == 0)
		return true;
	if (is_nan(row->d, got) && is_nan(row->d, want))
		return true;
	if (row->tolerance == 0 || row->d != ROW_f32)
		return false;
	memcpy(&x, &got, sizeof(x));
	memcpy(&y, &want, sizeof(y));
	return fabs((f64)x - y) <= row->tolerance * (fabs((f64)y) + 0x1p-126);
}

static void run_row(const struct row *row)
{
	static char text[8192];
	__attribute__((__cleanup__(rig_freep))) struct rig *rig = NULL;
	u64 *arrays[4], want;
	size_t n;

	n = (size_t)snprintf(
		text, sizeof(text), ".version 8.8\n.target sm_120\n.address_size 64\n");
	write_kernel(text + n, sizeof(text) - n, row, false);
	n = strlen(text);
	write_kernel(text + n, sizeof(text) - n, row, true);
	rig = rig_new(text);
	for (int i = 0; i < 4; i++)
		arrays[i] = rig_alloc(rig, N * 8);
	for (unsigned int guarded = 0; guarded < 2; guarded++) {
		for (unsigned int i = 0; i < N; i++) {
			arrays[0][i] = KEPT;
			arrays[1][i] = input(row->a, i);
			arrays[2][i] = input(row->b, i / 3);
			arrays[3][i] = input(row->c, i / 5);
		}
		rig_launch(rig, guarded ? "guarded" : "full", N / BLOCK, BLOCK, arrays,
			sizeof(arrays));
		for (unsigned int i = 0; i < N; i++) {
			want = guarded && i % 3 != 1
				       ? KEPT
				       : row->reference(arrays[1][i], arrays[2][i],
						 arrays[3][i]);
			if (!same(row, arrays[0][i], want))
				test_fail(__FILE__, __LINE__,
					"%s%s: a %llx b %llx c %llx gives %llx, not %llx",
					row->name, guarded ? ", guarded" : "",
					(long long)arrays[1][i], (long long)arrays[2][i],
					(long long)arrays[3][i], (long long)arrays[0][i],
					(long long)want);
		}
	}
}

void rows_run(const struct row *rows, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		run_row(&rows[i]);
}
