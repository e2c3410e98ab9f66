/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol table
 *
 * Buckets chain entries by index, newest first. Growing re-inserts all entries
 * from the oldest on, which keeps that order; therefore the newest entry of the
 * table is always the head of its bucket and can be removed without a search.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "vgpu/error.h"

#include "ptx/arena.h"
#include "ptx/module.h"
#include "ptx/names.h"

#define BUCKETS_MIN 64u

struct ptx_names {
	struct ptx_array entries; /* struct ptx_name */
	uint32_t *buckets;	  /* position + 1, 0: empty */
	uint32_t n_buckets;	  /* a power of two */
	uint64_t sizes;		  /* a bit for each size that a name here ever had */
};

static uint64_t hash_key[2];
static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;

/* Without random numbers the clock must do: collisions cost time, not safety. */
static void init_hash_key(void)
{
	if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) !=
		(ssize_t)sizeof(hash_key))
		hash_key[0] ^= (uint64_t)clock() ^ (uint64_t)time(NULL) << 32;
}

static inline uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/* SipHash-1-3 of the name and its space. */
static uint64_t hash_name(const char *text, uint32_t size, uint32_t space)
{
	uint64_t v[4] = {
		hash_key[0] ^ 0x736f6d6570736575,
		hash_key[1] ^ 0x646f72616e646f6d,
		hash_key[0] ^ 0x6c7967656e657261,
		hash_key[1] ^ 0x7465646279746573,
	};
	uint64_t word = (uint64_t)space << 32 | size;
	uint32_t left = size;

	for (;;) {
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
		if (!left)
			break;
		word = 0;
		memcpy(&word, text + (size - left), left < 8 ? left : 8);
		left -= left < 8 ? left : 8;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Most names that are looked for in vain have a size that none here has. */
static uint64_t bit_of_size(uint32_t size)
{
	return 1ull << (size < 63 ? size : 63);
}

struct ptx_names *ptx_names_new(void)
{
	struct ptx_names *names = calloc(1, sizeof(*names));

	pthread_once(&hash_key_once, init_hash_key);
	if (!names)
		return NULL;
	names->n_buckets = BUCKETS_MIN;
	names->buckets = calloc(names->n_buckets, sizeof(*names->buckets));
	if (!names->buckets)
		return ptx_names_free(names);
	return names;
}

struct ptx_names *ptx_names_free(struct ptx_names *names)
{
	if (!names)
		return NULL;
	ptx_array_deinit(&names->entries);
	free(names->buckets);
	free(names);
	return NULL;
}

struct ptx_name *ptx_names_at(const struct ptx_names *names, uint32_t position)
{
	return (struct ptx_name *)names->entries.items + position;
}

uint32_t ptx_names_count(const struct ptx_names *names)
{
	return names->entries.n;
}

static void link_entry(struct ptx_names *names, uint32_t position)
{
	struct ptx_name *entry = ptx_names_at(names, position);
	uint32_t *bucket = &names->buckets[entry->bucket & (names->n_buckets - 1)];

	entry->next = *bucket;
	*bucket = position + 1;
}

static int grow(struct ptx_names *names)
{
	uint32_t n = names->n_buckets * 4;
	uint32_t *buckets = calloc(n, sizeof(*buckets));

	if (!buckets)
		return vgpu_error_origin(-ENOMEM);
	free(names->buckets);
	names->buckets = buckets;
	names->n_buckets = n;
	for (uint32_t i = 0; i < names->entries.n; i++)
		link_entry(names, i);
	return 0;
}

int ptx_names_add(struct ptx_names *names, const struct ptx_name *name)
{
	struct ptx_name *entry;
	int r;

	if (names->entries.n >= names->n_buckets && names->n_buckets < 1u << 28) {
		r = grow(names);
		if (r)
			return vgpu_error_trace(r);
	}
	entry = ptx_array_push(&names->entries, 1, sizeof(*entry));
	if (!entry)
		return vgpu_error_origin(-ENOMEM);
	*entry = *name;
	names->sizes |= bit_of_size(name->size);
	entry->bucket = (uint32_t)hash_name(name->text, name->size, name->space);
	link_entry(names, names->entries.n - 1);
	return 0;
}

/* Follows a chain from an entry on. */
static uint32_t search(const struct ptx_names *names, uint32_t at, uint32_t hash,
	const char *text, uint32_t size, uint32_t space)
{
	const struct ptx_name *entry;

	for (; at; at = entry->next) {
		entry = ptx_names_at(names, at - 1);
		if (entry->bucket == hash && entry->size == size &&
			entry->space == space && !memcmp(entry->text, text, size))
			break;
	}
	return at;
}

uint32_t ptx_names_find(
	const struct ptx_names *names, const char *text, uint32_t size, uint32_t space)
{
	uint32_t hash;

	if (!(names->sizes & bit_of_size(size)))
		return 0;
	hash = (uint32_t)hash_name(text, size, space);
	return search(names, names->buckets[hash & (names->n_buckets - 1)], hash, text,
		size, space);
}

uint32_t ptx_names_find_older(const struct ptx_names *names, uint32_t position)
{
	const struct ptx_name *entry = ptx_names_at(names, position);

	return search(names, entry->next, entry->bucket, entry->text, entry->size,
		entry->space);
}

void ptx_names_cut(struct ptx_names *names, uint32_t n)
{
	while (names->entries.n > n) {
		struct ptx_name *entry = ptx_names_at(names, --names->entries.n);

		names->buckets[entry->bucket & (names->n_buckets - 1)] = entry->next;
	}
}
