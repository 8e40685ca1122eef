/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times operations on the CPU and prints “name, median seconds of one call” for bench/run, which asks the
 * peer for the same names. bench-cpu [--threads N] [NAME…] */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gtorch/gtorch.h>

typedef struct
{
  GTorchTensor *x, *y, *row, *column, *matrix, *square, *mask, *batch, *weight;
} Data;

typedef GTorchTensor *(*Run) (Data *data, GError **error);

typedef struct
{
  const gchar *name;
  gboolean tiny; /* 16 elements, else 16 M */
  Run run;
} Case;

#define CASE(function, expression) \
  static GTorchTensor *function (Data *d, GError **error) { return expression; }

CASE (add, gtorch_tensor_add (d->x, d->y, 1, error))
CASE (add_inplace, g_object_ref (gtorch_tensor_add_inplace (d->x, d->y, 1, error)))
CASE (mul, gtorch_tensor_mul (d->x, d->y, error))
CASE (relu, gtorch_tensor_relu (d->x, error))
CASE (run_exp, gtorch_tensor_exp (d->x, error))
CASE (run_log, gtorch_tensor_log (d->y, error))
CASE (run_sin, gtorch_tensor_sin (d->x, error))
CASE (run_tanh, gtorch_tensor_tanh (d->x, error))
CASE (sigmoid, gtorch_tensor_sigmoid (d->x, error))
CASE (gelu, gtorch_tensor_gelu (d->x, FALSE, error))
CASE (add_row, gtorch_tensor_add (d->matrix, d->row, 1, error))
CASE (add_column, gtorch_tensor_add (d->matrix, d->column, 1, error))
CASE (compare, gtorch_tensor_gt (d->x, d->y, error))
CASE (where, gtorch_where (d->mask, d->x, d->y, error))
CASE (cast, gtorch_tensor_to_dtype (d->x, GTORCH_DTYPE_BFLOAT16, error))
CASE (sum_all, gtorch_tensor_sum (d->x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error))
CASE (sum_0, gtorch_tensor_sum (d->matrix, GTORCH_SHAPE (0), FALSE, GTORCH_DTYPE_NONE, error))
CASE (sum_1, gtorch_tensor_sum (d->matrix, GTORCH_SHAPE (1), FALSE, GTORCH_DTYPE_NONE, error))
CASE (amax_1, gtorch_tensor_amax (d->matrix, GTORCH_SHAPE (1), FALSE, error))
CASE (softmax, gtorch_tensor_softmax (d->matrix, 1, GTORCH_DTYPE_NONE, error))
CASE (run_clone, gtorch_tensor_clone (d->x, error))
CASE (matmul, gtorch_tensor_matmul (d->square, d->square, error))
CASE (bmm, gtorch_tensor_bmm (d->batch, d->batch, error))
CASE (run_randn, gtorch_randn (GTORCH_SHAPE (16 << 20), GTORCH_DTYPE_FLOAT32, NULL, NULL, error))
CASE (empty, gtorch_empty (GTORCH_SHAPE (16), GTORCH_DTYPE_FLOAT32, NULL, error))
CASE (view, gtorch_tensor_view (d->square, GTORCH_SHAPE (16), error))
CASE (slice, gtorch_tensor_slice (d->square, 0, 1, 3, 1, error))

static GTorchTensor *
transpose_copy (Data *d, GError **error)
{
  g_autoptr (GTorchTensor) view = gtorch_tensor_transpose (d->matrix, 0, 1, error);

  return gtorch_tensor_clone (view, error);
}

static GTorchTensor *
add_grad (Data *d, GError **error)
{
  gboolean before = gtorch_set_grad_enabled (TRUE);
  GTorchTensor *result = gtorch_tensor_add (d->weight, d->y, 1, error);

  gtorch_set_grad_enabled (before);
  return result;
}

static GTorchTensor *
backward (Data *d, GError **error)
{
  gboolean before = gtorch_set_grad_enabled (TRUE);
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (d->weight, d->y, error);
  g_autoptr (GTorchTensor) total =
      gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  gboolean success = gtorch_tensor_backward (total, NULL, FALSE, FALSE, error);

  gtorch_tensor_set_grad (d->weight, NULL, NULL);
  gtorch_set_grad_enabled (before);
  return success ? g_steal_pointer (&total) : NULL;
}

static const Case cases[] = {
  { "host.add", TRUE, add },
  { "host.add_", TRUE, add_inplace },
  { "host.relu", TRUE, relu },
  { "host.empty", TRUE, empty },
  { "host.view", TRUE, view },
  { "host.slice", TRUE, slice },
  { "host.sum", TRUE, sum_all },
  { "host.matmul", TRUE, matmul },
  { "host.add_grad", TRUE, add_grad },
  { "host.mul_sum_backward", TRUE, backward },
  { "add", FALSE, add },
  { "add_", FALSE, add_inplace },
  { "mul", FALSE, mul },
  { "relu", FALSE, relu },
  { "exp", FALSE, run_exp },
  { "log", FALSE, run_log },
  { "sin", FALSE, run_sin },
  { "tanh", FALSE, run_tanh },
  { "sigmoid", FALSE, sigmoid },
  { "gelu", FALSE, gelu },
  { "add_row", FALSE, add_row },
  { "add_column", FALSE, add_column },
  { "gt", FALSE, compare },
  { "where", FALSE, where },
  { "cast_bf16", FALSE, cast },
  { "clone", FALSE, run_clone },
  { "transpose_copy", FALSE, transpose_copy },
  { "sum_all", FALSE, sum_all },
  { "sum_dim0", FALSE, sum_0 },
  { "sum_dim1", FALSE, sum_1 },
  { "amax_dim1", FALSE, amax_1 },
  { "softmax_4096", FALSE, softmax },
  { "randn", FALSE, run_randn },
  { "matmul_1024", FALSE, matmul },
  { "bmm_32x256", FALSE, bmm },
};

static int
by_value (const void *a, const void *b)
{
  const gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

static gboolean
time_case (const Case *c, Data *data, GError **error)
{
  gdouble seconds[15];
  guint n_calls = c->tiny ? 20000 : 1, i, j;

  for (i = 0; i < G_N_ELEMENTS (seconds) + 2; i++)
    {
      gint64 start = g_get_monotonic_time ();

      for (j = 0; j < n_calls; j++)
        {
          g_autoptr (GTorchTensor) result = c->run (data, error);

          if (result == NULL)
            return FALSE;
        }
      if (i >= 2)
        seconds[i - 2] = (g_get_monotonic_time () - start) / 1e6 / n_calls;
    }
  qsort (seconds, G_N_ELEMENTS (seconds), sizeof (gdouble), by_value);
  printf ("%s\t%.4g\n", c->name, seconds[G_N_ELEMENTS (seconds) / 2]);
  fflush (stdout);
  return TRUE;
}

static gboolean
fill (Data *data, gint64 n, GError **error)
{
  g_autoptr (GTorchTensor) zero = gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, error);
  const gint64 side = n >= 4096 ? 4096 : 4, rows = n / side;
  g_autoptr (GTorchTensor) row =
      gtorch_zeros (GTORCH_SHAPE (side), GTORCH_DTYPE_FLOAT32, NULL, error);
  g_autoptr (GTorchTensor) column =
      gtorch_zeros (GTORCH_SHAPE (rows, 1), GTORCH_DTYPE_FLOAT32, NULL, error);
  g_autoptr (GTorchTensor) matrix =
      gtorch_zeros (GTORCH_SHAPE (rows, side), GTORCH_DTYPE_FLOAT32, NULL, error);

  if (zero == NULL || row == NULL || column == NULL || matrix == NULL)
    return FALSE;
  data->x = gtorch_tensor_add_scalar (zero, 0.37, 1, error);
  data->y = gtorch_tensor_add_scalar (zero, 1.62, 1, error);
  data->row = gtorch_tensor_add_scalar (row, 0.37, 1, error);
  data->column = gtorch_tensor_add_scalar (column, 0.37, 1, error);
  data->matrix = gtorch_tensor_add_scalar (matrix, 0.37, 1, error);
  data->square = gtorch_randn (GTORCH_SHAPE (n > 16 ? 1024 : 4, n > 16 ? 1024 : 4),
                               GTORCH_DTYPE_FLOAT32, NULL, NULL, error);
  data->batch = gtorch_randn (GTORCH_SHAPE (n > 16 ? 32 : 1, 256, 256), GTORCH_DTYPE_FLOAT32, NULL,
                              NULL, error);
  data->weight = gtorch_tensor_add_scalar (zero, 0.37, 1, error);
  if (data->square == NULL || data->batch == NULL
      || !gtorch_tensor_set_requires_grad (data->weight, TRUE, error))
    return FALSE;
  data->mask = gtorch_tensor_gt (data->x, data->y, error);
  return data->mask != NULL;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  Data tiny = { NULL }, large = { NULL };
  guint i;

  gtorch_set_grad_enabled (FALSE);
  if (!fill (&tiny, 16, &error) || !fill (&large, 16 << 20, &error))
    {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      if (argc > 1 && !g_strv_contains ((const gchar *const *) argv + 1, cases[i].name))
        continue;
      if (!time_case (&cases[i], cases[i].tiny ? &tiny : &large, &error))
        {
          fprintf (stderr, "%s: %s\n", cases[i].name, error->message);
          return 1;
        }
    }
  return 0;
}
