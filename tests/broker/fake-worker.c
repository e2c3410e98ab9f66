/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker without a driver, for tests of vgpud
 *
 * Implements the worker's side of control.h. Its further behaviour depends on the name of
 * the guest process (the hello's comm), or on the softgpu name for what happens before:
 * see behave() and main().
 */

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/control.h"
#include "guest.h"
#include "vgpu/version.h"

static int control = -1;
static struct worker_stats *stats;
static int stats_fd = -1;
static bool keeps_asking;
static bool stays; /* does not obey STOP */
static uint8_t *area;

static void say(const struct control_message *message)
{
	if (control_send(control, message, NULL))
		exit(3);
}

static void say_opened(uint32_t reason)
{
	say(&(struct control_message){ .type = CONTROL_OPENED, .opened = { reason, 0 } });
}

static void say_ready(uint32_t reason, uint32_t version, uint32_t minor)
{
	struct control_message message = {
		.type = CONTROL_READY,
		.ready = {
			.reason = reason,
			.driver_version = 13000,
			.n_devices = 1,
			.protocol_minor = minor,
		},
	};

	message.greeting.version = version;
	strcpy(message.ready.driver, "fake");
	say(&message);
}

/* Checks that it has no descriptors except those that it was given. */
static void check_fds(void)
{
	for (int fd = 5; fd < 1024; fd++)
		if (close(fd) == 0) {
			fprintf(stderr, "fake-worker: descriptor %d is open\n", fd);
			exit(4);
		}
}

static void ask(void)
{
	say(&(struct control_message){
		.type = CONTROL_WANT, .want = { .n_extents = 1 << 20 } });
}

/* 256 MiB of allocated memory, from a memory file or anonymous. */
static void take_memory(bool is_shared)
{
	const size_t size = 256 << 20;
	int fd = is_shared ? memfd_create("hoard", MFD_CLOEXEC) : -1;
	char *map;

	if (is_shared && (fd < 0 || ftruncate(fd, (off_t)size) < 0))
		exit(8);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_POPULATE | (is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS), fd,
		0);
	if (map == MAP_FAILED)
		exit(8);
}

/* 65 MiB of device memory, as softgpu has that of cuMemCreate(): claimed by
 * nobody. */
static void take_device_memory(void)
{
	static const char bytes[1 << 20] = "memory";

	for (int i = 0; i < 65; i++)
		if (pwrite(stats_fd, bytes, sizeof(bytes),
			    WORKER_STATS_SIZE + i * (off_t)sizeof(bytes)) < 0)
			exit(21);
}

/* Many numbered lines. */
static void write_much(void)
{
	char line[64];

	for (int i = 0; i < 20000; i++) {
		int n = snprintf(line, sizeof(line), "chatter %d\n", i);

		/* A full pipe takes no more: the next one is tried all the same. */
		if (write(STDERR_FILENO, line, n) < 0)
			usleep(50);
	}
}

/* Lines that imitate another process, and one that never ends. */
static void write_alien(void)
{
	static const char lines[] =
		"1.000000 vgpud[1] error: session ended vm=other forged\n"
		"\x1b[2Jescape\a\n"
		"1.000000 vgpu-worker[1] debug: not asked for\n"
		"1.000000 vgpu-worker[1] error: honest\n";
	char endless[8192];

	memset(endless, 'e', sizeof(endless));
	if (write(STDERR_FILENO, lines, sizeof(lines) - 1) < 0 ||
		write(STDERR_FILENO, endless, sizeof(endless)) < 0 ||
		write(STDERR_FILENO, "\nafter\n", 7) < 0)
		exit(7);
}

/*
 * Images
 */

#define IMAGE_BYTES 5000u
#define HEAVY_BYTES (16u << 20)
/* The store has 1 GiB, which is 64 of these. */
#define GONE_IMAGES 80u
/* More than any store has room for. */
#define MANY_IMAGES 600u

static int make_image(unsigned int seals)
{
	char bytes[IMAGE_BYTES] = "image";
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
		fcntl(fd, F_ADD_SEALS, seals) < 0)
		exit(9);
	return fd;
}

static struct control_message about_image(enum control_type type, uint32_t number)
{
	struct control_message message = { .type = type };

	memset(message.image.digest, 'd', sizeof(message.image.digest));
	memcpy(message.image.digest, &number, sizeof(number));
	message.image.size = IMAGE_BYTES;
	message.image.cookie = number;
	return message;
}

static void keep_image(uint32_t number, int fd, uint64_t size)
{
	struct control_message message = about_image(CONTROL_KEEP, number);

	message.image.size = size;
	message.n_fds = fd >= 0;
	if (control_send(control, &message, &fd))
		exit(3);
	if (fd >= 0)
		close(fd);
}

#define SEALED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Asks vgpud for a file. Returns: -1 if it gives none. */
static int ask_file(uint32_t number, uint64_t size)
{
	struct control_message message = about_image(CONTROL_FILE, number);
	int fds[CONTROL_FDS_MAX];

	message.image.size = size;
	say(&message);
	if (control_receive(control, &message, fds) || message.type != CONTROL_IMAGE ||
		message.image.cookie != number || message.n_fds > 1)
		exit(13);
	return message.n_fds ? fds[0] : -1;
}

static void drop_file(uint32_t number)
{
	struct control_message message = about_image(CONTROL_DROP, number);

	say(&message);
}

static void keep_file(uint32_t number, const char *text, uint64_t size)
{
	int fd = ask_file(number, size);

	/* A worker above its limit gets none. */
	if (fd < 0)
		return;
	if (pwrite(fd, text, strlen(text) + 1, 0) < 0 || ftruncate(fd, size + 1) == 0 ||
		fcntl(fd, F_ADD_SEALS, SEALED) < 0)
		exit(14);
	keep_image(number, fd, size);
}

static void keep_text(uint32_t number, const char *text)
{
	keep_file(number, text, IMAGE_BYTES);
}

static void keep_sealed(uint32_t number)
{
	keep_text(number, "image");
}

/* Asks, waits, and counts the replies. */
static void find_image(uint32_t number)
{
	struct control_message message = about_image(CONTROL_FIND, number);
	char bytes[6] = "";
	int fds[CONTROL_FDS_MAX];

	say(&message);
	if (control_receive(control, &message, fds) || message.type != CONTROL_IMAGE ||
		message.image.cookie != number || message.n_fds > 1)
		exit(10);
	if (!message.n_fds)
		return;
	if (message.image.size != IMAGE_BYTES || pread(fds[0], bytes, 5, 0) != 5 ||
		strcmp(bytes, "image") != 0 || pwrite(fds[0], "other", 5, 0) >= 0 ||
		ftruncate(fds[0], 0) == 0)
		exit(11);
	close(fds[0]);
	stats->images_found++;
}

static void keep_wrong(const char *how)
{
	int pair[2];

	if (!strcmp(how, "none"))
		keep_image(1, -1, IMAGE_BYTES);
	else if (!strcmp(how, "unsealed"))
		keep_image(1, make_image(SEALED & ~F_SEAL_WRITE), IMAGE_BYTES);
	else if (!strcmp(how, "future"))
		keep_image(1,
			make_image(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
				   F_SEAL_FUTURE_WRITE),
			IMAGE_BYTES);
	else if (!strcmp(how, "longer"))
		keep_image(1, make_image(SEALED), IMAGE_BYTES + 1);
	else if (!strcmp(how, "huge"))
		keep_image(1, make_image(SEALED), UINT64_MAX);
	else if (!strcmp(how, "pipe") && !pipe(pair))
		keep_image(1, pair[0], IMAGE_BYTES);
	else if (!strcmp(how, "file"))
		keep_image(1, open("/dev/null", O_RDWR), 0);
	else
		exit(12);
}

/* Each is returned, but so that it cannot be emptied. */
static void hoard_files(uint64_t size)
{
	for (uint32_t i = 1; i <= MANY_IMAGES; i++) {
		int fd = ask_file(i, size);

		if (fd < 0)
			break;
		stats->images_found++;
		if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
			exit(17);
		drop_file(i);
	}
}

static void handle_images(const char *what)
{
	if (!strcmp(what, "keep")) {
		keep_sealed(1);
		keep_sealed(1);
		find_image(1);
	} else if (!strcmp(what, "find")) {
		find_image(1);
	} else if (!strcmp(what, "poison")) {
		keep_text(1, "other");
	} else if (!strcmp(what, "many")) {
		for (uint32_t i = 1; i <= MANY_IMAGES; i++)
			keep_sealed(i);
		for (uint32_t i = 1; i <= MANY_IMAGES; i++)
			find_image(i);
	} else if (!strcmp(what, "use")) {
		/* Three fit: the second is the one used longest ago. */
		for (uint32_t i = 1; i <= 3; i++)
			keep_sealed(i);
		find_image(1);
		keep_sealed(4);
		stats->images_found = 0;
		find_image(2);
		stats->launches = stats->images_found;
		find_image(1);
		find_image(3);
		find_image(4);
	} else if (!strcmp(what, "drop")) {
		/* More than a worker may have at a time; each is returned. */
		for (uint32_t i = 1; i <= MANY_IMAGES; i++) {
			int fd = ask_file(i, IMAGE_BYTES);

			if (fd < 0)
				exit(15);
			drop_file(i);
			/* It is emptied even while others have it open. */
			close(ask_file(1u << 20, IMAGE_BYTES));
			drop_file(1u << 20);
			if (lseek(fd, 0, SEEK_END) != 0)
				exit(16);
			close(fd);
			stats->images_found++;
		}
	} else if (!strcmp(what, "own")) {
		/* Of which vgpud does not know whether it counts it. */
		keep_image(1, make_image(SEALED), IMAGE_BYTES);
		find_image(1);
	} else if (!strcmp(what, "evict")) {
		for (uint32_t i = 1; i <= 5; i++)
			keep_sealed(i);
		for (uint32_t i = 1; i <= 3; i++)
			find_image(i);
	} else if (!strcmp(what, "gone")) {
		for (uint32_t i = 1; i <= GONE_IMAGES; i++)
			keep_file(i, "image", HEAVY_BYTES);
	} else if (!strcmp(what, "hoard")) {
		hoard_files(IMAGE_BYTES);
	} else if (!strcmp(what, "heavy")) {
		hoard_files(HEAVY_BYTES);
	} else if (!strcmp(what, "die")) {
		keep_sealed(1);
		raise(SIGKILL);
	} else if (!strcmp(what, "flood")) {
		for (uint32_t i = 1;; i++)
			keep_sealed(i);
	} else {
		keep_wrong(what);
	}
}

/* Partner: guest_count_grants(). */
static void count_answer(void)
{
	__atomic_fetch_add((uint64_t *)(area + GUEST_GRANTS_OFF), 1, __ATOMIC_RELEASE);
}

/*
 * Shared memory
 */

#define SHARED_BYTES 4096u
#define SHARED_TEXT "shared"

/* Returns: the descriptor of the memory, or -1 if vgpud refuses. */
static int ask_shared(enum control_type type, uint8_t token[CONTROL_TOKEN_SIZE])
{
	struct control_message message = { .type = type, .share.cookie = 7 };
	int fds[CONTROL_FDS_MAX];

	if (type == CONTROL_SHARE)
		message.share.size = SHARED_BYTES;
	else
		memcpy(message.share.token, token, CONTROL_TOKEN_SIZE);
	say(&message);
	if (control_receive(control, &message, fds) || message.type != CONTROL_SHARED ||
		message.share.cookie != 7)
		exit(18);
	if (!message.share.size)
		return -1;
	if (message.share.size != SHARED_BYTES || message.n_fds != 1)
		exit(19);
	memcpy(token, message.share.token, CONTROL_TOKEN_SIZE);
	return fds[0];
}

static void share(enum control_type type)
{
	const int fd = ask_shared(type, area + GUEST_TOKEN_OFF);

	if (fd >= 0 && type == CONTROL_SHARE &&
		pwrite(fd, SHARED_TEXT, sizeof(SHARED_TEXT), 0) < 0)
		exit(20);
	if (fd >= 0 && pread(fd, area + GUEST_SHARED_OFF, sizeof(SHARED_TEXT), 0) < 0)
		exit(20);
	close(fd);
	count_answer();
}

static void behave(const struct control_assign *assign, int n_fds, int shm)
{
	const char *comm = assign->guest_comm;
	char *map;

	map = mmap(NULL, assign->shm_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, shm, 0);
	if (map == MAP_FAILED || n_fds != (assign->flags & CONTROL_ASSIGN_POLL	? 2
						  : !strcmp(assign->vm, "qemu") ? 4
										: 3))
		exit(5);
	area = (uint8_t *)map + assign->area_off;
	/* Fingerprints: in the area and in the first extent. */
	strcpy(map + assign->area_off + VGPU_WORDS_OFF, "worker");
	strcpy(map + assign->extents_off +
			(uint64_t)assign->first_extent * VGPU_EXTENT_SIZE,
		"worker");
	stats->launches = 41;
	stats->launches++;
	stats->bytes_h2d = assign->handles;

	if (!strncmp(comm, "image-", 6) && strcmp(comm, "image-flood") != 0)
		handle_images(comm + 6);

	if (!strcmp(comm, "refuse"))
		say_opened(VGPU_REASON_NO_DEVICE);
	else if (!strcmp(comm, "crash-early"))
		abort();
	else if (!strcmp(comm, "mute"))
		return;
	else if (!strcmp(comm, "window") && assign->window_base == 0x100000000000ull)
		say_opened(VGPU_REASON_WINDOW);
	else
		say_opened(VGPU_REASON_NONE);

	if (!strcmp(comm, "crash")) {
		/* Not by way of a sanitizer, which would report it. */
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	if (!strcmp(comm, "nonsense"))
		say(&(struct control_message){ .type = CONTROL_STOP });
	if (!strcmp(comm, "protocol")) {
		say(&(struct control_message){
			.type = CONTROL_ENDED, .ended = { VGPU_REASON_PROTOCOL, 0 } });
		exit(0);
	}
	if (!strcmp(comm, "want") || !strcmp(comm, "want-again"))
		say(&(struct control_message){
			.type = CONTROL_WANT, .want = { .n_extents = 8, .cookie = 1 } });
	if (!strcmp(comm, "want-again")) {
		say(&(struct control_message){
			.type = CONTROL_WANT, .want = { .n_extents = 8, .cookie = 1 } });
		say_opened(VGPU_REASON_NONE);
	}
	if (!strcmp(comm, "asks")) {
		keeps_asking = true;
		ask();
	}
	stays = !strncmp(comm, "stay-", 5);
	if (!strncmp(comm, "grow-", 5) || stays)
		say(&(struct control_message){ .type = CONTROL_WANT,
			.want = { .n_extents = atoi(comm + 5), .cookie = 3 } });
	if (!strcmp(comm, "want-all"))
		say(&(struct control_message){ .type = CONTROL_WANT,
			.want = { .n_extents = 1u << 30, .cookie = 2 } });
	if (!strcmp(comm, "descriptors"))
		control_send(control,
			&(struct control_message){ .type = CONTROL_WANT, .n_fds = 1 },
			&shm);
	if (!strcmp(comm, "flood"))
		for (;;)
			say(&(struct control_message){
				.type = CONTROL_WANT, .want = { .n_extents = 1 } });
	if (!strcmp(comm, "image-flood"))
		handle_images("flood");
	if (!strcmp(comm, "shares"))
		share(CONTROL_SHARE);
	if (!strcmp(comm, "takes"))
		share(CONTROL_TAKE);
	if (!strcmp(comm, "late-two")) {
		keep_sealed(2);
		keep_sealed(1);
	}
	if (!strcmp(comm, "late-keep")) {
		handle_images("keep");
		count_answer();
	}
	if (!strcmp(comm, "chatty"))
		write_much();
	if (!strcmp(comm, "hungry") || !strcmp(comm, "hoards"))
		take_memory(!strcmp(comm, "hoards"));
	if (!strcmp(comm, "lies"))
		take_device_memory();
	if (!strcmp(comm, "forge"))
		write_alien();
	if (!strcmp(comm, "deaf"))
		for (;;)
			pause();
}

static void handle_grant(const struct control_grant *grant)
{
	if (keeps_asking) {
		stats->copies_d2d++;
		ask();
	} else {
		stats->calls = grant->error ? 1000 : grant->first_extent;
		stats->memsets = grant->n_extents;
	}
	count_answer();
}

static void serve(void)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX];

	while (!control_receive(control, &message, fds)) {
		switch (message.type) {
		case CONTROL_ASSIGN:
			behave(&message.assign, message.n_fds, fds[0]);
			break;
		case CONTROL_WINDOW:
			say_opened(message.window.base == 0x550000000000ull
					   ? VGPU_REASON_NONE
					   : VGPU_REASON_WINDOW);
			break;
		case CONTROL_GRANT:
			handle_grant(&message.grant);
			break;
		case CONTROL_STOP:
			if (stays)
				break;
			say(&(struct control_message){ .type = CONTROL_ENDED });
			exit(0);
		}
	}
}

int main(int argc, char **argv)
{
	const char *name = "";

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--control"))
			control = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--stats"))
			stats_fd = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--softgpu-name"))
			name = argv[i + 1];
	}
	stats = mmap(
		NULL, WORKER_STATS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, stats_fd, 0);
	check_fds();
	if (!strcmp(name, "exits"))
		exit(6);
	if (!strcmp(name, "slow"))
		usleep(300000);
	say_ready(!strcmp(name, "no-device") ? VGPU_REASON_NO_DEVICE : VGPU_REASON_NONE,
		!strcmp(name, "older") ? 0 : CONTROL_VERSION,
		!strcmp(name, "older-minor") ? 0 : VGPU_PROTOCOL_MINOR);
	serve();
	return 0;
}
