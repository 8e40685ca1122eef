/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for the part of cuSOLVER that is used; see fake-solver.h. It wants room on the device, and
 * checks that it gets it. */

#include "fake-solver.h"

#include <math.h>

#include "gtorch/cpu/ops/gtorch-cpu-lapack.h"

#define ROOM 1000

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

typedef struct
{
  void *stream;
} Handle;

EXPORT int
cusolverGetVersion (int *version)
{
  *version = 12004;
  return 0;
}

EXPORT int
cusolverDnCreate (void **handle)
{
  static Handle handles[16];
  static int n;

  *handle = &handles[g_atomic_int_add (&n, 1) % 16];
  return 0;
}

EXPORT int
cusolverDnSetStream (void *handle, void *stream)
{
  ((Handle *) handle)->stream = stream;
  return 0;
}

EXPORT int
cusolverDnCreateParams (void **params)
{
  static int the_one;

  *params = &the_one;
  return 0;
}

static int
room (size_t *device, size_t *host)
{
  *device = ROOM;
  *host = 0;
  return 0;
}

/* --- Cholesky --- */

EXPORT int
cusolverDnXpotrf_bufferSize (void *handle, void *params, int uplo, gint64 n, int type,
                             const void *a, gint64 lda, int compute, size_t *device, size_t *host)
{
  return room (device, host);
}

static int
is_nan (int type, const void *a, gint64 i)
{
  const gsize size = size_of (type);
  const char *element = (const char *) a + i * size;

  return type == 0 || type == 4 ? isnan (*(const float *) element)
                                : isnan (*(const double *) element);
}

static void
potrf (const Work *w)
{
  const int n = w->sizes[0], lda = w->sizes[1];
  const char uplo = w->flags[0] ? 'U' : 'L';
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + n, size_of (w->type));
  int *info = at (w->out[1], 1, sizeof (int));
  int i;

  at (w->out[2], ROOM, 1);
  CALL (w->type, potrf, &uplo, &n, a, &lda, info);
  /* as LAPACK of the reference does, NaN counts as not positive */
  for (i = 0; *info == 0 && i < n; i++)
    if (is_nan (w->type, a, i * ((gint64) lda + 1)))
      *info = i + 1;
}

EXPORT int
cusolverDnXpotrf (void *handle, void *params, int uplo, gint64 n, int type, void *a, gint64 lda,
                  int compute, void *on_device, size_t device, void *on_host, size_t host,
                  int *info)
{
  const Work work = { .run = potrf,
                      .type = type,
                      .flags = { uplo },
                      .sizes = { n, lda },
                      .out = { a, info, on_device } };

  if (n <= 0 || lda < n || device < ROOM || type != compute)
    return INVALID_VALUE;
  return enqueue (((Handle *) handle)->stream, &work);
}

/* --- LU --- */

EXPORT int
cusolverDnXgetrf_bufferSize (void *handle, void *params, gint64 m, gint64 n, int type,
                             const void *a, gint64 lda, int compute, size_t *device, size_t *host)
{
  return room (device, host);
}

static void
getrf (const Work *w)
{
  const int m = w->sizes[0], n = w->sizes[1], lda = w->sizes[2], k = MIN (m, n);
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + m, size_of (w->type));
  gint64 *pivots = at (w->in[0], k, sizeof (gint64));
  int *info = at (w->out[1], 1, sizeof (int));
  int *found = g_new (int, k);
  int i;

  at (w->out[2], ROOM, 1);
  CALL (w->type, getrf, &m, &n, a, &lda, found, info);
  for (i = 0; i < k; i++)
    pivots[i] = found[i];
  g_free (found);
}

EXPORT int
cusolverDnXgetrf (void *handle, void *params, gint64 m, gint64 n, int type, void *a, gint64 lda,
                  gint64 *pivots, int compute, void *on_device, size_t device, void *on_host,
                  size_t host, int *info)
{
  const Work work = { .run = getrf,
                      .type = type,
                      .sizes = { m, n, lda },
                      .in = { pivots },
                      .out = { a, info, on_device } };

  if (pivots == NULL)
    return 9; /* CUSOLVER_STATUS_NOT_SUPPORTED */
  if (m <= 0 || n <= 0 || lda < m || device < ROOM || type != compute)
    return INVALID_VALUE;
  return enqueue (((Handle *) handle)->stream, &work);
}

static void
getrs (const Work *w)
{
  const int n = w->sizes[0], columns = w->sizes[1], lda = w->sizes[2], ldb = w->sizes[3];
  const char operation = "NTC"[w->flags[0]];
  gpointer a = at (w->in[0], (gint64) lda * (n - 1) + n, size_of (w->type));
  gpointer b = at (w->out[0], (gint64) ldb * (columns - 1) + n, size_of (w->type));
  const gint64 *pivots = at (w->in[1], n, sizeof (gint64));
  int *info = at (w->out[1], 1, sizeof (int));
  int *narrow = g_new (int, n);
  int i;

  for (i = 0; i < n; i++)
    narrow[i] = pivots[i];
  CALL (w->type, getrs, &operation, &n, &columns, a, &lda, narrow, b, &ldb, info);
  g_free (narrow);
}

EXPORT int
cusolverDnXgetrs (void *handle, void *params, int operation, gint64 n, gint64 n_columns, int type_a,
                  const void *a, gint64 lda, const gint64 *pivots, int type_b, void *b, gint64 ldb,
                  int *info)
{
  const Work work = { .run = getrs,
                      .type = type_a,
                      .flags = { operation },
                      .sizes = { n, n_columns, lda, ldb },
                      .in = { a, pivots },
                      .out = { b, info } };

  if (n <= 0 || n_columns <= 0 || lda < n || ldb < n || type_a != type_b)
    return INVALID_VALUE;
  return enqueue (((Handle *) handle)->stream, &work);
}
