/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: configuration
 *
 * The input is a configuration file, and behind a NUL, if there is one, that of VM a in
 * the folder. An accepted configuration meets all rules of the manual, a refused one has
 * an error with a line of its file, and each number is parsed as a second parser parses
 * it.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpud/config.h"
#include "vgpud/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition)) {                                                     \
			fprintf(stderr, "check failed: %s\n", #_condition);              \
			abort();                                                         \
		}                                                                        \
	} while (0)

static void check_vm(const struct config *config, const struct config_vm *vm)
{
	const struct config_vm *other;

	need(config_vm_at(config, vm->index) == vm);
	need(*vm->name && strlen(vm->name) < sizeof(vm->name));
	for (const char *c = vm->name; *c; c++)
		need(isalnum((unsigned char)*c) || strchr("-_.", *c));
	TAILQ_FOREACH(other, &config->vms, entry) {
		need(other == vm || strcmp(other->name, vm->name));
		need(other == vm || !vm->socket || !other->socket ||
			strcmp(other->socket, vm->socket));
	}
	need((vm->transport == CONFIG_PLAIN) == !vm->socket);
	need((vm->transport == CONFIG_PLAIN) == (vm->memory != NULL));
	need(!vm->socket || *vm->socket == '/');
	need(!vm->memory || *vm->memory == '/');
	need(vm->size >= VGPU_SHM_SIZE_MIN && vm->size <= LAYOUT_SIZE_MAX &&
		!(vm->size & (vm->size - 1)));
	need(vm->transport == CONFIG_PLAIN || vm->memory_owner == (uid_t)-1);
	need(vm->transport == CONFIG_SOCKET ||
		layout_n_channels(vm->size) >= vm->max_processes ||
		layout_n_channels(vm->size) >= VGPU_CHANNELS_MAX);
	need(vm->max_processes >= 1 && vm->process_rate >= 1 && vm->log_lines >= 1);
	need(vm->handles >= 16 && !(vm->socket_mode & ~0777u));
	need(vm->cpu <= 100000);
	need(vm->max_threads >= 1 && vm->max_threads <= VGPU_SLOTS_MAX);
	need(vm->image_memory && vm->image_store);
}

static void check_config(
	const struct config *config, const struct config_sources *sources)
{
	const struct config_vm *vm;
	unsigned int n = 0;

	TAILQ_FOREACH(vm, &config->vms, entry) {
		check_vm(config, vm);
		n++;
	}
	need(n == config->n_vms && (n || sources->has_folder));
	need(!config_vm_at(config, n));
	need(config->max_workers >= 1);
	need(config->worker_uids.first >= 1000 &&
		config->worker_uids.last >= config->worker_uids.first);
	need(config->worker_uids.last - config->worker_uids.first + 1 >=
		config->max_workers);
	need(*config->driver && (unsigned int)config->log_level < _VGPU_LOG_N);
	need(!config->worker || *config->worker == '/');
	need(!config->log_file || *config->log_file == '/');
}

static int count_lines(const char *text)
{
	int n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void check_mistake(const char *mistake, const struct config_sources *sources)
{
	unsigned int n_more;
	int line = -1, n = 0;

	if (sscanf(mistake, "and %u more%n", &n_more, &n) == 1 && n) {
		need(n_more && !mistake[n]);
		return;
	}
	for (size_t i = 0; i < sources->n; i++) {
		const struct config_source *source = &sources->list[i];
		const size_t size = strlen(source->path);

		if (strncmp(mistake, source->path, size))
			continue;
		n = 0;
		sscanf(mistake + size, ":%d: %n", &line, &n);
		need(n && mistake[size + n]);
		need(line >= 0 && line <= count_lines(source->text));
		return;
	}
	need(false);
}

/* One mistake in each line, and at the end perhaps the number of those left out. */
static void check_error(char *error, const struct config_sources *sources)
{
	char *state = NULL;

	need(*error);
	for (char *line = strtok_r(error, "\n", &state); line;
		line = strtok_r(NULL, "\n", &state))
		check_mistake(line, sources);
}

/* What the keeper keeps is what each broker takes. */
static void check_kept(const struct config_sources *sources)
{
	struct config_sources taken;
	int fd;

	need(!config_sources_keep(sources, &fd));
	need(!config_sources_take(&taken, fd));
	close(fd);
	need(taken.n == sources->n && taken.has_folder == sources->has_folder);
	for (size_t i = 0; i < taken.n; i++) {
		need(!strcmp(taken.list[i].path, sources->list[i].path));
		need(!strcmp(taken.list[i].text, sources->list[i].text));
	}
	config_sources_deinit(&taken);
}

/* Returns: whether the value of the word fits 64 bits. */
static bool reference_size(const char *word, uint64_t *sizep)
{
	static const char units[] = "KMGT";
	unsigned __int128 number = 0;
	const char *unit, *c = word;

	for (; *c >= '0' && *c <= '9'; c++)
		if (number <= UINT64_MAX)
			number = number * 10 + (*c - '0');
	if (c == word)
		return false;
	if (number > UINT64_MAX)
		return false;
	if (*c) {
		unit = strchr(units, *c++);
		if (!unit || *c)
			return false;
		number <<= 10 * (unit - units + 1);
	}
	*sizep = number;
	return number <= UINT64_MAX;
}

static void check_sizes(char *text)
{
	uint64_t size, reference;
	char *state = NULL;

	for (char *word = strtok_r(text, " =\n", &state); word;
		word = strtok_r(NULL, " =\n", &state)) {
		need(!config_parse_size(word, &size) == reference_size(word, &reference));
		need(config_parse_size(word, &size) || size == reference);
	}
}

/* What is not left out has no mistakes, and is the same then. */
static void check_right(struct config_sources *sources)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL, *again = NULL;
	_vgpu_cleanup_(vgpu_freep) char *mistakes = NULL, *error = NULL;

	if (config_new_of_right(&config, sources, &mistakes)) {
		need(mistakes && !config);
		return;
	}
	need(!config_new(&again, sources, &error));
	need(config->n_vms == again->n_vms && !error);
	need(sources->n < 2 || !sources->list[1].is_left_out == !mistakes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	_vgpu_cleanup_(vgpu_freep) char *text = strndup((const char *)data, size);
	_vgpu_cleanup_(vgpu_freep) char *error = NULL, *more = NULL;
	struct config_source list[2] = { { .path = (char *)"file", .text = text } };
	struct config_sources sources = { .list = list, .n = 1 };
	const size_t used = strlen(text) + 1;
	int r;

	if (used <= size) {
		more = strndup((const char *)data + used, size - used);
		list[1] = (struct config_source){
			.path = (char *)"vm.d/a.conf", .text = more, .vm = (char *)"a"
		};
		sources.n = 2;
		sources.has_folder = true;
	}
	r = config_new(&config, &sources, &error);
	need((r == 0) == (config != NULL));
	need((r == CONFIG_E_INVALID) == (error != NULL));
	if (config)
		check_config(config, &sources);
	if (error)
		check_error(error, &sources);
	check_kept(&sources);
	check_right(&sources);
	check_sizes(text);
	return 0;
}
