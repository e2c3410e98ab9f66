/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table: a sample for people and for programs
 */

#include <stdarg.h>

#include "ctl/output.h"
#include "ctl/table.h"

#define LINE_MAX_BYTES 256
/* Of the title, two headings and the line between. */
#define LINES_FIXED 4u
/* With fewer columns there is no room for memory of the host and a machine's name. */
#define COLUMNS_WIDE 92u

/* Where lines go. */
struct page {
	FILE *file;
	const char *line_end;
	unsigned int columns;
};

/* Names and all else are printable ASCII: a byte is a column. */
static void print(const struct page *page, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

static void print(const struct page *page, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	fprintf(page->file, "%.*s%s", (int)page->columns, line, page->line_end);
}

static const char *text_of_count(double count, char text[static 24])
{
	if (count < 99999.5)
		snprintf(text, 24, "%.0f", count);
	else
		snprintf(text, 24, "%.1fM", count / 1e6);
	return text;
}

static const char *text_of_percent(int percent, char text[static 24])
{
	snprintf(text, 24, percent < 0 ? "-" : "%d%%", percent);
	return text;
}

/* A column that only wide pages have. */
static const char *wide(const struct page *page, const char *text, char column[static 80])
{
	*column = '\0';
	if (page->columns >= COLUMNS_WIDE)
		snprintf(column, 80, " %11s", text);
	return column;
}

/* Columns that machines and processes have in common. */
static void print_use(const struct page *page, const char *name,
	const struct sample_use *use, const char *device, const char *host,
	const char *last)
{
	char busy[24], queued[24], launches[24], bytes[24], column[80];

	print(page, "%-16.16s %5s %5.2f %5s %8s %8s %11s%s  %s", name,
		text_of_percent(use->busy, busy), use->rates.held,
		text_of_percent(use->queued, queued),
		text_of_count(use->rates.launches, launches),
		output_size((uint64_t)use->rates.bytes, bytes), device,
		wide(page, host, column), last);
}

static void print_vm(const struct page *page, const struct sample_vm *vm)
{
	char device[64], host[64], sessions[24];

	snprintf(sessions, sizeof(sessions), "%u", vm->n_sessions);
	print_use(page, vm->use.name, &vm->use,
		output_use(vm->use.device_memory, vm->device_memory_limit, device),
		output_use(vm->use.host_memory, vm->host_memory_limit, host), sessions);
}

static void print_session(const struct page *page, const struct sample_session *session)
{
	char name[LINE_MAX_BYTES], last[LINE_MAX_BYTES], device[24], host[24];

	snprintf(name, sizeof(name), "%u %s", session->pid, session->use.name);
	snprintf(last, sizeof(last), "%-12s  %s", session->vm, session->error_text);
	print_use(page, name, &session->use,
		output_size(session->use.device_memory, device),
		output_size(session->use.host_memory, host), last);
}

static bool is_idle(const struct sample_use *use)
{
	return use->busy <= 0 && use->rates.calls <= 0 && use->rates.launches <= 0 &&
	       use->rates.copies <= 0;
}

static bool is_shown(const struct table *table, const struct sample_session *session)
{
	return !table->hides_idle || !is_idle(&session->use);
}

static size_t count_processes(const struct table *table, const struct sample *sample)
{
	size_t n = 0;

	for (size_t i = 0; !table->hides_processes && i < sample->n_sessions; i++)
		n += is_shown(table, &sample->sessions[i]);
	return n;
}

/* Machines have at most half of the screen, and more if processes need less. */
static size_t share_of_vms(const struct table *table, size_t n_vms, size_t n_processes)
{
	size_t left, half;

	if (table->hides_vms)
		return 0;
	if (!table->lines)
		return n_vms;
	left = table->lines > LINES_FIXED ? table->lines - LINES_FIXED : 0;
	half = n_processes < left / 2 ? left - n_processes : left - left / 2;
	return n_vms < half ? n_vms : half;
}

static void print_title(
	const struct page *page, const struct table *table, const struct sample *sample)
{
	print(page, "%zu virtual machines, %zu processes%s, sorted by %s", sample->n_vms,
		sample->n_sessions,
		table->hides_idle ? " (those that do nothing are not shown)" : "",
		sample_key_name(table->key));
}

static void print_heading(const struct page *page, const char *first, const char *last)
{
	char column[80];

	print(page, "%-16s %5s %5s %5s %8s %8s %11s%s  %s", first, "BUSY", "HELD",
		"QUEUE", "LAUNCH/S", "COPIED/S", "DEVICE-MEM",
		wide(page, "HOST-MEM", column), last);
}

static void print_processes(const struct page *page, const struct table *table,
	const struct sample *sample, size_t n_most)
{
	size_t n = 0;

	print_heading(page, "PID PROCESS", "MACHINE       LAST-ERROR");
	for (size_t i = 0; n < n_most && i < sample->n_sessions; i++) {
		if (!is_shown(table, &sample->sessions[i]))
			continue;
		print_session(page, &sample->sessions[i]);
		n++;
	}
}

void table_print(const struct table *table, const struct sample *sample, FILE *file,
	const char *line_end)
{
	const struct page page = { file, line_end, table->columns };
	const size_t n_processes = count_processes(table, sample);
	const size_t n_vms = share_of_vms(table, sample->n_vms, n_processes);
	const size_t n_used = LINES_FIXED + n_vms;

	print_title(&page, table, sample);
	if (!table->hides_vms) {
		print_heading(&page, "MACHINE", "SESSIONS");
		for (size_t i = 0; i < n_vms; i++)
			print_vm(&page, &sample->vms[i]);
	}
	if (table->hides_processes)
		return;
	print(&page, "%s", "");
	print_processes(&page, table, sample,
		!table->lines		? n_processes
		: table->lines > n_used ? table->lines - n_used
					: 0);
}

/*
 * JSON
 */

static json_t *json_of_use(const struct sample_use *use)
{
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f}",
		"name", use->name, "busy_percent",
		use->busy < 0 ? json_null() : json_integer(use->busy), "queued_percent",
		use->queued < 0 ? json_null() : json_integer(use->queued),
		"queued_launches",
		use->has_pending ? output_number(use->pending) : json_null(),
		"device_memory", output_number(use->device_memory),
		"device_memory_evicted", output_number(use->device_memory_evicted),
		"host_memory", output_number(use->host_memory), "calls_per_second",
		use->rates.calls, "launches_per_second", use->rates.launches,
		"copies_per_second", use->rates.copies, "bytes_per_second",
		use->rates.bytes, "device_time_per_second", use->rates.used,
		"held_time_per_second", use->rates.held);
}

static json_t *json_of_vm(const struct sample_vm *vm)
{
	json_t *json = json_of_use(&vm->use);

	json_object_set_new(json, "sessions", output_number(vm->n_sessions));
	json_object_set_new(
		json, "device_memory_limit", output_limit(vm->device_memory_limit));
	json_object_set_new(
		json, "host_memory_limit", output_limit(vm->host_memory_limit));
	return json;
}

static json_t *json_of_session(const struct sample_session *session)
{
	json_t *json = json_of_use(&session->use);

	json_object_set_new(json, "vm", json_string(session->vm));
	json_object_set_new(json, "number", output_number(session->number));
	json_object_set_new(json, "pid", output_number(session->pid));
	json_object_set(json, "last_error", session->error);
	json_object_set_new(json, "calls", output_number(session->counts.calls));
	json_object_set_new(json, "launches", output_number(session->counts.launches));
	json_object_set_new(json, "copies", output_number(session->counts.copies));
	json_object_set_new(json, "bytes", output_number(session->counts.bytes));
	return json;
}

json_t *table_json(const struct sample *sample, unsigned int seconds)
{
	json_t *vms = json_array(), *processes = json_array();

	for (size_t i = 0; i < sample->n_vms; i++)
		json_array_append_new(vms, json_of_vm(&sample->vms[i]));
	for (size_t i = 0; i < sample->n_sessions; i++)
		json_array_append_new(processes, json_of_session(&sample->sessions[i]));
	return json_pack("{s:i, s:o, s:o}", "seconds", (int)seconds, "vms", vms,
		"processes", processes);
}
