/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doorbells
 */

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "broker/doorbell.h"
#include "test.h"

TEST(all_rings_are_taken)
{
	const uint64_t one = 1;
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t count;

	check_eq(write(fd, &one, 8), 8);
	check_eq(write(fd, &one, 8), 8);
	check_eq(doorbell_take(fd), 0);
	check(read(fd, &count, 8) < 0);
	close(fd);
}

TEST_SECONDS(a_guest_that_makes_the_read_sleep_does_not_stop_us, 5)
{
	int fd = eventfd(0, EFD_NONBLOCK), theirs = dup(fd);

	check_eq(fcntl(theirs, F_SETFL, 0), 0);
	check_eq(doorbell_take(fd), 0);
	close(theirs);
	close(fd);
}
