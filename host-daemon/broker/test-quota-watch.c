/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers of a VM may have, after limits that change, and what is in their files
 */

#include "broker/quota-watch.h"
#include "control/control.h"
#include "test.h"

TEST(a_vm_may_have_its_limit)
{
	check_eq(quota_watch_ceiling(UINT64_MAX, 100, 0), 100);
	check_eq(quota_watch_ceiling(100, 100, 100), 100);
	check_eq(quota_watch_ceiling(100, 200, 0), 200);
	check_eq(quota_watch_ceiling(100, 0, 0), UINT64_MAX);
}

TEST(what_exceeds_a_lower_limit_may_stay_until_it_is_freed)
{
	uint64_t ceiling = quota_watch_ceiling(UINT64_MAX, 40, 100);

	check_eq(ceiling, 100);
	ceiling = quota_watch_ceiling(ceiling, 40, 70);
	check_eq(ceiling, 70);
	/* Nothing new, whatever a worker says. */
	check_eq(quota_watch_ceiling(ceiling, 40, UINT64_MAX), 70);
	ceiling = quota_watch_ceiling(ceiling, 40, 10);
	check_eq(ceiling, 40);
	check_eq(quota_watch_ceiling(ceiling, 40, 100), 40);
}

TEST(the_rest_of_a_file_is_no_device_memory)
{
	check_eq(quota_watch_in_file(WORKER_STATS_SIZE, WORKER_FILE_SIZE), 0);
	check_eq(quota_watch_in_file(0, WORKER_FILE_SIZE), 0);
	check_eq(quota_watch_in_file(
			 WORKER_FILE_SIZE - WORKER_MEMORY_SIZE + 4096, WORKER_FILE_SIZE),
		4096);
	/* One that is of an earlier build, or later. */
	check_eq(quota_watch_in_file(8192, 4096), 8192);
	check_eq(quota_watch_in_file(1 << 20, WORKER_FILE_SIZE + (1 << 20)), 0);
}
