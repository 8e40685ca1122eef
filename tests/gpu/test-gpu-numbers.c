/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Zero-dimensional tensors of the CPU as operands of a GPU: the results are those of the CPU. */

#include "config.h"

#include "gpu-test.h"

static GTorchTensor *
scalar (gdouble value, GTorchDType dtype)
{
  return TRY (gtorch_full (NULL, 0, value, dtype, gtorch_device_cpu (), &error));
}

static GTorchTensor *
ramp (GTorchDevice *device)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_arange (-2, 3.5, 0.5, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), &error));

  return on (x, device);
}

/* Runs all operations that accept a scalar; returns the concatenated results. */
static GTorchTensor *
compute (GTorchDevice *device)
{
  g_autoptr (GTorchTensor) x = ramp (device);
  g_autoptr (GTorchTensor) s = scalar (1.5, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) yes = scalar (1, GTORCH_DTYPE_BOOL);
  g_autoptr (GTorchTensor) mask = TRY (gtorch_tensor_lt (x, s, &error));
  g_autoptr (GTorchTensor) filled = TRY (gtorch_tensor_masked_fill (x, mask, s, &error));
  g_autoptr (GTorchTensor) all_filled = TRY (gtorch_tensor_masked_fill (x, yes, s, &error));
  g_autoptr (GTorchTensor) chosen = TRY (gtorch_where (mask, s, x, &error));
  g_autoptr (GTorchTensor) kept = TRY (gtorch_where (yes, x, s, &error));
  g_autoptr (GTorchTensor) quotient = TRY (gtorch_tensor_div (s, x, &error));
  g_autoptr (GTorchTensor) sum = TRY (gtorch_tensor_addcmul (x, s, x, 2, &error));
  GTorchTensor *all[] = { filled, all_filled, chosen, kept, quotient, sum };

  return TRY (gtorch_cat (all, G_N_ELEMENTS (all), 0, &error));
}

static void
results_are_those_of_the_cpu (void)
{
  g_autoptr (GTorchTensor) expected = compute (gtorch_device_cpu ());
  g_autoptr (GTorchTensor) got = compute (gpu);

  g_assert_true (gtorch_tensor_get_device (got) == gpu);
  agree ("with a scalar of the CPU's", got, expected, 1e-15);
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/gpu/results_are_those_of_the_cpu", results_are_those_of_the_cpu);
  return g_test_run ();
}
