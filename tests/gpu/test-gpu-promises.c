/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Guarantees of the library on GPUs besides values: random numbers, errors, large tensors, training. */

#include "config.h"

#include "gpu-test.h"

#define N 1000003

typedef GTorchTensor *(*Draw) (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator);

static GTorchTensor *
draw_uniform (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  return TRY (gtorch_rand (GTORCH_SHAPE (N), dtype, device, generator, &error));
}

static GTorchTensor *
draw_normal (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  return TRY (gtorch_randn (GTORCH_SHAPE (N), dtype, device, generator, &error));
}

static GTorchTensor *
draw_integers (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  return TRY (gtorch_randint (-5, 100, GTORCH_SHAPE (N), dtype, device, generator, &error));
}

static GTorchTensor *
draw_range (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  GTorchTensor *x = TRY (gtorch_zeros (GTORCH_SHAPE (N), dtype, device, &error));

  TRY (gtorch_tensor_uniform_inplace (x, -1, 2.5, generator, &error));
  return x;
}

static GTorchTensor *
draw_below (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  GTorchTensor *x = TRY (gtorch_zeros (GTORCH_SHAPE (N), dtype, device, &error));

  TRY (gtorch_tensor_bernoulli_p_inplace (x, 0.3, generator, &error));
  return x;
}

static GTorchTensor *
draw_exponential (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  GTorchTensor *x = TRY (gtorch_zeros (GTORCH_SHAPE (N), dtype, device, &error));

  TRY (gtorch_tensor_exponential_inplace (x, 1.5, generator, &error));
  return x;
}

/* Draws into memory that is misaligned for vector stores. */
static GTorchTensor *
draw_behind_one (GTorchDType dtype, GTorchDevice *device, GTorchGenerator *generator)
{
  g_autoptr (GTorchTensor) base = TRY (gtorch_zeros (GTORCH_SHAPE (N + 1), dtype, device, &error));
  GTorchTensor *x = TRY (gtorch_tensor_slice (base, 0, 1, N + 1, 1, &error));

  TRY (gtorch_tensor_normal_inplace (x, 1, 3, generator, &error));
  return x;
}

static void
random_numbers_are_the_cpus (void)
{
  static const Draw draws[] = { draw_uniform,     draw_normal, draw_integers,  draw_range,
                                draw_exponential, draw_below,  draw_behind_one };
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT16,
                                        GTORCH_DTYPE_BFLOAT16 };
  guint k, t;

  for (k = 0; k < G_N_ELEMENTS (draws); k++)
    for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
      {
        g_autoptr (GTorchGenerator) first = gtorch_generator_new_with_seed (42);
        g_autoptr (GTorchGenerator) second = gtorch_generator_new_with_seed (42);
        g_autoptr (GTorchTensor) a = draws[k](dtypes[t], gtorch_device_cpu (), first);
        g_autoptr (GTorchTensor) b = draws[k](dtypes[t], gpu, second);
        g_autoptr (GTorchTensor) c = on (b, gtorch_device_cpu ());
        g_autoptr (GBytes) x = gtorch_tensor_get_bytes (a, NULL);
        g_autoptr (GBytes) y = gtorch_tensor_get_bytes (c, NULL);

        if (!g_bytes_equal (x, y))
          g_error ("kind %u of %s differs", k, gtorch_dtype_get_name (dtypes[t]));
      }
}

static void
indices_out_of_range_are_reported (void)
{
  const gint64 far[] = { 0, 7, 2 };
  g_autoptr (GTorchTensor) x = TRY (gtorch_arange (0, 5, 1, GTORCH_DTYPE_FLOAT32, gpu, &error));
  g_autoptr (GTorchTensor) host = TRY (
      gtorch_tensor_new_from_ints (far, 3, GTORCH_SHAPE (3), GTORCH_DTYPE_INT64, NULL, &error));
  g_autoptr (GTorchTensor) index = on (host, gpu);
  g_autoptr (GTorchTensor) taken = TRY (gtorch_tensor_gather (x, 0, index, &error));
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GError) problem = NULL;

  g_assert_false (gtorch_device_synchronize (gpu, NULL, &problem));
  g_assert_error (problem, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_true (g_str_has_prefix (problem->message,
                                   "gather: index 7 is out of range for dimension 0 of size 5"));
  g_clear_error (&problem);

  /* the device still works */
  g_assert_true (gtorch_device_synchronize (gpu, NULL, &problem));
  sum = TRY (gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));
  g_assert_cmpfloat (gtorch_tensor_item_double (sum, NULL), ==, 10);
}

static void
tensors_of_two_devices_do_not_meet (void)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, gpu, &error));
  g_autoptr (GTorchTensor) y =
      TRY (gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error));
  g_autoptr (GError) problem = NULL;

  g_assert_null (gtorch_tensor_add (x, y, 1, &problem));
  g_assert_error (problem, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_assert_nonnull (strstr (problem->message, "cuda:0"));
  g_assert_nonnull (strstr (problem->message, "cpu"));
}

static void
positions_of_many_elements (void)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_rand (GTORCH_SHAPE (1000, 1003), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  g_autoptr (GTorchTensor) mask = TRY (gtorch_tensor_lt_scalar (x, 0.3, &error));
  g_autoptr (GTorchTensor) found = TRY (gtorch_tensor_nonzero (mask, &error));
  g_autoptr (GTorchTensor) chosen = TRY (gtorch_tensor_masked_select (x, mask, &error));
  g_autoptr (GTorchTensor) hx = on (x, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) hmask = on (mask, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) expected = TRY (gtorch_tensor_nonzero (hmask, &error));
  g_autoptr (GTorchTensor) wide = as (expected, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) values = TRY (gtorch_tensor_masked_select (hx, hmask, &error));
  g_autoptr (GTorchTensor) wide_values = as (values, GTORCH_DTYPE_FLOAT64);

  agree ("nonzero", found, wide, 0);
  agree ("masked_select", chosen, wide_values, 0);
}

static GTorchTensor *
step (GTorchModule *network, GTorchOptimizer *optimizer, GTorchTensor *x, GTorchTensor *y)
{
  g_autoptr (GTorchTensor) output = TRY (gtorch_module_forward (network, x, &error));
  GTorchTensor *loss = TRY (gtorch_tensor_mse_loss (output, y, GTORCH_REDUCTION_MEAN, &error));
  GError *problem = NULL;

  gtorch_optimizer_zero_grad (optimizer, TRUE, &problem);
  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  gtorch_optimizer_step (optimizer, &problem);
  g_assert_no_error (problem);
  return loss;
}

/* The same program gives the same results on both devices. */
static void
training_equals_the_cpus (void)
{
  GTorchDevice *devices[] = { gtorch_device_cpu (), gpu };
  gdouble losses[2][30];
  guint d, i;

  for (d = 0; d < 2; d++)
    {
      g_autoptr (GTorchModule) network = NULL;
      g_autoptr (GTorchOptimizer) optimizer = NULL;
      g_autoptr (GListModel) parameters = NULL;
      g_autoptr (GTorchTensor) hx = NULL;
      g_autoptr (GTorchTensor) hy = NULL;
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      GError *problem = NULL;

      gtorch_manual_seed (3);
      network = GTORCH_MODULE (gtorch_linear_new (20, 4, &problem));
      g_assert_true (gtorch_module_to (network, devices[d], GTORCH_DTYPE_NONE, &problem));
      parameters = gtorch_module_get_parameters (network, TRUE);
      optimizer = GTORCH_OPTIMIZER (gtorch_adam_new (parameters, 0.05, &problem));
      hx = TRY (gtorch_randn (GTORCH_SHAPE (64, 20), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error));
      hy = TRY (gtorch_randn (GTORCH_SHAPE (64, 4), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error));
      x = on (hx, devices[d]);
      y = on (hy, devices[d]);
      for (i = 0; i < 30; i++)
        {
          g_autoptr (GTorchTensor) loss = step (network, optimizer, x, y);

          losses[d][i] = gtorch_tensor_item_double (loss, NULL);
        }
    }
  for (i = 0; i < 30; i++)
    g_assert_cmpfloat_with_epsilon (losses[0][i], losses[1][i], 1e-4);
  g_assert_cmpfloat (losses[1][29], <, 0.9 * losses[1][0]);
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (random_numbers_are_the_cpus);
  ADD (indices_out_of_range_are_reported);
  ADD (tensors_of_two_devices_do_not_meet);
  ADD (positions_of_many_elements);
  ADD (training_equals_the_cpus);
  return g_test_run ();
}
