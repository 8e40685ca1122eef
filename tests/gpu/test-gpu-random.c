/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers of float32 and shorter dtypes are those of the CPU bit by bit, at every size and
 * position; so are the elements that dropout keeps, and its gradient. Those of float64 use the GPU's own
 * logarithms. */

#include "config.h"

#include "gpu-test.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT16,
                                      GTORCH_DTYPE_BFLOAT16, GTORCH_DTYPE_FLOAT64 };

/* around the element counts of a thread, a warp, a block and a whole grid */
static const gint64 sizes[] = { 1,     2,     3,     4,      5,       127,     128,    129,
                                1023,  1025,  4095,  4096,   4097,    16383,   16384,  16385,
                                16388, 49155, 65539, 999999, 1081344, 4325380, 9000001 };

static void
same (const gchar *what, gint64 size, GTorchTensor *got, GTorchTensor *expected)
{
  g_autoptr (GTorchTensor) host = on (got, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) a = TRY (gtorch_tensor_contiguous (host, &error));
  g_autoptr (GTorchTensor) b = TRY (gtorch_tensor_contiguous (expected, &error));
  g_autoptr (GBytes) x = gtorch_tensor_get_bytes (a, NULL);
  g_autoptr (GBytes) y = gtorch_tensor_get_bytes (b, NULL);

  g_assert_cmpint (gtorch_tensor_get_dtype (host), ==, gtorch_tensor_get_dtype (expected));
  if (!g_bytes_equal (x, y))
    g_error ("%s of %" G_GINT64_FORMAT " %s: not the same bytes", what, size,
             gtorch_dtype_get_name (gtorch_tensor_get_dtype (host)));
}

static void
normal_numbers_are_those_of_the_cpu (void)
{
  guint t, k, form;

  for (t = 0; t < 3; t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (form = 0; form < 3; form++)
        {
          g_autoptr (GTorchGenerator) here = gtorch_generator_new_with_seed (17 + k);
          g_autoptr (GTorchGenerator) there = gtorch_generator_new_with_seed (17 + k);
          g_autoptr (GTorchTensor) a = NULL;
          g_autoptr (GTorchTensor) b = NULL;

          if (form == 0)
            {
              a = TRY (gtorch_randn (&sizes[k], 1, dtypes[t], NULL, here, &error));
              b = TRY (gtorch_randn (&sizes[k], 1, dtypes[t], gpu, there, &error));
            }
          else
            {
              /* behind an element, so that nothing is aligned; with a scale and a shift */
              const gint64 n = sizes[k] + (form == 2);
              g_autoptr (GTorchTensor) x = TRY (gtorch_zeros (&n, 1, dtypes[t], NULL, &error));
              g_autoptr (GTorchTensor) y = on (x, gpu);

              a = TRY (gtorch_tensor_slice (x, 0, form == 2, n, 1, &error));
              b = TRY (gtorch_tensor_slice (y, 0, form == 2, n, 1, &error));
              TRY (gtorch_tensor_normal_inplace (a, -3, 1.7, here, &error));
              TRY (gtorch_tensor_normal_inplace (b, -3, 1.7, there, &error));
            }
          same ("normal numbers", sizes[k], b, a);
        }
}

static GTorchTensor *
dropped (GTorchTensor *x, GTorchTensor **grad)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (3);
  g_autoptr (GTorchTensor) input = TRY (gtorch_tensor_detach (x, &error));
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  GTorchTensor *y;

  g_assert_true (gtorch_tensor_set_requires_grad (input, TRUE, NULL));
  y = TRY (gtorch_tensor_dropout (input, 0.3, TRUE, generator, &error));
  square = TRY (gtorch_tensor_mul (y, y, &error));
  sum = TRY (gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
  *grad = gtorch_tensor_get_grad (input);
  return y;
}

static void
dropout_keeps_what_the_cpu_keeps (void)
{
  guint t, k, form;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (form = 0; form < 3; form++) /* plain; behind an element; transposed */
        {
          const gint64 shape[] = { sizes[k] + (form == 1), form == 2 ? 2 : 1 };
          g_autoptr (GTorchTensor) whole =
              TRY (gtorch_rand (shape, 2, dtypes[t], NULL, NULL, &error));
          g_autoptr (GTorchTensor) moved = on (whole, gpu);
          g_autoptr (GTorchTensor) x = NULL;
          g_autoptr (GTorchTensor) gx = NULL;
          g_autoptr (GTorchTensor) grad = NULL;
          g_autoptr (GTorchTensor) ggrad = NULL;
          g_autoptr (GTorchTensor) y = NULL;
          g_autoptr (GTorchTensor) gy = NULL;

          x = form == 2 ? TRY (gtorch_tensor_t (whole, &error))
                        : TRY (gtorch_tensor_slice (whole, 0, form, shape[0], 1, &error));
          gx = form == 2 ? TRY (gtorch_tensor_t (moved, &error))
                         : TRY (gtorch_tensor_slice (moved, 0, form, shape[0], 1, &error));
          y = dropped (x, &grad);
          gy = dropped (gx, &ggrad);
          same ("dropout", sizes[k], gy, y);
          same ("the gradient of dropout", sizes[k], ggrad, grad);
        }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  g_test_add_func ("/GTorch/gpu-random/normal_numbers_are_those_of_the_cpu",
                   normal_numbers_are_those_of_the_cpu);
  g_test_add_func ("/GTorch/gpu-random/dropout_keeps_what_the_cpu_keeps",
                   dropout_keeps_what_the_cpu_keeps);
  return g_test_run ();
}
