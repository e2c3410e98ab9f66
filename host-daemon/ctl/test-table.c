/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vgpuctl top shows, of replies that this test makes
 */

#include <stdlib.h>
#include <string.h>

#include "ctl/table.h"
#include "test.h"

#define N_VMS 20u

/* A reply about a machine with one session. */
struct answer {
	VgpuCtl__Details details;
	VgpuCtl__Vm vm;
	VgpuCtl__Session session, *sessions[1];
	VgpuCtl__Counters counters;
	VgpuCtl__Busy busy;
};

static void make(
	struct answer *answer, const char *vm, uint64_t number, uint64_t launches)
{
	*answer = (struct answer){
		.details = VGPU_CTL__DETAILS__INIT,
		.vm = VGPU_CTL__VM__INIT,
		.session = VGPU_CTL__SESSION__INIT,
		.counters = VGPU_CTL__COUNTERS__INIT,
		.busy = VGPU_CTL__BUSY__INIT,
	};
	answer->vm.name = (char *)vm;
	answer->vm.sessions = 1;
	answer->vm.device_memory = launches << 20;
	answer->session.name = (char *)"app";
	answer->session.number = number;
	answer->session.pid = 4711;
	answer->session.counters = &answer->counters;
	answer->counters.launches = launches;
	answer->counters.bytes_to_device = 3 * launches;
	answer->counters.bytes_from_device = launches;
	answer->sessions[0] = &answer->session;
	answer->details.vm = &answer->vm;
	answer->details.sessions = answer->sessions;
	answer->details.n_sessions = 1;
}

static void add(struct sample *sample, const char *vm, uint64_t number, uint64_t launches)
{
	struct answer answer;

	make(&answer, vm, number, launches);
	check_eq(sample_add(sample, &answer.details), CTL_OK);
}

static char *print(const struct table *table, const struct sample *sample)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	check(file);
	table_print(table, sample, file, "\n");
	fclose(file);
	return text;
}

static unsigned int count_lines(const char *text, size_t *longestp)
{
	unsigned int n = 0;

	*longestp = 0;
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		n++;
		if ((size_t)(end - text) > *longestp)
			*longestp = (size_t)(end - text);
	}
	check_str(text, "");
	return n;
}

TEST(rates_are_of_the_time_between_two_samples)
{
	struct sample before = { .at_ms = 1000 }, now = { .at_ms = 3000 };

	add(&before, "a", 1, 100);
	add(&before, "b", 2, 50);
	add(&now, "a", 1, 300);
	add(&now, "b", 2, 10); /* set back */
	add(&now, "c", 3, 4);  /* new */
	sample_compare(&now, &before);
	check(now.sessions[0].use.rates.launches == 100);
	check(now.sessions[0].use.rates.bytes == 400);
	check(now.sessions[1].use.rates.launches == 0);
	check(now.sessions[2].use.rates.launches == 2);
	check(now.vms[0].use.rates.launches == 100);
	check(now.vms[1].use.rates.launches == 0);
	sample_deinit(&before);
	sample_deinit(&now);
}

TEST(no_time_between_two_samples_is_no_rate)
{
	struct sample before = { .at_ms = 1000 }, now = { .at_ms = 1000 };

	add(&before, "a", 1, 100);
	add(&now, "a", 1, 300);
	sample_compare(&now, &before);
	check(now.sessions[0].use.rates.launches == 0);
	sample_deinit(&before);
	sample_deinit(&now);
}

TEST(parts_of_a_reply_are_one_machine)
{
	struct sample sample = { 0 };
	struct answer answer;

	make(&answer, "a", 1, 100);
	check_eq(sample_add(&sample, &answer.details), CTL_OK);
	answer.session.number = 2;
	answer.session.busy = &answer.busy;
	answer.busy.percent = 70;
	check_eq(sample_add(&sample, &answer.details), CTL_OK);
	answer.session.number = 3;
	check_eq(sample_add(&sample, &answer.details), CTL_OK);
	check_eq(sample.n_vms, 1);
	check_eq(sample.n_sessions, 3);
	check_eq(sample.sessions[0].use.busy, -1);
	sample_compare(&sample, &sample);
	/* Several devices cannot be told apart. */
	check_eq(sample.vms[0].use.busy, 100);
	sample_deinit(&sample);
}

TEST(an_older_vgpud_has_no_counters)
{
	struct sample sample = { 0 };
	struct answer answer;

	make(&answer, "a", 1, 100);
	answer.session.counters = NULL;
	check_eq(sample_add(&sample, &answer.details), CTL_OK);
	check_eq(sample.sessions[0].counts.launches, 0);
	sample_deinit(&sample);
}

TEST(the_order_is_that_of_the_column_and_then_of_the_names)
{
	struct sample sample = { 0 };

	add(&sample, "b", 1, 5);
	add(&sample, "c", 2, 9);
	add(&sample, "a", 3, 5);
	sample_sort(&sample, SAMPLE_MEMORY);
	check_str(sample.vms[0].use.name, "c");
	check_str(sample.vms[1].use.name, "a");
	check_str(sample.vms[2].use.name, "b");
	sample_sort(&sample, SAMPLE_NAME);
	check_str(sample.vms[0].use.name, "a");
	for (enum sample_key key = 0; key < _SAMPLE_KEY_N; key++)
		check_eq(sample_find_key(sample_key_name(key)), key);
	check_eq(sample_find_key("nonsense"), _SAMPLE_KEY_N);
	sample_deinit(&sample);
}

TEST(a_table_fits_the_screen)
{
	struct sample sample = { 0 };
	char name[64];

	for (unsigned int i = 0; i < N_VMS; i++) {
		snprintf(name, sizeof(name), "machine-with-a-long-name-%u", i);
		add(&sample, name, i, i);
	}
	for (unsigned int lines = 1; lines < 60; lines++)
		for (unsigned int columns = 1; columns < 120; columns += 7) {
			struct table table = { .lines = lines, .columns = columns };
			char *text = print(&table, &sample);
			size_t longest;

			check(count_lines(text, &longest) <= (lines > 4 ? lines : 4));
			check(longest <= columns);
			free(text);
		}
	sample_deinit(&sample);
}

TEST(eighty_columns_have_the_name_of_a_process_and_of_its_machine)
{
	struct table table = { .columns = 80 };
	struct sample sample = { 0 };
	char *text;
	size_t longest;

	add(&sample, "machine-one", 1, 100000);
	text = print(&table, &sample);
	count_lines(text, &longest);
	check(longest <= 80);
	check(strstr(text, "  SESSIONS\n"));
	check(strstr(text, "  machine-one "));
	check(!strstr(text, "HOST-MEM"));
	free(text);
	table.columns = 92;
	text = print(&table, &sample);
	check(strstr(text, "HOST-MEM"));
	check(strstr(text, "  machine-one "));
	free(text);
	sample_deinit(&sample);
}

TEST(all_of_a_table_without_a_screen_is_printed)
{
	struct table table = { .columns = 200 };
	struct sample sample = { 0 };
	char *text;
	size_t longest;

	for (unsigned int i = 0; i < N_VMS; i++)
		add(&sample, "vm", i, i);
	text = print(&table, &sample);
	/* One machine, the title, two headings, an empty line. */
	check_eq(count_lines(text, &longest), N_VMS + 5);
	check(strstr(text, "4711 app"));
	free(text);
	table.hides_idle = true;
	text = print(&table, &sample);
	check_eq(count_lines(text, &longest), 5);
	free(text);
	table.hides_processes = true;
	text = print(&table, &sample);
	check_eq(count_lines(text, &longest), 3);
	free(text);
	sample_deinit(&sample);
}
