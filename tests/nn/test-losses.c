/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "members.h"

/* clang-format off */
/* Written by reference.py beside this file, with PyTorch 2.11. */
static const struct
{
  const gchar *name;
  gdouble loss;
  gdouble gradient;
} reference[] = {
  { "mse", 1.0180326169018927, 0.9155130982689498 },
  { "l1_sum", 9.365461391768683, 2.710431101273517 },
  { "nll", -0.06790201404810318, 0.22936573695685816 },
  { "cross_entropy", 1.281497352801961, 0.44180253689997173 },
  { "cross_entropy_full", 6.004631701531005, 2.0147919775396788 },
  { "bce_with_logits", 0.679885382621361, 0.08749117275525414 },
};
/* clang-format on */

static GTorchTensor *
waves (const gint64 *shape, gsize n_dims)
{
  gint64 n = 1;
  g_autofree gdouble *values = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = sin ((gdouble) i + 1);
  return gtorch_tensor_new_from_doubles (values, n, shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL,
                                         NULL);
}

static gpointer
loss_new (const gchar *name)
{
  const gdouble values[] = { 0.5, 1, 2 };
  g_autoptr (GTorchTensor) weight =
      gtorch_tensor_new_from_doubles (values, 3, GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT64, NULL,
                                      NULL);

  if (g_str_equal (name, "mse"))
    return gtorch_mse_loss_new ();
  if (g_str_equal (name, "l1_sum"))
    return g_object_new (GTORCH_TYPE_L1_LOSS, "reduction", GTORCH_REDUCTION_SUM, NULL);
  if (g_str_equal (name, "nll"))
    return g_object_new (GTORCH_TYPE_NLL_LOSS, "weight", weight, "ignore-index", (gint64) 0, NULL);
  if (g_str_equal (name, "cross_entropy"))
    return gtorch_cross_entropy_loss_new ();
  if (g_str_equal (name, "cross_entropy_full"))
    return g_object_new (GTORCH_TYPE_CROSS_ENTROPY_LOSS, "weight", weight, "label-smoothing", 0.2,
                         "reduction", GTORCH_REDUCTION_SUM, NULL);
  return g_object_new (GTORCH_TYPE_BCE_WITH_LOGITS_LOSS, "pos-weight", weight, NULL);
}

static void
losses_are_pytorchs (void)
{
  const gint64 classes[] = { 2, 0, 1, 1 };
  g_autoptr (GTorchTensor) labels =
      gtorch_tensor_new_from_ints (classes, 4, GTORCH_SHAPE (4), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) numbers = gtorch_arange (0, 12, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) cosines = gtorch_tensor_cos (numbers, NULL);
  g_autoptr (GTorchTensor) positive = gtorch_tensor_abs (cosines, NULL);
  g_autoptr (GTorchTensor) targets = gtorch_tensor_reshape (positive, GTORCH_SHAPE (4, 3), NULL);

  for (guint i = 0; i < G_N_ELEMENTS (reference); i++)
    {
      g_autoptr (GTorchLoss) loss = loss_new (reference[i].name);
      g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (4, 3));
      gboolean by_class =
          strstr ("nll cross_entropy cross_entropy_full", reference[i].name) != NULL;
      g_autoptr (GTorchTensor) value = NULL;
      g_autoptr (GTorchTensor) again = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autofree gdouble *grads = NULL;
      GTorchTensor *inputs[] = { x, by_class ? labels : targets };
      g_autoptr (GError) error = NULL;
      gdouble sum = 0;
      gsize n;

      g_test_message ("%s", reference[i].name);
      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      value = gtorch_loss_forward (loss, x, inputs[1], &error);
      g_assert_no_error (error);
      again = gtorch_module_forward_many (GTORCH_MODULE (loss), inputs, 2, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat_with_epsilon (gtorch_tensor_item_double (value, NULL), reference[i].loss,
                                      1e-12);
      g_assert_cmpfloat (gtorch_tensor_item_double (value, NULL), ==,
                         gtorch_tensor_item_double (again, NULL));
      g_assert_true (gtorch_tensor_backward (value, NULL, FALSE, FALSE, &error));
      grad = gtorch_tensor_get_grad (x);
      grads = gtorch_tensor_to_doubles (grad, &n, NULL);
      for (gsize j = 0; j < n; j++)
        sum += grads[j] * cos ((gdouble) j);
      g_assert_cmpfloat_with_epsilon (sum, reference[i].gradient, 1e-12);
    }
}

static void
weights_are_buffers (void)
{
  g_autoptr (GTorchModule) loss = loss_new ("cross_entropy_full");
  g_auto (GStrv) names = gtorch_module_get_state_names (loss);

  g_assert_cmpstr (names[0], ==, "weight");
  g_assert_true (gtorch_module_to (loss, NULL, GTORCH_DTYPE_FLOAT32, NULL));
  g_assert_cmpint (gtorch_tensor_get_dtype (test_buffer (loss, "weight")), ==,
                   GTORCH_DTYPE_FLOAT32);
}

static void
wrong_targets_are_errors (void)
{
  g_autoptr (GTorchLoss) loss = loss_new ("mse");
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (4, 3));
  g_autoptr (GTorchTensor) y = waves (GTORCH_SHAPE (5));
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_loss_forward (loss, x, y, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (loss), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "MSELoss: forward for one input is not implemented");
}

#define TEST_TYPE_LOSS (test_loss_get_type ())
G_DECLARE_FINAL_TYPE (TestLoss, test_loss, TEST, LOSS, GTorchLoss)

struct _TestLoss
{
  GTorchLoss parent_instance;
};

G_DEFINE_TYPE (TestLoss, test_loss, GTORCH_TYPE_LOSS)

static GTorchTensor *
test_loss_compute (GTorchLoss *self, GTorchTensor *input, GTorchTensor *target, GError **error)
{
  return gtorch_tensor_get_numel (target) > 2 ? gtorch_tensor_sub (input, target, 1, error) : NULL;
}

static void
test_loss_class_init (TestLossClass *klass)
{
  GTORCH_LOSS_CLASS (klass)->compute = test_loss_compute;
}

static void
test_loss_init (TestLoss *self)
{
}

static void
subclasses_compute (void)
{
  g_autoptr (GTorchLoss) loss = g_object_new (TEST_TYPE_LOSS, NULL);
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (3));
  g_autoptr (GTorchTensor) one = waves (GTORCH_SHAPE (1));
  g_autoptr (GTorchTensor) difference = gtorch_loss_forward (loss, x, x, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gtorch_tensor_get_numel (difference), ==, 3);
  g_assert_null (gtorch_loss_forward (loss, x, one, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
}

#define ADD(name) g_test_add_func ("/GTorch/Losses/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (losses_are_pytorchs);
  ADD (weights_are_buffers);
  ADD (wrong_targets_are_errors);
  ADD (subclasses_compute);
  return g_test_run ();
}
