/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for the part of cuBLAS that is used; see fake-solver.h. */

#include "fake-solver.h"

typedef struct
{
  void *stream;
} Handle;

EXPORT int
cublasGetProperty (int property, int *value)
{
  static const int version[] = { 13, 1, 0 };

  *value = version[property];
  return 0;
}

EXPORT int
cublasCreate_v2 (void **handle)
{
  static Handle handles[16];
  static int n;

  *handle = &handles[g_atomic_int_add (&n, 1) % 16];
  return 0;
}

EXPORT int
cublasSetStream_v2 (void *handle, void *stream)
{
  ((Handle *) handle)->stream = stream;
  return 0;
}

static void
solve_one (const Work *w, const void *of_a, const void *of_b)
{
  const gint64 m = w->sizes[0], n = w->sizes[1], lda = w->sizes[2], ldb = w->sizes[3];
  const gint64 order = w->flags[0] ? n : m;
  const gsize size = size_of (w->type);
  const void *a = at (of_a, lda * (order - 1) + order, size);
  void *b = at (of_b, ldb * (n - 1) + m, size);
  const enum CBLAS_SIDE side = w->flags[0] ? CblasRight : CblasLeft;
  const enum CBLAS_UPLO uplo = w->flags[1] ? CblasUpper : CblasLower;
  const enum CBLAS_TRANSPOSE operation = w->flags[2] == 0   ? CblasNoTrans
                                         : w->flags[2] == 1 ? CblasTrans
                                                            : CblasConjTrans;
  const enum CBLAS_DIAG diag = w->flags[3] ? CblasUnit : CblasNonUnit;
  float alpha_f;
  double alpha;

  memcpy (&alpha_f, w->alpha, sizeof alpha_f);
  memcpy (&alpha, w->alpha, sizeof alpha);
  switch (w->type)
    {
    case 0:
      cblas_strsm (CblasColMajor, side, uplo, operation, diag, m, n, alpha_f, a, lda, b, ldb);
      break;
    case 1:
      cblas_dtrsm (CblasColMajor, side, uplo, operation, diag, m, n, alpha, a, lda, b, ldb);
      break;
    case 4:
      cblas_ctrsm (CblasColMajor, side, uplo, operation, diag, m, n, w->alpha, a, lda, b, ldb);
      break;
    default:
      cblas_ztrsm (CblasColMajor, side, uplo, operation, diag, m, n, w->alpha, a, lda, b, ldb);
    }
}

static void
solve (const Work *w)
{
  solve_one (w, w->in[0], w->out[0]);
}

static int
trsm (int type, void *handle, int side, int uplo, int operation, int diag, gint64 m, gint64 n,
      const void *alpha, const void *a, gint64 lda, void *b, gint64 ldb)
{
  Work work = { .run = solve,
                .type = type,
                .flags = { side, uplo, operation, diag },
                .sizes = { m, n, lda, ldb },
                .in = { a },
                .out = { b } };

  if (m <= 0 || n <= 0 || lda < (side ? n : m) || ldb < m)
    return 7; /* CUBLAS_STATUS_INVALID_VALUE */
  memcpy (work.alpha, alpha, size_of (type));
  return enqueue (((Handle *) handle)->stream, &work);
}

#define TRSM(name, type)                                                                          \
  EXPORT int cublas##name##trsm_v2_64 (void *handle, int side, int uplo, int operation, int diag, \
                                       gint64 m, gint64 n, const void *alpha, const void *a,      \
                                       gint64 lda, void *b, gint64 ldb)                           \
  {                                                                                               \
    return trsm (type, handle, side, uplo, operation, diag, m, n, alpha, a, lda, b, ldb);         \
  }
TRSM (S, 0)
TRSM (D, 1)
TRSM (C, 4)
TRSM (Z, 5)

/* --- many matrices --- */

static void
solve_batched (const Work *w)
{
  const gint64 count = w->sizes[4];
  void **a = at (w->in[0], count, sizeof (void *)), **b = at (w->out[0], count, sizeof (void *));
  gint64 i;

  for (i = 0; i < count; i++)
    solve_one (w, a[i], b[i]);
}

static void
getrf_batched (const Work *w)
{
  const int n = w->sizes[0], lda = w->sizes[1];
  const gint64 count = w->sizes[2];
  void **matrices = at (w->out[0], count, sizeof (void *));
  int *info = at (w->out[1], count, sizeof (int));
  int *pivots = at (w->out[2], count * n, sizeof (int));
  gint64 i;

  for (i = 0; i < count; i++)
    {
      gpointer a = at (matrices[i], (gint64) lda * (n - 1) + n, size_of (w->type));

      CALL (w->type, getrf, &n, &n, a, &lda, pivots + i * n, &info[i]);
    }
}

static void
getrs_batched (const Work *w)
{
  const int n = w->sizes[0], columns = w->sizes[1], lda = w->sizes[2], ldb = w->sizes[3];
  const gint64 count = w->sizes[4];
  const char operation = "NTC"[w->flags[0]];
  void **a = at (w->in[0], count, sizeof (void *)), **b = at (w->out[0], count, sizeof (void *));
  const int *pivots = at (w->in[1], count * n, sizeof (int));
  gint64 i;
  int info;

  for (i = 0; i < count; i++)
    {
      gconstpointer of_a = at (a[i], (gint64) lda * (n - 1) + n, size_of (w->type));
      gpointer of_b = at (b[i], (gint64) ldb * (columns - 1) + n, size_of (w->type));

      CALL (w->type, getrs, &operation, &n, &columns, of_a, &lda, pivots + i * n, of_b, &ldb,
            &info);
    }
}

#define BATCHED(name, kind)                                                                        \
  EXPORT int cublas##name##trsmBatched (void *handle, int side, int uplo, int operation, int diag, \
                                        int m, int n, const void *alpha, void **a, int lda,        \
                                        void **b, int ldb, int count)                              \
  {                                                                                                \
    Work work = { .run = solve_batched,                                                            \
                  .type = kind,                                                                    \
                  .flags = { side, uplo, operation, diag },                                        \
                  .sizes = { m, n, lda, ldb, count },                                              \
                  .in = { a },                                                                     \
                  .out = { b } };                                                                  \
                                                                                                   \
    if (m <= 0 || n <= 0 || lda < (side ? n : m) || ldb < m || count <= 0)                         \
      return 7; /* CUBLAS_STATUS_INVALID_VALUE */                                                  \
    memcpy (work.alpha, alpha, size_of (kind));                                                    \
    return enqueue (((Handle *) handle)->stream, &work);                                           \
  }                                                                                                \
  EXPORT int cublas##name##getrfBatched (void *handle, int n, void **a, int lda, int *pivots,      \
                                         int *info, int count)                                     \
  {                                                                                                \
    const Work work = {                                                                            \
      .run = getrf_batched, .type = kind, .sizes = { n, lda, count }, .out = { a, info, pivots }   \
    };                                                                                             \
                                                                                                   \
    if (pivots == NULL)                                                                            \
      return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */                                                 \
    if (n <= 0 || lda < n || count <= 0)                                                           \
      return 7;                                                                                    \
    return enqueue (((Handle *) handle)->stream, &work);                                           \
  }                                                                                                \
  EXPORT int cublas##name##getrsBatched (void *handle, int operation, int n, int columns,          \
                                         void **a, int lda, const int *pivots, void **b, int ldb,  \
                                         int *info, int count)                                     \
  {                                                                                                \
    const Work work = { .run = getrs_batched,                                                      \
                        .type = kind,                                                              \
                        .flags = { operation },                                                    \
                        .sizes = { n, columns, lda, ldb, count },                                  \
                        .in = { a, pivots },                                                       \
                        .out = { b } };                                                            \
                                                                                                   \
    *info = 0;                                                                                     \
    if (n <= 0 || columns <= 0 || lda < n || ldb < n || count <= 0)                                \
      return 7;                                                                                    \
    return enqueue (((Handle *) handle)->stream, &work);                                           \
  }
BATCHED (S, 0)
BATCHED (D, 1)
BATCHED (C, 4)
BATCHED (Z, 5)
