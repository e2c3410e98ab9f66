/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half and bfloat16 arithmetic, against the same rounded from double on the host
 *
 * What cuda_fp16.h and cuda_bf16.h offer runs for all values of one operand and some of
 * the others; each result is compared bit by bit with an independent computation.
 */

#include <cmath>
#include <cstdint>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "runtime.h"

#define N 65536
#define N_OPS 20

/* The value of a float of @e exponent and @m mantissa bits in 16. */
static double value(uint16_t bits, int e, int m)
{
	int bias = (1 << (e - 1)) - 1, x = bits >> m & ((1 << e) - 1);
	double f = bits & ((1 << m) - 1), r;

	if (x == (1 << e) - 1)
		r = f != 0 ? NAN : INFINITY;
	else
		r = x ? ldexp(f + (1 << m), x - bias - m) : ldexp(f, 1 - bias - m);
	return bits & 0x8000 ? -r : r;
}

/* The nearest such float, ties to even. */
static uint16_t nearest(double v, int e, int m)
{
	int bias = (1 << (e - 1)) - 1, x;
	uint16_t sign = std::signbit(v) ? 0x8000 : 0;
	double f;

	if (std::isnan(v))
		return 0x7fff;
	if (v == 0 || std::isinf(v))
		return sign | (v == 0 ? 0 : ((1 << e) - 1) << m);
	v = fabs(v);
	frexp(v, &x);
	x = x - 1 < 1 - bias ? 1 - bias : x - 1;
	f = nearbyint(ldexp(v, m - x));
	if (f >= 1 << (m + 1)) {
		f /= 2;
		x++;
	}
	if (f < 1 << m)
		return sign | (uint16_t)f;
	if (x > bias)
		return sign | ((1 << e) - 1) << m;
	return sign | (x + bias) << m | ((uint16_t)f & ((1 << m) - 1));
}

static const uint16_t others[] = { 0x0000, 0x3555, 0xc123, 0x83ff, 0x7bff, 0xfc00, 0x7f7f,
	0xff80 };
#define N_OTHERS (sizeof(others) / sizeof(others[0]))

template <typename T> __device__ T from_bits(uint16_t bits)
{
	T r;

	memcpy(&r, &bits, sizeof(r));
	return r;
}

template <typename T> __device__ uint16_t to_bits(T x)
{
	uint16_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

template <typename T>
__global__ void scalar(uint16_t *out, uint16_t other, uint16_t third)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	T a = from_bits<T>(i), b = from_bits<T>(other), c = from_bits<T>(third);

	out += i * N_OPS;
	out[0] = to_bits(__hadd_rn(a, b));
	out[1] = to_bits(__hsub_rn(a, b));
	out[2] = to_bits(__hmul_rn(a, b));
	out[3] = to_bits(__hfma(a, b, c));
	out[4] = to_bits(__hneg(a));
	out[5] = to_bits(__habs(a));
	out[6] = to_bits(__hmin(a, b));
	out[7] = to_bits(__hmax(a, b));
	out[8] = to_bits(__hmin_nan(a, b));
	out[9] = to_bits(__hmax_nan(a, b));
	out[10] = to_bits(__hadd_sat(a, b));
	out[11] = to_bits(__hfma_sat(a, b, c));
	out[12] = to_bits(__hfma_relu(a, b, c));
	out[13] = __heq(a, b) | __hlt(a, b) << 1 | __hle(a, b) << 2 | __hne(a, b) << 3 |
		  __hgtu(a, b) << 4 | __hequ(a, b) << 5 | __hgeu(a, b) << 6;
	out[14] = to_bits(hfloor(a));
	out[15] = to_bits(hrint(a));
	out[16] = to_bits(htrunc(a));
	out[17] = to_bits(hceil(a));
	out[18] = to_bits(hsqrt(a));
	out[19] = to_bits(hrcp(a));
}

static double clamp(double x)
{
	return x > 0 ? x < 1 ? x : 1 : 0;
}

/* The lesser, -0 below +0; of a NaN and a number the number. */
static double lesser(double a, double b)
{
	if (std::isnan(a) || std::isnan(b))
		return std::isnan(a) ? b : a;
	if (a == b)
		return std::signbit(a) ? a : b;
	return a < b ? a : b;
}

/*
 * a * b + c of 16-bit operands as a double that rounds to a narrower type as the exact
 * value does: what the sum loses makes its last bit odd, off the point between two.
 */
static double fused(double a, double b, double c)
{
	double p = a * b, s = p + c, rest;
	uint64_t bits;

	memcpy(&bits, &s, sizeof(bits));
	rest = fabs(p) > fabs(c) ? (p - s) + c : (c - s) + p;
	if (!(bits & 1) && (rest > 0 || rest < 0))
		s = nextafter(s, rest > 0 ? INFINITY : -INFINITY);
	return s;
}

static void expect(uint16_t *r, uint16_t i, uint16_t j, uint16_t k, int e, int m)
{
	double a = value(i, e, m), b = value(j, e, m), c = value(k, e, m);
	bool nan = std::isnan(a) || std::isnan(b);
	double f = fused(a, b, c), least = lesser(a, b), most = -lesser(-a, -b);

	r[0] = nearest(a + b, e, m);
	r[1] = nearest(a - b, e, m);
	r[2] = nearest(a * b, e, m);
	r[3] = nearest(f, e, m);
	r[4] = i ^ 0x8000;
	r[5] = i & 0x7fff;
	r[6] = nearest(least, e, m);
	r[7] = nearest(most, e, m);
	r[8] = nearest(nan ? NAN : least, e, m);
	r[9] = nearest(nan ? NAN : most, e, m);
	r[10] = nearest(clamp(value(nearest(a + b, e, m), e, m)), e, m);
	r[11] = nearest(clamp(value(nearest(f, e, m), e, m)), e, m);
	r[12] = nearest(std::isnan(f) ? f : f > 0 ? f : 0, e, m);
	r[13] = (a == b) | (a < b) << 1 | (a <= b) << 2 | (!nan && a != b) << 3 |
		!(a <= b) << 4 | (nan || a == b) << 5 | !(a < b) << 6;
	r[14] = nearest(floor(a), e, m);
	r[15] = nearest(rint(a), e, m);
	r[16] = nearest(trunc(a), e, m);
	r[17] = nearest(ceil(a), e, m);
	r[18] = nearest(sqrt(a), e, m);
	r[19] = nearest(1 / a, e, m);
}

static bool is_nan(uint16_t bits, int m)
{
	return (bits & 0x7fff) > (0x7fff & ~((1 << m) - 1));
}

/* A NaN is a NaN where an operation only moves it; the others give the one of PTX. */
static bool same(int op, uint16_t got, uint16_t want, int m)
{
	if (op == 13)
		return got == want;
	if (is_nan(got, m) || is_nan(want, m))
		return is_nan(got, m) && is_nan(want, m);
	/* hsqrt and hrcp go by way of approximations: the last bit may differ. */
	return op >= 18 ? abs(got - want) <= 1 : got == want;
}

template <typename T> static size_t check(const char *name, int e, int m)
{
	static uint16_t got[N * N_OPS];
	uint16_t *device, want[N_OPS];
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&device, sizeof(got)));
	for (unsigned int k = 0; k < N_OTHERS; k++) {
		uint16_t b = others[k], c = others[k * 3 % N_OTHERS];

		scalar<T><<<N / 256, 256>>>(device, b, c);
		CUDA(cudaGetLastError());
		CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
		for (unsigned int i = 0; i < N; i++) {
			expect(want, i, b, c, e, m);
			for (int op = 0; op < N_OPS; op++) {
				if (same(op, got[i * N_OPS + op], want[op], m))
					continue;
				if (n_wrong++ < 10)
					printf("%s, operation %d: %04x %04x %04x gives "
					       "%04x, not %04x\n",
						name, op, i, b, c, got[i * N_OPS + op],
						want[op]);
			}
		}
	}
	CUDA(cudaFree(device));
	return n_wrong;
}

/* Pairs: arithmetic, conversions with each rounding, atomic addition. */
__global__ void pairs(
	const float2 *in, uint32_t *out, __half2 *sum, __nv_bfloat162 *total)
{
	uint32_t i = threadIdx.x;
	float2 f = in[i];
	__half2 h = __float22half2_rn(f);
	__nv_bfloat162 b = __float22bfloat162_rn(f);
	uint32_t *o = out + i * 8;

	atomicAdd(sum, __halves2half2(__float2half(1.0f), __float2half(0.5f)));
	atomicAdd(total,
		__halves2bfloat162(__float2bfloat16(1.0f), __float2bfloat16(2.0f)));
	memcpy(&o[0], &h, 4);
	memcpy(&o[1], &b, 4);
	o[2] = to_bits(__float2half_rz(f.x)) | to_bits(__float2half_ru(f.x)) << 16;
	o[3] = to_bits(__float2bfloat16_rz(f.x));
	o[3] |= to_bits(__float2bfloat16_rd(f.x)) << 16;
	h = __hfma2(h, h, __hadd2(h, __hmul2(h, h)));
	b = __hfma2(b, b, __hsub2(b, __hmul2(b, b)));
	memcpy(&o[4], &h, 4);
	memcpy(&o[5], &b, 4);
	o[6] = __half2int_rn(__low2half(h)) + __bfloat162int_rz(__low2bfloat16(b));
	o[7] = to_bits(__int2half_rn((int)i * 37 - 999)) |
	       to_bits(__uint2bfloat16_rn(i * 12345)) << 16;
}

static size_t check_pairs()
{
	const unsigned int n = 256;
	std::vector<float2> in(n);
	std::vector<uint32_t> got(n * 8);
	float2 *din;
	uint32_t *dout, sums[2];
	size_t n_wrong = 0;

	for (unsigned int i = 0; i < n; i++)
		in[i] = make_float2(ldexpf(1 + i / 77.0f, (int)(i % 5) - 2),
			-ldexpf(1 + i / 91.0f, (int)(i % 7) - 3));
	CUDA(cudaMalloc(&din, n * sizeof(*din)));
	CUDA(cudaMalloc(&dout, (n * 8 + 2) * sizeof(*dout)));
	CUDA(cudaMemset(dout, 0, (n * 8 + 2) * sizeof(*dout)));
	CUDA(cudaMemcpy(din, in.data(), n * sizeof(*din), cudaMemcpyHostToDevice));
	pairs<<<1, n>>>(din, dout, (__half2 *)(dout + n * 8),
		(__nv_bfloat162 *)(dout + n * 8 + 1));
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(got.data(), dout, n * 32, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(sums, dout + n * 8, sizeof(sums), cudaMemcpyDeviceToHost));
	n_wrong += sums[0] != (nearest(256, 5, 10) | (uint32_t)nearest(128, 5, 10) << 16);
	n_wrong += sums[1] != (nearest(256, 8, 7) | (uint32_t)nearest(512, 8, 7) << 16);
	for (unsigned int i = 0; i < n; i++) {
		const uint32_t *o = &got[i * 8];

		for (int half = 0; half < 2; half++) {
			int shift = 16 * half;
			double f = half ? in[i].y : in[i].x, h, b, x;

			h = value(nearest(f, 5, 10), 5, 10);
			b = value(nearest(f, 8, 7), 8, 7);
			n_wrong += (uint16_t)(o[0] >> shift) != nearest(f, 5, 10);
			n_wrong += (uint16_t)(o[1] >> shift) != nearest(f, 8, 7);
			x = value(nearest(h * h, 5, 10), 5, 10);
			x = value(nearest(h + x, 5, 10), 5, 10);
			n_wrong += (uint16_t)(o[4] >> shift) !=
				   nearest(fused(h, h, x), 5, 10);
			x = value(nearest(b * b, 8, 7), 8, 7);
			x = value(nearest(b - x, 8, 7), 8, 7);
			n_wrong += (uint16_t)(o[5] >> shift) !=
				   nearest(fused(b, b, x), 8, 7);
		}
		n_wrong += value(o[2], 5, 10) > in[i].x;
		n_wrong += value(o[2] >> 16, 5, 10) < in[i].x;
		n_wrong += value(o[3], 8, 7) > in[i].x;
		n_wrong += value(o[3] >> 16, 8, 7) > in[i].x;
		n_wrong += (int)o[6] !=
			   (int)rint(value(o[4], 5, 10)) + (int)trunc(value(o[5], 8, 7));
		n_wrong += (uint16_t)o[7] != nearest((int)i * 37 - 999, 5, 10);
		n_wrong += (uint16_t)(o[7] >> 16) != nearest(i * 12345, 8, 7);
	}
	CUDA(cudaFree(din));
	CUDA(cudaFree(dout));
	return n_wrong;
}

int main()
{
	size_t n_wrong = check<__half>("half", 5, 10);

	n_wrong += check<__nv_bfloat16>("bfloat16", 8, 7);
	n_wrong += check_pairs();
	return result("half", (size_t)2 * N * N_OPS * N_OTHERS, n_wrong);
}
