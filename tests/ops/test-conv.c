/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Convolutions that are large enough for libraries to choose among algorithms: compared with float64 on
 * the CPU in each dtype, with the channels first and last; reproducible bits; more than 2^32 elements. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

typedef struct
{
  guint n_dims;
  gint64 x[5], w[5];
  gint64 stride[3], padding[3], dilation[3];
  gint64 groups;
} Case;

static const Case cases[] = {
  { 4, { 2, 16, 12, 14 }, { 24, 16, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 },
  { 4, { 3, 8, 17, 13 }, { 16, 8, 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, 1 },
  { 4, { 2, 32, 9, 9 }, { 64, 32, 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 },
  { 4, { 2, 3, 30, 31 }, { 16, 3, 7, 7 }, { 2, 2 }, { 3, 3 }, { 1, 1 }, 1 },
  { 4, { 2, 16, 15, 15 }, { 16, 1, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 16 },
  { 4, { 2, 16, 11, 12 }, { 32, 8, 3, 3 }, { 1, 2 }, { 1, 0 }, { 1, 1 }, 2 },
  { 4, { 1, 16, 19, 20 }, { 16, 16, 3, 3 }, { 1, 1 }, { 2, 2 }, { 2, 2 }, 1 },
  { 4, { 2, 5, 8, 8 }, { 7, 5, 2, 4 }, { 3, 1 }, { 0, 2 }, { 1, 2 }, 1 },
  { 4, { 4, 16, 1, 40 }, { 16, 16, 1, 5 }, { 1, 1 }, { 0, 2 }, { 1, 1 }, 1 },
  { 4, { 2, 8, 10, 13 }, { 72, 8, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 },
  { 4, { 2, 8, 6, 6 }, { 8, 8, 3, 3 }, { 1, 1 }, { 5, 4 }, { 1, 1 }, 1 },
  { 5, { 2, 8, 5, 9, 8 }, { 16, 8, 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 },
  { 5, { 2, 8, 6, 7, 9 }, { 12, 4, 2, 3, 1 }, { 2, 1, 3 }, { 1, 0, 2 }, { 1, 2, 1 }, 2 },
  /* groups of few channels */
  { 4, { 3, 19, 14, 17 }, { 19, 1, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 19 },
  { 4, { 2, 40, 13, 9 }, { 80, 1, 5, 4 }, { 2, 3 }, { 2, 0 }, { 1, 2 }, 40 },
  { 4, { 2, 36, 9, 10 }, { 27, 4, 3, 2 }, { 1, 2 }, { 2, 3 }, { 2, 1 }, 9 },
  { 4, { 1, 16, 9, 40 }, { 16, 1, 2, 3 }, { 3, 4 }, { 0, 0 }, { 1, 1 }, 16 },
  { 5, { 2, 17, 4, 5, 6 }, { 17, 1, 3, 2, 3 }, { 1, 2, 1 }, { 1, 0, 2 }, { 1, 1, 2 }, 17 },
  { 5, { 1, 16, 4, 5, 6 }, { 8, 16, 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 1, 1, 1 }, 1 },
};

static const gint64 second = 1, last = -1;

enum
{
  OUTPUT,
  INPUT,
  WEIGHT
};

static GTorchImpl *
run (guint kind, const Case *c, GTorchImpl *a, GTorchImpl *b, GTorchImpl *bias)
{
  const guint n = c->n_dims - 2;
  GError *error = NULL;
  GTorchImpl *result;

  if (kind == OUTPUT)
    result = gtorch_op_convolve (a, b, bias, c->stride, n, c->padding, n, c->dilation, n, c->groups,
                                 &error);
  else if (kind == INPUT)
    result = gtorch_op_convolve_input (a, b, bias, c->x, c->n_dims, c->stride, n, c->padding, n,
                                       c->dilation, n, c->groups, &error);
  else
    result = gtorch_op_convolve_weight (a, b, c->w, c->n_dims, c->stride, n, c->padding, n,
                                        c->dilation, n, c->groups, &error);
  if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
    {
      g_clear_error (&error);
      return NULL;
    }
  g_assert_no_error (error);
  return result;
}

static GTorchImpl *
random_impl (const gint64 *shape, guint n_dims, guint dtype, GRand *rand)
{
  GTorchSampleTensor spec = { .n_dims = n_dims, .dtype = GTORCH_DTYPE_NONE };

  memcpy (spec.shape, shape, n_dims * sizeof (gint64));
  return input_new (&spec, dtype, LAYOUT_CONTIGUOUS, -1, 1, rand);
}

/* Returns the same elements with the channels in the innermost position. */
static GTorchImpl *
with_channels_last (GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) turned = gtorch_op_movedim (impl, &second, 1, &last, 1, NULL);
  g_autoptr (GTorchImpl) moved = gtorch_op_clone (turned, NULL);

  return gtorch_op_movedim (moved, &last, 1, &second, 1, NULL);
}

static gdouble
largest_difference (const GTorchImpl *impl, const GTorchImpl *expected, gdouble *scale)
{
  gdouble result = 0;
  gint64 i;

  g_assert_true (gtorch_impl_same_shape (impl, expected));
  *scale = 0;
  for (i = 0; i < impl->numel; i++)
    {
      gdouble a = creal (element_get (impl, i)), b = creal (element_get (expected, i));

      g_assert_true (isfinite (a));
      result = MAX (result, fabs (a - b));
      *scale = MAX (*scale, fabs (b));
    }
  return result;
}

/* Relative to the largest result; the error of TF32 is 30 times the limit of float32. */
static gdouble
limit (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return 1e-13;
    case GTORCH_DTYPE_FLOAT32:
      return 5e-6;
    case GTORCH_DTYPE_FLOAT16:
      return 1.5e-3;
    default:
      return 1e-2;
    }
}

static void
check (guint kind, const Case *c, guint dtype, GTorchImpl *a, GTorchImpl *b, GTorchImpl *bias,
       gboolean a_last, gboolean b_last)
{
  g_autoptr (GTorchImpl) wide_a = input_copy (a, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchImpl) wide_b = input_copy (b, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchImpl) wide_bias = bias != NULL ? input_copy (bias, GTORCH_DTYPE_FLOAT64) : NULL;
  g_autoptr (GTorchImpl) expected = run (kind, c, wide_a, wide_b, wide_bias);
  g_autoptr (GTorchImpl) turned_a = a_last ? with_channels_last (a) : gtorch_impl_ref (a);
  g_autoptr (GTorchImpl) turned_b = b_last ? with_channels_last (b) : gtorch_impl_ref (b);
  g_autoptr (GTorchImpl) there_a = impl_to_test_device (turned_a);
  g_autoptr (GTorchImpl) there_b = impl_to_test_device (turned_b);
  g_autoptr (GTorchImpl) there_bias = impl_to_test_device (bias);
  g_autoptr (GTorchImpl) result = run (kind, c, there_a, there_b, there_bias);
  g_autoptr (GTorchImpl) again = NULL;
  g_autoptr (GTorchImpl) here = NULL;
  g_autoptr (GTorchImpl) here_again = NULL;
  gdouble scale, difference;

  if (result == NULL)
    {
      g_test_skip ("the device does not convolve");
      return;
    }
  if ((a_last && !turned_a->is_contiguous) || (b_last && !turned_b->is_contiguous))
    {
      g_autoptr (GTorchImpl) turned = gtorch_op_movedim (result, &second, 1, &last, 1, NULL);

      g_assert_true (turned->is_contiguous);
    }
  else
    g_assert_true (result->is_contiguous);
  here = impl_to_host (result);
  difference = largest_difference (here, expected, &scale);
  if (difference > limit (dtype) * scale)
    {
      g_test_message ("%d of %s by %s, %s, channels last %d %d: off by %g of %g", kind,
                      gtorch_shape_str (c->x, c->n_dims), gtorch_shape_str (c->w, c->n_dims),
                      gtorch_dtype_get_name (dtype), a_last, b_last, difference, scale);
      g_test_fail ();
    }
  again = run (kind, c, there_a, there_b, there_bias);
  here_again = impl_to_host (again);
  g_assert_cmpmem (gtorch_impl_data (here), gtorch_impl_n_bytes (here),
                   gtorch_impl_data (here_again), gtorch_impl_n_bytes (here_again));
}

static void
each_dtype_and_layout (gconstpointer data)
{
  static const guint dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_FLOAT16,
                                  GTORCH_DTYPE_BFLOAT16 };
  const Case *c = data;
  g_autoptr (GRand) rand = g_rand_new_with_seed (c - cases + 1);
  gint64 y[5] = { c->x[0], c->w[0] };
  guint d, layout, i;

  for (i = 0; i < c->n_dims - 2; i++)
    y[2 + i] =
        (c->x[2 + i] + 2 * c->padding[i] - c->dilation[i] * (c->w[2 + i] - 1) - 1) / c->stride[i]
        + 1;
  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_autoptr (GTorchImpl) x = random_impl (c->x, c->n_dims, dtypes[d], rand);
      g_autoptr (GTorchImpl) w = random_impl (c->w, c->n_dims, dtypes[d], rand);
      g_autoptr (GTorchImpl) upper = random_impl (y, c->n_dims, dtypes[d], rand);
      g_autoptr (GTorchImpl) bias = random_impl (c->w, 1, dtypes[d], rand);
      g_autoptr (GTorchImpl) input_bias = random_impl (c->x + 1, 1, dtypes[d], rand);

      for (layout = 0; layout < 4; layout++)
        {
          check (OUTPUT, c, dtypes[d], x, w, layout & 1 ? bias : NULL, layout & 1, layout >> 1);
          check (INPUT, c, dtypes[d], upper, w, layout & 1 ? input_bias : NULL, layout & 1,
                 layout >> 1);
          check (WEIGHT, c, dtypes[d], upper, x, NULL, layout & 1, layout >> 1);
        }
    }
}

/* A NaN affects only the results whose filter covers it. */
static void
nan_stays_local (void)
{
  const Case c = { 4, { 1, 8, 32, 32 }, { 8, 8, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 };
  static const guint dtypes[] = { GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_BFLOAT16 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  guint d;
  gint64 i;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_autoptr (GTorchImpl) x = random_impl (c.x, 4, dtypes[d], rand);
      g_autoptr (GTorchImpl) w = random_impl (c.w, 4, dtypes[d], rand);
      g_autoptr (GTorchImpl) there_x = NULL;
      g_autoptr (GTorchImpl) there_w = impl_to_test_device (w);
      g_autoptr (GTorchImpl) y = NULL;
      g_autoptr (GTorchImpl) here = NULL;

      element_set (x, 3 * 1024 + 10 * 32 + 20, NAN);
      there_x = impl_to_test_device (x);
      y = run (OUTPUT, &c, there_x, there_w, NULL);
      if (y == NULL)
        {
          g_test_skip ("the device does not convolve");
          return;
        }
      here = impl_to_host (y);
      for (i = 0; i < here->numel; i++)
        {
          gint64 row = i / 32 % 32, column = i % 32;
          gboolean near = ABS (row - 10) <= 1 && ABS (column - 20) <= 1;

          g_assert_cmpint (isnan (creal (element_get (here, i))) != 0, ==, near);
        }
    }
}

static GTorchImpl *
images (GTorchImpl *all, gint64 first, gint64 n)
{
  const gint64 shape[] = { n, all->shape[1], all->shape[2], all->shape[3] };

  return gtorch_impl_new_view (all, all->offset + first * all->strides[0], shape, all->strides, 4);
}

/* More than 2^32 elements; only if there is memory for them. */
static void
more_than_32_bits (void)
{
  const gint64 n = (G_GINT64_CONSTANT (1) << 31) / (8 * 64 * 64) + 5;
  Case c = { 4, { n, 8, 64, 64 }, { 8, 8, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 };
  const gint64 starts[] = { 0, n - 7 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  g_autoptr (GTorchImpl) w = random_impl (c.w, 4, GTORCH_DTYPE_BFLOAT16, rand);
  g_autoptr (GTorchImpl) there_w = impl_to_test_device (w);
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) grad = NULL;
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) host_whole = NULL;
  g_autoptr (GTorchImpl) host_sum = NULL;
  gdouble scale;
  guint i;

  if (there_w == w || is_under_sanitizer ())
    {
      g_test_skip ("takes too long on the CPU, and under compute-sanitizer");
      return;
    }
  x = gtorch_op_randn (c.x, 4, GTORCH_DTYPE_BFLOAT16, test_device (), NULL, NULL);
  y = x != NULL ? run (OUTPUT, &c, x, there_w, NULL) : NULL;
  grad = y != NULL ? run (INPUT, &c, y, there_w, NULL) : NULL;
  if (grad == NULL)
    {
      g_test_skip ("no memory for it");
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (starts); i++)
    {
      g_autoptr (GTorchImpl) some_x = images (x, starts[i], 7);
      g_autoptr (GTorchImpl) some_y = images (y, starts[i], 7);
      g_autoptr (GTorchImpl) some_grad = images (grad, starts[i], 7);
      g_autoptr (GTorchImpl) part = NULL;
      g_autoptr (GTorchImpl) part_grad = NULL;
      GTorchImpl *copies[4] = { NULL };
      GTorchImpl *pairs[4];
      guint k;

      c.x[0] = 7;
      part = run (OUTPUT, &c, some_x, there_w, NULL);
      part_grad = run (INPUT, &c, some_y, there_w, NULL);
      pairs[0] = part;
      pairs[1] = some_y;
      pairs[2] = part_grad;
      pairs[3] = some_grad;
      for (k = 0; k < 4; k++)
        {
          g_autoptr (GTorchImpl) whole_copy = gtorch_op_clone (pairs[k], NULL);

          copies[k] = impl_to_host (whole_copy);
        }
      for (k = 0; k < 4; k += 2)
        g_assert_cmpfloat (largest_difference (copies[k], copies[k + 1], &scale), <=, 1e-2 * scale);
      for (k = 0; k < 4; k++)
        g_clear_pointer (&copies[k], gtorch_impl_unref);
    }
  /* the gradient of the weight is the sum of those of the parts */
  g_clear_pointer (&grad, gtorch_impl_unref);
  c.x[0] = n;
  whole = run (WEIGHT, &c, y, x, NULL);
  for (i = 0; i < 4; i++)
    {
      gint64 first = n * i / 4, count = n * (i + 1) / 4 - first;
      g_autoptr (GTorchImpl) some_x = images (x, first, count);
      g_autoptr (GTorchImpl) some_y = images (y, first, count);
      g_autoptr (GTorchImpl) part = NULL;
      g_autoptr (GTorchImpl) wide = NULL;
      GTorchImpl *total;

      c.x[0] = count;
      part = run (WEIGHT, &c, some_y, some_x, NULL);
      wide = gtorch_op_to_dtype (part, GTORCH_DTYPE_FLOAT32, NULL);
      total = sum != NULL ? gtorch_op_add (sum, wide, 1, NULL) : gtorch_impl_ref (wide);
      g_clear_pointer (&sum, gtorch_impl_unref);
      sum = total;
    }
  host_whole = impl_to_host (whole);
  host_sum = impl_to_host (sum);
  g_assert_cmpfloat (largest_difference (host_whole, host_sum, &scale), <=, 2e-2 * scale);
}

/* --- what is refused --- */

typedef struct
{
  const gchar *op;
  gint64 x[5], w[5];
  guint x_dims, w_dims;
  gint64 stride[2], n_stride, padding, output_padding, groups, code;
  const gchar *text;
} Refusal;

static const Refusal refusals[] = {
  { "conv3d",
    { 1, 1, 3, 3, 3 },
    { 1, 1, 2, 2, 2 },
    5,
    5,
    { 1, 1 },
    2,
    0,
    0,
    1,
    GTORCH_ERROR_INVALID,
    "conv3d: stride must hold 1 or 3 numbers, it holds 2" },
  { "conv3d",
    { 1, 3, 3 },
    { 1, 1, 2, 2, 2 },
    3,
    5,
    { 1 },
    1,
    0,
    0,
    1,
    GTORCH_ERROR_SHAPE,
    "conv3d: the input [1, 3, 3] must have 5 or 4 dimensions and the weight [1, 1, 2, 2, 2] must "
    "have 5" },
  { "conv3d",
    { 1, 1, 3, 3, 3 },
    { 1, 1, 2, 4, 2 },
    5,
    5,
    { 1 },
    1,
    0,
    0,
    1,
    GTORCH_ERROR_SHAPE,
    "conv3d: the filter [1, 1, 2, 4, 2] with dilation 1 does not fit into the input "
    "[1, 1, 3, 3, 3] with padding 0" },
  { "conv3d",
    { 1, 1, 3, 3, 3 },
    { 1, 1, 2, 2, 2 },
    5,
    5,
    { 1 },
    1,
    -1,
    0,
    1,
    GTORCH_ERROR_INVALID,
    "conv3d: padding must be from 0 to 2147483647, it is -1" },
  { "conv_transpose2d",
    { 1, 2, 3, 3 },
    { 3, 1, 2, 2 },
    4,
    4,
    { 1 },
    1,
    0,
    0,
    1,
    GTORCH_ERROR_SHAPE,
    "conv_transpose2d: input [1, 2, 3, 3], weight [3, 1, 2, 2], groups 1: the weight must have a "
    "filter for each channel of the input, and their number must be a multiple of groups" },
  { "conv_transpose2d",
    { 1, 2, 3, 3 },
    { 2, 1, 2, 2 },
    4,
    4,
    { 2 },
    1,
    0,
    2,
    1,
    GTORCH_ERROR_INVALID,
    "conv_transpose2d: output_padding must be less than the stride or the dilation, 2 is not less "
    "than 2 or 1" },
  { "conv_transpose2d",
    { 1, 1, 3, 3 },
    { 1, 1, 2, 2 },
    4,
    4,
    { 1 },
    1,
    2,
    0,
    1,
    GTORCH_ERROR_SHAPE,
    "conv_transpose2d: the input [1, 1, 3, 3] and the weight [1, 1, 2, 2] with padding 2 make no "
    "output" },
};

static void
mistakes_are_named (void)
{
  const gint64 one = 1;

  for (guint i = 0; i < G_N_ELEMENTS (refusals); i++)
    {
      const Refusal *r = &refusals[i];
      g_autoptr (GTorchImpl) x = gtorch_op_ones (r->x, r->x_dims, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchImpl) w = gtorch_op_ones (r->w, r->w_dims, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchImpl) y = NULL;
      g_autoptr (GError) error = NULL;
      const gboolean is_plain = g_str_equal (r->op, "conv3d");
      const GTorchOpClass *former;

      former = gtorch_composite_begin (is_plain ? GTORCH_OP_CONV3D : GTORCH_OP_CONV_TRANSPOSE2D,
                                       GTORCH_IMPLS (x, w, NULL));
      if (is_plain)
        y = gtorch_op_conv3d (x, w, NULL, r->stride, r->n_stride, &r->padding, 1, &one, 1,
                              r->groups, &error);
      else
        y = gtorch_op_conv_transpose2d (x, w, NULL, r->stride, r->n_stride, &r->padding, 1,
                                        &r->output_padding, 1, r->groups, &one, 1, &error);
      gtorch_composite_end (former, y != NULL, &error);
      g_assert_null (y);
      g_assert_error (error, GTORCH_ERROR, r->code);
      g_assert_cmpstr (error->message, ==, r->text);
    }
}

static void
columns_must_fit (void)
{
  const gint64 shape[] = { 1, 1, 3, 3 }, columns[] = { 1, 4, 3 }, size = 3, window = 4, tap = 2;
  const gint64 one = 1, zero = 0;
  g_autoptr (GTorchImpl) x = gtorch_op_ones (shape, 4, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchImpl) c = gtorch_op_ones (columns, 3, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_op_im2col (x, &window, 1, &one, 1, &zero, 1, &one, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "im2col: a window of 4 with dilation 1 does not fit into 3 with padding 0");
  g_clear_error (&error);
  g_assert_null (gtorch_op_col2im (c, &size, 1, &tap, 1, &one, 1, &zero, 1, &one, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "col2im: shape [1, 4, 3] must have a multiple of 4 rows and a column for each "
                   "of 4 windows");
}

/* As in PyTorch, integers wrap around. */
static void
integers_wrap_around (void)
{
  const gint64 shape[] = { 1, 1, 2, 2 }, one = 1, zero = 0;
  g_autoptr (GTorchImpl) x = gtorch_op_full_int (shape, 4, 100, GTORCH_DTYPE_INT8, NULL, NULL);
  g_autoptr (GTorchImpl) y = gtorch_op_conv2d (x, x, NULL, &one, 1, &zero, 1, &one, 1, 1, NULL);

  g_assert_cmpint (y->dtype, ==, GTORCH_DTYPE_INT8);
  g_assert_cmpfloat (creal (element_get (y, 0)), ==, (gint8) 40000);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  test_device ();
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/conv/each-dtype-and-layout/%u", i);

      g_test_add_data_func (path, &cases[i], each_dtype_and_layout);
    }
  g_test_add_func ("/conv/nan-stays-local", nan_stays_local);
  g_test_add_func ("/conv/more-than-32-bits", more_than_32_bits);
  g_test_add_func ("/conv/mistakes-are-named", mistakes_are_named);
  g_test_add_func ("/conv/columns-must-fit", columns_must_fit);
  g_test_add_func ("/conv/integers-wrap-around", integers_wrap_around);
  return g_test_run ();
}
