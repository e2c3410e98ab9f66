/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of graphs, and graphs that are run
 */

#include <string.h>

#include "runtime/array.h"
#include "runtime/box.h"
#include "runtime/code.h"
#include "runtime/driver.h"
#include "runtime/node.h"

static CUcontext current_context(void)
{
	CUcontext context = NULL;

	rt_driver.cuCtxGetCurrent(&context);
	return context;
}

int rt_graph_instantiate(cudaGraphExec_t *execp, cudaGraph_t graph,
	cudaGraphInstantiateParams *params, struct rt_order order)
{
	cudaStream_t stream;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	stream = params->hUploadStream;
	if (order.is_sync_per_thread)
		params->hUploadStream = rt_per_thread(stream);
	error = rt_driver.cuGraphInstantiateWithParams(execp, graph, params);
	params->hUploadStream = stream;
	return error;
}

int rt_graph_conditional(cudaGraphConditionalHandle *handlep, cudaGraph_t graph,
	unsigned int value, unsigned int flags)
{
	return rt_driver.cuGraphConditionalHandleCreate(
		handlep, graph, current_context(), value, flags);
}

/*
 * Kernels
 */

static int convert_kernel(
	CUDA_KERNEL_NODE_PARAMS *converted, const cudaKernelNodeParams *params)
{
	CUkernel kernel;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	error = rt_kernel_get(&kernel, params->func);
	if (error)
		return error;
	*converted = (CUDA_KERNEL_NODE_PARAMS){
		.gridDimX = params->gridDim.x,
		.gridDimY = params->gridDim.y,
		.gridDimZ = params->gridDim.z,
		.blockDimX = params->blockDim.x,
		.blockDimY = params->blockDim.y,
		.blockDimZ = params->blockDim.z,
		.sharedMemBytes = params->sharedMemBytes,
		.kernelParams = params->kernelParams,
		.extra = params->extra,
		.kern = kernel,
		.ctx = current_context(),
	};
	return 0;
}

int rt_kernel_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS converted;
	int error = convert_kernel(&converted, params);

	if (error)
		return error;
	return rt_driver.cuGraphAddKernelNode_v2(nodep, graph, nodes, n, &converted);
}

int rt_kernel_node_get(cudaGraphNode_t node, cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS found;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	error = rt_driver.cuGraphKernelNodeGetParams_v2(node, &found);
	if (error)
		return error;
	/* A node that was made by the Driver API may have a function only. */
	*params = (cudaKernelNodeParams){
		.func = found.kern ? (void *)rt_kernel_host(found.kern)
				   : (void *)found.func,
		.gridDim = { found.gridDimX, found.gridDimY, found.gridDimZ },
		.blockDim = { found.blockDimX, found.blockDimY, found.blockDimZ },
		.sharedMemBytes = found.sharedMemBytes,
		.kernelParams = found.kernelParams,
		.extra = found.extra,
	};
	return 0;
}

int rt_kernel_node_set(cudaGraphNode_t node, const cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS converted;
	int error = convert_kernel(&converted, params);

	if (error)
		return error;
	return rt_driver.cuGraphKernelNodeSetParams_v2(node, &converted);
}

int rt_kernel_node_set_exec(
	cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS converted;
	int error = convert_kernel(&converted, params);

	if (error)
		return error;
	return rt_driver.cuGraphExecKernelNodeSetParams_v2(exec, node, &converted);
}

/*
 * Fills: both APIs have the same structure
 */

int rt_fill_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const cudaMemsetParams *params)
{
	return rt_driver.cuGraphAddMemsetNode(
		nodep, graph, nodes, n, params, current_context());
}

int rt_fill_node_get(cudaGraphNode_t node, cudaMemsetParams *params)
{
	return rt_driver.cuGraphMemsetNodeGetParams(node, params);
}

int rt_fill_node_set(cudaGraphNode_t node, const cudaMemsetParams *params)
{
	return rt_driver.cuGraphMemsetNodeSetParams(node, params);
}

int rt_fill_node_set_exec(
	cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *params)
{
	return rt_driver.cuGraphExecMemsetNodeSetParams(
		exec, node, params, current_context());
}

/*
 * Nodes of any type
 */

static int convert_copy(
	CUDA_MEMCPY_NODE_PARAMS *converted, const cudaMemcpyNodeParams *params)
{
	const cudaMemcpy3DParms *copy = &params->copyParams;
	size_t dst_element, src_element;
	int error = rt_array_element(copy->dstArray, &dst_element);

	if (!error)
		error = rt_array_element(copy->srcArray, &src_element);
	if (error)
		return error;
	*converted = (CUDA_MEMCPY_NODE_PARAMS){
		.flags = params->flags,
		.copyCtx = current_context(),
	};
	return rt_box_from_params(&converted->copyParams, copy, dst_element, src_element);
}

static int convert_kernel_v3(
	CUDA_KERNEL_NODE_PARAMS_v3 *converted, const cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS v2;
	_Static_assert(sizeof(v2) == sizeof(*converted), "only the name differs");
	int error = convert_kernel(&v2, params);

	if (!error)
		memcpy(converted, &v2, sizeof(v2));
	return error;
}

static int convert(CUgraphNodeParams *converted, const cudaGraphNodeParams *params)
{
	/* What neither has a kernel nor a context is the same in both APIs. */
	_Static_assert(sizeof(*converted) == sizeof(*params), "both have room to grow");
	if (!params)
		return cudaErrorInvalidValue;
	memcpy(converted, params, sizeof(*converted));
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return convert_kernel_v3(&converted->kernel, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return convert_copy(&converted->memcpy, &params->memcpy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		converted->memset.ctx = current_context();
		return 0;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		converted->conditional.ctx = current_context();
		return 0;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		/* Not a type of the Runtime API. */
		return cudaErrorInvalidValue;
	default:
		return params->type <= CU_GRAPH_NODE_TYPE_CONDITIONAL
			       ? 0
			       : cudaErrorInvalidValue;
	}
}

int rt_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph, const cudaGraphNode_t *nodes,
	const cudaGraphEdgeData *edges, size_t n, cudaGraphNodeParams *params)
{
	CUgraphNodeParams converted;
	int error = convert(&converted, params);

	if (!error)
		error = rt_driver.cuGraphAddNode_v2(
			nodep, graph, nodes, edges, n, &converted);
	if (error)
		return error;
	/* Outputs. */
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.dptr = converted.alloc.dptr;
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		params->conditional.phGraph_out = converted.conditional.phGraph_out;
	return 0;
}

int rt_node_set(cudaGraphNode_t node, cudaGraphNodeParams *params)
{
	CUgraphNodeParams converted;
	int error = convert(&converted, params);

	return error ? error : (int)rt_driver.cuGraphNodeSetParams(node, &converted);
}

int rt_node_set_exec(
	cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams *params)
{
	CUgraphNodeParams converted;
	int error = convert(&converted, params);

	if (error)
		return error;
	return rt_driver.cuGraphExecNodeSetParams(exec, node, &converted);
}
