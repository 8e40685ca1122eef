/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the stand-ins for cuBLAS and cuSOLVER share: they enqueue work that LAPACK does on the memory of
 * the fake driver. The work is kept for ever, as a graph may repeat it. */

#include <complex.h>
#include <string.h>

#include <cblas.h>
#include <glib.h>

#include "fake-cuda.h"
#include "gtorch/base/gtorch-dtype.h"
#include "gtorch/cpu/ops/gtorch-cpu-lapack.h"

/* The functions are declared in NVIDIA's headers. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT        __attribute__ ((visibility ("default")))
#define INVALID_VALUE 3
#define FAILED        6

typedef struct _Work Work;

struct _Work
{
  Work *next;
  void (*run) (const Work *self);
  int type; /* 0: float32, 1: float64, 4: complex64, 5: complex128 */
  int flags[4];
  gint64 sizes[6];
  const void *in[2];
  void *out[3];
  guchar alpha[16];
};

static Work *all_work;

static void
run_work (void *data)
{
  const Work *work = data;

  work->run (work);
}

static inline int
enqueue (void *stream, const Work *work)
{
  Work *kept = g_memdup2 (work, sizeof *work);
  static GMutex lock;

  g_mutex_lock (&lock);
  kept->next = all_work;
  all_work = kept;
  g_mutex_unlock (&lock);
  return fake_cuda_enqueue (stream, run_work, kept) == 0 ? 0 : FAILED;
}

static inline gsize
size_of (int type)
{
  return type == 0 ? 4 : type == 5 ? 16 : 8;
}

/* Returns the memory of a matrix, or aborts: the caller passed a wrong address or size. */
static inline gpointer
at (const void *address, gint64 n, gsize size)
{
  gpointer host = fake_cuda_at (address, (gsize) n * size);

  if (host == NULL)
    g_error ("a matrix of %" G_GINT64_FORMAT " elements at %p is not memory of the device", n,
             address);
  return host;
}

#define DECLARE(p, T)                                                                           \
  void p##getrs_ (const char *trans, const int *n, const int *nrhs, const T *a, const int *lda, \
                  const int *ipiv, T *b, const int *ldb, int *info);
GTORCH_LAPACK_TYPES (DECLARE)

/* Calls a function of LAPACK for the type of the work. */
#define CALL(type, name, ...)   \
  switch (type)                 \
    {                           \
    case 0:                     \
      s##name##_ (__VA_ARGS__); \
      break;                    \
    case 1:                     \
      d##name##_ (__VA_ARGS__); \
      break;                    \
    case 4:                     \
      c##name##_ (__VA_ARGS__); \
      break;                    \
    default:                    \
      z##name##_ (__VA_ARGS__); \
    }
