/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the driver alone takes, in the primary context and the form that takes it least: the floor under what
 * calls cost the host. */

#include <dlfcn.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "gtorch/cuda/driver/gtorch-cuda-abi-private.h"

extern void *bench_driver;
extern CUdeviceptr bench_driver_memory; /* of 64 bytes */

#define WARM_UP 20000  /* microseconds */
#define SETTLE  300000 /* the same, of a GPU that takes all the power it may */

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

/* The context becomes that of this thread. */
void bench_driver_open (void);
/* The kernel. */
void bench_driver_load (void);
void bench_launch (CUstream stream);
/* Gets one element and waits awake for it: in a context of GTorch's the driver would sleep. */
void bench_item (CUstream stream);
