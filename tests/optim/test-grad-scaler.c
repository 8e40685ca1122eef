/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradient scaling. The sequences of scales and parameters are those of PyTorch 2.11. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

typedef struct
{
  GTorchTensor *param;
  GTorchOptimizer *optimizer;
} Model;

static GTorchTensor *
leaf (gdouble a, gdouble b, GTorchDType dtype)
{
  const gdouble values[] = { a, b };
  g_autoptr (GError) error = NULL;
  GTorchTensor *x =
      gtorch_tensor_new_from_doubles (values, 2, GTORCH_SHAPE (2), dtype, test_device (), &error);

  g_assert_no_error (error);
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  return x;
}

static void
model_init (Model *model, GTorchTensor *param, gboolean adam)
{
  g_autoptr (GListStore) list = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GError) error = NULL;

  g_list_store_append (list, param);
  model->param = param;
  model->optimizer = adam ? GTORCH_OPTIMIZER (gtorch_adam_new (G_LIST_MODEL (list), 0.1, &error))
                          : GTORCH_OPTIMIZER (gtorch_sgd_new (G_LIST_MODEL (list), 0.1, 0, &error));
  g_assert_no_error (error);
}

static void
model_clear (Model *model)
{
  g_clear_object (&model->param);
  g_clear_object (&model->optimizer);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Model, model_clear)

static GTorchGradScaler *
scaler_new (gdouble scale, gdouble growth, gdouble backoff, gint interval)
{
  return g_object_new (GTORCH_TYPE_GRAD_SCALER, "scale-factor", scale, "growth-factor", growth,
                       "backoff-factor", backoff, "growth-interval", interval, NULL);
}

/* Runs backward for factor * sum (param), or for factor * sum (param²). */
static void
go_backward (GTorchGradScaler *scaler, Model *model, gdouble factor, gboolean square)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) value = NULL;
  g_autoptr (GTorchTensor) weighted = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;

  gtorch_optimizer_zero_grad (model->optimizer, TRUE, &error);
  value =
      square ? gtorch_tensor_mul (model->param, model->param, &error) : g_object_ref (model->param);
  weighted = gtorch_tensor_mul_scalar (value, factor, &error);
  g_assert_no_error (error);
  loss = gtorch_tensor_sum (weighted, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  scaled = gtorch_grad_scaler_scale (scaler, loss, &error);
  g_assert_no_error (error);
  gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
}

static void
step_and_update (GTorchGradScaler *scaler, Model *model)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_grad_scaler_step (scaler, model->optimizer, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_grad_scaler_update (scaler, NULL, &error));
  g_assert_no_error (error);
}

static gdouble
scale_of (GTorchGradScaler *scaler)
{
  g_autoptr (GError) error = NULL;
  gdouble scale = gtorch_grad_scaler_get_scale (scaler, &error);

  g_assert_no_error (error);
  return scale;
}

static void
assert_refused (gboolean success, GError **error, const gchar *message)
{
  g_assert_false (success);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

/* --- steps --- */

static void
the_sequence_of_scales_is_pytorchs (gconstpointer capturable)
{
  const gboolean overflows[] = { 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0 };
  const gdouble scales[] = { 256, 64, 64, 64, 192, 48, 12, 12, 12, 36, 36, 36, 9, 9, 9, 27 };
  const gdouble params[] = { 1,   1,  0.95, 0.9, 0.85, 0.85, 0.85, 0.8,
                             .75, .7, .65,  .6,  .6,   .55,  .5,   .45 };
  g_autoptr (GTorchGradScaler) scaler = scaler_new (1024, 3, 0.25, 3);
  g_auto (Model) model = { NULL };
  guint i;

  g_object_set (scaler, "capturable", GPOINTER_TO_INT (capturable), NULL);
  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  g_assert_cmpfloat (scale_of (scaler), ==, 1024);
  for (i = 0; i < G_N_ELEMENTS (scales); i++)
    {
      go_backward (scaler, &model, overflows[i] ? INFINITY : 0.5, FALSE);
      step_and_update (scaler, &model);
      g_assert_cmpfloat (scale_of (scaler), ==, scales[i]);
      g_assert_cmpfloat_with_epsilon (test_element (model.param, 0), params[i], 1e-6);
    }
}

/* Adam's state is unchanged, too. */
static void
a_step_left_out_leaves_no_trace (gconstpointer capturable)
{
  g_autoptr (GTorchGradScaler) scaler = scaler_new (1024, 3, 0.25, 3);
  g_auto (Model) model = { NULL };
  GTorchTensor *count;
  guint i;

  g_object_set (scaler, "capturable", GPOINTER_TO_INT (capturable), NULL);
  model_init (&model, leaf (1, -2, GTORCH_DTYPE_FLOAT64), TRUE);
  for (i = 0; i < 6; i++)
    {
      go_backward (scaler, &model, i == 0 || i == 3 ? INFINITY : 0.25 * (i + 1), TRUE);
      step_and_update (scaler, &model);
    }
  g_assert_cmpfloat_with_epsilon (test_element (model.param, 0), 0.6025965571683738, 1e-12);
  g_assert_cmpfloat_with_epsilon (test_element (model.param, 1), -1.6048011313000545, 1e-12);
  g_assert_cmpfloat (scale_of (scaler), ==, 64.0);
  count = gtorch_optimizer_get_state (model.optimizer, model.param, "step");
  g_assert_cmpfloat (test_element (count, 0), ==, 4);
}

static void
the_scale_stays_finite (void)
{
  g_autoptr (GTorchGradScaler) scaler = scaler_new (ldexp (1, 126), 2, 0.5, 1);
  g_auto (Model) model = { NULL };
  guint i;

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  for (i = 0; i < 4; i++)
    {
      go_backward (scaler, &model, 0.5, FALSE);
      step_and_update (scaler, &model);
      g_assert_cmpfloat (scale_of (scaler), ==, ldexp (1, 127));
    }
}

/* 0.1 is not a float32: the product is rounded once, from float64. */
static void
factors_are_not_rounded (void)
{
  g_autoptr (GTorchGradScaler) scaler = scaler_new (3, 1.1, 0.7, 1);
  g_auto (Model) model = { NULL };

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  go_backward (scaler, &model, 1, FALSE);
  step_and_update (scaler, &model);
  g_assert_cmpfloat (scale_of (scaler), ==, (gfloat) (3 * 1.1));
}

static void
small_gradients_survive (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_auto (Model) model = { NULL };
  guint i;

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) half = NULL;
      g_autoptr (GTorchTensor) product = NULL;
      g_autoptr (GTorchTensor) loss = NULL;
      g_autoptr (GTorchTensor) scaled = NULL;
      g_autoptr (GTorchTensor) grad = NULL;

      g_object_set (scaler, "enabled", i == 1, NULL);
      gtorch_optimizer_zero_grad (model.optimizer, TRUE, &error);
      half = gtorch_tensor_to_dtype (model.param, GTORCH_DTYPE_FLOAT16, &error);
      product = gtorch_tensor_to_dtype (half, GTORCH_DTYPE_FLOAT32, &error);
      g_clear_object (&half);
      half = gtorch_tensor_mul_scalar (product, 1e-9, &error); /* too small for float16 */
      loss = gtorch_tensor_sum (half, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
      scaled = gtorch_grad_scaler_scale (scaler, loss, &error);
      gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error);
      g_assert_no_error (error);
      gtorch_grad_scaler_unscale (scaler, model.optimizer, &error);
      g_assert_no_error (error);
      grad = gtorch_tensor_get_grad (model.param);
      g_assert_cmpfloat_with_epsilon (test_element (grad, 0), i == 0 ? 0 : 1e-9, 1e-12);
    }
}

static void
gradients_are_unscaled_once (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_autoptr (GTorchTensor) grad = NULL;
  g_auto (Model) model = { NULL };

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  go_backward (scaler, &model, 3, FALSE);
  grad = gtorch_tensor_get_grad (model.param);
  g_assert_cmpfloat (test_element (grad, 0), ==, 3 * 65536.0);
  g_assert_true (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (grad, 0), ==, 3);
  g_assert_nonnull (gtorch_tensor_clamp_inplace (grad, -1, 1, &error));
  step_and_update (scaler, &model);
  g_assert_cmpfloat_with_epsilon (test_element (model.param, 0), 0.9, 1e-6);
}

static void
sixteen_bits_are_enough_for_bfloat16_only (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = scaler_new (3, 2, 0.5, 10);
  g_auto (Model) brain = { NULL };
  g_auto (Model) half = { NULL };

  model_init (&brain, leaf (1, 2, GTORCH_DTYPE_BFLOAT16), FALSE);
  go_backward (scaler, &brain, 2.5, FALSE);
  step_and_update (scaler, &brain);
  g_assert_cmpfloat (test_element (brain.param, 0), ==, 0.75);
  model_init (&half, leaf (1, 2, GTORCH_DTYPE_FLOAT16), FALSE);
  go_backward (scaler, &half, 2, FALSE);
  g_assert_false (gtorch_grad_scaler_step (scaler, half.optimizer, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_cmpstr (error->message, ==,
                   "unscale: a gradient of shape [2] is of float16, which has no room for unscaled "
                   "gradients: keep parameters in float32");
}

static void
optimizers_step_on_their_own (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_auto (Model) good = { NULL };
  g_auto (Model) bad = { NULL };

  model_init (&good, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  model_init (&bad, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  go_backward (scaler, &good, 1, FALSE);
  go_backward (scaler, &bad, NAN, FALSE);
  g_assert_true (gtorch_grad_scaler_step (scaler, good.optimizer, &error));
  g_assert_true (gtorch_grad_scaler_step (scaler, bad.optimizer, &error));
  g_assert_true (gtorch_grad_scaler_update (scaler, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (test_element (good.param, 0), 0.9, 1e-6);
  g_assert_cmpfloat (test_element (bad.param, 0), ==, 1);
  g_assert_cmpfloat (scale_of (scaler), ==, 32768);
}

/* An infinite gradient on one device skips the step of parameters on another. */
static void
parameters_may_be_on_several_devices (gconstpointer capturable)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_autoptr (GListStore) list = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchTensor) here = leaf (1, 2, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) there =
      gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);
  g_autoptr (GTorchAdam) adam = NULL;
  const gdouble factors[][2] = { { 1, 1 }, { INFINITY, 1 }, { 1, NAN }, { 1, 1 } };
  const gdouble results[] = { 0.9, 0.9, 0.9, 0.8 };
  guint i, j;

  g_object_set (scaler, "capturable", GPOINTER_TO_INT (capturable), NULL);
  gtorch_tensor_set_requires_grad (there, TRUE, &error);
  g_list_store_append (list, here);
  g_list_store_append (list, there);
  adam = gtorch_adam_new (G_LIST_MODEL (list), 0.1, &error);
  g_assert_no_error (error);
  for (i = 0; i < G_N_ELEMENTS (factors); i++)
    {
      gtorch_optimizer_zero_grad (GTORCH_OPTIMIZER (adam), TRUE, &error);
      for (j = 0; j < 2; j++)
        {
          g_autoptr (GTorchTensor) product =
              gtorch_tensor_mul_scalar (j == 0 ? here : there, factors[i][j], &error);
          g_autoptr (GTorchTensor) loss =
              gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
          g_autoptr (GTorchTensor) scaled = gtorch_grad_scaler_scale (scaler, loss, &error);

          gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error);
          g_assert_no_error (error);
        }
      g_assert_true (gtorch_grad_scaler_step (scaler, GTORCH_OPTIMIZER (adam), &error));
      g_assert_no_error (error);
      g_assert_true (gtorch_grad_scaler_update (scaler, NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpfloat_with_epsilon (test_element (here, 0), results[i], 1e-5);
      g_assert_cmpfloat_with_epsilon (test_element (there, 0), results[i], 1e-5);
    }
  g_assert_cmpfloat (scale_of (scaler), ==, 16384);
}

static void
misuse_is_named (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_autoptr (GTorchTensor) loss = leaf (1, 2, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) scaled = NULL;
  g_auto (Model) model = { NULL };

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  assert_refused (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error), &error,
                  "unscale: the scaler has scaled nothing yet: call backward on the result of its "
                  "method scale");
  assert_refused (gtorch_grad_scaler_step (scaler, model.optimizer, &error), &error,
                  "step: the scaler has scaled nothing yet: call backward on the result of its "
                  "method scale");
  assert_refused (gtorch_grad_scaler_update (scaler, NULL, &error), &error,
                  "update: the scaler has scaled nothing yet: call backward on the result of its "
                  "method scale");
  scaled = gtorch_grad_scaler_scale (scaler, loss, &error);
  assert_refused (gtorch_grad_scaler_step (scaler, model.optimizer, &error), &error,
                  "step: no parameter of this GTorchSGD has a gradient: was backward called on the "
                  "result of scale?");
  assert_refused (gtorch_grad_scaler_update (scaler, NULL, &error), &error,
                  "update: no gradients were checked since the last update: call step or unscale "
                  "first");
  go_backward (scaler, &model, 1, FALSE);
  g_assert_true (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error));
  assert_refused (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error), &error,
                  "unscale: the gradients of this GTorchSGD are unscaled already since the last "
                  "update");
  g_assert_true (gtorch_grad_scaler_step (scaler, model.optimizer, &error));
  assert_refused (gtorch_grad_scaler_step (scaler, model.optimizer, &error), &error,
                  "step: this GTorchSGD has made its step already since the last update");
  assert_refused (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error), &error,
                  "unscale: this GTorchSGD has made its step already since the last update");
  g_assert_true (gtorch_grad_scaler_update (scaler, NULL, &error));
  go_backward (scaler, &model, 1, FALSE);
  step_and_update (scaler, &model);
}

static void
a_disabled_scaler_does_nothing (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler =
      g_object_new (GTORCH_TYPE_GRAD_SCALER, "enabled", FALSE, NULL);
  g_autoptr (GTorchTensor) same = NULL;
  g_autoptr (GHashTable) state = NULL;
  g_auto (Model) model = { NULL };

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  same = gtorch_grad_scaler_scale (scaler, model.param, &error);
  g_assert_true (same == model.param);
  go_backward (scaler, &model, 1, FALSE);
  g_assert_true (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error));
  step_and_update (scaler, &model);
  g_assert_cmpfloat_with_epsilon (test_element (model.param, 0), 0.9, 1e-6);
  g_assert_cmpfloat (scale_of (scaler), ==, 1);
  state = gtorch_grad_scaler_state_dict (scaler, &error);
  g_assert_cmpuint (g_hash_table_size (state), ==, 0);
}

static void
the_scale_can_be_set (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_autoptr (GTorchTensor) wanted =
      gtorch_full (GTORCH_SHAPE (1), 48, GTORCH_DTYPE_FLOAT32, test_device (), &error);
  g_autoptr (GTorchTensor) wrong = gtorch_full (NULL, 0, 48, GTORCH_DTYPE_INT64, NULL, &error);
  g_auto (Model) model = { NULL };

  g_object_set (scaler, "scale-factor", 16.0, NULL);
  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  go_backward (scaler, &model, 1, FALSE);
  step_and_update (scaler, &model);
  g_assert_cmpfloat (scale_of (scaler), ==, 16);
  g_object_set (scaler, "scale-factor", 8.0, NULL);
  g_assert_cmpfloat (scale_of (scaler), ==, 8);
  g_assert_true (gtorch_grad_scaler_update (scaler, wanted, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (scale_of (scaler), ==, 48);
  assert_refused (gtorch_grad_scaler_update (scaler, wrong, &error), &error,
                  "update: the new scale must be one float32 that requires no gradient, not int64 "
                  "of shape []");
}

/* A property accepts any value; the function that uses it refuses it, and a new value resolves that. */
static void
settings_are_refused_where_they_are_used (void)
{
  static const struct
  {
    const gchar *name;
    gdouble value, right;
    const gchar *message;
  } cases[] = {
    { "scale-factor", NAN, 4,
      "grad_scaler: the scale is nan, it must be within [1.17549e-38, 3.40282e+38]" },
    { "scale-factor", 0, 4,
      "grad_scaler: the scale is 0, it must be within [1.17549e-38, 3.40282e+38]" },
    { "scale-factor", -INFINITY, 4,
      "grad_scaler: the scale is -inf, it must be within [1.17549e-38, 3.40282e+38]" },
    { "growth-factor", 0.5, 2,
      "grad_scaler: the growth factor is 0.5, it must be within [1, 3.40282e+38]" },
    { "growth-factor", NAN, 2,
      "grad_scaler: the growth factor is nan, it must be within [1, 3.40282e+38]" },
    { "backoff-factor", 1.5, 0.5,
      "grad_scaler: the backoff factor is 1.5, it must be within [0, 1]" },
    { "backoff-factor", NAN, 0.5,
      "grad_scaler: the backoff factor is nan, it must be within [0, 1]" },
    { "growth-interval", 0, 3,
      "grad_scaler: the growth interval is 0, it must be within [1, 2.14748e+09]" },
    { "growth-interval", -7, 3,
      "grad_scaler: the growth interval is -7, it must be within [1, 2.14748e+09]" },
  };
  guint i, is_used;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    for (is_used = 0; is_used < 2; is_used++)
      {
        g_autoptr (GTorchGradScaler) scaler = scaler_new (4, 2, 0.5, 3);
        const gboolean is_double = !g_str_equal (cases[i].name, "growth-interval");
        g_autoptr (GTorchTensor) loss = leaf (1, 2, GTORCH_DTYPE_FLOAT32);
        g_autoptr (GTorchTensor) scaled = NULL;
        g_autoptr (GHashTable) state = NULL;
        g_autoptr (GError) error = NULL;
        g_auto (Model) model = { NULL };

        model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
        if (is_used)
          go_backward (scaler, &model, 1, FALSE);
        if (is_double)
          g_object_set (scaler, cases[i].name, cases[i].value, NULL);
        else
          g_object_set (scaler, cases[i].name, (gint) cases[i].value, NULL);
        assert_refused (gtorch_grad_scaler_check (scaler, &error), &error, cases[i].message);
        assert_refused (gtorch_grad_scaler_scale (scaler, loss, &error) != NULL, &error,
                        cases[i].message);
        assert_refused (gtorch_grad_scaler_state_dict (scaler, &error) != NULL, &error,
                        cases[i].message);
        assert_refused (gtorch_grad_scaler_unscale (scaler, model.optimizer, &error), &error,
                        cases[i].message);
        assert_refused (gtorch_grad_scaler_step (scaler, model.optimizer, &error), &error,
                        cases[i].message);
        assert_refused (gtorch_grad_scaler_update (scaler, NULL, &error), &error, cases[i].message);
        g_object_set (scaler, "enabled", FALSE, NULL);
        g_assert_true (gtorch_grad_scaler_check (scaler, &error));
        g_object_set (scaler, "enabled", TRUE, NULL);
        if (is_double)
          g_object_set (scaler, cases[i].name, cases[i].right, NULL);
        else
          g_object_set (scaler, cases[i].name, (gint) cases[i].right, NULL);
        scaled = gtorch_grad_scaler_scale (scaler, loss, &error);
        g_assert_no_error (error);
        g_assert_cmpfloat (test_element (scaled, 0), ==, 4);
      }
}

static void
a_new_scale_is_a_number (void)
{
  const gdouble numbers[] = { NAN, INFINITY, -1, 0 };
  g_autoptr (GTorchGradScaler) scaler = scaler_new (4, 2, 0.5, 3);
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GTorchTensor) loss = leaf (1, 2, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GError) error = NULL;
  guint i;

  scaled = gtorch_grad_scaler_scale (scaler, loss, &error);
  g_assert_no_error (error);
  for (i = 0; i < G_N_ELEMENTS (numbers); i++)
    {
      g_autoptr (GTorchTensor) number =
          gtorch_full (NULL, 0, numbers[i], GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);
      g_autofree gchar *message =
          g_strdup_printf ("update: the new scale is %g, it must be within [%g, %g]", numbers[i],
                           G_MINFLOAT, G_MAXFLOAT);

      assert_refused (gtorch_grad_scaler_update (scaler, number, &error), &error, message);
      g_assert_cmpfloat (scale_of (scaler), ==, 4);
    }
}

static void
several_losses_are_scaled (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = scaler_new (4, 2, 0.5, 1);
  GTorchTensor *losses[] = { leaf (1, 2, GTORCH_DTYPE_FLOAT32), leaf (3, 4, GTORCH_DTYPE_FLOAT16) };
  g_autoptr (GPtrArray) scaled = gtorch_grad_scaler_scale_list (scaler, losses, 2, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (scaled->len, ==, 2);
  g_assert_cmpfloat (test_element (scaled->pdata[0], 1), ==, 8);
  g_assert_cmpfloat (test_element (scaled->pdata[1], 0), ==, 12);
  g_assert_cmpint (gtorch_tensor_get_dtype (scaled->pdata[1]), ==, GTORCH_DTYPE_FLOAT16);
  g_object_unref (losses[0]);
  g_object_unref (losses[1]);
}

static void
state_goes_to_another_scaler (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = scaler_new (1024, 3, 0.25, 3);
  g_autoptr (GTorchGradScaler) copy = gtorch_grad_scaler_new ();
  g_autoptr (GHashTable) state = NULL;
  g_auto (GStrv) names = NULL;
  g_autoptr (GPtrArray) tensors = NULL;
  g_auto (Model) model = { NULL };
  guint i;

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  for (i = 0; i < 2; i++)
    {
      go_backward (scaler, &model, 1, FALSE);
      step_and_update (scaler, &model);
    }
  state = gtorch_grad_scaler_state_dict (scaler, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (g_hash_table_lookup (state, "_growth_tracker"), 0), ==, 2);
  g_assert_true (gtorch_grad_scaler_load_state_dict (copy, state, &error));
  g_assert_no_error (error);
  go_backward (copy, &model, 1, FALSE);
  step_and_update (copy, &model); /* the third one */
  g_assert_cmpfloat (scale_of (copy), ==, 3072);
  tensors = gtorch_grad_scaler_state_lists (copy, &names, &error);
  g_assert_true (gtorch_grad_scaler_load_state_lists (scaler, (const gchar *const *) names,
                                                      (GTorchTensor **) tensors->pdata,
                                                      tensors->len, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (scale_of (scaler), ==, 3072);
  g_hash_table_remove (state, "growth_interval");
  g_assert_false (gtorch_grad_scaler_load_state_dict (copy, state, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "load_state_dict: missing: growth_interval");
  g_assert_cmpfloat (scale_of (copy), ==, 3072);
}

/* --- main loops --- */

typedef struct
{
  guint n;
  GTorchOptimizer *optimizer;
  gboolean done, success;
} Heard;

static void
hear_overflow (GTorchGradScaler *scaler, GTorchOptimizer *optimizer, gpointer data)
{
  Heard *heard = data;

  heard->n++;
  heard->optimizer = optimizer;
}

static void
overflows_are_signalled (void)
{
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_auto (Model) model = { NULL };
  Heard heard = { 0 };

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  g_signal_connect (scaler, "overflow", G_CALLBACK (hear_overflow), &heard);
  go_backward (scaler, &model, 1, FALSE);
  step_and_update (scaler, &model);
  g_assert_cmpuint (heard.n, ==, 0);
  go_backward (scaler, &model, INFINITY, FALSE);
  step_and_update (scaler, &model);
  g_assert_cmpuint (heard.n, ==, 1);
  g_assert_true (heard.optimizer == model.optimizer);
  /* a scaler that does not read the device reports it later */
  g_object_set (scaler, "capturable", TRUE, NULL);
  go_backward (scaler, &model, 1, FALSE);
  step_and_update (scaler, &model);
  go_backward (scaler, &model, NAN, FALSE);
  step_and_update (scaler, &model);
  while (heard.n < 2)
    g_main_context_iteration (NULL, TRUE);
  g_assert_null (heard.optimizer);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (heard.n, ==, 2);
}

static gpointer
overflow_in_thread (gpointer data)
{
  g_auto (Model) model = { NULL };

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  go_backward (data, &model, INFINITY, FALSE);
  step_and_update (data, &model);
  return NULL;
}

static void
overflows_are_signalled_in_the_owners_context (void)
{
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  Heard heard = { 0 };

  g_signal_connect (scaler, "overflow", G_CALLBACK (hear_overflow), &heard);
  g_thread_join (g_thread_new ("overflow", overflow_in_thread, scaler));
  g_assert_cmpuint (heard.n, ==, 0);
  while (heard.n == 0)
    g_main_context_iteration (NULL, TRUE);
}

static void
step_ended (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;
  Heard *heard = data;

  heard->success = gtorch_grad_scaler_step_finish (GTORCH_GRAD_SCALER (source), result, &error);
  g_assert_true (heard->success == (error == NULL));
  heard->done = TRUE;
}

static void
steps_can_be_awaited (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();
  g_auto (Model) model = { NULL };
  guint i;

  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), FALSE);
  for (i = 0; i < 3; i++)
    {
      Heard heard = { 0 };

      go_backward (scaler, &model, i == 1 ? INFINITY : 1, FALSE);
      gtorch_grad_scaler_step_async (scaler, model.optimizer, NULL, step_ended, &heard);
      g_assert_false (heard.done);
      while (!heard.done)
        g_main_context_iteration (NULL, TRUE);
      g_assert_true (heard.success);
      g_assert_true (gtorch_grad_scaler_update (scaler, NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpfloat_with_epsilon (test_element (model.param, 0), i < 2 ? 0.9 : 0.8, 1e-6);
      g_assert_cmpfloat (scale_of (scaler), ==, i == 0 ? 65536 : 32768);
    }
  {
    Heard heard = { 0 };

    gtorch_optimizer_zero_grad (model.optimizer, TRUE, &error);
    gtorch_grad_scaler_step_async (scaler, model.optimizer, NULL, step_ended, &heard);
    while (!heard.done)
      g_main_context_iteration (NULL, TRUE);
    g_assert_false (heard.success);
  }
}

/* --- graphs --- */

static void
whole_iterations_are_captured (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradScaler) scaler = scaler_new (1024, 2, 0.5, 2);
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) factor = NULL;
  g_auto (Model) model = { NULL };
  const gdouble factors[] = { 1, INFINITY, 1, 1 }, scales[] = { 2048, 1024, 1024, 2048 };
  const gdouble counts[] = { 2, 2, 3, 4 };
  GTorchGraphCapture *capture;
  gdouble before;
  guint i;

  if (!test_can_capture ())
    return;
  g_object_set (scaler, "capturable", TRUE, NULL);
  model_init (&model, leaf (1, 2, GTORCH_DTYPE_FLOAT32), TRUE);
  gtorch_optimizer_set_capturable (model.optimizer, TRUE);
  factor = gtorch_full (NULL, 0, 1, GTORCH_DTYPE_FLOAT32, test_device (), &error);
  go_backward (scaler, &model, 1, TRUE);
  step_and_update (scaler, &model);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
  gtorch_optimizer_zero_grad (model.optimizer, TRUE, &error);
  stream = gtorch_stream_new (test_device (), 0, &error);
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  {
    g_autoptr (GTorchTensor) square = gtorch_tensor_mul (model.param, model.param, &error);
    g_autoptr (GTorchTensor) weighted = gtorch_tensor_mul (square, factor, &error);
    g_autoptr (GTorchTensor) loss =
        gtorch_tensor_sum (weighted, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
    g_autoptr (GTorchTensor) scaled = gtorch_grad_scaler_scale (scaler, loss, &error);

    gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error);
    g_assert_no_error (error);
    g_assert_true (gtorch_grad_scaler_step (scaler, model.optimizer, &error));
    g_assert_no_error (error);
    g_assert_true (gtorch_grad_scaler_update (scaler, NULL, &error));
    g_assert_no_error (error);
  }
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
  for (i = 0; i < G_N_ELEMENTS (factors); i++)
    {
      GTorchTensor *count = gtorch_optimizer_get_state (model.optimizer, model.param, "step");

      before = test_element (model.param, 0);
      gtorch_tensor_fill_inplace (factor, factors[i], &error);
      g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
      g_assert_true (gtorch_cuda_graph_replay (graph, &error));
      g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpfloat (scale_of (scaler), ==, scales[i]);
      g_assert_cmpfloat (test_element (count, 0), ==, counts[i]);
      g_assert_true (isfinite (factors[i]) == (test_element (model.param, 0) != before));
    }
}

/* A subclass made of ordinary operations, like those in other languages. */
#define TYPE_PLAIN (plain_get_type ())
G_DECLARE_FINAL_TYPE (Plain, plain, PLAIN, PLAIN, GTorchOptimizer)

struct _Plain
{
  GTorchOptimizer parent_instance;
};

G_DEFINE_TYPE (Plain, plain, GTORCH_TYPE_OPTIMIZER)

/* It has a momentum, so that a step that should have been skipped shows later, too. */
static gboolean
plain_step_param (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *param,
                  GTorchTensor *grad, GError **error)
{
  GTorchTensor *buffer = gtorch_optimizer_get_state (self, param, "buffer");
  g_autoptr (GTorchTensor) change = NULL;

  if (buffer == NULL)
    {
      g_autoptr (GTorchTensor) zeros = gtorch_tensor_zeros_like (param, GTORCH_DTYPE_NONE, error);

      if (zeros == NULL)
        return FALSE;
      gtorch_optimizer_set_state (self, param, "buffer", zeros);
      buffer = zeros;
    }
  if (gtorch_tensor_mul_scalar_inplace (buffer, 0.5, error) == NULL
      || gtorch_tensor_add_inplace (buffer, grad, 1, error) == NULL)
    return FALSE;
  change = gtorch_tensor_mul_scalar (buffer, gtorch_param_group_get_learning_rate (group), error);
  return change != NULL && gtorch_tensor_sub_inplace (param, change, 1, error) != NULL;
}

static void
plain_class_init (PlainClass *klass)
{
  GTORCH_OPTIMIZER_CLASS (klass)->step_param = plain_step_param;
}

static void
plain_init (Plain *self)
{
}

typedef struct
{
  GTorchGradScaler *scaler;
  GTorchOptimizer *optimizer;
  GTorchTensor *param, *factor;
} Training;

static void
training_init (Training *self)
{
  GListStore *params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchParamGroup) group = NULL;
  g_autoptr (GError) error = NULL;

  self->scaler = scaler_new (1024, 2, 0.5, 2);
  self->optimizer = g_object_new (TYPE_PLAIN, NULL);
  self->param = leaf (1, 2, GTORCH_DTYPE_FLOAT32);
  self->factor = gtorch_full (NULL, 0, 1, GTORCH_DTYPE_FLOAT32, test_device (), &error);
  g_list_store_append (params, self->param);
  group = gtorch_param_group_new (G_LIST_MODEL (params), 0.1, 0, &error);
  g_object_unref (params);
  g_assert_true (gtorch_optimizer_add_param_group (self->optimizer, group, &error));
  gtorch_optimizer_set_capturable (self->optimizer, TRUE);
}

static void
training_clear (Training *self)
{
  g_object_unref (self->scaler);
  g_object_unref (self->optimizer);
  g_object_unref (self->param);
  g_object_unref (self->factor);
}

static void
iterate (Training *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) square = gtorch_tensor_mul (self->param, self->param, &error);
  g_autoptr (GTorchTensor) weighted = gtorch_tensor_mul (square, self->factor, &error);
  g_autoptr (GTorchTensor) loss =
      gtorch_tensor_sum (weighted, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_autoptr (GTorchTensor) scaled = gtorch_grad_scaler_scale (self->scaler, loss, &error);

  g_assert_true (gtorch_optimizer_zero_grad (self->optimizer, TRUE, &error));
  gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  gtorch_grad_scaler_step (self->scaler, self->optimizer, &error);
  g_assert_no_error (error);
  gtorch_grad_scaler_update (self->scaler, NULL, &error);
  g_assert_no_error (error);
}

static void
steps_of_any_optimizer_are_captured (void)
{
  const gdouble factors[] = { 1, 2, INFINITY, 1, NAN, INFINITY, 0.5, 1, 1 };
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture;
  Training eager, captured;
  guint i, j;

  if (!test_can_capture ())
    return;
  training_init (&eager);
  training_init (&captured);
  iterate (&eager);
  iterate (&captured); /* creates the buffer */
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
  stream = gtorch_stream_new (test_device (), 0, &error);
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  iterate (&captured);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
  for (i = 0; i < G_N_ELEMENTS (factors); i++)
    {
      g_assert_nonnull (gtorch_tensor_fill_inplace (eager.factor, factors[i], &error));
      g_assert_nonnull (gtorch_tensor_fill_inplace (captured.factor, factors[i], &error));
      iterate (&eager);
      g_assert_true (gtorch_cuda_graph_replay (graph, &error));
      for (j = 0; j < 2; j++)
        {
          g_assert_true (isfinite (test_element (eager.param, j)));
          g_assert_cmpfloat (test_element (captured.param, j), ==, test_element (eager.param, j));
        }
      g_assert_cmpfloat (scale_of (captured.scaler), ==, scale_of (eager.scaler));
    }
  training_clear (&eager);
  training_clear (&captured);
}

/* A handler that is notified at once would need a wait. */
static void
steps_with_an_overflow_handler_are_not_captured (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture;
  Training training;
  Heard heard = { 0 };

  if (!test_can_capture ())
    return;
  training_init (&training);
  g_signal_connect (training.scaler, "overflow", G_CALLBACK (hear_overflow), &heard);
  iterate (&training);
  stream = gtorch_stream_new (test_device (), 0, &error);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  scaled = gtorch_grad_scaler_scale (training.scaler, training.factor, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_grad_scaler_step (training.scaler, training.optimizer, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  gtorch_graph_capture_unref (capture);
  training_clear (&training);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchGradScaler/" #name, name)
#define ADD_BOTH(name)                                                              \
  g_test_add_data_func ("/GTorchGradScaler/" #name, GINT_TO_POINTER (FALSE), name); \
  g_test_add_data_func ("/GTorchGradScaler/" #name "_capturable", GINT_TO_POINTER (TRUE), name)
  ADD_BOTH (the_sequence_of_scales_is_pytorchs);
  ADD_BOTH (a_step_left_out_leaves_no_trace);
  ADD_BOTH (parameters_may_be_on_several_devices);
  ADD (the_scale_stays_finite);
  ADD (factors_are_not_rounded);
  ADD (small_gradients_survive);
  ADD (gradients_are_unscaled_once);
  ADD (sixteen_bits_are_enough_for_bfloat16_only);
  ADD (optimizers_step_on_their_own);
  ADD (misuse_is_named);
  ADD (a_disabled_scaler_does_nothing);
  ADD (the_scale_can_be_set);
  ADD (settings_are_refused_where_they_are_used);
  ADD (a_new_scale_is_a_number);
  ADD (several_losses_are_scaled);
  ADD (state_goes_to_another_scaler);
  ADD (overflows_are_signalled);
  ADD (overflows_are_signalled_in_the_owners_context);
  ADD (steps_can_be_awaited);
  ADD (whole_iterations_are_captured);
  ADD (steps_of_any_optimizer_are_captured);
  ADD (steps_with_an_overflow_handler_are_not_captured);
  return g_test_run ();
}
