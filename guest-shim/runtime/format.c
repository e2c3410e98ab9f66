/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of array elements
 */

#include <string.h>

#include "runtime/format.h"

struct row {
	cudaChannelFormatKind kind;
	CUarray_format format;
	/* Of each channel; these formats have a fixed number of channels. */
	int bits;
	unsigned int n_channels;
};

/* Formats of plain numbers have 1, 2 or 4 channels. */
static const struct row numbers[] = {
	{ cudaChannelFormatKindUnsigned, CU_AD_FORMAT_UNSIGNED_INT8, 8 },
	{ cudaChannelFormatKindUnsigned, CU_AD_FORMAT_UNSIGNED_INT16, 16 },
	{ cudaChannelFormatKindUnsigned, CU_AD_FORMAT_UNSIGNED_INT32, 32 },
	{ cudaChannelFormatKindSigned, CU_AD_FORMAT_SIGNED_INT8, 8 },
	{ cudaChannelFormatKindSigned, CU_AD_FORMAT_SIGNED_INT16, 16 },
	{ cudaChannelFormatKindSigned, CU_AD_FORMAT_SIGNED_INT32, 32 },
	{ cudaChannelFormatKindFloat, CU_AD_FORMAT_HALF, 16 },
	{ cudaChannelFormatKindFloat, CU_AD_FORMAT_FLOAT, 32 },
};

#define NORMALIZED(_sign, _SIGN, _bits, _n)                                              \
	{                                                                                \
		cudaChannelFormatKind##_sign##Normalized##_bits##X##_n,                  \
			CU_AD_FORMAT_##_SIGN##NORM_INT##_bits##X##_n, _bits, _n          \
	}
#define BLOCKS(_kind, _format, _bits, _n)                                                \
	{                                                                                \
		cudaChannelFormatKind##_kind, CU_AD_FORMAT_##_format, _bits, _n          \
	}

static const struct row others[] = {
	NORMALIZED(Unsigned, U, 8, 1),
	NORMALIZED(Unsigned, U, 8, 2),
	NORMALIZED(Unsigned, U, 8, 4),
	NORMALIZED(Unsigned, U, 16, 1),
	NORMALIZED(Unsigned, U, 16, 2),
	NORMALIZED(Unsigned, U, 16, 4),
	NORMALIZED(Signed, S, 8, 1),
	NORMALIZED(Signed, S, 8, 2),
	NORMALIZED(Signed, S, 8, 4),
	NORMALIZED(Signed, S, 16, 1),
	NORMALIZED(Signed, S, 16, 2),
	NORMALIZED(Signed, S, 16, 4),
	BLOCKS(UnsignedBlockCompressed1, BC1_UNORM, 8, 4),
	BLOCKS(UnsignedBlockCompressed1SRGB, BC1_UNORM_SRGB, 8, 4),
	BLOCKS(UnsignedBlockCompressed2, BC2_UNORM, 8, 4),
	BLOCKS(UnsignedBlockCompressed2SRGB, BC2_UNORM_SRGB, 8, 4),
	BLOCKS(UnsignedBlockCompressed3, BC3_UNORM, 8, 4),
	BLOCKS(UnsignedBlockCompressed3SRGB, BC3_UNORM_SRGB, 8, 4),
	BLOCKS(UnsignedBlockCompressed4, BC4_UNORM, 8, 1),
	BLOCKS(SignedBlockCompressed4, BC4_SNORM, 8, 1),
	BLOCKS(UnsignedBlockCompressed5, BC5_UNORM, 8, 2),
	BLOCKS(SignedBlockCompressed5, BC5_SNORM, 8, 2),
	BLOCKS(UnsignedBlockCompressed6H, BC6H_UF16, 16, 3),
	BLOCKS(SignedBlockCompressed6H, BC6H_SF16, 16, 3),
	BLOCKS(UnsignedBlockCompressed7, BC7_UNORM, 8, 4),
	BLOCKS(UnsignedBlockCompressed7SRGB, BC7_UNORM_SRGB, 8, 4),
};

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
#define N_OTHERS (sizeof(others) / sizeof(others[0]))

/* How many channels have bits, 0 if they differ, have a gap, or are three. */
static unsigned int count_channels(const cudaChannelFormatDesc *desc)
{
	const int bits[] = { desc->x, desc->y, desc->z, desc->w };
	unsigned int n = 0;

	while (n < 4 && bits[n])
		n++;
	for (unsigned int i = 0; i < 4; i++) {
		if (bits[i] != (i < n ? desc->x : 0))
			return 0;
	}
	return n == 3 ? 0 : n;
}

bool rt_format_from_desc(struct rt_format *format, const cudaChannelFormatDesc *desc)
{
	unsigned int n_channels = count_channels(desc);

	for (size_t i = 0; i < N_NUMBERS && n_channels; i++) {
		if (numbers[i].kind != desc->f || numbers[i].bits != desc->x)
			continue;
		*format = (struct rt_format){ numbers[i].format, n_channels };
		return true;
	}
	for (size_t i = 0; i < N_OTHERS; i++) {
		if (others[i].kind != desc->f || others[i].bits != desc->x)
			continue;
		*format = (struct rt_format){ others[i].format, others[i].n_channels };
		return true;
	}
	return false;
}

bool rt_format_to_desc(cudaChannelFormatDesc *desc, const struct rt_format *format)
{
	const struct row *row = NULL;
	unsigned int n = format->n_channels;
	int bits;

	for (size_t i = 0; i < N_NUMBERS; i++) {
		if (numbers[i].format == format->format)
			row = &numbers[i];
	}
	for (size_t i = 0; i < N_OTHERS; i++) {
		if (others[i].format == format->format)
			row = &others[i];
	}
	if (!row || n > 4)
		return false;
	bits = row->bits;
	*desc = (cudaChannelFormatDesc){
		.x = n > 0 ? bits : 0,
		.y = n > 1 ? bits : 0,
		.z = n > 2 ? bits : 0,
		.w = n > 3 ? bits : 0,
		.f = row->kind,
	};
	return true;
}

size_t rt_format_size(const struct rt_format *format)
{
	for (size_t i = 0; i < N_NUMBERS; i++) {
		if (numbers[i].format == format->format)
			return format->n_channels * (size_t)numbers[i].bits / 8;
	}
	for (size_t i = 0; i < N_OTHERS; i++) {
		/* The first twelve are no blocks. */
		if (others[i].format == format->format && i < 12)
			return others[i].n_channels * (size_t)others[i].bits / 8;
	}
	return 0;
}
