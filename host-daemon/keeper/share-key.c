/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Share key: by which the store finds out whether a piece of a section's shares has
 * changed
 *
 * What is hashed, with numbers in the host's byte order: the section's name with its NUL;
 * of each share the token, the number of holders as 8 bytes, and of each holder worker
 * and cookie as 8 bytes; and the number of the piece's first share as 8 bytes.
 */

#include <string.h>

#include "keeper/share-key.h"
#include "vgpud/share-table.h"

static void add_number(struct sha256_ctx *context, uint64_t number)
{
	sha256_update(context, sizeof(number), (const uint8_t *)&number);
}

void share_key_init(struct share_key *key, const char *section)
{
	sha256_init(&key->context);
	sha256_update(&key->context, strlen(section) + 1, (const uint8_t *)section);
}

void share_key_add(struct share_key *key, const struct share *share)
{
	sha256_update(&key->context, sizeof(share->token), share->token);
	add_number(&key->context, share->n_holders);
	for (uint32_t i = 0; i < share->n_holders; i++) {
		add_number(&key->context, share->holders[i].worker);
		add_number(&key->context, share->holders[i].cookie);
	}
}

uint64_t share_key_get(const struct share_key *key, size_t first)
{
	struct sha256_ctx context = key->context;
	uint64_t result;

	add_number(&context, first);
	sha256_digest(&context, sizeof(result), (uint8_t *)&result);
	return result;
}
