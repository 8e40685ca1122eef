/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The loop bodies of all pointwise operations, and the functions that their expressions may use. This
 * header is included only by the generated loop files, which are compiled for each x86-64 level. */

#include <gtorch/cpu/gtorch-cpu-isa.h>
#include <gtorch/cpu/gtorch-cpu-math.h>
#include <string.h>

typedef float _Complex GTorchComplex64;
typedef double _Complex GTorchComplex128;

/* glibc's libmvec has vector versions of these functions, but its own declarations of them require
 * -ffast-math. Sanitizer builds are excluded: instrumented loops are not vectorised, except those over
 * buffers, and the results would differ. Clang has no such attribute. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) \
    && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GLIBC_PREREQ(2, 35)
#define GTORCH_HAVE_LIBMVEC 1
#endif
#endif

#ifdef GTORCH_HAVE_LIBMVEC
#define GTORCH_SIMD_1(name)                                                             \
  extern double (name) (double) __attribute__ ((simd ("notinbranch"), const, nothrow)); \
  extern float (name##f) (float) __attribute__ ((simd ("notinbranch"), const, nothrow));
#define GTORCH_SIMD_2(name)                                                                     \
  extern double (name) (double, double) __attribute__ ((simd ("notinbranch"), const, nothrow)); \
  extern float (name##f) (float, float) __attribute__ ((simd ("notinbranch"), const, nothrow));
GTORCH_SIMD_1 (acos)
GTORCH_SIMD_1 (acosh)
GTORCH_SIMD_1 (asin)
GTORCH_SIMD_1 (asinh)
GTORCH_SIMD_1 (atan)
GTORCH_SIMD_1 (atanh)
GTORCH_SIMD_1 (cbrt)
GTORCH_SIMD_1 (cos)
GTORCH_SIMD_1 (cosh)
GTORCH_SIMD_1 (erf)
GTORCH_SIMD_1 (erfc)
GTORCH_SIMD_1 (exp)
GTORCH_SIMD_1 (exp2)
GTORCH_SIMD_1 (expm1)
GTORCH_SIMD_1 (log)
GTORCH_SIMD_1 (log10)
GTORCH_SIMD_1 (log1p)
GTORCH_SIMD_1 (log2)
GTORCH_SIMD_1 (sin)
GTORCH_SIMD_1 (sinh)
GTORCH_SIMD_1 (tan)
GTORCH_SIMD_1 (tanh)
GTORCH_SIMD_2 (atan2)
GTORCH_SIMD_2 (hypot)
GTORCH_SIMD_2 (pow)
#endif

#define GTORCH_LOAD(T, p, i, stride) (*(const T *) ((p) + (i) * (stride)))

/* O is the element type of the output, C that of the inputs; EXPR refers to the inputs by name. The strides
 * are tested once: contiguous operands and scalars (stride 0) get loops that the compiler can vectorise. */
#define GTORCH_LOOP_0(O, C, EXPR)                 \
  {                                               \
    char *o_ = data[0];                           \
    for (gint64 i_ = 0; i_ < n; i_++)             \
      *(O *) (o_ + i_ * strides[0]) = (O) (EXPR); \
  }

#define GTORCH_LOOP_1(O, C, A, EXPR)                           \
  {                                                            \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C))  \
      {                                                        \
        O *o_ = (O *) data[0];                                 \
        const C *a_ = (const C *) data[1];                     \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n; i_++) \
        {                                                      \
          const C A = a_[i_];                                  \
          o_[i_] = (O) (EXPR);                                 \
        }                                                      \
        return;                                                \
      }                                                        \
    for (gint64 i_ = 0; i_ < n; i_++)                          \
      {                                                        \
        const C A = GTORCH_LOAD (C, data[1], i_, strides[1]);  \
        *(O *) (data[0] + i_ * strides[0]) = (O) (EXPR);       \
      }                                                        \
  }

#define GTORCH_LOOP_2(O, C, A, B, EXPR)                                                   \
  {                                                                                       \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C) && strides[2] == sizeof (C)) \
      {                                                                                   \
        O *o_ = (O *) data[0];                                                            \
        const C *a_ = (const C *) data[1], *b_ = (const C *) data[2];                     \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n; i_++)                            \
        {                                                                                 \
          const C A = a_[i_], B = b_[i_];                                                 \
          o_[i_] = (O) (EXPR);                                                            \
        }                                                                                 \
        return;                                                                           \
      }                                                                                   \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C) && strides[2] == 0)          \
      {                                                                                   \
        O *o_ = (O *) data[0];                                                            \
        const C *a_ = (const C *) data[1];                                                \
        const C B = *(const C *) data[2];                                                 \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n; i_++)                            \
        {                                                                                 \
          const C A = a_[i_];                                                             \
          o_[i_] = (O) (EXPR);                                                            \
        }                                                                                 \
        return;                                                                           \
      }                                                                                   \
    if (strides[0] == sizeof (O) && strides[1] == 0 && strides[2] == sizeof (C))          \
      {                                                                                   \
        O *o_ = (O *) data[0];                                                            \
        const C A = *(const C *) data[1];                                                 \
        const C *b_ = (const C *) data[2];                                                \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n; i_++)                            \
        {                                                                                 \
          const C B = b_[i_];                                                             \
          o_[i_] = (O) (EXPR);                                                            \
        }                                                                                 \
        return;                                                                           \
      }                                                                                   \
    for (gint64 i_ = 0; i_ < n; i_++)                                                     \
      {                                                                                   \
        const C A = GTORCH_LOAD (C, data[1], i_, strides[1]);                             \
        const C B = GTORCH_LOAD (C, data[2], i_, strides[2]);                             \
        *(O *) (data[0] + i_ * strides[0]) = (O) (EXPR);                                  \
      }                                                                                   \
  }

#define GTORCH_LOOP_3(O, C, A, B, D, EXPR)                                                       \
  {                                                                                              \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C) && strides[2] == sizeof (C)         \
        && strides[3] == sizeof (C))                                                             \
      {                                                                                          \
        O *o_ = (O *) data[0];                                                                   \
        const C *a_ = (const C *) data[1], *b_ = (const C *) data[2], *d_ = (const C *) data[3]; \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n; i_++)                                   \
        {                                                                                        \
          const C A = a_[i_], B = b_[i_], D = d_[i_];                                            \
          o_[i_] = (O) (EXPR);                                                                   \
        }                                                                                        \
        return;                                                                                  \
      }                                                                                          \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C) && strides[2] == 0                  \
        && strides[3] == sizeof (C))                                                             \
      {                                                                                          \
        O *o_ = (O *) data[0];                                                                   \
        const C *a_ = (const C *) data[1], *d_ = (const C *) data[3];                            \
        const C B = *(const C *) data[2];                                                        \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n; i_++)                                   \
        {                                                                                        \
          const C A = a_[i_], D = d_[i_];                                                        \
          o_[i_] = (O) (EXPR);                                                                   \
        }                                                                                        \
        return;                                                                                  \
      }                                                                                          \
    for (gint64 i_ = 0; i_ < n; i_++)                                                            \
      {                                                                                          \
        const C A = GTORCH_LOAD (C, data[1], i_, strides[1]);                                    \
        const C B = GTORCH_LOAD (C, data[2], i_, strides[2]);                                    \
        const C D = GTORCH_LOAD (C, data[3], i_, strides[3]);                                    \
        *(O *) (data[0] + i_ * strides[0]) = (O) (EXPR);                                         \
      }                                                                                          \
  }

/* --- loops for expressions that call libmvec --- */

/* The vector and the scalar version of a function may differ in the last bit. A result must depend on
 * neither the position nor the layout of an element, so all elements are computed in whole vectors: those
 * that do not fill a vector or are not contiguous go through a small buffer. */
enum
{
  GTORCH_LOOP_BLOCK = 64,  /* elements of the buffer */
  GTORCH_LOOP_VECTOR = 16, /* a multiple of the vector length */
};

#define GTORCH_GATHER(C, buffer, p, stride, m)              \
  for (gint64 j_ = 0; j_ < (m); j_++)                       \
    buffer[j_] = GTORCH_LOAD (C, p, j_, stride);            \
  for (gint64 j_ = (m); j_ % GTORCH_LOOP_VECTOR != 0; j_++) \
    buffer[j_] = buffer[0];

#define GTORCH_SCATTER(O, buffer, p, stride, m) \
  for (gint64 j_ = 0; j_ < (m); j_++)           \
    *(O *) ((p) + j_ * (stride)) = buffer[j_];

#define GTORCH_WHOLE(m) (((m) + GTORCH_LOOP_VECTOR - 1) & ~(gint64) (GTORCH_LOOP_VECTOR - 1))

#define GTORCH_VECTOR_LOOP_1(O, C, A, EXPR)                                    \
  {                                                                            \
    gint64 k_ = 0;                                                             \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C))                  \
      {                                                                        \
        O *o_ = (O *) data[0];                                                 \
        const C *a_ = (const C *) data[1];                                     \
        k_ = n & ~(gint64) (GTORCH_LOOP_VECTOR - 1);                           \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < k_; i_++)                \
        {                                                                      \
          const C A = a_[i_];                                                  \
          o_[i_] = (O) (EXPR);                                                 \
        }                                                                      \
      }                                                                        \
    for (gint64 m_; k_ < n; k_ += m_)                                          \
      {                                                                        \
        C a_[GTORCH_LOOP_BLOCK];                                               \
        O o_[GTORCH_LOOP_BLOCK];                                               \
        m_ = n - k_ < GTORCH_LOOP_BLOCK ? n - k_ : GTORCH_LOOP_BLOCK;          \
        GTORCH_GATHER (C, a_, data[1] + k_ * strides[1], strides[1], m_)       \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < GTORCH_WHOLE (m_); i_++) \
        {                                                                      \
          const C A = a_[i_];                                                  \
          o_[i_] = (O) (EXPR);                                                 \
        }                                                                      \
        GTORCH_SCATTER (O, o_, data[0] + k_ * strides[0], strides[0], m_)      \
      }                                                                        \
  }

#define GTORCH_VECTOR_LOOP_2(O, C, A, B, EXPR)                                            \
  {                                                                                       \
    gint64 k_ = 0;                                                                        \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C) && strides[2] == sizeof (C)) \
      {                                                                                   \
        O *o_ = (O *) data[0];                                                            \
        const C *a_ = (const C *) data[1], *b_ = (const C *) data[2];                     \
        k_ = n & ~(gint64) (GTORCH_LOOP_VECTOR - 1);                                      \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < k_; i_++)                           \
        {                                                                                 \
          const C A = a_[i_], B = b_[i_];                                                 \
          o_[i_] = (O) (EXPR);                                                            \
        }                                                                                 \
      }                                                                                   \
    for (gint64 m_; k_ < n; k_ += m_)                                                     \
      {                                                                                   \
        C a_[GTORCH_LOOP_BLOCK], b_[GTORCH_LOOP_BLOCK];                                   \
        O o_[GTORCH_LOOP_BLOCK];                                                          \
        m_ = n - k_ < GTORCH_LOOP_BLOCK ? n - k_ : GTORCH_LOOP_BLOCK;                     \
        GTORCH_GATHER (C, a_, data[1] + k_ * strides[1], strides[1], m_)                  \
        GTORCH_GATHER (C, b_, data[2] + k_ * strides[2], strides[2], m_)                  \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < GTORCH_WHOLE (m_); i_++)            \
        {                                                                                 \
          const C A = a_[i_], B = b_[i_];                                                 \
          o_[i_] = (O) (EXPR);                                                            \
        }                                                                                 \
        GTORCH_SCATTER (O, o_, data[0] + k_ * strides[0], strides[0], m_)                 \
      }                                                                                   \
  }

#define GTORCH_VECTOR_LOOP_3(O, C, A, B, D, EXPR)                                                \
  {                                                                                              \
    gint64 k_ = 0;                                                                               \
    if (strides[0] == sizeof (O) && strides[1] == sizeof (C) && strides[2] == sizeof (C)         \
        && strides[3] == sizeof (C))                                                             \
      {                                                                                          \
        O *o_ = (O *) data[0];                                                                   \
        const C *a_ = (const C *) data[1], *b_ = (const C *) data[2], *d_ = (const C *) data[3]; \
        k_ = n & ~(gint64) (GTORCH_LOOP_VECTOR - 1);                                             \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < k_; i_++)                                  \
        {                                                                                        \
          const C A = a_[i_], B = b_[i_], D = d_[i_];                                            \
          o_[i_] = (O) (EXPR);                                                                   \
        }                                                                                        \
      }                                                                                          \
    for (gint64 m_; k_ < n; k_ += m_)                                                            \
      {                                                                                          \
        C a_[GTORCH_LOOP_BLOCK], b_[GTORCH_LOOP_BLOCK], d_[GTORCH_LOOP_BLOCK];                   \
        O o_[GTORCH_LOOP_BLOCK];                                                                 \
        m_ = n - k_ < GTORCH_LOOP_BLOCK ? n - k_ : GTORCH_LOOP_BLOCK;                            \
        GTORCH_GATHER (C, a_, data[1] + k_ * strides[1], strides[1], m_)                         \
        GTORCH_GATHER (C, b_, data[2] + k_ * strides[2], strides[2], m_)                         \
        GTORCH_GATHER (C, d_, data[3] + k_ * strides[3], strides[3], m_)                         \
        _Pragma ("omp simd") for (gint64 i_ = 0; i_ < GTORCH_WHOLE (m_); i_++)                   \
        {                                                                                        \
          const C A = a_[i_], B = b_[i_], D = d_[i_];                                            \
          o_[i_] = (O) (EXPR);                                                                   \
        }                                                                                        \
        GTORCH_SCATTER (O, o_, data[0] + k_ * strides[0], strides[0], m_)                        \
      }                                                                                          \
  }

/* --- loops with a quick form --- */

/* QUICK is what EXPR is, except for the rare elements for which RARE is true: those of a block that has some
 * are computed once more. Results go through a buffer, since an operand may be the output. */
#define GTORCH_QUICK_INPUT(C, copy, k)                                               \
  ({                                                                                 \
    const char *p_ = data[k] + k_ * strides[k];                                      \
    const gboolean is_direct_ = m_ == GTORCH_LOOP_BLOCK && strides[k] == sizeof (C); \
    if (!is_direct_)                                                                 \
      {                                                                              \
        GTORCH_GATHER (C, copy, p_, strides[k], m_)                                  \
      }                                                                              \
    is_direct_ ? (const C *) p_ : (const C *) copy;                                  \
  })

#define GTORCH_QUICK_LOOP_1(O, C, A, EXPR, QUICK, RARE)                                          \
  for (gint64 k_ = 0; k_ < n; k_ += GTORCH_LOOP_BLOCK)                                           \
    {                                                                                            \
      const gint64 m_ = n - k_ < GTORCH_LOOP_BLOCK ? n - k_ : GTORCH_LOOP_BLOCK;                 \
      C a_copy_[GTORCH_LOOP_BLOCK];                                                              \
      const C *a_ = GTORCH_QUICK_INPUT (C, a_copy_, 1);                                          \
      O o_[GTORCH_LOOP_BLOCK];                                                                   \
      int any_ = 0;                                                                              \
      _Pragma ("omp simd reduction(| : any_)") for (gint64 i_ = 0; i_ < GTORCH_WHOLE (m_); i_++) \
      {                                                                                          \
        const C A = a_[i_];                                                                      \
        o_[i_] = (O) (QUICK);                                                                    \
        any_ |= (RARE);                                                                          \
      }                                                                                          \
      for (gint64 i_ = 0; any_ && i_ < m_; i_++)                                                 \
        {                                                                                        \
          const C A = a_[i_];                                                                    \
          if (RARE)                                                                              \
            o_[i_] = (O) (EXPR);                                                                 \
        }                                                                                        \
      GTORCH_SCATTER (O, o_, data[0] + k_ * strides[0], strides[0], m_)                          \
    }

#define GTORCH_QUICK_LOOP_2(O, C, A, B, EXPR, QUICK, RARE)                                       \
  for (gint64 k_ = 0; k_ < n; k_ += GTORCH_LOOP_BLOCK)                                           \
    {                                                                                            \
      const gint64 m_ = n - k_ < GTORCH_LOOP_BLOCK ? n - k_ : GTORCH_LOOP_BLOCK;                 \
      C a_copy_[GTORCH_LOOP_BLOCK], b_copy_[GTORCH_LOOP_BLOCK];                                  \
      const C *a_ = GTORCH_QUICK_INPUT (C, a_copy_, 1);                                          \
      const C *b_ = GTORCH_QUICK_INPUT (C, b_copy_, 2);                                          \
      O o_[GTORCH_LOOP_BLOCK];                                                                   \
      int any_ = 0;                                                                              \
      _Pragma ("omp simd reduction(| : any_)") for (gint64 i_ = 0; i_ < GTORCH_WHOLE (m_); i_++) \
      {                                                                                          \
        const C A = a_[i_], B = b_[i_];                                                          \
        o_[i_] = (O) (QUICK);                                                                    \
        any_ |= (RARE);                                                                          \
      }                                                                                          \
      for (gint64 i_ = 0; any_ && i_ < m_; i_++)                                                 \
        {                                                                                        \
          const C A = a_[i_], B = b_[i_];                                                        \
          if (RARE)                                                                              \
            o_[i_] = (O) (EXPR);                                                                 \
        }                                                                                        \
      GTORCH_SCATTER (O, o_, data[0] + k_ * strides[0], strides[0], m_)                          \
    }

#define GT_SPECIAL static inline
#define GT_LARGE   static inline
#define GT_CALLED  static G_GNUC_UNUSED G_GNUC_NO_INLINE
#include "kernels/gtorch-division.h"
#include "kernels/gtorch-special.h"

/* --- functions for expressions, besides gtorch-cpu-math.h; generic in T --- */
#define gt_max(a, b) \
  ((a) != (a) || (a) > (b) ? (a) : (b)) /* a NaN in a wins; b must not be NaN (also in gt_min) */
#define gt_min(a, b)     ((a) != (a) || (a) < (b) ? (a) : (b))
#define gt_maximum(a, b) ((b) != (b) ? (b) : gt_max (a, b))
#define gt_minimum(a, b) ((b) != (b) ? (b) : gt_min (a, b))
#define gt_sign(x)       ((x) > 0 ? 1 : ((x) < 0 ? -1 : 0))
/* Equals 1 / (1 + exp (-x)), which would be 0 where the exponential overflows. The result is 1 from 37 on. */
#define gt_sigmoid(x)   (gt_exp_to_40 (x) / (1 + gt_exp_to_40 (x)))
#define gt_exp_to_40(x) exp ((x) > 40 ? (T) 40 : (x))
/* log (1 + exp (x)) without overflow */
#define gt_softplus(x) (((x) > 0 ? (x) : 0) + log1p (exp (-fabs (x))))

/* Limits x to the range from eps to 1 - eps, if eps is not NaN. NaN stays. */
#define gt_clip(x, eps) ((x) < (T) (eps) ? (T) (eps) : ((x) > 1 - (T) (eps) ? 1 - (T) (eps) : (x)))

/* gelu by tanh: u = sqrt (2/pi) (x + 0.044715 x^3), y = x (1 + tanh u) / 2 */
#define gt_gelu_u(x)  ((T) 0.7978845608028654 * ((x) + (T) 0.044715 * (x) * (x) * (x)))
#define gt_gelu_du(x) ((T) 0.7978845608028654 * (1 + (T) 0.134145 * (x) * (x)))
#define gt_sech2(u)   (1 - tanh (u) * tanh (u))
#define gt_gelu_tanh_grad(g, x) \
  ((g) * (T) 0.5 * (1 + tanh (gt_gelu_u (x)) + (x) *gt_sech2 (gt_gelu_u (x)) * gt_gelu_du (x)))
#define gt_gelu_tanh_second(x)                                          \
  (gt_sech2 (gt_gelu_u (x))                                             \
   * (gt_gelu_du (x) * (1 - (x) *tanh (gt_gelu_u (x)) * gt_gelu_du (x)) \
      + (x) * (T) (0.5 * 0.7978845608028654 * 0.26829) * (x)))

#define gt_complex(re, im) __builtin_complex (re, im)

/* The product of a complex number and a real one: that of two complex ones makes NaN of infinities. */
static inline GTorchComplex64
gt_times_c64 (GTorchComplex64 z, float factor)
{
  return gt_complex (creal (z) * factor, cimag (z) * factor);
}

static inline GTorchComplex128
gt_times_c128 (GTorchComplex128 z, double factor)
{
  return gt_complex (creal (z) * factor, cimag (z) * factor);
}

#define gt_times(z, factor) \
  _Generic((z), GTorchComplex64 : gt_times_c64, GTorchComplex128 : gt_times_c128) (z, factor)

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

/* Clamps to the 32-bit integers: bounds outside of them stand for infinities. */
static inline gint32
gt_clip_int32 (gint64 value)
{
  return (gint32) CLAMP (value, G_MININT32, G_MAXINT32);
}

/* Integer division by PyTorch's rules. Division by zero, which would trap, has already been refused on the
 * CPU. If another thread writes a zero meanwhile, the quotient is 0 and the remainder is the dividend. */
static inline gint64
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

static inline gint64
gt_remainder_int (gint64 a, gint64 b)
{
  gint64 r;

  if (b == 0 || b == -1)
    return b == 0 ? a : 0;
  r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

static inline gint64
gt_fmod_int (gint64 a, gint64 b)
{
  return b == 0 ? a : (b == -1 ? 0 : a % b);
}

static inline gint64
gt_trunc_div_int (gint64 a, gint64 b)
{
  return b == 0 ? 0 : (b == -1 ? (gint64) (0 - (guint64) a) : a / b);
}

static inline gint64
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

static inline gint64
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

static inline gint64
gt_lcm (gint64 a, gint64 b)
{
  const gint64 divisor = gt_gcd (a, b);
  const guint64 product = divisor != 0 ? (guint64) gt_trunc_div_int (a, divisor) * (guint64) b : 0;

  return (gint64) product < 0 ? (gint64) (0 - product) : (gint64) product;
}
