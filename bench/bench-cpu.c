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
  GTorchTensor *x, *y, *row, *column, *matrix, *square, *mask, *index, *batch, *image, *filter;
} Data;

typedef GTorchTensor *(*Run) (Data *data, GError **error);

typedef struct
{
  const gchar *name;
  gboolean tiny; /* 16 elements, else 16 M */
  Run run;
} Case;

#define CASE(function, expression)                                                                 \
  static GTorchTensor *function (Data *d, GError **error)                                          \
  {                                                                                                \
    return expression;                                                                             \
  }

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

static const Case cases[] = {
  { "host.add", TRUE, add },
  { "host.add_", TRUE, add_inplace },
  { "host.relu", TRUE, relu },
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
  g_autoptr (GTorchTensor) row = gtorch_zeros (GTORCH_SHAPE (side), GTORCH_DTYPE_FLOAT32, NULL, error);
  g_autoptr (GTorchTensor) column = gtorch_zeros (GTORCH_SHAPE (rows, 1), GTORCH_DTYPE_FLOAT32, NULL, error);
  g_autoptr (GTorchTensor) matrix
    = gtorch_zeros (GTORCH_SHAPE (rows, side), GTORCH_DTYPE_FLOAT32, NULL, error);

  if (zero == NULL || row == NULL || column == NULL || matrix == NULL)
    return FALSE;
  data->x = gtorch_tensor_add_scalar (zero, 0.37, 1, error);
  data->y = gtorch_tensor_add_scalar (zero, 1.62, 1, error);
  data->row = gtorch_tensor_add_scalar (row, 0.37, 1, error);
  data->column = gtorch_tensor_add_scalar (column, 0.37, 1, error);
  data->matrix = gtorch_tensor_add_scalar (matrix, 0.37, 1, error);
  data->mask = gtorch_tensor_gt (data->x, data->y, error);
  return data->mask != NULL;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  Data tiny = { NULL }, large = { NULL };
  guint i;

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
