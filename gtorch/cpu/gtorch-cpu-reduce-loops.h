/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The loop bodies of every reduction, for the generated files. */

#include <gtorch/cpu/gtorch-cpu-reduce.h>

#define GTORCH_REDUCE_LOOP(name, suffix, type, INIT, STEP, COMBINE, FINISH)                    \
  static void reduce_init_##name##_##suffix (void *acc_, gint64 n_)                            \
  {                                                                                            \
    typedef type T G_GNUC_UNUSED;                                                              \
    type *a_ = acc_;                                                                           \
    for (gint64 i_ = 0; i_ < n_; i_++)                                                         \
      a_[i_] = (type) (INIT);                                                                  \
  }                                                                                            \
                                                                                               \
  static void reduce_inner_##name##_##suffix (const void *x_, gint64 n_, void *acc_)           \
  {                                                                                            \
    enum                                                                                       \
    {                                                                                          \
      LANES = GTORCH_REDUCE_LANE_BYTES / sizeof (type)                                         \
    };                                                                                         \
    typedef type T G_GNUC_UNUSED;                                                              \
    const type *p_ = x_;                                                                       \
    type lane_[LANES] __attribute__ ((aligned (64)));                                          \
    gint64 i_ = 0;                                                                             \
    if (n_ < GTORCH_REDUCE_SHORT)                                                              \
      {                                                                                        \
        type acc = (type) (INIT);                                                              \
        for (; i_ < n_; i_++)                                                                  \
          {                                                                                    \
            const type x = p_[i_];                                                             \
            acc = (type) (STEP);                                                               \
          }                                                                                    \
        *(type *) acc_ = acc;                                                                  \
        return;                                                                                \
      }                                                                                        \
    for (int l_ = 0; l_ < LANES; l_++)                                                         \
      lane_[l_] = (type) (INIT);                                                               \
    for (; i_ + LANES <= n_; i_ += LANES)                                                      \
      _Pragma ("omp simd") for (int l_ = 0; l_ < LANES; l_++)                                  \
      {                                                                                        \
        const type acc = lane_[l_], x = p_[i_ + l_];                                           \
        lane_[l_] = (type) (STEP);                                                             \
      }                                                                                        \
    for (int l_ = 0; i_ + l_ < n_; l_++)                                                       \
      {                                                                                        \
        const type acc = lane_[l_], x = p_[i_ + l_];                                           \
        lane_[l_] = (type) (STEP);                                                             \
      }                                                                                        \
    for (int w_ = LANES / 2; w_ > 0; w_ /= 2)                                                  \
      for (int l_ = 0; l_ < w_; l_++)                                                          \
        {                                                                                      \
          const type acc = lane_[l_], other = lane_[l_ + w_];                                  \
          lane_[l_] = (type) (COMBINE);                                                        \
        }                                                                                      \
    *(type *) acc_ = lane_[0];                                                                 \
  }                                                                                            \
                                                                                               \
  static void reduce_outer_##name##_##suffix (const void *x_, gint64 stride_, gint64 rows_,    \
                                              gint64 columns_, void *acc_)                     \
  {                                                                                            \
    typedef type T G_GNUC_UNUSED;                                                              \
    const type *p_ = x_;                                                                       \
    type *a_ = acc_;                                                                           \
    gint64 r_ = 0;                                                                             \
    for (; r_ + 4 <= rows_; r_ += 4, p_ += 4 * stride_)                                        \
      {                                                                                        \
        const type *p0_ = p_, *p1_ = p_ + stride_, *p2_ = p1_ + stride_, *p3_ = p2_ + stride_; \
        _Pragma ("omp simd") for (gint64 c_ = 0; c_ < columns_; c_++)                          \
        {                                                                                      \
          type acc = a_[c_], x = p0_[c_];                                                      \
          acc = (type) (STEP);                                                                 \
          x = p1_[c_];                                                                         \
          acc = (type) (STEP);                                                                 \
          x = p2_[c_];                                                                         \
          acc = (type) (STEP);                                                                 \
          x = p3_[c_];                                                                         \
          a_[c_] = (type) (STEP);                                                              \
        }                                                                                      \
      }                                                                                        \
    for (; r_ < rows_; r_++, p_ += stride_)                                                    \
      _Pragma ("omp simd") for (gint64 c_ = 0; c_ < columns_; c_++)                            \
      {                                                                                        \
        const type acc = a_[c_], x = p_[c_];                                                   \
        a_[c_] = (type) (STEP);                                                                \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void reduce_combine_##name##_##suffix (void *acc_, const void *other_, gint64 n_)     \
  {                                                                                            \
    typedef type T G_GNUC_UNUSED;                                                              \
    type *a_ = acc_;                                                                           \
    const type *o_ = other_;                                                                   \
    _Pragma ("omp simd") for (gint64 i_ = 0; i_ < n_; i_++)                                    \
    {                                                                                          \
      const type acc = a_[i_], other = o_[i_];                                                 \
      a_[i_] = (type) (COMBINE);                                                               \
    }                                                                                          \
  }                                                                                            \
                                                                                               \
  static void reduce_finish_##name##_##suffix (void *acc_, gint64 n_, gint64 n)                \
  {                                                                                            \
    typedef type T G_GNUC_UNUSED;                                                              \
    type *a_ = acc_;                                                                           \
    for (gint64 i_ = 0; i_ < n_; i_++)                                                         \
      {                                                                                        \
        const type acc = a_[i_];                                                               \
        a_[i_] = (type) (FINISH);                                                              \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  const GTorchReduceLoop GTORCH_ISA_SYMBOL (gtorch_reduce_##name##_##suffix) = {               \
    reduce_init_##name##_##suffix,   reduce_inner_##name##_##suffix,                           \
    reduce_outer_##name##_##suffix,  reduce_combine_##name##_##suffix,                         \
    reduce_finish_##name##_##suffix,                                                           \
  };

/* What the rows may use: the ends of a type's range. */
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
