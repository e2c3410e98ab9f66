/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of graph nodes: created from parameters, copied, and prepared to run
 */

#include <stdlib.h>
#include <string.h>

#include "api/copy.h"
#include "api/graph.h"

/*
 * Kernels
 *
 * Parameters lie in a block of the node's, which begins with their addresses: that is
 * what a program gets that asks for them.
 */

static CUresult kernel_alloc(struct graph_kernel *kernel)
{
	const struct softgpu_kernel_info *info = kernel->function->info;
	size_t n = (info->n_params * sizeof(void *) + 15) / 16 * 16;
	size_t header = (sizeof(struct object) + 15) / 16 * 16;
	uint8_t *block =
		object_new(OBJECT_NONE, header + n + info->params_size + 1, NULL);

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->block = (struct object *)block;
	kernel->pointers = (void **)(block + header);
	kernel->params = block + header + n;
	for (uint32_t i = 0; i < info->n_params; i++)
		kernel->pointers[i] = kernel->params + info->params[i].offset;
	return CUDA_SUCCESS;
}

static CUresult kernel_check(const struct graph_kernel *kernel)
{
	struct sched_grid grid = { .launch.params = NULL };
	CUresult result;

	result = launch_check(kernel->function, &kernel->launch);
	if (result)
		return result;
	launch_describe(&grid, kernel->function, &kernel->launch);
	grid.launch.params = kernel->params;
	return softgpu_launch_check(&grid.launch);
}

CUresult work_launch(struct graph_work *work, CUfunction function, CUkernel kernel,
	const struct launch *launch, void **params, void **extra)
{
	CUcontext context = function->module->object.context;
	CUresult result;

	*work = (struct graph_work){
		.type = CU_GRAPH_NODE_TYPE_KERNEL,
		.kernel = {
			.function = function,
			.context = context,
			.generation = context_generation(context),
			.kernel = kernel,
			.launch = *launch,
		},
	};
	/* A node has no stream, and events that its launch records are another's. */
	work->kernel.launch.stream = NULL;
	work->kernel.launch.events[0] = work->kernel.launch.events[1] = NULL;
	result = kernel_alloc(&work->kernel);
	if (result)
		return result;
	object_ref(&function->object);
	result = launch_params(function, params, extra, work->kernel.params);
	if (!result)
		result = kernel_check(&work->kernel);
	if (!result && launch->has_priority)
		result = kernel_set_attribute(work, CU_LAUNCH_ATTRIBUTE_PRIORITY,
			&(CUlaunchAttributeValue){ .priority = launch->priority });
	if (result)
		work_deinit(work);
	return result;
}

/* CUDA's runtime passes both, and expects the kernel in queries. Return: NULL if the
 * kernel does not belong to the function, which has precedence then. */
static CUkernel kernel_behind(CUfunction function, const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUcontext context = params->ctx;
	CUfunction own = NULL;
	CUgreenCtx green;

	if (!object_hold(params->kern, OBJECT_KERNEL) ||
		(!context && context_current(&context)) ||
		!(context = context_hold(context, &green)) ||
		!context_is_active(context) ||
		library_function(params->kern, context, &own))
		return NULL;
	return own == function ? params->kern : NULL;
}

static CUresult kernel_find(
	CUfunction *functionp, CUkernel *kernelp, const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUcontext context = params->ctx;
	CUgreenCtx green;
	CUresult result;

	if (object_hold(params->func, OBJECT_FUNCTION)) {
		*functionp = params->func;
		*kernelp = kernel_behind(params->func, params);
		return function_load(params->func);
	}
	*kernelp = params->func ? (CUkernel)params->func : params->kern;
	if (!object_hold(*kernelp, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context) {
		result = context_current(&context);
		if (result)
			return result;
	} else {
		context = context_hold(context, &green);
		if (!context || !context_is_active(context))
			return CUDA_ERROR_INVALID_CONTEXT;
	}
	result = library_function(*kernelp, context, functionp);
	return result ? result : function_load(*functionp);
}

CUresult work_kernel(struct graph_work *work, const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUfunction function;
	CUkernel kernel;
	CUresult result;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	result = kernel_find(&function, &kernel, params);
	if (result)
		return result;
	return work_launch(work, function, kernel,
		&(struct launch){
			.grid = { params->gridDimX, params->gridDimY, params->gridDimZ },
			.block = { params->blockDimX, params->blockDimY,
				params->blockDimZ },
			.shared_size = params->sharedMemBytes,
		},
		params->kernelParams, params->extra);
}

CUresult kernel_set_attribute(struct graph_work *work, CUlaunchAttributeID id,
	const CUlaunchAttributeValue *value)
{
	struct graph_kernel *kernel = &work->kernel;
	CUlaunchAttribute attribute = { .id = id, .value = *value };
	struct launch launch = kernel->launch;
	CUlaunchAttribute *attributes;
	size_t i = 0;
	CUresult result;

	result = launch_attribute(&launch, &attribute);
	if (result)
		return result;
	if (launch.events[0] || launch.events[1])
		return CUDA_ERROR_NOT_SUPPORTED;
	result = launch_check(kernel->function, &launch);
	if (result)
		return result;
	while (i < kernel->n_attributes && kernel->attributes[i].id != id)
		i++;
	if (i == kernel->n_attributes) {
		attributes = reallocarray(kernel->attributes, i + 1, sizeof(*attributes));
		if (!attributes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		kernel->attributes = attributes;
		kernel->n_attributes++;
	}
	kernel->attributes[i] = attribute;
	kernel->launch = launch;
	return CUDA_SUCCESS;
}

CUresult kernel_copy_attributes(struct graph_kernel *to, const struct graph_kernel *from)
{
	size_t n = from->n_attributes;
	CUlaunchAttribute *attributes = NULL;

	if (n) {
		attributes = reallocarray(NULL, n, sizeof(*attributes));
		if (!attributes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(attributes, from->attributes, n * sizeof(*attributes));
	}
	free(to->attributes);
	to->attributes = attributes;
	to->n_attributes = n;
	to->launch.is_cooperative = from->launch.is_cooperative;
	to->launch.has_priority = from->launch.has_priority;
	to->launch.priority = from->launch.priority;
	memcpy(to->launch.cluster, from->launch.cluster, sizeof(to->launch.cluster));
	memcpy(to->launch.preferred, from->launch.preferred,
		sizeof(to->launch.preferred));
	return CUDA_SUCCESS;
}

static CUresult kernel_clone(struct graph_kernel *kernel)
{
	const struct graph_kernel from = *kernel;
	CUresult result;

	kernel->params = NULL;
	kernel->n_attributes = 0;
	kernel->attributes = NULL;
	result = kernel_alloc(kernel);
	if (result)
		return result;
	memcpy(kernel->params, from.params, from.function->info->params_size);
	object_ref(&kernel->function->object);
	return kernel_copy_attributes(kernel, &from);
}

static CUresult kernel_prepare(const struct graph_kernel *kernel, struct sched_op *op)
{
	uint32_t size = kernel->function->info->params_size;
	uint8_t *block = op->grid.params;
	CUresult result;

	/* Gone with its module, which the node keeps only for what it says of it. */
	if (!object_is(kernel->function, OBJECT_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	result = kernel_check(kernel);
	if (result)
		return result;
	launch_describe(&op->grid, kernel->function, &kernel->launch);
	if (size > SCHED_PARAMS_INLINE) {
		block = op->grid.long_params = malloc(size);
		if (!block)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(block, kernel->params, size);
	op->grid.launch.params = block;
	return CUDA_SUCCESS;
}

/*
 * All others
 */

static CUresult work_find_context(CUcontext *contextp, CUcontext context)
{
	CUgreenCtx green;

	if (!context)
		return context_current(contextp);
	context = context_hold(context, &green);
	if (!context || !context_is_active(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*contextp = context;
	return CUDA_SUCCESS;
}

CUresult work_copy(struct graph_work *work, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct sched_copy prepared;
	CUresult result;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	result = work_find_context(&context, context);
	if (!result)
		result = copy_prepare(&prepared, copy, NULL);
	if (result)
		return result;
	*work = (struct graph_work){
		.type = CU_GRAPH_NODE_TYPE_MEMCPY,
		.copy = { *copy, context, context_generation(context) },
	};
	return CUDA_SUCCESS;
}

CUresult work_fill(
	struct graph_work *work, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	struct sched_fill prepared;
	CUresult result;

	if (!fill)
		return CUDA_ERROR_INVALID_VALUE;
	result = work_find_context(&context, context);
	if (!result)
		result = fill_prepare(&prepared, fill);
	if (result)
		return result;
	*work = (struct graph_work){
		.type = CU_GRAPH_NODE_TYPE_MEMSET,
		.fill = { *fill, context, context_generation(context) },
	};
	return CUDA_SUCCESS;
}

static CUresult batch_alloc(
	struct graph_batch *batch, const CUstreamBatchMemOpParams *ops)
{
	size_t header = (sizeof(struct object) + 15) / 16 * 16;
	uint8_t *block =
		object_new(OBJECT_NONE, header + batch->n * sizeof(*batch->ops), NULL);

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	batch->block = (struct object *)block;
	batch->ops = (CUstreamBatchMemOpParams *)(block + header);
	memcpy(batch->ops, ops, batch->n * sizeof(*batch->ops));
	return CUDA_SUCCESS;
}

CUresult work_batch(struct graph_work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct sched_op op;
	CUcontext context;
	CUresult result;

	if (!params || !params->paramArray || !params->count ||
		params->count > BATCH_OPS_MAX || params->flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = work_find_context(&context, params->ctx);
	for (unsigned int i = 0; i < params->count && !result; i++)
		result = word_describe(&op, &params->paramArray[i]);
	if (result)
		return result;
	*work = (struct graph_work){
		.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
		.batch = {
			.context = context,
			.generation = context_generation(context),
			.n = params->count,
			.flags = params->flags,
		},
	};
	return batch_alloc(&work->batch, params->paramArray);
}

CUresult work_host(struct graph_work *work, const CUDA_HOST_NODE_PARAMS *params)
{
	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*work = (struct graph_work){
		.type = CU_GRAPH_NODE_TYPE_HOST,
		.host = *params,
	};
	return CUDA_SUCCESS;
}

CUresult work_event(struct graph_work *work, CUgraphNodeType type, CUevent event)
{
	if (!object_hold(event, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	*work = (struct graph_work){ .type = type, .event = event };
	object_ref(&event->object);
	return CUDA_SUCCESS;
}

CUresult work_child(struct graph_work *work, CUgraph child)
{
	CUresult result;

	result = graph_get(child);
	if (!result && child->is_moved)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result && child->n_conditionals)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result)
		return result;
	*work = (struct graph_work){ .type = CU_GRAPH_NODE_TYPE_GRAPH };
	return graph_copy(&work->child, child, true);
}

CUresult work_any(struct graph_work *work, const CUgraphNodeParams *params)
{
	_Static_assert(sizeof(params->kernel) == sizeof(CUDA_KERNEL_NODE_PARAMS),
		"the versions do not differ");

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return work_kernel(
			work, (const CUDA_KERNEL_NODE_PARAMS *)&params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return work_copy(
			work, &params->memcpy.copyParams, params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return work_fill(work, (const CUDA_MEMSET_NODE_PARAMS *)&params->memset,
			params->memset.ctx);
	case CU_GRAPH_NODE_TYPE_HOST:
		return work_host(work, (const CUDA_HOST_NODE_PARAMS *)&params->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (params->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
			return CUDA_ERROR_INVALID_VALUE;
		return work_child(work, params->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		*work = (struct graph_work){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return work_event(work, params->type, params->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return work_event(work, params->type, params->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return work_batch(
			work, (const CUDA_BATCH_MEM_OP_NODE_PARAMS *)&params->memOp);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult work_clone(struct graph_work *work, const struct graph_work *from, bool is_shown)
{
	CUresult result;

	*work = *from;
	if (from->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		result = kernel_clone(&work->kernel);
		if (result && work->kernel.params)
			work_deinit(work);
		return result;
	}
	if (from->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return graph_copy(&work->child, from->child, is_shown);
	if (from->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return conditional_clone(&work->conditional, is_shown);
	/* What is in the block never changes. */
	if (from->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		object_ref(work->batch.block);
	if (from->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
		from->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		object_ref(&work->event->object);
	return CUDA_SUCCESS;
}

void work_deinit(struct graph_work *work)
{
	if (work->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		object_unref(work->kernel.block);
		free(work->kernel.attributes);
		object_unref(&work->kernel.function->object);
	} else if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
		   work->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
		object_unref(&work->event->object);
	} else if (work->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		object_unref(work->batch.block);
	} else if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		graph_free(work->child);
	} else if (work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		conditional_deinit(&work->conditional);
	}
}

unsigned int work_n_inside(const struct graph_work *work)
{
	if (work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return work->conditional.n_bodies;
	return work->type == CU_GRAPH_NODE_TYPE_GRAPH;
}

CUgraph *work_inside(struct graph_work *work)
{
	return work->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? work->conditional.bodies
							    : &work->child;
}

CUresult work_context(
	const struct graph_work *work, CUcontext *contextp, uint64_t *generationp)
{
	*contextp = NULL;
	*generationp = 0;
	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		*contextp = work->kernel.context;
		*generationp = work->kernel.generation;
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		*contextp = work->copy.context;
		*generationp = work->copy.generation;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		*contextp = work->fill.context;
		*generationp = work->fill.generation;
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		*contextp = work->batch.context;
		*generationp = work->batch.generation;
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		*contextp = work->conditional.context;
		*generationp = work->conditional.generation;
		break;
	default:
		return CUDA_SUCCESS;
	}
	if (!object_hold(*contextp, OBJECT_CONTEXT) || !context_is_active(*contextp) ||
		context_generation(*contextp) != *generationp)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return CUDA_SUCCESS;
}

CUresult work_prepare(const struct graph_work *work, struct sched_node *node)
{
	CUresult result = CUDA_SUCCESS;

	switch (work->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		node->kind = SCHED_LAUNCH;
		result = kernel_prepare(&work->kernel, &node->op);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		node->kind = SCHED_COPY;
		result = copy_prepare(&node->op.copy, &work->copy.copy, NULL);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		node->kind = SCHED_FILL;
		result = fill_prepare(&node->op.fill, &work->fill.fill);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		node->kind = SCHED_HOST;
		host_describe(&node->op.host, work->host.fn, work->host.userData);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		node->kind = work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? SCHED_MARK
									   : SCHED_WAIT;
		node->event = work->event;
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		result = conditional_prepare(&work->conditional, node);
		break;
	default:
		node->kind = SCHED_NOTHING;
		break;
	}
	node->op.kind = node->kind;
	return result;
}

CUresult work_prepare_word(
	const CUstreamBatchMemOpParams *params, struct sched_node *node)
{
	CUresult result = word_describe(&node->op, params);

	node->kind = node->op.kind;
	return result;
}
