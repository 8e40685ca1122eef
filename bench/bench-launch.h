/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The time of the driver alone, in the primary context and in the fastest form: the lower bound of the
 * host's time for a call. */

#include <dlfcn.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "gtorch/cuda/driver/gtorch-cuda-abi-private.h"

extern void *bench_driver;
extern CUdeviceptr bench_driver_memory; /* of 64 bytes */

#define WARM_UP 20000  /* in microseconds */
#define SETTLE  300000 /* in microseconds, for a GPU at its power limit */

#define CALL(name, types, ...)                                                   \
  do                                                                             \
    {                                                                            \
      static CUresult (*function) types;                                         \
      CUresult result;                                                           \
                                                                                 \
      if (function == NULL)                                                      \
        *(void **) &function = dlsym (bench_driver, name);                       \
      result = function != NULL ? function (__VA_ARGS__) : CUDA_ERROR_NOT_FOUND; \
      if (result != CUDA_SUCCESS)                                                \
        {                                                                        \
          fprintf (stderr, "%s: error %d\n", name, result);                      \
          exit (1);                                                              \
        }                                                                        \
    }                                                                            \
  while (0)

/* Makes the context current in this thread. */
void bench_driver_open (void);
/* Loads the kernel. */
void bench_driver_load (void);
void bench_launch (CUstream stream);
/* Reads one element and spins until it arrives: in GTorch's context the driver would sleep. */
void bench_item (CUstream stream);
