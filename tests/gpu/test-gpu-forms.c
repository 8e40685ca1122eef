/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels have variants for short and long rows, for vectors and single elements: the samples of the rows
 * are too small to cover them all. Here they are compared with the CPU's float64. */

#include "config.h"

#include "gpu-test.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
static const gint64 widths[] = { 1,    5,    31,   32,   33,   64,    100,  128,
                                 129,  255,  256,  257,  512,  1000,  1024, 2048,
                                 2050, 4096, 5000, 8192, 8200, 16384, 20000 };

/* Creates the same numbers on the CPU in float64, and on the GPU in dtype. */
static void
pair (const gint64 *shape, gsize n_dims, GTorchDType dtype, GTorchTensor **host,
      GTorchTensor **device)
{
  g_autoptr (GTorchTensor) x = TRY (gtorch_randn (shape, n_dims, dtype, NULL, NULL, &error));

  *host = as (x, GTORCH_DTYPE_FLOAT64);
  *device = on (x, gpu);
}

#define CHECK(what, call_gpu, call_host, dtype)           \
  {                                                       \
    g_autoptr (GTorchTensor) got_ = TRY (call_gpu);       \
    g_autoptr (GTorchTensor) expected_ = TRY (call_host); \
                                                          \
    agree (what, got_, expected_, tolerance_of (dtype));  \
  }

static void
rows_of_every_width (void)
{
  guint t, w;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (w = 0; w < G_N_ELEMENTS (widths); w++)
      {
        const gint64 shape[] = { 7, widths[w] };
        const gint64 last[] = { -1 };
        g_autofree gchar *what =
            g_strdup_printf ("%s, %d columns", gtorch_dtype_get_name (dtypes[t]), (int) widths[w]);
        g_autoptr (GTorchTensor) x = NULL;
        g_autoptr (GTorchTensor) y = NULL;
        g_autoptr (GTorchTensor) wx = NULL;
        g_autoptr (GTorchTensor) wy = NULL;

        if (is_one_too_many (t, G_N_ELEMENTS (dtypes), w))
          continue;
        pair (shape, 2, dtypes[t], &x, &y);
        pair (shape + 1, 1, dtypes[t], &wx, &wy);
        CHECK (what, gtorch_tensor_softmax (y, -1, GTORCH_DTYPE_NONE, &error),
               gtorch_tensor_softmax (x, -1, GTORCH_DTYPE_NONE, &error), dtypes[t])
        CHECK (what, gtorch_tensor_log_softmax (y, -1, GTORCH_DTYPE_NONE, &error),
               gtorch_tensor_log_softmax (x, -1, GTORCH_DTYPE_NONE, &error), dtypes[t])
        CHECK (what, gtorch_tensor_logsumexp (y, last, 1, FALSE, &error),
               gtorch_tensor_logsumexp (x, last, 1, FALSE, &error), dtypes[t])
        CHECK (what, gtorch_tensor_mean (y, last, 1, FALSE, GTORCH_DTYPE_NONE, &error),
               gtorch_tensor_mean (x, last, 1, FALSE, GTORCH_DTYPE_NONE, &error), dtypes[t])
        CHECK (what, gtorch_tensor_amax (y, last, 1, FALSE, &error),
               gtorch_tensor_amax (x, last, 1, FALSE, &error), dtypes[t])
        if (widths[w] > 1)
          {
            CHECK (what, gtorch_tensor_var (y, last, 1, 1, FALSE, &error),
                   gtorch_tensor_var (x, last, 1, 1, FALSE, &error), dtypes[t])
            CHECK (what, gtorch_layer_norm (y, shape + 1, 1, wy, wy, 1e-5, &error),
                   gtorch_layer_norm (x, shape + 1, 1, wx, wx, 1e-5, &error), dtypes[t])
          }
        /* rows that are not aligned to 16 bytes */
        {
          g_autoptr (GTorchTensor) x1 =
              TRY (gtorch_tensor_slice (x, 1, 0, widths[w] - 1, 1, &error));
          g_autoptr (GTorchTensor) y1 =
              TRY (gtorch_tensor_slice (y, 1, 0, widths[w] - 1, 1, &error));

          if (widths[w] > 1)
            CHECK (what, gtorch_tensor_softmax (y1, -1, GTORCH_DTYPE_NONE, &error),
                   gtorch_tensor_softmax (x1, -1, GTORCH_DTYPE_NONE, &error), dtypes[t])
        }
        CHECK (what, gtorch_tensor_softmax (y, 0, GTORCH_DTYPE_NONE, &error),
               gtorch_tensor_softmax (x, 0, GTORCH_DTYPE_NONE, &error), dtypes[t])
      }
}

/* Checks the values and both gradients of f, summed with weights. */
static void
check_gradients (const gchar *what, GTorchTensor **x, GTorchTensor **y, guint n, GTorchDType dtype,
                 GTorchTensor *(*func) (GTorchTensor **inputs, gpointer data), gpointer data)
{
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) got = NULL;
  g_autoptr (GTorchTensor) seed = NULL;
  g_autoptr (GTorchTensor) seed_y = NULL;
  g_autoptr (GTorchTensor) typed = NULL;
  GError *problem = NULL;
  guint i;

  for (i = 0; i < n; i++)
    {
      gtorch_tensor_set_requires_grad (x[i], TRUE, NULL);
      gtorch_tensor_set_requires_grad (y[i], TRUE, NULL);
    }
  expected = func (x, data);
  got = func (y, data);
  {
    g_autoptr (GTorchTensor) a = gtorch_tensor_detach (got, NULL);
    g_autoptr (GTorchTensor) b = gtorch_tensor_detach (expected, NULL);

    agree (what, a, b, 8 * tolerance_of (dtype));
    seed = TRY (gtorch_tensor_randn_like (b, GTORCH_DTYPE_NONE, NULL, &error));
  }
  typed = as (seed, dtype);
  seed_y = on (typed, gpu);
  g_clear_object (&seed);
  seed = as (typed, GTORCH_DTYPE_FLOAT64);
  gtorch_tensor_backward (expected, seed, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  gtorch_tensor_backward (got, seed_y, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) a = gtorch_tensor_get_grad (y[i]);
      g_autoptr (GTorchTensor) b = gtorch_tensor_get_grad (x[i]);

      agree (what, a, b, 40 * tolerance_of (dtype));
    }
}

typedef struct
{
  gint64 input[4], weight[4], stride[2], padding[2], dilation[2], groups;
} Conv;

static GTorchTensor *
convolve (GTorchTensor **inputs, gpointer data)
{
  const Conv *c = data;

  return TRY (gtorch_conv2d (inputs[0], inputs[1], inputs[2], c->stride, 2, c->padding, 2,
                             c->dilation, 2, c->groups, &error));
}

static void
convolutions_with_gradients (void)
{
  static const Conv convs[] = {
    { { 2, 3, 9, 11 }, { 8, 3, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 },
    { { 4, 16, 14, 14 }, { 32, 16, 3, 3 }, { 2, 1 }, { 0, 2 }, { 1, 1 }, 1 },
    { { 1, 8, 20, 17 }, { 8, 4, 5, 2 }, { 1, 2 }, { 2, 0 }, { 2, 1 }, 2 },
    { { 3, 6, 8, 8 }, { 6, 1, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 6 },
    { { 2, 64, 7, 7 }, { 64, 64, 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 },
  };
  guint t, k, i;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (convs); k++)
      {
        g_autofree gchar *what =
            g_strdup_printf ("%s, convolution %u", gtorch_dtype_get_name (dtypes[t]), k);
        GTorchTensor *x[3], *y[3];

        pair (convs[k].input, 4, dtypes[t], &x[0], &y[0]);
        pair (convs[k].weight, 4, dtypes[t], &x[1], &y[1]);
        pair (convs[k].weight, 1, dtypes[t], &x[2], &y[2]);
        check_gradients (what, x, y, 3, dtypes[t], convolve, (gpointer) &convs[k]);
        for (i = 0; i < 3; i++)
          {
            g_object_unref (x[i]);
            g_object_unref (y[i]);
          }
      }
}

/* Images whose pixels have a number of channels that engines on tensor cores do not read. */
static void
convolutions_of_few_channels_last (void)
{
  static const gint64 channels[] = { 1, 2, 3, 4, 5, 7, 8 };
  guint t, k;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (channels); k++)
      {
        const Conv conv = {
          { 16, channels[k], 130, 127 }, { 8, channels[k], 5, 5 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, 1
        };
        GTorchTensor *x[3], *y[3];
        g_autofree gchar *what =
            g_strdup_printf ("%s, %d channels last", gtorch_dtype_get_name (dtypes[t]),
                             (gint) channels[k]);

        if (is_one_too_many (t, G_N_ELEMENTS (dtypes), k))
          continue;
        pair (conv.input, 4, dtypes[t], &x[0], &y[0]);
        pair (conv.weight, 4, dtypes[t], &x[1], &y[1]);
        pair (conv.weight, 1, dtypes[t], &x[2], &y[2]);
        for (guint i = 0; i < 2; i++)
          {
            g_autoptr (GTorchTensor) plain = g_steal_pointer (&y[i]);

            y[i] = TRY (
                gtorch_tensor_to_memory_format (plain, GTORCH_MEMORY_FORMAT_CHANNELS_LAST, &error));
          }
        check_gradients (what, x, y, 3, dtypes[t], convolve, (gpointer) &conv);
        for (guint i = 0; i < 3; i++)
          {
            g_object_unref (x[i]);
            g_object_unref (y[i]);
          }
      }
}

static GTorchTensor *
normalize (GTorchTensor **inputs, gpointer data)
{
  return TRY (
      gtorch_layer_norm (inputs[0], (gint64 *) data, 1, inputs[1], inputs[2], 1e-5, &error));
}

static GTorchTensor *
normalize_batch (GTorchTensor **inputs, gpointer data)
{
  return TRY (
      gtorch_batch_norm (inputs[0], NULL, NULL, inputs[1], inputs[2], TRUE, 0.1, 1e-5, &error));
}

static GTorchTensor *
log_softmax (GTorchTensor **inputs, gpointer data)
{
  return TRY (gtorch_tensor_log_softmax (inputs[0], -1, GTORCH_DTYPE_NONE, &error));
}

static void
gradients_of_norms_and_softmax (void)
{
  static const gint64 sizes[] = { 3, 64, 300, 2048, 9000 };
  guint t, k, i, kind;

  for (t = 0; t < 2; t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (kind = 0; kind < 4; kind++)
        {
          /* of columns, a batch norm has several blocks */
          const gint64 rows[] = { kind == 3 ? 600 : 130, sizes[k] },
                       images[] = { 5, sizes[k], 3, 2 };
          g_autofree gchar *what =
              g_strdup_printf ("%s, kind %u of %d", gtorch_dtype_get_name (dtypes[t]), kind,
                               (int) sizes[k]);
          GTorchTensor *x[3], *y[3];

          pair (kind == 1 ? images : rows, kind == 1 ? 4 : 2, dtypes[t], &x[0], &y[0]);
          pair (&sizes[k], 1, dtypes[t], &x[1], &y[1]);
          pair (&sizes[k], 1, dtypes[t], &x[2], &y[2]);
          check_gradients (what, x, y, kind == 2 ? 1 : 3, dtypes[t],
                           kind == 0 ? normalize : (kind == 2 ? log_softmax : normalize_batch),
                           (gpointer) &sizes[k]);
          for (i = 0; i < 3; i++)
            {
              g_object_unref (x[i]);
              g_object_unref (y[i]);
            }
        }
}

static void
products_of_every_layout (void)
{
  static const gint64 shapes[][3] = { { 1, 1, 1 },     { 7, 5, 3 },   { 64, 64, 64 },
                                      { 33, 1, 65 },   { 1, 100, 1 }, { 129, 257, 65 },
                                      { 300, 20, 500 } };
  guint t, k, layout;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (shapes); k++)
      for (layout = 0; layout < 4; layout++)
        {
          const gint64 *s = shapes[k];
          const gint64 left[] = { layout & 1 ? s[1] : s[0], layout & 1 ? s[0] : s[1] };
          const gint64 right[] = { layout & 2 ? s[2] : s[1], layout & 2 ? s[1] : s[2] };
          g_autofree gchar *what = g_strdup_printf ("%s, product %u, layout %u",
                                                    gtorch_dtype_get_name (dtypes[t]), k, layout);
          g_autoptr (GTorchTensor) a = NULL;
          g_autoptr (GTorchTensor) b = NULL;
          g_autoptr (GTorchTensor) c = NULL;
          g_autoptr (GTorchTensor) d = NULL;

          pair (left, 2, dtypes[t], &a, &c);
          pair (right, 2, dtypes[t], &b, &d);
          {
            g_autoptr (GTorchTensor) at =
                layout & 1 ? TRY (gtorch_tensor_t (a, &error)) : g_object_ref (a);
            g_autoptr (GTorchTensor) bt =
                layout & 2 ? TRY (gtorch_tensor_t (b, &error)) : g_object_ref (b);
            g_autoptr (GTorchTensor) ct =
                layout & 1 ? TRY (gtorch_tensor_t (c, &error)) : g_object_ref (c);
            g_autoptr (GTorchTensor) dt =
                layout & 2 ? TRY (gtorch_tensor_t (d, &error)) : g_object_ref (d);
            g_autoptr (GTorchTensor) got = TRY (gtorch_tensor_mm (ct, dt, &error));
            g_autoptr (GTorchTensor) expected = TRY (gtorch_tensor_mm (at, bt, &error));

            agree (what, got, expected, 20 * tolerance_of (dtypes[t]));
          }
        }
}

/* Lines that several blocks share, lines of one block, and lines that are not aligned to 16 bytes; the
 * gradient is a scan in the opposite direction. The numbers are integers, so that nothing is rounded. */
static const gint64 line_shapes[][3] = { { 1, 3000000, 1 }, { 1, 3000001, 1 }, { 50, 100000, 1 },
                                         { 50, 100001, 1 }, { 3000, 1000, 1 }, { 1, 20000, 64 },
                                         { 1, 20000, 70 },  { 3, 5000, 128 },  { 2, 3001, 1000 },
                                         { 1, 500, 5000 },  { 1, 100000, 3 } };

static void
running_sums (void)
{
  static const GTorchDType exact[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64 };
  guint t, k;

  for (t = 0; t < G_N_ELEMENTS (exact); t++)
    for (k = 0; k < G_N_ELEMENTS (line_shapes); k++)
      {
        GError *problem = NULL;
        g_autoptr (GTorchTensor) whole =
            TRY (gtorch_randint (-3, 4, line_shapes[k], 3, GTORCH_DTYPE_INT32, NULL, NULL, &error));
        g_autoptr (GTorchTensor) x = as (whole, exact[t]);
        g_autoptr (GTorchTensor) y = on (x, gpu);
        g_autoptr (GTorchTensor) x_seed = gtorch_tensor_detach (x, NULL);
        g_autoptr (GTorchTensor) y_seed = gtorch_tensor_detach (y, NULL);
        g_autoptr (GTorchTensor) a = NULL;
        g_autoptr (GTorchTensor) b = NULL;
        g_autoptr (GTorchTensor) plain_a = NULL;
        g_autoptr (GTorchTensor) plain_b = NULL;
        g_autoptr (GTorchTensor) x_grad = NULL;
        g_autoptr (GTorchTensor) y_grad = NULL;

        gtorch_tensor_set_requires_grad (x, TRUE, &problem);
        g_assert_no_error (problem);
        gtorch_tensor_set_requires_grad (y, TRUE, &problem);
        g_assert_no_error (problem);
        a = TRY (gtorch_tensor_cumsum (x, 1, GTORCH_DTYPE_NONE, &error));
        b = TRY (gtorch_tensor_cumsum (y, 1, GTORCH_DTYPE_NONE, &error));
        plain_a = gtorch_tensor_detach (a, NULL);
        plain_b = gtorch_tensor_detach (b, NULL);
        agree ("a running sum", plain_b, plain_a, 0);
        gtorch_tensor_backward (a, x_seed, FALSE, FALSE, &problem);
        g_assert_no_error (problem);
        gtorch_tensor_backward (b, y_seed, FALSE, FALSE, &problem);
        g_assert_no_error (problem);
        x_grad = gtorch_tensor_get_grad (x);
        y_grad = gtorch_tensor_get_grad (y);
        agree ("the gradient of a running sum", y_grad, x_grad, 0);
      }
}

/* Returns 1 and -1 in random order. */
static GTorchTensor *
signs (const gint64 *shape)
{
  g_autoptr (GTorchTensor) bits =
      TRY (gtorch_randint (0, 2, shape, 3, GTORCH_DTYPE_INT64, NULL, NULL, &error));
  g_autoptr (GTorchTensor) twice = TRY (gtorch_tensor_mul_scalar (bits, 2, &error));

  return TRY (gtorch_tensor_add_scalar (twice, -1, 1, &error));
}

/* Checks that x, on the GPU, has the numbers of `expected`, int64 on the CPU. */
static void
same_numbers (const gchar *what, GTorchTensor *x, GTorchTensor *expected)
{
  g_autoptr (GTorchTensor) near = on (expected, gpu);
  g_autoptr (GTorchTensor) wanted = as (near, gtorch_tensor_get_dtype (x));
  g_autoptr (GTorchTensor) differ = TRY (gtorch_tensor_ne (x, wanted, &error));
  g_autoptr (GTorchTensor) n = TRY (gtorch_tensor_count_nonzero (differ, NULL, 0, &error));
  g_autoptr (GTorchTensor) none =
      TRY (gtorch_full (NULL, 0, 0, GTORCH_DTYPE_FLOAT64, NULL, &error));

  agree (what, n, none, 0);
}

/* Scans the lines from element `start` on; they are longer by that. The gradient is a scan in the
 * opposite direction. */
static void
check_lines (GTorchDType dtype, gint64 outer, gint64 n, gint64 inner, gint64 start)
{
  const gint64 shape[] = { outer, start + n, inner };
  g_autofree gchar *what = g_strdup_printf ("lines of %s, [%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                                            ", %" G_GINT64_FORMAT "] from %" G_GINT64_FORMAT,
                                            gtorch_dtype_get_name (dtype), outer, n, inner, start);
  g_autoptr (GTorchTensor) longer = signs (shape);
  g_autoptr (GTorchTensor) longer_near = on (longer, gpu);
  g_autoptr (GTorchTensor) longer_y = as (longer_near, dtype);
  g_autoptr (GTorchTensor) x = TRY (gtorch_tensor_narrow (longer, 1, start, n, &error));
  g_autoptr (GTorchTensor) y = TRY (gtorch_tensor_narrow (longer_y, 1, start, n, &error));
  g_autoptr (GTorchTensor) sums = TRY (gtorch_tensor_cumsum (y, 1, dtype, &error));
  g_autoptr (GTorchTensor) products = TRY (gtorch_tensor_cumprod (y, 1, dtype, &error));
  g_autoptr (GTorchTensor) true_sums = TRY (gtorch_tensor_cumsum (x, 1, GTORCH_DTYPE_NONE, &error));
  g_autoptr (GTorchTensor) true_products =
      TRY (gtorch_tensor_cumprod (x, 1, GTORCH_DTYPE_NONE, &error));

  g_test_message ("%s", what);
  same_numbers (what, sums, true_sums);
  same_numbers (what, products, true_products);
  if (gtorch_dtype_is_floating_point (dtype) || gtorch_dtype_is_complex (dtype))
    {
      GError *problem = NULL;
      g_autoptr (GTorchTensor) seed = gtorch_tensor_detach (y, NULL);
      g_autoptr (GTorchTensor) leaf = gtorch_tensor_detach (y, NULL);
      g_autoptr (GTorchTensor) back = TRY (gtorch_tensor_flip (x, GTORCH_SHAPE (1), &error));
      g_autoptr (GTorchTensor) back_sums =
          TRY (gtorch_tensor_cumsum (back, 1, GTORCH_DTYPE_NONE, &error));
      g_autoptr (GTorchTensor) expected =
          TRY (gtorch_tensor_flip (back_sums, GTORCH_SHAPE (1), &error));
      g_autoptr (GTorchTensor) sum = NULL;
      g_autoptr (GTorchTensor) grad = NULL;

      gtorch_tensor_set_requires_grad (leaf, TRUE, &problem);
      g_assert_no_error (problem);
      sum = TRY (gtorch_tensor_cumsum (leaf, 1, GTORCH_DTYPE_NONE, &error));
      gtorch_tensor_backward (sum, seed, FALSE, FALSE, &problem);
      g_assert_no_error (problem);
      grad = gtorch_tensor_get_grad (leaf);
      same_numbers (what, grad, expected);
    }
}

/* Sizes around the tiles of the variants for much memory, with as many lines as this GPU needs to use
 * them: many lines, few long ones, strips of columns. */
static void
running_sums_of_large_tensors (void)
{
  static const struct
  {
    GTorchDType dtype;
    guint size;
  } all[] = { { GTORCH_DTYPE_FLOAT32, 4 },   { GTORCH_DTYPE_FLOAT64, 8 },
              { GTORCH_DTYPE_FLOAT16, 2 },   { GTORCH_DTYPE_BFLOAT16, 2 },
              { GTORCH_DTYPE_INT32, 4 },     { GTORCH_DTYPE_INT64, 8 },
              { GTORCH_DTYPE_COMPLEX64, 8 }, { GTORCH_DTYPE_COMPLEX128, 16 } };
  const gint64 multis = gtorch_device_get_n_multiprocessors (gpu);
  guint t;

  for (t = 0; t < G_N_ELEMENTS (all); t++)
    {
      const gint64 v = 16 / all[t].size, unroll = v >= 8 ? 4 : 8;
      const gint64 tile = 256 * v * unroll, long_tile = 256 * v * 9, rows = 16 * unroll;
      const gint64 many = 8 * multis + 32;
      const GTorchDType dtype = all[t].dtype;

      const struct
      {
        gint64 outer, n, inner, start;
      } lines[] = {
        { 16 * multis + 5, tile / 2 + v, 1, 0 },
        { 16 * multis + 5, tile, 1, 0 },
        { 16 * multis + 5, tile + v, 1, 0 },
        { 1, many * long_tile, 1, 0 },
        { 1, many * long_tile - v, 1, v },
        { 1, many * long_tile + v, 1, 1 },
        { 3, (many / 3 + 1) * long_tile + v, 1, 0 },
        { 37, (many / 37 + 1) * long_tile + 5 * v, 1, 0 },
        { 1, 16 * rows - 3, multis / 2 * 32 * v + v, 0 },
        { 1, 16 * rows + 1, multis / 2 * 32 * v, 1 },
        { 2, 17 * rows, multis / 4 * 32 * v, 0 },
        { 4 * multis + 2, 4 * rows - 7, 32 * v, 0 },
      };
      guint i;

      for (i = 0; i < G_N_ELEMENTS (lines); i++)
        if (!is_one_too_many (t, G_N_ELEMENTS (all), i))
          check_lines (dtype, lines[i].outer, lines[i].n, lines[i].inner, lines[i].start);
    }
}

/* The order of additions does not depend on which block finishes first. */
static void
running_sums_are_repeatable (void)
{
  const gint64 multis = gtorch_device_get_n_multiprocessors (gpu);
  const gint64 shapes[][3] = {
    { 1, 20000000, 1 }, { 5, 4000000, 1 }, { 16 * multis, 10000, 1 }, { 1, 4096, multis / 2 * 128 }
  };
  guint k, again;

  for (k = 0; k < G_N_ELEMENTS (shapes); k++)
    {
      g_autoptr (GTorchTensor) x =
          TRY (gtorch_randn (shapes[k], 3, GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
      g_autoptr (GTorchTensor) first = TRY (gtorch_tensor_cumsum (x, 1, GTORCH_DTYPE_NONE, &error));

      for (again = 0; again < 5; again++)
        {
          g_autoptr (GTorchTensor) y = TRY (gtorch_tensor_cumsum (x, 1, GTORCH_DTYPE_NONE, &error));
          g_autoptr (GTorchTensor) differ = TRY (gtorch_tensor_ne (y, first, &error));
          g_autoptr (GTorchTensor) n = TRY (gtorch_tensor_count_nonzero (differ, NULL, 0, &error));
          g_autoptr (GTorchTensor) none =
              TRY (gtorch_full (NULL, 0, 0, GTORCH_DTYPE_FLOAT64, NULL, &error));

          agree ("a running sum once more", n, none, 0);
        }
    }
}

/* Few different values, so that there are ties, and a NaN near the end. */
static void
running_extremes (void)
{
  static const GTorchDType kinds[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                       GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16,
                                       GTORCH_DTYPE_INT8,    GTORCH_DTYPE_INT64 };
  guint t, k, least;

  for (t = 0; t < G_N_ELEMENTS (kinds); t++)
    for (k = 0; k < G_N_ELEMENTS (line_shapes); k++)
      for (least = 0; least < 2; least++)
        {
          g_autoptr (GError) problem = NULL;
          g_autoptr (GTorchTensor) whole =
              TRY (gtorch_randint (-100, 101, line_shapes[k], 3, GTORCH_DTYPE_INT32, NULL, NULL,
                                   &error));
          g_autoptr (GTorchTensor) x = as (whole, kinds[t]);
          g_autoptr (GTorchTensor) y = NULL;
          g_autoptr (GTorchTensor) values = NULL;
          g_autoptr (GTorchTensor) places = NULL;
          g_autoptr (GTorchTensor) expected = NULL;
          g_autoptr (GTorchTensor) expected_places = NULL;

          if (t < 4)
            {
              g_autoptr (GTorchTensor) last =
                  TRY (gtorch_tensor_narrow (x, 1, line_shapes[k][1] - 50, 3, &error));

              g_assert_nonnull (gtorch_tensor_fill_inplace (last, NAN, NULL));
            }
          y = on (x, gpu);
          g_assert_true (least
                             ? gtorch_tensor_cummin (x, 1, &expected, &expected_places, &problem)
                             : gtorch_tensor_cummax (x, 1, &expected, &expected_places, &problem));
          g_assert_no_error (problem);
          g_assert_true (least ? gtorch_tensor_cummin (y, 1, &values, &places, &problem)
                               : gtorch_tensor_cummax (y, 1, &values, &places, &problem));
          g_assert_no_error (problem);
          agree ("a running extreme", values, expected, 0);
          agree ("where a running extreme is", places, expected_places, 0);
        }
}

static GTorchTensor *
add_exponentials (GTorchTensor **inputs, gpointer data)
{
  return TRY (gtorch_tensor_logcumsumexp (inputs[0], 1, &error));
}

static void
running_sums_of_exponentials (void)
{
  guint t, k;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (line_shapes); k++)
      {
        g_autofree gchar *what =
            g_strdup_printf ("exponentials of %s, shape %u", gtorch_dtype_get_name (dtypes[t]), k);
        GTorchTensor *x, *y;

        pair (line_shapes[k], 3, dtypes[t], &x, &y);
        check_gradients (what, &x, &y, 1, dtypes[t], add_exponentials, NULL);
        g_object_unref (x);
        g_object_unref (y);
      }
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  gtorch_manual_seed (1);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (rows_of_every_width);
  ADD (convolutions_with_gradients);
  ADD (convolutions_of_few_channels_last);
  ADD (gradients_of_norms_and_softmax);
  ADD (products_of_every_layout);
  ADD (running_sums);
  ADD (running_sums_of_large_tensors);
  ADD (running_sums_are_repeatable);
  ADD (running_extremes);
  ADD (running_sums_of_exponentials);
  return g_test_run ();
}
