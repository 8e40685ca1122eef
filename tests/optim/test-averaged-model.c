/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "test-device.h"

typedef struct
{
  GTorchSequential *net;
  GTorchLinear *linear;
} Net;

static void
net_init (Net *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchBatchNorm1d) norm = gtorch_batch_norm1d_new (1, &error);

  self->net = gtorch_sequential_new ();
  self->linear = gtorch_linear_new (1, 1, &error);
  g_assert_true (gtorch_sequential_append (self->net, GTORCH_MODULE (self->linear), &error));
  g_assert_true (gtorch_sequential_append (self->net, GTORCH_MODULE (norm), &error));
  g_assert_no_error (error);
}

static void
net_clear (Net *self)
{
  g_clear_object (&self->linear);
  g_clear_object (&self->net);
}

static void
set_weight (Net *self, gdouble value)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchParameter) weight =
      gtorch_module_get_parameter (GTORCH_MODULE (self->linear), "weight", NULL);

  g_assert_nonnull (gtorch_tensor_fill_inplace (GTORCH_TENSOR (weight), value, NULL));
}

static gdouble
get_average (GTorchAveragedModel *model)
{
  g_autoptr (GTorchParameter) weight =
      gtorch_module_get_parameter (GTORCH_MODULE (model), "module.0.weight", NULL);

  return gtorch_tensor_item_double (GTORCH_TENSOR (weight), NULL);
}

static gdouble
average (Net *net, GTorchAveragedModel *model)
{
  const gdouble values[] = { 0, 4, 8 };
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values); i++)
    {
      set_weight (net, values[i]);
      g_assert_true (
          gtorch_averaged_model_update_parameters (model, GTORCH_MODULE (net->net), &error));
      g_assert_no_error (error);
    }
  return get_average (model);
}

static GTorchAveragedModel *
new_average (Net *net)
{
  g_autoptr (GError) error = NULL;
  GTorchAveragedModel *model =
      gtorch_averaged_model_new (GTORCH_MODULE (net->net), NULL, FALSE, &error);

  g_assert_no_error (error);
  return model;
}

static GTorchTensor *
number_of (GTorchAveragedModel *self, GTorchTensor *averaged, GTorchTensor *current,
           GTorchTensor *n_averaged, gpointer user_data, GError **error)
{
  return gtorch_tensor_add_scalar (n_averaged, *(gint *) user_data, 1, error);
}

static gboolean
fail (GTorchAveragedModel *self, GTorchTensor **averaged, gsize n_tensors, GTorchTensor **current,
      gsize n_current, GTorchTensor *n_averaged, gpointer user_data, GError **error)
{
  g_assert_cmpuint (n_tensors, ==, 4);
  g_assert_cmpuint (n_current, ==, 4);
  return FALSE;
}

static void
test_models_have_the_same_weight (void)
{
  g_autoptr (GTorchAveragedModel) model = NULL;
  Net net;

  net_init (&net);
  model = new_average (&net);
  g_assert_cmpfloat_with_epsilon (average (&net, model), 4, 1e-6);
  net_clear (&net);
}

static void
test_newer_models_have_more_weight (void)
{
  g_autoptr (GTorchAveragedModel) model = NULL;
  Net net;

  net_init (&net);
  model = new_average (&net);
  g_object_set (model, "ema-decay", 0.5, NULL);
  g_assert_cmpfloat_with_epsilon (average (&net, model), 5, 1e-6);
  net_clear (&net);
}

static void
test_functions_average (void)
{
  g_autoptr (GTorchAveragedModel) model = NULL;
  g_autoptr (GError) error = NULL;
  gint more = 40;
  Net net;

  net_init (&net);
  model = new_average (&net);
  gtorch_averaged_model_set_avg_fn (model, number_of, &more, NULL);
  g_assert_cmpfloat (average (&net, model), ==, 42);
  gtorch_averaged_model_set_multi_avg_fn (model, fail, NULL, NULL);
  g_assert_false (gtorch_averaged_model_update_parameters (model, GTORCH_MODULE (net.net), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==,
                   "update_parameters: the function of GTorchAveragedModel failed without saying "
                   "why");
  net_clear (&net);
}

static void
test_other_models_are_refused (void)
{
  g_autoptr (GTorchLinear) other = gtorch_linear_new (2, 1, NULL);
  g_autoptr (GTorchAveragedModel) model = NULL;
  g_autoptr (GError) error = NULL;
  Net net;

  net_init (&net);
  model = new_average (&net);
  g_assert_false (gtorch_averaged_model_update_parameters (model, GTORCH_MODULE (other), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "update_parameters: the model has 2 parameters, its averages have 4");
  net_clear (&net);
}

static GTorchTensor *
next_batch (gpointer user_data, GError **error)
{
  gint *n = user_data;

  if (*n == 0)
    return NULL;
  if (--*n == 5)
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, "the file ends");
      return NULL;
    }
  return gtorch_ones (GTORCH_SHAPE (4, 1), GTORCH_DTYPE_NONE, NULL, error);
}

static void
test_update_bn_counts_batches (void)
{
  g_autoptr (GTorchTensor) count = NULL;
  g_autoptr (GError) error = NULL;
  gint n = 3;
  Net net;

  net_init (&net);
  gtorch_module_eval (GTORCH_MODULE (net.net));
  g_assert_true (gtorch_update_bn (GTORCH_MODULE (net.net), NULL, next_batch, &n, &error));
  g_assert_no_error (error);
  count = gtorch_module_get_buffer (GTORCH_MODULE (net.net), "1.num_batches_tracked", &error);
  g_assert_cmpfloat (gtorch_tensor_item_double (count, NULL), ==, 3);
  g_assert_false (gtorch_module_get_training (GTORCH_MODULE (net.net)));
  n = 7;
  g_assert_false (gtorch_update_bn (GTORCH_MODULE (net.net), NULL, next_batch, &n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "the file ends");
  g_assert_false (gtorch_module_get_training (GTORCH_MODULE (net.net)));
  net_clear (&net);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/AveragedModel/models_have_the_same_weight",
                   test_models_have_the_same_weight);
  g_test_add_func ("/GTorch/AveragedModel/newer_models_have_more_weight",
                   test_newer_models_have_more_weight);
  g_test_add_func ("/GTorch/AveragedModel/functions_average", test_functions_average);
  g_test_add_func ("/GTorch/AveragedModel/other_models_are_refused", test_other_models_are_refused);
  g_test_add_func ("/GTorch/AveragedModel/update_bn_counts_batches", test_update_bn_counts_batches);
  return g_test_run ();
}
