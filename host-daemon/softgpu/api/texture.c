/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects
 *
 * Descriptions are checked here, once; exec/sampler.c implements them for kernels. An
 * object's number is withdrawn before its entry is reused, and both wait until the
 * context is idle.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "api/array.h"
#include "api/texture.h"
#include "exec/texel-block.h"

/* The results of calls that return descriptions. */
struct texture_object {
	struct object object; /* of the context, or of none: a reference's */
	struct softgpu_texture *entry;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};

static struct {
	pthread_mutex_t lock;
	struct softgpu_textures entries;
	struct texture_object *objects[1u << TEXTURE_INDEX_BITS];
	uint32_t n_used;
	uint32_t n_free;
	uint32_t free[1u << TEXTURE_INDEX_BITS];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

const struct softgpu_textures *texture_table(void)
{
	return &table.entries;
}

/* With the lock. Return: the index of a free entry, or -1. */
static int take_index(void)
{
	struct softgpu_texture *chunk;
	uint32_t index = table.n_used;

	if (table.n_free)
		return (int)table.free[--table.n_free];
	if (index >> TEXTURE_INDEX_BITS)
		return -1;
	if (index % TEXTURE_CHUNK == 0) {
		chunk = calloc(TEXTURE_CHUNK, sizeof(*chunk));
		if (!chunk)
			return -1;
		/* Partner: the load in softgpu_texture_find(). */
		__atomic_store_n(&table.entries.chunks[index / TEXTURE_CHUNK], chunk,
			__ATOMIC_RELEASE);
	}
	table.n_used++;
	return (int)index;
}

/* Gives an object a number, which it returns; 0: there are too many. */
static uint64_t publish(struct texture_object *object,
	const struct softgpu_texture *template, bool is_surface)
{
	struct softgpu_texture *entry;
	uint64_t number = 0;
	int index;

	pthread_mutex_lock(&table.lock);
	index = take_index();
	if (index >= 0) {
		entry = &table.entries
				 .chunks[index / TEXTURE_CHUNK][index % TEXTURE_CHUNK];
		number = (uint64_t)(entry->generation + 1) << TEXTURE_INDEX_BITS |
			 (uint32_t)index;
		number |= is_surface ? TEXTURE_SURFACE_BIT : 0;
		object->entry = entry;
		table.objects[index] = object;
		/* The number is the first field, and comes last. */
		memcpy(&entry->n_levels, &template->n_levels,
			sizeof(*entry) - offsetof(struct softgpu_texture, n_levels));
		entry->generation++;
		/* Partner: the load in softgpu_texture_find(). */
		__atomic_store_n(&entry->number, number, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table.lock);
	return number;
}

static void texture_end(struct object *ended)
{
	struct texture_object *object = (struct texture_object *)ended;
	uint32_t index;

	pthread_mutex_lock(&table.lock);
	index = object->entry->number & ((1u << TEXTURE_INDEX_BITS) - 1);
	__atomic_store_n(&object->entry->number, 0, __ATOMIC_RELEASE);
	table.objects[index] = NULL;
	/* One whose generations are used up is never used again. */
	if (object->entry->generation < UINT32_MAX - 1)
		table.free[table.n_free++] = index;
	pthread_mutex_unlock(&table.lock);
}

/* The object of a number, held. Return: NULL if it is not an object of this kind. */
static struct texture_object *find(uint64_t number, bool is_surface)
{
	uint32_t index = number & ((1u << TEXTURE_INDEX_BITS) - 1);
	struct texture_object *object;

	if (!(number & TEXTURE_SURFACE_BIT) == is_surface)
		return NULL;
	pthread_mutex_lock(&table.lock);
	object = table.objects[index];
	if (object && (object->entry->number != number || !object_keep(&object->object)))
		object = NULL;
	pthread_mutex_unlock(&table.lock);
	return object;
}

/*
 * Resources
 */

static CUresult set_format(
	struct softgpu_texture *t, CUarray_format format, unsigned int n_channels)
{
	enum texel_format texel;

	if (!array_format_has(format, n_channels))
		return CUDA_ERROR_INVALID_VALUE;
	if (!array_format(format, &texel))
		return array_format_refusal(format);
	t->format = texel;
	t->is_fraction = array_format_is_fraction(format);
	t->n_channels = n_channels;
	return CUDA_SUCCESS;
}

static CUresult set_array(
	struct softgpu_texture *t, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	t->is_cube = descriptor->Flags & CUDA_ARRAY3D_CUBEMAP;
	t->is_layered = descriptor->Flags & CUDA_ARRAY3D_LAYERED;
	t->n_dimensions = descriptor->Height ? 2 : 1;
	if (descriptor->Depth && !t->is_cube && !t->is_layered)
		t->n_dimensions = 3;
	return set_format(t, descriptor->Format, descriptor->NumChannels);
}

static CUresult set_linear(struct softgpu_texture *t, const CUDA_RESOURCE_DESC *resource)
{
	uint64_t address = resource->res.linear.devPtr, n;
	size_t size = resource->res.linear.sizeInBytes;
	CUresult result;

	result = set_format(
		t, resource->res.linear.format, resource->res.linear.numChannels);
	if (result)
		return result;
	n = size / (texel_channel_size(t->format) * t->n_channels);
	if (!n || n > TEXTURE_LINEAR_MAX || address % TEXTURE_ALIGNMENT ||
		!context_reaches(NULL, address, size, SOFTGPU_READ))
		return CUDA_ERROR_INVALID_VALUE;
	t->n_levels = 1;
	t->n_dimensions = 1;
	t->is_linear_memory = true;
	t->levels[0] = (struct texture_level){ .address = address, .width = (uint32_t)n };
	return CUDA_SUCCESS;
}

static CUresult set_pitch2d(struct softgpu_texture *t, const CUDA_RESOURCE_DESC *resource)
{
	uint64_t address = resource->res.pitch2D.devPtr, row, size;
	size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
	size_t pitch = resource->res.pitch2D.pitchInBytes;
	CUresult result;

	result = set_format(
		t, resource->res.pitch2D.format, resource->res.pitch2D.numChannels);
	if (result)
		return result;
	row = (uint64_t)width * texel_channel_size(t->format) * t->n_channels;
	if (!width || !height || width > TEXTURE_PITCH_WIDTH_MAX ||
		height > TEXTURE_PITCH_HEIGHT_MAX || pitch > TEXTURE_PITCH_MAX ||
		pitch < row || pitch % TEXTURE_PITCH_ALIGNMENT ||
		address % TEXTURE_ALIGNMENT || !vgpu_mul_u64(pitch, height - 1, &size) ||
		!vgpu_add_u64(size, row, &size) ||
		!context_reaches(NULL, address, size, SOFTGPU_READ))
		return CUDA_ERROR_INVALID_VALUE;
	t->n_levels = 1;
	t->n_dimensions = 2;
	t->levels[0] = (struct texture_level){
		.address = address,
		.pitch = pitch,
		.width = (uint32_t)width,
		.height = (uint32_t)height,
	};
	return CUDA_SUCCESS;
}

static CUresult set_resource(
	struct softgpu_texture *t, const CUDA_RESOURCE_DESC *resource)
{
	CUmipmappedArray mipmap;
	CUarray array;

	if (resource->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		array = resource->res.array.hArray;
		if (!object_hold(array, OBJECT_ARRAY))
			return CUDA_ERROR_INVALID_HANDLE;
		t->n_levels = 1;
		t->levels[0] = array->level;
		return set_array(t, &array->descriptor);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		mipmap = resource->res.mipmap.hMipmappedArray;
		if (!object_hold(mipmap, OBJECT_MIPMAP))
			return CUDA_ERROR_INVALID_HANDLE;
		t->n_levels = mipmap->n_levels;
		for (uint32_t i = 0; i < mipmap->n_levels; i++)
			t->levels[i] = mipmap->levels[i].level;
		return set_array(t, &mipmap->descriptor);
	case CU_RESOURCE_TYPE_LINEAR:
		return set_linear(t, resource);
	case CU_RESOURCE_TYPE_PITCH2D:
		return set_pitch2d(t, resource);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/*
 * Views: the same texels under another format, some of the levels and layers
 */

/* Compressed blocks are seen in an array whose texels are as large, of 32-bit integers.
 */
static CUresult view_blocks(struct softgpu_texture *t, CUresourceViewFormat format)
{
	static const uint8_t blocks[] = { TEXEL_BLOCK_BC1, TEXEL_BLOCK_BC2,
		TEXEL_BLOCK_BC3, TEXEL_BLOCK_BC4_UNSIGNED, TEXEL_BLOCK_BC4_SIGNED,
		TEXEL_BLOCK_BC5_UNSIGNED, TEXEL_BLOCK_BC5_SIGNED,
		TEXEL_BLOCK_BC6H_UNSIGNED, TEXEL_BLOCK_BC6H_SIGNED, TEXEL_BLOCK_BC7 };
	uint8_t block = blocks[format - CU_RES_VIEW_FORMAT_UNSIGNED_BC1];

	if (t->format != TEXEL_U32 || t->n_dimensions < 2 ||
		t->n_channels * sizeof(uint32_t) != texel_block_size(block))
		return CUDA_ERROR_INVALID_VALUE;
	t->block = block;
	for (uint32_t i = 0; i < t->n_levels; i++) {
		t->levels[i].width *= TEXEL_BLOCK_SIDE;
		t->levels[i].height *= TEXEL_BLOCK_SIDE;
	}
	return CUDA_SUCCESS;
}

static CUresult view_format(struct softgpu_texture *t, CUresourceViewFormat format)
{
	static const uint8_t texels[8] = { TEXEL_U8, TEXEL_S8, TEXEL_U16, TEXEL_S16,
		TEXEL_U32, TEXEL_S32, TEXEL_F16, TEXEL_F32 };
	static const uint8_t channels[3] = { 1, 2, 4 };
	unsigned int number = (unsigned int)format - CU_RES_VIEW_FORMAT_UINT_1X8;
	uint32_t size = texel_channel_size(t->format) * t->n_channels;

	if (format == CU_RES_VIEW_FORMAT_NONE)
		return CUDA_SUCCESS;
	if (format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
		return CUDA_ERROR_INVALID_VALUE;
	if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32)
		return view_blocks(t, format);
	t->is_fraction = false;
	t->format = texels[number / 3];
	t->n_channels = channels[number % 3];
	if (texel_channel_size(t->format) * t->n_channels != size)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult view_levels(
	struct softgpu_texture *t, const CUDA_RESOURCE_VIEW_DESC *view)
{
	unsigned int first = view->firstMipmapLevel, last = view->lastMipmapLevel;

	if (first > last || last >= t->n_levels)
		return CUDA_ERROR_INVALID_VALUE;
	t->n_levels = last - first + 1;
	memmove(t->levels, t->levels + first, t->n_levels * sizeof(*t->levels));
	return CUDA_SUCCESS;
}

static CUresult view_layers(
	struct softgpu_texture *t, const CUDA_RESOURCE_VIEW_DESC *view)
{
	unsigned int first = view->firstLayer, last = view->lastLayer;

	if (!t->is_layered)
		return first || last ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (first > last || last >= t->levels[0].depth)
		return CUDA_ERROR_INVALID_VALUE;
	if (t->is_cube && (first % 6 || (last + 1) % 6))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < t->n_levels; i++) {
		t->levels[i].address += first * t->levels[i].slice;
		t->levels[i].depth = last - first + 1;
	}
	return CUDA_SUCCESS;
}

static CUresult set_view(struct softgpu_texture *t, const CUDA_RESOURCE_DESC *resource,
	const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUresult result;

	/* Of memory there is no other view than its own. */
	if (resource->resType != CU_RESOURCE_TYPE_ARRAY &&
		resource->resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	result = view_format(t, view->format);
	if (result)
		return result;
	if (view->width != t->levels[0].width || view->height != t->levels[0].height ||
		(t->n_dimensions == 3 && view->depth != t->levels[0].depth))
		return CUDA_ERROR_INVALID_VALUE;
	result = view_levels(t, view);
	return result ? result : view_layers(t, view);
}

/*
 * Sampling
 */

static bool is_mode(CUaddress_mode mode)
{
	return (unsigned int)mode <= CU_TR_ADDRESS_MODE_BORDER;
}

static bool is_filter(CUfilter_mode mode)
{
	return (unsigned int)mode <= CU_TR_FILTER_MODE_LINEAR;
}

#define TEXTURE_FLAGS                                                                    \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |       \
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

static CUresult check_flags(
	const struct softgpu_texture *t, const CUDA_TEXTURE_DESC *texture)
{
	if (texture->flags & ~(unsigned int)TEXTURE_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	return texture->flags & CU_TRSF_SEAMLESS_CUBEMAP && !t->is_cube
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

/* Texels of linear memory are indexed: modes have no effect there. */
static CUresult set_modes(struct softgpu_texture *t, const CUDA_TEXTURE_DESC *texture)
{
	if (t->is_linear_memory)
		return CUDA_SUCCESS;
	if (!is_filter(texture->filterMode) || !is_filter(texture->mipmapFilterMode))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < 3; i++) {
		if (!is_mode(texture->addressMode[i]))
			return CUDA_ERROR_INVALID_VALUE;
		t->address_modes[i] = (uint8_t)texture->addressMode[i];
	}
	/* Integers have no mean: the sampler takes the nearest texel. */
	t->filters_linearly = texture->filterMode == CU_TR_FILTER_MODE_LINEAR;
	t->filters_levels = texture->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	return CUDA_SUCCESS;
}

static CUresult set_sampling(struct softgpu_texture *t, const CUDA_TEXTURE_DESC *texture)
{
	CUresult result;

	result = check_flags(t, texture);
	if (!result)
		result = set_modes(t, texture);
	if (result)
		return result;
	t->is_normalized = texture->flags & CU_TRSF_NORMALIZED_COORDINATES;
	t->reads_integers = texture->flags & CU_TRSF_READ_AS_INTEGER && !t->is_fraction;
	t->is_srgb = texture->flags & CU_TRSF_SRGB;
	t->is_seamless = texture->flags & CU_TRSF_SEAMLESS_CUBEMAP;
	/* More probes than 16 are as many as 16. */
	t->max_anisotropy =
		(uint8_t)(texture->maxAnisotropy < 16 ? texture->maxAnisotropy : 16);
	/* Levels are found by coordinates that are the same in each. */
	if (t->n_levels > 1 && !t->is_normalized)
		return CUDA_ERROR_INVALID_VALUE;
	t->level_bias = texture->mipmapLevelBias;
	t->level_min = texture->minMipmapLevelClamp;
	t->level_max = texture->maxMipmapLevelClamp;
	memcpy(t->border, texture->borderColor, sizeof(t->border));
	return CUDA_SUCCESS;
}

/*
 * Calls
 */

/* Return: 0 with an object that is in the table, of no context yet. */
static CUresult make(const struct texture_object *template, CUcontext context,
	const struct softgpu_texture *entry, bool is_surface,
	struct texture_object **objectp, unsigned long long *numberp)
{
	struct texture_object *object =
		object_new(OBJECT_TEXTURE, sizeof(*object), context);

	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->resource = template->resource;
	object->texture = template->texture;
	object->view = template->view;
	object->has_view = template->has_view;
	object->object.end = texture_end;
	*numberp = publish(object, entry, is_surface);
	if (!*numberp) {
		object_unref(&object->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*objectp = object;
	return CUDA_SUCCESS;
}

/* The number is in the table before it is in the context: it belongs to a call that has
 * not returned. */
static CUresult add(CUcontext context, const struct texture_object *template,
	const struct softgpu_texture *entry, bool is_surface, unsigned long long *numberp)
{
	struct texture_object *object;
	CUresult result = make(template, context, entry, is_surface, &object, numberp);

	if (result)
		return result;
	result = context_add(&object->object);
	if (result)
		object_end(&object->object);
	return result;
}

static CUresult set_surface(struct softgpu_texture *t, const CUDA_RESOURCE_DESC *resource)
{
	CUresult result;

	if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_resource(t, resource);
	if (result)
		return result;
	if (!(resource->res.array.hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	t->reads_integers = !t->is_fraction;
	return CUDA_SUCCESS;
}

CUresult texture_check(const CUDA_RESOURCE_DESC *resource)
{
	struct softgpu_texture unused = {};

	return set_resource(&unused, resource);
}

CUresult texture_make(const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *texture, unsigned long long *numberp)
{
	const struct texture_object template = {};
	struct softgpu_texture entry = {};
	struct texture_object *object;
	CUresult result;

	result = set_resource(&entry, resource);
	if (!result)
		result = set_sampling(&entry, texture);
	return result ? result : make(&template, NULL, &entry, false, &object, numberp);
}

CUresult surface_make(const CUDA_RESOURCE_DESC *resource, unsigned long long *numberp)
{
	const struct texture_object template = {};
	struct softgpu_texture entry = {};
	struct texture_object *object;
	CUresult result = set_surface(&entry, resource);

	return result ? result : make(&template, NULL, &entry, true, &object, numberp);
}

void texture_unmake(uint64_t number, bool is_surface)
{
	struct texture_object *object = find(number, is_surface);

	if (object)
		object_end(&object->object);
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
	const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	API_CALL;
	struct softgpu_texture entry = {};
	struct texture_object object = {};
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pTexObject || !pResDesc || !pTexDesc)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_resource(&entry, pResDesc);
	if (!result && pResViewDesc)
		result = set_view(&entry, pResDesc, pResViewDesc);
	if (!result)
		result = set_sampling(&entry, pTexDesc);
	if (result)
		return result;
	object.resource = *pResDesc;
	object.texture = *pTexDesc;
	object.has_view = pResViewDesc;
	if (pResViewDesc)
		object.view = *pResViewDesc;
	return add(context, &object, &entry, false, pTexObject);
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	API_CALL;
	struct softgpu_texture entry = {};
	struct texture_object object = {};
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pSurfObject || !pResDesc)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_surface(&entry, pResDesc);
	if (result)
		return result;
	object.resource = *pResDesc;
	return add(context, &object, &entry, true, pSurfObject);
}

static CUresult get(uint64_t number, bool is_surface, struct texture_object **objectp)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	*objectp = find(number, is_surface);
	return *objectp && (*objectp)->object.context ? CUDA_SUCCESS
						      : CUDA_ERROR_INVALID_VALUE;
}

static CUresult destroy(uint64_t number, bool is_surface)
{
	struct texture_object *object;
	CUcontext context;
	CUresult result;

	/* 0 is not an object, and destroying it has no effect. */
	if (!number)
		return context_current(&context);
	result = get(number, is_surface, &object);
	if (!result)
		result = sched_context_wait(&object->object.context->sched);
	if (result)
		return result;
	if (!context_remove(&object->object))
		return CUDA_ERROR_INVALID_VALUE;
	object_end(&object->object);
	return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject)
{
	API_CALL;

	return destroy(texObject, false);
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
	API_CALL;

	return destroy(surfObject, true);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	API_CALL;
	struct texture_object *object;
	CUresult result = get(texObject, false, &object);

	if (!result && !pResDesc)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pResDesc = object->resource;
	return result;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	API_CALL;
	struct texture_object *object;
	CUresult result = get(texObject, false, &object);

	if (!result && !pTexDesc)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pTexDesc = object->texture;
	return result;
}

CUresult cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	API_CALL;
	struct texture_object *object;
	CUresult result = get(texObject, false, &object);

	if (!result && (!pResViewDesc || !object->has_view))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pResViewDesc = object->view;
	return result;
}

CUresult cuSurfObjectGetResourceDesc(
	CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	API_CALL;
	struct texture_object *object;
	CUresult result = get(surfObject, true, &object);

	if (!result && !pResDesc)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pResDesc = object->resource;
	return result;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
	CUarray_format format, unsigned int numChannels, CUdevice dev)
{
	API_CALL;
	struct softgpu_texture unused = {};
	CUresult result;

	result = device_get(dev);
	if (result)
		return result;
	if (!maxWidthInElements)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_format(&unused, format, numChannels);
	if (!result)
		*maxWidthInElements = TEXTURE_LINEAR_MAX;
	return result;
}
