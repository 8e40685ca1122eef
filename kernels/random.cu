/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers, the same as the CPU's: see gtorch/cpu/gtorch-cpu-philox.h for which words an element gets,
 * and gtorch/cpu/isa/gtorch-isa-random.c for the formulas. What is computed in float32 is equal to the bit:
 * each operation is rounded on its own.
 *
 * n[0] elements, n[2] seed, n[3] counter, n[4] low, n[5] range, n[7] op; d[0] scale, d[1] shift, d[2] p,
 * d[3] factor; in[0] the input of `use`; out[0] the result, out[1] the mask. */

#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

enum
{
  UNIFORM,
  NORMAL,
  EXPONENTIAL,
};

enum
{
  PLAIN,
  BELOW_ELEMENTS,
  BELOW,
  DROPOUT,
};

/* A float whose operations are never fused. */
struct gt_single
{
  float x;
  __device__ __forceinline__
  gt_single ()
  {
  }
  __device__ __forceinline__
  gt_single (float v)
      : x (v)
  {
  }
};
#define SINGLE(op, f) \
  GT_DEVICE gt_single operator op (gt_single a, gt_single b) { return f (a.x, b.x); }
SINGLE (+, __fadd_rn)
SINGLE (-, __fsub_rn)
SINGLE (*, __fmul_rn)
SINGLE (/, __fdiv_rn)

GT_DEVICE void
philox (uint64_t seed, uint64_t counter, uint64_t block, uint32_t words[4])
{
  uint32_t c0 = (uint32_t) block, c1 = (uint32_t) (block >> 32);
  uint32_t c2 = (uint32_t) counter, c3 = (uint32_t) (counter >> 32);
  uint32_t k0 = (uint32_t) seed, k1 = (uint32_t) (seed >> 32);

#pragma unroll
  for (int i = 0; i < 10; i++)
    {
      const uint64_t p0 = (uint64_t) 0xD2511F53u * c0, p1 = (uint64_t) 0xCD9E8D57u * c2;

      c0 = (uint32_t) (p1 >> 32) ^ c1 ^ k0;
      c1 = (uint32_t) p1;
      c2 = (uint32_t) (p0 >> 32) ^ c3 ^ k1;
      c3 = (uint32_t) p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

GT_DEVICE gt_single
positive (uint32_t word)
{
  return gt_single ((float) (int32_t) (word >> 1)) * 0x1p-31f + 0x1p-32f;
}

GT_DEVICE gt_single
logarithm (gt_single x)
{
  int32_t bits = __float_as_int (x.x);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;
  gt_single m, s, z;

  bits -= exponent * (1 << 23);
  m = __int_as_float (bits);
  s = (m - 1.0f) / (m + 1.0f);
  z = s * s;
  return gt_single (2.0f) * s
             * (gt_single (1.0f)
                + z
                      * (gt_single (1.0f / 3)
                         + z
                               * (gt_single (1.0f / 5)
                                  + z * (gt_single (1.0f / 7) + z * (1.0f / 9)))))
         + gt_single ((float) exponent) * 0.69314718f;
}

GT_DEVICE void
normal_pair (uint32_t first, uint32_t second, float *a, float *b)
{
  const gt_single turn = gt_single ((float) (int32_t) (second >> 8)) * 0x1p-24f;
  const int32_t quarter = (int32_t) (turn * 4.0f + 0.5f).x;
  const gt_single x = (turn - gt_single ((float) quarter) * 0.25f) * 6.2831853f, z = x * x;
  const gt_single s =
      x
      * (gt_single (1.0f)
         - z
               * (gt_single (1.0f / 6)
                  - z * (gt_single (1.0f / 120) - z * (gt_single (1.0f / 5040) - z / 362880.0f))));
  const gt_single c =
      gt_single (1.0f)
      - z
            * (gt_single (0.5f)
               - z
                     * (gt_single (1.0f / 24)
                        - z
                              * (gt_single (1.0f / 720)
                                 - z * (gt_single (1.0f / 40320) - z / 3628800.0f))));
  const gt_single swapped_s = quarter & 1 ? c : s, swapped_c = quarter & 1 ? s : c;
  const gt_single radius = __fsqrt_rn ((gt_single (-2.0f) * logarithm (positive (first))).x);

  *a = (radius * ((quarter + 1) & 2 ? gt_single (-swapped_c.x) : swapped_c)).x;
  *b = (radius * (quarter & 2 ? gt_single (-swapped_s.x) : swapped_s)).x;
}

template <typename T> struct gt_bits
{
  static constexpr int n = 24;
};
template <> struct gt_bits<gt_f16>
{
  static constexpr int n = 11;
};
template <> struct gt_bits<gt_bf16>
{
  static constexpr int n = 8;
};

/* Four elements from a block. */
template <typename T, int KIND>
GT_DEVICE void
numbers (const GtPlain &p, int64_t block, float v[4])
{
  const float scale = p.d[0], shift = p.d[1], end = p.d[1] + p.d[0];
  uint32_t words[4];

  philox (p.n[2], p.n[3], block, words);
  if (KIND == UNIFORM)
#pragma unroll
    for (int i = 0; i < 4; i++)
      v[i] = (float) (int32_t) (words[i] >> (32 - gt_bits<T>::n)) * (1.0f / (1 << gt_bits<T>::n));
  else if (KIND == NORMAL)
    {
      normal_pair (words[0], words[1], &v[0], &v[1]);
      normal_pair (words[2], words[3], &v[2], &v[3]);
    }
  else
#pragma unroll
    for (int i = 0; i < 4; i++)
      {
        const float x = -logarithm (positive (words[i])).x;

        v[i] = x > 0.0f ? x : 0x1p-33f;
      }
  if (scale != 1 || shift != 0)
#pragma unroll
    for (int i = 0; i < 4; i++)
      {
        v[i] = __fadd_rn (__fmul_rn (v[i], scale), shift);
        if (KIND == UNIFORM && v[i] >= end && p.d[0] > 0)
          v[i] = shift;
      }
}

GT_DEVICE double
positive_double (const uint32_t *words)
{
  return ((double) ((((uint64_t) words[1] << 32) | words[0]) >> 11) + 1.0) * 0x1p-53;
}

template <int KIND>
GT_DEVICE void
numbers_double (const GtPlain &p, int64_t block, double v[2])
{
  uint32_t words[4];

  philox (p.n[2], p.n[3], block, words);
  if (KIND == UNIFORM)
#pragma unroll
    for (int i = 0; i < 2; i++)
      {
        v[i] = (positive_double (words + 2 * i) - 0x1p-53);
        if (p.d[0] != 1 || p.d[1] != 0)
          {
            v[i] = __dadd_rn (__dmul_rn (v[i], p.d[0]), p.d[1]);
            if (v[i] >= p.d[1] + p.d[0] && p.d[0] > 0)
              v[i] = p.d[1];
          }
      }
  else if (KIND == EXPONENTIAL)
#pragma unroll
    for (int i = 0; i < 2; i++)
      v[i] = p.d[0] * fmax (-log (positive_double (words + 2 * i)), 0x1p-54);
  else
    {
      const double radius = sqrt (-2 * log (positive_double (words)));
      double s, c;

      sincos (2 * 3.1415926535897932384626433 * (positive_double (words + 2) - 0x1p-53), &s, &c);
      v[0] = radius * c * p.d[0] + p.d[1];
      v[1] = radius * s * p.d[0] + p.d[1];
    }
}

template <typename T, typename C, int KIND> struct gt_numbers
{
  static __device__ __forceinline__ void
  make (const GtPlain &p, int64_t block, C *v)
  {
    numbers<T, KIND> (p, block, v);
  }
};
template <typename T, int KIND> struct gt_numbers<T, double, KIND>
{
  static __device__ __forceinline__ void
  make (const GtPlain &p, int64_t block, double *v)
  {
    numbers_double<KIND> (p, block, v);
  }
};

template <typename T, typename C, int KIND, int USE>
static __device__ __forceinline__ void
random_fill (const GtPlain &p)
{
  constexpr int N = sizeof (C) == 8 ? 2 : 4;
  typedef gt_vector<T, N> Vector;

  for (GT_LOOP (block, (p.n[0] + N - 1) / N))
    {
      const int64_t first = block * N;
      const bool whole = first + N <= p.n[0];
      C v[N];

      gt_numbers<T, C, KIND>::make (p, block, v);
      if (USE == PLAIN)
        {
          Vector x;

#pragma unroll
          for (int i = 0; i < N; i++)
            x.at[i] = gt_convert<T>::from (v[i]);
          if (whole)
            ((Vector *) p.out[0])[block] = x;
          else
#pragma unroll
            for (int i = 0; i < N; i++)
              if (first + i < p.n[0])
                ((T *) p.out[0])[first + i] = x.at[i];
        }
      else if (USE == DROPOUT)
        {
          const C factor = p.d[3];
          Vector x;
          gt_vector<guint8, N> mask;

          if (whole)
            x = ((const Vector *) p.in[0])[block];
          else
#pragma unroll
            for (int i = 0; i < N; i++)
              if (first + i < p.n[0])
                x.at[i] = ((const T *) p.in[0])[first + i];
#pragma unroll
          for (int i = 0; i < N; i++)
            {
              mask.at[i] = (double) v[i] >= p.d[2];
              x.at[i] =
                  gt_convert<T>::from (mask.at[i] ? gt_convert<C>::from (x.at[i]) * factor : (C) 0);
            }
          if (whole)
            {
              ((Vector *) p.out[0])[block] = x;
              ((gt_vector<guint8, N> *) p.out[1])[block] = mask;
            }
          else
#pragma unroll
            for (int i = 0; i < N; i++)
              if (first + i < p.n[0])
                {
                  ((T *) p.out[0])[first + i] = x.at[i];
                  ((guint8 *) p.out[1])[first + i] = mask.at[i];
                }
        }
      else
#pragma unroll
        for (int i = 0; i < N; i++)
          {
            if (first + i >= p.n[0])
              break;
            const double limit = USE == BELOW ? p.d[2] : gt_get<double, T> (p.in[0], first + i);

            if (!(limit >= 0 && limit <= 1))
              gt_report (p.report, p.n[7], first + i, -1);
            gt_put<T> (p.out[0], first + i, (double) v[i] < limit ? 1.0f : 0.0f);
          }
    }
}

#define KERNEL(dtype, T, C, name, KIND, USE)                         \
  extern "C" __global__ void __launch_bounds__ (256)                 \
      gt_random_##dtype##_##name (const __grid_constant__ GtPlain p) \
  {                                                                  \
    random_fill<T, C, KIND, USE> (p);                                \
  }
#define FILL(dtype, T, C)                                  \
  KERNEL (dtype, T, C, uniform, UNIFORM, PLAIN)            \
  KERNEL (dtype, T, C, normal, NORMAL, PLAIN)              \
  KERNEL (dtype, T, C, exponential, EXPONENTIAL, PLAIN)    \
  KERNEL (dtype, T, C, bernoulli, UNIFORM, BELOW_ELEMENTS) \
  KERNEL (dtype, T, C, below, UNIFORM, BELOW)              \
  KERNEL (dtype, T, C, dropout, UNIFORM, DROPOUT)
GT_EACH_FLOAT (FILL)

template <typename T>
static __device__ __forceinline__ void
random_integers (const GtPlain &p)
{
  for (GT_LOOP (block, (p.n[0] + 1) / 2))
    {
      uint32_t words[4];

      philox (p.n[2], p.n[3], block, words);
      for (int i = 0; i < 2 && 2 * block + i < p.n[0]; i++)
        {
          const uint64_t word = ((uint64_t) words[2 * i + 1] << 32) | words[2 * i];

          gt_put<T> (p.out[0], 2 * block + i,
                     (int64_t) ((uint64_t) p.n[4] + __umul64hi (word, (uint64_t) p.n[5])));
        }
    }
}

/* For dtypes that have no random floats: a truth value or an integer. */
template <typename T>
static __device__ __forceinline__ void
random_below (const GtPlain &p)
{
  for (GT_LOOP (block, (p.n[0] + 3) / 4))
    {
      float v[4];

      numbers<float, UNIFORM> (p, block, v);
      for (int i = 0; i < 4 && 4 * block + i < p.n[0]; i++)
        gt_put<T> (p.out[0], 4 * block + i, (double) v[i] < p.d[2] ? 1.0f : 0.0f);
    }
}

#define INTEGERS(dtype, T, C) \
  GT_KERNEL (gt_random_##dtype##_integers) { random_integers<T> (p); }
GT_EACH_FLOAT (INTEGERS)
GT_EACH_INTEGER (INTEGERS)
INTEGERS (bool, gt_bool, gint64)

#define BELOW_KERNEL(dtype, T, C) \
  GT_KERNEL (gt_random_##dtype##_below) { random_below<T> (p); }
GT_EACH_INTEGER (BELOW_KERNEL)
BELOW_KERNEL (bool, gt_bool, gint64)
