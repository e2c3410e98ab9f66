/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of array elements
 */

#include <string.h>

#include "test.h"

#include "runtime/format.h"

static bool convert(
	struct rt_format *format, int x, int y, int z, int w, cudaChannelFormatKind kind)
{
	return rt_format_from_desc(format, &(cudaChannelFormatDesc){ x, y, z, w, kind });
}

TEST(numbers_have_one_two_or_four_channels_of_one_width)
{
	struct rt_format format;

	check(convert(&format, 32, 0, 0, 0, cudaChannelFormatKindFloat));
	check_eq(format.format, CU_AD_FORMAT_FLOAT);
	check_eq(format.n_channels, 1);
	check_eq(rt_format_size(&format), 4);
	check(convert(&format, 16, 16, 0, 0, cudaChannelFormatKindFloat));
	check_eq(format.format, CU_AD_FORMAT_HALF);
	check_eq(rt_format_size(&format), 4);
	check(convert(&format, 8, 8, 8, 8, cudaChannelFormatKindSigned));
	check_eq(format.format, CU_AD_FORMAT_SIGNED_INT8);
	check_eq(format.n_channels, 4);
	check(!convert(&format, 32, 32, 32, 0, cudaChannelFormatKindFloat));
	check(!convert(&format, 32, 16, 0, 0, cudaChannelFormatKindFloat));
	check(!convert(&format, 32, 0, 32, 0, cudaChannelFormatKindFloat));
	check(!convert(&format, 0, 32, 0, 0, cudaChannelFormatKindFloat));
	check(!convert(&format, 8, 0, 0, 0, cudaChannelFormatKindFloat));
	check(!convert(&format, 24, 0, 0, 0, cudaChannelFormatKindSigned));
	check(!convert(&format, 0, 0, 0, 0, cudaChannelFormatKindSigned));
	check(!convert(&format, 0, 0, 0, 0, cudaChannelFormatKindNone));
	check(!convert(&format, -8, 0, 0, 0, cudaChannelFormatKindSigned));
}

TEST(every_kind_converts_both_ways)
{
	size_t n = 0;

	for (int kind = 0; kind <= cudaChannelFormatKindUnsignedBlockCompressed7SRGB;
		kind++) {
		for (int bits = 8; bits <= 32; bits *= 2) {
			struct rt_format format, again;
			cudaChannelFormatDesc desc;

			if (!convert(&format, bits, 0, 0, 0, (cudaChannelFormatKind)kind))
				continue;
			n++;
			check(rt_format_to_desc(&desc, &format));
			check_eq((int)desc.f, kind);
			check_eq(desc.x, bits);
			check(rt_format_from_desc(&again, &desc));
			check_eq(again.format, format.format);
			check_eq(again.n_channels, format.n_channels);
		}
	}
	/* Eight of numbers, twelve normalised, fourteen compressed. */
	check_eq(n, 8 + 12 + 14);
}

TEST(unknown_formats_are_refused)
{
	cudaChannelFormatDesc desc;
	const struct rt_format planar = { CU_AD_FORMAT_NV12, 3 };
	const struct rt_format block = { CU_AD_FORMAT_BC7_UNORM, 4 };
	const struct rt_format many = { CU_AD_FORMAT_FLOAT, 5 };

	check(!rt_format_to_desc(&desc, &planar));
	check(!rt_format_to_desc(&desc, &many));
	check_eq(rt_format_size(&planar), 0);
	check_eq(rt_format_size(&block), 0);
}
