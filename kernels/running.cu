/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running extremes with their positions, running log-sum-exps, and the derivatives of the latter. They are
 * scans like running sums (scan.cu), but with more than one number per value. */

#include "gtorch-reduce.cuh"
#include "gtorch-scan-forms.cuh"

/* The greatest or least value so far: NaN if there was one; among equal values, the last one. */
template <typename Value, bool LEAST> struct gt_extreme
{
  struct C
  {
    Value value;
    uint32_t position;
  };
  static constexpr bool TWO = false, WITH = false, POSITIONS = true;
  GT_DEVICE C
  identity ()
  {
    return { LEAST ? gt_highest (Value) : gt_lowest (Value), 0 };
  }
  GT_DEVICE C
  combine (C a, C b)
  {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    const bool equal = a_is_nan ? b_is_nan : a.value == b.value;
    const bool better = b_is_nan || (LEAST ? b.value < a.value : b.value > a.value);

    return (equal ? b.position >= a.position : better && !a_is_nan) ? b : a;
  }
  template <typename M>
  GT_DEVICE C
  take (M x, M, uint64_t position)
  {
    return { gt_convert<Value>::from (x), (uint32_t) position };
  }
  template <typename M>
  GT_DEVICE M
  give (C x, M)
  {
    return gt_convert<M>::from (x.value);
  }
};

/* A sum of exponentials with factors, represented as sum * exp (most). */
template <typename R> struct gt_scaled
{
  R most, sum;
};

template <typename R> struct gt_exponentials
{
  typedef gt_scaled<R> C;
  static constexpr bool POSITIONS = false;
  GT_DEVICE C
  identity ()
  {
    return { (R) -INFINITY, (R) 0 };
  }
  GT_DEVICE C
  combine (C a, C b)
  {
    const C large = b.most > a.most ? b : a, small = b.most > a.most ? a : b;
    const R factor = large.most == small.most ? (R) 1 : exp (small.most - large.most);

    return { large.most, large.sum + small.sum * factor };
  }
  /* Makes a value. NaN is stored in the sum, as comparisons of `most` would lose it. */
  GT_DEVICE C
  of (R most, R number)
  {
    return { most == most ? most : (R) -INFINITY, most == most ? number : most };
  }
};

template <typename R> struct gt_log_sum : gt_exponentials<R>
{
  static constexpr bool TWO = false, WITH = false;
  template <typename M>
  GT_DEVICE gt_scaled<R>
  take (M x, M, uint64_t)
  {
    return gt_exponentials<R>::of (gt_convert<R>::from (x), (R) 1);
  }
  template <typename M>
  GT_DEVICE M
  give (gt_scaled<R> x, M)
  {
    return gt_convert<M>::from (x.most + log (x.sum));
  }
};

/* The gradient of running log-sum-exps, which scans from the end: it sums exponentials of the negated
 * totals, with the numbers as factors, and scales results by exp (x). An x of -infinity has the gradient
 * 0. */
template <typename R> struct gt_log_sum_backward : gt_exponentials<R>
{
  static constexpr bool TWO = true, WITH = true;
  template <typename M>
  GT_DEVICE gt_scaled<R>
  take (M total, M number, uint64_t)
  {
    return gt_exponentials<R>::of (-gt_convert<R>::from (total), gt_convert<R>::from (number));
  }
  template <typename M>
  GT_DEVICE M
  give (gt_scaled<R> sum, M with)
  {
    const R x = gt_convert<R>::from (with);

    return gt_convert<M>::from (x == (R) -INFINITY ? (R) 0 : exp (x + sum.most) * sum.sum);
  }
};

/* The forward-mode derivative of running log-sum-exps: it sums exponentials of x, with the numbers as
 * factors, and scales results by the exponentials of the negated totals. */
template <typename R> struct gt_log_sum_tangent : gt_exponentials<R>
{
  static constexpr bool TWO = true, WITH = true;
  template <typename M>
  GT_DEVICE gt_scaled<R>
  take (M x, M number, uint64_t)
  {
    const R most = gt_convert<R>::from (x);

    return gt_exponentials<R>::of (most,
                                   most == (R) -INFINITY ? (R) 0 : gt_convert<R>::from (number));
  }
  template <typename M>
  GT_DEVICE M
  give (gt_scaled<R> sum, M with)
  {
    const R total = gt_convert<R>::from (with);

    return gt_convert<M>::from (sum.most == total ? sum.sum : exp (sum.most - total) * sum.sum);
  }
};

#define FORMS(op, name, M, ...)                                   \
  GT_SCAN_FORM (short_rows, op, name, M, THREADS, 3, __VA_ARGS__) \
  GT_SCAN_FORM (rows, op, name, M, THREADS, 2, __VA_ARGS__)       \
  GT_SCAN_FORM (columns, op, name, M, THREADS, 2, __VA_ARGS__)

#define EXTREMES(name, M, Value)                      \
  FORMS (greatest, name, M, gt_extreme<Value, false>) \
  FORMS (least, name, M, gt_extreme<Value, true>)
EXTREMES (f32, float, float)
EXTREMES (f64, double, double)
EXTREMES (f16, gt_f16, float)
EXTREMES (bf16, gt_bf16, float)
EXTREMES (i32, gint32, gint32)
EXTREMES (i64, gint64, gint64)

#define LOG_SUMS(name, M, R)                                \
  FORMS (log_sum, name, M, gt_log_sum<R>)                   \
  FORMS (log_sum_backward, name, M, gt_log_sum_backward<R>) \
  FORMS (log_sum_tangent, name, M, gt_log_sum_tangent<R>)
LOG_SUMS (f32, float, float)
LOG_SUMS (f64, double, double)
LOG_SUMS (f16, gt_f16, float)
LOG_SUMS (bf16, gt_bf16, float)
