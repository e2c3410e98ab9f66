/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes in the configuration
 */

#include "test.h"
#include "vgpud/config.h"

static uint64_t parse(const char *string)
{
	uint64_t size = 12345;

	check_eq(config_parse_size(string, &size), 0);
	return size;
}

static bool is_refused(const char *string)
{
	uint64_t size = 12345;
	int result = config_parse_size(string, &size);

	/* A refused size changes nothing. */
	check(!result || size == 12345);
	return result == CONFIG_E_INVALID;
}

TEST(a_number_without_a_unit_is_in_bytes)
{
	check_eq(parse("0"), 0);
	check_eq(parse("65536"), 65536);
	check_eq(parse("0010"), 10);
}

TEST(units_are_powers_of_1024)
{
	check_eq(parse("1K"), 1ll << 10);
	check_eq(parse("512M"), 512ll << 20);
	check_eq(parse("4G"), 4ll << 30);
	check_eq(parse("3T"), 3ll << 40);
	check_eq(parse("0T"), 0);
}

TEST(only_a_number_and_one_unit_are_a_size)
{
	check(is_refused(""));
	check(is_refused("M"));
	check(is_refused("-1"));
	check(is_refused("+1"));
	check(is_refused(" 1"));
	check(is_refused("1 "));
	check(is_refused("1 G"));
	check(is_refused("1GB"));
	check(is_refused("1g"));
	check(is_refused("1P"));
	check(is_refused("1.5G"));
	check(is_refused("0x10"));
	check(is_refused("1G\n"));
}

TEST(a_size_that_64_bits_cannot_hold_is_refused)
{
	check(parse("18446744073709551615") == UINT64_MAX);
	check(is_refused("18446744073709551616"));
	check(is_refused("99999999999999999999999999"));
	check(parse("16777215T") == 16777215ull << 40);
	check(is_refused("16777216T"));
	check(is_refused("18014398509481984K"));
}
