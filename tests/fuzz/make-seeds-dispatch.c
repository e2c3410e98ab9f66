/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of the dispatch fuzzer: make-seeds-dispatch FOLDER
 *
 * One file for each call from the generator, and rows of calls that fit together: handles
 * and addresses are those that a fresh session gives out.
 */

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/graph.h"
#include "vgpu/launch.h"
#include "vgpu/load.h"
#include "fixture.h"

static const char *folder;
static uint8_t row[65536];
static size_t row_size;

static uint64_t first_handle(enum vgpu_handle_kind kind)
{
	return vgpu_handle_make(kind, 0, 1);
}

static const uint64_t base = 0x550000000000;

static uint64_t memory(void)
{
	return base + FIXTURE_SHM_SIZE;
}

static uint64_t arena(void)
{
	return base + FIXTURE_EXTENTS_OFF +
	       FIXTURE_FIRST_EXTENT * (uint64_t)VGPU_EXTENT_SIZE;
}

static void add(uint32_t call, uint32_t flags, const ProtobufCMessage *request)
{
	struct vgpu_frame frame = { .call = call, .flags = flags };

	frame.size = sizeof(frame) +
		     protobuf_c_message_pack(request, row + row_size + sizeof(frame));
	memcpy(row + row_size, &frame, sizeof(frame));
	row_size += vgpu_frame_padded(frame.size);
}

static int write_file(const char *name, const void *data, size_t size)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

static int write_row(const char *name)
{
	int r = write_file(name, row, row_size);

	memset(row, 0, sizeof(row));
	row_size = 0;
	return r;
}

static void add_alloc(void)
{
	Vgpu__CuMemAllocV2Request alloc = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;

	alloc.bytesize = 65536;
	add(VGPU_CALL_cuMemAlloc_v2, VGPU_FRAME_REPLY, &alloc.base);
}

static int copies(void)
{
	Vgpu__CuMemcpyHtoDAsyncV2Request up = VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemcpyDtoHAsyncV2Request down =
		VGPU__CU_MEMCPY_DTO_HASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemcpy2DAsyncV2Request rectangle =
		VGPU__CU_MEMCPY2_DASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemsetD2D32AsyncRequest fill = VGPU__CU_MEMSET_D2_D32_ASYNC_REQUEST__INIT;
	Vgpu__CuMemFreeV2Request release = VGPU__CU_MEM_FREE_V2_REQUEST__INIT;

	add_alloc();
	up.dst_device = down.src_device = memory();
	up.src_host = down.dst_host = arena();
	up.byte_count = down.byte_count = 4096;
	up.word = down.word = 9;
	up.word_value = down.word_value = 1;
	add(VGPU_CALL_cuMemcpyHtoDAsync_v2, 0, &up.base);
	add(VGPU_CALL_cuMemcpyDtoHAsync_v2, 0, &down.base);
	rectangle.dst = memory();
	rectangle.src = arena();
	rectangle.dst_pitch = rectangle.src_pitch = 512;
	rectangle.width = 100;
	rectangle.height = 7;
	rectangle.word = UINT32_MAX;
	add(VGPU_CALL_cuMemcpy2DAsync_v2, 0, &rectangle.base);
	fill.dst_device = memory();
	fill.dst_pitch = 512;
	fill.width = 10;
	fill.height = 3;
	fill.h_stream = 2;
	add(VGPU_CALL_cuMemsetD2D32Async, 0, &fill.base);
	release.dptr = memory();
	add(VGPU_CALL_cuMemFree_v2, VGPU_FRAME_REPLY, &release.base);
	return write_row("row-copies");
}

static void add_module(void)
{
	Vgpu__CuModuleLoadDataExRequest load = VGPU__CU_MODULE_LOAD_DATA_EX_REQUEST__INIT;
	Vgpu__CuModuleGetFunctionRequest get = VGPU__CU_MODULE_GET_FUNCTION_REQUEST__INIT;
	/* The fuzzer has put something there. */
	struct vgpu_load block = { .n_images = 1, .first = { { arena(), 16 } } };

	load.load = (ProtobufCBinaryData){ vgpu_load_size(&block), (uint8_t *)&block };
	add(VGPU_CALL_cuModuleLoadDataEx, VGPU_FRAME_REPLY, &load.base);
	get.hmod = first_handle(VGPU_HANDLE_MODULE);
	get.name = (char *)"kernel";
	add(VGPU_CALL_cuModuleGetFunction, VGPU_FRAME_REPLY, &get.base);
}

static int launches(void)
{
	Vgpu__CuLaunchKernelRequest launch = VGPU__CU_LAUNCH_KERNEL_REQUEST__INIT;
	Vgpu__CuStreamCreateWithPriorityRequest create =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	Vgpu__CuStreamSynchronizeRequest wait = VGPU__CU_STREAM_SYNCHRONIZE_REQUEST__INIT;
	Vgpu__CuModuleUnloadRequest unload = VGPU__CU_MODULE_UNLOAD_REQUEST__INIT;
	struct vgpu_launch_dims dims = { .axis = { { 1, 32 }, { 1, 1 }, { 1, 1 } } };
	uint8_t params[FAKE_PARAM_SIZE] = {};

	add_module();
	add(VGPU_CALL_cuStreamCreateWithPriority, VGPU_FRAME_REPLY, &create.base);
	launch.f = first_handle(VGPU_HANDLE_FUNCTION);
	launch.h_stream = first_handle(VGPU_HANDLE_STREAM);
	launch.dims = (ProtobufCBinaryData){ sizeof(dims), (uint8_t *)&dims };
	launch.params = (ProtobufCBinaryData){ sizeof(params), params };
	add(VGPU_CALL_cuLaunchKernel, VGPU_FRAME_REPLY, &launch.base);
	add(VGPU_CALL_cuLaunchKernel, 0, &launch.base);
	wait.h_stream = launch.h_stream;
	add(VGPU_CALL_cuStreamSynchronize, VGPU_FRAME_REPLY, &wait.base);
	unload.hmod = first_handle(VGPU_HANDLE_MODULE);
	add(VGPU_CALL_cuModuleUnload, VGPU_FRAME_REPLY, &unload.base);
	return write_row("row-launches");
}

static int events(void)
{
	Vgpu__CuEventCreateRequest create = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	Vgpu__CuEventRecordRequest record = VGPU__CU_EVENT_RECORD_REQUEST__INIT;
	Vgpu__CuStreamWaitEventRequest wait = VGPU__CU_STREAM_WAIT_EVENT_REQUEST__INIT;
	Vgpu__CuEventDestroyV2Request destroy = VGPU__CU_EVENT_DESTROY_V2_REQUEST__INIT;
	Vgpu__CuDevicePrimaryCtxResetV2Request reset =
		VGPU__CU_DEVICE_PRIMARY_CTX_RESET_V2_REQUEST__INIT;

	create.event = first_handle(VGPU_HANDLE_EVENT);
	record.h_event = wait.h_event = destroy.h_event = create.event;
	wait.h_stream = 2;
	add(VGPU_CALL_cuEventCreate, 0, &create.base);
	add(VGPU_CALL_cuEventRecord, 0, &record.base);
	add(VGPU_CALL_cuStreamWaitEvent, 0, &wait.base);
	add(VGPU_CALL_cuEventDestroy_v2, 0, &destroy.base);
	add(VGPU_CALL_cuDevicePrimaryCtxReset_v2, VGPU_FRAME_REPLY, &reset.base);
	add_alloc();
	return write_row("row-events");
}

static ProtobufCBinaryData bytes(const void *data, size_t size)
{
	return (ProtobufCBinaryData){ size, (uint8_t *)data };
}

/* The n-th node that this row made. */
static uint64_t node(uint32_t n)
{
	return vgpu_handle_make(VGPU_HANDLE_GRAPH_NODE, n, 1);
}

static void add_graph(void)
{
	Vgpu__CuGraphCreateRequest create = VGPU__CU_GRAPH_CREATE_REQUEST__INIT;

	add(VGPU_CALL_cuGraphCreate, VGPU_FRAME_REPLY, &create.base);
}

/* A node after another one, if there is any; n bytes describe its work. */
static void add_node(
	int32_t kind, const void *detail, size_t n, Vgpu__CuGraphAddNodeV2Request *more)
{
	more->h_graph = first_handle(VGPU_HANDLE_GRAPH);
	more->kind = kind;
	more->detail = bytes(detail, n);
	add(VGPU_CALL_cuGraphAddNode_v2, VGPU_FRAME_REPLY, &more->base);
}

/* One of each kind: 0 a kernel, 1 a fill, 2 a copy, 3 the record of an event. */
static void add_nodes(void)
{
	const struct vgpu_launch_dims dims = { .axis = {
						       { 1, 32 }, { 1, 1 }, { 1, 1 } } };
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory(),
		.elementSize = 4,
		.width = 16,
		.height = 1,
	};
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = (void *)(uintptr_t)arena(),
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory(),
		.WidthInBytes = 256,
		.Height = 1,
		.Depth = 1,
	};
	const uint64_t first = node(0);
	const uint8_t params[FAKE_PARAM_SIZE] = {};
	Vgpu__CuGraphAddNodeV2Request kernel = VGPU__CU_GRAPH_ADD_NODE_V2_REQUEST__INIT;
	Vgpu__CuGraphAddNodeV2Request other = VGPU__CU_GRAPH_ADD_NODE_V2_REQUEST__INIT;
	Vgpu__CuEventCreateRequest event = VGPU__CU_EVENT_CREATE_REQUEST__INIT;

	kernel.function = first_handle(VGPU_HANDLE_FUNCTION);
	kernel.params = bytes(params, sizeof(params));
	add_node(CU_GRAPH_NODE_TYPE_KERNEL, &dims, sizeof(dims), &kernel);
	other.dependencies_list = bytes(&first, sizeof(first));
	other.node_context = first_handle(VGPU_HANDLE_CONTEXT);
	add_node(CU_GRAPH_NODE_TYPE_MEMSET, &fill, sizeof(fill), &other);
	add_node(CU_GRAPH_NODE_TYPE_MEMCPY, &copy, sizeof(copy), &other);
	event.event = other.event = first_handle(VGPU_HANDLE_EVENT);
	add(VGPU_CALL_cuEventCreate, 0, &event.base);
	add_node(CU_GRAPH_NODE_TYPE_EVENT_RECORD, NULL, 0, &other);
}

static void add_questions(void)
{
	Vgpu__VgpuGraphListRequest list = VGPU__VGPU_GRAPH_LIST_REQUEST__INIT;
	Vgpu__VgpuGraphNodeRequest ask = VGPU__VGPU_GRAPH_NODE_REQUEST__INIT;

	list.graph = first_handle(VGPU_HANDLE_GRAPH);
	list.node = node(0);
	for (list.list = 0; list.list < _VGPU_GRAPH_LIST_N; list.list++)
		add(VGPU_CALL_vgpuGraphList, VGPU_FRAME_REPLY, &list.base);
	for (uint32_t i = 0; i < 4; i++) {
		ask.node = node(i);
		add(VGPU_CALL_vgpuGraphNode, VGPU_FRAME_REPLY, &ask.base);
	}
}

static void add_launch(void)
{
	Vgpu__CuGraphInstantiateWithParamsRequest make =
		VGPU__CU_GRAPH_INSTANTIATE_WITH_PARAMS_REQUEST__INIT;
	Vgpu__CuGraphLaunchRequest launch = VGPU__CU_GRAPH_LAUNCH_REQUEST__INIT;

	make.h_graph = first_handle(VGPU_HANDLE_GRAPH);
	add(VGPU_CALL_cuGraphInstantiateWithParams, VGPU_FRAME_REPLY, &make.base);
	launch.h_graph = first_handle(VGPU_HANDLE_GRAPH_EXEC);
	add(VGPU_CALL_cuGraphLaunch, VGPU_FRAME_REPLY, &launch.base);
	add(VGPU_CALL_cuGraphLaunch, 0, &launch.base);
}

static void add_end_of_graph(void)
{
	Vgpu__CuGraphDestroyNodeRequest one = VGPU__CU_GRAPH_DESTROY_NODE_REQUEST__INIT;
	Vgpu__CuGraphExecDestroyRequest exec = VGPU__CU_GRAPH_EXEC_DESTROY_REQUEST__INIT;
	Vgpu__CuGraphDestroyRequest graph = VGPU__CU_GRAPH_DESTROY_REQUEST__INIT;

	one.h_node = node(1);
	add(VGPU_CALL_cuGraphDestroyNode, VGPU_FRAME_REPLY, &one.base);
	graph.h_graph = first_handle(VGPU_HANDLE_GRAPH);
	add(VGPU_CALL_cuGraphDestroy, VGPU_FRAME_REPLY, &graph.base);
	exec.h_graph_exec = first_handle(VGPU_HANDLE_GRAPH_EXEC);
	add(VGPU_CALL_cuGraphExecDestroy, VGPU_FRAME_REPLY, &exec.base);
	/* Its place is used again at once. */
	add_graph();
}

static int graphs(void)
{
	Vgpu__CuGraphAddDependenciesV2Request edge =
		VGPU__CU_GRAPH_ADD_DEPENDENCIES_V2_REQUEST__INIT;
	Vgpu__CuGraphExecNodeSetParamsRequest set =
		VGPU__CU_GRAPH_EXEC_NODE_SET_PARAMS_REQUEST__INIT;
	Vgpu__CuGraphExecUpdateV2Request update =
		VGPU__CU_GRAPH_EXEC_UPDATE_V2_REQUEST__INIT;
	Vgpu__CuGraphCloneRequest clone = VGPU__CU_GRAPH_CLONE_REQUEST__INIT;
	const uint64_t from = node(1), to = node(2);

	add_alloc();
	add_module();
	add_graph();
	add_nodes();
	edge.h_graph = clone.original_graph = first_handle(VGPU_HANDLE_GRAPH);
	edge.from_list = bytes(&from, sizeof(from));
	edge.to_list = bytes(&to, sizeof(to));
	add(VGPU_CALL_cuGraphAddDependencies_v2, VGPU_FRAME_REPLY, &edge.base);
	add_questions();
	add_launch();
	set.h_graph_exec = update.h_graph_exec = first_handle(VGPU_HANDLE_GRAPH_EXEC);
	set.h_node = node(3);
	set.kind = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	set.event = first_handle(VGPU_HANDLE_EVENT);
	add(VGPU_CALL_cuGraphExecNodeSetParams, VGPU_FRAME_REPLY, &set.base);
	update.h_graph = edge.h_graph;
	add(VGPU_CALL_cuGraphExecUpdate_v2, VGPU_FRAME_REPLY, &update.base);
	add(VGPU_CALL_cuGraphClone, VGPU_FRAME_REPLY, &clone.base);
	add_end_of_graph();
	return write_row("row-graphs");
}

static int captures(void)
{
	Vgpu__CuStreamCreateWithPriorityRequest create =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	Vgpu__CuStreamBeginCaptureV2Request begin =
		VGPU__CU_STREAM_BEGIN_CAPTURE_V2_REQUEST__INIT;
	Vgpu__CuStreamBeginCaptureToGraphRequest begin_to =
		VGPU__CU_STREAM_BEGIN_CAPTURE_TO_GRAPH_REQUEST__INIT;
	Vgpu__CuStreamGetCaptureInfoV3Request ask =
		VGPU__CU_STREAM_GET_CAPTURE_INFO_V3_REQUEST__INIT;
	Vgpu__CuStreamEndCaptureRequest end = VGPU__CU_STREAM_END_CAPTURE_REQUEST__INIT;
	Vgpu__CuThreadExchangeStreamCaptureModeRequest mode =
		VGPU__CU_THREAD_EXCHANGE_STREAM_CAPTURE_MODE_REQUEST__INIT;
	Vgpu__VgpuLaneExitRequest leave = VGPU__VGPU_LANE_EXIT_REQUEST__INIT;

	add(VGPU_CALL_cuStreamCreateWithPriority, VGPU_FRAME_REPLY, &create.base);
	mode.mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	add(VGPU_CALL_cuThreadExchangeStreamCaptureMode, VGPU_FRAME_REPLY, &mode.base);
	begin.h_stream = begin_to.h_stream = ask.h_stream = end.h_stream =
		first_handle(VGPU_HANDLE_STREAM);
	add(VGPU_CALL_cuStreamBeginCapture_v2, VGPU_FRAME_REPLY, &begin.base);
	add(VGPU_CALL_cuStreamGetCaptureInfo_v3, VGPU_FRAME_REPLY, &ask.base);
	add(VGPU_CALL_cuStreamEndCapture, VGPU_FRAME_REPLY, &end.base);
	add_launch();
	begin_to.h_graph = first_handle(VGPU_HANDLE_GRAPH);
	add(VGPU_CALL_cuStreamBeginCaptureToGraph, VGPU_FRAME_REPLY, &begin_to.base);
	add(VGPU_CALL_cuStreamGetCaptureInfo_v3, VGPU_FRAME_REPLY, &ask.base);
	add(VGPU_CALL_vgpuLaneExit, 0, &leave.base);
	add_end_of_graph();
	return write_row("row-captures");
}

static int copy_generated(void)
{
	static uint8_t data[VGPU_FRAME_MAX];
	struct dirent *entry;
	char path[4096];
	DIR *seeds;
	FILE *file;
	size_t n;
	int r = 0;

	seeds = opendir(GENERATED_SEEDS);
	if (!seeds) {
		perror(GENERATED_SEEDS);
		return 1;
	}
	while ((entry = readdir(seeds))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", GENERATED_SEEDS, entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		n = fread(data, 1, sizeof(data), file);
		fclose(file);
		r |= write_file(entry->d_name, data, n);
	}
	closedir(seeds);
	return r;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make-seeds-dispatch FOLDER\n");
		return 2;
	}
	folder = argv[1];
	return copies() | launches() | events() | graphs() | captures() |
	       copy_generated();
}
