/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of vgpud
 *
 * The file is parsed once, by the keeper; a broker that is started later gets the same
 * text again, so that both always speak of the same VMs. Every key stands in one
 * of two tables with the function that checks its value. The first mistake
 * ends the parse, because what follows is often only its consequence.
 */

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

#include "broker/config.h"
#include "broker/layout.h"
#include "vgpu/error.h"

/* Files of configuration are read by people: larger ones are a mistake. */
#define CONFIG_TEXT_MAX (1u << 20)
#define CONFIG_VMS_MAX 1024u
#define CONFIG_WORKERS_MAX 4096u
/* What one softgpu can be: MEMORY_DEVICES_MAX there. */
#define CONFIG_SOFTGPU_DEVICES_MAX 8u
#define CONFIG_RATE_MAX 1000u
#define CONFIG_LINES_MAX 100000u
/* Guest processes of a socket at a time, and workers in all, unless told otherwise. */
#define CONFIG_SOCKET_PROCESSES 64u
#define CONFIG_WORKERS 128u
/* What a VM may do unless the file says otherwise. */
#define CONFIG_RATE 20u
/* As many as a worker has room for. */
#define CONFIG_HANDLES (1u << 18)
#define CONFIG_IMAGE_MEMORY (4ull << 30)
#define CONFIG_IMAGE_STORE (1ull << 30)
#define CONFIG_LINES 200u
/* Longest name inih hands over uncut (its MAX_SECTION and MAX_NAME, less the NUL). */
#define CONFIG_NAME_MAX 48

struct parser {
	struct config *config;
	struct config_vm *vm; /* of the section at hand, NULL in [vgpud] */
	const char *name;
	const char *rest; /* text not yet read */
	int line;	  /* of what was read last */
	char section[64];
	char *error;
	bool no_memory;
};

typedef int (*parse_fn)(struct parser *parser, void *field, const char *value);

struct key {
	const char *name;
	size_t offset;
	parse_fn parse;
};

/* Notes the first mistake. Returns: CONFIG_E_INVALID. */
static int __attribute__((__format__(__printf__, 3, 4)))
mistake(struct parser *parser, int line, const char *format, ...)
{
	char *reason = NULL;
	va_list ap;

	if (parser->error)
		return CONFIG_E_INVALID;
	va_start(ap, format);
	if (vasprintf(&reason, format, ap) < 0)
		reason = NULL;
	va_end(ap);
	if (!reason ||
		asprintf(&parser->error, "%s:%d: %s", parser->name, line, reason) < 0) {
		parser->error = NULL;
		parser->no_memory = true;
	}
	free(reason);
	return CONFIG_E_INVALID;
}

static int invalid(struct parser *parser, const char *format, const char *value)
{
	char reason[256];

	snprintf(reason, sizeof(reason), format, value);
	return mistake(parser, parser->line, "%s", reason);
}

int config_parse_size(const char *string, uint64_t *sizep)
{
	static const char units[] = "KMGT";
	unsigned long long number;
	unsigned int shift = 0;
	const char *unit;
	char *end;

	if (*string < '0' || *string > '9')
		return -EINVAL;
	errno = 0;
	number = strtoull(string, &end, 10);
	if (errno)
		return -EINVAL;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (unit - units + 1);
	}
	if (number > UINT64_MAX >> shift)
		return -EINVAL;
	*sizep = (uint64_t)number << shift;
	return 0;
}

static int parse_string(struct parser *parser, void *field, const char *value)
{
	char **stringp = field, *string;

	if (!*value)
		return mistake(parser, parser->line, "the value is empty");
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

static int parse_socket(struct parser *parser, void *field, const char *value)
{
	struct sockaddr_un address;
	struct config_vm *vm;

	/* The lock file beside it is named SOCKET.lock. */
	if (strlen(value) >= sizeof(address.sun_path))
		return invalid(parser,
			"the path of a socket has at most 107 characters, "
			"\"%s\" has more",
			value);
	TAILQ_FOREACH(vm, &parser->config->vms, entry)
		if (vm->socket && !strcmp(vm->socket, value))
			return mistake(parser, parser->line,
				"socket %s is the one of [vm %s] already", value,
				vm->name);
	return parse_path(parser, field, value);
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
		return mistake(parser, parser->line,
			"\"%s\" is not a number from %u to %u", value, min, max);
	*numberp = number;
	return 0;
}

static int parse_warm(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 0, CONFIG_WORKERS_MAX);
}

static int parse_rate(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 1, CONFIG_RATE_MAX);
}

static int parse_handles(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 16, CONFIG_HANDLES);
}

static int parse_lines(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 1, CONFIG_LINES_MAX);
}

static int parse_count(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 1, CONFIG_WORKERS_MAX);
}

/* A day is as good as for ever; 0 says so. */
static int parse_kernel_timeout(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 0, 86400);
}

static int parse_devices(struct parser *parser, void *field, const char *value)
{
	return parse_number(parser, field, value, 1, CONFIG_SOFTGPU_DEVICES_MAX);
}

static int parse_yes_no(struct parser *parser, void *field, const char *value)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return invalid(parser, "\"%s\" is neither yes nor no", value);
	*(bool *)field = !strcmp(value, "yes");
	return 0;
}

/* Below are the users of people and services, above are those of containers. */
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
	if (config_parse_size(value, field) < 0 || !*(uint64_t *)field)
		return invalid(
			parser, "\"%s\" is not a size like 4G, 512M or 65536", value);
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

static const struct key vgpud_keys[] = {
	VGPUD_KEY("driver", driver, parse_driver),
	VGPUD_KEY("worker", worker, parse_path),
	VGPUD_KEY("softgpu", softgpu, parse_path),
	VGPUD_KEY("null-driver", null_driver, parse_path),
	VGPUD_KEY("log-file", log_file, parse_path),
	VGPUD_KEY("log-level", log_level, parse_level),
	VGPUD_KEY("warm-workers", warm_workers, parse_warm),
	VGPUD_KEY("max-workers", max_workers, parse_count),
	VGPUD_KEY("sandbox", sandbox, parse_yes_no),
	VGPUD_KEY("allow-unprivileged", allow_unprivileged, parse_yes_no),
	VGPUD_KEY("worker-uids", worker_uids, parse_uids),
	VGPUD_KEY("softgpu-name", softgpu_name, parse_string),
	VGPUD_KEY("softgpu-cc", softgpu_cc, parse_cc),
	VGPUD_KEY("softgpu-memory", softgpu_memory, parse_bytes),
	VGPUD_KEY("softgpu-threads", softgpu_threads, parse_count),
	VGPUD_KEY("softgpu-kernel-timeout", softgpu_kernel_timeout, parse_kernel_timeout),
	VGPUD_KEY("softgpu-devices", softgpu_devices, parse_devices),
	{ 0 },
};

static const struct key vm_keys[] = {
	VM_KEY("transport", transport, parse_transport),
	VM_KEY("socket", socket, parse_socket),
	VM_KEY("memory", memory, parse_path),
	VM_KEY("memory-owner", memory_owner, parse_owner),
	VM_KEY("size", size, parse_shm_size),
	VM_KEY("device-memory", device_memory, parse_bytes),
	VM_KEY("image-memory", image_memory, parse_bytes),
	VM_KEY("image-store", image_store, parse_bytes),
	VM_KEY("host-memory", host_memory, parse_bytes),
	VM_KEY("handles", handles, parse_handles),
	VM_KEY("max-processes", max_processes, parse_count),
	VM_KEY("process-rate", process_rate, parse_rate),
	VM_KEY("log-lines", log_lines, parse_lines),
	VM_KEY("socket-mode", socket_mode, parse_mode),
	VM_KEY("socket-group", socket_group, parse_group),
	{ 0 },
};

const char *config_transport_name(enum config_transport transport)
{
	static const char *const names[_CONFIG_TRANSPORT_N] = {
		[CONFIG_IVSHMEM] = "ivshmem",
		[CONFIG_SOCKET] = "socket",
		[CONFIG_PLAIN] = "plain",
	};

	return names[transport];
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
			return mistake(parser, parser->line,
				"there is a [vm %s] in line %d already", name, vm->line);
	if (parser->config->n_vms == CONFIG_VMS_MAX)
		return mistake(parser, parser->line, "more than %u VMs", CONFIG_VMS_MAX);

	vm = calloc(1, sizeof(*vm));
	if (!vm) {
		parser->no_memory = true;
		return CONFIG_E_INVALID;
	}
	snprintf(vm->name, sizeof(vm->name), "%s", name);
	vm->index = parser->config->n_vms++;
	vm->line = parser->line;
	vm->size = 4ull << 30;
	vm->handles = CONFIG_HANDLES;
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
	return 0;
}

static int enter_section(struct parser *parser, const char *section)
{
	if (strlen(section) > CONFIG_NAME_MAX)
		return invalid(parser, "the section name \"%s\" is too long", section);
	snprintf(parser->section, sizeof(parser->section), "%s", section);
	parser->vm = NULL;
	if (!strcmp(section, "vgpud"))
		return 0;
	if (!strncmp(section, "vm ", 3))
		return add_vm(parser, section + 3);
	return *section ? invalid(parser,
				  "there is no section [%s], only [vgpud] and "
				  "[vm NAME]",
				  section)
			: mistake(parser, parser->line, "a key before the first section");
}

/* inih's handler. Returns: 1 if all is well. */
static int handle_key(
	void *userdata, const char *section, const char *name, const char *value)
{
	struct parser *parser = userdata;
	const struct key *key;
	char *base;

	if (parser->error || parser->no_memory)
		return 0;
	if (strcmp(section, parser->section) || !*section)
		if (enter_section(parser, section))
			return 0;
	base = parser->vm ? (char *)parser->vm : (char *)parser->config;
	for (key = parser->vm ? vm_keys : vgpud_keys; key->name; key++)
		if (!strcmp(key->name, name))
			return !key->parse(parser, base + key->offset, value);
	mistake(parser, parser->line, "there is no key \"%s\" in [%s]", name, section);
	return 0;
}

/* inih's reader: one line each time. */
static char *read_line(char *line, int size, void *userdata)
{
	struct parser *parser = userdata;
	size_t n = strcspn(parser->rest, "\n");

	if (!*parser->rest)
		return NULL;
	parser->line++;
	if (n > (size_t)size - 2) {
		mistake(parser, parser->line, "the line has more than %d characters",
			size - 2);
		n = size - 2;
	}
	memcpy(line, parser->rest, n);
	line[n] = '\n';
	line[n + 1] = '\0';
	parser->rest += strcspn(parser->rest, "\n");
	parser->rest += *parser->rest == '\n';
	return line;
}

/* An ivshmem device has a doorbell for each of so many channels; a process on a socket
 * has memory and doorbells of its own, so there the number is free. */
static void complete_max_processes(struct config_vm *vm)
{
	if (!vm->max_processes)
		vm->max_processes = vm->transport == CONFIG_SOCKET
					    ? CONFIG_SOCKET_PROCESSES
					    : VGPU_CHANNELS_MAX;
}

static int check_vm(struct parser *parser, struct config_vm *vm)
{
	complete_max_processes(vm);
	if (vm->transport == CONFIG_PLAIN && !vm->memory)
		return mistake(parser, vm->line,
			"[vm %s] with transport = plain needs memory = "
			"PATH",
			vm->name);
	if (vm->transport == CONFIG_PLAIN && vm->socket)
		return mistake(parser, vm->line,
			"[vm %s] with transport = plain has no socket", vm->name);
	if (vm->transport != CONFIG_PLAIN && !vm->socket)
		return mistake(parser, vm->line, "[vm %s] needs socket = PATH", vm->name);
	if (vm->transport != CONFIG_PLAIN && vm->memory)
		return mistake(parser, vm->line,
			"[vm %s] has memory = PATH, which is for transport = plain",
			vm->name);
	if (vm->transport != CONFIG_PLAIN && vm->memory_owner != (uid_t)-1)
		return mistake(parser, vm->line,
			"[vm %s] has memory-owner, which is for transport = plain",
			vm->name);
	return 0;
}

static int check_all(struct parser *parser)
{
	struct config_vm *vm;
	int r;

	TAILQ_FOREACH(vm, &parser->config->vms, entry) {
		r = check_vm(parser, vm);
		if (r)
			return r;
	}
	if (parser->config->worker_uids.last - parser->config->worker_uids.first + 1 <
		parser->config->max_workers)
		return mistake(parser, parser->line,
			"worker-uids has fewer numbers than max-workers = %u",
			parser->config->max_workers);
	if (!parser->config->n_vms)
		return mistake(
			parser, parser->line, "there is no [vm NAME] section with keys");
	return 0;
}

static struct config *config_new(void)
{
	struct config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	TAILQ_INIT(&config->vms);
	config->log_level = VGPU_LOG_INFO;
	config->warm_workers = 1;
	config->max_workers = CONFIG_WORKERS;
	config->sandbox = true;
	config->worker_uids = (struct config_range){ 70000, 74095 };
	config->driver = strdup("auto");
	return config->driver ? config : config_free(config);
}

int config_new_from_text(
	struct config **configp, const char *name, const char *text, char **errorp)
{
	_vgpu_cleanup_(config_freep) struct config *config = config_new();
	struct parser parser = { .config = config, .name = name, .rest = text };
	int line;

	*errorp = NULL;
	if (!config)
		return vgpu_error_origin(-ENOMEM);
	line = ini_parse_stream(read_line, &parser, handle_key, &parser);
	if (line > 0 && !parser.error)
		mistake(&parser, line, "neither [SECTION] nor KEY = VALUE nor a comment");
	if (!parser.error && !parser.no_memory)
		check_all(&parser);
	if (parser.no_memory || line < -1) {
		free(parser.error);
		return vgpu_error_origin(-ENOMEM);
	}
	if (parser.error) {
		*errorp = parser.error;
		return CONFIG_E_INVALID;
	}
	*configp = config;
	config = NULL;
	return 0;
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
		free(vm);
	}
	free(config->driver);
	free(config->worker);
	free(config->softgpu);
	free(config->null_driver);
	free(config->log_file);
	free(config->softgpu_name);
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
	text[size] = '\0';
	*textp = text;
	text = NULL;
	return 0;
}

const struct config_vm *config_vm_at(const struct config *config, unsigned int index)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &config->vms, entry)
		if (vm->index == index)
			return vm;
	return NULL;
}
