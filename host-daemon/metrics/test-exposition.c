/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics as text: values, labels, and both formats
 */

#include <stdlib.h>
#include <string.h>

#include "metrics/exposition.h"
#include "test.h"

static VgpuCtl__Vm vm;
static VgpuCtl__Totals totals;
static VgpuCtl__Counters counters;
static VgpuCtl__Ending ending, *endings[] = { &ending };
static VgpuCtl__Session session, *sessions[] = { &session };
static VgpuCtl__CallTimes launch, other, *calls[] = { &launch, &other };
static uint64_t bounds[] = { 1023, 4095, 4607, UINT64_MAX };
static uint64_t counts[] = { 1, 2, 4, 8 };
static VgpuCtl__Share share;
static VgpuCtl__Queue queue;
static VgpuCtl__Pending pending;
static struct snapshot_vm machine;
static struct snapshot snapshot;

static void begin(void)
{
	vgpu_ctl__vm__init(&vm);
	vgpu_ctl__share__init(&share);
	vgpu_ctl__queue__init(&queue);
	vgpu_ctl__pending__init(&pending);
	vgpu_ctl__totals__init(&totals);
	vgpu_ctl__counters__init(&counters);
	vgpu_ctl__ending__init(&ending);
	vgpu_ctl__session__init(&session);
	vgpu_ctl__call_times__init(&launch);
	vm.name = (char *)"one";
	vm.totals = &totals;
	vm.share = &share;
	share.pending = &pending;
	pending.launches = 77;
	vm.queue = &queue;
	queue.bytes = 4096;
	vm.weight = 400;
	share.used_ns = 12000000034;
	vm.sessions = 2;
	vm.device_memory = 1ull << 40;
	totals.counters = &counters;
	totals.ended = endings;
	totals.n_ended = 1;
	ending.reason = (char *)"protocol";
	ending.n = 3;
	counters.launches = UINT64_MAX;
	launch.name = (char *)"cuLaunchKernel";
	launch.n_bounds = launch.n_counts = 4;
	launch.bounds = bounds;
	launch.counts = counts;
	launch.total_ns = 1234567890123;
	other = launch;
	other.name = (char *)"cuFuture_v3";
	session.name = (char *)"a\"b\\c";
	session.number = 7;
	session.pid = 1;
	machine = (struct snapshot_vm){
		.vm = &vm,
		.times = { .calls = calls, .n_calls = 2 },
		.sessions = sessions,
		.n_sessions = 1,
	};
	snapshot = (struct snapshot){
		.is_up = true,
		.release = "9.9",
		.vms = &machine,
		.n_vms = 1,
	};
}

static char *write_text(enum exposition_format format, bool with_processes)
{
	size_t size;
	char *text = exposition_write(&snapshot, format, with_processes, &size);

	check(text);
	check_eq(strlen(text), size);
	return text;
}

static void check_line(enum exposition_format format, const char *line)
{
	char *text = write_text(format, true);

	if (!strstr(text, line))
		test_fail(__FILE__, __LINE__, "no '%s' in\n%s", line, text);
	free(text);
}

TEST(numbers_are_exact)
{
	begin();
	check_line(EXPOSITION_PROMETHEUS, "\nvgpu_vm_sessions{vm=\"one\"} 2\n");
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_vm_device_memory_bytes{vm=\"one\"} 1099511627776\n");
	check_line(EXPOSITION_PROMETHEUS, "\nvgpu_vm_weight{vm=\"one\"} 400\n");
	check_line(EXPOSITION_PROMETHEUS, "\nvgpu_vm_queued_bytes{vm=\"one\"} 4096\n");
	check_line(EXPOSITION_PROMETHEUS, "\nvgpu_vm_queued_launches{vm=\"one\"} 77\n");
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_vm_device_seconds_total{vm=\"one\"} 12.000000034\n");
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_vm_held_seconds_total{vm=\"one\"} 0.000000000\n");
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_vm_launches_total{vm=\"one\"} 18446744073709551615\n");
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_vm_sessions_ended_total{vm=\"one\",reason=\"protocol\"} 3\n");
}

TEST(buckets_have_all_calls_up_to_their_bound)
{
	static const char name[] =
		"\nvgpu_vm_call_duration_seconds_%s{vm=\"one\",call=\"%s\"%s} %s\n";
	static const struct {
		const char *ending, *bound, *value;
	} lines[] = {
		{ "bucket", ",le=\"0.000001024\"", "1" },
		{ "bucket", ",le=\"0.000004096\"", "3" },
		{ "bucket", ",le=\"0.000016384\"", "7" },
		{ "bucket", ",le=\"1.073741824\"", "7" },
		{ "bucket", ",le=\"+Inf\"", "15" },
		{ "sum", "", "1234.567890123" },
		{ "count", "", "15" },
	};

	begin();
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char line[256];

		snprintf(line, sizeof(line), name, lines[i].ending, "cuLaunchKernel",
			lines[i].bound, lines[i].value);
		check_line(EXPOSITION_PROMETHEUS, line);
		snprintf(line, sizeof(line), name, lines[i].ending, "other",
			lines[i].bound, lines[i].value);
		check_line(EXPOSITION_PROMETHEUS, line);
	}
}

TEST(names_of_guests_are_escaped)
{
	begin();
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_process_device_memory_bytes{vm=\"one\",session=\"7\",pid=\"1\","
		"name=\"a\\\"b\\\\c\"} 0\n");
}

TEST(processes_are_left_out_unless_wanted)
{
	char *text;

	begin();
	text = write_text(EXPOSITION_PROMETHEUS, false);
	check(!strstr(text, "vgpu_process"));
	free(text);
}

TEST(limits_that_do_not_exist_have_no_sample)
{
	char *text;

	begin();
	text = write_text(EXPOSITION_PROMETHEUS, false);
	check(!strstr(text, "\nvgpu_vm_device_memory_limit_bytes{"));
	free(text);
	vm.device_memory_limit = 5;
	check_line(EXPOSITION_PROMETHEUS,
		"\nvgpu_vm_device_memory_limit_bytes{vm=\"one\"} 5\n");
}

TEST(a_vgpud_that_is_down_or_older_has_no_samples)
{
	begin();
	vm.totals = NULL;
	check_line(EXPOSITION_PROMETHEUS, "\nvgpu_vm_sessions{vm=\"one\"} 2\n");
	snapshot = (struct snapshot){ .is_up = false };
	check_line(EXPOSITION_PROMETHEUS, "\nvgpu_up 0\n");
}

TEST(openmetrics_has_the_ending_of_counters_at_samples_only)
{
	begin();
	check_line(EXPOSITION_OPENMETRICS, "\n# TYPE vgpu_vm_launches counter\n");
	check_line(EXPOSITION_OPENMETRICS, "\nvgpu_vm_launches_total{vm=\"one\"} ");
	check_line(EXPOSITION_OPENMETRICS, "\n# EOF\n");
	check_line(EXPOSITION_PROMETHEUS, "\n# TYPE vgpu_vm_launches_total counter\n");
}
