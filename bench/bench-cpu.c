/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times operations on the CPU: reads their names from standard input and prints “name, median seconds of
 * one call” for each, so that bench/run can alternate between this program and its peer. Without input,
 * times all of them. */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench-training.h"

typedef struct
{
  GTorchTensor *x, *y, *row, *column, *matrix, *mask, *index, *weight, *one;
} Data;

/* The operands, by their size. */
typedef struct
{
  GTorchTensor *square[3], *square_double, *batch, *million, *image, *filter;
} Others;

static Others others;

typedef GTorchTensor *(*Run) (Data *data, GError **error);

typedef enum
{
  TINY,  /* 16 elements: the cost of a call */
  CACHE, /* 64 K elements: the speed of the loops */
  LARGE, /* 16 M elements: the memory bandwidth */
  OTHER,
} Size;

typedef struct
{
  const gchar *name;
  Size size;
  Run run;
} Case;

#define CASE(function, expression) \
  static GTorchTensor *function (Data *d, GError **error) { return expression; }

#define NONE GTORCH_DTYPE_NONE

CASE (add, gtorch_tensor_add (d->x, d->y, 1, error))
CASE (add_inplace, g_object_ref (gtorch_tensor_add_inplace (d->y, d->x, 1e-30, error)))
CASE (mul, gtorch_tensor_mul (d->x, d->y, error))
CASE (relu, gtorch_tensor_relu (d->x, error))
CASE (run_exp, gtorch_tensor_exp (d->x, error))
CASE (run_log, gtorch_tensor_log (d->x, error))
CASE (run_sin, gtorch_tensor_sin (d->x, error))
CASE (run_tanh, gtorch_tensor_tanh (d->x, error))
CASE (sigmoid, gtorch_tensor_sigmoid (d->x, error))
CASE (gelu, gtorch_tensor_gelu (d->x, FALSE, error))
CASE (add_row, gtorch_tensor_add (d->matrix, d->row, 1, error))
CASE (add_column, gtorch_tensor_add (d->matrix, d->column, 1, error))
CASE (compare, gtorch_tensor_gt (d->x, d->y, error))
CASE (where, gtorch_where (d->mask, d->x, d->y, error))
CASE (masked_fill, gtorch_tensor_masked_fill_scalar (d->x, d->mask, 0, error))
CASE (cast, gtorch_tensor_to_dtype (d->x, GTORCH_DTYPE_BFLOAT16, error))
CASE (cast_half, gtorch_tensor_to_dtype (d->x, GTORCH_DTYPE_FLOAT16, error))
CASE (copy, g_object_ref (gtorch_tensor_copy_inplace (d->y, d->x, FALSE, error)))
CASE (sum_all, gtorch_tensor_sum (d->x, NULL, 0, FALSE, NONE, error))
CASE (sum_0, gtorch_tensor_sum (d->matrix, GTORCH_SHAPE (0), FALSE, NONE, error))
CASE (sum_1, gtorch_tensor_sum (d->matrix, GTORCH_SHAPE (1), FALSE, NONE, error))
CASE (amax_1, gtorch_tensor_amax (d->matrix, GTORCH_SHAPE (1), FALSE, error))
CASE (argmax_1, gtorch_tensor_argmax (d->matrix, GTORCH_SHAPE (1), FALSE, error))
CASE (softmax, gtorch_tensor_softmax (d->matrix, 1, NONE, error))
CASE (log_softmax, gtorch_tensor_log_softmax (d->matrix, 1, NONE, error))
CASE (layer_norm,
      gtorch_layer_norm (d->matrix, GTORCH_SHAPE (gtorch_tensor_get_size (d->matrix, 1, NULL)),
                         d->row, d->row, 1e-5, error))
CASE (cumsum, gtorch_tensor_cumsum (d->matrix, 1, NONE, error))
CASE (index_select, gtorch_tensor_index_select (d->matrix, 0, d->index, error))
CASE (run_clone, gtorch_tensor_clone (d->x, error))
CASE (run_randn, gtorch_randn (GTORCH_SHAPE (16 << 20), GTORCH_DTYPE_FLOAT32, NULL, NULL, error))
CASE (empty, gtorch_empty (GTORCH_SHAPE (16), GTORCH_DTYPE_FLOAT32, NULL, error))
CASE (view, gtorch_tensor_view (d->matrix, GTORCH_SHAPE (16), error))
CASE (slice, gtorch_tensor_slice (d->matrix, 0, 1, 3, 1, error))
CASE (matmul_4, gtorch_tensor_matmul (d->matrix, d->matrix, error))
CASE (matmul_256, gtorch_tensor_matmul (others.square[0], others.square[0], error))
CASE (matmul_1024, gtorch_tensor_matmul (others.square[1], others.square[1], error))
CASE (matmul_2048, gtorch_tensor_matmul (others.square[2], others.square[2], error))
CASE (matmul_double, gtorch_tensor_matmul (others.square_double, others.square_double, error))
CASE (bmm, gtorch_tensor_bmm (others.batch, others.batch, error))
CASE (conv2d, gtorch_conv2d (others.image, others.filter, NULL, GTORCH_SHAPE (1, 1),
                             GTORCH_SHAPE (1, 1), GTORCH_SHAPE (1, 1), 1, error))

static GTorchTensor *
item (Data *d, GError **error)
{
  (void) gtorch_tensor_item_double (d->one, error);
  return g_object_ref (d->one);
}

static GTorchTensor *
max_1 (Data *d, GError **error)
{
  GTorchTensor *values, *indices;

  if (!gtorch_tensor_max_dim (d->matrix, 1, FALSE, &values, &indices, error))
    return NULL;
  g_object_unref (indices);
  return values;
}

static GTorchTensor *
sort (Data *d, GError **error)
{
  GTorchTensor *values, *indices;

  if (!gtorch_tensor_sort (others.million, 0, FALSE, FALSE, &values, &indices, error))
    return NULL;
  g_object_unref (indices);
  return values;
}

static GTorchTensor *
topk (Data *d, GError **error)
{
  GTorchTensor *values, *indices;

  if (!gtorch_tensor_topk (others.million, 100, 0, TRUE, TRUE, &values, &indices, error))
    return NULL;
  g_object_unref (indices);
  return values;
}

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
  g_autoptr (GTorchTensor) total = gtorch_tensor_sum (product, NULL, 0, FALSE, NONE, error);
  gboolean success = gtorch_tensor_backward (total, NULL, FALSE, FALSE, error);

  gtorch_tensor_set_grad (d->weight, NULL, NULL);
  gtorch_set_grad_enabled (before);
  return success ? g_steal_pointer (&total) : NULL;
}

/* The state of one measurement. It is new each time: the longer a network was trained, the more numbers
 * are subnormal, which slow down processors. */
static BenchTraining *training;
static GTorchOptimizer *optimizer;

static BenchTraining *
get_training (BenchNetwork network, GError **error)
{
  if (training == NULL)
    training = bench_training_new (network, GTORCH_DTYPE_NONE, FALSE, gtorch_device_cpu (), error);
  return training;
}

static GTorchTensor *
train (BenchNetwork network, GError **error)
{
  if (get_training (network, error) == NULL || !bench_training_step (training, error))
    return NULL;
  return g_object_ref (bench_training_get_input (training));
}

static GTorchTensor *
infer (BenchNetwork network, GError **error)
{
  return get_training (network, error) != NULL ? bench_training_infer (training, error) : NULL;
}

CASE (train_seed, train (BENCH_SEED_MLP, error))
CASE (train_small, train (BENCH_SMALL_MLP50, error))
CASE (train_digits, train (BENCH_DIGITS, error))
CASE (train_lstm, train (BENCH_SMALL_LSTM, error))
CASE (infer_lstm, infer (BENCH_SMALL_LSTM, error))
CASE (infer_small, infer (BENCH_SMALL_MLP50, error))
CASE (infer_digits, infer (BENCH_DIGITS, error))

static GTorchTensor *
step (Data *d, gboolean is_adam, GError **error)
{
  if (optimizer == NULL)
    {
      g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);

      g_list_store_append (params, d->weight);
      gtorch_tensor_set_grad (d->weight, d->y, NULL);
      optimizer = is_adam
                      ? GTORCH_OPTIMIZER (gtorch_adam_new (G_LIST_MODEL (params), 1e-9, error))
                      : GTORCH_OPTIMIZER (gtorch_sgd_new (G_LIST_MODEL (params), 1e-9, 0.9, error));
    }
  if (optimizer == NULL || !gtorch_optimizer_step (optimizer, error))
    return NULL;
  return g_object_ref (d->weight);
}

CASE (step_adam, step (d, TRUE, error))
CASE (step_momentum, step (d, FALSE, error))

static const Case cases[] = {
  { "host.add", TINY, add },
  { "host.add_", TINY, add_inplace },
  { "host.relu", TINY, relu },
  { "host.empty", TINY, empty },
  { "host.view", TINY, view },
  { "host.slice", TINY, slice },
  { "host.sum", TINY, sum_all },
  { "host.item", TINY, item },
  { "host.matmul", TINY, matmul_4 },
  { "host.add_grad", TINY, add_grad },
  { "host.mul_sum_backward", TINY, backward },
  { "cache.copy_", CACHE, copy },
  { "cache.add", CACHE, add },
  { "cache.mul", CACHE, mul },
  { "cache.relu", CACHE, relu },
  { "cache.exp", CACHE, run_exp },
  { "cache.log", CACHE, run_log },
  { "cache.sin", CACHE, run_sin },
  { "cache.tanh", CACHE, run_tanh },
  { "cache.sigmoid", CACHE, sigmoid },
  { "cache.gelu", CACHE, gelu },
  { "cache.gt", CACHE, compare },
  { "cache.where", CACHE, where },
  { "cache.cast_bf16", CACHE, cast },
  { "cache.add_row", CACHE, add_row },
  { "cache.add_column", CACHE, add_column },
  { "cache.transpose_copy", CACHE, transpose_copy },
  { "cache.sum_all", CACHE, sum_all },
  { "cache.sum_dim0", CACHE, sum_0 },
  { "cache.sum_dim1", CACHE, sum_1 },
  { "cache.max_dim1", CACHE, max_1 },
  { "cache.argmax_dim1", CACHE, argmax_1 },
  { "cache.softmax", CACHE, softmax },
  { "cache.layer_norm", CACHE, layer_norm },
  { "cache.cumsum_dim1", CACHE, cumsum },
  { "cache.index_select", CACHE, index_select },
  { "cache.cast_f16", CACHE, cast_half },
  { "cache.step_adam", CACHE, step_adam },
  { "cache.step_momentum", CACHE, step_momentum },
  { "copy_", LARGE, copy },
  { "add", LARGE, add },
  { "add_", LARGE, add_inplace },
  { "mul", LARGE, mul },
  { "relu", LARGE, relu },
  { "exp", LARGE, run_exp },
  { "log", LARGE, run_log },
  { "sin", LARGE, run_sin },
  { "tanh", LARGE, run_tanh },
  { "sigmoid", LARGE, sigmoid },
  { "gelu", LARGE, gelu },
  { "gt", LARGE, compare },
  { "where", LARGE, where },
  { "masked_fill", LARGE, masked_fill },
  { "cast_bf16", LARGE, cast },
  { "clone", LARGE, run_clone },
  { "add_row", LARGE, add_row },
  { "add_column", LARGE, add_column },
  { "transpose_copy", LARGE, transpose_copy },
  { "sum_all", LARGE, sum_all },
  { "sum_dim0", LARGE, sum_0 },
  { "sum_dim1", LARGE, sum_1 },
  { "amax_dim1", LARGE, amax_1 },
  { "max_dim1", LARGE, max_1 },
  { "argmax_dim1", LARGE, argmax_1 },
  { "softmax", LARGE, softmax },
  { "log_softmax", LARGE, log_softmax },
  { "layer_norm", LARGE, layer_norm },
  { "cumsum_dim1", LARGE, cumsum },
  { "index_select", LARGE, index_select },
  { "step_adam", LARGE, step_adam },
  { "step_momentum", LARGE, step_momentum },
  { "randn", OTHER, run_randn },
  { "sort_1m", OTHER, sort },
  { "topk_100_of_1m", OTHER, topk },
  { "matmul_256", OTHER, matmul_256 },
  { "matmul_1024", OTHER, matmul_1024 },
  { "matmul_2048", OTHER, matmul_2048 },
  { "matmul_1024_double", OTHER, matmul_double },
  { "bmm_32x256", OTHER, bmm },
  { "conv2d_16x32x56x56", OTHER, conv2d },
  { "train.seed_mlp_sgd.eager", OTHER, train_seed },
  { "train.small_mlp50_adam.eager", OTHER, train_small },
  { "train.small_mlp50_adam_fused.eager", OTHER, train_small },
  { "train.digits.eager", OTHER, train_digits },
  { "train.digits_fused.eager", OTHER, train_digits },
  { "train.small_lstm.eager", OTHER, train_lstm },
  { "infer.small_lstm.eager", OTHER, infer_lstm },
  { "infer.small_mlp50.eager", OTHER, infer_small },
  { "infer.digits.eager", OTHER, infer_digits },
};

static int
by_value (const void *a, const void *b)
{
  const gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

static gdouble
seconds_of (const Case *c, Data *data, guint n_calls, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  guint i;

  for (i = 0; i < n_calls; i++)
    {
      GTorchTensor *result = c->run (data, error);

      if (result == NULL)
        return -1;
      gtorch_tensor_unref (result);
    }
  return (g_get_monotonic_time () - start) / 1e6 / n_calls;
}

/* Takes samples of about 10 ms, for a quarter of a second, at least 9 of them. */
static gboolean
time_case (const Case *c, Data *data, GError **error)
{
  gdouble samples[64], first;
  guint n_calls, n, i;

  g_clear_pointer (&training, bench_training_free);
  g_clear_object (&optimizer);
  if (seconds_of (c, data, 1, error) < 0)
    return FALSE;
  first = MAX (seconds_of (c, data, 3, error), 1e-8);
  n_calls = CLAMP (0.01 / first, 1, 100000);
  n = CLAMP (0.25 / (first * n_calls), 9, 64);
  for (i = 0; i < n; i++)
    samples[i] = seconds_of (c, data, n_calls, error);
  qsort (samples, n, sizeof (gdouble), by_value);
  printf ("%s\t%.4g\n", c->name, samples[n / 2]);
  fflush (stdout);
  return TRUE;
}

static GTorchTensor *
randn (gint64 n, gint64 m, GError **error)
{
  return gtorch_randn ((gint64[]){ n, m }, m > 0 ? 2 : 1, GTORCH_DTYPE_FLOAT32, NULL, NULL, error);
}

static gboolean
fill (Data *data, gint64 n, gint64 side, GError **error)
{
  gint64 rows = n / side;
  g_autoptr (GTorchTensor) order =
      gtorch_arange (rows - 1, -1, -1, GTORCH_DTYPE_INT64, NULL, error);

  data->x = randn (n, 0, error);
  data->y = randn (n, 0, error);
  data->row = randn (side, 0, error);
  data->column = randn (rows, 1, error);
  data->matrix = randn (rows, side, error);
  data->weight = randn (n, 0, error);
  data->one = randn (1, 0, error);
  if (order == NULL || data->x == NULL || data->y == NULL || data->row == NULL
      || data->column == NULL || data->matrix == NULL || data->one == NULL
      || !gtorch_tensor_set_requires_grad (data->weight, TRUE, error))
    return FALSE;
  data->index = g_steal_pointer (&order);
  data->mask = gtorch_tensor_gt (data->x, data->y, error);
  return data->mask != NULL;
}

static gboolean
fill_others (GError **error)
{
  others.square[0] = randn (256, 256, error);
  others.square[1] = randn (1024, 1024, error);
  others.square[2] = randn (2048, 2048, error);
  others.square_double =
      gtorch_randn (GTORCH_SHAPE (1024, 1024), GTORCH_DTYPE_FLOAT64, NULL, NULL, error);
  others.batch =
      gtorch_randn (GTORCH_SHAPE (32, 256, 256), GTORCH_DTYPE_FLOAT32, NULL, NULL, error);
  others.million = randn (1000000, 0, error);
  others.image =
      gtorch_randn (GTORCH_SHAPE (16, 32, 56, 56), GTORCH_DTYPE_FLOAT32, NULL, NULL, error);
  others.filter =
      gtorch_randn (GTORCH_SHAPE (64, 32, 3, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL, error);
  return others.square[2] != NULL && others.square_double != NULL && others.batch != NULL
         && others.image != NULL && others.filter != NULL;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  Data data[4] = { { NULL } };
  char line[64];
  guint i;

  if (!fill (&data[TINY], 16, 4, &error) || !fill (&data[CACHE], 1 << 16, 256, &error)
      || !fill (&data[LARGE], 16 << 20, 4096, &error) || !fill_others (&error))
    {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
  if (argc > 1 && strcmp (argv[1], "--list") == 0)
    {
      for (i = 0; i < G_N_ELEMENTS (cases); i++)
        puts (cases[i].name);
      return 0;
    }
  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_strchomp (line);
      for (i = 0; i < G_N_ELEMENTS (cases) && strcmp (cases[i].name, line) != 0; i++)
        ;
      if (i == G_N_ELEMENTS (cases))
        printf ("%s\tnone\n", line);
      else if (!time_case (&cases[i], &data[cases[i].size], &error))
        {
          printf ("%s\tnone\n", line);
          fprintf (stderr, "%s: %s\n", line, error->message);
          g_clear_error (&error);
        }
      fflush (stdout);
    }
  return 0;
}
