/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-philox.h"

/* The same numbers on every processor: a fused multiply-add would round differently. */
#pragma GCC optimize("fp-contract=off")

#define LANES 16

void
GTORCH_ISA_SYMBOL (gtorch_philox_words) (guint64 seed, guint64 counter, guint64 block,
                                         guint n_blocks, guint32 *words)
{
  guint first, i, j;

  for (first = 0; first < n_blocks; first += LANES)
    {
      guint32 c0[LANES], c1[LANES], c2[LANES], c3[LANES];
      guint32 k0 = (guint32) seed, k1 = (guint32) (seed >> 32);

      for (j = 0; j < LANES; j++)
        {
          c0[j] = (guint32) (block + first + j);
          c1[j] = (guint32) ((block + first + j) >> 32);
          c2[j] = (guint32) counter;
          c3[j] = (guint32) (counter >> 32);
        }
      for (i = 0; i < 10; i++)
        {
#pragma omp simd
          for (j = 0; j < LANES; j++)
            {
              guint64 p0 = (guint64) 0xD2511F53u * c0[j];
              guint64 p1 = (guint64) 0xCD9E8D57u * c2[j];

              c0[j] = (guint32) (p1 >> 32) ^ c1[j] ^ k0;
              c1[j] = (guint32) p1;
              c2[j] = (guint32) (p0 >> 32) ^ c3[j] ^ k1;
              c3[j] = (guint32) p0;
            }
          k0 += 0x9E3779B9u;
          k1 += 0xBB67AE85u;
        }
      for (j = 0; j < LANES; j++)
        {
          words[4 * (first + j)] = c0[j];
          words[4 * (first + j) + 1] = c1[j];
          words[4 * (first + j) + 2] = c2[j];
          words[4 * (first + j) + 3] = c3[j];
        }
    }
}

void
GTORCH_ISA_SYMBOL (gtorch_philox_uniform_f32) (const guint32 *words, guint bits, gfloat *result)
{
  const gfloat unit = 1.0f / (gfloat) (1u << bits);
  const guint shift = 32 - bits;
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK; i++)
    result[i] = (gfloat) (gint32) (words[i] >> shift) * unit;
}

void
GTORCH_ISA_SYMBOL (gtorch_philox_uniform_f64) (const guint32 *words, gdouble *result)
{
  guint i;

  for (i = 0; i < GTORCH_PHILOX_CHUNK; i++)
    result[i] = (gdouble) ((((guint64) words[2 * i + 1] << 32) | words[2 * i]) >> 11) * 0x1p-53;
}

/* (0, 1], so that its logarithm is finite. */
static inline gfloat
positive (guint32 word)
{
  return (gfloat) (gint32) (word >> 1) * 0x1p-31f + 0x1p-32f;
}

/* Of (0, 1], by the series of the inverse hyperbolic tangent around 1. */
static inline gfloat
logarithm (gfloat x)
{
  union
  {
    gfloat f;
    gint32 i;
  } bits = { x };
  gint32 exponent;
  gfloat s, z;

  exponent = (bits.i - 0x3f3504f3) >> 23; /* the mantissa goes from sqrt (1/2) to sqrt (2) */
  bits.i -= exponent * (1 << 23);
  s = (bits.f - 1.0f) / (bits.f + 1.0f);
  z = s * s;
  return 2.0f * s * (1.0f + z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9)))))
         + (gfloat) exponent * 0.69314718f;
}

void
GTORCH_ISA_SYMBOL (gtorch_philox_normal_f32) (const guint32 *words, gfloat *result)
{
  gfloat radius[GTORCH_PHILOX_CHUNK / 2], sine[GTORCH_PHILOX_CHUNK / 2],
      cosine[GTORCH_PHILOX_CHUNK / 2];
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i++)
    {
      gfloat turn = (gfloat) (gint32) (words[2 * i + 1] >> 8) * 0x1p-24f;
      gint32 quarter = (gint32) (turn * 4.0f + 0.5f);
      gfloat x = (turn - (gfloat) quarter * 0.25f) * 6.2831853f;
      gfloat z = x * x;
      gfloat s = x * (1.0f - z * (1.0f / 6 - z * (1.0f / 120 - z * (1.0f / 5040 - z / 362880))));
      gfloat c =
          1.0f - z * (0.5f - z * (1.0f / 24 - z * (1.0f / 720 - z * (1.0f / 40320 - z / 3628800))));
      gfloat swapped_s = quarter & 1 ? c : s, swapped_c = quarter & 1 ? s : c;

      radius[i] = sqrtf (-2.0f * logarithm (positive (words[2 * i])));
      sine[i] = quarter & 2 ? -swapped_s : swapped_s;
      cosine[i] = (quarter + 1) & 2 ? -swapped_c : swapped_c;
    }
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i++)
    {
      result[2 * i] = radius[i] * cosine[i];
      result[2 * i + 1] = radius[i] * sine[i];
    }
}

void
GTORCH_ISA_SYMBOL (gtorch_philox_exponential_f32) (const guint32 *words, gfloat *result)
{
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK; i++)
    {
      gfloat value = -logarithm (positive (words[i]));

      result[i] = value > 0.0f ? value : 0x1p-33f;
    }
}

void
GTORCH_ISA_SYMBOL (gtorch_philox_affine_f32) (gfloat *values, gfloat scale, gfloat shift)
{
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK; i++)
    values[i] = values[i] * scale + shift;
}
