/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs of random calls: graphs, captures and user objects
 */

#include <stdint.h>

/* Inside the project, or as programs have it. */
#ifdef VGPU_CUDA_INTERNAL
#include "vgpu/cuda.h"
#else
#include <cuda.h>
#endif

/* Choices, in calls.c: a word is waited for and never 0 at the end, a place is memory
 * that may be written, and the function counts its calls. */
CUstream calls_stream(uint8_t x);
CUdeviceptr calls_word(uint8_t x);
CUdeviceptr calls_place(uint8_t x);
CUfunction calls_function(uint8_t x);
void calls_called_back(void *data);

void calls_graph_create(uint8_t a, uint8_t b);
void calls_graph_destroy(uint8_t a, uint8_t b);
void calls_node_add(uint8_t a, uint8_t b);
void calls_node_use(uint8_t a, uint8_t b);
void calls_condition_create(uint8_t a, uint8_t b);
void calls_conditional_add(uint8_t a, uint8_t b);
void calls_exec_create(uint8_t a, uint8_t b);
void calls_exec_launch(uint8_t a, uint8_t b);
void calls_capture_begin(uint8_t a, uint8_t b);
void calls_capture_end(uint8_t a, uint8_t b);
void calls_capture_ask(uint8_t a, uint8_t b);
void calls_user_create(uint8_t a, uint8_t b);
void calls_user_use(uint8_t a, uint8_t b);
