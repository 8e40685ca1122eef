/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations under a mask give what they give without the elements that do not count, also where there is no
 * other element, and in integers. */

#include "config.h"

#include <math.h>

#include <gtorch/base/gtorch-none.h>

#include "op-values.h"

#define NONE GTORCH_DTYPE_NONE

static const gint64 last = 1;

/* [-3, 2, 5], [1, 100, 4] and [7, 8, 9], of which the mask leaves -3 and 5, none, and 7 and 8. */
static GTorchImpl *
numbers (GTorchDType dtype)
{
  static const gdouble values[] = { -3, 2, 5, 1, 100, 4, 7, 8, 9 };
  g_autoptr (GTorchImpl) impl =
      gtorch_impl_new (gtorch_device_cpu (), dtype, (const gint64[]){ 3, 3 }, 2, NULL);
  gint64 i;

  for (i = 0; i < 9; i++)
    element_set (impl, i, values[i]);
  return impl_to_test_device (impl);
}

static GTorchImpl *
mask_new (void)
{
  static const gboolean counts[] = { 1, 0, 1, 0, 0, 0, 1, 1, 0 };
  g_autoptr (GTorchImpl) impl =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_BOOL, (const gint64[]){ 3, 3 }, 2, NULL);
  gint64 i;

  for (i = 0; i < 9; i++)
    element_set (impl, i, counts[i]);
  return impl_to_test_device (impl);
}

static void
check (const gchar *what, GTorchImpl *found, GError *error, const gdouble *wanted, gint64 n)
{
  g_autoptr (GTorchImpl) impl = found;
  g_autoptr (GTorchImpl) host = NULL;
  gint64 i;

  if (error != NULL && is_lacking (error))
    {
      g_error_free (error);
      return;
    }
  g_assert_no_error (error);
  host = impl_to_host (impl);
  g_assert_cmpint (impl->numel, ==, n);
  for (i = 0; i < n; i++)
    {
      const gdouble value = creal (element_get (host, i));

      if (isnan (wanted[i]) ? isnan (value)
                            : value == wanted[i] || fabs (value - wanted[i]) < 1e-12)
        continue;
      g_test_message ("%s: element %d is %g and not %g", what, (gint) i, value, wanted[i]);
      g_test_fail ();
    }
}

#define CHECK(call, ...)                                        \
  {                                                             \
    GError *error = NULL;                                       \
    GTorchImpl *found = gtorch_op_masked_##call;                \
    const gdouble wanted[] = { __VA_ARGS__ };                   \
                                                                \
    check (#call, found, error, wanted, G_N_ELEMENTS (wanted)); \
  }

static void
reductions_leave_out_what_does_not_count (void)
{
  g_autoptr (GTorchImpl) x = numbers (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchImpl) mask = mask_new ();

  CHECK (sum (x, &last, 1, FALSE, NONE, mask, &error), 2, 0, 15)
  CHECK (sum (x, NULL, 0, FALSE, NONE, mask, &error), 17)
  CHECK (sum (x, &last, 1, FALSE, NONE, NULL, &error), 4, 105, 24)
  CHECK (prod (x, &last, 1, TRUE, NONE, mask, &error), -15, 1, 56)
  CHECK (amax (x, &last, 1, FALSE, NONE, mask, &error), 5, -INFINITY, 8)
  CHECK (amin (x, &last, 1, FALSE, NONE, mask, &error), -3, INFINITY, 7)
  CHECK (argmax (x, 1, FALSE, NONE, mask, &error), 2, 0, 1)
  CHECK (argmax (x, GTORCH_NONE, FALSE, NONE, mask, &error), 7)
  CHECK (argmin (x, 1, FALSE, NONE, mask, &error), 0, 0, 0)
  CHECK (mean (x, &last, 1, FALSE, NONE, mask, &error), 1, NAN, 7.5)
  CHECK (median (x, -1, FALSE, NONE, mask, &error), -3, NAN, 7)
  CHECK (var (x, &last, 1, 1, FALSE, NONE, mask, &error), 32, NAN, 0.5)
  CHECK (std (x, &last, 1, 0, FALSE, NONE, mask, &error), 4, NAN, 0.5)
  CHECK (norm (x, 1, &last, 1, FALSE, NONE, mask, &error), 8, 0, 15)
  CHECK (norm (x, -INFINITY, &last, 1, FALSE, NONE, mask, &error), 3, INFINITY, 7)
  CHECK (logsumexp (x, &last, 1, FALSE, NONE, mask, &error), 5 + log1p (exp (-8)), -INFINITY,
         8 + log1p (exp (-1)))
}

static void
lines_leave_out_what_does_not_count (void)
{
  const gdouble share = 1 / (1 + exp (-8)), other = 1 / (1 + exp (-1));
  g_autoptr (GTorchImpl) x = numbers (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchImpl) mask = mask_new ();

  CHECK (cumsum (x, 1, NONE, mask, &error), -3, -3, 2, 0, 0, 0, 7, 15, 15)
  CHECK (cumprod (x, 1, NONE, mask, &error), -3, -3, -15, 1, 1, 1, 7, 56, 56)
  CHECK (softmax (x, 1, NONE, mask, &error), 1 - share, 0, share, NAN, NAN, NAN, 1 - other, other,
         0)
  CHECK (softmin (x, 1, NONE, mask, &error), share, 0, 1 - share, NAN, NAN, NAN, other, 1 - other,
         0)
  CHECK (log_softmax (x, 1, NONE, mask, &error), -8 + log (share), -INFINITY, log (share), NAN, NAN,
         NAN, -1 + log (other), log (other), -INFINITY)
  CHECK (normalize (x, 1, 1, 1e-12, NONE, mask, &error), -0.375, 0, 0.625, 0, 0, 0, 7.0 / 15,
         8.0 / 15, 0)
  CHECK (logaddexp (x, x, NONE, mask, NULL, &error), -3 + log (2), 2, 5 + log (2), 1, 100, 4,
         7 + log (2), 8 + log (2), 9)
}

static void
integers_have_bounds_in_place_of_infinities (void)
{
  g_autoptr (GTorchImpl) x = numbers (GTORCH_DTYPE_INT8);
  g_autoptr (GTorchImpl) mask = mask_new ();
  g_autoptr (GTorchImpl) column = gtorch_op_slice (mask, 0, 0, 1, 1, NULL);

  CHECK (sum (x, &last, 1, FALSE, NONE, mask, &error), 2, 0, 15)
  CHECK (amax (x, &last, 1, FALSE, NONE, mask, &error), 5, -128, 8)
  CHECK (amin (x, &last, 1, FALSE, NONE, mask, &error), -3, 127, 7)
  CHECK (cumsum (x, 1, NONE, mask, &error), -3, -3, 2, 0, 0, 0, 7, 15, 15)
  CHECK (median (x, 1, TRUE, NONE, column, &error), -3, 1, 7)
  CHECK (var (x, &last, 1, 1, FALSE, GTORCH_DTYPE_FLOAT64, mask, &error), 32, NAN, 0.5)
}

#define REFUSED(call, code_, text)               \
  {                                              \
    GError *error = NULL;                        \
    GTorchImpl *made_ = gtorch_op_masked_##call; \
                                                 \
    g_assert_null (made_);                       \
    g_assert_error (error, GTORCH_ERROR, code_); \
    g_assert_cmpstr (error->message, ==, text);  \
    g_clear_error (&error);                      \
  }

static void
what_has_no_result_is_refused (void)
{
  g_autoptr (GTorchImpl) x = numbers (GTORCH_DTYPE_INT32);
  g_autoptr (GTorchImpl) row = gtorch_op_select (x, 0, 0, NULL);
  g_autoptr (GTorchImpl) mask = mask_new ();

  REFUSED (sum (row, NULL, 0, FALSE, NONE, mask, &error), GTORCH_ERROR_SHAPE,
           "masked_sum: a mask of shape [3, 3] cannot be expanded to the shape [3]");
  REFUSED (mean (x, NULL, 0, FALSE, NONE, mask, &error), GTORCH_ERROR_DTYPE,
           "masked_mean: not defined for dtype int32");
  REFUSED (softmax (x, 0, NONE, mask, &error), GTORCH_ERROR_DTYPE,
           "masked_softmax: not defined for dtype int32");
  REFUSED (median (x, 1, FALSE, NONE, mask, &error), GTORCH_ERROR_INVALID,
           "masked_median: the mask leaves a line of integers without an element, which has no "
           "median");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/masked/" #name, name)
  TEST (reductions_leave_out_what_does_not_count);
  TEST (lines_leave_out_what_does_not_count);
  TEST (integers_have_bounds_in_place_of_infinities);
  TEST (what_has_no_result_is_refused);
  return g_test_run ();
}
