/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mantissas and exponents of numbers. */

#include "gtorch-frexp-params.h"
#include "gtorch-plain.cuh"

template <typename T>
GT_DEVICE void
take_apart (float x, T *mantissa, int32_t *exponent)
{
  *mantissa = gt_convert<T>::from (gt_frexp_mantissa_f32 (x));
  *exponent = (int32_t) gt_frexp_exponent_f32 (x);
}

GT_DEVICE void
take_apart (double x, double *mantissa, int32_t *exponent)
{
  *mantissa = gt_frexp_mantissa (x);
  *exponent = (int32_t) gt_frexp_exponent (x);
}

/* Each thread has four elements at a time, so that their loads are under way together. */
template <typename T, typename C>
static __device__ __forceinline__ void
frexp_parts (const GtFrexp &p)
{
  constexpr int U = 4;
  const int64_t threads = (int64_t) gridDim.x * blockDim.x;

  for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += U * threads)
    {
      C x[U];

#pragma unroll
      for (int u = 0; u < U; u++)
        x[u] = gt_get<C, T> (p.x, i + u * threads < p.n ? i + u * threads : i);
#pragma unroll
      for (int u = 0; u < U; u++)
        if (i + u * threads < p.n)
          take_apart (x[u], (T *) p.mantissas + i + u * threads, p.exponents + i + u * threads);
    }
}

#define FREXP(dtype, T, C) \
  GT_KERNEL (gt_frexp_##dtype, GtFrexp, 1024) { frexp_parts<T, C> (p); }
GT_EACH_FLOAT (FREXP)
