/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers, the same as on the CPU: gtorch/device/gtorch-philox-private.h defines which words an
 * element gets, and gtorch/cpu/isa/gtorch-isa-random.c has the formulas. Results in float32 are bitwise
 * equal, as exactly the same operations are fused. */

#include <float.h>

#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"
#include "gtorch-random-params.h"

#define THREADS 256
#define UNROLL  4 /* number of blocks of Philox that a thread computes */

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
};

GT_DEVICE void
multiply (uint32_t a, uint32_t b, uint32_t *low, uint32_t *high)
{
  asm("{ .reg .b64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p; }"
      : "=r"(*low), "=r"(*high)
      : "r"(a), "r"(b));
}

/* The contribution of the upper half of a block's number to the first three rounds, before the lower half
 * takes part. The host has computed what the call's number contributes to the first round. */
struct gt_upper
{
  uint32_t c0, c2, c3;

  __device__ __forceinline__
  gt_upper (const GtRandom &p, uint32_t high)
  {
    uint32_t low_0, high_0, low_2, high_2;

    multiply (0xCD9E8D57u, p.start[1] ^ high, &low_2, &high_2);
    multiply (0xD2511F53u, high_2 ^ p.keys[0][0], &low_0, &high_0);
    c0 = low_2 ^ p.keys[1][0];
    c2 = high_0 ^ p.keys[1][1];
    c3 = low_0;
  }
};

GT_DEVICE void
philox (const GtRandom &p, const gt_upper &upper, uint32_t low, uint32_t words[4])
{
  uint32_t c0, c1, c2, c3;

  multiply (0xD2511F53u, p.start[0] ^ low, &c3, &c2);
  multiply (0xCD9E8D57u, c2 ^ p.keys[0][1], &c1, &c0);
  c0 ^= upper.c0;
  c2 = c3 ^ upper.c2;
  c3 = upper.c3;
#pragma unroll
  for (int i = 2; i < 9; i++)
    {
      uint32_t product[2][2];

      multiply (0xD2511F53u, c0, &product[0][0], &product[0][1]);
      multiply (0xCD9E8D57u, c2, &product[1][0], &product[1][1]);
      c0 = product[1][1] ^ c1 ^ p.keys[i][0];
      c1 = product[1][0];
      c2 = product[0][1] ^ c3 ^ p.keys[i][1];
      c3 = product[0][0];
    }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

GT_DEVICE float
positive (uint32_t word)
{
  return __fmaf_rn ((float) (int32_t) (word >> 1), 0x1p-31f, 0x1p-32f); /* the product is exact */
}

GT_DEVICE float
minus_two_logarithms (float x)
{
  const int32_t bits = __float_as_int (x), exponent = (bits - 0x3f3504f3) & ~0x7fffff;
  const float f = __fsub_rn (__int_as_float (bits - exponent), 1.0f);
  float y = 0.20213787f;

  y = __fmaf_rn (y, f, -0.3244516f);
  y = __fmaf_rn (y, f, 0.34501660f);
  y = __fmaf_rn (y, f, -0.39800331f);
  y = __fmaf_rn (y, f, 0.49939818f);
  y = __fmaf_rn (y, f, -0.66670118f);
  y = __fmaf_rn (y, f, 1.0000073f);
  y = __fmaf_rn (y, f, -1.9999999f);
  return __fmaf_rn (y, f, __fmul_rn ((float) exponent, -1.6525917e-7f));
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

/* Converts the words of a block to four elements. */
template <typename T, int KIND, bool AFFINE>
GT_DEVICE void
numbers (const GtRandom &p, const uint32_t words[4], float v[4])
{
  if (KIND == UNIFORM)
#pragma unroll
    for (int i = 0; i < 4; i++)
      v[i] = __fmul_rn ((float) (int32_t) (words[i] >> (32 - gt_bits<T>::n)),
                        1.0f / (1 << gt_bits<T>::n));
  else
#pragma unroll
    for (int i = 0; i < 4; i++)
      {
        const float x = __fmul_rn (minus_two_logarithms (positive (words[i])), 0.5f);

        v[i] = x > 0.0f ? x : 0x1p-33f;
      }
  if (AFFINE)
#pragma unroll
    for (int i = 0; i < 4; i++)
      {
        v[i] = __fadd_rn (__fmul_rn (v[i], p.scale), p.shift);
        if (KIND == UNIFORM && v[i] >= p.end)
          v[i] = p.shift;
      }
  if (KIND == EXPONENTIAL)
#pragma unroll
    for (int i = 0; i < 4; i++)
      v[i] = fminf (fmaxf (v[i], p.least), p.end);
}

GT_DEVICE double
positive_double (const uint32_t *words)
{
  return ((double) ((((uint64_t) words[1] << 32) | words[0]) >> 11) + 1.0) * 0x1p-53;
}

/* Converts the words of a block to two elements. */
template <typename T, int KIND, bool AFFINE>
GT_DEVICE void
numbers (const GtRandom &p, const uint32_t words[4], double v[2])
{
  if (KIND == UNIFORM)
#pragma unroll
    for (int i = 0; i < 2; i++)
      {
        v[i] = (positive_double (words + 2 * i) - 0x1p-53);
        if (AFFINE)
          {
            v[i] = __dadd_rn (__dmul_rn (v[i], p.wide_scale), p.wide_shift);
            if (v[i] >= p.wide_end)
              v[i] = p.wide_shift;
          }
      }
  else if (KIND == EXPONENTIAL)
#pragma unroll
    for (int i = 0; i < 2; i++)
      v[i] = fmin (fmax (p.wide_scale * fmax (-log (positive_double (words + 2 * i)), 0x1p-54),
                         p.wide_least),
                   p.wide_end);
  else
    {
      const double radius = sqrt (-2 * log (positive_double (words)));
      double s, c;

      sincos (2 * 3.1415926535897932384626433 * (positive_double (words + 2) - 0x1p-53), &s, &c);
      v[0] = radius * c * p.wide_scale + p.wide_shift;
      v[1] = radius * s * p.wide_scale + p.wide_shift;
    }
}

/* Returns whether a uniform number is below p. The number has as many bits as C: the few bits of a 16-bit
 * float would change the probability. */
template <typename C>
GT_DEVICE bool
below (const GtRandom &p, const uint32_t *words, int i)
{
  if constexpr (sizeof (C) == 8)
    return positive_double (words + 2 * i) - 0x1p-53 < p.p;
  else
    return words[i] >> (32 - gt_bits<float>::n) < p.limit;
}

/* Loads a block's N elements, as a vector if `whole`, else those that exist. */
template <typename T, int N>
GT_DEVICE void
load (gt_vector<T, N> *x, const void *from, uint64_t block, uint64_t n, bool whole)
{
  if (whole)
    *x = ((const gt_vector<T, N> *) from)[block];
  else
#pragma unroll
    for (int i = 0; i < N; i++)
      if (block * N + i < n)
        x->at[i] = ((const T *) from)[block * N + i];
}

template <typename T, int N>
GT_DEVICE void
store (void *to, const gt_vector<T, N> &x, uint64_t block, uint64_t n, bool whole)
{
  if (whole)
    ((gt_vector<T, N> *) to)[block] = x;
  else
#pragma unroll
    for (int i = 0; i < N; i++)
      if (block * N + i < n)
        ((T *) to)[block * N + i] = x.at[i];
}

/* Computes the elements of block begin + offset. `begin` is a multiple of THREADS * UNROLL, so that the
 * addition does not carry into the upper half of the number. */
template <typename T, typename C, int KIND, int USE, bool AFFINE>
GT_DEVICE void
one_block (const GtRandom &p, const gt_upper &upper, uint64_t begin, uint32_t offset, bool whole)
{
  constexpr int N = sizeof (C) == 8 ? 2 : 4;
  const uint64_t block = begin + offset;
  gt_vector<T, N> x;
  uint32_t words[4];

  if (USE == BELOW_ELEMENTS)
    load (&x, p.in, block, p.n, whole);
  philox (p, upper, (uint32_t) begin + offset, words);
  if (USE == PLAIN)
    {
      C v[N];

      numbers<T, KIND, AFFINE> (p, words, v);
#pragma unroll
      for (int i = 0; i < N; i++)
        x.at[i] = gt_convert<T>::from (v[i]);
    }
  else if (USE == BELOW)
#pragma unroll
    for (int i = 0; i < N; i++)
      x.at[i] = gt_convert<T>::from (below<C> (p, words, i) ? 1.0f : 0.0f);
  else
    {
      C v[N];

      numbers<C, UNIFORM, false> (p, words, v);
#pragma unroll
      for (int i = 0; i < N; i++)
        if (whole || block * N + i < p.n)
          {
            const C limit = gt_convert<C>::from (x.at[i]);

            if (!(limit >= 0 && limit <= 1))
              gt_report (p.report, p.op, block * N + i, GT_REPORT_PROBABILITY);
            x.at[i] = gt_convert<T>::from (v[i] < limit ? 1.0f : 0.0f);
          }
    }
  store (p.out, x, block, p.n, whole);
}

template <typename T, typename C, int KIND, int USE, bool AFFINE>
GT_DEVICE void
whole_blocks (const GtRandom &p, const gt_upper &upper, uint64_t begin)
{
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    one_block<T, C, KIND, USE, AFFINE> (p, upper, begin, u * THREADS + threadIdx.x, true);
}

template <typename T, typename C, int KIND, int USE>
GT_DEVICE void
random_fill (const GtRandom &p)
{
  constexpr int N = sizeof (C) == 8 ? 2 : 4;
  const uint64_t begin = (uint64_t) blockIdx.x * (THREADS * UNROLL);
  const gt_upper upper (p, (uint32_t) (begin >> 32));

  if (p.vectors && (begin + THREADS * UNROLL) * N <= p.n)
    {
      if (USE == PLAIN && p.affine)
        whole_blocks<T, C, KIND, USE, true> (p, upper, begin);
      else
        whole_blocks<T, C, KIND, USE, false> (p, upper, begin);
      return;
    }
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < THREADS * UNROLL && (begin + i) * N < p.n; i += THREADS)
    if (USE == PLAIN && p.affine)
      one_block<T, C, KIND, USE, true> (p, upper, begin, i, false);
    else
      one_block<T, C, KIND, USE, false> (p, upper, begin, i, false);
}

#define KERNEL(dtype, T, C, name, KIND, USE) \
  GT_KERNEL (gt_random_##dtype##_##name, GtRandom, THREADS) { random_fill<T, C, KIND, USE> (p); }
#define FILL(dtype, T, C)                                  \
  KERNEL (dtype, T, C, uniform, UNIFORM, PLAIN)            \
  KERNEL (dtype, T, C, exponential, EXPONENTIAL, PLAIN)    \
  KERNEL (dtype, T, C, bernoulli, UNIFORM, BELOW_ELEMENTS) \
  KERNEL (dtype, T, C, below, UNIFORM, BELOW)
GT_EACH_FLOAT (FILL)
KERNEL (f64, double, double, normal, NORMAL, PLAIN)

/* --- normal numbers of float32, by a table in shared memory --- */

static __device__ const float4 distances[1024] = {
#include "gtorch-normal-table.h"
};

/* The distance between the halves of the table, chosen so that the sign bit of a number selects the second
 * half without further instructions. */
#define SECOND_HALF 4096 /* in lines of the table */

/* A constant that is hidden from the compiler, which would otherwise need two instructions to set some bits
 * and clear others. */
static __constant__ uint32_t one_and_a_bit = 0x3f800001;

GT_DEVICE void
normal_pair (const float4 *table, uint32_t one, uint32_t word, uint32_t turn, float *a, float *b)
{
  const float w = (float) (int32_t) word;
  const float4 c = *(const float4 *) ((const char *) table + (__float_as_uint (w) >> 15 & 0x11ff0));
  const float distance = __uint_as_float (
      __float_as_uint (__fmaf_rn (__fmaf_rn (__fmaf_rn (c.w, w, c.z), w, c.y), w, c.x))
      ^ (turn & 0x80000000));
  const float x = __fmaf_rn (__uint_as_float ((turn & 0x7ffffe) | one), 1.5707965f, -2.3561947f);
  const float z = __fmul_rn (x, x);
  const float sine =
      __fmul_rn (x, __fmaf_rn (__fmaf_rn (__fmaf_rn (-0.0002757972f, z, 0.011783245f), z,
                                          -0.23570195f),
                               z, 1.4142134f));
  const float cosine =
      __fmaf_rn (__fmaf_rn (__fmaf_rn (-0.0019213364f, z, 0.05890908f), z, -0.7071046f), z,
                 1.4142135f);
  const float y = __fmul_rn (distance, sine);

  *a = __fmaf_rn (-y, sine, distance);
  *b = __fmul_rn (y, cosine);
}

template <typename T, bool AFFINE>
GT_DEVICE gt_vector<T, 4>
four_normals (const GtRandom &p, const gt_upper &upper, const float4 *table, uint32_t one,
              uint32_t low)
{
  uint32_t words[4];
  gt_vector<T, 4> x;
  float v[4];

  philox (p, upper, low, words);
  normal_pair (table, one, words[0], words[1], &v[0], &v[1]);
  normal_pair (table, one, words[2], words[3], &v[2], &v[3]);
#pragma unroll
  for (int i = 0; i < 4; i++)
    x.at[i] = gt_convert<T>::from (AFFINE ? __fadd_rn (__fmul_rn (v[i], p.scale), p.shift) : v[i]);
  return x;
}

#define NORMAL_THREADS 512

/* Fills several rows, each of NORMAL_THREADS blocks of Philox: four at a time as long as they are complete
 * and the upper half of the blocks' numbers does not change. */
template <typename T, bool AFFINE>
GT_DEVICE void
normal_rows (const GtRandom &p, const float4 *table, uint32_t row, uint32_t end)
{
  const uint32_t one = one_and_a_bit;
  const uint32_t n_whole = p.vectors ? (uint32_t) (p.n / (4 * NORMAL_THREADS)) : 0;

  while (row < end)
    {
      const uint64_t begin = (uint64_t) row * NORMAL_THREADS, at = begin + threadIdx.x;
      const uint32_t high = (uint32_t) (begin >> 32);
      const uint64_t carry = ((uint64_t) high + 1 << 32) / NORMAL_THREADS;
      const gt_upper upper (p, high);
      const uint32_t stop = (uint32_t) min ((uint64_t) min (end, n_whole), carry);
      gt_vector<T, 4> *out = (gt_vector<T, 4> *) p.out + at;
      uint32_t low = (uint32_t) begin + threadIdx.x;

      for (; row + 4 <= stop; row += 4, low += 4 * NORMAL_THREADS, out += 4 * NORMAL_THREADS)
#pragma unroll
        for (int u = 0; u < 4; u++)
          out[u * NORMAL_THREADS] =
              four_normals<T, AFFINE> (p, upper, table, one, low + u * NORMAL_THREADS);
      if (row < end)
        {
          const uint64_t here = (uint64_t) row * NORMAL_THREADS + threadIdx.x;

          if (here * 4 < p.n)
            store (p.out,
                   four_normals<T, AFFINE> (p, gt_upper (p, (uint32_t) (here >> 32)), table, one,
                                            (uint32_t) here),
                   here, p.n, p.vectors && here * 4 + 4 <= p.n);
          row++;
        }
    }
}

template <typename T, bool AFFINE>
GT_DEVICE void
normal_numbers (const GtRandom &p)
{
  extern __shared__ float4 table[];
  const uint32_t begin = blockIdx.x * p.rows, end = min (begin + p.rows, p.all_rows);

  table[threadIdx.x] = distances[threadIdx.x];
  table[SECOND_HALF + threadIdx.x] = distances[NORMAL_THREADS + threadIdx.x];
  __syncthreads ();
  normal_rows<T, AFFINE> (p, table, begin, end);
}

#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
#define NORMAL_BLOCKS 2
#else
#define NORMAL_BLOCKS 1
#endif

#define NORMAL_KERNEL(dtype, T, name, AFFINE)                                     \
  GT_KERNEL (gt_random_##dtype##_##name, GtRandom, NORMAL_THREADS, NORMAL_BLOCKS) \
  {                                                                               \
    normal_numbers<T, AFFINE> (p);                                                \
  }
#define NORMAL_KERNELS(dtype, T)          \
  NORMAL_KERNEL (dtype, T, normal, false) \
  NORMAL_KERNEL (dtype, T, normal_affine, true)
NORMAL_KERNELS (f32, float)
NORMAL_KERNELS (f16, gt_f16)
NORMAL_KERNELS (bf16, gt_bf16)

/* --- dropout: each thread has four elements, whether a block of Philox yields two or four --- */

/* Determines which of the four elements from 4 * (begin + offset) on are kept. */
template <typename C>
GT_DEVICE void
choose (const GtRandom &p, uint64_t begin, uint32_t offset, bool keep[4])
{
  constexpr int BLOCKS = sizeof (C) / 4, N = 4 / BLOCKS;

#pragma unroll
  for (int b = 0; b < BLOCKS; b++)
    {
      const uint64_t first = begin * BLOCKS;
      uint32_t words[4];

      philox (p, gt_upper (p, (uint32_t) (first >> 32)), (uint32_t) first + offset * BLOCKS + b,
              words);
#pragma unroll
      for (int i = 0; i < N; i++)
        keep[b * N + i] = !below<C> (p, words, i);
    }
}

template <typename T, typename C>
GT_DEVICE void
drop (const GtRandom &p, gt_vector<T, 4> *x, const bool keep[4])
{
  const C factor = sizeof (C) == 8 ? (C) p.wide_scale : (C) p.scale;

#pragma unroll
  for (int i = 0; i < 4; i++)
    x->at[i] = gt_convert<T>::from (keep[i] ? gt_convert<C>::from (x->at[i]) * factor : (C) 0);
}

/* A warp's bits of the mask: word i has the bits of element i of each thread. */
typedef gt_vector<uint32_t, 4> gt_mask;

GT_DEVICE gt_mask
vote (const bool keep[4])
{
  gt_mask mask;

#pragma unroll
  for (int i = 0; i < 4; i++)
    mask.at[i] = __ballot_sync (~0u, keep[i]);
  return mask;
}

GT_DEVICE void
elect (const gt_mask &mask, bool keep[4])
{
#pragma unroll
  for (int i = 0; i < 4; i++)
    keep[i] = mask.at[i] >> threadIdx.x % 32 & 1;
}

/* Applies dropout, or with BACK an existing mask. Each thread has one vector only: memory traffic
 * dominates, and with more vectors per thread it would come in bursts. Beyond the end, whole warps stop. */
template <typename T, typename C, bool BACK>
GT_DEVICE void
dropout (const GtRandom &p)
{
  const uint64_t begin = (uint64_t) blockIdx.x * THREADS, at = begin + threadIdx.x;
  const bool whole = p.vectors && at * 4 + 4 <= p.n;
  gt_mask *const mask = (gt_mask *) p.mask + at / 32;
  gt_vector<T, 4> x = {};
  bool keep[4];

  if (at / 32 * 128 >= p.n)
    return;
  load (&x, p.in, at, p.n, whole);
  if (BACK)
    elect (*mask, keep);
  else
    {
      choose<C> (p, begin, threadIdx.x, keep);
      if (!whole)
#pragma unroll
        for (int k = 0; k < 4; k++)
          keep[k] = keep[k] && at * 4 + k < p.n;

      const gt_mask votes = vote (keep);

      if (threadIdx.x % 32 == 0)
        *mask = votes;
    }
  drop<T, C> (p, &x, keep);
  store (p.out, x, at, p.n, whole);
}

#define DROPOUT(dtype, T, C)                                                               \
  GT_KERNEL (gt_random_##dtype##_dropout, GtRandom, THREADS) { dropout<T, C, false> (p); } \
  GT_KERNEL (gt_random_##dtype##_dropout_backward, GtRandom, THREADS) { dropout<T, C, true> (p); }
GT_EACH_FLOAT (DROPOUT)

/* Draws integers, two from each block of Philox. */
template <typename T>
GT_DEVICE void
random_integers (const GtRandom &p)
{
  const uint64_t begin = (uint64_t) blockIdx.x * (THREADS * UNROLL);

#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < THREADS * UNROLL && 2 * (begin + i) < p.n; i += THREADS)
    {
      gt_vector<T, 2> x;
      uint32_t words[4];

      philox (p, gt_upper (p, (uint32_t) (begin >> 32)), (uint32_t) begin + i, words);
#pragma unroll
      for (int k = 0; k < 2; k++)
        {
          const uint64_t word = ((uint64_t) words[2 * k + 1] << 32) | words[2 * k];

          x.at[k] = gt_convert<T>::from ((int64_t) ((uint64_t) p.low + __umul64hi (word, p.range)));
        }
      store (p.out, x, begin + i, p.n, p.vectors && 2 * (begin + i) + 2 <= p.n);
    }
}

#define INTEGERS(dtype, T, C) \
  GT_KERNEL (gt_random_##dtype##_integers, GtRandom, THREADS) { random_integers<T> (p); }
GT_EACH_FLOAT (INTEGERS)
GT_EACH_INTEGER (INTEGERS)
INTEGERS (bool, gt_bool, gint64)

/* For other dtypes than floats, Bernoulli numbers with one probability are the only kernel of this kind. */
#define BELOW_KERNEL(dtype, T, C) KERNEL (dtype, T, float, below, UNIFORM, BELOW)
GT_EACH_INTEGER (BELOW_KERNEL)
BELOW_KERNEL (bool, gt_bool, gint64)

/* --- keys by which indices are sorted --- */

GT_KERNEL (gt_random_keys_i64, GtRandomKeys, 256)
{
  for (GT_LOOP (block, (p.n + 1) / 2))
    {
      uint32_t words[4];

      philox (p.random, gt_upper (p.random, (uint32_t) (block >> 32)), (uint32_t) block, words);
      for (int i = 0; i < 2 && 2 * block + i < p.n; i++)
        ((uint64_t *) p.keys)[2 * block + i] =
            (((uint64_t) words[2 * i + 1] << 32) | words[2 * i]) ^ ((uint64_t) 1 << 63);
    }
}

GT_KERNEL (gt_multinomial_keys_f64, GtMultinomialKeys, 256)
{
  for (GT_LOOP (block, (p.n + 1) / 2))
    {
      uint32_t words[4];

      philox (p.random, gt_upper (p.random, (uint32_t) (block >> 32)), (uint32_t) block, words);
      for (int i = 0; i < 2 && 2 * block + i < p.n; i++)
        {
          const double rate = p.rates[2 * block + i];

          /* an index with a rate precedes all without one, even if the quotient overflows as the rate is
           * small */
          p.keys[2 * block + i] =
              rate > 0 ? fmin (-log (positive_double (words + 2 * i)) / rate, DBL_MAX) : INFINITY;
        }
    }
}

GT_KERNEL (gt_multinomial_find_f64, GtMultinomialFind, 256)
{
  for (GT_LOOP (block, (p.n + 1) / 2))
    {
      uint32_t words[4];

      philox (p.random, gt_upper (p.random, (uint32_t) (block >> 32)), (uint32_t) block, words);
      for (int i = 0; i < 2 && 2 * block + i < p.n; i++)
        {
          const int64_t row = (2 * block + i) / p.n_samples;
          const double *sums = p.sums + row * p.n_weights;
          const double *weights = p.weights + row * p.n_weights;
          const double x = (positive_double (words + 2 * i) - 0x1p-53) * sums[p.n_weights - 1];
          int64_t low = 0, high = p.n_weights - 1;

          while (low < high)
            {
              const int64_t middle = low + (high - low) / 2;

              if (sums[middle] > x)
                high = middle;
              else
                low = middle + 1;
            }
          /* the running sums are rounded, so an element of zero weight may seem to have an interval */
          while (low < p.n_weights - 1 && !(weights[low] > 0))
            low++;
          while (low > 0 && !(weights[low] > 0))
            low--;
          p.y[2 * block + i] = low;
        }
    }
}

GT_KERNEL (gt_multinomial_check_f64, GtMultinomialCheck, 1024)
{
  __shared__ double sums[32];
  __shared__ int64_t counts[32];

  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x)
    {
      int64_t found = 0;
      double sum = 0;

      for (int64_t i = threadIdx.x; i < p.n_weights; i += blockDim.x)
        {
          const double x = p.weights[row * p.n_weights + i];

          found += x > 0;
          sum += x >= 0 ? x : INFINITY;
        }
      sum = gt_row_reduce (sum, gt_sum_of (), sums);
      found = gt_row_reduce (found, gt_sum_of (), counts);
      if (threadIdx.x == 0 && (isinf (sum) || found < p.least))
        gt_report (p.report, p.op, row, GT_REPORT_WEIGHTS);
      __syncthreads ();
    }
}
