/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations on a GPU: how long the host is busy with a small one, and how fast a large one goes
 * through memory. One row a line: name, value, unit. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <stdlib.h>

typedef GTorchTensor *(*Func) (GTorchTensor **x);

static GTorchDevice *device;
static const gint64 ones[] = { 1, 1 };

static void
check (GError *error)
{
  if (error == NULL)
    return;
  g_printerr ("%s\n", error->message);
  exit (1);
}

static GTorchTensor *
random_tensor (const gint64 *shape, gsize n_dims, GTorchDType dtype)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) host = gtorch_randn (shape, n_dims, dtype, NULL, NULL, &error);
  GTorchTensor *result;

  check (error);
  result = gtorch_tensor_to_device (host, device, &error);
  check (error);
  return result;
}

static gdouble
median (gdouble *values, guint n)
{
  guint i, j;

  for (i = 1; i < n; i++)
    for (j = i; j > 0 && values[j] < values[j - 1]; j--)
      {
        gdouble swap = values[j];

        values[j] = values[j - 1];
        values[j - 1] = swap;
      }
  return values[n / 2];
}

/* Nanoseconds of the host for one call, the queue never full. */
static void
host (const gchar *name, Func func, GTorchTensor **x)
{
  gdouble times[21];
  guint i, k;

  for (k = 0; k < G_N_ELEMENTS (times); k++)
    {
      gint64 start;

      gtorch_device_synchronize (device, NULL, NULL);
      start = g_get_monotonic_time ();
      for (i = 0; i < 500; i++)
        g_object_unref (func (x));
      times[k] = (g_get_monotonic_time () - start) * 1000.0 / 500;
    }
  g_print ("host.%s\t%.0f\tns\n", name, median (times, G_N_ELEMENTS (times)));
}

/* How much of `unit` (10^9 of it) a second of the device for n of it a call. */
static void
rate (const gchar *name, Func func, GTorchTensor **x, gdouble amount, const gchar *unit)
{
  gdouble rates[15];
  guint i, k, n = 10;

  for (k = 0; k < G_N_ELEMENTS (rates); k++)
    {
      g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
      g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
      GTorchStream *stream = gtorch_stream_get_current (device);
      GError *error = NULL;

      g_object_unref (func (x));
      gtorch_event_record (start, stream, &error);
      check (error);
      for (i = 0; i < n; i++)
        g_object_unref (func (x));
      gtorch_event_record (end, stream, &error);
      check (error);
      gtorch_event_synchronize (end, NULL, &error);
      check (error);
      rates[k] = amount * n / (gtorch_event_get_elapsed_ms (start, end, &error) * 1e6);
      check (error);
    }
  g_print ("%s\t%.0f\t%s\n", name, median (rates, G_N_ELEMENTS (rates)), unit);
}

static void
memory (const gchar *name, Func func, GTorchTensor **x, gdouble n_bytes)
{
  g_autofree gchar *full = g_strconcat ("memory.", name, NULL);

  rate (full, func, x, n_bytes, "GB/s");
}

static void
item (GTorchTensor *x)
{
  gdouble times[21];
  guint i, k;

  for (k = 0; k < G_N_ELEMENTS (times); k++)
    {
      gint64 start = g_get_monotonic_time ();

      for (i = 0; i < 100; i++)
        gtorch_tensor_item_double (x, NULL);
      times[k] = (g_get_monotonic_time () - start) * 1000.0 / 100;
    }
  g_print ("host.item\t%.0f\tns\n", median (times, G_N_ELEMENTS (times)));
}

static GTorchTensor *
must (GTorchTensor *tensor, GError *error)
{
  check (error);
  return tensor;
}

#define FUNC(name, call)                       \
  static GTorchTensor *name (GTorchTensor **x) \
  {                                            \
    GError *error = NULL;                      \
    GTorchTensor *result = call;               \
                                               \
    return must (result, error);               \
  }

FUNC (add, gtorch_tensor_add (x[0], x[1], 1, &error))
FUNC (add_inplace, g_object_ref (gtorch_tensor_add_inplace (x[0], x[1], 1, &error)))
FUNC (view, gtorch_tensor_view (x[0], (gint64[]){ 4, 4 }, 2, &error))
FUNC (slice, gtorch_tensor_slice (x[0], 0, 1, 9, 1, &error))
FUNC (empty, gtorch_empty ((gint64[]){ 16 }, 1, GTORCH_DTYPE_FLOAT32, device, &error))
FUNC (copy, gtorch_tensor_clone (x[0], &error))
FUNC (relu, gtorch_tensor_relu (x[0], &error))
FUNC (exp_, gtorch_tensor_exp (x[0], &error))
FUNC (gelu, gtorch_tensor_gelu (x[0], FALSE, &error))
FUNC (cast, gtorch_tensor_to_dtype (x[0], GTORCH_DTYPE_BFLOAT16, &error))
FUNC (row, gtorch_tensor_add (x[0], x[2], 1, &error))
FUNC (column, gtorch_tensor_add (x[0], x[3], 1, &error))
FUNC (transpose, gtorch_tensor_clone (x[4], &error))
FUNC (add_bf16, gtorch_tensor_add (x[5], x[6], 1, &error))
FUNC (softmax, gtorch_tensor_softmax (x[0], -1, GTORCH_DTYPE_NONE, &error))
FUNC (softmax_bf16, gtorch_tensor_softmax (x[5], -1, GTORCH_DTYPE_NONE, &error))
FUNC (layer_norm, gtorch_layer_norm (x[0], (gint64[]){ 2048 }, 1, x[2], x[2], 1e-5, &error))
FUNC (layer_norm_bf16, gtorch_layer_norm (x[5], (gint64[]){ 2048 }, 1, x[7], x[7], 1e-5, &error))
FUNC (dropout, gtorch_tensor_dropout (x[0], 0.5, TRUE, NULL, &error))
FUNC (normal,
      gtorch_randn ((gint64[]){ 8192, 8192 }, 2, GTORCH_DTYPE_FLOAT32, device, NULL, &error))
FUNC (uniform,
      gtorch_rand ((gint64[]){ 8192, 8192 }, 2, GTORCH_DTYPE_FLOAT32, device, NULL, &error))
FUNC (where, gtorch_where (x[8], x[0], x[1], &error))
FUNC (index_select, gtorch_tensor_index_select (x[0], 0, x[9], &error))
FUNC (cat, gtorch_cat (x, 2, 0, &error))
FUNC (sum, gtorch_tensor_sum (x[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error))
FUNC (matmul, gtorch_tensor_mm (x[0], x[1], &error))
FUNC (conv, gtorch_conv2d (x[0], x[1], NULL, ones, 2, ones, 2, ones, 2, 1, &error))
FUNC (conv_bias, gtorch_conv2d (x[0], x[1], x[2], ones, 2, ones, 2, ones, 2, 1, &error))
FUNC (fill, gtorch_full ((gint64[]){ 8192, 8192 }, 2, 2, GTORCH_DTYPE_FLOAT32, device, &error))

/* --- order and running sums: a matrix, and the same elements in a row --- */

#define TWO(name, call)                           \
  static GTorchTensor *name (GTorchTensor **x)    \
  {                                               \
    GTorchTensor *values = NULL, *indices = NULL; \
    GError *error = NULL;                         \
                                                  \
    call;                                         \
    check (error);                                \
    g_object_unref (indices);                     \
    return values;                                \
  }

FUNC (argmax_all, gtorch_tensor_argmax (x[1], NULL, 0, FALSE, &error))
FUNC (argmax_0, gtorch_tensor_argmax (x[0], (gint64[]){ 0 }, 1, FALSE, &error))
FUNC (argmax_1, gtorch_tensor_argmax (x[0], (gint64[]){ 1 }, 1, FALSE, &error))
TWO (max_dim, gtorch_tensor_max_dim (x[0], 1, FALSE, &values, &indices, &error))
FUNC (cumsum_all, gtorch_tensor_cumsum (x[1], 0, GTORCH_DTYPE_NONE, &error))
FUNC (cumsum_0, gtorch_tensor_cumsum (x[0], 0, GTORCH_DTYPE_NONE, &error))
FUNC (cumsum_1, gtorch_tensor_cumsum (x[0], 1, GTORCH_DTYPE_NONE, &error))
TWO (sort_all, gtorch_tensor_sort (x[1], 0, FALSE, FALSE, &values, &indices, &error))
TWO (sort_rows, gtorch_tensor_sort (x[0], 1, FALSE, FALSE, &values, &indices, &error))
TWO (topk_all, gtorch_tensor_topk (x[1], 100, 0, TRUE, TRUE, &values, &indices, &error))

static void
order (GTorchTensor *matrix)
{
  gdouble n = gtorch_tensor_get_numel (matrix);
  GTorchTensor *x[2] = { matrix, NULL };
  GError *error = NULL;

  x[1] = gtorch_tensor_view (matrix, (gint64[]){ -1 }, 1, &error);
  check (error);
  memory ("argmax_all", argmax_all, x, 4 * n);
  memory ("argmax_dim0", argmax_0, x, 4 * n);
  memory ("argmax_dim1", argmax_1, x, 4 * n);
  memory ("max_dim1", max_dim, x, 4 * n);
  memory ("cumsum_all", cumsum_all, x, 8 * n);
  memory ("cumsum_dim0", cumsum_0, x, 8 * n);
  memory ("cumsum_dim1", cumsum_1, x, 8 * n);
  rate ("rate.sort_64M", sort_all, x, 1e3 * n, "Mkey/s");
  rate ("rate.sort_rows", sort_rows, x, 1e3 * n, "Mkey/s");
  rate ("rate.topk_100_64M", topk_all, x, 1e3 * n, "Mkey/s");
  g_object_unref (x[1]);
}

static GTorchTensor *
conv_backward (GTorchTensor **x)
{
  GTorchTensor *result = conv (x);
  GError *error = NULL;
  g_autoptr (GTorchTensor) upper = gtorch_tensor_detach (result, &error);
  guint i;

  check (error);
  gtorch_tensor_backward (result, upper, FALSE, FALSE, &error);
  check (error);
  for (i = 0; i < 2; i++)
    {
      gtorch_tensor_set_grad (x[i], NULL, &error);
      check (error);
    }
  return result;
}

/* Alone, with a bias, with both gradients. */
static void
convolutions (const gchar *name, GTorchDType dtype, gboolean channels_last)
{
  const gint64 input[] = { 64, 256, 56, 56 }, input_turned[] = { 64, 56, 56, 256 };
  const gint64 weight[] = { 256, 256, 3, 3 }, weight_turned[] = { 256, 3, 3, 256 };
  const gint64 back[] = { 0, 3, 1, 2 };
  gdouble n = 2.0 * 64 * 56 * 56 * 256 * 256 * 9;
  g_autofree gchar *with_bias = g_strconcat (name, "_bias", NULL);
  g_autofree gchar *both = g_strconcat (name, "_backward", NULL);
  GTorchTensor *x[3] = { NULL };
  GError *error = NULL;
  guint i;

  x[0] = gtorch_randn (channels_last ? input_turned : input, 4, dtype, device, NULL, &error);
  check (error);
  x[1] = gtorch_randn (channels_last ? weight_turned : weight, 4, dtype, device, NULL, &error);
  check (error);
  x[2] = gtorch_randn (weight, 1, dtype, device, NULL, &error);
  check (error);
  for (i = 0; i < 2; i++)
    {
      if (channels_last)
        {
          g_autoptr (GTorchTensor) turned = x[i];

          x[i] = gtorch_tensor_permute (turned, back, 4, &error);
          check (error);
        }
    }
  rate (name, conv, x, n, "GFLOP/s");
  rate (with_bias, conv_bias, x, n, "GFLOP/s");
  for (i = 0; i < 2; i++)
    {
      gtorch_tensor_set_requires_grad (x[i], TRUE, &error);
      check (error);
    }
  rate (both, conv_backward, x, 3 * n, "GFLOP/s");
  for (i = 0; i < G_N_ELEMENTS (x); i++)
    g_object_unref (x[i]);
}

int
main (int argc, char *argv[])
{
  GError *error = NULL;
  gint64 small = 16, large[] = { 8192, 8192 }, side[] = { 8192, 1 };
  gdouble n = 8192.0 * 8192.0;
  gint64 begin = g_get_monotonic_time ();
  GTorchTensor *x[10], *one;
  gint64 rows[] = { 32768, 2048 };

  device = gtorch_device_new_from_string (argc > 1 ? argv[1] : "cuda", &error);
  check (error);
  x[0] = random_tensor (&small, 1, GTORCH_DTYPE_FLOAT32);
  gtorch_device_synchronize (device, NULL, NULL);
  g_print ("start.first_tensor\t%.1f\tms\n", (g_get_monotonic_time () - begin) / 1000.0);
  g_print ("device\t%s\t\n", gtorch_device_get_name (device));
  x[1] = random_tensor (&small, 1, GTORCH_DTYPE_FLOAT32);
  host ("add", add, x);
  host ("add_", add_inplace, x);
  host ("view", view, x);
  host ("slice", slice, x);
  host ("empty", empty, x);
  one = gtorch_tensor_sum (x[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  check (error);
  item (one);

  x[0] = random_tensor (large, 2, GTORCH_DTYPE_FLOAT32);
  x[1] = random_tensor (large, 2, GTORCH_DTYPE_FLOAT32);
  x[2] = random_tensor (large, 1, GTORCH_DTYPE_FLOAT32);
  x[3] = random_tensor (side, 2, GTORCH_DTYPE_FLOAT32);
  x[4] = gtorch_tensor_transpose (x[0], 0, 1, &error);
  x[5] = gtorch_tensor_to_dtype (x[0], GTORCH_DTYPE_BFLOAT16, &error);
  x[6] = gtorch_tensor_to_dtype (x[1], GTORCH_DTYPE_BFLOAT16, &error);
  check (error);
  memory ("copy", copy, x, 8 * n);
  memory ("add", add, x, 12 * n);
  memory ("relu", relu, x, 8 * n);
  memory ("exp", exp_, x, 8 * n);
  memory ("gelu", gelu, x, 8 * n);
  memory ("cast", cast, x, 6 * n);
  memory ("add_row", row, x, 8 * n);
  memory ("add_column", column, x, 8 * n);
  memory ("transpose", transpose, x, 8 * n);
  memory ("add_bf16", add_bf16, x, 6 * n);
  memory ("fill", fill, x, 4 * n);
  x[8] = gtorch_tensor_gt (x[0], x[1], &error);
  check (error);
  x[9] = gtorch_randperm (8192, GTORCH_DTYPE_INT64, device, NULL, &error);
  check (error);
  memory ("where", where, x, 13 * n);
  memory ("index_select", index_select, x, 8 * n);
  memory ("cat", cat, x, 16 * n);
  memory ("sum", sum, x, 4 * n);
  memory ("dropout", dropout, x, 9 * n);
  memory ("normal", normal, x, 4 * n);
  memory ("uniform", uniform, x, 4 * n);
  rate ("matmul.f32", matmul, x, 2 * 8192 * n, "GFLOP/s");
  order (x[0]);
  x[0] = x[5];
  x[1] = x[6];
  rate ("matmul.bf16", matmul, x, 2 * 8192 * n, "GFLOP/s");

  x[0] = random_tensor (rows, 2, GTORCH_DTYPE_FLOAT32);
  x[2] = random_tensor (rows + 1, 1, GTORCH_DTYPE_FLOAT32);
  x[5] = gtorch_tensor_to_dtype (x[0], GTORCH_DTYPE_BFLOAT16, &error);
  x[7] = gtorch_tensor_to_dtype (x[2], GTORCH_DTYPE_BFLOAT16, &error);
  check (error);
  memory ("softmax", softmax, x, 8 * n);
  memory ("softmax_bf16", softmax_bf16, x, 4 * n);
  memory ("layer_norm", layer_norm, x, 8 * n);
  memory ("layer_norm_bf16", layer_norm_bf16, x, 4 * n);

  convolutions ("conv.f32", GTORCH_DTYPE_FLOAT32, FALSE);
  convolutions ("conv.bf16", GTORCH_DTYPE_BFLOAT16, FALSE);
  convolutions ("conv.bf16_channels_last", GTORCH_DTYPE_BFLOAT16, TRUE);
  return 0;
}
