/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* torch.where with conditions of any shape: the bytes are those of the CPU, whichever kernel computes
 * them. */

#include "config.h"

#include "gpu-test.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_UINT8, GTORCH_DTYPE_BFLOAT16,
                                      GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_INT64,
                                      GTORCH_DTYPE_COMPLEX128 };

/* Sizes of the condition and of the operands; 0 ends the list. */
static const struct
{
  gint64 shapes[3][4];
} cases[] = {
  { { { 7, 48 }, { 7, 48 }, { 7, 48 } } },
  { { { 7, 1 }, { 7, 48 }, { 7, 48 } } },
  { { { 48 }, { 7, 48 }, { 7, 48 } } },
  { { { 7, 48 }, { 7, 1 }, { 48 } } },
  { { { 7, 1 }, { 48 }, { 1 } } },
  { { { 7, 1 }, { 7, 1 }, { 7, 48 } } },
  { { { 1 }, { 7, 48 }, { 48 } } },
  { { { 6, 1, 1 }, { 6, 40, 64 }, { 1 } } },
  { { { 6, 40, 1 }, { 1, 40, 64 }, { 6, 40, 64 } } },
  { { { 40, 1 }, { 6, 40, 64 }, { 6, 1, 64 } } },
  { { { 7, 1 }, { 7, 47 }, { 7, 47 } } },
  { { { 47 }, { 7, 47 }, { 7, 1 } } },
  { { { 300, 1 }, { 300, 2048 }, { 2048 } } },
  { { { 2048 }, { 300, 1 }, { 300, 2048 } } },
};

static guint
count (const gint64 *shape)
{
  guint n = 0;

  while (n < 4 && shape[n] != 0)
    n++;
  return n;
}

/* Returns numbers on the CPU. */
static GTorchTensor *
numbers (const gint64 *shape, GTorchDType dtype)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randint (0, 250, shape, count (shape), GTORCH_DTYPE_INT64, NULL, NULL, &error));

  return as (x, dtype);
}

/* Returns a condition that is true for `share` tenths of the elements. */
static GTorchTensor *
condition (const gint64 *shape, gdouble share)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randint (0, 10, shape, count (shape), GTORCH_DTYPE_INT64, NULL, NULL, &error));

  return TRY (gtorch_tensor_lt_scalar (x, share, &error));
}

static void
same (GTorchTensor *got, GTorchTensor *expected, guint c, guint d)
{
  g_autoptr (GTorchTensor) host = on (got, gtorch_device_cpu ());
  g_autoptr (GBytes) x = gtorch_tensor_get_bytes (host, NULL);
  g_autoptr (GBytes) y = gtorch_tensor_get_bytes (expected, NULL);

  g_assert_true (gtorch_tensor_get_device (got) == gpu);
  if (!g_bytes_equal (x, y))
    g_error ("case %u, %s: not the same bytes", c, gtorch_dtype_get_name (dtypes[d]));
}

static void
choices_are_those_of_the_cpu (void)
{
  guint c, d;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (c = 0; c < G_N_ELEMENTS (cases); c++)
      {
        g_autoptr (GTorchTensor) mask = condition (cases[c].shapes[0], 5);
        g_autoptr (GTorchTensor) a = numbers (cases[c].shapes[1], dtypes[d]);
        g_autoptr (GTorchTensor) b = numbers (cases[c].shapes[2], dtypes[d]);
        g_autoptr (GTorchTensor) expected = TRY (gtorch_where (mask, a, b, &error));
        g_autoptr (GTorchTensor) mask_there = on (mask, gpu);
        g_autoptr (GTorchTensor) a_there = on (a, gpu);
        g_autoptr (GTorchTensor) b_there = on (b, gpu);
        g_autoptr (GTorchTensor) got = NULL;

        if (is_one_too_many (d, G_N_ELEMENTS (dtypes), c))
          continue;
        got = TRY (gtorch_where (mask_there, a_there, b_there, &error));
        same (got, expected, c, d);
      }
}

/* None, some and all elements are filled; the memory around them must not change. */
static void
tensors_are_filled_in_place (void)
{
  guint c, d, share;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (c = 0; c < G_N_ELEMENTS (cases); c++)
      for (share = 0; share <= 10; share += 5)
        {
          g_autoptr (GTorchTensor) mask = condition (cases[c].shapes[0], share);
          g_autoptr (GTorchTensor) like = numbers (cases[c].shapes[1], dtypes[d]);
          g_autoptr (GTorchTensor) other = numbers (cases[c].shapes[2], dtypes[d]);
          g_autoptr (GTorchTensor) all = TRY (gtorch_where (mask, like, other, &error));
          g_autoptr (GTorchTensor) there = on (all, gpu);
          g_autoptr (GTorchTensor) mask_there = on (mask, gpu);
          g_autoptr (GTorchTensor) value = TRY (gtorch_full (NULL, 0, 77, dtypes[d], gpu, &error));
          g_autoptr (GTorchTensor) value_here = on (value, gtorch_device_cpu ());

          if (is_one_too_many (d, G_N_ELEMENTS (dtypes), c))
            continue;
          TRY (gtorch_tensor_masked_fill_inplace (all, mask, value_here, &error));
          TRY (gtorch_tensor_masked_fill_inplace (there, mask_there, value, &error));
          same (there, all, c, d);
        }
}

/* Misaligned rows: the columns from `from` on. */
static void
views_are_chosen_from (void)
{
  gint64 from;
  guint d;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (from = 0; from < 3; from++)
      {
        const gint64 wide[4] = { 9, 80 }, tall[4] = { 9, 1 };
        g_autoptr (GTorchTensor) mask = condition (tall, 5);
        g_autoptr (GTorchTensor) flags = condition (wide, 5);
        g_autoptr (GTorchTensor) x = numbers (wide, dtypes[d]);
        g_autoptr (GTorchTensor) some_flags =
            TRY (gtorch_tensor_narrow (flags, 1, from, 64, &error));
        g_autoptr (GTorchTensor) some = TRY (gtorch_tensor_narrow (x, 1, from, 64, &error));
        g_autoptr (GTorchTensor) zeros =
            TRY (gtorch_tensor_zeros_like (some, GTORCH_DTYPE_NONE, &error));
        g_autoptr (GTorchTensor) by_row = TRY (gtorch_where (mask, some, zeros, &error));
        g_autoptr (GTorchTensor) by_flag = TRY (gtorch_where (some_flags, zeros, some, &error));
        g_autoptr (GTorchTensor) mask_there = on (mask, gpu);
        g_autoptr (GTorchTensor) flags_there = on (flags, gpu);
        g_autoptr (GTorchTensor) x_there = on (x, gpu);
        g_autoptr (GTorchTensor) zeros_there = on (zeros, gpu);
        g_autoptr (GTorchTensor) some_flags_there =
            TRY (gtorch_tensor_narrow (flags_there, 1, from, 64, &error));
        g_autoptr (GTorchTensor) some_there =
            TRY (gtorch_tensor_narrow (x_there, 1, from, 64, &error));
        g_autoptr (GTorchTensor) by_row_there =
            TRY (gtorch_where (mask_there, some_there, zeros_there, &error));
        g_autoptr (GTorchTensor) by_flag_there =
            TRY (gtorch_where (some_flags_there, zeros_there, some_there, &error));
        g_autoptr (GTorchTensor) value = TRY (gtorch_full (NULL, 0, 77, dtypes[d], gpu, &error));
        g_autoptr (GTorchTensor) value_here = on (value, gtorch_device_cpu ());

        same (by_row_there, by_row, from, d);
        same (by_flag_there, by_flag, from, d);
        TRY (gtorch_tensor_masked_fill_inplace (some, mask, value_here, &error));
        TRY (gtorch_tensor_masked_fill_inplace (some_there, mask_there, value, &error));
        same (x_there, x, from, d);
      }
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  gtorch_manual_seed (5);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (choices_are_those_of_the_cpu);
  ADD (tensors_are_filled_in_place);
  ADD (views_are_chosen_from);
  return g_test_run ();
}
