/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What copies of tensors leave, computed element by element and bit by bit
 *
 * Independent of exec/tensor.c: places of elements are found by division, swizzles are
 * the tables of PTX, and pixels are counted.
 */

#include <stdbool.h>
#include <stdint.h>

#include "exec/tensor-map.h"

/* As the last argument of tensor_transfer(). */
enum tensor_way {
	TENSOR_WAY_LOAD,
	TENSOR_WAY_STORE,
};

struct tensor_case {
	struct softgpu_tensor_map map;
	uint8_t *tensor; /* where the map's address is in this process */
	bool is_gather;
	int32_t at[5];
	uint16_t offsets[3]; /* of im2col::w: of the width alone */
	uint16_t halo;	     /* of im2col::w */
	uint32_t to;	     /* offset in shared memory */
};

uint32_t tensor_bits(unsigned int type);

/* Elements of a row of the box, and how many of those there are. */
uint32_t tensor_row_elements(const struct tensor_case *c);
uint64_t tensor_rows(const struct tensor_case *c);

/* Bytes of the box in shared memory, and those that a barrier counts. */
uint64_t tensor_shared_size(const struct tensor_case *c);
uint64_t tensor_data_size(const struct tensor_case *c);

/* Between the tensor and @shared, which is the block's shared memory. */
void tensor_transfer(const struct tensor_case *c, uint8_t *shared, enum tensor_way way);

/* Calls @each for each element of the box that is in the tensor, with its two places. */
void tensor_each(const struct tensor_case *c, uint8_t *shared, void *data,
	void (*each)(void *data, uint8_t *global, uint8_t *shared));
