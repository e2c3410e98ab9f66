/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device: statements of the grammar for bulk copies, stores to a surface, and calls of
 * the device runtime
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar-device.h"

#define CHOICES 4u

/* The mbarrier is in the last 8 bytes of the thread's shared slot; copies end before. */
#define BARRIER 56u

static unsigned int place_of(const struct grammar_statement *s)
{
	return ((unsigned int)s->value & 48) % 48;
}

static unsigned int bytes_of(const struct grammar_statement *s)
{
	return s->size == 16 && place_of(s) < 32 ? 32 : 16;
}

static bool is_store(const struct grammar_statement *s)
{
	return s->operation & 1;
}

static int write_bulk(const struct grammar_statement *s,
	const struct grammar_places *places, char *text)
{
	const unsigned int at = place_of(s), global = s->is_outside ? 0 : at;
	char address[32];

	if (s->is_outside)
		snprintf(address, sizeof(address), "%llu",
			(unsigned long long)places->outside[s->value % 8]);
	else
		snprintf(address, sizeof(address), "%%d8");
	if (is_store(s))
		return snprintf(text, GROUP_TEXT,
			"mov.u64 %%d14, %s;\n"
			"cp.async.bulk.global.shared::cta.bulk_group [%%d14+%u], "
			"[%%d10+%u], %u;\ncp.async.bulk.commit_group;\n"
			"cp.async.bulk.wait_group 0;\n",
			address, global, at, bytes_of(s));
	return snprintf(text, GROUP_TEXT,
		"mov.u64 %%d14, %s;\nmbarrier.init.shared.b64 [%%d10+%u], 1;\n"
		"mbarrier.arrive.expect_tx.shared.b64 _, [%%d10+%u], %u;\n"
		"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
		"[%%d10+%u], [%%d14+%u], %u, [%%d10+%u];\n"
		"mbarrier.test_wait.parity.shared.b64 %%p1, [%%d10+%u], 0;\n"
		"@!%%p1 trap;\nmbarrier.inval.shared.b64 [%%d10+%u];\n",
		address, BARRIER, BARRIER, bytes_of(s), at, global, bytes_of(s), BARRIER,
		BARRIER, BARRIER);
}

/* Coordinates in bytes: of the thread's own texel, or of none. */
static const char *const surfaces[CHOICES] = {
	"sust.b.1d.b32.trap [%d14, {%r3}], %r2;\n",
	"or.b32 %r3, %r3, 1024;\nsust.b.1d.b32.zero [%d14, {%r3}], %r2;\n",
	"suld.b.1d.b32.trap %r2, [%d14, {%r3}];\n",
	"or.b32 %r3, %r3, 1024;\nsuld.b.1d.b32.zero %r2, [%d14, {%r3}];\n",
};

static int write_surface(const struct grammar_statement *s,
	const struct grammar_places *places, char *text)
{
	return snprintf(text, GROUP_TEXT,
		"cvt.u32.u64 %%r2, %%d%u;\nmov.u32 %%r3, %%tid.x;\nshl.b32 %%r3, %%r3, "
		"2;\nmov.u64 %%d14, %llu;\n%s%scvt.u64.u32 %%d%u, %%r2;\n",
		s->a, (unsigned long long)places->own_texels,
		s->is_outside ? "or.b32 %r3, %r3, 2048;\n" : "",
		surfaces[s->is_outside ? s->operation & 2 : s->operation % CHOICES],
		s->d);
}

#define ONE(_name)                                                                       \
	".param .align 4 .b8 " _name "[12]; st.param.b32 [" _name "], 1; "               \
	"st.param.b32 [" _name "+4], 1; st.param.b32 [" _name "+8], 1;\n"

/* A parameter in the buffer, then the launch. */
#define LAUNCH                                                                           \
	"mov.u64 %%d14, k;\n{ .param .b64 a; st.param.b64 [a], %%d14;\n" ONE("b")        \
		ONE("c") ".param .b32 d; st.param.b32 [d], 0; .param .b64 q;\n"          \
			 "call (q), __cudaCDP2GetParameterBufferV2, (a, b, c, d);\n"     \
			 "ld.param.b64 %%d14, [q]; }\nst.global.u64 [%%d14], %%d%u;\n"   \
			 "call (%%r2), __cudaCDP2LaunchDeviceV2, (%%d14, %%d%u);\n"      \
			 "cvt.u64.u32 %%d%u, %%r2;\n"

static int write_launch(const struct grammar_statement *s, char *text)
{
	return snprintf(text, GROUP_TEXT, LAUNCH, s->a, s->b, s->d);
}

static int write_stream(const struct grammar_statement *s,
	const struct grammar_places *places, char *text)
{
	char address[48];

	if (s->is_outside)
		snprintf(address, sizeof(address), "mov.u64 %%d14, %llu",
			(unsigned long long)places->outside[s->value % 8]);
	else
		snprintf(
			address, sizeof(address), "add.u64 %%d14, %%d8, %u", place_of(s));
	return snprintf(text, GROUP_TEXT,
		"%s;\nmov.u32 %%r3, %u;\ncall (%%r2), "
		"__cudaCDP2StreamCreateWithFlags, (%%d14, %%r3);\n"
		"cvt.u64.u32 %%d%u, %%r2;\n",
		address, s->is_outside ? 0 : s->b % 3u, s->d);
}

static int write_service(const struct grammar_statement *s,
	const struct grammar_places *places, char *text)
{
	if (s->is_outside || s->operation % CHOICES < 2)
		return write_stream(s, places, text);
	if (s->operation % CHOICES == 2)
		return write_launch(s, text);
	return snprintf(text, GROUP_TEXT,
		"call (%%r2), __cudaCDP2GetLastError, ();\ncvt.u64.u32 %%d%u, %%r2;\n",
		s->d);
}

size_t device_write(const struct grammar_statement *s,
	const struct grammar_places *places, char text[GROUP_TEXT])
{
	int n = s->kind == GRAMMAR_BULK	     ? write_bulk(s, places, text)
		: s->kind == GRAMMAR_SURFACE ? write_surface(s, places, text)
					     : write_service(s, places, text);

	if (n < 0 || (unsigned int)n >= GROUP_TEXT)
		abort();
	return n;
}

/*
 * By the manual
 */

static void run_bulk(const struct grammar_statement *s, struct grammar_thread *thread)
{
	uint8_t *global = thread->slots[GRAMMAR_GLOBAL] + place_of(s);
	uint8_t *shared = thread->slots[GRAMMAR_IN_SHARED] + place_of(s);

	if (is_store(s)) {
		memcpy(global, shared, bytes_of(s));
		return;
	}
	memcpy(shared, global, bytes_of(s));
	/* A barrier is in memory only until it is invalid; PTX leaves its bytes open. */
	memset(thread->slots[GRAMMAR_IN_SHARED] + BARRIER, 0, sizeof(uint64_t));
}

static void run_surface(const struct grammar_statement *s, struct grammar_thread *thread)
{
	const uint32_t a = (uint32_t)thread->registers[s->a];

	switch (s->operation % CHOICES) {
	case 0:
		thread->texel = a;
		/* fallthrough */
	case 1:
		thread->registers[s->d] = a;
		return;
	case 2:
		thread->registers[s->d] = thread->texel;
		return;
	default:
		thread->registers[s->d] = 0;
	}
}

static void run_launch(const struct grammar_statement *s, struct grammar_thread *thread)
{
	const uint64_t stream = thread->registers[s->b];
	uint64_t word = thread->registers[s->a];
	const int result = device_result(stream);

	if (!result)
		word = device_launched(word, stream);
	memcpy(thread->slots[GRAMMAR_GLOBAL], &word, sizeof(word));
	thread->registers[s->d] = result;
	if (result)
		thread->last_error = result;
}

static void run_service(
	const struct grammar_statement *s, struct grammar_thread *thread, uint32_t number)
{
	const uint64_t stream = device_stream(number);
	const bool is_valid = s->b % 3u <= 1;

	switch (s->operation % CHOICES) {
	case 2:
		run_launch(s, thread);
		return;
	case 3:
		thread->registers[s->d] = thread->last_error;
		thread->last_error = SERVICE_OK;
		return;
	}
	if (is_valid)
		memcpy(thread->slots[GRAMMAR_GLOBAL] + place_of(s), &stream,
			sizeof(stream));
	else
		thread->last_error = SERVICE_INVALID_VALUE;
	thread->registers[s->d] = is_valid ? SERVICE_OK : SERVICE_INVALID_VALUE;
}

void device_run(const struct grammar_statement *s, struct grammar_thread *thread)
{
	if (s->is_outside) {
		thread->faults = true;
		return;
	}
	switch (s->kind) {
	case GRAMMAR_BULK:
		run_bulk(s, thread);
		return;
	case GRAMMAR_SURFACE:
		run_surface(s, thread);
		return;
	default:
		run_service(s, thread, thread->number);
	}
}
