/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for the part of cuSOLVER that is used; see fake-solver.h. It wants room on the device, and
 * checks that it gets it. */

#include "fake-solver.h"

#include <math.h>

#define ROOM 1000

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

static void
potrf_batched (const Work *w)
{
  const gint64 n = w->sizes[0], count = w->sizes[2];
  void **matrices = at (w->out[0], count, sizeof (void *));
  int *info = at (w->out[1], count, sizeof (int));
  const char uplo = w->flags[0] ? 'U' : 'L';
  const int order = n, lda = w->sizes[1];
  gint64 i, k;

  for (i = 0; i < count; i++)
    {
      gpointer a = at (matrices[i], lda * (n - 1) + n, size_of (w->type));

      CALL (w->type, potrf, &uplo, &order, a, &lda, &info[i]);
      for (k = 0; info[i] == 0 && k < n; k++)
        if (is_nan (w->type, a, k * ((gint64) lda + 1)))
          info[i] = k + 1;
    }
}

#define POTRF_BATCHED(name, kind)                                                              \
  EXPORT int cusolverDn##name##potrfBatched (void *handle, int uplo, int n, void **a, int lda, \
                                             int *info, int count)                             \
  {                                                                                            \
    const Work work = { .run = potrf_batched,                                                  \
                        .type = kind,                                                          \
                        .flags = { uplo },                                                     \
                        .sizes = { n, lda, count },                                            \
                        .out = { a, info } };                                                  \
                                                                                               \
    if (n <= 0 || lda < n || count <= 0)                                                       \
      return INVALID_VALUE;                                                                    \
    return enqueue (((Handle *) handle)->stream, &work);                                       \
  }
POTRF_BATCHED (S, 0)
POTRF_BATCHED (D, 1)
POTRF_BATCHED (C, 4)
POTRF_BATCHED (Z, 5)

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

/* --- QR --- */

/* Asks LAPACK for the work that it needs, and calls it. */
#define CALL_WITH_WORK(type, s, d, c, z, ...)                                        \
  {                                                                                  \
    double _Complex size[2] = { 0 };                                                 \
    gpointer work = size;                                                            \
    int lwork = -1;                                                                  \
                                                                                     \
    GTORCH_LAPACK_CALL (lapack_dtype (type), s, d, c, z, __VA_ARGS__);               \
    lwork = (int) (type == 0 || type == 4 ? *(float *) work : *(double *) work) + 1; \
    /* OpenBLAS 0.3.21 with AVX-512 reads behind the work of some functions */       \
    work = g_malloc ((gsize) lwork * sizeof (double _Complex) + 65536);              \
    GTORCH_LAPACK_CALL (lapack_dtype (type), s, d, c, z, __VA_ARGS__);               \
    g_free (work);                                                                   \
  }

static guint
lapack_dtype (int type)
{
  return type == 0   ? GTORCH_DTYPE_FLOAT32
         : type == 1 ? GTORCH_DTYPE_FLOAT64
         : type == 4 ? GTORCH_DTYPE_COMPLEX64
                     : GTORCH_DTYPE_COMPLEX128;
}

EXPORT int
cusolverDnXgeqrf_bufferSize (void *handle, void *params, gint64 m, gint64 n, int type,
                             const void *a, gint64 lda, int type_tau, const void *tau, int compute,
                             size_t *device, size_t *host)
{
  return room (device, host);
}

static void
geqrf (const Work *w)
{
  const int m = w->sizes[0], n = w->sizes[1], lda = w->sizes[2];
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + m, size_of (w->type));
  gpointer tau = at (w->in[0], MIN (m, n), size_of (w->type));
  int *info = at (w->out[1], 1, sizeof (int));

  at (w->out[2], ROOM, 1);
  CALL_WITH_WORK (w->type, sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_, &m, &n, a, &lda, tau, work, &lwork,
                  info);
}

EXPORT int
cusolverDnXgeqrf (void *handle, void *params, gint64 m, gint64 n, int type, void *a, gint64 lda,
                  int type_tau, void *tau, int compute, void *on_device, size_t device,
                  void *on_host, size_t host, int *info)
{
  const Work work = {
    .run = geqrf, .type = type, .sizes = { m, n, lda }, .in = { tau }, .out = { a, info, on_device }
  };

  if (m <= 0 || n <= 0 || lda < m || device < ROOM || type != compute || type != type_tau)
    return INVALID_VALUE;
  return enqueue (((Handle *) handle)->stream, &work);
}

static void
gqr (const Work *w)
{
  const int m = w->sizes[0], n = w->sizes[1], k = w->sizes[2], lda = w->sizes[3];
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + m, size_of (w->type));
  gconstpointer tau = k > 0 ? at (w->in[0], k, size_of (w->type)) : NULL;
  int *info = at (w->out[1], 1, sizeof (int));

  at (w->out[2], ROOM, size_of (w->type));
  CALL_WITH_WORK (w->type, sorgqr_, dorgqr_, cungqr_, zungqr_, &m, &n, &k, a, &lda, tau, work,
                  &lwork, info);
}

static void
mqr (const Work *w)
{
  const int m = w->sizes[0], n = w->sizes[1], k = w->sizes[2], lda = w->sizes[3];
  const int ldc = w->sizes[4];
  const char side = w->flags[0] ? 'R' : 'L', operation = "NTC"[w->flags[1]];
  const int of_a = w->flags[0] ? n : m;
  gconstpointer a = at (w->in[0], (gint64) lda * (k - 1) + of_a, size_of (w->type));
  gconstpointer tau = at (w->in[1], k, size_of (w->type));
  gpointer c = at (w->out[0], (gint64) ldc * (n - 1) + m, size_of (w->type));
  int *info = at (w->out[1], 1, sizeof (int));

  at (w->out[2], ROOM, size_of (w->type));
  CALL_WITH_WORK (w->type, sormqr_, dormqr_, cunmqr_, zunmqr_, &side, &operation, &m, &n, &k, a,
                  &lda, tau, c, &ldc, work, &lwork, info, 1, 1);
}

/* The functions of the four types differ in their names only. */
#define REFLECT(name, kind)                                                                        \
  EXPORT int cusolverDn##name##gqr_bufferSize (void *handle, int m, int n, int k, const void *a,   \
                                               int lda, const void *tau, int *elements)            \
  {                                                                                                \
    *elements = ROOM;                                                                              \
    return 0;                                                                                      \
  }                                                                                                \
  EXPORT int cusolverDn##name##gqr (void *handle, int m, int n, int k, void *a, int lda,           \
                                    const void *tau, void *room, int elements, int *info)          \
  {                                                                                                \
    const Work work = {                                                                            \
      .run = gqr, .type = kind, .sizes = { m, n, k, lda }, .in = { tau }, .out = { a, info, room } \
    };                                                                                             \
                                                                                                   \
    if (n <= 0 || m < n || k > n || lda < m || elements < ROOM)                                    \
      return INVALID_VALUE;                                                                        \
    return enqueue (((Handle *) handle)->stream, &work);                                           \
  }                                                                                                \
  EXPORT int cusolverDn##name##mqr_bufferSize (void *handle, int side, int operation, int m,       \
                                               int n, int k, const void *a, int lda,               \
                                               const void *tau, const void *c, int ldc,            \
                                               int *elements)                                      \
  {                                                                                                \
    *elements = ROOM;                                                                              \
    return 0;                                                                                      \
  }                                                                                                \
  EXPORT int cusolverDn##name##mqr (void *handle, int side, int operation, int m, int n, int k,    \
                                    const void *a, int lda, const void *tau, void *c, int ldc,     \
                                    void *room, int elements, int *info)                           \
  {                                                                                                \
    const Work work = { .run = mqr,                                                                \
                        .type = kind,                                                              \
                        .flags = { side, operation },                                              \
                        .sizes = { m, n, k, lda, ldc },                                            \
                        .in = { a, tau },                                                          \
                        .out = { c, info, room } };                                                \
                                                                                                   \
    if (m <= 0 || n <= 0 || k <= 0 || k > (side ? n : m) || lda < (side ? n : m) || ldc < m        \
        || elements < ROOM)                                                                        \
      return INVALID_VALUE;                                                                        \
    return enqueue (((Handle *) handle)->stream, &work);                                           \
  }
REFLECT (Sor, 0)
REFLECT (Dor, 1)
REFLECT (Cun, 4)
REFLECT (Zun, 5)

/* --- symmetric matrices --- */

static void
sytrf (const Work *w)
{
  const int n = w->sizes[0], lda = w->sizes[1];
  const char uplo = w->flags[0] ? 'U' : 'L';
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + n, size_of (w->type));
  int *pivots = at (w->in[0], n, sizeof (int)), *info = at (w->out[1], 1, sizeof (int));

  at (w->out[2], ROOM, size_of (w->type));
  CALL_WITH_WORK (w->type, ssytrf_, dsytrf_, csytrf_, zsytrf_, &uplo, &n, a, &lda, pivots, work,
                  &lwork, info, 1);
}

#define SYMMETRIC(name, kind)                                                                     \
  EXPORT int cusolverDn##name##_bufferSize (void *handle, int n, void *a, int lda, int *elements) \
  {                                                                                               \
    *elements = ROOM;                                                                             \
    return 0;                                                                                     \
  }                                                                                               \
  EXPORT int cusolverDn##name (void *handle, int uplo, int n, void *a, int lda, int *pivots,      \
                               void *room, int elements, int *info)                               \
  {                                                                                               \
    const Work work = { .run = sytrf,                                                             \
                        .type = kind,                                                             \
                        .flags = { uplo },                                                        \
                        .sizes = { n, lda },                                                      \
                        .in = { pivots },                                                         \
                        .out = { a, info, room } };                                               \
                                                                                                  \
    if (n <= 0 || lda < n || elements < ROOM)                                                     \
      return INVALID_VALUE;                                                                       \
    return enqueue (((Handle *) handle)->stream, &work);                                          \
  }
SYMMETRIC (Ssytrf, 0)
SYMMETRIC (Dsytrf, 1)
SYMMETRIC (Csytrf, 4)
SYMMETRIC (Zsytrf, 5)

/* --- eigenvalues and singular values --- */

EXPORT int
cusolverDnXsyevd_bufferSize (void *handle, void *params, int vectors, int uplo, gint64 n, int type,
                             const void *a, gint64 lda, int type_w, const void *w, int compute,
                             size_t *device, size_t *host)
{
  return room (device, host);
}

static void
syevd (const Work *w)
{
  const int n = w->sizes[0], lda = w->sizes[1], lwork = 1 + 6 * n + 2 * n * n, liwork = 3 + 5 * n;
  const int lrwork = 1 + 5 * n + 2 * n * n;
  const char job = w->flags[0] ? 'V' : 'N', uplo = w->flags[1] ? 'U' : 'L';
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + n, size_of (w->type));
  gpointer values = at (w->in[0], n, w->type == 0 || w->type == 4 ? 4 : 8);
  int *info = at (w->out[1], 1, sizeof (int));
  gpointer work = g_malloc ((gsize) lwork * 16), rwork = g_malloc ((gsize) lrwork * 8);
  int *iwork = g_new (int, liwork);

  at (w->out[2], ROOM, 1);
  switch (w->type)
    {
    case 0:
      ssyevd_ (&job, &uplo, &n, a, &lda, values, work, &lwork, iwork, &liwork, info, 1, 1);
      break;
    case 1:
      dsyevd_ (&job, &uplo, &n, a, &lda, values, work, &lwork, iwork, &liwork, info, 1, 1);
      break;
    case 4:
      cheevd_ (&job, &uplo, &n, a, &lda, values, work, &lwork, rwork, &lrwork, iwork, &liwork, info,
               1, 1);
      break;
    default:
      zheevd_ (&job, &uplo, &n, a, &lda, values, work, &lwork, rwork, &lrwork, iwork, &liwork, info,
               1, 1);
    }
  g_free (work);
  g_free (rwork);
  g_free (iwork);
}

EXPORT int
cusolverDnXsyevd (void *handle, void *params, int vectors, int uplo, gint64 n, int type, void *a,
                  gint64 lda, int type_w, void *w, int compute, void *on_device, size_t device,
                  void *on_host, size_t host, int *info)
{
  const Work work = { .run = syevd,
                      .type = type,
                      .flags = { vectors, uplo },
                      .sizes = { n, lda },
                      .in = { w },
                      .out = { a, info, on_device } };

  if (n <= 0 || lda < n || device < ROOM || type != compute || type_w != type % 4)
    return INVALID_VALUE;
  return enqueue (((Handle *) handle)->stream, &work);
}

EXPORT int
cusolverDnXgesvd_bufferSize (void *handle, void *params, signed char job_u, signed char job_vt,
                             gint64 m, gint64 n, int type, const void *a, gint64 lda, int type_s,
                             const void *s, int type_u, const void *u, gint64 ldu, int type_vt,
                             const void *vt, gint64 ldvt, int compute, size_t *device, size_t *host)
{
  return room (device, host);
}

static void
gesvd (const Work *w)
{
  const int m = w->sizes[0], n = w->sizes[1], lda = w->sizes[2], ldu = w->sizes[3];
  const int ldvt = w->sizes[4], lwork = 8 * n * n + 10 * n + 4 * m + 4 * m * n;
  const char job = w->flags[0];
  gpointer a = at (w->out[0], (gint64) lda * (n - 1) + m, size_of (w->type));
  gpointer s = at (w->in[0], n, w->type == 0 || w->type == 4 ? 4 : 8);
  gpointer u =
      job != 'N' ? at (w->out[2], (gint64) ldu * (job == 'A' ? m : n), size_of (w->type)) : NULL;
  gpointer vt = job != 'N' ? at (w->in[1], (gint64) ldvt * n, size_of (w->type)) : NULL;
  int *info = at (w->out[1], 1, sizeof (int)), *iwork = g_new (int, 8 * n);
  gpointer work = g_malloc ((gsize) lwork * 16);
  gpointer rwork = g_malloc (((gsize) 5 * n * n + 2 * m * n + 7 * n + n) * 8 + 64);

  switch (w->type)
    {
    case 0:
      sgesdd_ (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, info, 1);
      break;
    case 1:
      dgesdd_ (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, info, 1);
      break;
    case 4:
      cgesdd_ (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, info, 1);
      break;
    default:
      zgesdd_ (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, rwork, iwork, info, 1);
    }
  g_free (work);
  g_free (rwork);
  g_free (iwork);
}

EXPORT int
cusolverDnXgesvd (void *handle, void *params, signed char job_u, signed char job_vt, gint64 m,
                  gint64 n, int type, void *a, gint64 lda, int type_s, void *s, int type_u, void *u,
                  gint64 ldu, int type_vt, void *vt, gint64 ldvt, int compute, void *on_device,
                  size_t device, void *on_host, size_t host, int *info)
{
  const Work work = { .run = gesvd,
                      .type = type,
                      .flags = { job_u },
                      .sizes = { m, n, lda, ldu, ldvt },
                      .in = { s, vt },
                      .out = { a, info, u } };

  if (m < n || n <= 0 || lda < m || device < ROOM || type != compute || type_s != type % 4
      || job_u != job_vt || (job_u != 'N' && (ldu < m || ldvt < n)))
    return INVALID_VALUE;
  return enqueue (((Handle *) handle)->stream, &work);
}
