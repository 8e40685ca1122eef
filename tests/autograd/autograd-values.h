/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "test-device.h"

/* Small float64 tensors, and access to their values. */

G_GNUC_UNUSED static gdouble
value (GTorchTensor *tensor, gint64 i)
{
  g_assert_cmpint (gtorch_tensor_get_dtype (tensor), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_true (gtorch_tensor_is_contiguous (tensor));
  return test_element (tensor, i);
}

/* Returns a vector of `n` elements: start, start + 1, … */
G_GNUC_UNUSED static GTorchTensor *
leaf (gdouble start, gint64 n, gboolean requires_grad)
{
  GTorchTensor *tensor =
      gtorch_arange (start, start + n - 0.5, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);

  g_assert_true (gtorch_tensor_set_requires_grad (tensor, requires_grad, NULL));
  return tensor;
}

G_GNUC_UNUSED static GTorchTensor *
sum (GTorchTensor *tensor)
{
  return gtorch_tensor_sum (tensor, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
}

G_GNUC_UNUSED static void
backward (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;

  gtorch_tensor_backward (tensor, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
}

G_GNUC_UNUSED static void
backward_sum (GTorchTensor *tensor)
{
  g_autoptr (GTorchTensor) s = sum (tensor);

  backward (s);
}
