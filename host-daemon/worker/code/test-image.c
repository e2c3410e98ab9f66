/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: those shared with the VM's other workers are the ones that were asked for
 *
 * A thread plays vgpud: it keeps what it is given, and answers with whatever the test put
 * into its store, as a vgpud would whose other workers were taken over.
 */

#include <fcntl.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "vgpu/cleanup.h"
#include "vgpu/g-calls.h"
#include "vgpu/load.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/code/code.h"
#include "worker/code/store.h"

#define SEALED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define TEXT "//image"
#define TEXT_SIZE sizeof(TEXT)

static struct fixture fixture;
static pthread_t thread;
static int vgpud = -1;
static const char *loaded; /* what the driver was given last */
static char loaded_text[16];
static unsigned int n_containers; /* of a wrapper that the driver was given */

/* The store of one image; the thread's while it runs. */
static struct {
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;
	int fd;
	unsigned int n_kept, n_asked;
	unsigned int n_files, n_dropped; /* created, and returned */
	uint32_t file_cookie;
	bool is_stingy;	       /* no file is given */
	uint32_t cookie_error; /* added to the cookie of a first, useless answer */
	bool is_mute;	       /* requests are not answered */
} kept;

/* Replaces the C library's: a thread that waits in vain for an answer times out at once,
 * by a clock that nothing sets. */
__attribute__((__visibility__("default"))) int clock_gettime(
	clockid_t clock, struct timespec *time)
{
	long r = syscall(SYS_clock_gettime, clock, time);

	if (!r && kept.is_mute)
		time->tv_sec += clock == CLOCK_MONOTONIC ? -ASK_TIMEOUT_S : 3600;
	return (int)r;
}

static void answer(struct control_message *message)
{
	bool is_it = kept.fd >= 0 &&
		     !memcmp(kept.digest, message->image.digest, CONTROL_DIGEST_SIZE);

	kept.n_asked++;
	message->image.size = is_it ? kept.size : 0;
	if (kept.cookie_error) {
		struct control_image late = message->image;

		late.cookie -= kept.cookie_error;
		store_answered(&fixture.session, &late, is_it ? dup(kept.fd) : -1);
	}
	store_answered(&fixture.session, &message->image, is_it ? dup(kept.fd) : -1);
	/* And once more, as from a broker that was replaced. */
	store_answered(&fixture.session, &message->image, is_it ? dup(kept.fd) : -1);
}

static void give_file(struct control_message *message)
{
	int fd = -1;

	kept.n_files++;
	kept.file_cookie = message->image.cookie;
	if (kept.is_mute)
		return;
	if (!kept.is_stingy) {
		fd = memfd_create("vgpu-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		check_eq(ftruncate(fd, (off_t)message->image.size), 0);
	}
	store_answered(&fixture.session, &message->image, fd);
}

static void *serve(void *data)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX];

	while (!control_receive(vgpud, &message, fds)) {
		if (message.type == CONTROL_FIND && kept.is_mute) {
			kept.n_asked++;
		} else if (message.type == CONTROL_FIND) {
			answer(&message);
		} else if (message.type == CONTROL_FILE) {
			give_file(&message);
		} else if (message.type == CONTROL_DROP) {
			check_eq(message.image.cookie, kept.file_cookie);
			kept.n_dropped++;
		} else if (message.type == CONTROL_KEEP) {
			kept.n_kept++;
			vgpu_close(kept.fd);
			memcpy(kept.digest, message.image.digest, CONTROL_DIGEST_SIZE);
			kept.size = message.image.size;
			kept.fd = fds[0];
		}
	}
	return NULL;
}

static const char *complaint; /* of a compiler that refuses the code */

static CUresult load(CUmodule *modulep, const void *image, unsigned int n,
	CUjit_option *options, void **values)
{
	const struct code_wrapper *wrapper = image;

	for (unsigned int i = 0; i < n && complaint; i++)
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			strcpy(values[i], complaint);
	if (complaint)
		return CUDA_ERROR_INVALID_PTX;

	loaded = image;
	n_containers = 1;
	if (wrapper->magic == 0x466243b1) {
		const void *const *input = wrapper->prelinked;

		for (; *input; input++)
			n_containers++;
		image = wrapper->data;
	}
	memcpy(loaded_text, image, TEXT_SIZE);
	*modulep = (CUmodule)(uintptr_t)0x7000;
	return CUDA_SUCCESS;
}

static CUresult unload(CUmodule module)
{
	return CUDA_SUCCESS;
}

static CUlibraryOption library_option;
static CUresult unload_result;

static CUresult library_load(CUlibrary *libraryp, const void *code, CUjit_option *options,
	void **values, unsigned int n, CUlibraryOption *library_options,
	void **library_values, unsigned int n_library_options)
{
	check_eq(n_library_options, 1);
	check(library_values[0] != NULL);
	library_option = library_options[0];
	*libraryp = (CUlibrary)(uintptr_t)0x9000;
	return load((CUmodule *)libraryp, code, n, options, values);
}

/* The promise holds until here. */
static CUresult library_unload(CUlibrary library)
{
	const struct code_wrapper *wrapper = (const void *)loaded;

	check_str(wrapper->magic == 0x466243b1 ? wrapper->data : loaded, TEXT);
	return unload_result;
}

static void begin(void)
{
	int pair[2];

	memset(&kept, 0, sizeof(kept));
	kept.fd = -1;
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	fixture.driver.table.cuModuleLoadDataEx = load;
	fixture.driver.table.cuModuleUnload = unload;
	fixture.driver.table.cuLibraryLoadData = library_load;
	fixture.driver.table.cuLibraryUnload = library_unload;
	unload_result = CUDA_SUCCESS;
	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fixture.session.control = pair[0];
	vgpud = pair[1];
	check_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

/* All messages were received. */
static void end(void)
{
	shutdown(fixture.session.control, SHUT_WR);
	pthread_join(thread, NULL);
	close(fixture.session.control);
	close(vgpud);
	vgpu_close(kept.fd);
	check_eq(fixture.session.image_bytes, 0);
	fixture_deinit(&fixture);
}

/* Waits until the thread has received all messages so far. */
static void settle(void)
{
	uint8_t nothing[CONTROL_DIGEST_SIZE] = {};
	uint64_t size;
	int fd;

	store_find(&fixture.session, nothing, &fd, &size);
	vgpu_close(fd);
}

static struct vgpu_load text_in_the_arena(void)
{
	strcpy((char *)(uintptr_t)fixture.arena, TEXT);
	return (struct vgpu_load){
		.n_images = 1,
		.first = { { fixture.arena, TEXT_SIZE } },
	};
}

static struct vgpu_load_result answered;

/* With as many bytes of the block as a guest chooses to send. */
static CUresult load_module_of(struct vgpu_load *block, size_t size)
{
	Vgpu__CuModuleLoadDataExRequest request =
		VGPU__CU_MODULE_LOAD_DATA_EX_REQUEST__INIT;
	Vgpu__CuModuleLoadDataExReply *reply;

	loaded = NULL;
	request.load = (ProtobufCBinaryData){ size, (uint8_t *)block };
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuModuleLoadDataEx, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	reply = vgpu__cu_module_load_data_ex_reply__unpack(
		NULL, fixture.reply_size, fixture.reply);
	check(reply != NULL);
	check_eq(reply->load_result.len, sizeof(answered));
	memcpy(&answered, reply->load_result.data, sizeof(answered));
	vgpu__cu_module_load_data_ex_reply__free_unpacked(reply, NULL);
	return fixture.result;
}

static CUresult load_module(struct vgpu_load *block)
{
	return load_module_of(block, vgpu_load_size(block));
}

/* The same image by the digest that the last answer named. */
static struct vgpu_load by_digest(uint64_t size)
{
	struct vgpu_load block = {
		.n_images = 1,
		.first = { { 0, size } },
		.flags = VGPU_LOAD_BY_DIGEST,
	};

	memcpy(block.digest, answered.digest, sizeof(block.digest));
	return block;
}

/* Puts bytes into the store, under their own digest or any other. */
static void plant(const void *bytes, uint64_t size, bool honestly)
{
	struct sha256_ctx context;

	kept.fd = memfd_create("planted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check_eq(write(kept.fd, bytes, size), size);
	check_eq(fcntl(kept.fd, F_ADD_SEALS, SEALED), 0);
	kept.size = size;
	sha256_init(&context);
	sha256_update(&context, size, bytes);
	sha256_digest(&context, sizeof(kept.digest), kept.digest);
	if (!honestly)
		kept.digest[0] ^= 1;
	memcpy(answered.digest, kept.digest, sizeof(kept.digest));
}

/* As it is stored, with padding. */
static void plant_text(const char *text)
{
	char padded[128] = "";

	strcpy(padded, text);
	plant(padded, sizeof(padded), true);
}

TEST(an_image_is_kept_sealed_under_the_digest_of_its_bytes)
{
	uint8_t digest[SHA256_DIGEST_SIZE], bytes[128];
	struct sha256_ctx context;
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	settle();
	check_eq(kept.n_kept, 1);
	check_eq(kept.size, 128);
	check_eq(fcntl(kept.fd, F_GET_SEALS), SEALED);
	check_eq(pread(kept.fd, bytes, sizeof(bytes), 0), 128);
	check_str((char *)bytes, TEXT);
	for (size_t i = TEXT_SIZE; i < sizeof(bytes); i++)
		check_eq(bytes[i], 0);
	sha256_init(&context);
	sha256_update(&context, sizeof(bytes), bytes);
	sha256_digest(&context, sizeof(digest), digest);
	check(!memcmp(digest, kept.digest, sizeof(digest)));
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST | VGPU_LOAD_IS_SILENT);
	check(!memcmp(digest, answered.digest, sizeof(digest)));
	check_eq(fixture.stats.images_sent, 1);
	check_eq(fixture.stats.image_bytes, 128);
	end();
}

TEST(the_log_of_a_compiler_that_refuses_code_is_the_reason)
{
	char text[VGPU_REASON_TEXT_MAX], *log;
	struct vgpu_load block;

	begin();
	complaint = "ptxas: line 3\n";
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_ERROR_INVALID_PTX);
	check_eq(reason_get(fixture.session.lanes[0], text), 13);
	check(!memcmp(text, "ptxas: line 3", 13));
	/* A guest that wants the log gets both. */
	complaint = "ptxas: line 4\n";
	log = (char *)(uintptr_t)fixture.arena + 4096;
	block.log_address = (uintptr_t)log;
	block.error_size = 64;
	check_eq(load_module(&block), CUDA_ERROR_INVALID_PTX);
	check_str(log, complaint);
	check_eq(reason_get(fixture.session.lanes[0], text), 13);
	check(!memcmp(text, "ptxas: line 4", 13));
	complaint = NULL;
	end();
}

TEST(an_image_that_is_there_is_loaded_without_its_bytes)
{
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	memset((void *)(uintptr_t)fixture.arena, 'x', TEXT_SIZE);
	block = by_digest(TEXT_SIZE);
	memset(loaded_text, 0, sizeof(loaded_text));
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST | VGPU_LOAD_IS_SILENT);
	check_eq(fixture.stats.images_sent, 1);
	check_eq(fixture.stats.images_found, 1);
	/* The images that the driver uses are charged. */
	check_eq(fixture.session.totals.image_bytes, 256);
	end();
	check_eq(kept.n_kept, 1);
}

/* As if vgpud were out of budget, or of another version: nothing is kept then. */
TEST(an_image_without_a_file_is_loaded_from_memory_of_the_workers_own)
{
	struct vgpu_load block;

	begin();
	kept.is_stingy = true;
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST | VGPU_LOAD_IS_SILENT);
	end();
	check_eq(kept.n_files, 1);
	check_eq(kept.n_kept, 0);
	check_eq(kept.n_dropped, 0);
}

TEST(a_file_that_is_not_kept_is_given_back)
{
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	/* No image at all. */
	memset((void *)(uintptr_t)fixture.arena, 0x7f, TEXT_SIZE);
	check_eq(load_module(&block), CUDA_ERROR_INVALID_IMAGE);
	settle();
	check_eq(kept.n_dropped, 1);
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	settle();
	check_eq(kept.n_dropped, 1);
	/* It is there by now. */
	check_eq(load_module(&block), CUDA_SUCCESS);
	end();
	check_eq(kept.n_files, 3);
	check_eq(kept.n_kept, 1);
	check_eq(kept.n_dropped, 2);
}

TEST(the_same_bytes_sent_twice_are_kept_once)
{
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	end();
	check_eq(kept.n_kept, 1);
	check_eq(fixture.stats.images_sent, 2);
}

/* Of two that are alike the VM keeps one; what only claims to be alike is not loaded. */
TEST(bytes_that_were_sent_are_loaded_whatever_is_kept_under_their_digest)
{
	uint8_t digest[CONTROL_DIGEST_SIZE];
	char other[128] = "//other";
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	settle();
	memcpy(digest, answered.digest, sizeof(digest));
	vgpu_close(kept.fd);
	plant(other, sizeof(other), true);
	memcpy(kept.digest, digest, sizeof(digest));
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	check(!memcmp(answered.digest, digest, sizeof(digest)));
	settle();
	/* They are kept in its place, and found by the next process. */
	check_eq(kept.n_kept, 2);
	block = by_digest(TEXT_SIZE);
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	end();
	check_eq(fixture.stats.images_sent, 2);
	check_eq(fixture.stats.images_found, 1);
}

static struct vgpu_load text_of(const char *text)
{
	const struct vgpu_load block = {
		.n_images = 1,
		.first = { { fixture.arena, strlen(text) + 1 } },
	};

	strcpy((char *)(uintptr_t)fixture.arena, text);
	return block;
}

TEST(a_vgpud_that_does_not_answer_has_nothing)
{
	struct vgpu_load block;

	begin();
	plant_text(TEXT);
	block = by_digest(TEXT_SIZE);
	kept.is_mute = true;
	check_eq(load_module(&block), CUDA_ERROR_NOT_FOUND);
	check_eq(answered.flags, VGPU_LOAD_ABSENT);
	/* Which is no error of the program; another one is. */
	check_eq(fixture.session.flight->error_result, CUDA_SUCCESS);
	block.n_images = 0;
	check_eq(load_module(&block), CUDA_ERROR_INVALID_VALUE);
	check_eq(fixture.session.flight->error_result, CUDA_ERROR_INVALID_VALUE);
	block.n_images = 1;
	kept.is_mute = false;
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	check_eq(kept.n_asked, 2);
	end();
}

TEST(code_is_searched_for_printing_until_the_guest_was_notified)
{
	struct vgpu_load block;

	begin();
	block = text_of("//image");
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST | VGPU_LOAD_IS_SILENT);
	block = text_of("//vprintf");
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST);
	check_eq(session_control(&fixture.session)->may_print, 1);
	settle();
	end();
	/* Another process, which loads what the last one has kept. */
	begin();
	plant_text("//vprintf");
	block = by_digest(sizeof("//vprintf"));
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST);
	check_eq(session_control(&fixture.session)->may_print, 1);
	end();
	/* A load that claims a known digest. */
	begin();
	plant_text("//vprintf");
	block = by_digest(sizeof("//vprintf"));
	block.flags |= VGPU_LOAD_SILENT;
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST | VGPU_LOAD_IS_SILENT);
	check_eq(session_control(&fixture.session)->may_print, 0);
	/* With the bytes that claim has no effect. */
	block = text_of("//vprintf");
	block.flags = VGPU_LOAD_SILENT;
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(session_control(&fixture.session)->may_print, 1);
	end();
}

TEST(a_missing_image_is_reported_as_absent)
{
	struct vgpu_load block;

	begin();
	block = by_digest(TEXT_SIZE);
	check_eq(load_module(&block), CUDA_ERROR_NOT_FOUND);
	check_eq(answered.flags, VGPU_LOAD_ABSENT);
	check(!loaded);
	check_eq(fixture.session.totals.image_bytes, 0);
	end();
}

TEST(bytes_that_do_not_match_their_digest_are_not_loaded)
{
	struct vgpu_load block;
	char bytes[128] = TEXT;

	begin();
	plant(bytes, sizeof(bytes), false);
	block = by_digest(TEXT_SIZE);
	check_eq(load_module(&block), CUDA_ERROR_NOT_FOUND);
	check_eq(answered.flags, VGPU_LOAD_ABSENT);
	check(!loaded);
	end();
}

TEST(an_image_of_another_size_than_requested_is_absent)
{
	struct vgpu_load block;
	char bytes[128] = TEXT;

	begin();
	plant(bytes, sizeof(bytes), true);
	block = by_digest(TEXT_SIZE + 64);
	check_eq(load_module(&block), CUDA_ERROR_NOT_FOUND);
	check(!loaded);
	end();
}

/* By its digest a guest may name what another load left; it is looked at as if it had
 * come from that guest. */
TEST(an_image_that_is_there_is_checked_like_any_other)
{
	char text_without_end[128], alien[128] = "\x01\x02\x03\x04";
	struct vgpu_load block;

	begin();
	memset(text_without_end, 'x', sizeof(text_without_end));
	plant(text_without_end, sizeof(text_without_end), true);
	block = by_digest(TEXT_SIZE);
	check_eq(load_module(&block), CUDA_ERROR_INVALID_IMAGE);
	vgpu_close(kept.fd);
	plant(alien, sizeof(alien), true);
	block = by_digest(TEXT_SIZE);
	check_eq(load_module(&block), CUDA_ERROR_INVALID_IMAGE);
	check(!loaded);
	block.n_images = VGPU_LOAD_IMAGES_MAX + 1;
	check_eq(load_module(&block), CUDA_ERROR_INVALID_VALUE);
	block.n_images = 1;
	block.first[0].size = UINT64_MAX;
	check_eq(load_module(&block), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(invalid_images_are_not_kept)
{
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	*(char *)(uintptr_t)fixture.arena = 1;
	check_eq(load_module(&block), CUDA_ERROR_INVALID_IMAGE);
	settle();
	check_eq(kept.n_kept, 0);
	check_eq(fixture.session.totals.image_bytes, 0);
	end();
}

TEST(answers_to_earlier_questions_are_of_no_use)
{
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	kept.cookie_error = 1;
	block = by_digest(TEXT_SIZE);
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	end();
	check_eq(fixture.stats.images_found, 1);
}

TEST(blocks_of_another_size_than_their_images_are_refused)
{
	const size_t least = offsetof(struct vgpu_load, more);
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module_of(&block, least), CUDA_SUCCESS);
	check_eq(load_module_of(&block, least - 1), CUDA_ERROR_INVALID_VALUE);
	check_eq(load_module_of(&block, least + 16), CUDA_ERROR_INVALID_VALUE);
	check_eq(load_module_of(&block, 0), CUDA_ERROR_INVALID_VALUE);
	block.n_images = VGPU_LOAD_IMAGES_FIRST + 2;
	check_eq(load_module_of(&block, least + 16), CUDA_ERROR_INVALID_VALUE);
	check_eq(load_module_of(&block, sizeof(block)), CUDA_ERROR_INVALID_VALUE);
	block.n_images = UINT32_MAX;
	check_eq(load_module_of(&block, sizeof(block)), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(many_containers_are_one_image)
{
	struct vgpu_load block = { .n_images = VGPU_LOAD_IMAGES_MAX };

	begin();
	for (uint32_t i = 0; i < VGPU_LOAD_IMAGES_MAX; i++) {
		char *text = (char *)(uintptr_t)fixture.arena + (uint64_t)i * 64;

		strcpy(text, TEXT);
		*vgpu_load_image_at(&block, i) =
			(struct vgpu_load_image){ (uintptr_t)text, TEXT_SIZE };
	}
	check_eq(load_module(&block), CUDA_SUCCESS);
	settle();
	check_eq(kept.n_kept, 1);
	check_eq(kept.size, VGPU_LOAD_IMAGES_MAX * 128);
	block.flags = VGPU_LOAD_BY_DIGEST;
	memcpy(block.digest, answered.digest, sizeof(block.digest));
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_str(loaded_text, TEXT);
	check_eq(n_containers, VGPU_LOAD_IMAGES_MAX);
	end();
}

static CUresult load_library(struct vgpu_load *block, uint64_t *handlep)
{
	Vgpu__CuLibraryLoadDataRequest request = VGPU__CU_LIBRARY_LOAD_DATA_REQUEST__INIT;
	Vgpu__CuLibraryLoadDataReply *reply;

	request.load = (ProtobufCBinaryData){ vgpu_load_size(block), (uint8_t *)block };
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuLibraryLoadData, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	reply = vgpu__cu_library_load_data_reply__unpack(
		NULL, fixture.reply_size, fixture.reply);
	check(reply != NULL);
	check_eq(reply->load_result.len, sizeof(answered));
	memcpy(&answered, reply->load_result.data, sizeof(answered));
	*handlep = reply->library;
	vgpu__cu_library_load_data_reply__free_unpacked(reply, NULL);
	return fixture.result;
}

static CUresult unload_library(uint64_t handle)
{
	Vgpu__CuLibraryUnloadRequest request = VGPU__CU_LIBRARY_UNLOAD_REQUEST__INIT;

	request.library = handle;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuLibraryUnload, VGPU_FRAME_REPLY,
			 &request.base),
		0);
	return fixture.result;
}

static unsigned int n_mapped(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	check(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "vgpu-image")) {
			check(strstr(line, " r--s ") != NULL);
			n++;
		}
	fclose(file);
	return n;
}

TEST(the_code_of_a_library_stays_mapped_until_it_is_unloaded)
{
	struct vgpu_load block;
	uint64_t handle;

	begin();
	block = text_in_the_arena();
	check_eq(load_library(&block, &handle), CUDA_SUCCESS);
	check_eq(library_option, CU_LIBRARY_BINARY_IS_PRESERVED);
	check_eq(answered.flags, VGPU_LOAD_HAS_DIGEST | VGPU_LOAD_IS_SILENT);
	memset((void *)(uintptr_t)fixture.arena, 'x', TEXT_SIZE);
	check_str(loaded, TEXT);
	check_eq(n_mapped(), 1);
	check_eq(fixture.session.totals.image_bytes, 128);
	check_eq(fixture.session.image_bytes, 0);
	check_eq(unload_library(handle), CUDA_SUCCESS);
	check_eq(n_mapped(), 0);
	check_eq(fixture.session.totals.image_bytes, 0);
	check_eq(unload_library(handle), CUDA_ERROR_INVALID_HANDLE);
	end();
}

TEST(the_code_of_a_linked_library_stays_with_all_its_parts)
{
	struct vgpu_load block = { .n_images = 2 };
	uint64_t handle;

	begin();
	for (uint32_t i = 0; i < 2; i++) {
		char *text = (char *)(uintptr_t)fixture.arena + (uint64_t)i * 64;

		strcpy(text, TEXT);
		*vgpu_load_image_at(&block, i) =
			(struct vgpu_load_image){ (uintptr_t)text, TEXT_SIZE };
	}
	check_eq(load_library(&block, &handle), CUDA_SUCCESS);
	check_eq(n_containers, 2);
	check_str(((const void *const *)((const struct code_wrapper *)loaded)
				  ->prelinked)[0],
		TEXT);
	check_eq(fixture.session.totals.image_bytes, 256);
	check_eq(unload_library(handle), CUDA_SUCCESS);
	check_eq(n_mapped(), 0);
	end();
}

/* The driver may still read it then. */
TEST(the_code_of_a_library_that_is_not_unloaded_stays_charged)
{
	struct vgpu_load block;
	uint64_t handle;

	begin();
	block = text_in_the_arena();
	check_eq(load_library(&block, &handle), CUDA_SUCCESS);
	unload_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	check_eq(unload_library(handle), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(n_mapped(), 1);
	check_eq(fixture.session.totals.image_bytes, 128);
	end();
}

TEST(modules_leave_nothing_mapped)
{
	struct vgpu_load block;

	begin();
	block = text_in_the_arena();
	check_eq(load_module(&block), CUDA_SUCCESS);
	check_eq(n_mapped(), 0);
	check_eq(fixture.session.totals.image_bytes, 128);
	end();
}

TEST(a_second_load_of_a_library_uses_the_loaded_image)
{
	uint64_t first, second;
	struct vgpu_load block;
	const char *mapped;

	begin();
	block = text_in_the_arena();
	check_eq(load_library(&block, &first), CUDA_SUCCESS);
	settle();
	mapped = loaded;
	block = by_digest(TEXT_SIZE);
	/* It can neither be found nor be trusted any more. */
	kept.digest[0] ^= 1;
	kept.n_asked = 0;
	check_eq(load_library(&block, &second), CUDA_SUCCESS);
	check(loaded == mapped);
	check_eq(kept.n_asked, 0);
	check_eq(fixture.stats.images_found, 1);
	check_eq(fixture.session.totals.image_bytes, 256);
	check_eq(unload_library(first), CUDA_SUCCESS);
	check_str(mapped, TEXT);
	check_eq(fixture.session.totals.image_bytes, 128);
	check_eq(unload_library(second), CUDA_SUCCESS);
	check_eq(fixture.session.totals.image_bytes, 0);
	/* An image without a library is. */
	check_eq(load_library(&block, &first), CUDA_ERROR_NOT_FOUND);
	check_eq(kept.n_asked, 1);
	end();
}
