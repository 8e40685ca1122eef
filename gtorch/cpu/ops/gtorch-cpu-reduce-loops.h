/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The loop bodies of all reductions, for the generated files. */

#include <gtorch/cpu/ops/gtorch-cpu-reduce.h>

static inline int
gt_unordered_float (float x, float y)
{
  return __builtin_isunordered (x, y);
}

static inline int
gt_unordered_double (double x, double y)
{
  return __builtin_isunordered (x, y);
}

static inline int
gt_unordered_never (gint64 x, gint64 y)
{
  return 0;
}

/* Returns whether one of two elements is NaN, in a single comparison. */
#define gt_unordered(x, y)                \
  _Generic((x), float                     \
           : gt_unordered_float, double   \
           : gt_unordered_double, default \
           : gt_unordered_never) (x, y)

/* The type of a mask: as wide as `type` if that has NaNs, because vector comparisons give masks of that
 * width. */
#define GTORCH_REDUCE_MASK(type) \
  __typeof__ (_Generic((type) 0, float : (gint32) 0, double : (gint64) 0, default : (guint8) 0))

/* Bytes to prefetch: keeps memory busy across the end of a row, where the lanes are combined. */
#define GTORCH_REDUCE_AHEAD 4096

/* QUICK does what STEP does for elements that are not NaN. If there is a NaN, all elements go through STEP
 * again, so STEP must tolerate seeing an element twice. */
#define GTORCH_REDUCE_LOOP(name, suffix, type, INIT, STEP, HAS_QUICK, QUICK, COMBINE, FINISH)      \
  static void reduce_init_##name##_##suffix (void *acc_, gint64 n_)                                \
  {                                                                                                \
    typedef type T G_GNUC_UNUSED;                                                                  \
    type *a_ = acc_;                                                                               \
    for (gint64 i_ = 0; i_ < n_; i_++)                                                             \
      a_[i_] = (type) (INIT);                                                                      \
  }                                                                                                \
                                                                                                   \
  static void reduce_inner_##name##_##suffix (const void *x_, gint64 n_, void *acc_)               \
  {                                                                                                \
    enum                                                                                           \
    {                                                                                              \
      LANES = GTORCH_REDUCE_LANE_BYTES / sizeof (type)                                             \
    };                                                                                             \
    typedef type T G_GNUC_UNUSED;                                                                  \
    typedef GTORCH_REDUCE_MASK (type) Mask;                                                        \
    const type *p_ = x_;                                                                           \
    type lane_[LANES] __attribute__ ((aligned (64)));                                              \
    gint64 i_ = 0;                                                                                 \
    if (n_ < GTORCH_REDUCE_SHORT)                                                                  \
      {                                                                                            \
        type acc = (type) (INIT);                                                                  \
        for (; i_ < n_; i_++)                                                                      \
          {                                                                                        \
            const type x = p_[i_];                                                                 \
            acc = (type) (STEP);                                                                   \
          }                                                                                        \
        *(type *) acc_ = acc;                                                                      \
        return;                                                                                    \
      }                                                                                            \
    for (int l_ = 0; l_ < LANES; l_++)                                                             \
      lane_[l_] = (type) (INIT);                                                                   \
    if (HAS_QUICK)                                                                                 \
      {                                                                                            \
        Mask nan_[LANES / 2] __attribute__ ((aligned (64))) = { 0 };                               \
        Mask any_nan_ = 0;                                                                         \
        for (; i_ + LANES <= n_; i_ += LANES)                                                      \
          {                                                                                        \
            for (int b_ = 0; b_ < GTORCH_REDUCE_LANE_BYTES; b_ += 64)                              \
              __builtin_prefetch ((const char *) (p_ + i_) + GTORCH_REDUCE_AHEAD + b_);            \
            _Pragma ("omp simd") for (int l_ = 0; l_ < LANES / 2; l_++) nan_[l_] |=                \
                -(Mask) gt_unordered (p_[i_ + l_], p_[i_ + l_ + LANES / 2]);                       \
            _Pragma ("omp simd") for (int l_ = 0; l_ < LANES; l_++)                                \
            {                                                                                      \
              const type acc = lane_[l_], x = p_[i_ + l_];                                         \
              lane_[l_] = (type) (QUICK);                                                          \
            }                                                                                      \
          }                                                                                        \
        for (int l_ = 0; i_ + l_ < n_; l_++)                                                       \
          {                                                                                        \
            const type acc = lane_[l_], x = p_[i_ + l_];                                           \
            any_nan_ |= -(Mask) gt_unordered (x, x);                                               \
            lane_[l_] = (type) (QUICK);                                                            \
          }                                                                                        \
        for (int l_ = 0; l_ < LANES / 2; l_++)                                                     \
          any_nan_ |= nan_[l_];                                                                    \
        if (!any_nan_)                                                                             \
          {                                                                                        \
            for (int w_ = LANES / 2; w_ > 0; w_ /= 2)                                              \
              for (int l_ = 0; l_ < w_; l_++)                                                      \
                {                                                                                  \
                  const type acc = lane_[l_], x = lane_[l_ + w_];                                  \
                  lane_[l_] = (type) (QUICK);                                                      \
                }                                                                                  \
            *(type *) acc_ = lane_[0];                                                             \
            return;                                                                                \
          }                                                                                        \
        i_ = 0;                                                                                    \
      }                                                                                            \
    for (; i_ + LANES <= n_; i_ += LANES)                                                          \
      _Pragma ("omp simd") for (int l_ = 0; l_ < LANES; l_++)                                      \
      {                                                                                            \
        const type acc = lane_[l_], x = p_[i_ + l_];                                               \
        lane_[l_] = (type) (STEP);                                                                 \
      }                                                                                            \
    for (int l_ = 0; i_ + l_ < n_; l_++)                                                           \
      {                                                                                            \
        const type acc = lane_[l_], x = p_[i_ + l_];                                               \
        lane_[l_] = (type) (STEP);                                                                 \
      }                                                                                            \
    for (int w_ = LANES / 2; w_ > 0; w_ /= 2)                                                      \
      for (int l_ = 0; l_ < w_; l_++)                                                              \
        {                                                                                          \
          const type acc = lane_[l_], other = lane_[l_ + w_];                                      \
          lane_[l_] = (type) (COMBINE);                                                            \
        }                                                                                          \
    *(type *) acc_ = lane_[0];                                                                     \
  }                                                                                                \
                                                                                                   \
  static void reduce_outer_##name##_##suffix (const void *x_, gint64 stride_, gint64 rows_,        \
                                              gint64 columns_, void *acc_)                         \
  {                                                                                                \
    typedef type T G_GNUC_UNUSED;                                                                  \
    typedef GTORCH_REDUCE_MASK (type) Mask;                                                        \
    const type *p_ = x_;                                                                           \
    type *a_ = acc_;                                                                               \
    gint64 r_ = 0;                                                                                 \
    if (HAS_QUICK)                                                                                 \
      {                                                                                            \
        Mask any_nan_ = 0;                                                                         \
        for (; r_ + 4 <= rows_; r_ += 4, p_ += 4 * stride_)                                        \
          {                                                                                        \
            const type *p0_ = p_, *p1_ = p_ + stride_, *p2_ = p1_ + stride_, *p3_ = p2_ + stride_; \
            _Pragma ("omp simd reduction(| : any_nan_)") for (gint64 c_ = 0; c_ < columns_; c_++)  \
            {                                                                                      \
              type acc = a_[c_], x = p0_[c_];                                                      \
              any_nan_ |= -(Mask) gt_unordered (p0_[c_], p1_[c_]);                                 \
              any_nan_ |= -(Mask) gt_unordered (p2_[c_], p3_[c_]);                                 \
              acc = (type) (QUICK);                                                                \
              x = p1_[c_];                                                                         \
              acc = (type) (QUICK);                                                                \
              x = p2_[c_];                                                                         \
              acc = (type) (QUICK);                                                                \
              x = p3_[c_];                                                                         \
              a_[c_] = (type) (QUICK);                                                             \
            }                                                                                      \
          }                                                                                        \
        if (any_nan_)                                                                              \
          {                                                                                        \
            r_ = 0;                                                                                \
            p_ = x_;                                                                               \
          }                                                                                        \
      }                                                                                            \
    for (; r_ + 4 <= rows_; r_ += 4, p_ += 4 * stride_)                                            \
      {                                                                                            \
        const type *p0_ = p_, *p1_ = p_ + stride_, *p2_ = p1_ + stride_, *p3_ = p2_ + stride_;     \
        _Pragma ("omp simd") for (gint64 c_ = 0; c_ < columns_; c_++)                              \
        {                                                                                          \
          type acc = a_[c_], x = p0_[c_];                                                          \
          acc = (type) (STEP);                                                                     \
          x = p1_[c_];                                                                             \
          acc = (type) (STEP);                                                                     \
          x = p2_[c_];                                                                             \
          acc = (type) (STEP);                                                                     \
          x = p3_[c_];                                                                             \
          a_[c_] = (type) (STEP);                                                                  \
        }                                                                                          \
      }                                                                                            \
    for (; r_ < rows_; r_++, p_ += stride_)                                                        \
      _Pragma ("omp simd") for (gint64 c_ = 0; c_ < columns_; c_++)                                \
      {                                                                                            \
        const type acc = a_[c_], x = p_[c_];                                                       \
        a_[c_] = (type) (STEP);                                                                    \
      }                                                                                            \
  }                                                                                                \
                                                                                                   \
  static void reduce_combine_##name##_##suffix (void *acc_, const void *other_, gint64 n_)         \
  {                                                                                                \
    typedef type T G_GNUC_UNUSED;                                                                  \
    type *a_ = acc_;                                                                               \
    const type *o_ = other_;                                                                       \
    _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n_; i_++)                                        \
    {                                                                                              \
      const type acc = a_[i_], other = o_[i_];                                                     \
      a_[i_] = (type) (COMBINE);                                                                   \
    }                                                                                              \
  }                                                                                                \
                                                                                                   \
  static void reduce_finish_##name##_##suffix (void *acc_, gint64 n_, gint64 n)                    \
  {                                                                                                \
    typedef type T G_GNUC_UNUSED;                                                                  \
    type *a_ = acc_;                                                                               \
    for (gint64 i_ = 0; i_ < n_; i_++)                                                             \
      {                                                                                            \
        const type acc = a_[i_];                                                                   \
        a_[i_] = (type) (FINISH);                                                                  \
      }                                                                                            \
  }                                                                                                \
                                                                                                   \
  const GTorchReduceLoop GTORCH_ISA_SYMBOL (gtorch_reduce_##name##_##suffix) = {                   \
    reduce_init_##name##_##suffix,   reduce_inner_##name##_##suffix,                               \
    reduce_outer_##name##_##suffix,  reduce_combine_##name##_##suffix,                             \
    reduce_finish_##name##_##suffix,                                                               \
  };

/* Constants for reduction rows: the ends of a type's range. */
#define gt_lowest(T)                    \
  _Generic((T) 0, float                 \
           : -INFINITY, double          \
           : -(double) INFINITY, gint32 \
           : G_MININT32, gint64         \
           : G_MININT64, default : 0)
#define gt_highest(T)                  \
  _Generic((T) 0, float                \
           : INFINITY, double          \
           : (double) INFINITY, gint32 \
           : G_MAXINT32, gint64        \
           : G_MAXINT64, default : 1)
