/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests: the host's names for images of earlier processes
 *
 * The file is a table of records of one size. A key can be in one set of places only, so
 * the file never grows, and a search reads just that set. Processes write concurrently
 * and without a lock: each record has a checksum, and one that is torn, truncated or of
 * another version is ignored.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#include "code/digests.h"
#include "process/environment.h"

#define FOLDER "vgpu"
#define FILE_NAME "images"
/* Changes with the record, and with what a digest is computed over. */
#define VERSION 0x7667707564670001ull

#define N_SETS 256u
#define N_WAYS 8u

struct record {
	struct shim_digest_key key;
	uint8_t digest[VGPU_LOAD_DIGEST_SIZE];
	uint64_t flags;
	uint64_t sum;
};

#define RECORD_SILENT 1u

static_assert(sizeof(struct record) == 128, "the size of a record in the file");

/* FNV-1a: against chance, not against an enemy, who cannot write here. */
static uint64_t sum_of(const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t sum = 0xcbf29ce484222325ull ^ VERSION;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3ull;
	return sum;
}

static bool is_valid(const struct record *record)
{
	return record->sum == sum_of(record, offsetof(struct record, sum));
}

/* Whether the user owns it, and no one else can change it. */
static bool is_own(int fd, mode_t type)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && (st.st_mode & S_IFMT) == type &&
	       st.st_uid == geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO));
}

/* Return: the parent folder, created if it is the user's cache, or -1. */
static int open_parent(void)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	_vgpu_cleanup_(vgpu_freep) char *made = NULL;

	if (runtime && *runtime == '/')
		return open(runtime, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!cache || *cache != '/') {
		if (!home || *home != '/' || asprintf(&made, "%s/.cache", home) < 0)
			return -1;
		cache = made;
	}
	if (mkdir(cache, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(cache, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Opened anew each time: a descriptor that is kept is not safe from programs that close
 * what they do not know. Return: the descriptor, or -1. */
static int open_file(int flags)
{
	_vgpu_cleanup_(vgpu_closep) int parent = -1, folder = -1;
	int fd;

	if (!shim_environment.remembers_images)
		return -1;
	parent = open_parent();
	if (parent < 0)
		return -1;
	if (flags & O_CREAT && mkdirat(parent, FOLDER, 0700) < 0 && errno != EEXIST)
		return -1;
	folder = openat(parent, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!is_own(folder, S_IFDIR))
		return -1;
	fd = openat(folder, FILE_NAME,
		flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	return is_own(fd, S_IFREG) ? fd : vgpu_close(fd);
}

static off_t place_of(const struct shim_digest_key *key)
{
	return (off_t)(sum_of(key, sizeof(*key)) % N_SETS * N_WAYS *
		       sizeof(struct record));
}

/* Reads the places that a key can be in; what is not there is no record. */
static bool read_set(int fd, const struct shim_digest_key *key, struct record set[N_WAYS])
{
	memset(set, 0, N_WAYS * sizeof(*set));
	return pread(fd, set, N_WAYS * sizeof(*set), place_of(key)) >= 0;
}

/* Return: the place of a key in its set, or -1. */
static int find_record(const struct record set[N_WAYS], const struct shim_digest_key *key)
{
	for (unsigned int i = 0; i < N_WAYS; i++)
		if (is_valid(&set[i]) && !memcmp(&set[i].key, key, sizeof(*key)))
			return (int)i;
	return -1;
}

bool shim_digests_find(const struct shim_digest_key *key, struct shim_digest *digest)
{
	_vgpu_cleanup_(vgpu_closep) int fd = open_file(O_RDONLY);
	struct record set[N_WAYS];
	int i;

	if (fd < 0 || !read_set(fd, key, set))
		return false;
	i = find_record(set, key);
	if (i < 0)
		return false;
	memcpy(digest->bytes, set[i].digest, VGPU_LOAD_DIGEST_SIZE);
	digest->is_silent = set[i].flags & RECORD_SILENT;
	return true;
}

/* The place of the same key, or a free one, or that of any other key. */
static unsigned int choose_place(
	const struct record set[N_WAYS], const struct record *record)
{
	int found = find_record(set, &record->key);

	if (found >= 0)
		return (unsigned int)found;
	for (unsigned int i = 0; i < N_WAYS; i++)
		if (!is_valid(&set[i]))
			return i;
	return (record->sum >> 32) % N_WAYS;
}

void shim_digests_remember(
	const struct shim_digest_key *key, const struct shim_digest *digest)
{
	_vgpu_cleanup_(vgpu_closep) int fd = open_file(O_RDWR | O_CREAT);
	struct record set[N_WAYS], record = { .key = *key };
	off_t place;

	if (fd < 0 || !read_set(fd, key, set))
		return;
	memcpy(record.digest, digest->bytes, VGPU_LOAD_DIGEST_SIZE);
	record.flags = digest->is_silent ? RECORD_SILENT : 0;
	record.sum = sum_of(&record, offsetof(struct record, sum));
	place = place_of(key) +
		(off_t)(choose_place(set, &record) * sizeof(struct record));
	if (pwrite(fd, &record, sizeof(record), place) != (ssize_t)sizeof(record))
		vgpu_log_debug("the digest of an image cannot be written down: %m");
}
