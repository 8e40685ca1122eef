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
          c0[j] = (guint32) counter;
          c1[j] = (guint32) (block + first + j);
          c2[j] = (guint32) (counter >> 32);
          c3[j] = (guint32) ((block + first + j) >> 32);
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

typedef gfloat Four __attribute__ ((vector_size (16)));
typedef gint32 Choice __attribute__ ((vector_size (16)));

/* By kernels/normal-table.py: cubics of the distance. */
static const Four distances[1024] = {
#include "gtorch-normal-table.h"
};

typedef union
{
  gfloat f;
  guint32 i;
} Bits;

#define LOW(a, b)         __builtin_shufflevector (a, b, 0, 4, 1, 5)
#define HIGH(a, b)        __builtin_shufflevector (a, b, 2, 6, 3, 7)
#define LOW_HALVES(a, b)  __builtin_shufflevector (a, b, 0, 1, 4, 5)
#define HIGH_HALVES(a, b) __builtin_shufflevector (a, b, 2, 3, 6, 7)

/* A point of the plane. Its distance is a cubic in the first word, taken as a number; the sign, the lower
 * bits of the exponent and the upper bits of the fraction of that number choose it. The second word's lower
 * bits are the angle, from -pi / 2 to pi / 2, never 0; the highest bit turns by pi. With s and c, sqrt (2)
 * times the sine and the cosine of half the angle, the coordinates are 1 - s s and s c. */
void
GTORCH_ISA_SYMBOL (gtorch_philox_normal_f32) (const guint32 *words, gfloat *result)
{
  gfloat first[GTORCH_PHILOX_CHUNK / 2], second[GTORCH_PHILOX_CHUNK / 2];
  gfloat numbers[GTORCH_PHILOX_CHUNK / 2];
  Four cubics[4][GTORCH_PHILOX_CHUNK / 8];
  const gfloat *const c0 = (const gfloat *) cubics[0], *const c1 = (const gfloat *) cubics[1];
  const gfloat *const c2 = (const gfloat *) cubics[2], *const c3 = (const gfloat *) cubics[3];
  guint16 lines[GTORCH_PHILOX_CHUNK / 2];
  guint i;

#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i++)
    {
      const Bits word = { .f = (gfloat) (gint32) words[2 * i] };

      lines[i] = (word.i >> 22 & 512) | (word.i >> 19 & 511);
      numbers[i] = word.f;
    }
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i += 4)
    {
      const Four a = distances[lines[i]], b = distances[lines[i + 1]];
      const Four c = distances[lines[i + 2]], d = distances[lines[i + 3]];
      const Four e = LOW (a, b), f = LOW (c, d), g = HIGH (a, b), h = HIGH (c, d);

      cubics[0][i / 4] = LOW_HALVES (e, f);
      cubics[1][i / 4] = HIGH_HALVES (e, f);
      cubics[2][i / 4] = LOW_HALVES (g, h);
      cubics[3][i / 4] = HIGH_HALVES (g, h);
    }
#pragma omp simd
  for (i = 0; i < GTORCH_PHILOX_CHUNK / 2; i++)
    {
      const guint32 turn = words[2 * i + 1];
      const Bits part = { .i = (turn & 0x7ffffe) | 0x3f800001 };
      const gfloat x = fused (part.f, 1.5707965f, -2.3561947f), z = x * x, w = numbers[i];
      const gfloat sine =
          x
          * fused (fused (fused (-0.0002757972f, z, 0.011783245f), z, -0.23570195f), z, 1.4142134f);
      const gfloat cosine =
          fused (fused (fused (-0.0019213364f, z, 0.05890908f), z, -0.7071046f), z, 1.4142135f);
      Bits distance = { .f = fused (fused (fused (c3[i], w, c2[i]), w, c1[i]), w, c0[i]) };
      gfloat y;

      distance.i ^= turn & 0x80000000;
      y = distance.f * sine;
      first[i] = fused (-y, sine, distance.f);
      second[i] = y * cosine;
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
