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
solve (const Work *w)
{
  const gint64 m = w->sizes[0], n = w->sizes[1], lda = w->sizes[2], ldb = w->sizes[3];
  const gint64 order = w->flags[0] ? n : m;
  const gsize size = size_of (w->type);
  const void *a = at (w->in[0], lda * (order - 1) + order, size);
  void *b = at (w->out[0], ldb * (n - 1) + m, size);
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
