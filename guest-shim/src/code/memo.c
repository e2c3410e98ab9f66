/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memo
 *
 * A hash table of packed requests and replies under one lock, which is held for a look
 * or a small copy. Each answer bears the epoch that was read before it was asked for: if
 * anything it depends on changed since, the epoch has grown, and it is asked for again.
 * So an answer that was on its way during the change is never believed.
 *
 * Memory is bounded. A table that is full is emptied: what is still of use is soon back.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/message.h"

#include "code/memo.h"
#include "code/function.h"
#include "process/context.h"
#include "process/thread.h"
#include "wire/lock.h"

#define N_BUCKETS 4096u
/* Some ten thousand answers. */
#define BYTES_MAX (4u << 20)
/* A name of 4096 bytes and a few numbers. */
#define REQUEST_MAX 4224u

struct key {
	uint64_t context; /* 0 of calls that need none */
	uint32_t lane;	  /* of what differs by thread, else 0 */
	uint16_t call;
	uint16_t size; /* of the request */
	uint8_t request[REQUEST_MAX];
};

struct answer {
	struct answer *next;
	uint64_t hash;
	uint64_t epoch;
	uint32_t key_size;
	uint32_t reply_size;
	uint8_t bytes[]; /* the key, then the reply */
};

static struct {
	struct shim_lock lock;
	struct answer *buckets[N_BUCKETS];
	size_t bytes;
} memo;

/* By VGPU_REMEMBERS_*; atomic. */
static uint64_t epochs[_VGPU_REMEMBERS_N];

static uint64_t hash_of(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	uint64_t hash = size, word;

	for (; size; byte += sizeof(word)) {
		size_t n = size < sizeof(word) ? size : sizeof(word);

		word = 0;
		memcpy(&word, byte, n);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
		size -= n;
	}
	return hash;
}

static size_t key_size(const struct key *key)
{
	return offsetof(struct key, request) + key->size;
}

static void make_key(struct key *key, const struct shim_thread *thread, uint16_t call,
	const ProtobufCMessage *request)
{
	bool has_context = vgpu_call_flags[call] & VGPU_CALL_F_CONTEXT;

	assert(vgpu_call_request_max[call] <= REQUEST_MAX);
	/* Each thread has its own default stream. */
	key->lane = vgpu_call_remembers[call] == VGPU_REMEMBERS_STREAM ? thread->lane : 0;
	key->context = has_context ? shim_context_handle(shim_thread_top(thread)) : 0;
	key->call = call;
	key->size = (uint16_t)vgpu_message_pack(request, key->request);
}

static struct answer **find(const struct key *key, uint64_t hash)
{
	struct answer **answerp = &memo.buckets[hash % N_BUCKETS];

	while (*answerp &&
		((*answerp)->hash != hash || (*answerp)->key_size != key_size(key) ||
			memcmp((*answerp)->bytes, key, key_size(key)) != 0))
		answerp = &(*answerp)->next;
	return answerp;
}

/* Copies what is remembered. Return: whether there is something. */
static bool look_up(const struct key *key, uint64_t hash, uint64_t epoch,
	uint8_t reply[VGPU_REPLY_MAX], uint32_t *sizep)
{
	const struct answer *answer;
	SHIM_LOCKED(&memo.lock);

	answer = *find(key, hash);
	if (!answer || answer->epoch != epoch)
		return false;
	*sizep = answer->reply_size;
	memcpy(reply, answer->bytes + answer->key_size, answer->reply_size);
	return true;
}

static size_t memory_of(const struct answer *answer)
{
	return sizeof(*answer) + answer->key_size + answer->reply_size;
}

/* Returns: the answers that were there, chained. */
static struct answer *take_all(void)
{
	struct answer *all = NULL;

	for (uint32_t i = 0; i < N_BUCKETS; i++) {
		while (memo.buckets[i]) {
			struct answer *answer = memo.buckets[i];

			memo.buckets[i] = answer->next;
			answer->next = all;
			all = answer;
		}
	}
	memo.bytes = 0;
	return all;
}

static void put(struct answer *answer, const struct key *key)
{
	struct answer *old = NULL, **place;

	shim_lock(&memo.lock);
	if (memo.bytes + memory_of(answer) > BYTES_MAX)
		old = take_all();
	place = find(key, answer->hash);
	if (*place) {
		old = *place;
		*place = old->next;
		old->next = NULL;
		memo.bytes -= memory_of(old);
	}
	answer->next = *place;
	*place = answer;
	memo.bytes += memory_of(answer);
	shim_unlock(&memo.lock);

	while (old) {
		struct answer *next = old->next;

		free(old);
		old = next;
	}
}

static void remember(const struct key *key, uint64_t hash, uint64_t epoch,
	const ProtobufCMessage *reply)
{
	size_t bound = vgpu_message_bound(reply);
	struct answer *answer = malloc(sizeof(*answer) + key_size(key) + bound);

	/* Without memory it is asked again. */
	if (!answer)
		return;
	answer->hash = hash;
	answer->epoch = epoch;
	answer->key_size = (uint32_t)key_size(key);
	memcpy(answer->bytes, key, key_size(key));
	answer->reply_size =
		(uint32_t)vgpu_message_pack(reply, answer->bytes + answer->key_size);
	put(answer, key);
}

/* Returns: NULL without memory. */
static const ProtobufCMessage *unpack(struct shim_thread *thread,
	const ProtobufCMessageDescriptor *type, const uint8_t *bytes, uint32_t size)
{
	shim_thread_reset_arena(thread);
	return vgpu_message_unpack(type, &thread->allocator, size, bytes);
}

CUresult shim_memo_call(struct shim_call *call, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp)
{
	CUresult result = shim_call_check(call->id);
	const ProtobufCMessage *reply = NULL;
	uint8_t bytes[VGPU_REPLY_MAX];
	struct shim_thread *thread;
	uint64_t epoch, hash;
	struct key key;
	uint32_t size;

	assert(vgpu_call_remembers[call->id] != VGPU_REMEMBERS_NOTHING);
	if (replyp)
		*replyp = NULL;
	if (result != CUDA_SUCCESS)
		return result;
	thread = shim_thread_get();
	make_key(&key, thread, call->id, request);
	hash = hash_of(&key, key_size(&key));
	/* Partner: shim_memo_forget(), after the host has changed something. */
	epoch = __atomic_load_n(&epochs[vgpu_call_remembers[call->id]], __ATOMIC_ACQUIRE);
	if (look_up(&key, hash, epoch, bytes, &size))
		reply = unpack(thread, reply_type, bytes, size);
	if (!reply) {
		result = shim_call_sync(call, request, reply_type, &reply);
		if (result == CUDA_SUCCESS && reply)
			remember(&key, hash, epoch, reply);
	}
	if (replyp)
		*replyp = reply;
	return result;
}

static void forget(unsigned int what)
{
	/* Partner: the load in shim_memo_call(). */
	__atomic_add_fetch(&epochs[what], 1, __ATOMIC_RELEASE);
}

void shim_memo_forget(unsigned int what)
{
	forget(what);
	/* The function of an attribute may have been unloaded. */
	if (what == VGPU_REMEMBERS_CODE)
		forget(VGPU_REMEMBERS_SETTING);
	/* A launch may have been accepted meanwhile that would not be now. */
	if (what == VGPU_REMEMBERS_SETTING)
		shim_function_forget_launches();
}

void shim_memo_forget_context(void)
{
	forget(VGPU_REMEMBERS_STREAM);
	forget(VGPU_REMEMBERS_CODE);
	forget(VGPU_REMEMBERS_SETTING);
}
