/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that stand for memory
 */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/token-file.h"
#include "test.h"

static const struct shim_token token = {
	.kind = SHIM_TOKEN_MEMORY,
	.device = 3,
	.bytes = "0123456789abcde",
};

TEST(a_token_is_read_by_whoever_has_the_descriptor)
{
	int fd = shim_token_file_new(&token), other;
	struct shim_token seen;

	check(fd >= 0);
	check(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	other = dup(fd);
	close(fd);
	/* Its position does not matter. */
	check_eq(lseek(other, 5, SEEK_SET), 5);
	check(shim_token_file_read(other, SHIM_TOKEN_MEMORY, &seen));
	check(!memcmp(&seen, &token, sizeof(token)));
	check(!shim_token_file_read(other, SHIM_TOKEN_POOL, &seen));
	/* It cannot be changed into another one. */
	check_eq(pwrite(other, "x", 1, 0), -1);
	close(other);
}

TEST(other_descriptors_are_refused)
{
	struct shim_token seen;
	int fd, ends[2];

	check(!shim_token_file_read(-1, SHIM_TOKEN_MEMORY, &seen));
	check_eq(pipe(ends), 0);
	check(!shim_token_file_read(ends[0], SHIM_TOKEN_MEMORY, &seen));
	close(ends[0]);
	close(ends[1]);
	fd = memfd_create("test", MFD_CLOEXEC);
	check(fd >= 0);
	check(!shim_token_file_read(fd, SHIM_TOKEN_MEMORY, &seen));
	check_eq(write(fd, "vGPUtokn", 8), 8);
	check(!shim_token_file_read(fd, SHIM_TOKEN_MEMORY, &seen));
	check_eq(ftruncate(fd, 4096), 0);
	check(!shim_token_file_read(fd, SHIM_TOKEN_MEMORY, &seen));
	close(fd);
}
