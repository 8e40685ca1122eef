/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "members.h"

typedef struct
{
  gdouble mean, std, low, high;
} Moments;

static Moments
moments_of (GTorchTensor *tensor)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  Moments result = { 0, 0, values[0], values[0] };

  for (gsize i = 0; i < n; i++)
    {
      result.mean += values[i] / (gdouble) n;
      result.low = MIN (result.low, values[i]);
      result.high = MAX (result.high, values[i]);
    }
  for (gsize i = 0; i < n; i++)
    result.std += (values[i] - result.mean) * (values[i] - result.mean) / (gdouble) n;
  result.std = sqrt (result.std);
  return result;
}

static GTorchTensor *
weight_new (void)
{
  /* fan_in 100 * 9, fan_out 40 * 9 */
  return gtorch_zeros (GTORCH_SHAPE (40, 100, 3, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

/* 36,000 numbers: the standard error of the deviation is 0.4 %, that of the mean std / 190. */
static void
assert_spread (GTorchTensor *weight, gdouble std, gboolean uniform)
{
  Moments moments = moments_of (weight);

  g_assert_cmpfloat (fabs (moments.mean), <, 5 * std / 190);
  g_assert_cmpfloat (fabs (moments.std / std - 1), <, 0.02);
  if (uniform)
    {
      g_assert_cmpfloat (moments.high, <=, std * sqrt (3));
      g_assert_cmpfloat (moments.high, >, std * sqrt (3) * 0.999);
      g_assert_cmpfloat (moments.low, >=, -std * sqrt (3));
    }
  else
    g_assert_cmpfloat (moments.high, >, std * 3);
}

static void
spreads_follow_the_fans (void)
{
  g_autoptr (GTorchTensor) w = weight_new ();
  gint64 fan_in, fan_out;

  gtorch_manual_seed (3);
  g_assert_true (gtorch_init_calculate_fan (w, &fan_in, &fan_out, NULL));
  g_assert_cmpint (fan_in, ==, 900);
  g_assert_cmpint (fan_out, ==, 360);
  g_assert_true (gtorch_init_xavier_uniform (w, 2, NULL, NULL));
  assert_spread (w, 2 * sqrt (2.0 / 1260), TRUE);
  g_assert_true (gtorch_init_xavier_normal (w, 1, NULL, NULL));
  assert_spread (w, sqrt (2.0 / 1260), FALSE);
  g_assert_true (gtorch_init_kaiming_uniform (w, 0, GTORCH_FAN_MODE_OUT, GTORCH_NONLINEARITY_RELU,
                                              NULL, NULL));
  assert_spread (w, sqrt (2.0 / 360), TRUE);
  g_assert_true (gtorch_init_kaiming_normal (w, 0.5, GTORCH_FAN_MODE_IN,
                                             GTORCH_NONLINEARITY_LEAKY_RELU, NULL, NULL));
  assert_spread (w, sqrt (2.0 / 1.25 / 900), FALSE);
  g_assert_true (gtorch_init_normal (w, 0, 3, NULL, NULL));
  assert_spread (w, 3, FALSE);
  g_assert_true (gtorch_init_uniform (w, -2, 2, NULL, NULL));
  assert_spread (w, 2 / sqrt (3), TRUE);
}

static void
layers_begin_as_pytorchs (void)
{
  g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (900, 200, NULL));
  GTorchTensor *weight = test_parameter (linear, "weight");
  GTorchTensor *bias = test_parameter (linear, "bias");
  Moments moments = moments_of (bias);

  /* U (-1 / sqrt (900), 1 / sqrt (900)) */
  assert_spread (weight, 1 / 30.0 / sqrt (3), TRUE);
  g_assert_cmpfloat (moments.high, <=, 1 / 30.0);
  g_assert_cmpfloat (moments.high, >, 0.9 / 30.0);
  g_assert_cmpfloat (moments.low, <, -0.9 / 30.0);
}

static void
constants_fill_leaves_that_require_grad (void)
{
  g_autoptr (GTorchTensor) w = weight_new ();
  g_autoptr (GError) error = NULL;

  gtorch_tensor_set_requires_grad (w, TRUE, NULL);
  g_assert_true (gtorch_init_ones (w, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (moments_of (w).low, ==, 1);
  g_assert_true (gtorch_init_zeros (w, NULL));
  g_assert_cmpfloat (moments_of (w).high, ==, 0);
  g_assert_true (gtorch_init_constant (w, 0.25, NULL));
  g_assert_cmpfloat (moments_of (w).low, ==, 0.25);
  g_assert_true (gtorch_tensor_get_requires_grad (w));
  g_assert_true (gtorch_tensor_is_leaf (w));
}

static void
gains_are_pytorchs (void)
{
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_LINEAR, 0), ==, 1);
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_SIGMOID, 0), ==, 1);
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_TANH, 0), ==, 5.0 / 3);
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_RELU, 0), ==, sqrt (2));
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_LEAKY_RELU, 0.2), ==,
                     sqrt (2 / (1 + 0.2 * 0.2)));
  g_assert_cmpfloat (gtorch_init_calculate_gain (GTORCH_NONLINEARITY_SELU, 0), ==, 0.75);
}

static void
vectors_have_no_fan (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) integers =
      gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_init_xavier_normal (x, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "init: fans need at least 2 dimensions, the shape is [3]");
  g_clear_error (&error);
  g_assert_false (gtorch_init_normal (integers, 0, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
}

static void
generators_can_be_given (void)
{
  g_autoptr (GTorchGenerator) first = gtorch_generator_new_with_seed (9);
  g_autoptr (GTorchGenerator) second = gtorch_generator_new_with_seed (9);
  g_autoptr (GTorchTensor) a = weight_new ();
  g_autoptr (GTorchTensor) b = weight_new ();

  g_assert_true (gtorch_init_normal (a, 0, 1, first, NULL));
  g_assert_true (gtorch_init_normal (b, 0, 1, second, NULL));
  g_assert_cmpfloat (moments_of (a).mean, ==, moments_of (b).mean);
}

#define ADD(name) g_test_add_func ("/GTorch/Init/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (spreads_follow_the_fans);
  ADD (layers_begin_as_pytorchs);
  ADD (constants_fill_leaves_that_require_grad);
  ADD (gains_are_pytorchs);
  ADD (vectors_have_no_fan);
  ADD (generators_can_be_given);
  return g_test_run ();
}
