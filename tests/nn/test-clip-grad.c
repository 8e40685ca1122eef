/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Norms of many gradients, and changes of all of them: few or more than one launch takes, of all layouts and
 * dtypes. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <math.h>
#include <string.h>

#include "capture-test.h"
#include "test-device.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

/* Tensor i of a list: lines, transposed matrices, parts that are not aligned, numbers, and now and then a
 * long one; all its elements are representable in 16 bits. */
static GTorchTensor *
tensor_new (guint i, GTorchDType dtype)
{
  const gint64 n = i % 50 == 7 ? 30000 : 2 + i % 11;
  g_autoptr (GTorchTensor) line =
      gtorch_arange (0, (gdouble) n, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) few = gtorch_tensor_remainder_scalar (line, 7 + i % 3, NULL);
  g_autoptr (GTorchTensor) shifted = gtorch_tensor_sub_scalar (few, 3, 1, NULL);
  g_autoptr (GTorchTensor) values = gtorch_tensor_to_dtype (shifted, dtype, NULL);
  g_autoptr (GTorchTensor) whole = NULL;
  g_autoptr (GTorchTensor) matrix = NULL;

  if (i % 4 == 1)
    return gtorch_tensor_narrow (values, 0, 1, n - 1, NULL);
  if (i % 4 == 2)
    return gtorch_tensor_select (values, 0, 1, NULL);
  if (i % 4 == 0)
    return g_steal_pointer (&values);
  whole = gtorch_tensor_narrow (values, 0, 0, n / 2 * 2, NULL);
  matrix = gtorch_tensor_reshape (whole, GTORCH_SHAPE (n / 2, 2), NULL);
  return gtorch_tensor_t (matrix, NULL);
}

static GPtrArray *
list_new (guint n, GTorchDType dtype)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (list, tensor_new (i, dtype != GTORCH_DTYPE_NONE
                                              ? dtype
                                              : dtypes[i % G_N_ELEMENTS (dtypes)]));
  return list;
}

/* Returns parameters that have the tensors as gradients. */
static GPtrArray *
parameters_new (GPtrArray *grads)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < grads->len; i++)
    {
      GTorchTensor *param = gtorch_tensor_zeros_like (grads->pdata[i], GTORCH_DTYPE_NONE, NULL);

      g_assert_true (gtorch_tensor_set_requires_grad (param, TRUE, NULL));
      g_assert_true (gtorch_tensor_set_grad (param, grads->pdata[i], NULL));
      g_ptr_array_add (list, param);
    }
  return list;
}

static gdouble
number (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  const gdouble value = gtorch_tensor_item_double (tensor, &error);

  g_assert_no_error (error);
  return value;
}

/* Element by element, in float64. */
static gdouble
expected_norm (GPtrArray *list, gdouble degree)
{
  gdouble all = degree == -INFINITY ? INFINITY : 0;
  gsize n;

  for (guint i = 0; i < list->len; i++)
    {
      g_autofree gdouble *values = gtorch_tensor_to_doubles (list->pdata[i], &n, NULL);
      gdouble own = degree == -INFINITY ? INFINITY : 0;

      for (gsize k = 0; k < n; k++)
        {
          const gdouble x = fabs (values[k]);

          own = degree == INFINITY    ? fmax (own, x)
                : degree == -INFINITY ? fmin (own, x)
                : degree == 0         ? own + (x != 0)
                                      : own + pow (x, degree);
        }
      all = degree == INFINITY    ? fmax (all, own)
            : degree == -INFINITY ? fmin (all, own)
            : degree == 0         ? all + (own != 0) /* the norm of the norms */
                                  : all + own;
    }
  return degree == 0 || isinf (degree) ? all : pow (all, 1 / degree);
}

static void
norms_are_those_of_all_elements (void)
{
  static const guint counts[] = { 1, 60, 61, 500, 503 };
  static const gdouble degrees[] = { 2, 1, INFINITY, 0, 3.5, -INFINITY };

  for (guint c = 0; c < G_N_ELEMENTS (counts); c++)
    for (guint t = 0; t <= G_N_ELEMENTS (dtypes); t++)
      {
        const GTorchDType dtype = t < G_N_ELEMENTS (dtypes) ? dtypes[t] : GTORCH_DTYPE_NONE;
        g_autoptr (GPtrArray) list = list_new (counts[c], dtype);

        for (guint d = 0; d < G_N_ELEMENTS (degrees); d++)
          {
            g_autoptr (GError) error = NULL;
            g_autoptr (GTorchTensor) norm =
                gtorch_get_total_norm ((GTorchTensor **) list->pdata, list->len, degrees[d], FALSE,
                                       &error);
            const gdouble expected = expected_norm (list, degrees[d]);
            GTorchDType found;
            gdouble eps;

            g_assert_no_error (error);
            found = gtorch_tensor_get_dtype (norm);
            if (dtype != GTORCH_DTYPE_NONE)
              g_assert_cmpint (found, ==, dtype);
            eps = found == GTORCH_DTYPE_BFLOAT16  ? 0x1p-8
                  : found == GTORCH_DTYPE_FLOAT16 ? 0x1p-11
                                                  : 1e-6;
            if (found == GTORCH_DTYPE_FLOAT16 && expected > 65504)
              g_assert_true (isinf (number (norm)));
            else
              g_assert_cmpfloat_with_epsilon (number (norm), expected, eps * expected + 1e-9);
          }
      }
}

static void
what_is_not_a_number_is_in_the_norm (void)
{
  static const gdouble degrees[] = { 2, 1, INFINITY, 3, -INFINITY };
  g_autoptr (GPtrArray) list = list_new (70, GTORCH_DTYPE_FLOAT32);
  const gint64 shape[] = { 40000 };
  GTorchTensor *long_one = gtorch_ones (shape, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) element = gtorch_tensor_narrow (long_one, 0, 30001, 1, NULL);

  g_ptr_array_add (list, long_one);
  g_assert_nonnull (gtorch_tensor_fill_inplace (element, NAN, NULL));
  for (guint d = 0; d < G_N_ELEMENTS (degrees); d++)
    {
      g_autoptr (GTorchTensor) norm =
          gtorch_get_total_norm ((GTorchTensor **) list->pdata, list->len, degrees[d], FALSE, NULL);

      g_assert_true (isnan (number (norm)));
    }
}

static void
gradients_are_scaled_and_limited (void)
{
  static const guint counts[] = { 1, 61, 503 };

  for (guint c = 0; c < G_N_ELEMENTS (counts); c++)
    {
      g_autoptr (GPtrArray) grads = list_new (counts[c], GTORCH_DTYPE_NONE);
      g_autoptr (GPtrArray) before = list_new (counts[c], GTORCH_DTYPE_NONE);
      g_autoptr (GPtrArray) parameters = parameters_new (grads);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) norm = NULL;
      gdouble factor;
      gsize n, m;

      norm = gtorch_clip_grad_norm ((GTorchTensor **) parameters->pdata, parameters->len, 0.5, 2,
                                    FALSE, &error);
      g_assert_no_error (error);
      factor = 0.5 / (number (norm) + 1e-6);
      for (guint i = 0; i < grads->len; i++)
        {
          const GTorchDType dtype = gtorch_tensor_get_dtype (grads->pdata[i]);
          const gdouble eps = dtype == GTORCH_DTYPE_BFLOAT16  ? 0x1p-8
                              : dtype == GTORCH_DTYPE_FLOAT16 ? 0x1p-9
                                                              : 1e-6;
          g_autofree gdouble *values = gtorch_tensor_to_doubles (grads->pdata[i], &n, NULL);
          g_autofree gdouble *former = gtorch_tensor_to_doubles (before->pdata[i], &m, NULL);

          g_assert_cmpuint (n, ==, m);
          for (gsize k = 0; k < n; k++)
            g_assert_cmpfloat_with_epsilon (values[k], former[k] * factor,
                                            eps * fabs (former[k] * factor) + 1e-7);
        }
      g_ptr_array_unref (grads);
      g_ptr_array_unref (parameters);
      grads = list_new (counts[c], GTORCH_DTYPE_NONE);
      parameters = parameters_new (grads);
      g_assert_true (gtorch_clip_grad_value ((GTorchTensor **) parameters->pdata, parameters->len,
                                             1.5, &error));
      for (guint i = 0; i < grads->len; i++)
        {
          g_autofree gdouble *values = gtorch_tensor_to_doubles (grads->pdata[i], &n, NULL);
          g_autofree gdouble *former = gtorch_tensor_to_doubles (before->pdata[i], &m, NULL);

          for (gsize k = 0; k < n; k++)
            g_assert_cmpfloat (values[k], ==, CLAMP (former[k], -1.5, 1.5));
        }
    }
}

/* What shares memory is changed by one tensor after the other. */
static void
shared_gradients_are_changed_in_order (void)
{
  g_autoptr (GTorchTensor) grad =
      gtorch_full (GTORCH_SHAPE (20000), 3, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GPtrArray) grads = g_ptr_array_new ();
  g_autoptr (GPtrArray) parameters = NULL;
  g_autoptr (GTorchTensor) norm = gtorch_full (NULL, 0, 4 - 1e-6, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_ptr_array_add (grads, grad);
  g_ptr_array_add (grads, grad);
  parameters = parameters_new (grads);
  g_assert_true (gtorch_clip_grads_with_norm ((GTorchTensor **) parameters->pdata, parameters->len,
                                              2, norm, &error));
  g_assert_cmpfloat_with_epsilon (test_element (grad, 19999), 0.75, 1e-6);
}

static void
complex_and_empty_gradients_count (void)
{
  const gdouble parts[] = { 3, -4, 0, 12 };
  g_autoptr (GTorchTensor) real = gtorch_tensor_new_from_doubles (parts, 4, GTORCH_SHAPE (2, 2),
                                                                  GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GPtrArray) grads = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) parameters = NULL;
  g_autoptr (GTorchTensor) norm = NULL;
  g_autoptr (GTorchTensor) none = NULL;
  g_autoptr (GError) error = NULL;

  g_ptr_array_add (grads, gtorch_tensor_view_as_complex (real, NULL));
  g_ptr_array_add (grads, gtorch_zeros (GTORCH_SHAPE (0), GTORCH_DTYPE_FLOAT32, NULL, NULL));
  parameters = parameters_new (grads);
  norm = gtorch_clip_grad_norm ((GTorchTensor **) parameters->pdata, parameters->len, 6.5, 2, FALSE,
                                &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (number (norm), ==, 13);
  g_assert_cmpfloat_with_epsilon (test_element (real, 3), 6, 1e-5);
  none =
      gtorch_get_total_norm ((GTorchTensor **) grads->pdata, grads->len, INFINITY, FALSE, &error);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_false (
      gtorch_clip_grad_value ((GTorchTensor **) parameters->pdata, parameters->len, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_nonnull (strstr (error->message, "complex64"));
}

static void
clipping_is_captured (void)
{
  g_autoptr (GPtrArray) grads = NULL;
  g_autoptr (GPtrArray) parameters = NULL;
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GTorchTensor) norm = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture;

  if (!test_can_capture ())
    return;
  grads = list_new (501, GTORCH_DTYPE_FLOAT32);
  parameters = parameters_new (grads);
  norm = gtorch_clip_grad_norm ((GTorchTensor **) parameters->pdata, parameters->len, 1, 2, FALSE,
                                &error);
  g_assert_no_error (error);
  g_clear_object (&norm);
  graph = gtorch_cuda_graph_new ();
  capture = begin (graph, NULL, NULL);
  norm = gtorch_clip_grad_norm ((GTorchTensor **) parameters->pdata, parameters->len, 1, 2, FALSE,
                                &error);
  g_assert_no_error (error);
  end (capture);
  for (gdouble value = 1; value < 3; value++)
    {
      gdouble expected;

      for (guint i = 0; i < grads->len; i++)
        g_assert_nonnull (gtorch_tensor_fill_inplace (grads->pdata[i], value, NULL));
      expected = expected_norm (grads, 2);
      gtorch_cuda_graph_replay (graph, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat_with_epsilon (number (norm), expected, 1e-5 * expected);
      g_assert_cmpfloat_with_epsilon (test_element (grads->pdata[500], 0), value / expected, 1e-6);
    }
}

#define ADD(name) g_test_add_func ("/GTorch/clip_grad/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (norms_are_those_of_all_elements);
  ADD (what_is_not_a_number_is_in_the_norm);
  ADD (gradients_are_scaled_and_limited);
  ADD (shared_gradients_are_changed_in_order);
  ADD (complex_and_empty_gradients_count);
  ADD (clipping_is_captured);
  return g_test_run ();
}
