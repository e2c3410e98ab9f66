/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of shares in the store
 */

#include <string.h>

#include "keeper/share-key.h"
#include "test.h"
#include "vgpud/share-table.h"

#define N_HOLDERS 3

static struct share_holder holders[2][N_HOLDERS];
static struct share shares[2];

/* Two shares, with different values everywhere. */
static void set_up(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < N_HOLDERS; j++)
			holders[i][j] = (struct share_holder){ 10 * i + j, 1000 + j };
		memset(shares[i].token, 0x40 + (int)i, sizeof(shares[i].token));
		shares[i].holders = holders[i];
		shares[i].n_holders = N_HOLDERS;
	}
}

static uint64_t key_of(const char *section, size_t n, size_t first)
{
	struct share_key key;

	share_key_init(&key, section);
	for (size_t i = 0; i < n; i++)
		share_key_add(&key, &shares[i]);
	return share_key_get(&key, first);
}

/* That of what share-key.c says it hashes. */
static uint64_t expected(const uint8_t *bytes, size_t size)
{
	struct sha256_ctx context;
	uint8_t digest[SHA256_DIGEST_SIZE];
	uint64_t key;

	sha256_init(&context);
	sha256_update(&context, size, bytes);
	sha256_digest(&context, sizeof(digest), digest);
	memcpy(&key, digest, sizeof(key));
	return key;
}

TEST(it_is_the_beginning_of_a_sha256)
{
	const uint64_t numbers[] = { 1, 5, 77, 200 };
	uint8_t bytes[4 + CONTROL_TOKEN_SIZE + sizeof(numbers)] = "one";

	set_up();
	shares[0].n_holders = 1;
	holders[0][0] = (struct share_holder){ 5, 77 };
	memcpy(bytes + 4, shares[0].token, CONTROL_TOKEN_SIZE);
	memcpy(bytes + 4 + CONTROL_TOKEN_SIZE, numbers, sizeof(numbers));
	check_eq(key_of("one", 1, 200), expected(bytes, sizeof(bytes)));
}

TEST(all_that_can_change_is_in_it)
{
	uint64_t key;

	set_up();
	key = key_of("one", 2, 0);
	check_eq(key_of("one", 2, 0), key);
	check(key_of("two", 2, 0) != key);
	check(key_of("one", 2, 200) != key);
	check(key_of("one", 1, 0) != key);
	holders[1][2].cookie ^= 1;
	check(key_of("one", 2, 0) != key);
	holders[1][2].cookie ^= 1;
	holders[0][0].worker = 99;
	check(key_of("one", 2, 0) != key);
	holders[0][0].worker = 0;
	shares[1].token[CONTROL_TOKEN_SIZE - 1] ^= 0x80;
	check(key_of("one", 2, 0) != key);
	shares[1].token[CONTROL_TOKEN_SIZE - 1] ^= 0x80;
	check_eq(key_of("one", 2, 0), key);
}

/* A token may look like a holder. */
TEST(where_a_share_ends_is_in_it)
{
	uint64_t key;

	set_up();
	memset(shares[1].token, 0, sizeof(shares[1].token));
	memset(holders[1], 0, sizeof(holders[1]));
	holders[0][1] = (struct share_holder){ 0 };
	shares[0].n_holders = 1;
	shares[1].n_holders = 2;
	key = key_of("one", 2, 0);
	/* The same bytes but for the numbers of holders. */
	shares[0].n_holders = 2;
	shares[1].n_holders = 1;
	check(key_of("one", 2, 0) != key);
}

TEST(it_can_be_had_in_between)
{
	struct share_key key;

	set_up();
	share_key_init(&key, "one");
	share_key_add(&key, &shares[0]);
	check_eq(share_key_get(&key, 0), key_of("one", 1, 0));
	share_key_add(&key, &shares[1]);
	check_eq(share_key_get(&key, 200), key_of("one", 2, 200));
}
