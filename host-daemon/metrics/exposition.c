/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposition: a snapshot as text, in the formats of Prometheus and OpenMetrics
 *
 * The number of series is bounded: those of a machine are its metrics below, with reasons
 * and directions of fixed lists, and histograms of the calls in `named` and one of all
 * others. Guests can add none, except processes, which are left out unless wanted.
 */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/exposition.h"

enum type {
	GAUGE,
	COUNTER,
	HISTOGRAM,
};

/* Where the value of a metric is. */
enum source {
	OF_VM_32, /* a member of VgpuCtl__Vm */
	OF_VM_64,
	OF_VM_LIMIT, /* the same, without a sample if it is 0 */
	OF_QUEUE,    /* a member of VgpuCtl__Queue */
	OF_SHARE,    /* a member of VgpuCtl__Share, in ns, served in seconds */
	OF_PENDING,  /* a member of its VgpuCtl__Pending */
	OF_TOTALS,   /* a member of VgpuCtl__Totals */
	OF_COUNTERS, /* of its counters */
};

/* A sample of each machine. Several lines of one name, with different labels, follow each
 * other, and the first has the text. */
struct metric {
	const char *name, *help;
	enum type type;
	enum source source;
	size_t offset;
	const char *label; /* beside vm, or NULL */
};

#define VM(_field) offsetof(VgpuCtl__Vm, _field)
#define QUEUE(_field) offsetof(VgpuCtl__Queue, _field)
#define SHARE(_field) offsetof(VgpuCtl__Share, _field)
#define PENDING(_field) offsetof(VgpuCtl__Pending, _field)
#define TOTALS(_field) offsetof(VgpuCtl__Totals, _field)
#define COUNTERS(_field) offsetof(VgpuCtl__Counters, _field)

/* clang-format off */
static const struct metric metrics[] = {
	{ "vgpu_vm_connections", "QEMUs, or processes of the host, that are connected.",
	  GAUGE, OF_VM_32, VM(connections) },
	{ "vgpu_vm_sessions", "Guest processes that use the device.",
	  GAUGE, OF_VM_32, VM(sessions) },
	{ "vgpu_vm_sessions_limit", "Limit of these: max-processes.",
	  GAUGE, OF_VM_32, VM(max_processes) },
	{ "vgpu_vm_device_memory_bytes", "Device memory in use.",
	  GAUGE, OF_VM_64, VM(device_memory) },
	{ "vgpu_vm_device_memory_limit_bytes", "Limit of it: device-memory.",
	  GAUGE, OF_VM_LIMIT, VM(device_memory_limit) },
	{ "vgpu_vm_evicted_bytes", "Device memory in use that has made room for others.",
	  GAUGE, OF_VM_64, VM(device_memory_evicted) },
	{ "vgpu_vm_evictions_total", "Processes whose memory made room.",
	  COUNTER, OF_VM_64, VM(evictions) },
	{ "vgpu_vm_moved_bytes_total", "Device memory that made room, or came back.",
	  COUNTER, OF_VM_64, VM(evicted_bytes), "direction=\"out\"" },
	{ "vgpu_vm_moved_bytes_total", NULL,
	  COUNTER, OF_VM_64, VM(returned_bytes), "direction=\"back\"" },
	{ "vgpu_vm_weight", "Weight of its share of the device's time: weight.",
	  GAUGE, OF_VM_32, VM(weight) },
	{ "vgpu_vm_device_seconds_total", "Device time that was used.",
	  COUNTER, OF_SHARE, SHARE(used_ns) },
	{ "vgpu_vm_held_seconds_total", "Time for which work left the device to others.",
	  COUNTER, OF_SHARE, SHARE(held_ns) },
	{ "vgpu_vm_queued_bytes", "Calls that wait in the fullest ring of a process.",
	  GAUGE, OF_QUEUE, QUEUE(bytes) },
	{ "vgpu_vm_queued_launches", "Launches that the device has not begun.",
	  GAUGE, OF_PENDING, PENDING(launches) },
	{ "vgpu_vm_host_memory_bytes", "Memory of the host in use by workers.",
	  GAUGE, OF_VM_64, VM(host_memory) },
	{ "vgpu_vm_host_memory_limit_bytes", "Limit of it: host-memory.",
	  GAUGE, OF_VM_LIMIT, VM(host_memory_limit) },
	{ "vgpu_vm_sessions_opened_total", "Sessions that were opened.",
	  COUNTER, OF_TOTALS, TOTALS(sessions) },
	{ "vgpu_vm_context_faults_total", "Faults of the device that ended a context.",
	  COUNTER, OF_TOTALS, TOTALS(faults) },
	{ "vgpu_vm_calls_total", "Calls that reached a worker.",
	  COUNTER, OF_COUNTERS, COUNTERS(calls) },
	{ "vgpu_vm_launches_total", "Kernel launches.",
	  COUNTER, OF_COUNTERS, COUNTERS(launches) },
	{ "vgpu_vm_copies_total", "Copies; large ones count once for each piece.",
	  COUNTER, OF_COUNTERS, COUNTERS(copies_to_device), "direction=\"to_device\"" },
	{ "vgpu_vm_copies_total", NULL,
	  COUNTER, OF_COUNTERS, COUNTERS(copies_from_device),
	  "direction=\"from_device\"" },
	{ "vgpu_vm_copies_total", NULL,
	  COUNTER, OF_COUNTERS, COUNTERS(copies_on_device), "direction=\"on_device\"" },
	{ "vgpu_vm_copied_bytes_total", "Bytes copied between programs and device.",
	  COUNTER, OF_COUNTERS, COUNTERS(bytes_to_device), "direction=\"to_device\"" },
	{ "vgpu_vm_copied_bytes_total", NULL,
	  COUNTER, OF_COUNTERS, COUNTERS(bytes_from_device),
	  "direction=\"from_device\"" },
	{ "vgpu_vm_memsets_total", "Memsets.",
	  COUNTER, OF_COUNTERS, COUNTERS(memsets) },
	{ "vgpu_vm_slow_calls_total", "Driver calls that held up others for over 1 ms.",
	  COUNTER, OF_COUNTERS, COUNTERS(slow_calls) },
	{ "vgpu_vm_refused_calls_total", "Refused calls that have no reply.",
	  COUNTER, OF_COUNTERS, COUNTERS(refused_async) },
	{ "vgpu_vm_images_loaded_total", "Loads of code that was sent, or stored.",
	  COUNTER, OF_COUNTERS, COUNTERS(images_sent), "source=\"guest\"" },
	{ "vgpu_vm_images_loaded_total", NULL,
	  COUNTER, OF_COUNTERS, COUNTERS(images_found), "source=\"store\"" },
	{ "vgpu_vm_image_bytes_total", "Bytes of code that was sent.",
	  COUNTER, OF_COUNTERS, COUNTERS(image_bytes) },
};
/* clang-format on */

/* Calls with a histogram of their own, by any of their names' endings. */
static const char *const named[] = {
	"cuCtxSynchronize",
	"cuEventRecord",
	"cuEventSynchronize",
	"cuGraphLaunch",
	"cuLaunchKernel",
	"cuLaunchKernelEx",
	"cuMemAlloc",
	"cuMemAllocAsync",
	"cuMemFree",
	"cuMemFreeAsync",
	"cuMemcpyDtoDAsync",
	"cuMemcpyDtoHAsync",
	"cuMemcpyHtoDAsync",
	"cuModuleLoadData",
	"cuStreamSynchronize",
};

#define N_NAMED (sizeof(named) / sizeof(*named))

/* Bounds are powers of two of ns, each four times the last: those of vgpud's buckets. */
#define BOUND_BIT_FIRST 10u /* 1.024 us */
#define N_BOUNDS 11u	    /* to 1.07 s */

struct page {
	FILE *file;
	enum exposition_format format;
};

static void print_family(
	const struct page *page, const char *name, enum type type, const char *help)
{
	static const char *const types[] = { "gauge", "counter", "histogram" };
	size_t size = strlen(name);

	/* OpenMetrics has the ending of counters at samples only. */
	if (page->format == EXPOSITION_OPENMETRICS && type == COUNTER)
		size -= strlen("_total");
	fprintf(page->file, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)size, name, help,
		(int)size, name, types[type]);
}

/* A value of a label, with quotes. Names of processes are a guest's choice. */
static void print_value(const struct page *page, const char *value)
{
	fputc('"', page->file);
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', page->file);
		fputc(*c, page->file);
	}
	fputc('"', page->file);
}

static void print_vm_labels(
	const struct page *page, const char *name, const char *vm, const char *label)
{
	fprintf(page->file, "%s{vm=", name);
	print_value(page, vm);
	fprintf(page->file, "%s%s}", label ? "," : "", label ? label : "");
}

static void print_seconds(const struct page *page, uint64_t ns)
{
	fprintf(page->file, " %" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000u,
		ns % 1000000000u);
}

/*
 * Machines
 */

/* Return: false if there is no sample. */
static bool read_value(
	const struct metric *metric, const VgpuCtl__Vm *vm, uint64_t *valuep)
{
	const VgpuCtl__Totals *totals = vm->totals;
	const void *base = vm;
	uint32_t value;

	if (metric->source == OF_SHARE)
		base = vm->share;
	else if (metric->source == OF_PENDING)
		base = vm->share ? vm->share->pending : NULL;
	else if (metric->source == OF_QUEUE)
		base = vm->queue;
	else if (metric->source == OF_TOTALS)
		base = totals;
	else if (metric->source == OF_COUNTERS)
		base = totals ? totals->counters : NULL;
	if (!base)
		return false;
	if (metric->source == OF_VM_32 || metric->source == OF_QUEUE) {
		memcpy(&value, (const char *)base + metric->offset, sizeof(value));
		*valuep = value;
		return true;
	}
	memcpy(valuep, (const char *)base + metric->offset, sizeof(*valuep));
	return metric->source != OF_VM_LIMIT || *valuep;
}

/* Samples of one name stand together, so machines are the inner loop only of one line. */
static void print_metric(const struct page *page, const struct snapshot *snapshot,
	const struct metric *metric)
{
	uint64_t value;

	if (metric->help)
		print_family(page, metric->name, metric->type, metric->help);
	for (size_t i = 0; i < snapshot->n_vms; i++) {
		const VgpuCtl__Vm *vm = snapshot->vms[i].vm;

		if (!read_value(metric, vm, &value))
			continue;
		print_vm_labels(page, metric->name, vm->name, metric->label);
		if (metric->source == OF_SHARE)
			print_seconds(page, value);
		else
			fprintf(page->file, " %" PRIu64 "\n", value);
	}
}

static void print_greeted(const struct page *page, const struct snapshot *snapshot)
{
	static const char name[] = "vgpu_vm_greeted";

	print_family(
		page, name, GAUGE, "Whether a guest has greeted since it connected.");
	for (size_t i = 0; i < snapshot->n_vms; i++) {
		const VgpuCtl__Vm *vm = snapshot->vms[i].vm;

		if (vm->greeting == VGPU_CTL__GREETING__UNTOLD)
			continue;
		print_vm_labels(page, name, vm->name, NULL);
		fprintf(page->file, " %d\n", vm->greeting == VGPU_CTL__GREETING__GREETED);
	}
}

static void print_endings(
	const struct page *page, const struct snapshot *snapshot, bool are_refusals)
{
	const char *name = are_refusals ? "vgpu_vm_sessions_refused_total"
					: "vgpu_vm_sessions_ended_total";

	print_family(page, name, COUNTER,
		are_refusals ? "Processes that got no session, by reason."
			     : "Sessions that have ended, by reason.");
	for (size_t i = 0; i < snapshot->n_vms; i++) {
		const VgpuCtl__Totals *totals = snapshot->vms[i].vm->totals;
		VgpuCtl__Ending **list;
		size_t n;

		if (!totals)
			continue;
		list = are_refusals ? totals->refused : totals->ended;
		n = are_refusals ? totals->n_refused : totals->n_ended;
		for (size_t k = 0; k < n; k++) {
			fprintf(page->file, "%s{vm=", name);
			print_value(page, snapshot->vms[i].vm->name);
			fputs(",reason=", page->file);
			print_value(page, list[k]->reason);
			fprintf(page->file, "} %" PRIu64 "\n", list[k]->n);
		}
	}
}

/*
 * Times of calls
 */

/* A histogram as it is served: numbers of calls up to each bound, and of all. */
struct served {
	uint64_t counts[N_BOUNDS + 1];
	uint64_t total_ns;
};

/* Return: the place in `named`, or N_NAMED. "cuMemAlloc_v2" is "cuMemAlloc". */
static size_t find_named(const char *call)
{
	const char *end = strstr(call, "_v");
	const size_t size = end ? (size_t)(end - call) : strlen(call);

	for (size_t i = 0; i < N_NAMED; i++)
		if (strlen(named[i]) == size && !strncmp(named[i], call, size))
			return i;
	return N_NAMED;
}

static void add(uint64_t *sump, uint64_t n)
{
	*sump = *sump + n < n ? UINT64_MAX : *sump + n;
}

static uint64_t bound_ns(uint32_t i)
{
	return i < N_BOUNDS ? 1ull << (BOUND_BIT_FIRST + 2 * i) : 0;
}

static void add_call(struct served *served, const VgpuCtl__CallTimes *call)
{
	for (uint32_t i = 0; i < N_BOUNDS; i++)
		add(&served->counts[i], times_count_up_to(call, bound_ns(i) - 1));
	add(&served->counts[N_BOUNDS], times_count(call));
	add(&served->total_ns, call->total_ns);
}

static void print_time_labels(
	const struct page *page, const char *ending, const char *vm, const char *call)
{
	fprintf(page->file, "vgpu_vm_call_duration_seconds%s{vm=", ending);
	print_value(page, vm);
	fprintf(page->file, ",call=\"%s\"", call);
}

static void print_served(const struct page *page, const char *vm, const char *call,
	const struct served *served)
{
	for (uint32_t i = 0; i <= N_BOUNDS; i++) {
		print_time_labels(page, "_bucket", vm, call);
		if (i < N_BOUNDS)
			fprintf(page->file, ",le=\"%.9f\"", (double)bound_ns(i) / 1e9);
		else
			fputs(",le=\"+Inf\"", page->file);
		fprintf(page->file, "} %" PRIu64 "\n", served->counts[i]);
	}
	print_time_labels(page, "_sum", vm, call);
	fputs("}", page->file);
	print_seconds(page, served->total_ns);
	print_time_labels(page, "_count", vm, call);
	fprintf(page->file, "} %" PRIu64 "\n", served->counts[N_BOUNDS]);
}

static void print_times(const struct page *page, const struct snapshot *snapshot)
{
	print_family(page, "vgpu_vm_call_duration_seconds", HISTOGRAM,
		"Time that calls took in workers.");
	for (size_t i = 0; i < snapshot->n_vms; i++) {
		const struct snapshot_vm *vm = &snapshot->vms[i];
		struct served served[N_NAMED + 1] = { 0 };

		for (size_t k = 0; k < vm->times.n_calls; k++)
			add_call(&served[find_named(vm->times.calls[k]->name)],
				vm->times.calls[k]);
		for (size_t k = 0; k <= N_NAMED; k++)
			if (served[k].counts[N_BOUNDS])
				print_served(page, vm->vm->name,
					k < N_NAMED ? named[k] : "other", &served[k]);
	}
}

/*
 * Processes
 */

enum process_metric {
	PROCESS_DEVICE_MEMORY,
	PROCESS_HOST_MEMORY,
	PROCESS_BUSY,
	PROCESS_CALLS,
	PROCESS_LAUNCHES,
	PROCESS_TO_DEVICE,
	PROCESS_FROM_DEVICE,
	_PROCESS_METRIC_N,
};

/* clang-format off */
static const struct {
	const char *name, *help;
	enum type type;
	const char *label;
} of_processes[_PROCESS_METRIC_N] = {
	[PROCESS_DEVICE_MEMORY] = { "vgpu_process_device_memory_bytes",
		"Device memory in use by a guest process.", GAUGE },
	[PROCESS_HOST_MEMORY] = { "vgpu_process_host_memory_bytes",
		"Memory of the host in use by its worker.", GAUGE },
	[PROCESS_BUSY] = { "vgpu_process_busy_ratio",
		"How busy it kept the device that it uses most, of the last second.",
		GAUGE },
	[PROCESS_CALLS] = { "vgpu_process_calls_total",
		"Calls that reached its worker.", COUNTER },
	[PROCESS_LAUNCHES] = { "vgpu_process_launches_total",
		"Kernel launches.", COUNTER },
	[PROCESS_TO_DEVICE] = { "vgpu_process_copied_bytes_total",
		"Bytes copied between program and device.", COUNTER,
		"direction=\"to_device\"" },
	[PROCESS_FROM_DEVICE] = { "vgpu_process_copied_bytes_total", NULL, COUNTER,
		"direction=\"from_device\"" },
};
/* clang-format on */

/* Return: false if there is no sample. */
static bool read_process(
	const VgpuCtl__Session *session, enum process_metric metric, uint64_t *valuep)
{
	const VgpuCtl__Counters *counters = session->counters;

	switch (metric) {
	case PROCESS_DEVICE_MEMORY:
		*valuep = session->device_memory;
		return true;
	case PROCESS_HOST_MEMORY:
		*valuep = session->host_memory;
		return true;
	case PROCESS_BUSY:
		*valuep = session->busy ? session->busy->percent : 0;
		return session->busy;
	case PROCESS_CALLS:
		*valuep = counters ? counters->calls : 0;
		return counters;
	case PROCESS_LAUNCHES:
		*valuep = counters ? counters->launches : 0;
		return counters;
	case PROCESS_TO_DEVICE:
		*valuep = counters ? counters->bytes_to_device : 0;
		return counters;
	case PROCESS_FROM_DEVICE:
		*valuep = counters ? counters->bytes_from_device : 0;
		return counters;
	default:
		return false;
	}
}

static void print_session(const struct page *page, const char *vm,
	const VgpuCtl__Session *session, enum process_metric metric)
{
	const char *label = of_processes[metric].label;
	uint64_t value;

	if (!read_process(session, metric, &value))
		return;
	fprintf(page->file, "%s{vm=", of_processes[metric].name);
	print_value(page, vm);
	fprintf(page->file,
		",session=\"%" PRIu64 "\",pid=\"%" PRIu32 "\",name=", session->number,
		session->pid);
	print_value(page, session->name);
	fprintf(page->file, "%s%s}", label ? "," : "", label ? label : "");
	if (metric == PROCESS_BUSY)
		fprintf(page->file, " %" PRIu64 ".%02" PRIu64 "\n", value / 100,
			value % 100);
	else
		fprintf(page->file, " %" PRIu64 "\n", value);
}

static void print_processes(const struct page *page, const struct snapshot *snapshot)
{
	for (enum process_metric metric = 0; metric < _PROCESS_METRIC_N; metric++) {
		if (of_processes[metric].help)
			print_family(page, of_processes[metric].name,
				of_processes[metric].type, of_processes[metric].help);
		for (size_t i = 0; i < snapshot->n_vms; i++)
			for (size_t k = 0; k < snapshot->vms[i].n_sessions; k++)
				print_session(page, snapshot->vms[i].vm->name,
					snapshot->vms[i].sessions[k], metric);
	}
}

/*
 * All
 */

static void print_vgpud(const struct page *page, const struct snapshot *snapshot)
{
	print_family(page, "vgpu_up", GAUGE, "Whether vgpud has answered.");
	fprintf(page->file, "vgpu_up %d\n", snapshot->is_up);
	print_family(page, "vgpu_snapshot_duration_seconds", GAUGE,
		"Time that asking vgpud took.");
	fputs("vgpu_snapshot_duration_seconds", page->file);
	print_seconds(page, snapshot->taken_ns);
	print_family(page, "vgpu_release", GAUGE, "Always 1, with vgpud's release.");
	if (!snapshot->is_up)
		return;
	fputs("vgpu_release{release=", page->file);
	print_value(page, snapshot->release);
	fputs("} 1\n", page->file);
}

char *exposition_write(const struct snapshot *snapshot, enum exposition_format format,
	bool with_processes, size_t *sizep)
{
	struct page page = { .format = format };
	char *text = NULL;

	page.file = open_memstream(&text, sizep);
	if (!page.file)
		return NULL;
	print_vgpud(&page, snapshot);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++)
		print_metric(&page, snapshot, &metrics[i]);
	print_greeted(&page, snapshot);
	print_endings(&page, snapshot, false);
	print_endings(&page, snapshot, true);
	print_times(&page, snapshot);
	if (with_processes)
		print_processes(&page, snapshot);
	if (format == EXPOSITION_OPENMETRICS)
		fputs("# EOF\n", page.file);
	if (!fclose(page.file))
		return text;
	free(text);
	return NULL;
}
