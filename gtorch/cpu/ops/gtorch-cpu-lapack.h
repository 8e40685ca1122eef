/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <cblas.h>
#include <complex.h>
#include <glib.h>

G_BEGIN_DECLS

/* The functions of LAPACK that are used. OpenBLAS exports them by their Fortran names, also where it comes
 * without LAPACK's C headers. */

#define GTORCH_LAPACK_TYPES(F) \
  F (s, float) F (d, double) F (c, float _Complex) F (z, double _Complex)

#define GTORCH_LAPACK_DECLARE(p, T)                                                 \
  void p##potrf_ (const char *uplo, const int *n, T *a, const int *lda, int *info); \
  void p##getrf_ (const int *m, const int *n, T *a, const int *lda, int *ipiv, int *info);
GTORCH_LAPACK_TYPES (GTORCH_LAPACK_DECLARE)
#undef GTORCH_LAPACK_DECLARE

G_END_DECLS
