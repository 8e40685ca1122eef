/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Products and extremes of elements that indices send to the same target. */

#include "config.h"

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"

#define MAXIMUM(a, b) ((a) != (a) || (a) > (b) ? (a) : (b)) /* NaN is kept */
#define MINIMUM(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
#define PRODUCT(a, b) ((a) * (b))

#define FOLD(name, T, C, op)                                                                    \
  static void name (char *dst, gint64 dst_stride, const char *src, gint64 src_stride, gint64 n) \
  {                                                                                             \
    gint64 i;                                                                                   \
                                                                                                \
    for (i = 0; i < n; i++, dst += dst_stride, src += src_stride)                               \
      {                                                                                         \
        const C a = *(const C *) (gconstpointer) src, b = *(const C *) (gconstpointer) dst;     \
                                                                                                \
        *(T *) (gpointer) dst = (T) op (a, b);                                                  \
      }                                                                                         \
  }
#define SHORT_FOLD(name, dtype, op)                                                             \
  static void name (char *dst, gint64 dst_stride, const char *src, gint64 src_stride, gint64 n) \
  {                                                                                             \
    GTorchCast load = gtorch_cpu_cast (GTORCH_DTYPE_FLOAT32, dtype);                            \
    GTorchCast store = gtorch_cpu_cast (dtype, GTORCH_DTYPE_FLOAT32);                           \
    float a, b;                                                                                 \
    gint64 i;                                                                                   \
                                                                                                \
    for (i = 0; i < n; i++, dst += dst_stride, src += src_stride)                               \
      {                                                                                         \
        load ((char *) &a, 4, src, 0, 1);                                                       \
        load ((char *) &b, 4, dst, 0, 1);                                                       \
        a = op (a, b);                                                                          \
        store (dst, 0, (const char *) &a, 4, 1);                                                \
      }                                                                                         \
  }
/* Products of integers wrap around, which is only defined for unsigned types. */
#define FOLDS(suffix, T, U)           \
  FOLD (prod_##suffix, U, U, PRODUCT) \
  FOLD (amax_##suffix, T, T, MAXIMUM) \
  FOLD (amin_##suffix, T, T, MINIMUM)
#define SHORT_FOLDS(suffix, dtype)           \
  SHORT_FOLD (prod_##suffix, dtype, PRODUCT) \
  SHORT_FOLD (amax_##suffix, dtype, MAXIMUM) \
  SHORT_FOLD (amin_##suffix, dtype, MINIMUM)

FOLDS (f32, gfloat, gfloat)
FOLDS (f64, gdouble, gdouble)
FOLDS (i8, gint8, guint8)
FOLDS (u8, guint8, guint8)
FOLDS (i16, gint16, guint16)
FOLDS (i32, gint32, guint32)
FOLDS (i64, gint64, guint64)
SHORT_FOLDS (f16, GTORCH_DTYPE_FLOAT16)
SHORT_FOLDS (bf16, GTORCH_DTYPE_BFLOAT16)

GTorchAdd
gtorch_cpu_fold (guint dtype, gint64 reduction)
{
  /* clang-format off */
  static const GTorchAdd folds[GTORCH_N_DTYPES][3] = {
    [GTORCH_DTYPE_FLOAT32]  = { prod_f32,  amax_f32,  amin_f32 },
    [GTORCH_DTYPE_FLOAT64]  = { prod_f64,  amax_f64,  amin_f64 },
    [GTORCH_DTYPE_FLOAT16]  = { prod_f16,  amax_f16,  amin_f16 },
    [GTORCH_DTYPE_BFLOAT16] = { prod_bf16, amax_bf16, amin_bf16 },
    [GTORCH_DTYPE_INT8]     = { prod_i8,   amax_i8,   amin_i8 },
    [GTORCH_DTYPE_UINT8]    = { prod_u8,   amax_u8,   amin_u8 },
    [GTORCH_DTYPE_INT16]    = { prod_i16,  amax_i16,  amin_i16 },
    [GTORCH_DTYPE_INT32]    = { prod_i32,  amax_i32,  amin_i32 },
    [GTORCH_DTYPE_INT64]    = { prod_i64,  amax_i64,  amin_i64 },
  };
  /* clang-format on */

  return folds[dtype][reduction == GTORCH_INDEX_REDUCTION_PROD
                          ? 0
                          : (reduction == GTORCH_INDEX_REDUCTION_AMAX ? 1 : 2)];
}
