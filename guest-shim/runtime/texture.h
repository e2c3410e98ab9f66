/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texture and surface objects
 */

#include "runtime/types.h"

int rt_texture_new(cudaTextureObject_t *texturep, const cudaResourceDesc *resource,
	const cudaTextureDesc *desc, const cudaResourceViewDesc *view);
int rt_texture_free(cudaTextureObject_t texture);
int rt_texture_resource(cudaResourceDesc *resource, cudaTextureObject_t texture);
int rt_texture_desc(cudaTextureDesc *desc, cudaTextureObject_t texture);
int rt_texture_view(cudaResourceViewDesc *view, cudaTextureObject_t texture);
int rt_surface_new(cudaSurfaceObject_t *surfacep, const cudaResourceDesc *resource);
int rt_surface_free(cudaSurfaceObject_t surface);
int rt_surface_resource(cudaResourceDesc *resource, cudaSurfaceObject_t surface);
