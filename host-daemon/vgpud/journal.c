/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journal: log messages as entries of systemd's journal, with fields
 *
 * A message begins with the keys that it is about: "vm=one channel=3 pid=7: sentence", or
 * has them among its first words: "session opened vm=one channel=3 pid=7 ...". These are
 * fields of the entry as well, so that readers need no pattern.
 *
 * One datagram is one entry, in the journal's native protocol. libsystemd's functions
 * wait while the journal's queue is full, and vgpud must not wait for its log.
 */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/journal.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
/* A line of the log, and fields of bounded values. */
#define ENTRY_MAX 4096
/* Longest value of a field: the name of a VM. */
#define VALUE_MAX 64

static int journal_fd = -1;

/* Keys of messages and their fields. */
static const struct field {
	const char *key;
	const char *name;
	const char *allowed; /* characters of a value besides digits */
} fields[] = {
	{ "vm=", "VGPU_VM", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_." },
	{ "channel=", "VGPU_CHANNEL", "" },
	{ "pid=", "VGPU_PID", "" },
};

#define N_FIELDS (sizeof(fields) / sizeof(*fields))

static bool is_value(const struct field *field, const char *value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!isdigit((unsigned char)value[i]) &&
			(!value[i] || !strchr(field->allowed, value[i])))
			return false;
	return size && size < VALUE_MAX;
}

/* Adds the field of a word, once: what a guest has named comes after vgpud's own words.
 * Return: the number of bytes written. */
static size_t add_field(
	char *entry, size_t room, const char *word, size_t size, bool *hasp)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		const size_t key_size = strlen(fields[i].key);
		int n;

		if (hasp[i] || size <= key_size || strncmp(word, fields[i].key, key_size))
			continue;
		hasp[i] = true;
		if (!is_value(&fields[i], word + key_size, size - key_size))
			return 0;
		n = snprintf(entry, room, "%s=%.*s\n", fields[i].name,
			(int)(size - key_size), word + key_size);
		return n < 0 || (size_t)n >= room ? 0 : (size_t)n;
	}
	return 0;
}

/* A word that ends with a colon ends the keys. */
static size_t add_fields(char *entry, size_t room, const char *message)
{
	bool has[N_FIELDS] = { false }, is_last = false;
	size_t used = 0;

	while (*message && !is_last) {
		size_t size = strcspn(message, " ");
		const size_t whole = size;

		is_last = size && message[size - 1] == ':';
		size -= is_last;
		used += add_field(entry + used, room - used, message, size, has);
		message += whole + strspn(message + whole, " ");
	}
	return used;
}

/* As syslog(3) has them. */
static int priority_of(enum vgpu_log_level level)
{
	static const int priorities[_VGPU_LOG_N] = {
		[VGPU_LOG_NONE] = 6,
		[VGPU_LOG_ERROR] = 3,
		[VGPU_LOG_WARNING] = 4,
		[VGPU_LOG_INFO] = 6,
		[VGPU_LOG_DEBUG] = 7,
	};

	return priorities[level];
}

static bool send_entry(enum vgpu_log_level level, const char *ident, const char *message)
{
	char entry[ENTRY_MAX];
	size_t used;
	int n;

	n = snprintf(entry, sizeof(entry),
		"PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE=%s", priority_of(level),
		ident, message);
	if (n < 0 || (size_t)n >= sizeof(entry) - 1)
		return false;
	/* A newline would begin another field. */
	for (char *c = strstr(entry, "MESSAGE="); *c; c++)
		if (*c == '\n')
			*c = ' ';
	entry[n] = '\n';
	used = (size_t)n + 1;
	used += add_fields(entry + used, sizeof(entry) - used, message);
	return send(journal_fd, entry, used, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t)used;
}

int journal_open(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return vgpu_error_origin(-ENAMETOOLONG);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return vgpu_error_origin(-errno);
	vgpu_close(journal_fd);
	journal_fd = fd;
	fd = -1;
	vgpu_log_send_to(send_entry);
	return 0;
}

/* systemd names device and inode of the stream that it has made standard error. */
static bool is_connected(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

void journal_use(void)
{
	if (is_connected() && (journal_fd >= 0 || !journal_open(JOURNAL_SOCKET)))
		vgpu_log_send_to(send_entry);
	else
		vgpu_log_send_to(NULL);
}
