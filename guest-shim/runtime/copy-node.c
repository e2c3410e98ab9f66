/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in graphs
 */

#include "runtime/array.h"
#include "runtime/box.h"
#include "runtime/copy-node.h"
#include "runtime/copy.h"
#include "runtime/driver.h"

static int elements_of(const cudaMemcpy3DParms *params, size_t *dstp, size_t *srcp)
{
	int error = rt_array_element(params->dstArray, dstp);

	return error ? error : rt_array_element(params->srcArray, srcp);
}

static int convert(CUDA_MEMCPY3D *box, const cudaMemcpy3DParms *params)
{
	size_t dst_element, src_element;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	error = elements_of(params, &dst_element, &src_element);
	return error ? error : rt_box_from_params(box, params, dst_element, src_element);
}

/* A row of bytes. */
static int convert_row(
	CUDA_MEMCPY3D *box, void *dst, const void *src, size_t size, cudaMemcpyKind kind)
{
	struct rt_side to = { .address = dst };
	struct rt_side from = { .address = src };

	if (!dst || !src)
		return cudaErrorInvalidValue;
	return rt_box_fill(box, &to, &from, (cudaExtent){ size, 1, 1 }, kind);
}

static int convert_to(CUDA_MEMCPY3D *box, const void *symbol, const void *src,
	size_t size, size_t offset, cudaMemcpyKind kind)
{
	void *address;
	int error;

	if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
		return cudaErrorInvalidMemcpyDirection;
	error = rt_copy_symbol(symbol, size, offset, &address);
	return error ? error : convert_row(box, address, src, size, kind);
}

static int convert_from(CUDA_MEMCPY3D *box, void *dst, const void *symbol, size_t size,
	size_t offset, cudaMemcpyKind kind)
{
	void *address;
	int error;

	if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
		return cudaErrorInvalidMemcpyDirection;
	error = rt_copy_symbol(symbol, size, offset, &address);
	return error ? error : convert_row(box, dst, address, size, kind);
}

/* Adds the node, unless converting its parameters failed. */
static int add(int error, cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const CUDA_MEMCPY3D *box)
{
	CUcontext context;

	if (!error)
		error = rt_driver.cuCtxGetCurrent(&context);
	if (error)
		return error;
	return rt_driver.cuGraphAddMemcpyNode(nodep, graph, nodes, n, box, context);
}

static int set(
	int error, cudaGraphExec_t exec, cudaGraphNode_t node, const CUDA_MEMCPY3D *box)
{
	CUcontext context;

	if (!error)
		error = rt_driver.cuCtxGetCurrent(&context);
	if (error)
		return error;
	if (exec)
		return rt_driver.cuGraphExecMemcpyNodeSetParams(exec, node, box, context);
	return rt_driver.cuGraphMemcpyNodeSetParams(node, box);
}

int rt_copy_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const cudaMemcpy3DParms *params)
{
	CUDA_MEMCPY3D box;

	return add(convert(&box, params), nodep, graph, nodes, n, &box);
}

int rt_copy_node_add_1d(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, void *dst, const void *src, size_t size,
	cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D box;

	return add(convert_row(&box, dst, src, size, kind), nodep, graph, nodes, n, &box);
}

int rt_copy_node_add_to(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const void *symbol, const void *src,
	size_t size, size_t offset, cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D box;

	return add(convert_to(&box, symbol, src, size, offset, kind), nodep, graph, nodes,
		n, &box);
}

int rt_copy_node_add_from(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, void *dst, const void *symbol,
	size_t size, size_t offset, cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D box;

	return add(convert_from(&box, dst, symbol, size, offset, kind), nodep, graph,
		nodes, n, &box);
}

int rt_copy_node_get(cudaGraphNode_t node, cudaMemcpy3DParms *params)
{
	cudaMemcpy3DParms arrays = { 0 };
	CUDA_MEMCPY3D box;
	size_t dst_element, src_element;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	error = rt_driver.cuGraphMemcpyNodeGetParams(node, &box);
	if (error)
		return error;
	if (box.dstMemoryType == CU_MEMORYTYPE_ARRAY)
		arrays.dstArray = box.dstArray;
	if (box.srcMemoryType == CU_MEMORYTYPE_ARRAY)
		arrays.srcArray = box.srcArray;
	error = elements_of(&arrays, &dst_element, &src_element);
	if (!error)
		rt_box_to_params(params, &box, dst_element, src_element);
	return error;
}

int rt_copy_node_set(
	cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *params)
{
	CUDA_MEMCPY3D box;

	return set(convert(&box, params), exec, node, &box);
}

int rt_copy_node_set_1d(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
	const void *src, size_t size, cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D box;

	return set(convert_row(&box, dst, src, size, kind), exec, node, &box);
}

int rt_copy_node_set_to(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
	const void *src, size_t size, size_t offset, cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D box;

	return set(convert_to(&box, symbol, src, size, offset, kind), exec, node, &box);
}

int rt_copy_node_set_from(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
	const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D box;

	return set(convert_from(&box, dst, symbol, size, offset, kind), exec, node, &box);
}
