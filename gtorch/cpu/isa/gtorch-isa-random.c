/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-philox.h"

/* The same numbers on every processor: multiplications and additions are fused where it says so, and nowhere
 * else. Where the processor cannot do it at once, the library of C does it exactly. */
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

static inline gfloat
fused (gfloat a, gfloat b, gfloat c)
{
  return __builtin_fmaf (a, b, c);
}

/* -2 log (x) for x in (0, 1]. The coefficients are those of log (1 + f) / f for which the greatest relative
 * error is least, 1.7e-7. */
static inline gfloat
minus_two_logarithms (gfloat x)
{
  union
  {
    gfloat f;
    gint32 i;
  } bits = { x };
  gint32 exponent = (bits.i - 0x3f3504f3) & ~0x7fffff; /* 2^23 of it is 1 */
  gfloat f, y;

  bits.i -= exponent; /* from sqrt (1/2) to sqrt (2) */
  f = bits.f - 1.0f;
  y = fused (0.20213787f, f, -0.3244516f);
  y = fused (y, f, 0.34501660f);
  y = fused (y, f, -0.39800331f);
  y = fused (y, f, 0.49939818f);
  y = fused (y, f, -0.66670118f);
  y = fused (y, f, 1.0000073f);
  y = fused (y, f, -1.9999999f);
  return fused (y, f, (gfloat) exponent * -1.6525917e-7f);
}

/* A point of the plane: its distance from the first word, its direction from the second. That is a quarter of
 * a circle, which the lowest bit turns by half and the next one reflects. */
void
GTORCH_ISA_SYMBOL (gtorch_philox_normal_f32) (const guint32 *words, gfloat *result)
{
  gfloat first[GTORCH_PHILOX_CHUNK / 2], second[GTORCH_PHILOX_CHUNK / 2];
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i++)
    {
      const guint32 word = words[2 * i + 1];
      const gfloat x = (gfloat) (gint32) word * 3.6572952e-10f, z = x * x;
      const gfloat s =
          fused (x * z, fused (fused (-1.9515283e-4f, z, 8.3321608e-3f), z, -0.16666655f), x);
      const gfloat c =
          fused (fused (fused (-1.3591854e-3f, z, 0.041655777f), z, -0.49999885f), z, 1.0f);
      union
      {
        gfloat f;
        guint32 i;
      } radius = { sqrtf (minus_two_logarithms (positive (words[2 * i]))) };

      radius.i ^= word << 31;
      first[i] = radius.f * (word & 2 ? s : c);
      second[i] = radius.f * (word & 2 ? c : s);
    }
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i++)
    {
      result[2 * i] = first[i];
      result[2 * i + 1] = second[i];
    }
}

void
GTORCH_ISA_SYMBOL (gtorch_philox_exponential_f32) (const guint32 *words, gfloat *result)
{
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK; i++)
    {
      gfloat value = minus_two_logarithms (positive (words[i])) * 0.5f;

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
