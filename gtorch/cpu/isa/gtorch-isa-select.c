/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Element-wise selection, and searching for an element. */

#include "config.h"

#include "cpu/ops/gtorch-cpu-select.h"

#define SELECT(name, T)                                                                          \
  void GTORCH_ISA_SYMBOL (gtorch_select_##name) (void *to, const guint8 *which, const void *yes, \
                                                 const void *no, gint64 n)                       \
  {                                                                                              \
    T *o = to;                                                                                   \
    const T *a = yes, *b = no;                                                                   \
                                                                                                 \
    _Pragma ("omp simd") for (gint64 i = 0; i < n; i++)                                          \
    {                                                                                            \
      const T x = a[i], y = b[i]; /* reads both: no branch */                                    \
                                                                                                 \
      o[i] = which[i] ? x : y;                                                                   \
    }                                                                                            \
  }
SELECT (1, guint8)
SELECT (2, guint16)
SELECT (4, guint32)
SELECT (8, guint64)

#define CHUNK 64

#define FIND(name, T)                                                                            \
  gint64 GTORCH_ISA_SYMBOL (gtorch_find_##name) (const void *data, gint64 n, const void *wanted) \
  {                                                                                              \
    const T *x = data;                                                                           \
    const T v = *(const T *) wanted;                                                             \
    gint64 i;                                                                                    \
                                                                                                 \
    for (i = 0; i + CHUNK <= n; i += CHUNK)                                                      \
      {                                                                                          \
        int any = 0;                                                                             \
                                                                                                 \
        _Pragma ("omp simd reduction(|:any)") for (int l = 0; l < CHUNK; l++) any |=             \
            (x[i + l] == v) | (x[i + l] != x[i + l]);                                            \
        if (any)                                                                                 \
          break;                                                                                 \
      }                                                                                          \
    while (i < n && x[i] != v && x[i] == x[i])                                                   \
      i++;                                                                                       \
    return i;                                                                                    \
  }
FIND (f32, float)
FIND (f64, double)
FIND (i32, gint32)
FIND (i64, gint64)
FIND (u8, guint8)
