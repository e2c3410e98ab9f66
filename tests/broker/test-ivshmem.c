/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpud towards QEMU: greeting, channels of a VM, its reset and its end; and towards a
 * file of ivshmem-plain
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest;

static void start(void)
{
	char sections[256];

	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 256M\nsocket = %s/qemu\nmax-processes = 3\n",
		test_tmpdir());
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .sections = sections,
			  });
}

static const char *qemu_socket(void)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/qemu", pair.dir);
	return path;
}

TEST(a_vm_gets_separate_channels)
{
	struct vgpu_channel_entry *entry;

	start();
	guest_connect_qemu(&guest, qemu_socket());
	check_eq(guest.size, 256 << 20);
	check_eq(guest.header->n_channels, 7);
	for (unsigned int i = 0; i < 3; i++)
		guest_open(&guest, 2 * i, "app");
	check_eq(guest_open_refused(&guest, 1, "app"), VGPU_REASON_PROCESSES);
	check_eq(guest_entry(&guest, 1)->detail, 3);
	for (unsigned int i = 0; i < 3; i++) {
		entry = guest_entry(&guest, 2 * i);
		check_eq(entry->area_off,
			guest.header->area_off + 2ull * i * VGPU_AREA_SIZE);
		check_str((char *)guest.map + entry->area_off + VGPU_WORDS_OFF, "worker");
		for (unsigned int j = 0; j < i; j++)
			check(guest_entry(&guest, 2 * j)->first_extent !=
				entry->first_extent);
	}
	for (unsigned int i = 0; i < 3; i++)
		guest_close(&guest, 2 * i);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(the_heartbeat_beats_while_a_vm_is_there)
{
	uint64_t beat;

	start();
	guest_connect_qemu(&guest, qemu_socket());
	beat = guest.header->heartbeat;
	guest_wait_for(
		__atomic_load_n(&guest.header->heartbeat, __ATOMIC_RELAXED) > beat + 3);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_change_of_an_entry_raises_the_interrupt_of_vector_0)
{
	uint64_t count;

	start();
	guest_connect_qemu(&guest, qemu_socket());
	check(read(guest.interrupts[0], &count, 8) < 0);
	guest_open(&guest, 0, "app");
	/* The state is there first. */
	guest_wait_for(read(guest.interrupts[0], &count, 8) == 8);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_request_without_a_doorbell_is_noticed)
{
	start();
	guest_connect_qemu(&guest, qemu_socket());
	guest_claim(&guest, 4, "app");
	guest_entry(&guest, 4)->state = VGPU_CHANNEL_OPENING;
	__atomic_add_fetch(&guest.header->n_requests, 1, __ATOMIC_RELEASE);
	guest_wait(&guest, 4, VGPU_CHANNEL_OPEN);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_socket_serves_one_vm_and_the_next_when_it_is_gone)
{
	int64_t first;
	char byte;
	int fd;

	start();
	guest_connect_qemu(&guest, qemu_socket());
	first = guest.peer;
	guest_open(&guest, 0, "app");
	fd = guest_try_connect(qemu_socket());
	check(fd >= 0);
	check_eq(read(fd, &byte, 1), 0);
	close(fd);
	check_eq(pair_count_log(&pair, "one socket serves one QEMU"), 1);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_disconnect(&guest);
	guest_connect_qemu(&guest, qemu_socket());
	check(guest.peer != first);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_FREE);
	guest_open(&guest, 0, "app");
	guest_disconnect(&guest);
	pair_wait_log(&pair, "session ended vm=qemu", 2);
	pair_stop(&pair);
}

TEST(nothing_is_sent_after_the_greeting)
{
	char byte;

	start();
	guest_connect_qemu(&guest, qemu_socket());
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	check(recv(guest.socket, &byte, 1, MSG_DONTWAIT) < 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(channels_of_a_kernel_that_was_reset_are_closed)
{
	struct vgpu_channel_entry *entry;
	struct pair_session session;

	start();
	guest_connect_qemu(&guest, qemu_socket());
	strcpy((char *)guest.header->boot_id, "boot of a test.");
	guest_open(&guest, 0, "app");
	guest_open(&guest, 5, "deaf");
	/* It was refused in the old boot, and the process that would close it has
	 * ended. */
	guest_claim(&guest, 2, "app");
	guest_entry(&guest, 2)->window_size = 1;
	guest_ask(&guest, 2, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 2, VGPU_CHANNEL_REFUSED);

	/* The next boot: its first process writes the nonce, claims and asks. */
	strcpy((char *)guest.header->boot_id, "the next boot..");
	guest_claim(&guest, 1, "app");
	entry = guest_entry(&guest, 1);
	strcpy((char *)entry->boot_id, "the next boot..");
	guest_ask(&guest, 1, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 1, VGPU_CHANNEL_OPEN);
	guest_wait(&guest, 0, VGPU_CHANNEL_FREE);
	guest_wait(&guest, 2, VGPU_CHANNEL_FREE);
	guest_wait(&guest, 5, VGPU_CHANNEL_FREE);
	pair_read_session(&pair, 1, &session);
	check_str(session.reason, "closed");
	check_eq(entry->state, VGPU_CHANNEL_OPEN);
	check_eq(pair_count_log(&pair, "vm=qemu: the VM was reset"), 1);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_reset_is_noticed_by_the_hello_of_the_next_boot)
{
	start();
	guest_connect_qemu(&guest, qemu_socket());
	guest_open(&guest, 0, "app");
	guest_open(&guest, 1, "app");
	guest_claim(&guest, 4, "app");
	strcpy((char *)guest_entry(&guest, 4)->boot_id, "the next boot..");
	guest_ask(&guest, 4, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 4, VGPU_CHANNEL_OPEN);
	guest_wait(&guest, 0, VGPU_CHANNEL_FREE);
	guest_wait(&guest, 1, VGPU_CHANNEL_FREE);
	check_eq(pair_count_log(&pair, "vm=qemu: the VM was reset"), 1);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(qemu_takes_the_greeting_and_shows_the_memory)
{
	char command[1024], *text = NULL;
	size_t size = 0;
	FILE *qemu, *output;

	if (system("qemu-system-x86_64 --version >/dev/null 2>&1"))
		test_skip("there is no qemu-system-x86_64");
	start();
	snprintf(command, sizeof(command),
		"exec timeout 50 qemu-system-x86_64 -S -machine q35 -accel tcg -m 64M "
		"-nodefaults "
		"-display none -chardev socket,id=iv,path=%s "
		"-device ivshmem-doorbell,chardev=iv,vectors=%u -monitor stdio >%s/out "
		"2>&1",
		qemu_socket(), VGPU_IVSHMEM_VECTORS, pair.dir);
	qemu = popen(command, "w");
	check(qemu != NULL);
	pair_wait_log(&pair, "vm=qemu id=", 1);
	fputs("system_reset\ninfo pci\nquit\n", qemu);
	check_eq(pclose(qemu), 0);
	pair_wait_log(&pair, "the VM disconnected", 1);

	snprintf(command, sizeof(command), "%s/out", pair.dir);
	output = fopen(command, "re");
	check(output != NULL);
	check(getdelim(&text, &size, '\0', output) > 0);
	fclose(output);
	check(strstr(text, "1af4:1110") != NULL);
	/* QEMU takes the size from the memory it was sent. */
	check(strstr(text, "BAR2: 64 bit prefetchable memory at 0x") != NULL);
	check(!strstr(text, "eventfd"));
	check(!strstr(text, "invalid"));
	free(text);
	pair_stop(&pair);
}

TEST(a_plain_file_is_served_by_looking)
{
	char lines[256], path[192];
	struct pair_session session;
	int fd;

	snprintf(path, sizeof(path), "%s/memory", test_tmpdir());
	snprintf(lines, sizeof(lines), "memory = %s\n", path);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .transport = "plain",
				  .vm_lines = lines,
			  });
	pair_wait_log(&pair, "it does not exist yet", 1);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	pair_wait_log(&pair, "its size is not a power of two", 1);
	check_eq(ftruncate(fd, 256 << 20), 0);
	close(fd);
	pair_wait_log(&pair, "connected (transport plain", 1);
	guest_connect_plain(&guest, path);
	guest_open(&guest, 3, "app");
	guest_close(&guest, 3);
	pair_read_session(&pair, 0, &session);
	check_eq(session.channel, 3);
	guest_open(&guest, 3, "app");
	/* Removing QEMU's file counts as the end of QEMU. */
	check_eq(unlink(path), 0);
	pair_read_session(&pair, 1, &session);
	check_str(session.reason, "closed");
	guest_disconnect(&guest);
	pair_stop(&pair);
}

#define NOBODY 65534

static char plain_path[192], other_path[192];

static void start_plain(const char *more)
{
	char lines[512];

	snprintf(plain_path, sizeof(plain_path), "%s/memory", test_tmpdir());
	snprintf(other_path, sizeof(other_path), "%s/other", test_tmpdir());
	snprintf(lines, sizeof(lines), "memory = %s\n%s", plain_path, more);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .transport = "plain",
				  .vm_lines = lines,
			  });
	pair_wait_log(&pair, "it does not exist yet", 1);
}

/* vgpud looks at it at any time: it gets its size, which it needs, last. */
static void make_plain(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	check_eq(fchown(fd, uid, gid), 0);
	check_eq(fchmod(fd, mode), 0);
	check_eq(ftruncate(fd, 64 << 20), 0);
	close(fd);
}

/* Nothing was written to the file that is refused. */
static void check_untouched(const char *path)
{
	char bytes[8] = "x";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	check_eq(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		check_eq(bytes[i], 0);
	close(fd);
}

static void refuse_plain(const char *reason)
{
	pair_wait_log(&pair, reason, 1);
	check_eq(pair_count_log(&pair, "connected (transport plain"), 0);
	check_untouched(plain_path);
	check_eq(unlink(plain_path), 0);
}

TEST(a_plain_file_that_others_can_have_put_there_is_refused)
{
	char folder[160], lines[200];

	start_plain("");
	make_plain(other_path, 0600, -1, -1);
	check_eq(symlink(other_path, plain_path), 0);
	refuse_plain("there is a symbolic link in its path");
	check_untouched(other_path);
	check_eq(link(other_path, plain_path), 0);
	refuse_plain("it has another name besides");
	check_eq(unlink(other_path), 0);
	make_plain(plain_path, 0602, -1, -1);
	refuse_plain("other users may write to it");
	/* Valid files are accepted. */
	make_plain(plain_path, 0600, -1, -1);
	pair_wait_log(&pair, "connected (transport plain", 1);
	pair_stop(&pair);

	/* A folder must not be a symbolic link either: vgpud gets the same place by
	 * another name. */
	snprintf(folder, sizeof(folder), "%s/folder", test_tmpdir());
	check_eq(symlink(".", folder), 0);
	snprintf(lines, sizeof(lines), "memory = %s/memory\n", folder);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .transport = "plain",
				  .vm_lines = lines,
			  });
	pair_wait_log(&pair, "there is a symbolic link in its path", 2);
	/* The one of before, in the same log. */
	check_eq(pair_count_log(&pair, "connected (transport plain"), 1);
	pair_stop(&pair);
}

TEST(a_plain_file_of_another_user_is_refused_unless_memory_owner_names_him)
{
	if (geteuid())
		test_skip("only root can give a file to another user");
	start_plain("");
	make_plain(plain_path, 0600, NOBODY, NOBODY);
	refuse_plain("it belongs to another user");
	make_plain(plain_path, 0620, -1, NOBODY);
	refuse_plain("other users may write to it");
	pair_stop(&pair);

	start_plain("memory-owner = 65534\n");
	make_plain(plain_path, 0660, NOBODY, NOBODY);
	pair_wait_log(&pair, "connected (transport plain", 1);
	pair_stop(&pair);
}

TEST(a_truncated_plain_file_affects_only_its_vm)
{
	char lines[256], sections[256], path[192];
	struct guest cut;
	int fd;

	snprintf(path, sizeof(path), "%s/memory", test_tmpdir());
	snprintf(lines, sizeof(lines), "memory = %s\n", path);
	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 256M\nmax-processes = 7\nsocket = %s/qemu\n",
		test_tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check_eq(ftruncate(fd, 256 << 20), 0);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .transport = "plain",
				  .vm_lines = lines,
				  .sections = sections,
			  });
	pair_wait_log(&pair, "connected (transport plain", 1);
	guest_connect_plain(&cut, path);
	guest_open(&cut, 3, "app");
	guest_connect_qemu(&guest, qemu_socket());
	guest_open(&guest, 0, "app");

	check_eq(ftruncate(fd, 0), 0);
	pair_wait_log(&pair, "session ended vm=test", 1);
	check(pair_count_log(&pair, "was taken away") ||
		pair_count_log(&pair, "vm=test id=1: the VM disconnected"));
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	/* Whole again, it is another VM. */
	check_eq(ftruncate(fd, 256 << 20), 0);
	pair_wait_log(&pair, "connected (transport plain", 2);
	guest_disconnect(&cut);
	guest_connect_plain(&cut, path);
	guest_open(&cut, 3, "app");
	check_eq(pair_count_log(&pair, "the broker was ended"), 0);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	guest_disconnect(&cut);
	close(fd);
	pair_stop(&pair);
}
