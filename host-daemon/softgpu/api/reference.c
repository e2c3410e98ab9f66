/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references
 *
 * A reference of a module represents a variable of that module, from which kernels load
 * the number of an object. Whenever something is set, the reference creates a new object
 * from all its settings; while these are incomplete, the variable is 0, on which kernels
 * fault. Kernels that were launched before still use the old number, so a call that
 * replaces it waits for them first.
 *
 * A reference of a module is destroyed with it; one that a program creates has no
 * variable, and only stores the settings. All fields are guarded by one lock, which is
 * not held while something waits for the device. An array that ends while it is bound
 * cannot be accessed any more: memory of objects is looked up at each use, handles at
 * each call.
 */

#include <string.h>

#include "api/array.h"
#include "api/texture.h"
#include "ptx/isa.h"

struct reference {
	struct object object;
	struct reference *next; /* of the same module; module.lock */
	CUmodule module;	/* NULL: the program created it */
	uint64_t *variable;	/* NULL too then; device memory */
	bool is_surface;

	bool is_bound;
	uint64_t number;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUarray_format format; /* of linear memory; of all else a copy */
	unsigned int n_channels;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The variable is about to go with its module. */
static void reference_end(struct object *object)
{
	struct reference *reference = (struct reference *)object;
	uint64_t number;

	object_leave(object);
	pthread_mutex_lock(&lock);
	number = reference->number;
	reference->number = 0;
	reference->variable = NULL;
	pthread_mutex_unlock(&lock);
	texture_unmake(number, reference->is_surface);
}

static struct reference *reference_new(CUcontext context, bool is_surface)
{
	struct reference *reference = object_new(
		is_surface ? OBJECT_SURFREF : OBJECT_TEXREF, sizeof(*reference), context);

	if (!reference)
		return NULL;
	reference->object.end = reference_end;
	reference->is_surface = is_surface;
	reference->format = CU_AD_FORMAT_FLOAT;
	reference->n_channels = 1;
	for (unsigned int i = 0; i < 3; i++)
		reference->texture.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	return reference;
}

void reference_forget(CUmodule module)
{
	struct reference *reference;

	pthread_mutex_lock(&module->lock);
	reference = module->references;
	module->references = NULL;
	pthread_mutex_unlock(&module->lock);
	while (reference) {
		struct reference *next = reference->next;

		object_end(&reference->object);
		reference = next;
	}
}

/* Return: 0 with the variable and its place, or NOT_FOUND. */
static CUresult find_variable(CUmodule module, const char *name, bool is_surface,
	const struct softgpu_variable **variablep, uint64_t **placep)
{
	unsigned int kind =
		is_surface ? SOFTGPU_SURFACE_REFERENCE : SOFTGPU_TEXTURE_REFERENCE;
	size_t n = softgpu_program_n_variables(module->program);

	for (size_t i = 0; i < n; i++) {
		const struct softgpu_variable *variable =
			softgpu_program_variable(module->program, i);

		if (variable->reference != kind || strcmp(variable->name, name))
			continue;
		*variablep = variable;
		*placep = (uint64_t *)(uintptr_t)module->addresses[i];
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

/* What the module says about a texture, until calls change it. */
static void set_initial(CUDA_TEXTURE_DESC *texture, uint32_t sampling)
{
	if (!(sampling & PTX_SAMPLING_GIVEN))
		return;
	for (unsigned int i = 0; i < 3; i++)
		texture->addressMode[i] = (CUaddress_mode)(sampling >> 2 * i & 3);
	if (sampling & PTX_SAMPLING_LINEAR)
		texture->filterMode = CU_TR_FILTER_MODE_LINEAR;
	if (sampling & PTX_SAMPLING_NORMALIZED)
		texture->flags = CU_TRSF_NORMALIZED_COORDINATES;
}

/* With module.lock. */
static CUresult module_reference(CUmodule module, uint64_t *variable, bool is_surface,
	uint32_t sampling, struct reference **referencep)
{
	struct reference *reference;

	/* Partner: module_end(), which forgets references after that. */
	if (__atomic_load_n(&module->n_ends, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (reference = module->references; reference; reference = reference->next)
		if (reference->variable == variable) {
			*referencep = reference;
			return CUDA_SUCCESS;
		}
	reference = reference_new(module->object.context, is_surface);
	if (!reference)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reference->module = module;
	reference->variable = variable;
	set_initial(&reference->texture, sampling);
	if (object_enter(&reference->object)) {
		object_unref(&reference->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	reference->next = module->references;
	module->references = reference;
	*referencep = reference;
	return CUDA_SUCCESS;
}

static CUresult module_get(
	CUmodule module, const char *name, bool is_surface, struct reference **referencep)
{
	const struct softgpu_variable *variable;
	CUcontext context;
	uint64_t *place;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(module, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	result = find_variable(module, name, is_surface, &variable, &place);
	if (result)
		return result;
	pthread_mutex_lock(&module->lock);
	result = module_reference(
		module, place, is_surface, variable->sampling, referencep);
	pthread_mutex_unlock(&module->lock);
	return result;
}

/* With the lock. Return: 0, or why there is no object now. */
static CUresult renew(struct reference *reference)
{
	CUDA_RESOURCE_DESC resource = reference->resource;
	uint64_t before = reference->number;
	unsigned long long number = 0;
	CUresult result = CUDA_SUCCESS;

	if (!reference->variable)
		return CUDA_SUCCESS;
	if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
		resource.res.linear.format = reference->format;
		resource.res.linear.numChannels = reference->n_channels;
	}
	if (reference->is_bound)
		result = reference->is_surface
				 ? surface_make(&resource, &number)
				 : texture_make(&resource, &reference->texture, &number);
	reference->number = result ? 0 : number;
	__atomic_store_n(reference->variable, reference->number, __ATOMIC_RELAXED);
	texture_unmake(before, reference->is_surface);
	return result;
}

/* Locks a reference, to be read. */
static CUresult begin_get(
	const void *handle, enum object_kind kind, struct reference **referencep)
{
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!object_hold(handle, kind))
		return CUDA_ERROR_INVALID_HANDLE;
	*referencep = (struct reference *)handle;
	pthread_mutex_lock(&lock);
	return CUDA_SUCCESS;
}

/* Locks a reference, to be changed; no kernel that was launched uses it any more. */
static CUresult begin_set(
	const void *handle, enum object_kind kind, struct reference **referencep)
{
	CUresult result = begin_get(handle, kind, referencep);

	if (result || !(*referencep)->number)
		return result;
	pthread_mutex_unlock(&lock);
	result = sched_context_wait(&(*referencep)->object.context->sched);
	if (!result)
		pthread_mutex_lock(&lock);
	return result;
}

static CUresult begin_texture(CUtexref handle, struct reference **referencep)
{
	return begin_set(handle, OBJECT_TEXREF, referencep);
}

/* A setting may be useful only together with later ones. */
static CUresult end_set(struct reference *reference)
{
	renew(reference);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult end_get(CUresult result)
{
	pthread_mutex_unlock(&lock);
	return result;
}

/* Binds what can be bound at all. */
static CUresult bind(struct reference *reference, const CUDA_RESOURCE_DESC *resource,
	CUarray_format format, unsigned int n_channels)
{
	CUresult result = texture_check(resource);

	if (result)
		return end_get(result);
	reference->resource = *resource;
	reference->format = format;
	reference->n_channels = n_channels;
	reference->is_bound = true;
	return end_set(reference);
}

/*
 * Calls: references
 */

CUresult cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	API_CALL;
	struct reference *reference;
	CUresult result;

	if (!pTexRef)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_get(hmod, name, false, &reference);
	if (!result)
		*pTexRef = (CUtexref)reference;
	return result;
}

CUresult cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	API_CALL;
	struct reference *reference;
	CUresult result;

	if (!pSurfRef)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_get(hmod, name, true, &reference);
	if (!result)
		*pSurfRef = (CUsurfref)reference;
	return result;
}

CUresult cuTexRefCreate(CUtexref *pTexRef)
{
	API_CALL;
	struct reference *reference;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pTexRef)
		return CUDA_ERROR_INVALID_VALUE;
	reference = reference_new(context, false);
	if (!reference)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = context_add(&reference->object);
	if (result)
		object_unref(&reference->object);
	else
		*pTexRef = (CUtexref)reference;
	return result;
}

CUresult cuTexRefDestroy(CUtexref hTexRef)
{
	API_CALL;
	struct reference *reference;
	CUresult result = begin_get(hTexRef, OBJECT_TEXREF, &reference);

	if (!result)
		result = end_get(
			reference->module ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
	if (result)
		return result;
	if (!context_remove(&reference->object))
		return CUDA_ERROR_INVALID_HANDLE;
	object_end(&reference->object);
	return CUDA_SUCCESS;
}

/* Kernels find a module's references by themselves, and there are no others to find. */
CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
	API_CALL;
	struct reference *reference;
	CUfunction function;
	CUresult result;

	result = begin_get(hTexRef, OBJECT_TEXREF, &reference);
	if (result)
		return result;
	end_get(CUDA_SUCCESS);
	result = function_get(hfunc, &function);
	if (!result &&
		(texunit != CU_PARAM_TR_DEFAULT || reference->module != function->module))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/*
 * Calls: what is bound
 */

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	API_CALL;
	const CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_ARRAY,
		.res.array.hArray = hArray,
	};
	struct reference *reference;
	CUresult result = begin_texture(hTexRef, &reference);

	if (result)
		return result;
	if (Flags != CU_TRSA_OVERRIDE_FORMAT)
		return end_get(CUDA_ERROR_INVALID_VALUE);
	if (!object_hold(hArray, OBJECT_ARRAY))
		return end_get(CUDA_ERROR_INVALID_HANDLE);
	return bind(reference, &resource, hArray->descriptor.Format,
		hArray->descriptor.NumChannels);
}

CUresult cuTexRefSetMipmappedArray(
	CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
	API_CALL;
	const CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
		.res.mipmap.hMipmappedArray = hMipmappedArray,
	};
	struct reference *reference;
	CUresult result = begin_texture(hTexRef, &reference);

	if (result)
		return result;
	if (Flags != CU_TRSA_OVERRIDE_FORMAT)
		return end_get(CUDA_ERROR_INVALID_VALUE);
	if (!object_hold(hMipmappedArray, OBJECT_MIPMAP))
		return end_get(CUDA_ERROR_INVALID_HANDLE);
	return bind(reference, &resource, hMipmappedArray->descriptor.Format,
		hMipmappedArray->descriptor.NumChannels);
}

/* The bytes before an unaligned address are bound too, and the program has to add the
 * offset. */
CUresult cuTexRefSetAddress_v2(
	size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	API_CALL;
	size_t offset = dptr % TEXTURE_ALIGNMENT;
	CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear.devPtr = dptr - offset,
		.res.linear.sizeInBytes = bytes + offset,
	};
	struct reference *reference;
	CUresult result = begin_texture(hTexRef, &reference);

	if (result)
		return result;
	if ((offset && !ByteOffset) || bytes + offset < bytes)
		return end_get(CUDA_ERROR_INVALID_VALUE);
	resource.res.linear.format = reference->format;
	resource.res.linear.numChannels = reference->n_channels;
	result = bind(reference, &resource, reference->format, reference->n_channels);
	if (!result && ByteOffset)
		*ByteOffset = offset;
	return result;
}

CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
	CUdeviceptr dptr, size_t Pitch)
{
	API_CALL;
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_PITCH2D };
	struct reference *reference;
	CUresult result;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	result = begin_texture(hTexRef, &reference);
	if (result)
		return result;
	resource.res.pitch2D.devPtr = dptr;
	resource.res.pitch2D.format = desc->Format;
	resource.res.pitch2D.numChannels = desc->NumChannels;
	resource.res.pitch2D.width = desc->Width;
	resource.res.pitch2D.height = desc->Height;
	resource.res.pitch2D.pitchInBytes = Pitch;
	return bind(reference, &resource, desc->Format, desc->NumChannels);
}

CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
	API_CALL;
	struct reference *reference;
	CUresult result = begin_set(hSurfRef, OBJECT_SURFREF, &reference);

	if (result)
		return result;
	if (Flags)
		return end_get(CUDA_ERROR_INVALID_VALUE);
	if (!object_hold(hArray, OBJECT_ARRAY))
		return end_get(CUDA_ERROR_INVALID_HANDLE);
	if (!(hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return end_get(CUDA_ERROR_INVALID_VALUE);
	reference->resource = (CUDA_RESOURCE_DESC){
		.resType = CU_RESOURCE_TYPE_ARRAY,
		.res.array.hArray = hArray,
	};
	reference->is_bound = true;
	return end_get(renew(reference));
}

static CUresult get_bound(const void *handle, enum object_kind kind, CUresourcetype type,
	CUDA_RESOURCE_DESC *resource)
{
	struct reference *reference;
	CUresult result = begin_get(handle, kind, &reference);

	if (result)
		return result;
	*resource = reference->resource;
	return end_get(reference->is_bound && resource->resType == type
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
	API_CALL;
	CUDA_RESOURCE_DESC resource;
	CUresult result;

	if (!pdptr)
		return CUDA_ERROR_INVALID_VALUE;
	result = get_bound(hTexRef, OBJECT_TEXREF, CU_RESOURCE_TYPE_LINEAR, &resource);
	if (!result)
		*pdptr = resource.res.linear.devPtr;
	if (result != CUDA_ERROR_INVALID_VALUE)
		return result;
	result = get_bound(hTexRef, OBJECT_TEXREF, CU_RESOURCE_TYPE_PITCH2D, &resource);
	if (!result)
		*pdptr = resource.res.pitch2D.devPtr;
	return result;
}

CUresult cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
	API_CALL;
	CUDA_RESOURCE_DESC resource;
	CUresult result;

	if (!phArray)
		return CUDA_ERROR_INVALID_VALUE;
	result = get_bound(hTexRef, OBJECT_TEXREF, CU_RESOURCE_TYPE_ARRAY, &resource);
	if (!result)
		*phArray = resource.res.array.hArray;
	return result;
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
	API_CALL;
	CUDA_RESOURCE_DESC resource;
	CUresult result;

	if (!phMipmappedArray)
		return CUDA_ERROR_INVALID_VALUE;
	result = get_bound(
		hTexRef, OBJECT_TEXREF, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, &resource);
	if (!result)
		*phMipmappedArray = resource.res.mipmap.hMipmappedArray;
	return result;
}

CUresult cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
	API_CALL;
	CUDA_RESOURCE_DESC resource;
	CUresult result;

	if (!phArray)
		return CUDA_ERROR_INVALID_VALUE;
	result = get_bound(hSurfRef, OBJECT_SURFREF, CU_RESOURCE_TYPE_ARRAY, &resource);
	if (!result)
		*phArray = resource.res.array.hArray;
	return result;
}

/*
 * Calls: how it is sampled
 */

#define SET(_hTexRef, _is_valid, _error, _assignment)                                    \
	do {                                                                             \
		struct reference *reference;                                             \
		CUresult result;                                                         \
                                                                                         \
		if (!(_is_valid))                                                        \
			return _error;                                                   \
		result = begin_texture(_hTexRef, &reference);                            \
		if (result)                                                              \
			return result;                                                   \
		_assignment;                                                             \
		return end_set(reference);                                               \
	} while (0)

#define GET(_hTexRef, _is_valid, _assignment)                                            \
	do {                                                                             \
		struct reference *reference;                                             \
		CUresult result;                                                         \
                                                                                         \
		if (!(_is_valid))                                                        \
			return CUDA_ERROR_INVALID_VALUE;                                 \
		result = begin_get(_hTexRef, OBJECT_TEXREF, &reference);                 \
		if (result)                                                              \
			return result;                                                   \
		_assignment;                                                             \
		return end_get(CUDA_SUCCESS);                                            \
	} while (0)

static bool is_filter(CUfilter_mode mode)
{
	return (unsigned int)mode <= CU_TR_FILTER_MODE_LINEAR;
}

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	API_CALL;
	enum texel_format unused;

	SET(hTexRef,
		array_format(fmt, &unused) &&
			array_format_has(fmt, (unsigned int)NumPackedComponents),
		CUDA_ERROR_INVALID_VALUE, {
			reference->format = fmt;
			reference->n_channels = (unsigned int)NumPackedComponents;
		});
}

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
	API_CALL;

	SET(hTexRef, dim >= 0 && dim < 3 && (unsigned int)am <= CU_TR_ADDRESS_MODE_BORDER,
		CUDA_ERROR_INVALID_VALUE, reference->texture.addressMode[dim] = am);
}

CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	API_CALL;

	SET(hTexRef, is_filter(fm), CUDA_ERROR_INVALID_VALUE,
		reference->texture.filterMode = fm);
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	API_CALL;

	SET(hTexRef, is_filter(fm), CUDA_ERROR_INVALID_VALUE,
		reference->texture.mipmapFilterMode = fm);
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
	API_CALL;

	SET(hTexRef, true, CUDA_SUCCESS, reference->texture.mipmapLevelBias = bias);
}

CUresult cuTexRefSetMipmapLevelClamp(
	CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
	API_CALL;

	SET(hTexRef, true, CUDA_SUCCESS, {
		reference->texture.minMipmapLevelClamp = minMipmapLevelClamp;
		reference->texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
	});
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
	API_CALL;

	SET(hTexRef, true, CUDA_SUCCESS, reference->texture.maxAnisotropy = maxAniso);
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	API_CALL;

	SET(hTexRef, pBorderColor, CUDA_ERROR_INVALID_VALUE,
		memcpy(reference->texture.borderColor, pBorderColor,
			sizeof(reference->texture.borderColor)));
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
	API_CALL;
	const unsigned int known =
		CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

	SET(hTexRef, !(Flags & ~known), CUDA_ERROR_NOT_SUPPORTED,
		reference->texture.flags = Flags);
}

CUresult cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pFormat && pNumChannels, {
		*pFormat = reference->format;
		*pNumChannels = (int)reference->n_channels;
	});
}

CUresult cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
	API_CALL;

	GET(hTexRef, pam && dim >= 0 && dim < 3,
		*pam = reference->texture.addressMode[dim]);
}

CUresult cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pfm, *pfm = reference->texture.filterMode);
}

CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pfm, *pfm = reference->texture.mipmapFilterMode);
}

CUresult cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pbias, *pbias = reference->texture.mipmapLevelBias);
}

CUresult cuTexRefGetMipmapLevelClamp(
	float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pminMipmapLevelClamp && pmaxMipmapLevelClamp, {
		*pminMipmapLevelClamp = reference->texture.minMipmapLevelClamp;
		*pmaxMipmapLevelClamp = reference->texture.maxMipmapLevelClamp;
	});
}

CUresult cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pmaxAniso, *pmaxAniso = (int)reference->texture.maxAnisotropy);
}

CUresult cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pBorderColor,
		memcpy(pBorderColor, reference->texture.borderColor,
			sizeof(reference->texture.borderColor)));
}

CUresult cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
	API_CALL;

	GET(hTexRef, pFlags, *pFlags = reference->texture.flags);
}
