/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures that filter, have layers and levels, or lie over plain memory; a surface that
 * a kernel writes and a texture reads afterwards
 */

#include "runtime.h"

#include <cmath>

static const int width = 33, height = 17, layers = 3;

__global__ void sample(cudaTextureObject_t texture, float *out, float dx, float dy)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] = tex2D<float>(texture, x + dx, y + dy);
}

__global__ void sample_layer(cudaTextureObject_t texture, float4 *out, int layer)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] =
		tex2DLayered<float4>(texture, x + 0.5f, y + 0.5f, layer);
}

__global__ void sample_level(cudaTextureObject_t texture, float *out)
{
	out[threadIdx.x] = tex2DLod<float>(texture, 0.5f, 0.5f, threadIdx.x * 0.25f);
}

__global__ void fetch(cudaTextureObject_t texture, short2 *out)
{
	out[threadIdx.x] = tex1Dfetch<short2>(texture, threadIdx.x);
}

__global__ void paint(cudaSurfaceObject_t surface)
{
	int x = threadIdx.x, y = blockIdx.x;
	uchar4 before = surf2Dread<uchar4>(surface, x * 4, y);

	surf2Dwrite(make_uchar4(before.x + 1, x, y, x ^ y), surface, x * 4, y);
}

__global__ void read_fractions(cudaTextureObject_t texture, float4 *out)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] = tex2D<float4>(texture, x, y);
}

/* Faces are written by a surface, and read along directions by a texture. */
__global__ void paint_faces(cudaSurfaceObject_t surface)
{
	int x = threadIdx.x, y = threadIdx.y, face = blockIdx.x;

	surfCubemapwrite(100.0f * face + 10 * y + x, surface, x * 4, y, face);
}

__global__ void sample_cube(cudaTextureObject_t texture, const float3 *in, float *out)
{
	float3 at = in[threadIdx.x];

	out[threadIdx.x] = texCubemap<float>(texture, at.x, at.y, at.z);
}

__global__ void sample_gradient(cudaTextureObject_t texture, float *out)
{
	float step = (1 << threadIdx.x) / 8.0f;

	out[threadIdx.x] = tex2DGrad<float>(
		texture, 0.5f, 0.5f, make_float2(step, 0), make_float2(0, 0.125f));
}

__global__ void gather(cudaTextureObject_t texture, float4 *out)
{
	int x = threadIdx.x;

	out[x] = tex2Dgather<float4>(texture, x + 1.0f, 3.0f);
}

static bool is_near(float a, float b)
{
	return std::fabs(a - b) <= 1e-4f * (1 + std::fabs(b));
}

static cudaTextureObject_t make(
	cudaResourceDesc resource, cudaTextureFilterMode filter, cudaTextureReadMode read)
{
	cudaTextureObject_t texture = 0;
	cudaTextureDesc description = {};

	description.addressMode[0] = cudaAddressModeClamp;
	description.addressMode[1] = cudaAddressModeClamp;
	description.filterMode = filter;
	description.readMode = read;
	CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	return texture;
}

static cudaResourceDesc over(cudaArray_t array)
{
	cudaResourceDesc resource = {};

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	return resource;
}

static float clamped(const std::vector<float> &image, int x, int y)
{
	x = x < 0 ? 0 : x >= width ? width - 1 : x;
	y = y < 0 ? 0 : y >= height ? height - 1 : y;
	return image[y * width + x];
}

static size_t filtering(float dx, float dy)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	std::vector<float> image(width * height), got(width * height);
	cudaTextureObject_t texture;
	size_t n_wrong = 0;
	cudaArray_t array;
	float *out;

	for (int i = 0; i < width * height; i++)
		image[i] = (i * 7919 % 1000) / 10.0f;
	CUDA(cudaMallocArray(&array, &format, width, height));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * 4, width * 4, height,
		cudaMemcpyHostToDevice));
	CUDA(cudaMalloc(&out, width * height * 4));
	texture = make(over(array), cudaFilterModeLinear, cudaReadModeElementType);
	sample<<<height, width>>>(texture, out, dx, dy);
	CUDA(cudaMemcpy(got.data(), out, width * height * 4, cudaMemcpyDeviceToHost));
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			float xb = x + dx - 0.5f, yb = y + dy - 0.5f;
			int i = std::floor(xb), j = std::floor(yb);
			float a = xb - i, b = yb - j;
			float wanted = (1 - a) * (1 - b) * clamped(image, i, j) +
				       a * (1 - b) * clamped(image, i + 1, j) +
				       (1 - a) * b * clamped(image, i, j + 1) +
				       a * b * clamped(image, i + 1, j + 1);

			n_wrong += !is_near(got[y * width + x], wanted);
		}
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(out));
	return n_wrong;
}

static size_t layered()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
	std::vector<float4> image(width * height * layers), got(width * height);
	cudaExtent extent = make_cudaExtent(width, height, layers);
	cudaMemcpy3DParms copy = {};
	cudaTextureObject_t texture;
	size_t n_wrong = 0;
	float4 *out;

	for (int i = 0; i < width * height * layers; i++)
		image[i] = make_float4(i, -i, 0.5f * i, 1);
	CUDA(cudaMalloc3DArray(&copy.dstArray, &format, extent, cudaArrayLayered));
	copy.srcPtr = make_cudaPitchedPtr(image.data(), width * 16, width, height);
	copy.extent = extent;
	copy.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&copy));
	CUDA(cudaMalloc(&out, width * height * 16));
	texture = make(over(copy.dstArray), cudaFilterModePoint, cudaReadModeElementType);
	for (int layer = 0; layer < layers; layer++) {
		const float4 *wanted = &image[layer * width * height];

		sample_layer<<<height, width>>>(texture, out, layer);
		CUDA(cudaMemcpy(
			got.data(), out, width * height * 16, cudaMemcpyDeviceToHost));
		for (int i = 0; i < width * height; i++)
			n_wrong += got[i].x != wanted[i].x || got[i].y != wanted[i].y ||
				   got[i].z != wanted[i].z || got[i].w != wanted[i].w;
	}
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(copy.dstArray));
	CUDA(cudaFree(out));
	return n_wrong;
}

static size_t levels()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture = 0;
	cudaTextureDesc description = {};
	cudaResourceDesc resource = {};
	cudaMipmappedArray_t mipmap;
	float got[16], *out;
	size_t n_wrong = 0;

	CUDA(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(8, 8, 0), 4));
	for (int i = 0; i < 4; i++) {
		std::vector<float> image(64, 8.0f * i);
		cudaArray_t level;

		CUDA(cudaGetMipmappedArrayLevel(&level, mipmap, i));
		CUDA(cudaMemcpy2DToArray(level, 0, 0, image.data(), 4 * (8 >> i),
			4 * (8 >> i), 8 >> i, cudaMemcpyHostToDevice));
	}
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mipmap;
	description.normalizedCoords = 1;
	description.filterMode = cudaFilterModeLinear;
	description.mipmapFilterMode = cudaFilterModeLinear;
	description.maxMipmapLevelClamp = 3;
	CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	CUDA(cudaMalloc(&out, sizeof(got)));
	sample_level<<<1, 16>>>(texture, out);
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 16; i++)
		n_wrong += !is_near(got[i], std::fmin(2.0f * i, 24.0f));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeMipmappedArray(mipmap));
	CUDA(cudaFree(out));
	return n_wrong;
}

static size_t linear()
{
	cudaResourceDesc resource = {};
	cudaTextureObject_t texture;
	short2 in[64], got[64], *out;
	size_t n_wrong = 0;

	for (int i = 0; i < 64; i++)
		in[i] = make_short2(i * 1000 - 30000, -i);
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.desc = cudaCreateChannelDesc<short2>();
	resource.res.linear.sizeInBytes = sizeof(in);
	CUDA(cudaMalloc(&resource.res.linear.devPtr, sizeof(in)));
	CUDA(cudaMemcpy(
		resource.res.linear.devPtr, in, sizeof(in), cudaMemcpyHostToDevice));
	CUDA(cudaMalloc(&out, sizeof(got)));
	texture = make(resource, cudaFilterModePoint, cudaReadModeElementType);
	fetch<<<1, 64>>>(texture, out);
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		n_wrong += got[i].x != in[i].x || got[i].y != in[i].y;
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFree(resource.res.linear.devPtr));
	CUDA(cudaFree(out));
	return n_wrong;
}

static size_t surface()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
	std::vector<uchar4> image(width * height, make_uchar4(41, 0, 0, 0));
	std::vector<uchar4> painted(width * height);
	std::vector<float4> got(width * height);
	cudaSurfaceObject_t object = 0;
	cudaTextureObject_t texture;
	size_t n_wrong = 0;
	cudaArray_t array;
	float4 *out;

	CUDA(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * 4, width * 4, height,
		cudaMemcpyHostToDevice));
	cudaResourceDesc resource = over(array);
	CUDA(cudaCreateSurfaceObject(&object, &resource));
	paint<<<height, width>>>(object);
	CUDA(cudaMemcpy2DFromArray(painted.data(), width * 4, array, 0, 0, width * 4,
		height, cudaMemcpyDeviceToHost));
	CUDA(cudaMalloc(&out, width * height * 16));
	texture = make(resource, cudaFilterModePoint, cudaReadModeNormalizedFloat);
	read_fractions<<<height, width>>>(texture, out);
	CUDA(cudaMemcpy(got.data(), out, width * height * 16, cudaMemcpyDeviceToHost));
	for (int i = 0; i < width * height; i++) {
		int x = i % width, y = i / width;

		n_wrong += painted[i].x != 42 || painted[i].y != x || painted[i].z != y ||
			   painted[i].w != (x ^ y);
		n_wrong += !is_near(got[i].x, 42 / 255.0f) ||
			   !is_near(got[i].w, (x ^ y) / 255.0f);
	}
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaDestroySurfaceObject(object));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(out));
	return n_wrong;
}

/*
 * On the edge between +x and +z a filter without seams mixes the texels of both sides;
 * with seams it ends there.
 */
static size_t cube()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	const float3 in[4] = { { 1, 0.25f, 0.999999f }, { 0.999999f, 0.25f, 1 },
		{ 0, 0, -1 }, { -1, -0.25f, 0.25f } };
	/* The first column of +x is beside the last one of +z. */
	const float seamless[4] = { 0.5f * (10 + 413), 0.5f * (10 + 413), 516.5f, 122 };
	const float seams[4] = { 10, 413, 516.5f, 122 };
	cudaTextureDesc description = {};
	cudaResourceDesc resource;
	cudaSurfaceObject_t surface = 0;
	float3 *directions;
	float got[4], *out;
	size_t n_wrong = 0;
	cudaArray_t array;

	CUDA(cudaMalloc3DArray(&array, &format, make_cudaExtent(4, 4, 6),
		cudaArrayCubemap | cudaArraySurfaceLoadStore));
	resource = over(array);
	CUDA(cudaCreateSurfaceObject(&surface, &resource));
	paint_faces<<<6, dim3(4, 4)>>>(surface);
	CUDA(cudaMalloc(&directions, sizeof(in)));
	CUDA(cudaMalloc(&out, sizeof(got)));
	CUDA(cudaMemcpy(directions, in, sizeof(in), cudaMemcpyHostToDevice));
	description.normalizedCoords = 1;
	description.filterMode = cudaFilterModeLinear;
	for (int i = 0; i < 2; i++) {
		const float *wanted = i ? seamless : seams;
		cudaTextureObject_t texture = 0;

		description.seamlessCubemap = i;
		CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
		sample_cube<<<1, 4>>>(texture, directions, out);
		CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		for (int k = 0; k < 4; k++)
			n_wrong += std::fabs(got[k] - wanted[k]) > 0.01f;
		CUDA(cudaDestroyTextureObject(texture));
	}
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(directions));
	CUDA(cudaFree(out));
	return n_wrong;
}

/* Gradients of 1, 2, 4 and 8 texels: without anisotropy each is one level more. */
static size_t gradients()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaTextureDesc description = {};
	cudaResourceDesc resource = {};
	cudaMipmappedArray_t mipmap;
	float got[4], *out;
	size_t n_wrong = 0;

	CUDA(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(8, 8, 0), 4));
	for (int i = 0; i < 4; i++) {
		std::vector<float> image(64, 8.0f * i);
		cudaArray_t level;

		CUDA(cudaGetMipmappedArrayLevel(&level, mipmap, i));
		CUDA(cudaMemcpy2DToArray(level, 0, 0, image.data(), 4 * (8 >> i),
			4 * (8 >> i), 8 >> i, cudaMemcpyHostToDevice));
	}
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mipmap;
	description.normalizedCoords = 1;
	description.filterMode = cudaFilterModeLinear;
	description.mipmapFilterMode = cudaFilterModeLinear;
	description.maxMipmapLevelClamp = 3;
	CUDA(cudaMalloc(&out, sizeof(got)));
	for (int most = 1; most <= 16; most *= 16) {
		cudaTextureObject_t texture = 0;

		description.maxAnisotropy = most;
		CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
		sample_gradient<<<1, 4>>>(texture, out);
		CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 4; i++)
			n_wrong += !is_near(got[i], most > 1 ? 0.0f : 8.0f * i);
		CUDA(cudaDestroyTextureObject(texture));
	}
	CUDA(cudaFreeMipmappedArray(mipmap));
	CUDA(cudaFree(out));
	return n_wrong;
}

static size_t gathering()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaTextureObject_t texture;
	float image[6][8];
	float4 got[6], *out;
	size_t n_wrong = 0;
	cudaArray_t array;

	for (int i = 0; i < 48; i++)
		image[i / 8][i % 8] = i * 1.5f;
	CUDA(cudaMallocArray(&array, &format, 8, 6, cudaArrayTextureGather));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, image, 32, 32, 6, cudaMemcpyHostToDevice));
	CUDA(cudaMalloc(&out, sizeof(got)));
	texture = make(over(array), cudaFilterModePoint, cudaReadModeElementType);
	gather<<<1, 6>>>(texture, out);
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int x = 0; x < 6; x++)
		n_wrong += got[x].x != image[3][x] || got[x].y != image[3][x + 1] ||
			   got[x].z != image[2][x + 1] || got[x].w != image[2][x];
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFree(out));
	return n_wrong;
}

int main()
{
	size_t n_wrong = filtering(0.5f, 0.5f) + filtering(0.75f, 1.25f);

	n_wrong += layered();
	n_wrong += levels();
	n_wrong += linear();
	n_wrong += surface();
	n_wrong += cube();
	n_wrong += gradients();
	n_wrong += gathering();
	return result("textures", width * height * (4 + layers) + 102, n_wrong);
}
