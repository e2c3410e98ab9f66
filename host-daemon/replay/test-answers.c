/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: what a recording has of vgpud's answers, also a forged one
 */

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/answers.h"
#include "test.h"
#include "vgpu/cleanup.h"
#include "vgpu/ring-layout.h"

#define N_EXTENTS 10u
#define NAME "a digest"

static uint8_t file[1 << 18];
static size_t size;
static struct answers answers;
static struct control_message reply;
static int sockets[2], fds[CONTROL_FDS_MAX];

static const struct recording_header header = {
	.assign = {
		.shm_size = (6 << 20) + N_EXTENTS * VGPU_EXTENT_SIZE,
		.extents_off = 6 << 20,
	},
};

static void put(uint32_t type, const void *first, size_t first_size, const void *second,
	size_t second_size)
{
	const struct recording_record record = {
		.size = (uint32_t)(first_size + second_size),
		.type = type,
		.sum = recording_record_sum(type, first, first_size, second, second_size),
	};

	memcpy(file + size, &record, sizeof(record));
	memcpy(file + size + sizeof(record), first, first_size);
	size += sizeof(record) + first_size;
	if (second_size)
		memcpy(file + size, second, second_size);
	size += second_size;
}

static void put_piece(
	const char *digest, uint64_t image_size, uint64_t offset, const char *text)
{
	struct recording_image image = { .size = image_size, .offset = offset };

	memcpy(image.digest, digest, strlen(digest));
	put(RECORDING_IMAGE, &image, sizeof(image), text, strlen(text));
}

static void put_grant(uint32_t cookie, uint32_t first, uint32_t n)
{
	const struct control_message message = {
		.type = CONTROL_GRANT,
		.grant = { .first_extent = first, .n_extents = n, .cookie = cookie },
	};

	put(RECORDING_ANSWER, &message, sizeof(message), NULL, 0);
}

static void put_shared(uint32_t cookie, uint64_t share_size)
{
	const struct control_message message = {
		.type = CONTROL_SHARED,
		.share = { .size = share_size, .cookie = cookie, .token = { 5 } },
	};

	put(RECORDING_ANSWER, &message, sizeof(message), NULL, 0);
}

static void read_file(void)
{
	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sockets), 0);
	check_eq(answers_read(&answers, (struct recording){ .bytes = file, .size = size },
			 &header),
		0);
}

static void end(void)
{
	answers_deinit(&answers);
	close(sockets[0]);
	close(sockets[1]);
}

/* Sends a request, with a descriptor or -1. The reply is read, if there is one. */
static bool ask(struct control_message request, int fd)
{
	int r;

	request.n_fds = fd >= 0;
	check_eq(answers_reply(&answers, sockets[0], &request, &fd), 0);
	r = control_receive(sockets[1], &reply, fds);
	check(!r || r == CONTROL_E_AGAIN);
	return !r;
}

static void find_image(const char *digest)
{
	struct control_message request = {
		.type = CONTROL_FIND,
		.image.cookie = 3,
	};

	memcpy(request.image.digest, digest, strlen(digest));
	check(ask(request, -1));
	check_eq(reply.type, CONTROL_IMAGE);
	check_eq(reply.image.cookie, 3);
}

TEST(images_are_those_whose_pieces_are_all_there)
{
	char text[16] = "";

	size = 0;
	put_piece(NAME, 8, 0, "abcd");
	put_piece("another", 8, 0, "abcd");
	put_piece(NAME, 8, 4, "efgh");
	/* Neither again, nor of another size, nor with a gap. */
	put_piece(NAME, 8, 0, "XXXX");
	put_piece(NAME, 9, 8, "Y");
	put_piece("another", 8, 6, "gh");
	read_file();
	find_image(NAME);
	check_eq(reply.image.size, 8);
	check_eq(pread(fds[0], text, sizeof(text), 0), 8);
	check_str(text, "abcdefgh");
	close(fds[0]);
	find_image("another");
	check_eq(reply.image.size, 0);
	check_eq(fds[0], -1);
	find_image("a third");
	check_eq(reply.image.size, 0);
	/* A file to fill is refused, so that the worker uses memory of its own. */
	check(ask((struct control_message){ .type = CONTROL_FILE,
			  .image = { .size = 4096, .cookie = 9 } },
		-1));
	check_eq(reply.type, CONTROL_IMAGE);
	check_eq(reply.image.cookie, 9);
	check_eq(fds[0], -1);
	end();
}

static void want(uint32_t cookie)
{
	const struct control_message request = {
		.type = CONTROL_WANT,
		.want = { .n_extents = 2, .cookie = cookie },
	};

	check(ask(request, -1));
	check_eq(reply.type, CONTROL_GRANT);
	check_eq(reply.grant.cookie, cookie);
}

TEST(extents_are_granted_as_they_were)
{
	size = 0;
	put_grant(1, 4, 2);
	put_grant(2, N_EXTENTS - 1, 1);
	/* Of extents that there are not. */
	put_grant(3, N_EXTENTS - 1, 2);
	put_grant(4, UINT32_MAX, 2);
	read_file();
	want(1);
	check_eq(reply.grant.error, 0);
	check_eq(reply.grant.first_extent, 4);
	check_eq(reply.grant.n_extents, 2);
	want(2);
	check_eq(reply.grant.first_extent, N_EXTENTS - 1);
	for (uint32_t cookie = 3; cookie < 6; cookie++) {
		want(cookie);
		check(reply.grant.error < 0);
		check_eq(reply.grant.n_extents, 0);
	}
	end();
}

static void share(uint32_t type, uint32_t cookie, uint64_t share_size, int fd)
{
	const struct control_message request = {
		.type = type,
		.share = { .size = share_size, .cookie = cookie },
	};

	check(ask(request, fd));
	check_eq(reply.type, CONTROL_SHARED);
	check_eq(reply.share.cookie, cookie);
}

TEST(shared_memory_is_made_anew)
{
	struct stat st;

	size = 0;
	put_shared(1, 4096);
	put_shared(2, 0);
	put_shared(3, 4096);
	put_shared(4, 4096);
	read_file();
	share(CONTROL_SHARE, 1, 4096, -1);
	check_eq(reply.share.size, 4096);
	check_eq(reply.share.token[0], 5);
	check_eq(fstat(fds[0], &st), 0);
	check_eq(st.st_size, 4096 + CONTROL_LABEL_SIZE);
	close(fds[0]);
	/* Refused then, or not asked for. */
	share(CONTROL_SHARE, 2, 4096, -1);
	check_eq(reply.share.size, 0);
	check_eq(fds[0], -1);
	share(CONTROL_SHARE, 9, 4096, -1);
	check_eq(reply.share.size, 0);
	/* With memory of the driver's own. */
	share(CONTROL_SHARE, 3, 4096, dup(STDERR_FILENO));
	check_eq(reply.share.size, 4096);
	check_eq(fds[0], -1);
	/* Memory of another process there is not, nor so much. */
	share(CONTROL_TAKE, 4, 4096, -1);
	check_eq(reply.share.size, 0);
	share(CONTROL_SHARE, 4, UINT64_MAX, -1);
	check_eq(reply.share.size, 0);
	check_eq(fds[0], -1);
	end();
}

TEST(what_has_no_answer_gets_none)
{
	static const uint32_t types[] = { CONTROL_KEEP, CONTROL_DROP, CONTROL_LEAVE };
	int pair[2];
	char byte;

	size = 0;
	read_file();
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		check(!ask((struct control_message){ .type = types[i] }, -1));
	/* Its descriptor is closed nevertheless. */
	check_eq(pipe(pair), 0);
	check(!ask((struct control_message){ .type = CONTROL_KEEP }, pair[1]));
	check_eq(read(pair[0], &byte, 1), 0);
	close(pair[0]);
	end();
}

TEST(a_file_that_is_damaged_later_is_read_as_far_as_it_goes)
{
	size = 0;
	put_grant(1, 4, 2);
	put_grant(2, 6, 2);
	file[size - 1] ^= 1;
	read_file();
	want(1);
	check_eq(reply.grant.error, 0);
	want(2);
	check(reply.grant.error < 0);
	end();
}
