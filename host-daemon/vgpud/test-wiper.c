/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is emptied in pieces, in turns
 */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/wiper.h"

#define N_WIPES 4
#define N_PIECES 5u
#define SIZE (N_PIECES * WIPER_PIECE_SIZE)

static struct wiper wiper;
static struct wipe wipes[N_WIPES];
static int order[N_WIPES * N_PIECES]; /* of the pieces, by wipe */
static unsigned int n_order;
static unsigned int n_done;
static int last_error;

static int make_memory(uint64_t size)
{
	static const char byte = 'x';
	int fd = memfd_create("wiper", MFD_CLOEXEC);

	check(fd >= 0);
	check_eq(ftruncate(fd, (off_t)size), 0);
	for (uint64_t at = 0; at < size; at += 4096)
		check_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
	return fd;
}

static uint64_t count_bytes(int fd)
{
	struct stat st;

	check_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void note_piece(struct wipe *wipe, uint64_t offset, uint64_t size)
{
	check_eq(offset, wipe->offset - size);
	order[n_order++] = (int)(wipe - wipes);
}

static void note_done(struct wiper *owner, struct wipe *wipe, int error)
{
	check(owner == &wiper && !wipe->wiper);
	last_error = error;
	n_done++;
}

static void add(unsigned int i, unsigned int section, int fd)
{
	wipes[i] = (struct wipe){
		.section = section,
		.fd = fd,
		.end = SIZE,
		.piece_fn = note_piece,
		.done_fn = note_done,
	};
	wiper_add(&wiper, &wipes[i]);
}

static void wait_for_piece(void)
{
	struct pollfd poller = { .fd = wiper.done, .events = POLLIN };

	check_eq(poll(&poller, 1, 30000), 1);
	wiper_handle_done(&wiper);
}

TEST(all_that_is_asked_for_is_emptied_and_nothing_else)
{
	int fd = make_memory(SIZE + 2 * WIPER_PIECE_SIZE);

	check_eq(wiper_init(&wiper), 0);
	add(0, 0, fd);
	while (!n_done)
		wait_for_piece();
	check_eq(last_error, 0);
	check_eq(n_order, N_PIECES);
	check_eq(count_bytes(fd), 2 * WIPER_PIECE_SIZE);
	wiper_deinit(&wiper);
	close(fd);
}

TEST(sections_take_turns_and_so_do_the_wipes_of_one)
{
	/* Three of section 5, and then one of section 2. */
	static const unsigned int sections[N_WIPES] = { 5, 5, 5, 2 };
	int fds[N_WIPES];

	check_eq(wiper_init(&wiper), 0);
	for (unsigned int i = 0; i < N_WIPES; i++) {
		fds[i] = make_memory(SIZE);
		add(i, sections[i], fds[i]);
	}
	while (n_done < N_WIPES)
		wait_for_piece();
	/* The one of section 2 has each second piece until it is done. */
	check_eq(order[0], 0);
	for (unsigned int i = 0; i < N_PIECES; i++)
		check_eq(order[1 + 2 * i], 3);
	check_eq(order[2], 1);
	check_eq(order[4], 2);
	check_eq(order[6], 0);
	for (unsigned int i = 0; i < N_WIPES; i++) {
		check_eq(count_bytes(fds[i]), 0);
		close(fds[i]);
	}
	wiper_deinit(&wiper);
}

TEST(a_cancelled_wipe_ends_after_the_current_piece)
{
	int fd = make_memory(SIZE);

	check_eq(wiper_init(&wiper), 0);
	add(0, 0, fd);
	add(1, 0, fd);
	check(wiper_cut(&wipes[1]));
	check(!wipes[1].wiper);
	check(!wiper_cut(&wipes[0]));
	wait_for_piece();
	check_eq(n_done, 1);
	check_eq(n_order, 1);
	check(wiper_cut(&wipes[0]));
	wiper_deinit(&wiper);
	check_eq(count_bytes(fd), SIZE - WIPER_PIECE_SIZE);
	close(fd);
}

TEST(memory_that_cannot_be_emptied_is_reported)
{
	int fd = make_memory(SIZE), readable;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	check(readable >= 0);
	check_eq(wiper_init(&wiper), 0);
	add(0, 0, readable);
	wait_for_piece();
	check_eq(n_done, 1);
	check(last_error < 0);
	check_eq(n_order, 0);
	wiper_deinit(&wiper);
	check_eq(count_bytes(fd), SIZE);
	close(readable);
	close(fd);
}

TEST(a_wiper_ends_in_the_midst_of_a_wipe)
{
	int fd = make_memory(SIZE);

	check_eq(wiper_init(&wiper), 0);
	add(0, 0, fd);
	add(1, 1, fd);
	wiper_deinit(&wiper);
	check(!wipes[0].wiper && !wipes[1].wiper);
	check_eq(n_done, 0);
	close(fd);
}
