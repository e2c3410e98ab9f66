/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's object files registered
 */

#include <stdlib.h>

#include "runtime/registry.h"

#define FIRST_N_BUCKETS 64

static size_t hash(const void *key, size_t n_buckets)
{
	uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;

	return (size_t)(h >> 32) & (n_buckets - 1);
}

/* Twice the buckets, so that chains stay short. Order within a chain is kept, because
 * the symbol added last is to be found. */
static bool grow(struct rt_registry *registry)
{
	size_t n = registry->n_buckets ? 2 * registry->n_buckets : FIRST_N_BUCKETS;
	struct rt_symbol **buckets = calloc(n, sizeof(buckets[0]));

	if (!buckets)
		return false;
	for (size_t i = 0; i < registry->n_buckets; i++) {
		struct rt_symbol *next, *reversed = NULL;

		for (struct rt_symbol *s = registry->buckets[i]; s; s = next) {
			next = s->next_in_bucket;
			s->next_in_bucket = reversed;
			reversed = s;
		}
		for (struct rt_symbol *s = reversed; s; s = next) {
			struct rt_symbol **bucket = &buckets[hash(s->key, n)];

			next = s->next_in_bucket;
			s->next_in_bucket = *bucket;
			*bucket = s;
		}
	}
	free(registry->buckets);
	registry->buckets = buckets;
	registry->n_buckets = n;
	return true;
}

struct rt_image *rt_registry_add_image(struct rt_registry *registry, void *wrapper)
{
	struct rt_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->wrapper = wrapper;
	image->next = registry->images;
	registry->images = image;
	return image;
}

struct rt_symbol *rt_registry_add(
	struct rt_registry *registry, const struct rt_symbol *symbol)
{
	struct rt_symbol *copy, **bucket;

	if (registry->n_symbols >= registry->n_buckets && !grow(registry))
		return NULL;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *symbol;
	bucket = &registry->buckets[hash(copy->key, registry->n_buckets)];
	copy->next_in_bucket = *bucket;
	*bucket = copy;
	if (copy->image) {
		copy->next_in_image = copy->image->symbols;
		copy->image->symbols = copy;
	}
	registry->n_symbols++;
	return copy;
}

struct rt_symbol *rt_registry_find(
	const struct rt_registry *registry, enum rt_symbol_kind kind, const void *key)
{
	if (!registry->n_buckets)
		return NULL;
	for (struct rt_symbol *s = registry->buckets[hash(key, registry->n_buckets)]; s;
		s = s->next_in_bucket) {
		if (s->key == key && s->kind == kind)
			return s;
	}
	return NULL;
}

/* Unlinks the symbol from its bucket, and frees it. */
static void remove_symbol(struct rt_registry *registry, struct rt_symbol *symbol)
{
	struct rt_symbol **link =
		&registry->buckets[hash(symbol->key, registry->n_buckets)];

	while (*link != symbol)
		link = &(*link)->next_in_bucket;
	*link = symbol->next_in_bucket;
	registry->n_symbols--;
	free(symbol);
}

bool rt_registry_remove_image(struct rt_registry *registry, struct rt_image *image)
{
	struct rt_image **link = &registry->images;
	struct rt_symbol *next;

	while (*link && *link != image)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = image->next;
	for (struct rt_symbol *s = image->symbols; s; s = next) {
		next = s->next_in_image;
		remove_symbol(registry, s);
	}
	free(image);
	return true;
}

void rt_registry_remove_kernels(struct rt_registry *registry, CUlibrary library)
{
	for (size_t i = 0; i < registry->n_buckets; i++) {
		struct rt_symbol *next;

		for (struct rt_symbol *s = registry->buckets[i]; s; s = next) {
			next = s->next_in_bucket;
			if (s->kind == RT_KERNEL && !s->image && s->library == library)
				remove_symbol(registry, s);
		}
	}
}

void rt_registry_deinit(struct rt_registry *registry)
{
	while (registry->images)
		rt_registry_remove_image(registry, registry->images);
	for (size_t i = 0; i < registry->n_buckets; i++) {
		while (registry->buckets[i])
			remove_symbol(registry, registry->buckets[i]);
	}
	free(registry->buckets);
	*registry = (struct rt_registry){ 0 };
}
