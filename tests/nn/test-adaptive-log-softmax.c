/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

static GTorchTensor *
waves (const gint64 *shape, gsize n_dims)
{
  g_autofree gdouble *values = NULL;
  gint64 n = 1;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = sin ((gdouble) i + 1);
  return gtorch_tensor_new_from_doubles (values, n, shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL,
                                         NULL);
}

/* A layer whose parameters are waves. */
static GTorchAdaptiveLogSoftmaxWithLoss *
make (void)
{
  const gint64 numbers[] = { 2, 5 };
  g_autoptr (GTorchSize) cutoffs = gtorch_size_new (numbers, 2);
  GError *error = NULL;
  GTorchModule *layer =
      gtorch_module_new (GTORCH_TYPE_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS, &error, "in-features",
                         (gint64) 8, "n-classes", (gint64) 10, "cutoffs", cutoffs, "div-value", 2.0,
                         "head-bias", TRUE, "dtype", GTORCH_DTYPE_FLOAT64, NULL);
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  g_assert_no_error (error);
  parameters = gtorch_module_get_parameters (layer, TRUE);
  g_assert_cmpuint (g_list_model_get_n_items (parameters), ==, 6);
  for (guint i = 0; i < 6; i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
      gsize n_dims;
      const gint64 *shape = gtorch_tensor_get_shape (parameter, &n_dims);
      g_autoptr (GTorchTensor) values = waves (shape, n_dims);

      g_assert_true (gtorch_tensor_copy_inplace (parameter, values, FALSE, &error));
    }
  return GTORCH_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS (layer);
}

static GTorchTensor *
make_target (void)
{
  const gint64 classes[] = { 9, 0, 3, 1, 4, 5 };

  return gtorch_tensor_new_from_ints (classes, 6, GTORCH_SHAPE (6), GTORCH_DTYPE_INT64, NULL, NULL);
}

static void
assert_numbers (GTorchTensor *tensor, const gdouble *expected, gsize n)
{
  gsize n_found;
  g_autofree gdouble *found = gtorch_tensor_to_doubles (tensor, &n_found, NULL);

  g_assert_cmpuint (n_found, ==, n);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (found[i], expected[i], 1e-9);
}

/* Computed by PyTorch. */
static const gdouble outputs[] = { -6.35409249418, -3.93389400262, -0.0146120948154,
                                   -5.69024197505, -9.37885253549, -10.2858325426 };
static const gdouble the_loss = 5.9429209408;

static void
outputs_and_loss_are_pytorchs (void)
{
  g_autoptr (GTorchAdaptiveLogSoftmaxWithLoss) layer = make ();
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (6, 8));
  g_autoptr (GTorchTensor) target = make_target ();
  g_autoptr (GTorchTensor) output = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) same = NULL;
  GTorchTensor *inputs[] = { x, target };
  GError *error = NULL;

  g_assert_true (
      gtorch_adaptive_log_softmax_with_loss_forward (layer, x, target, &output, &loss, &error));
  g_assert_no_error (error);
  assert_numbers (output, outputs, 6);
  assert_numbers (loss, &the_loss, 1);
  same = gtorch_module_forward_many (GTORCH_MODULE (layer), inputs, 2, &error);
  g_assert_no_error (error);
  assert_numbers (same, outputs, 6);
}

static void
predictions_are_the_most_probable_classes (void)
{
  g_autoptr (GTorchAdaptiveLogSoftmaxWithLoss) layer = make ();
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (6, 8));
  const gint64 last = 1;
  GError *error = NULL;

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) input = gtorch_tensor_mul_scalar (x, i == 0 ? 1 : -1, &error);
      g_autoptr (GTorchTensor) all =
          gtorch_adaptive_log_softmax_with_loss_log_prob (layer, input, &error);
      g_autoptr (GTorchTensor) found =
          gtorch_adaptive_log_softmax_with_loss_predict (layer, input, &error);
      g_autoptr (GTorchTensor) expected = gtorch_tensor_argmax (all, &last, 1, FALSE, &error);
      g_autofree gdouble *numbers = NULL;
      gsize n;

      g_assert_no_error (error);
      numbers = gtorch_tensor_to_doubles (expected, &n, NULL);
      assert_numbers (found, numbers, n);
    }
}

static void
targets_that_are_no_class_are_named (void)
{
  g_autoptr (GTorchAdaptiveLogSoftmaxWithLoss) layer = make ();
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (2, 8));
  const gint64 classes[] = { 0, 10 };
  g_autoptr (GTorchTensor) target =
      gtorch_tensor_new_from_ints (classes, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) row = waves (GTORCH_SHAPE (8));
  GTorchTensor *output = NULL, *loss = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_false (
      gtorch_adaptive_log_softmax_with_loss_forward (layer, x, target, &output, &loss, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==,
                   "AdaptiveLogSoftmaxWithLoss: number 1 of the targets is 10, it must be from 0 "
                   "to 9");
  g_assert_null (output);
  g_assert_null (loss);
  g_clear_error (&error);
  g_assert_false (
      gtorch_adaptive_log_softmax_with_loss_forward (layer, row, target, &output, &loss, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_adaptive_log_softmax_with_loss_predict (layer, row, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

static void
bad_cutoffs_are_named (void)
{
  const gint64 numbers[] = { 5, 5 };
  g_autoptr (GTorchSize) same = gtorch_size_new (numbers, 2);
  g_autoptr (GTorchSize) none = gtorch_size_new (NULL, 0);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_adaptive_log_softmax_with_loss_new (8, 10, same, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "AdaptiveLogSoftmaxWithLoss: number 1 of cutoffs is 5, they must ascend from 1 "
                   "to "
                   "n_classes - 1, which is 9");
  g_clear_error (&error);
  g_assert_null (gtorch_adaptive_log_softmax_with_loss_new (8, 10, none, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

#define ADD(name) g_test_add_func ("/GTorch/AdaptiveLogSoftmaxWithLoss/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (outputs_and_loss_are_pytorchs);
  ADD (predictions_are_the_most_probable_classes);
  ADD (targets_that_are_no_class_are_named);
  ADD (bad_cutoffs_are_named);
  return g_test_run ();
}
