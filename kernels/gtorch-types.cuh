/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The element types, and the functions that the expressions of operations may use. */

#include <cuda/std/complex>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gtorch-kernel-params.h"

typedef int8_t gint8;
typedef uint8_t guint8;
typedef int16_t gint16;
typedef uint16_t guint16;
typedef int32_t gint32;
typedef uint32_t guint32;
typedef int64_t gint64;
typedef uint64_t guint64;
typedef double gdouble;
typedef int gboolean;
typedef __half gt_f16;
typedef __nv_bfloat16 gt_bf16;
typedef cuda::std::complex<float> GTorchComplex64;
typedef cuda::std::complex<double> GTorchComplex128;

#define GT_DEVICE static __device__ __forceinline__

/* The values of GTorchDType. */
enum
{
  GT_NONE,
  GT_FLOAT32,
  GT_FLOAT64,
  GT_FLOAT16,
  GT_BFLOAT16,
  GT_INT8,
  GT_UINT8,
  GT_INT16,
  GT_INT32,
  GT_INT64,
  GT_BOOL,
  GT_COMPLEX64,
  GT_COMPLEX128,
};

/* --- conversion: as in C; complex to real takes the real part, and conversion to bool compares with 0 --- */
struct gt_bool /* an element of value 0 or 1; a type distinct from uint8 */
{
  guint8 value;
};

template <typename D> struct gt_convert
{
  template <typename S>
  GT_DEVICE D
  from (S x)
  {
    return (D) x;
  }
  GT_DEVICE D
  from (gt_f16 x)
  {
    return (D) __half2float (x);
  }
  GT_DEVICE D
  from (gt_bf16 x)
  {
    return (D) __bfloat162float (x);
  }
  GT_DEVICE D
  from (gt_bool x)
  {
    return (D) x.value;
  }
  template <typename R>
  GT_DEVICE D
  from (cuda::std::complex<R> x)
  {
    return (D) x.real ();
  }
};

template <> struct gt_convert<gt_f16>
{
  template <typename S>
  GT_DEVICE gt_f16
  from (S x)
  {
    return __float2half_rn (gt_convert<float>::from (x));
  }
  GT_DEVICE gt_f16
  from (double x)
  {
    return __double2half (x);
  }
  GT_DEVICE gt_f16
  from (gt_f16 x)
  {
    return x;
  }
};

template <> struct gt_convert<gt_bf16>
{
  template <typename S>
  GT_DEVICE gt_bf16
  from (S x)
  {
    return __float2bfloat16_rn (gt_convert<float>::from (x));
  }
  GT_DEVICE gt_bf16
  from (double x)
  {
    return __double2bfloat16 (x);
  }
  GT_DEVICE gt_bf16
  from (gt_bf16 x)
  {
    return x;
  }
};

template <> struct gt_convert<gt_bool>
{
  template <typename S>
  GT_DEVICE gt_bool
  from (S x)
  {
    return gt_bool{ (guint8) (x != (S) 0) };
  }
  GT_DEVICE gt_bool
  from (gt_f16 x)
  {
    return gt_bool{ (guint8) (__half2float (x) != 0) };
  }
  GT_DEVICE gt_bool
  from (gt_bf16 x)
  {
    return gt_bool{ (guint8) (__bfloat162float (x) != 0) };
  }
  GT_DEVICE gt_bool
  from (gt_bool x)
  {
    return x;
  }
  template <typename R>
  GT_DEVICE gt_bool
  from (cuda::std::complex<R> x)
  {
    return gt_bool{ (guint8) (x.real () != 0 || x.imag () != 0) };
  }
};

template <typename R> struct gt_convert<cuda::std::complex<R> >
{
  template <typename S>
  GT_DEVICE cuda::std::complex<R>
  from (S x)
  {
    return cuda::std::complex<R> (gt_convert<R>::from (x), 0);
  }
  template <typename Q>
  GT_DEVICE cuda::std::complex<R>
  from (cuda::std::complex<Q> x)
  {
    return cuda::std::complex<R> ((R) x.real (), (R) x.imag ());
  }
};

/* These functions load and store an element whose dtype is known only at run time. */
template <typename C>
static __device__ __noinline__ C
gt_load (const void *p, int dtype)
{
  switch (dtype)
    {
    case GT_FLOAT32:
      return gt_convert<C>::from (*(const float *) p);
    case GT_FLOAT64:
      return gt_convert<C>::from (*(const double *) p);
    case GT_FLOAT16:
      return gt_convert<C>::from (*(const gt_f16 *) p);
    case GT_BFLOAT16:
      return gt_convert<C>::from (*(const gt_bf16 *) p);
    case GT_INT8:
      return gt_convert<C>::from (*(const gint8 *) p);
    case GT_UINT8:
    case GT_BOOL:
      return gt_convert<C>::from (*(const guint8 *) p);
    case GT_INT16:
      return gt_convert<C>::from (*(const gint16 *) p);
    case GT_INT32:
      return gt_convert<C>::from (*(const gint32 *) p);
    case GT_INT64:
      return gt_convert<C>::from (*(const gint64 *) p);
    case GT_COMPLEX64:
      return gt_convert<C>::from (*(const GTorchComplex64 *) p);
    default:
      return gt_convert<C>::from (*(const GTorchComplex128 *) p);
    }
}

template <typename C>
static __device__ __noinline__ void
gt_store (void *p, int dtype, C x)
{
  switch (dtype)
    {
    case GT_FLOAT32:
      *(float *) p = gt_convert<float>::from (x);
      break;
    case GT_FLOAT64:
      *(double *) p = gt_convert<double>::from (x);
      break;
    case GT_FLOAT16:
      *(gt_f16 *) p = gt_convert<gt_f16>::from (x);
      break;
    case GT_BFLOAT16:
      *(gt_bf16 *) p = gt_convert<gt_bf16>::from (x);
      break;
    case GT_INT8:
      *(gint8 *) p = gt_convert<gint8>::from (x);
      break;
    case GT_UINT8:
      *(guint8 *) p = gt_convert<guint8>::from (x);
      break;
    case GT_INT16:
      *(gint16 *) p = gt_convert<gint16>::from (x);
      break;
    case GT_INT32:
      *(gint32 *) p = gt_convert<gint32>::from (x);
      break;
    case GT_INT64:
      *(gint64 *) p = gt_convert<gint64>::from (x);
      break;
    case GT_BOOL:
      *(gt_bool *) p = gt_convert<gt_bool>::from (x);
      break;
    case GT_COMPLEX64:
      *(GTorchComplex64 *) p = gt_convert<GTorchComplex64>::from (x);
      break;
    default:
      *(GTorchComplex128 *) p = gt_convert<GTorchComplex128>::from (x);
    }
}

/* --- division of an index by a constant --- */
GT_DEVICE uint32_t
gt_divide (uint32_t n, const GtDivider &d)
{
  return (__umulhi (n, d.multiplier) + n) >> d.shift;
}

/* --- arithmetic of complex numbers with real ones, as C allows it --- */
#define GT_MIXED(op)                                                           \
  template <typename R>                                                        \
  GT_DEVICE cuda::std::complex<R> operator op (int a, cuda::std::complex<R> b) \
  {                                                                            \
    return cuda::std::complex<R> ((R) a, 0) op b;                              \
  }                                                                            \
  template <typename R>                                                        \
  GT_DEVICE cuda::std::complex<R> operator op (cuda::std::complex<R> a, int b) \
  {                                                                            \
    return a op cuda::std::complex<R> ((R) b, 0);                              \
  }
GT_MIXED (+)
GT_MIXED (-)
GT_MIXED (*)
GT_MIXED (/)
template <typename R>
GT_DEVICE bool
operator== (cuda::std::complex<R> a, int b)
{
  return a.real () == (R) b && a.imag () == 0;
}
template <typename R>
GT_DEVICE bool
operator!= (cuda::std::complex<R> a, int b)
{
  return !(a == b);
}
template <typename R>
GT_DEVICE R
cabs (cuda::std::complex<R> x)
{
  return hypot (x.real (), x.imag ());
}
template <typename R>
GT_DEVICE R
creal (cuda::std::complex<R> x)
{
  return x.real ();
}
template <typename R>
GT_DEVICE R
cimag (cuda::std::complex<R> x)
{
  return x.imag ();
}

/* --- the functions of gtorch/cpu/gtorch-cpu-loops.h, for GPUs --- */
#define GT_SPECIAL static __device__
#define GT_LARGE   static __device__ __noinline__
#define GT_CALLED  GT_LARGE
#include "gtorch-division.h"
#include "gtorch-special.h"

#define gt_max(a, b)     ((a) != (a) || (a) > (b) ? (a) : (b))
#define gt_min(a, b)     ((a) != (a) || (a) < (b) ? (a) : (b))
#define gt_maximum(a, b) ((b) != (b) ? (b) : gt_max (a, b))
#define gt_minimum(a, b) ((b) != (b) ? (b) : gt_min (a, b))
#define gt_sign(x)       ((x) > 0 ? 1 : ((x) < 0 ? -1 : 0))
/* Computes 1 / (1 + exp (-x)) in a form that is not 0 where exp (-x) overflows. From 37 on the result is 1,
 * so x can be limited to 40. */
#define gt_sigmoid(x)   (gt_exp_to_40 (x) / (1 + gt_exp_to_40 (x)))
#define gt_exp_to_40(x) exp ((x) > 40 ? (T) 40 : (x))
#define gt_softplus(x)  (((x) > 0 ? (x) : 0) + log1p (exp (-fabs (x))))
/* Limits x to the range from eps to 1 - eps, if eps is not NaN. NaN stays. */
#define gt_clip(x, eps) ((x) < (T) (eps) ? (T) (eps) : ((x) > 1 - (T) (eps) ? 1 - (T) (eps) : (x)))
#define gt_gelu_u(x)    ((T) 0.7978845608028654 * ((x) + (T) 0.044715 * (x) * (x) * (x)))
#define gt_gelu_du(x)   ((T) 0.7978845608028654 * (1 + (T) 0.134145 * (x) * (x)))
#define gt_sech2(u)     (1 - tanh (u) * tanh (u))
#define gt_gelu_tanh_grad(g, x) \
  ((g) * (T) 0.5 * (1 + tanh (gt_gelu_u (x)) + (x) *gt_sech2 (gt_gelu_u (x)) * gt_gelu_du (x)))
#define gt_gelu_tanh_second(x)                                          \
  (gt_sech2 (gt_gelu_u (x))                                             \
   * (gt_gelu_du (x) * (1 - (x) *tanh (gt_gelu_u (x)) * gt_gelu_du (x)) \
      + (x) * (T) (0.5 * 0.7978845608028654 * 0.26829) * (x)))

template <typename R>
GT_DEVICE cuda::std::complex<R>
gt_complex (R re, R im)
{
  return cuda::std::complex<R> (re, im);
}

/* The product of a complex number and a real one: that of two complex ones makes NaN of infinities. */
template <typename R>
GT_DEVICE cuda::std::complex<R>
gt_times (cuda::std::complex<R> z, double factor)
{
  return cuda::std::complex<R> (z.real () * (R) factor, z.imag () * (R) factor);
}

/* exp (z) - 1: the difference is inexact near zero, and the parts of the other form overflow. */
#define gt_expm1(z) (fabs (creal (z)) <= 20 ? gt_expm1_near (z) : exp (z) - 1)
#define gt_expm1_near(z)                                                                           \
  gt_complex (expm1 (creal (z)) * cos (cimag (z)) - 2 * sin (cimag (z) / 2) * sin (cimag (z) / 2), \
              exp (creal (z)) * sin (cimag (z)))
/* log (1 + z). The sums are those of the parts, which keeps the sign of an imaginary zero. */
#define gt_log1p(z) \
  (cabs (z) < 0.5 ? gt_log1p_near (z) : log (gt_complex (1 + creal (z), cimag (z))))
#define gt_log1p_near(z) \
  gt_complex (2 * creal (atanh ((z) / (2 + (z)))), atan2 (cimag (z), 1 + creal (z)))

GT_DEVICE gint32
gt_clip_int32 (gint64 value)
{
  return (gint32) (value < -2147483647 - 1 ? -2147483647 - 1
                   : value > 2147483647    ? 2147483647
                                           : value);
}

GT_DEVICE gint64
gt_floor_div_int (gint64 a, gint64 b)
{
  gint64 q;

  if (b == 0)
    return 0;
  if (b == -1)
    return (gint64) (0 - (guint64) a);
  q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

GT_DEVICE gint64
gt_remainder_int (gint64 a, gint64 b)
{
  gint64 r;

  if (b == 0 || b == -1)
    return b == 0 ? a : 0;
  r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

GT_DEVICE gint64
gt_fmod_int (gint64 a, gint64 b)
{
  return b == 0 ? a : (b == -1 ? 0 : a % b);
}

GT_DEVICE gint64
gt_trunc_div_int (gint64 a, gint64 b)
{
  return b == 0 ? 0 : (b == -1 ? (gint64) (0 - (guint64) a) : a / b);
}

GT_DEVICE gint64
gt_pow_int (gint64 base, gint64 exponent)
{
  guint64 result = 1, factor = (guint64) base;

  if (exponent < 0)
    return base == 1 ? 1 : (base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return (gint64) result;
}

GT_DEVICE gint64
gt_gcd (gint64 a, gint64 b)
{
  while (b != 0)
    {
      gint64 r = gt_fmod_int (a, b);

      a = b;
      b = r;
    }
  return a < 0 ? -a : a;
}

GT_DEVICE gint64
gt_lcm (gint64 a, gint64 b)
{
  const gint64 divisor = gt_gcd (a, b);
  const guint64 product = divisor != 0 ? (guint64) gt_trunc_div_int (a, divisor) * (guint64) b : 0;

  return (gint64) product < 0 ? (gint64) (0 - product) : (gint64) product;
}
