/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of vgpud
 *
 * Two tables have all keys with the functions that
 * check their values. The parser continues after a mistake, so that all are reported at
 * once; values of a section are compared with each other only if all are valid, because a
 * mismatch is often a consequence.
 */

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <ini.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "vgpu/error.h"
#include "vgpud/config-check.h"
#include "vgpud/config.h"
#include "vgpud/device-list.h"
#include "vgpud/layout.h"
#include "vgpud/mistakes.h"

/* A larger file is not a configuration. */
#define CONFIG_TEXT_MAX (1u << 20)
#define CONFIG_WORKERS_MAX 4096u
/* The limits of one softgpu: MEMORY_DEVICES_MAX there. */
#define CONFIG_SOFTGPU_DEVICES_MAX 8u
#define CONFIG_RATE_MAX 1000u
#define CONFIG_LINES_MAX 100000u
/* Default of max-workers. */
#define CONFIG_WORKERS 128u
/* Defaults of a VM's limits. */
#define CONFIG_RATE 20u
/* The virtual time of fair shares is computed with these limits. */
#define CONFIG_WEIGHT 100u
#define CONFIG_WEIGHT_MAX 10000u
#define CONFIG_CPU_MAX 100000u
#define CONFIG_QUANTUM 5u
#define CONFIG_QUANTUM_MAX 1000u
#define CONFIG_EVICT_IDLE 10u
/* The maximum of a worker. */
#define CONFIG_HANDLES (1u << 18)
#define CONFIG_IMAGE_MEMORY (4ull << 30)
#define CONFIG_IMAGE_STORE (1ull << 30)
#define CONFIG_LINES 200u
/* What a NUL in a file is read as. */
#define NUL_MARK '\x01'
/* Longest name that inih does not truncate (its MAX_SECTION and MAX_NAME, less the
 * NUL). */
#define CONFIG_NAME_MAX 48

struct parser;

typedef int (*parse_fn)(struct parser *parser, void *field, const char *value);

struct key {
	const char *name;
	size_t offset;
	parse_fn parse; /* NULL: a number from min to max, an unsigned int */
	unsigned int min, max;
};

/* More than the keys of any section. */
#define CONFIG_KEYS_MAX 32

struct parser {
	struct config *config;
	struct mistakes mistakes;
	const struct config_source *source;
	const char *rest;	 /* text not yet read */
	struct text_place place; /* of the last key or section */
	int unused_line;	 /* a line that inih has not reported yet; 0: none */
	bool no_memory;

	/* The current section. */
	char section[64];
	const struct key *keys; /* NULL: its keys are ignored */
	struct config_vm *vm;	/* NULL in [vgpud] */
	bool *wrongp;		/* whether a mistake was found in it */
	int key_lines[CONFIG_KEYS_MAX];
	bool has_keys;

	bool vgpud_wrong;
	bool vm_wrong[CONFIG_VMS_MAX];
};

/* Records a mistake in the current line. Return: CONFIG_E_INVALID. */
static int __attribute__((__format__(__printf__, 2, 3)))
mistake(struct parser *parser, const char *format, ...)
{
	char reason[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(reason, sizeof(reason), format, ap);
	va_end(ap);
	*parser->wrongp = true;
	mistakes_add(&parser->mistakes, parser->place, "%s", reason);
	return CONFIG_E_INVALID;
}

static int invalid(struct parser *parser, const char *format, const char *value)
{
	char reason[256];

	snprintf(reason, sizeof(reason), format, value);
	return mistake(parser, "%s", reason);
}

static int parse_string(struct parser *parser, void *field, const char *value)
{
	char **stringp = field, *string;

	if (!*value)
		return mistake(parser, "the value is empty");
	string = strdup(value);
	if (!string) {
		parser->no_memory = true;
		return CONFIG_E_INVALID;
	}
	free(*stringp);
	*stringp = string;
	return 0;
}

static int parse_path(struct parser *parser, void *field, const char *value)
{
	if (*value != '/')
		return invalid(parser, "\"%s\" is not an absolute path", value);
	return parse_string(parser, field, value);
}

static int parse_socket_path(struct parser *parser, void *field, const char *value)
{
	struct sockaddr_un address;

	/* The lock file is SOCKET.lock. */
	if (strlen(value) >= sizeof(address.sun_path))
		return invalid(parser,
			"the path of a socket has at most 107 characters, "
			"\"%s\" has more",
			value);
	return parse_path(parser, field, value);
}

static int parse_ctl_socket(struct parser *parser, void *field, const char *value)
{
	if (!strcmp(value, "no"))
		return parse_string(parser, field, value);
	return parse_socket_path(parser, field, value);
}

static int parse_socket(struct parser *parser, void *field, const char *value)
{
	struct config_vm *vm;

	TAILQ_FOREACH(vm, &parser->config->vms, entry)
		if (vm->socket && !strcmp(vm->socket, value))
			return mistake(parser, "socket %s is the one of [vm %s] already",
				value, vm->name);
	return parse_socket_path(parser, field, value);
}

static int parse_driver(struct parser *parser, void *field, const char *value)
{
	if (strcmp(value, "auto") && strcmp(value, "nvidia") && strcmp(value, "soft") &&
		strcmp(value, "null") && *value != '/')
		return invalid(parser,
			"driver is auto, nvidia, soft, null or the absolute path "
			"of a libcuda.so.1, not \"%s\"",
			value);
	return parse_string(parser, field, value);
}

static int parse_nvml(struct parser *parser, void *field, const char *value)
{
	if (strcmp(value, "auto") && strcmp(value, "no") && *value != '/')
		return invalid(parser,
			"nvml is auto, no or the absolute path of a "
			"libnvidia-ml.so.1, not \"%s\"",
			value);
	return parse_string(parser, field, value);
}

static int parse_level(struct parser *parser, void *field, const char *value)
{
	int level = vgpu_log_level_from_string(value);

	if (level < 0)
		return invalid(parser,
			"log-level is none, error, warning, info or debug, "
			"not \"%s\"",
			value);
	*(enum vgpu_log_level *)field = level;
	return 0;
}

static int parse_number(struct parser *parser, unsigned int *numberp, const char *value,
	unsigned int min, unsigned int max)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(value, &end, 10);
	if (errno || *value < '0' || *value > '9' || *end || number < min || number > max)
		return mistake(
			parser, "\"%s\" is not a number from %u to %u", value, min, max);
	*numberp = number;
	return 0;
}

static int parse_device_list(struct parser *parser, void *field, const char *value)
{
	char list[DEVICE_LIST_MAX], reason[256];

	if (device_list_parse(value, list, reason, sizeof(reason)))
		return mistake(parser, "%s", reason);
	return parse_string(parser, field, list);
}

static int parse_schedule(struct parser *parser, void *field, const char *value)
{
	if (strcmp(value, "long") && strcmp(value, "fair"))
		return invalid(
			parser, "softgpu-schedule is long or fair, not \"%s\"", value);
	return parse_string(parser, field, value);
}

/* yes, no, or a list: softgpu reads it, and knows the same words. */
static int parse_check(struct parser *parser, void *field, const char *value)
{
	static const char *const words[] = { "memory", "race", "uninitialised", "fatal" };
	const char *at = value;
	size_t n, i;

	if (!strcmp(value, "yes") || !strcmp(value, "no"))
		return parse_string(parser, field, value);
	for (;; at += strspn(at, " ")) {
		n = strcspn(at, ",");
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strlen(words[i]) == n && !strncmp(words[i], at, n))
				break;
		if (i == sizeof(words) / sizeof(words[0]))
			return invalid(parser,
				"softgpu-check is yes, no, or a list of memory, race, "
				"uninitialised and fatal, not \"%s\"",
				value);
		at += n;
		if (!*at++)
			return parse_string(parser, field, value);
	}
}

static int parse_yes_no(struct parser *parser, void *field, const char *value)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return invalid(parser, "\"%s\" is neither yes nor no", value);
	*(bool *)field = !strcmp(value, "yes");
	return 0;
}

/* Lower ids belong to users and services, higher ones to containers. */
static int parse_uids(struct parser *parser, void *field, const char *value)
{
	struct config_range *range = field;
	int n = 0;

	if (sscanf(value, "%9u-%9u%n", &range->first, &range->last, &n) != 2 ||
		value[n] || range->first < 1000 || range->last < range->first)
		return invalid(parser,
			"\"%s\" is not a range of user ids from 1000 on like "
			"70000-74095",
			value);
	return 0;
}

static int parse_cc(struct parser *parser, void *field, const char *value)
{
	unsigned int major, minor;
	int n = 0;

	if (sscanf(value, "%2u.%2u%n", &major, &minor, &n) != 2 || value[n])
		return invalid(
			parser, "\"%s\" is not a compute capability like 12.1", value);
	return parse_string(parser, field, value);
}

static int parse_bytes(struct parser *parser, void *field, const char *value)
{
	if (config_parse_size(value, field) || !*(uint64_t *)field)
		return invalid(
			parser, "\"%s\" is not a size like 4G, 512M or 65536", value);
	return 0;
}

/* A smaller one could make one copy wait for minutes. */
static int parse_bandwidth(struct parser *parser, void *field, const char *value)
{
	if (config_parse_size(value, field) || *(uint64_t *)field < 1 << 20)
		return invalid(parser,
			"copy-bandwidth is bytes a second, from 1M, \"%s\" is not",
			value);
	return 0;
}

static int parse_shm_size(struct parser *parser, void *field, const char *value)
{
	uint64_t *sizep = field;
	int r;

	r = parse_bytes(parser, field, value);
	if (r)
		return r;
	if (*sizep & (*sizep - 1))
		return invalid(parser,
			"size is a power of two (QEMU aborts on any other), "
			"%s is not",
			value);
	if (*sizep < VGPU_SHM_SIZE_MIN || *sizep > LAYOUT_SIZE_MAX)
		return invalid(parser, "size is from 64M to 256G, %s is not", value);
	return 0;
}

static int parse_priority(struct parser *parser, void *field, const char *value)
{
	for (int i = 0; i < _CONFIG_PRIORITY_N; i++) {
		if (!strcmp(value, config_priority_name(i))) {
			*(enum config_priority *)field = i;
			return 0;
		}
	}
	return invalid(parser, "priority is low, normal or high, not \"%s\"", value);
}

static int parse_transport(struct parser *parser, void *field, const char *value)
{
	for (int i = 0; i < _CONFIG_TRANSPORT_N; i++) {
		if (!strcmp(value, config_transport_name(i))) {
			*(enum config_transport *)field = i;
			return 0;
		}
	}
	return invalid(
		parser, "transport is ivshmem, socket or plain, not \"%s\"", value);
}

static int parse_hugepages(struct parser *parser, void *field, const char *value)
{
	for (int i = 0; i < _CONFIG_HUGEPAGES_N; i++) {
		if (!strcmp(value, config_hugepages_name(i))) {
			*(enum config_hugepages *)field = i;
			return 0;
		}
	}
	return invalid(
		parser, "hugepages is no, transparent or hugetlb, not \"%s\"", value);
}

static int parse_mode(struct parser *parser, void *field, const char *value)
{
	unsigned long mode;
	char *end;

	mode = strtoul(value, &end, 8);
	if (*value < '0' || *value > '7' || *end || mode > 0777)
		return invalid(parser, "\"%s\" is not an octal mode like 0660", value);
	*(mode_t *)field = mode;
	return 0;
}

static int parse_group(struct parser *parser, void *field, const char *value)
{
	struct group *group = getgrnam(value);
	unsigned int gid;

	if (group)
		gid = group->gr_gid;
	else if (*value < '0' || *value > '9')
		return invalid(parser, "there is no group \"%s\"", value);
	else if (parse_number(parser, &gid, value, 0, INT32_MAX))
		return CONFIG_E_INVALID;
	*(gid_t *)field = gid;
	return 0;
}

static int parse_owner(struct parser *parser, void *field, const char *value)
{
	struct config_vm *vm = parser->vm;
	struct passwd *user = getpwnam(value);
	unsigned int uid;

	if (!user) {
		if (*value < '0' || *value > '9')
			return invalid(parser, "there is no user \"%s\"", value);
		if (parse_number(parser, &uid, value, 0, INT32_MAX))
			return CONFIG_E_INVALID;
		user = getpwuid(uid);
	}
	vm->memory_owner = user ? user->pw_uid : uid;
	vm->memory_group = user ? user->pw_gid : (gid_t)-1;
	return 0;
}

#define VGPUD_KEY(_name, _field, _parse)                                                 \
	{                                                                                \
		_name, offsetof(struct config, _field), _parse                           \
	}
#define VM_KEY(_name, _field, _parse)                                                    \
	{                                                                                \
		_name, offsetof(struct config_vm, _field), _parse                        \
	}
#define VGPUD_NUMBER(_name, _field, _min, _max)                                          \
	{                                                                                \
		_name, offsetof(struct config, _field), NULL, _min, _max                 \
	}
#define VM_NUMBER(_name, _field, _min, _max)                                             \
	{                                                                                \
		_name, offsetof(struct config_vm, _field), NULL, _min, _max              \
	}

#define DAY_S 86400

static const struct key vgpud_keys[] = {
	VGPUD_KEY("driver", driver, parse_driver),
	VGPUD_KEY("worker", worker, parse_path),
	VGPUD_KEY("softgpu", softgpu, parse_path),
	VGPUD_KEY("null-driver", null_driver, parse_path),
	VGPUD_KEY("sensors", sensors, parse_path),
	VGPUD_KEY("nvml", nvml, parse_nvml),
	VGPUD_KEY("log-file", log_file, parse_path),
	VGPUD_KEY("flight-folder", flight_folder, parse_path),
	VGPUD_KEY("log-level", log_level, parse_level),
	VGPUD_KEY("ctl-socket", ctl_socket, parse_ctl_socket),
	VGPUD_KEY("ctl-admins", ctl_admins, parse_group),
	VGPUD_KEY("ctl-monitors", ctl_monitors, parse_group),
	VGPUD_NUMBER("warm-workers", warm_workers, 0, CONFIG_WORKERS_MAX),
	VGPUD_NUMBER("max-workers", max_workers, 1, CONFIG_WORKERS_MAX),
	VGPUD_NUMBER("quantum", quantum, 1, CONFIG_QUANTUM_MAX),
	VGPUD_KEY("meter", meter, parse_yes_no),
	VGPUD_KEY("device-memory-total", device_memory_total, parse_bytes),
	VGPUD_NUMBER("evict-idle", evict_idle, 1, DAY_S),
	VGPUD_KEY("sandbox", sandbox, parse_yes_no),
	VGPUD_KEY("allow-unprivileged", allow_unprivileged, parse_yes_no),
	VGPUD_KEY("worker-uids", worker_uids, parse_uids),
	VGPUD_KEY("softgpu-name", softgpu_name, parse_string),
	VGPUD_KEY("softgpu-cc", softgpu_cc, parse_cc),
	VGPUD_KEY("softgpu-memory", softgpu_memory, parse_bytes),
	VGPUD_NUMBER("softgpu-threads", softgpu_threads, 1, CONFIG_WORKERS_MAX),
	VGPUD_NUMBER("softgpu-kernel-timeout", softgpu_kernel_timeout, 0, DAY_S),
	VGPUD_NUMBER("softgpu-devices", softgpu_devices, 1, CONFIG_SOFTGPU_DEVICES_MAX),
	VGPUD_KEY("softgpu-schedule", softgpu_schedule, parse_schedule),
	VGPUD_KEY("softgpu-check", softgpu_check, parse_check),
	{ 0 },
};

static const struct key vm_keys[] = {
	VM_KEY("transport", transport, parse_transport),
	VM_KEY("socket", socket, parse_socket),
	VM_KEY("memory", memory, parse_path),
	VM_KEY("memory-owner", memory_owner, parse_owner),
	VM_KEY("size", size, parse_shm_size),
	VM_KEY("hugepages", hugepages, parse_hugepages),
	VM_KEY("devices", devices, parse_device_list),
	VM_KEY("device-memory", device_memory, parse_bytes),
	VM_KEY("evictable", evictable, parse_yes_no),
	VM_NUMBER("weight", weight, 1, CONFIG_WEIGHT_MAX),
	VM_KEY("priority", priority, parse_priority),
	VM_KEY("paused", paused, parse_yes_no),
	VM_KEY("image-memory", image_memory, parse_bytes),
	VM_KEY("image-store", image_store, parse_bytes),
	VM_KEY("host-memory", host_memory, parse_bytes),
	VM_NUMBER("cpu", cpu, 1, CONFIG_CPU_MAX),
	VM_KEY("copy-bandwidth", copy_bandwidth, parse_bandwidth),
	VM_NUMBER("handles", handles, 16, CONFIG_HANDLES),
	VM_NUMBER("max-threads", max_threads, 1, VGPU_SLOTS_MAX),
	VM_NUMBER("max-processes", max_processes, 1, CONFIG_WORKERS_MAX),
	VM_NUMBER("process-rate", process_rate, 1, CONFIG_RATE_MAX),
	VM_NUMBER("log-lines", log_lines, 1, CONFIG_LINES_MAX),
	VM_NUMBER("softgpu-launch-timeout", softgpu_launch_timeout, 0, DAY_S),
	VM_KEY("socket-mode", socket_mode, parse_mode),
	VM_KEY("socket-group", socket_group, parse_group),
	{ 0 },
};

static_assert(sizeof(vm_keys) / sizeof(*vm_keys) - 1 == CONFIG_VM_KEYS, "config-show.c");

const char *config_ctl_socket(const struct config *config)
{
	return config->ctl_socket && strcmp(config->ctl_socket, "no") ? config->ctl_socket
								      : NULL;
}

/* A second section of a kind or name. */
static int twice(struct parser *parser, struct text_place place, const char *format,
	const char *name)
{
	char section[64];

	snprintf(section, sizeof(section), format, name);
	if (place.file == parser->place.file)
		return mistake(
			parser, "there is a %s in line %d already", section, place.line);
	return mistake(parser, "there is a %s in %s:%d already", section, place.file,
		place.line);
}

static int add_vm(struct parser *parser, const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789-_.";
	struct config_vm *vm;

	if (!*name || name[strspn(name, allowed)])
		return invalid(parser,
			"the name of a VM has letters, digits, '-', '_' and '.' "
			"only, \"%s\" does not",
			name);
	TAILQ_FOREACH(vm, &parser->config->vms, entry)
		if (!strcmp(vm->name, name))
			return twice(parser, vm->place, "[vm %s]", name);
	if (parser->config->n_vms == CONFIG_VMS_MAX)
		return mistake(parser, "more than %d VMs", CONFIG_VMS_MAX);

	vm = calloc(1, sizeof(*vm));
	if (!vm) {
		parser->no_memory = true;
		return CONFIG_E_INVALID;
	}
	snprintf(vm->name, sizeof(vm->name), "%s", name);
	vm->index = parser->config->n_vms++;
	vm->place = parser->place;
	vm->size = 4ull << 30;
	vm->weight = CONFIG_WEIGHT;
	vm->priority = CONFIG_PRIORITY_NORMAL;
	vm->handles = CONFIG_HANDLES;
	vm->max_threads = VGPU_SLOTS_MAX;
	vm->image_memory = CONFIG_IMAGE_MEMORY;
	vm->image_store = CONFIG_IMAGE_STORE;
	vm->process_rate = CONFIG_RATE;
	vm->log_lines = CONFIG_LINES;
	vm->socket_mode = 0660;
	vm->socket_group = (gid_t)-1;
	vm->memory_owner = (uid_t)-1;
	vm->memory_group = (gid_t)-1;
	TAILQ_INSERT_TAIL(&parser->config->vms, vm, entry);
	parser->vm = vm;
	parser->keys = vm_keys;
	parser->wrongp = &parser->vm_wrong[vm->index];
	return 0;
}

static int add_vgpud(struct parser *parser)
{
	if (parser->config->place.line)
		return twice(parser, parser->config->place, "%s", "[vgpud]");
	parser->config->place = parser->place;
	parser->keys = vgpud_keys;
	return 0;
}

static bool is_of(const struct config_source *source, const char *section)
{
	return !strncmp(section, "vm ", 3) && !strcmp(section + 3, source->vm);
}

/* Keys of a section with a wrong name are ignored. */
static void enter_section(struct parser *parser, const char *section, size_t size)
{
	parser->keys = NULL;
	parser->vm = NULL;
	parser->wrongp = &parser->vgpud_wrong;
	parser->has_keys = false;
	memset(parser->key_lines, 0, sizeof(parser->key_lines));
	snprintf(parser->section, sizeof(parser->section), "%.*s", (int)size, section);
	if (size > CONFIG_NAME_MAX)
		invalid(parser, "the section name \"%s\" is too long", parser->section);
	else if (parser->source->vm && !is_of(parser->source, parser->section))
		mistake(parser, "this file is for [vm %s] only", parser->source->vm);
	else if (!strcmp(parser->section, "vgpud"))
		add_vgpud(parser);
	else if (!strncmp(parser->section, "vm ", 3))
		add_vm(parser, parser->section + 3);
	else
		invalid(parser, "there is no section [%s], only [vgpud] and [vm NAME]",
			parser->section);
}

/* inih's handler. Return: always 1, because mistakes are recorded. */
static void parse_key(struct parser *parser, const struct key *key, const char *value)
{
	char *section = parser->vm ? (char *)parser->vm : (char *)parser->config;
	void *field = section + key->offset;

	if (key->parse)
		key->parse(parser, field, value);
	else
		parse_number(parser, field, value, key->min, key->max);
}

static int handle_key(
	void *userdata, const char *section, const char *name, const char *value)
{
	struct parser *parser = userdata;
	const struct key *key;
	size_t i;

	parser->unused_line = 0;
	parser->has_keys = true;
	if (!*parser->section)
		mistake(parser, "a key before the first section");
	if (!parser->keys)
		return 1;
	for (key = parser->keys; key->name && strcmp(key->name, name); key++)
		;
	i = key - parser->keys;
	if (!key->name)
		mistake(parser, "there is no key \"%s\" in [%s]", name, parser->section);
	else if (parser->key_lines[i])
		mistake(parser, "there is a key \"%s\" in line %d already", name,
			parser->key_lines[i]);
	else
		parse_key(parser, key, value);
	parser->key_lines[i] = parser->place.line;
	return 1;
}

/* inih reports only the first such line. */
static void tell_unused_line(struct parser *parser)
{
	if (!parser->unused_line)
		return;
	*parser->wrongp = true;
	mistakes_add(&parser->mistakes,
		(struct text_place){ parser->place.file, parser->unused_line },
		"neither [SECTION] nor KEY = VALUE nor a comment");
	parser->unused_line = 0;
}

/*
 * inih reports a section with its first key, and so not one that is empty or comes twice
 * in a row. An indented line after a key continues that key's value.
 */
static void look_at_line(struct parser *parser, const char *line)
{
	size_t n_blank = strspn(line, " \t\r\v\f"), size;
	const char *start = line + n_blank;

	if (!*start || *start == '\n' || *start == ';' || *start == '#')
		return;
	size = strcspn(start, "]\n");
	if (*start == '[' && start[size] == ']' && !(n_blank && parser->has_keys))
		enter_section(parser, start + 1, size - 1);
	else
		parser->unused_line = parser->place.line;
}

/* inih would take some of these for the end of the text. */
static bool has_control(const char *line, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)line[i] < ' ' && !strchr("\t\r\v\f", line[i])) ||
			line[i] == 0x7f)
			return true;
	return false;
}

/* inih's reader: one line each time. */
static char *read_line(char *line, int size, void *userdata)
{
	struct parser *parser = userdata;
	size_t n = strcspn(parser->rest, "\n"), length = n;

	tell_unused_line(parser);
	if (!*parser->rest)
		return NULL;
	parser->place.line++;
	if (n > (size_t)size - 2) {
		mistake(parser, "the line has more than %d characters", size - 2);
		n = 0;
	} else if (has_control(parser->rest, n)) {
		mistake(parser, "the line has a character that is not of a text");
		n = 0;
	}
	memcpy(line, parser->rest, n);
	line[n] = '\n';
	line[n + 1] = '\0';
	parser->rest += length;
	parser->rest += *parser->rest == '\n';
	look_at_line(parser, line);
	return line;
}

static void check_all(struct parser *parser, const struct config_sources *sources)
{
	struct config_vm *vm;

	TAILQ_FOREACH(vm, &parser->config->vms, entry)
		if (!parser->vm_wrong[vm->index])
			config_check_vm(vm, &parser->mistakes);
	if (!parser->vgpud_wrong)
		config_check_vgpud(parser->config, &parser->mistakes);
	if (!parser->config->n_vms && !parser->mistakes.n && !sources->has_folder)
		mistake(parser, "there is no [vm NAME] section");
}

/* The places in a configuration outlive its sources. */
static const char *keep_file(struct config *config, const char *path)
{
	char **files, *file;

	files = reallocarray(config->files, config->n_files + 1, sizeof(*files));
	if (!files)
		return NULL;
	config->files = files;
	file = strdup(path);
	if (file)
		files[config->n_files++] = file;
	return file;
}

/* Return: 0 or -ENOMEM; mistakes are recorded. */
static int parse_source(struct parser *parser, const struct config_source *source)
{
	const char *file = keep_file(parser->config, source->path);

	if (!file)
		return vgpu_error_origin(-ENOMEM);
	parser->source = source;
	parser->rest = source->text;
	parser->place = (struct text_place){ .file = file };
	if (source->is_left_out)
		return 0;
	if (!source->vm)
		parser->config->place.file = file;
	parser->section[0] = '\0';
	parser->keys = NULL;
	parser->vm = NULL;
	parser->wrongp = &parser->vgpud_wrong;
	parser->has_keys = false;
	if (source->error)
		mistake(parser, "it cannot be read: %s", strerror(-source->error));
	if (ini_parse_stream(read_line, parser, handle_key, parser) < -1)
		return vgpu_error_origin(-ENOMEM);
	return 0;
}

static struct config *config_with_defaults(void)
{
	struct config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	TAILQ_INIT(&config->vms);
	config->log_level = VGPU_LOG_INFO;
	config->warm_workers = 1;
	config->max_workers = CONFIG_WORKERS;
	config->quantum = CONFIG_QUANTUM;
	config->evict_idle = CONFIG_EVICT_IDLE;
	config->sandbox = true;
	config->worker_uids = (struct config_range){ 70000, 74095 };
	config->ctl_admins = config->ctl_monitors = (gid_t)-1;
	config->driver = strdup("auto");
	config->nvml = strdup("auto");
	return config->driver && config->nvml ? config : config_free(config);
}

/* @wrong:	which of the sources have mistakes; NULL: does not matter */
static int parse_all(struct config **configp, const struct config_sources *sources,
	bool *wrong, char **errorp)
{
	_vgpu_cleanup_(config_freep) struct config *config = config_with_defaults();
	struct parser parser = { .config = config };
	int r = 0;

	*errorp = NULL;
	if (!config)
		return vgpu_error_origin(-ENOMEM);
	for (size_t i = 0; i < sources->n && !r; i++)
		r = parse_source(&parser, &sources->list[i]);
	if (!r)
		check_all(&parser, sources);
	if (r || parser.no_memory || parser.mistakes.no_memory) {
		mistakes_deinit(&parser.mistakes);
		return vgpu_error_origin(-ENOMEM);
	}
	for (size_t i = 0; i < sources->n && wrong; i++)
		wrong[i] = mistakes_are_in(&parser.mistakes, config->files[i]);
	if (parser.mistakes.n) {
		*errorp = mistakes_take(&parser.mistakes);
		mistakes_deinit(&parser.mistakes);
		return CONFIG_E_INVALID;
	}
	*configp = config;
	config = NULL;
	return 0;
}

int config_new(
	struct config **configp, const struct config_sources *sources, char **errorp)
{
	return parse_all(configp, sources, NULL, errorp);
}

/* Adds text, which it takes, to all. Return: 0 or -ENOMEM. */
static int add_text(char **allp, char *text)
{
	char *all;
	int n;

	if (!*allp) {
		*allp = text;
		return 0;
	}
	n = asprintf(&all, "%s\n%s", *allp, text);
	free(text);
	if (n < 0)
		return vgpu_error_origin(-ENOMEM);
	free(*allp);
	*allp = all;
	return 0;
}

/* Return: whether there is one more that is left out. */
static bool leave_out(struct config_sources *sources, const bool *wrong)
{
	bool is_more = false;

	for (size_t i = 1; i < sources->n; i++) {
		is_more |= wrong[i];
		sources->list[i].is_left_out |= wrong[i];
	}
	return is_more;
}

/*
 * A file may be wrong by what another has, such as a socket; so the rest is parsed again
 * until nothing in it is wrong.
 */
int config_new_of_right(
	struct config **configp, struct config_sources *sources, char **errorp)
{
	_vgpu_cleanup_(vgpu_freep) char *all = NULL;
	_vgpu_cleanup_(vgpu_freep) bool *wrong = calloc(sources->n, sizeof(*wrong));
	char *text;
	int r;

	*errorp = NULL;
	if (!wrong)
		return vgpu_error_origin(-ENOMEM);
	while ((r = parse_all(configp, sources, wrong, &text)) == CONFIG_E_INVALID) {
		r = add_text(&all, text);
		if (r)
			return r;
		if (wrong[0] || !leave_out(sources, wrong)) {
			r = CONFIG_E_INVALID;
			break;
		}
	}
	if (r < 0)
		return vgpu_error_trace(r);
	*errorp = all;
	all = NULL;
	return r;
}

int config_new_from_text(
	struct config **configp, const char *path, const char *text, char **errorp)
{
	struct config_source source = { .path = (char *)path, .text = (char *)text };

	return config_new(configp, &(struct config_sources){ &source, 1, false }, errorp);
}

struct config *config_free(struct config *config)
{
	struct config_vm *vm;

	if (!config)
		return NULL;
	while ((vm = TAILQ_FIRST(&config->vms))) {
		TAILQ_REMOVE(&config->vms, vm, entry);
		free(vm->socket);
		free(vm->memory);
		free(vm->devices);
		free(vm);
	}
	for (size_t i = 0; i < config->n_files; i++)
		free(config->files[i]);
	free(config->files);
	free(config->driver);
	free(config->worker);
	free(config->softgpu);
	free(config->null_driver);
	free(config->sensors);
	free(config->nvml);
	free(config->log_file);
	free(config->flight_folder);
	free(config->ctl_socket);
	free(config->softgpu_name);
	free(config->softgpu_schedule);
	free(config->softgpu_check);
	free(config->softgpu_cc);
	free(config);
	return NULL;
}

int config_read(int fd, char **textp)
{
	_vgpu_cleanup_(vgpu_freep) char *text = malloc(CONFIG_TEXT_MAX + 1);
	size_t size = 0;
	ssize_t n;

	if (!text)
		return vgpu_error_origin(-ENOMEM);
	do {
		n = pread(fd, text + size, CONFIG_TEXT_MAX - size, size);
		if (n < 0 && errno != EINTR)
			return vgpu_error_origin(-errno);
		size += n > 0 ? n : 0;
	} while (n && size < CONFIG_TEXT_MAX);
	if (size == CONFIG_TEXT_MAX)
		return vgpu_error_origin(-EFBIG);
	/* The parser refuses these; a NUL would hide from it what follows. */
	for (size_t i = 0; i < size; i++)
		if (!text[i])
			text[i] = NUL_MARK;
	text[size] = '\0';
	*textp = text;
	text = NULL;
	return 0;
}

const struct config_vm *config_find_vm(const struct config *config, const char *name)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (!strcmp(vm->name, name))
			return vm;
	return NULL;
}

const struct config_vm *config_vm_at(const struct config *config, unsigned int index)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (vm->index == index)
			return vm;
	return NULL;
}
