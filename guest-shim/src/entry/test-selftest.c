/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start-up question of the CUDA runtime
 */

#include <string.h>

#include "test.h"

#include "entry/selftest.h"

static const char *hmac(const char *key, const char *message)
{
	static char text[2 * SHIM_SELFTEST_REPLY_SIZE + 1];
	uint8_t digest[SHIM_SELFTEST_REPLY_SIZE];

	shim_selftest_hmac_md2((const uint8_t *)key, strlen(key),
		(const uint8_t *)message, strlen(message), digest);
	for (int i = 0; i < SHIM_SELFTEST_REPLY_SIZE; i++)
		sprintf(text + 2 * i, "%02x", digest[i]);
	return text;
}

/* Computed by another implementation, one that agrees with the examples of RFC 1319. */
TEST(the_digest_is_hmac_md2)
{
	check_str(hmac("key", ""), "7bf1ff992bec5708c70f0db5d5054486");
	check_str(hmac("key", "The quick brown fox jumps over the lazy dog"),
		"13758b9534bfb38d850457814613b0c1");
}

TEST(the_table_begins_with_its_size)
{
	const size_t *table = shim_selftest_table();

	check(table);
	check_eq(table[0], 3 * sizeof(void *));
}
