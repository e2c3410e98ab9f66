/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between keeper and broker
 */

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/layout.h"
#include "vgpud/link.h"

#define N_FDS 20

static int pair[2];

static void send_many(void)
{
	const struct link_message message = {
		.type = LINK_VM,
		.id = 7,
		.vm = {
			.n_doorbells = N_FDS / 2,
			.n_interrupts = N_FDS - 2 - N_FDS / 2,
			.n_channels_max = 1,
			.size = VGPU_SHM_SIZE_MIN,
		},
	};
	int fds[N_FDS];

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; i < N_FDS; i++)
		fds[i] = pair[0];
	check_eq(link_send(pair[0], &message, fds, N_FDS), 0);
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(all_descriptors_of_a_message_come_with_it)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	send_many();
	check_eq(link_receive(pair[1], &message, fds, &n_fds), 0);
	check_eq(message.id, 7);
	check_eq(n_fds, N_FDS);
	while (n_fds)
		close(fds[--n_fds]);
	close(pair[0]);
	check_eq(link_receive(pair[1], &message, fds, &n_fds), LINK_E_EOF);
	close(pair[1]);
}

TEST(a_receiver_without_room_for_all_descriptors_keeps_none_and_gets_a_reason)
{
	struct link_message message;
	struct rlimit limit;
	int fds[LINK_FDS_MAX];
	unsigned int n;
	size_t n_fds;

	send_many();
	n = count_fds();
	check_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)pair[1] + 8;
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_eq(link_receive(pair[1], &message, fds, &n_fds), -EMFILE);
	check_eq(n_fds, 0);
	limit.rlim_cur = limit.rlim_max;
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_eq(count_fds(), n);
	close(pair[0]);
	close(pair[1]);
}

static const struct link_message a_vm = {
	.type = LINK_VM,
	.id = 1,
	.vm = {
		.n_doorbells = 2,
		.n_interrupts = 1,
		.n_channels_max = 1,
		.size = VGPU_SHM_SIZE_MIN,
	},
};

TEST(a_vm_has_numbers_that_its_memory_can_have)
{
	struct link_message message = a_vm;

	check(link_is_sane(&message, 5));
	check(!link_is_sane(&message, 4));
	check(!link_is_sane(&message, 6));
	message.vm.size = LAYOUT_SIZE_MAX;
	check(link_is_sane(&message, 5));
	message.vm.size = 2 * LAYOUT_SIZE_MAX;
	check(!link_is_sane(&message, 5));
	message.vm.size = VGPU_SHM_SIZE_MIN / 2;
	check(!link_is_sane(&message, 5));
	message.vm.size = VGPU_SHM_SIZE_MIN + 1;
	check(!link_is_sane(&message, 5));
	message = a_vm;
	message.vm.n_channels_max = 0;
	check(!link_is_sane(&message, 5));
	message.vm.n_channels_max = VGPU_CHANNELS_MAX + 1;
	check(!link_is_sane(&message, 5));
	message = a_vm;
	message.vm.n_doorbells = VGPU_IVSHMEM_VECTORS + 1;
	message.vm.n_interrupts = 0;
	check(!link_is_sane(&message, 3 + VGPU_IVSHMEM_VECTORS));
	message.vm.n_doorbells = UINT32_MAX;
	message.vm.n_interrupts = 2;
	check(!link_is_sane(&message, 3));
}

TEST(an_image_has_a_size_that_images_have)
{
	struct link_message message = { .type = LINK_IMAGE };

	check(!link_is_sane(&message, 1));
	message.image.size = CONTROL_IMAGE_SIZE_MAX;
	check(link_is_sane(&message, 1));
	message.image.size++;
	check(!link_is_sane(&message, 1));
	message.image.size = UINT64_MAX;
	check(!link_is_sane(&message, 1));
}

TEST(each_message_has_its_descriptors_and_no_others)
{
	for (uint32_t type = 0; type <= _LINK_N; type++) {
		struct link_message message = { .type = type, .vm = a_vm.vm };
		const bool is_known = type && type < _LINK_N;
		const size_t n =
			type == LINK_VM		 ? 5
			: type == LINK_WORKER	 ? 3
			: type == LINK_CONFIGURE ? 2
			: type == LINK_IMAGE || type == LINK_SHARE ||
					type == LINK_QUOTA || type == LINK_SENSORS ||
					type == LINK_CTL || type == LINK_CONFIGURED ||
					type == LINK_JOIN
				? 1
				: 0;

		if (type == LINK_IMAGE)
			message.image.size = 1;
		check_eq(link_is_sane(&message, n), is_known);
		check(!link_is_sane(&message, n + 1));
	}
}

TEST(descriptors_of_a_message_that_is_refused_are_closed)
{
	const struct link_message message = { .type = LINK_SPAWN };
	int fds[LINK_FDS_MAX];
	struct link_message received;
	size_t n_fds;

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	check_eq(link_send(pair[0], &message, pair, 2), 0);
	check_eq(link_receive(pair[1], &received, fds, &n_fds), -EPROTO);
	check_eq(link_send(pair[0], &message, NULL, 0), 0);
	check_eq(link_receive(pair[1], &received, fds, &n_fds), 0);
	check_eq(received.type, LINK_SPAWN);
	close(pair[0]);
	close(pair[1]);
}
