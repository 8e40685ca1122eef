/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <cblas.h>
#include <complex.h>
#include <glib.h>

G_BEGIN_DECLS

/* The functions of LAPACK that are used. OpenBLAS exports them by their Fortran names, also where it comes
 * without LAPACK's C headers. The lengths of texts, which Fortran passes after the arguments, are 1. */

#define GTORCH_LAPACK_TYPES(F) \
  F (s, float) F (d, double) F (c, float _Complex) F (z, double _Complex)

#define GTORCH_LAPACK_DECLARE(p, T)                                                        \
  void p##potrf_ (const char *uplo, const int *n, T *a, const int *lda, int *info);        \
  void p##getrf_ (const int *m, const int *n, T *a, const int *lda, int *ipiv, int *info); \
  void p##geqrf_ (const int *m, const int *n, T *a, const int *lda, T *tau, T *work,       \
                  const int *lwork, int *info);
GTORCH_LAPACK_TYPES (GTORCH_LAPACK_DECLARE)
#undef GTORCH_LAPACK_DECLARE

#define GTORCH_LAPACK_LDL(name, p, T)                                                              \
  void p##name##trf_ (const char *uplo, const int *n, T *a, const int *lda, int *ipiv, T *work,    \
                      const int *lwork, int *info, size_t);                                        \
  void p##name##trs_ (const char *uplo, const int *n, const int *nrhs, const T *a, const int *lda, \
                      const int *ipiv, T *b, const int *ldb, int *info, size_t);
GTORCH_LAPACK_LDL (sy, s, float)
GTORCH_LAPACK_LDL (sy, d, double)
GTORCH_LAPACK_LDL (sy, c, float _Complex)
GTORCH_LAPACK_LDL (sy, z, double _Complex)
GTORCH_LAPACK_LDL (he, c, float _Complex)
GTORCH_LAPACK_LDL (he, z, double _Complex)
#undef GTORCH_LAPACK_LDL

#define GTORCH_LAPACK_REFLECT(name, p, T)                                              \
  void p##name##gqr_ (const int *m, const int *n, const int *k, T *a, const int *lda,  \
                      const T *tau, T *work, const int *lwork, int *info);             \
  void p##name##mqr_ (const char *side, const char *trans, const int *m, const int *n, \
                      const int *k, const T *a, const int *lda, const T *tau, T *c,    \
                      const int *ldc, T *work, const int *lwork, int *info, size_t, size_t);
GTORCH_LAPACK_REFLECT (or, s, float)
GTORCH_LAPACK_REFLECT (or, d, double)
GTORCH_LAPACK_REFLECT (un, c, float _Complex)
GTORCH_LAPACK_REFLECT (un, z, double _Complex)
#undef GTORCH_LAPACK_REFLECT

#define GTORCH_LAPACK_REAL(p, T)                                                                   \
  void p##syevd_ (const char *jobz, const char *uplo, const int *n, T *a, const int *lda, T *w,    \
                  T *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t,     \
                  size_t);                                                                         \
  void p##gesdd_ (const char *jobz, const int *m, const int *n, T *a, const int *lda, T *s, T *u,  \
                  const int *ldu, T *vt, const int *ldvt, T *work, const int *lwork, int *iwork,   \
                  int *info, size_t);                                                              \
  void p##geev_ (const char *jobvl, const char *jobvr, const int *n, T *a, const int *lda, T *wr,  \
                 T *wi, T *vl, const int *ldvl, T *vr, const int *ldvr, T *work, const int *lwork, \
                 int *info, size_t, size_t);
GTORCH_LAPACK_REAL (s, float)
GTORCH_LAPACK_REAL (d, double)
#undef GTORCH_LAPACK_REAL

#define GTORCH_LAPACK_COMPLEX(p, T, R)                                                            \
  void p##heevd_ (const char *jobz, const char *uplo, const int *n, T *a, const int *lda, R *w,   \
                  T *work, const int *lwork, R *rwork, const int *lrwork, int *iwork,             \
                  const int *liwork, int *info, size_t, size_t);                                  \
  void p##gesdd_ (const char *jobz, const int *m, const int *n, T *a, const int *lda, R *s, T *u, \
                  const int *ldu, T *vt, const int *ldvt, T *work, const int *lwork, R *rwork,    \
                  int *iwork, int *info, size_t);                                                 \
  void p##geev_ (const char *jobvl, const char *jobvr, const int *n, T *a, const int *lda, T *w,  \
                 T *vl, const int *ldvl, T *vr, const int *ldvr, T *work, const int *lwork,       \
                 R *rwork, int *info, size_t, size_t);
GTORCH_LAPACK_COMPLEX (c, float _Complex, float)
GTORCH_LAPACK_COMPLEX (z, double _Complex, double)
#undef GTORCH_LAPACK_COMPLEX

/* Calls the functions of the four types with the same arguments. */
#define GTORCH_LAPACK_CALL(dtype, s, d, c, z, ...) \
  switch (dtype)                                   \
    {                                              \
    case GTORCH_DTYPE_FLOAT32:                     \
      s (__VA_ARGS__);                             \
      break;                                       \
    case GTORCH_DTYPE_FLOAT64:                     \
      d (__VA_ARGS__);                             \
      break;                                       \
    case GTORCH_DTYPE_COMPLEX64:                   \
      c (__VA_ARGS__);                             \
      break;                                       \
    default:                                       \
      z (__VA_ARGS__);                             \
    }

G_END_DECLS
