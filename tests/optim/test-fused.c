/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Steps over many parameters at once: bitwise as if each had its own optimizer, and as on the CPU. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "step-samples.h"
#include "test-device.h"

/* More of them than one launch processes, some larger than a block, some empty. */
static const gint64 sizes[] = { 3, 0, 1, 64, 4096, 5000, 16, 7, 20001, 12, 33, 8192 };

#define N_PARAMS 140
#define N_STEPS  3

/* Under a sanitizer, where a step takes thirty times as long, only the first are large. */
static gint64
size_of (guint i)
{
  gint64 n = sizes[i % G_N_ELEMENTS (sizes)];

  return is_slowed () && i >= 2 * G_N_ELEMENTS (sizes) ? MIN (n, 100) : n;
}

static void
append (GListStore *list, GTorchTensor *param)
{
  g_assert_nonnull (param);
  g_assert_true (gtorch_tensor_set_requires_grad (param, TRUE, NULL));
  g_list_store_append (list, param);
  g_object_unref (param);
}

static GTorchTensor *
drawn (guint64 seed, gint64 n, GTorchDType dtype, GTorchDevice *device)
{
  g_autoptr (GTorchTensor) numbers = NULL;
  g_autoptr (GTorchTensor) there = NULL;

  gtorch_manual_seed (seed);
  numbers = gtorch_randn (&n, 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL, NULL);
  there = gtorch_tensor_to_dtype (numbers, dtype, NULL);
  return gtorch_tensor_to_device (there, device, FALSE, NULL);
}

/* Every fifth starts inside its storage, every seventh is not contiguous. */
static GTorchTensor *
new_param (guint i, GTorchDType dtype, GTorchDevice *device)
{
  gint64 n = size_of (i);
  g_autoptr (GTorchTensor) whole = drawn (i, 2 * n + 1, dtype, device);
  g_autoptr (GTorchTensor) part =
      i % 7 == 3 ? gtorch_tensor_slice (whole, 0, 0, 2 * n, 2, NULL)
                 : gtorch_tensor_slice (whole, 0, i % 5 == 2, n + (i % 5 == 2), 1, NULL);

  return i % 7 == 3 || i % 5 == 2 ? gtorch_tensor_detach (part, NULL)
                                  : gtorch_tensor_clone (part, NULL);
}

static GListStore *
new_params (guint first, guint n, GTorchDType dtype, GTorchDevice *device)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_TENSOR);
  guint i;

  for (i = first; i < first + n; i++)
    append (list, new_param (i, dtype, device));
  return list;
}

static GTorchOptimizer *
new_optimizer (guint sample, GListStore *params)
{
  return step_sample_new (sample, G_LIST_MODEL (params), 0.1);
}

static GTorchTensor *
nth (GListStore *params, guint i)
{
  g_autoptr (GTorchTensor) param = g_list_model_get_item (G_LIST_MODEL (params), i);

  return param; /* the list has a reference */
}

/* Sets the gradient of the step for parameter `first` + i; some get none in the first step. */
static void
set_grads (GListStore *params, guint first, guint step)
{
  guint i;

  for (i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (params)); i++)
    {
      GTorchTensor *param = nth (params, i);
      gint64 n = gtorch_tensor_get_numel (param);
      g_autoptr (GTorchTensor) grad =
          drawn (1000 * (step + 1) + first + i, n, gtorch_tensor_get_dtype (param),
                 gtorch_tensor_get_device (param));
      gboolean none = step == 0 && (first + i) % 11 == 5;

      g_assert_true (gtorch_tensor_set_grad (param, none ? NULL : grad, NULL));
    }
}

static void
step (GTorchOptimizer *optimizer)
{
  g_autoptr (GError) error = NULL;

  gtorch_optimizer_step (optimizer, &error);
  g_assert_no_error (error);
}

static void
assert_same_bits (GTorchTensor *a, GTorchTensor *b)
{
  gsize n_a, n_b;
  g_autofree gpointer x = test_dup_elements (a, &n_a);
  g_autofree gpointer y = test_dup_elements (b, &n_b);

  g_assert_cmpmem (x, n_a, y, n_b);
}

static void
assert_near (GTorchTensor *a, GTorchTensor *b, gdouble tolerance)
{
  gsize n, n_b, i;
  g_autofree gdouble *x = gtorch_tensor_to_doubles (a, &n, NULL);
  g_autofree gdouble *y = gtorch_tensor_to_doubles (b, &n_b, NULL);

  g_assert_cmpuint (n, ==, n_b);
  for (i = 0; i < n; i++)
    if (!(fabs (x[i] - y[i]) <= tolerance * MAX (1, fabs (y[i]))))
      g_error ("element %" G_GSIZE_FORMAT " is %.9g, not %.9g", i, x[i], y[i]);
}

static const struct
{
  GTorchDType dtype;
  gdouble tolerance; /* for sums in another order */
} dtypes[] = {
  { GTORCH_DTYPE_FLOAT32, 2e-6 },
  { GTORCH_DTYPE_FLOAT64, 1e-13 },
  { GTORCH_DTYPE_BFLOAT16, 0.02 },
  { GTORCH_DTYPE_FLOAT16, 0.003 },
};

static void
fused_steps_equal_single_steps (gconstpointer data)
{
  guint kind = GPOINTER_TO_UINT (data), d, i, at;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      GTorchDType dtype = dtypes[d].dtype;
      g_autoptr (GListStore) all = new_params (0, N_PARAMS, dtype, test_device ());
      g_autoptr (GListStore) host = new_params (0, N_PARAMS, dtype, gtorch_device_cpu ());
      g_autoptr (GTorchOptimizer) optimizer = new_optimizer (kind, all);
      g_autoptr (GTorchOptimizer) on_host = new_optimizer (kind, host);

      for (at = 0; at < N_STEPS; at++)
        {
          set_grads (all, 0, at);
          set_grads (host, 0, at);
          step (optimizer);
          step (on_host);
        }
      for (i = 0; i < N_PARAMS; i += is_slowed () ? 60 : 3)
        {
          g_autoptr (GListStore) one = new_params (i, 1, dtype, test_device ());
          g_autoptr (GTorchOptimizer) own = new_optimizer (kind, one);

          for (at = 0; at < N_STEPS; at++)
            {
              set_grads (one, i, at);
              step (own);
            }
          assert_same_bits (nth (all, i), nth (one, 0));
          assert_near (nth (all, i), nth (host, i), dtypes[d].tolerance);
        }
    }
}

/* --- mixed lists of parameters --- */

static void
dtypes_and_devices_may_be_mixed (void)
{
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  guint i;

  for (i = 0; i < 24; i++)
    append (params,
            new_param (i, dtypes[i % 4].dtype, i % 3 == 0 ? gtorch_device_cpu () : test_device ()));
  optimizer = new_optimizer (step_sample_find ("Adam/0"), params);
  set_grads (params, 0, 1);
  step (optimizer);
  for (i = 0; i < 24; i++)
    {
      g_autoptr (GListStore) one = g_list_store_new (GTORCH_TYPE_TENSOR);
      g_autoptr (GTorchOptimizer) own = NULL;

      append (one, new_param (i, dtypes[i % 4].dtype,
                              i % 3 == 0 ? gtorch_device_cpu () : test_device ()));
      own = new_optimizer (step_sample_find ("Adam/0"), one);
      set_grads (one, i, 1);
      step (own);
      assert_same_bits (nth (params, i), nth (one, 0));
    }
}

/* Two parameters that share memory are updated one after the other. */
static void
parameters_may_share_memory (void)
{
  g_autoptr (GTorchTensor) whole = drawn (5, 30000, GTORCH_DTYPE_FLOAT32, test_device ());
  g_autoptr (GTorchTensor) expected = gtorch_tensor_clone (whole, NULL);
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchTensor) ones = NULL;
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  gint64 begins[] = { 0, 10000, 5000 }, i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) part =
          gtorch_tensor_slice (whole, 0, begins[i], begins[i] + 20000, 1, NULL);

      append (params, gtorch_tensor_detach (part, NULL));
    }
  optimizer = new_optimizer (step_sample_find ("SGD/0"), params);
  set_grads (params, 0, 0);
  step (optimizer);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) part =
          gtorch_tensor_slice (expected, 0, begins[i], begins[i] + 20000, 1, NULL);
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (nth (params, i));
      g_autoptr (GListStore) one = g_list_store_new (GTORCH_TYPE_TENSOR);
      g_autoptr (GTorchOptimizer) own = NULL;

      append (one, gtorch_tensor_detach (part, NULL));
      own = new_optimizer (step_sample_find ("SGD/0"), one);
      g_assert_true (gtorch_tensor_set_grad (nth (one, 0), grad, NULL));
      step (own);
    }
  assert_same_bits (whole, expected);
}

static void
read_only_memory_is_refused (void)
{
  g_autoptr (GTorchTensor) row = drawn (5, 1, GTORCH_DTYPE_FLOAT32, test_device ());
  g_autoptr (GTorchTensor) wide = gtorch_tensor_expand (row, GTORCH_SHAPE (8), NULL);
  g_autoptr (GListStore) params = new_params (3, 1, GTORCH_DTYPE_FLOAT32, test_device ());
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;
  gdouble before = test_element (nth (params, 0), 0);

  append (params, gtorch_tensor_detach (wide, NULL));
  optimizer = new_optimizer (step_sample_find ("SGD/0"), params);
  set_grads (params, 3, 1);
  g_assert_false (gtorch_optimizer_step (optimizer, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "share one memory location"));
  g_assert_cmpfloat (test_element (nth (params, 0), 0), ==, before);
}

/* --- synchronisation with writes of a step --- */

static void
take_time (gpointer data)
{
  g_usleep (20000);
}

static void
readers_wait_for_written_states (void)
{
  g_autoptr (GListStore) params = new_params (3, 2, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu ());
  g_autoptr (GTorchOptimizer) optimizer = new_optimizer (step_sample_find ("Adam/0"), params);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  GTorchTensor *second = nth (params, 1);
  guint version = gtorch_tensor_get_version (second);

  set_grads (params, 3, 1);
  gtorch_stream_set_current (stream);
  test_enqueue (stream, take_time, NULL);
  step (optimizer);
  gtorch_stream_set_current (gtorch_device_get_default_stream (gtorch_device_cpu ()));
  g_assert_cmpuint (gtorch_tensor_get_version (second), ==, version + 1);
  g_assert_cmpfloat (test_element (gtorch_optimizer_get_state (optimizer, second, "step"), 0), ==,
                     1);
  g_assert_cmpfloat (test_element (gtorch_optimizer_get_state (optimizer, second, "exp_avg_sq"), 0),
                     >, 0);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchFused/" #name, name)
  for (i = 0; i < N_STEP_SAMPLES; i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorchFused/%s/fused_steps_equal_single_steps",
                                                gtorch_step_samples[i].name);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), fused_steps_equal_single_steps);
    }
  ADD (dtypes_and_devices_may_be_mixed);
  ADD (parameters_may_share_memory);
  ADD (read_only_memory_is_refused);
  ADD (readers_wait_for_written_states);
  return g_test_run ();
}
