/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Casts from every dtype to every dtype. */

#include "config.h"

#include <complex.h>
#ifdef __F16C__
#include <immintrin.h>
#endif
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-half.h"

typedef float _Complex Complex64;
typedef double _Complex Complex128;

/* Converts between 16-bit floats and floats by processor instructions; returns the number of elements
 * converted. NaNs keep their sign and stay NaN, but their bits can differ from those that the loops give. */
static inline gint64
convert_halves (gboolean to_half, gboolean from_half, void *dst, const void *src, gint64 n)
{
  gint64 i = 0;

#ifdef __F16C__
  guint16 *halves = (guint16 *) dst;
  float *floats = (float *) dst;

  if (from_half)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps (floats + i, _mm256_cvtph_ps (_mm_loadu_si128 (
                                        (const __m128i *) ((const guint16 *) src + i))));
  else if (to_half)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128 ((__m128i *) (halves + i),
                        _mm256_cvtps_ph (_mm256_loadu_ps ((const float *) src + i),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  return i;
}

#define IS(D, name) (strcmp (#D, #name) == 0)

/* name, storage type, type after loading, load, store (v has the source's loaded type) */
#define IDENTITY(x) (x)

#define CAST(D, DT, S, ST, LOAD, STORE)                                                       \
  static void cast_##D##_from_##S (char *dst, gint64 dst_stride, const char *src,             \
                                   gint64 src_stride, gint64 n)                               \
  {                                                                                           \
    if (dst_stride == sizeof (DT) && src_stride == sizeof (ST))                               \
      {                                                                                       \
        DT *d = (DT *) dst;                                                                   \
        const ST *s = (const ST *) src;                                                       \
        const gint64 done =                                                                   \
            convert_halves (IS (D, f16) && IS (S, f32), IS (D, f32) && IS (S, f16), d, s, n); \
        _Pragma ("omp simd") for (gint64 i = done; i < n; i++) d[i] = STORE (LOAD (s[i]));    \
      }                                                                                       \
    else                                                                                      \
      for (gint64 i = 0; i < n; i++)                                                          \
        *(DT *) (dst + i * dst_stride) = STORE (LOAD (*(const ST *) (src + i * src_stride))); \
  }

#define STORE_F32(v)  ((float) (v))
#define STORE_F64(v)  ((double) (v))
#define STORE_F16(v)  gt_half_from_float ((float) (v))
#define STORE_BF16(v) gt_bfloat16_from_float ((float) (v))
#define STORE_I8(v)   ((gint8) (gint64) (v))
#define STORE_U8(v)   ((guint8) (gint64) (v))
#define STORE_I16(v)  ((gint16) (gint64) (v))
#define STORE_I32(v)  ((gint32) (gint64) (v))
#define STORE_I64(v)  ((gint64) (v))
#define STORE_BOOL(v) ((guint8) ((v) != 0))
#define STORE_C64(v)  ((Complex64) (v))
#define STORE_C128(v) ((Complex128) (v))

#define CASTS_FROM(S, ST, LOAD)                 \
  CAST (f32, float, S, ST, LOAD, STORE_F32)     \
  CAST (f64, double, S, ST, LOAD, STORE_F64)    \
  CAST (f16, guint16, S, ST, LOAD, STORE_F16)   \
  CAST (bf16, guint16, S, ST, LOAD, STORE_BF16) \
  CAST (i8, gint8, S, ST, LOAD, STORE_I8)       \
  CAST (u8, guint8, S, ST, LOAD, STORE_U8)      \
  CAST (i16, gint16, S, ST, LOAD, STORE_I16)    \
  CAST (i32, gint32, S, ST, LOAD, STORE_I32)    \
  CAST (i64, gint64, S, ST, LOAD, STORE_I64)    \
  CAST (bool, guint8, S, ST, LOAD, STORE_BOOL)  \
  CAST (c64, Complex64, S, ST, LOAD, STORE_C64) \
  CAST (c128, Complex128, S, ST, LOAD, STORE_C128)

CASTS_FROM (f32, float, IDENTITY)
CASTS_FROM (f64, double, IDENTITY)
CASTS_FROM (f16, guint16, gt_half_to_float)
CASTS_FROM (bf16, guint16, gt_bfloat16_to_float)
CASTS_FROM (i8, gint8, IDENTITY)
CASTS_FROM (u8, guint8, IDENTITY)
CASTS_FROM (i16, gint16, IDENTITY)
CASTS_FROM (i32, gint32, IDENTITY)
CASTS_FROM (i64, gint64, IDENTITY)
CASTS_FROM (bool, guint8, IDENTITY)
CASTS_FROM (c64, Complex64, IDENTITY)
CASTS_FROM (c128, Complex128, IDENTITY)

#define FROM(D)                                                                                   \
  {                                                                                               \
    [GTORCH_DTYPE_FLOAT32] = cast_##D##_from_f32, [GTORCH_DTYPE_FLOAT64] = cast_##D##_from_f64,   \
    [GTORCH_DTYPE_FLOAT16] = cast_##D##_from_f16, [GTORCH_DTYPE_BFLOAT16] = cast_##D##_from_bf16, \
    [GTORCH_DTYPE_INT8] = cast_##D##_from_i8, [GTORCH_DTYPE_UINT8] = cast_##D##_from_u8,          \
    [GTORCH_DTYPE_INT16] = cast_##D##_from_i16, [GTORCH_DTYPE_INT32] = cast_##D##_from_i32,       \
    [GTORCH_DTYPE_INT64] = cast_##D##_from_i64, [GTORCH_DTYPE_BOOL] = cast_##D##_from_bool,       \
    [GTORCH_DTYPE_COMPLEX64] = cast_##D##_from_c64,                                               \
    [GTORCH_DTYPE_COMPLEX128] = cast_##D##_from_c128,                                             \
  }

const GTorchCast GTORCH_ISA_SYMBOL (gtorch_cast_table)[GTORCH_N_DTYPES][GTORCH_N_DTYPES] = {
  [GTORCH_DTYPE_FLOAT32] = FROM (f32),   [GTORCH_DTYPE_FLOAT64] = FROM (f64),
  [GTORCH_DTYPE_FLOAT16] = FROM (f16),   [GTORCH_DTYPE_BFLOAT16] = FROM (bf16),
  [GTORCH_DTYPE_INT8] = FROM (i8),       [GTORCH_DTYPE_UINT8] = FROM (u8),
  [GTORCH_DTYPE_INT16] = FROM (i16),     [GTORCH_DTYPE_INT32] = FROM (i32),
  [GTORCH_DTYPE_INT64] = FROM (i64),     [GTORCH_DTYPE_BOOL] = FROM (bool),
  [GTORCH_DTYPE_COMPLEX64] = FROM (c64), [GTORCH_DTYPE_COMPLEX128] = FROM (c128),
};
