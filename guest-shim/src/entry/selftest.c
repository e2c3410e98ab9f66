/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start-up check of NVIDIA's CUDA runtime library
 *
 * When it starts, the runtime calls a function of the driver three times for 16 bytes,
 * with its own version number and the two that follow, and fails unless the results are
 * those it expects. Two are constant. The third is HMAC-MD2 (RFC 2104 over RFC 1319, with
 * blocks of 16 bytes) of properties that the process can see of this library: versions,
 * process and thread, the addresses of two tables, time, and UUID and PCI address of each
 * device.
 *
 * It is an interface like any other here: its contents are published by two free
 * projects, ZLUDA (github.com/vosen/ZLUDA, file dark_api/src/lib.rs) and LUPINE
 * (github.com/lupinemachines/lupine, file cuda_client.cpp), and were confirmed by
 * observing what an unmodified runtime accepts. It protects nothing: no licence, no
 * content, no other program. It can be left out: -Dcudart_selftest=disabled.
 */

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "entry/export.h"
#include "entry/selftest.h"
#include "process/device.h"
#include "process/shim.h"

#define MD2_BLOCK 16

/* The fixed part of the message; all members are naturally aligned. */
struct question {
	uint32_t driver_version;
	uint32_t version;
	uint32_t pid;
	uint32_t thread;
	const void *runtime_table;
	const void *selftest_table;
	const void *selftest_function;
	uint64_t time;
};

struct question_device {
	uint8_t uuid[16];
	int32_t domain;
	int32_t bus;
	int32_t device;
};

static_assert(sizeof(struct question) == 48, "no padding");
static_assert(sizeof(struct question_device) == 28, "no padding");

struct md2 {
	uint8_t state[48];
	uint8_t checksum[MD2_BLOCK];
	uint8_t block[MD2_BLOCK];
	size_t n; /* bytes in block */
};

/* The substitution of RFC 1319, a permutation shuffled by the digits of pi. */
static const uint8_t pi_table[256] = {
	41,
	46,
	67,
	201,
	162,
	216,
	124,
	1,
	61,
	54,
	84,
	161,
	236,
	240,
	6,
	19,
	98,
	167,
	5,
	243,
	192,
	199,
	115,
	140,
	152,
	147,
	43,
	217,
	188,
	76,
	130,
	202,
	30,
	155,
	87,
	60,
	253,
	212,
	224,
	22,
	103,
	66,
	111,
	24,
	138,
	23,
	229,
	18,
	190,
	78,
	196,
	214,
	218,
	158,
	222,
	73,
	160,
	251,
	245,
	142,
	187,
	47,
	238,
	122,
	169,
	104,
	121,
	145,
	21,
	178,
	7,
	63,
	148,
	194,
	16,
	137,
	11,
	34,
	95,
	33,
	128,
	127,
	93,
	154,
	90,
	144,
	50,
	39,
	53,
	62,
	204,
	231,
	191,
	247,
	151,
	3,
	255,
	25,
	48,
	179,
	72,
	165,
	181,
	209,
	215,
	94,
	146,
	42,
	172,
	86,
	170,
	198,
	79,
	184,
	56,
	210,
	150,
	164,
	125,
	182,
	118,
	252,
	107,
	226,
	156,
	116,
	4,
	241,
	69,
	157,
	112,
	89,
	100,
	113,
	135,
	32,
	134,
	91,
	207,
	101,
	230,
	45,
	168,
	2,
	27,
	96,
	37,
	173,
	174,
	176,
	185,
	246,
	28,
	70,
	97,
	105,
	52,
	64,
	126,
	15,
	85,
	71,
	163,
	35,
	221,
	81,
	175,
	58,
	195,
	92,
	249,
	206,
	186,
	197,
	234,
	38,
	44,
	83,
	13,
	110,
	133,
	40,
	132,
	9,
	211,
	223,
	205,
	244,
	65,
	129,
	77,
	82,
	106,
	220,
	55,
	200,
	108,
	193,
	171,
	250,
	36,
	225,
	123,
	8,
	12,
	189,
	177,
	74,
	120,
	136,
	149,
	139,
	227,
	99,
	232,
	109,
	233,
	203,
	213,
	254,
	59,
	0,
	29,
	57,
	242,
	239,
	183,
	14,
	102,
	88,
	208,
	228,
	166,
	119,
	114,
	248,
	235,
	117,
	75,
	10,
	49,
	68,
	80,
	180,
	143,
	237,
	31,
	26,
	219,
	153,
	141,
	51,
	159,
	17,
	131,
	20,
};

/* Adds a block to the checksum. */
static void md2_check(struct md2 *md2, const uint8_t *block)
{
	uint8_t last = md2->checksum[MD2_BLOCK - 1];

	for (int i = 0; i < MD2_BLOCK; i++) {
		md2->checksum[i] ^= pi_table[block[i] ^ last];
		last = md2->checksum[i];
	}
}

static void md2_mix(struct md2 *md2, const uint8_t *block)
{
	uint8_t t = 0;

	for (int i = 0; i < MD2_BLOCK; i++) {
		md2->state[16 + i] = block[i];
		md2->state[32 + i] = block[i] ^ md2->state[i];
	}
	for (int round = 0; round < 18; round++) {
		for (int i = 0; i < 48; i++)
			t = md2->state[i] ^= pi_table[t];
		t = (uint8_t)(t + round);
	}
}

static void md2_add(struct md2 *md2, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++) {
		md2->block[md2->n++] = bytes[i];
		if (md2->n < MD2_BLOCK)
			continue;
		md2_check(md2, md2->block);
		md2_mix(md2, md2->block);
		md2->n = 0;
	}
}

static void md2_finish(struct md2 *md2, uint8_t digest[MD2_BLOCK])
{
	uint8_t padding[MD2_BLOCK], checksum[MD2_BLOCK];
	size_t n = MD2_BLOCK - md2->n;

	memset(padding, (int)n, n);
	md2_add(md2, padding, n);
	memcpy(checksum, md2->checksum, sizeof(checksum));
	md2_mix(md2, checksum);
	memcpy(digest, md2->state, MD2_BLOCK);
}

struct hmac {
	struct md2 inner;
	struct md2 outer;
};

/* The key is at most a block long. */
static void hmac_begin(struct hmac *hmac, const uint8_t *key, size_t size)
{
	uint8_t inner[MD2_BLOCK] = {}, outer[MD2_BLOCK];

	memcpy(inner, key, size < MD2_BLOCK ? size : MD2_BLOCK);
	for (int i = 0; i < MD2_BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	*hmac = (struct hmac){};
	md2_add(&hmac->inner, inner, sizeof(inner));
	md2_add(&hmac->outer, outer, sizeof(outer));
}

static void hmac_finish(struct hmac *hmac, uint8_t digest[MD2_BLOCK])
{
	md2_finish(&hmac->inner, digest);
	md2_add(&hmac->outer, digest, MD2_BLOCK);
	md2_finish(&hmac->outer, digest);
}

void shim_selftest_hmac_md2(const uint8_t *key, size_t key_size, const uint8_t *message,
	size_t message_size, uint8_t digest[SHIM_SELFTEST_REPLY_SIZE])
{
	struct hmac hmac;

	hmac_begin(&hmac, key, key_size);
	md2_add(&hmac.inner, message, message_size);
	hmac_finish(&hmac, digest);
}

static CUresult answer(uint32_t version, uint64_t time, uint8_t reply[16]);

/* Slot 0 is the size in bytes. Runtimes 11 refuse a table without a third slot, which no
 * runtime calls. */
static const void *const table[3] = { (const void *)sizeof(table), (const void *)answer };

static int32_t attribute(const struct vgpu_device_info *device, int number)
{
	int value = 0;

	shim_device_attribute(device, number, &value);
	return value;
}

static void answer_digest(uint32_t version, uint64_t time, uint8_t reply[16])
{
	static const uint8_t key[16] = { 0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
		0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f };
	const struct question question = {
		.driver_version = CUDA_VERSION,
		.version = version,
		.pid = (uint32_t)getpid(),
		.thread = (uint32_t)pthread_self(),
		.runtime_table = shim_export_runtime_table(),
		.selftest_table = table,
		.selftest_function = table[1],
		.time = time,
	};
	struct hmac hmac;

	hmac_begin(&hmac, key, sizeof(key));
	md2_add(&hmac.inner, &question, sizeof(question));
	for (CUdevice i = 0; i < shim_device_n(); i++) {
		const struct vgpu_device_info *device = shim_device_get(i);
		struct question_device about = {
			.domain = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
			.bus = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
			.device = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
		};

		memcpy(about.uuid, &device->uuid, sizeof(about.uuid));
		md2_add(&hmac.inner, &about, sizeof(about));
	}
	hmac_finish(&hmac, reply);
}

static CUresult answer(uint32_t version, uint64_t time, uint8_t reply[16])
{
	static const uint8_t constant[2][16] = {
		{ 0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33, 0xe8, 0xd1, 0x4c, 0x1f,
			0xaa, 0x83, 0xd3, 0x8e },
		{ 0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x18, 0xe8, 0xd1, 0x4c, 0x1f,
			0xaa, 0x83, 0xd3, 0x8e },
	};

	SHIM_CHECK_READY();
	if (!reply)
		return CUDA_ERROR_INVALID_VALUE;
	if (version % 10 < 2)
		memcpy(reply, constant[version % 10], 16);
	else
		answer_digest(version, time, reply);
	return CUDA_SUCCESS;
}

const void *shim_selftest_table(void)
{
	return table;
}
