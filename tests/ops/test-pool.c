/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Maxima of windows of many forms, compared with the definition: the last NaN, or the first of the
 * largest. */

#include "config.h"

#include <math.h>

#include "test-device.h"

#define N_FORMS 400

/* The last `dims` items of the arrays are given, the others are those of a dimension of size 1. */
typedef struct
{
  guint dims;
  gint64 n, in[3], kernel[3], stride[3], padding[3], dilation[3];
  gboolean ceil_mode;
} Form;

/* Few values, so that there are ties; NaN only in some of the images, and infinities of both signs. */
static gdouble
draw (gboolean with_nan)
{
  const gint what = g_test_rand_int_range (0, 40);

  if (what == 0)
    return -INFINITY;
  if (what == 1)
    return INFINITY;
  if (what == 2 && with_nan)
    return NAN;
  return g_test_rand_int_range (-4, 5) / 2.0;
}

static void
draw_form (Form *form, guint dims)
{
  guint d;

  form->dims = dims;
  form->n = g_test_rand_int_range (1, 4);
  form->ceil_mode = g_test_rand_int_range (0, 2);
  for (d = 0; d < 3; d++)
    {
      const gboolean usual = g_test_rand_int_range (0, 2), is_absent = d + dims < 3;

      form->in[d] = is_absent ? 1 : g_test_rand_int_range (dims == 3 ? 5 : 8, dims == 3 ? 9 : 24);
      form->kernel[d] = is_absent ? 1 : usual ? 2 : g_test_rand_int_range (1, 4);
      form->stride[d] = is_absent ? 1 : usual ? 2 : g_test_rand_int_range (1, 4);
      form->padding[d] =
          is_absent || usual ? 0 : g_test_rand_int_range (0, form->kernel[d] / 2 + 1);
      form->dilation[d] = is_absent || usual ? 1 : g_test_rand_int_range (1, 3);
    }
}

static gint64
place_of_max (const Form *form, const gdouble *image, const gint64 *o)
{
  gint64 at = -1, k[3], position[3];
  guint d;

  for (k[0] = 0; k[0] < form->kernel[0]; k[0]++)
    for (k[1] = 0; k[1] < form->kernel[1]; k[1]++)
      for (k[2] = 0; k[2] < form->kernel[2]; k[2]++)
        {
          gboolean is_inside = TRUE;
          gint64 place = 0;

          for (d = 0; d < 3; d++)
            {
              position[d] = o[d] * form->stride[d] - form->padding[d] + k[d] * form->dilation[d];
              is_inside = is_inside && position[d] >= 0 && position[d] < form->in[d];
              place = place * form->in[d] + position[d];
            }
          if (is_inside && (at < 0 || isnan (image[place]) || image[place] > image[at]))
            at = place;
        }
  return at;
}

static void
pool (const Form *form, GTorchTensor *x, GTorchTensor **y, GTorchTensor **indices)
{
  static gboolean (*const functions[]) (GTorchTensor *, const gint64 *, gsize, const gint64 *,
                                        gsize, const gint64 *, gsize, const gint64 *, gsize,
                                        gboolean, GTorchTensor **, GTorchTensor **, GError **) = {
    gtorch_tensor_max_pool1d_with_indices,
    gtorch_tensor_max_pool2d_with_indices,
    gtorch_tensor_max_pool3d_with_indices,
  };
  const guint n = form->dims, skipped = 3 - n;
  g_autoptr (GError) error = NULL;

  functions[n - 1](x, form->kernel + skipped, n, form->stride + skipped, n, form->padding + skipped,
                   n, form->dilation + skipped, n, form->ceil_mode, y, indices, &error);
  g_assert_no_error (error);
}

static void
check (const Form *form, GTorchDType dtype)
{
  const gint64 plane = form->in[0] * form->in[1] * form->in[2];
  const gboolean is_float = gtorch_dtype_is_floating_point (dtype);
  const gboolean with_nan = is_float && g_test_rand_int_range (0, 2);
  gint64 shape[4] = { form->n }, out[3] = { 1, 1, 1 };
  g_autofree gdouble *images = g_new (gdouble, form->n * plane);
  g_autofree gdouble *values = NULL;
  g_autofree gint64 *places = NULL;
  g_autoptr (GTorchTensor) wide = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) indices = NULL;
  g_autoptr (GError) error = NULL;
  gint64 image, k, o[3];
  gsize n;
  guint d;

  for (k = 0; k < form->n * plane; k++)
    images[k] = is_float ? draw (with_nan) : g_test_rand_int_range (0, 9);
  for (d = 0; d < form->dims; d++)
    shape[1 + d] = form->in[3 - form->dims + d];
  wide = gtorch_tensor_new_from_doubles (images, form->n * plane, shape, 1 + form->dims,
                                         GTORCH_DTYPE_FLOAT64, NULL, &error);
  g_assert_no_error (error);
  x = gtorch_tensor_to_dtype (wide, dtype, &error);
  g_assert_no_error (error);
  pool (form, x, &y, &indices);
  for (d = 0; d < form->dims; d++)
    out[3 - form->dims + d] = gtorch_tensor_get_size (y, 1 + d, NULL);
  values = gtorch_tensor_to_doubles (y, &n, NULL);
  g_assert_cmpuint (n, ==, form->n * out[0] * out[1] * out[2]);
  places = gtorch_tensor_to_ints (indices, &n, NULL);
  for (image = k = 0; image < form->n; image++)
    for (o[0] = 0; o[0] < out[0]; o[0]++)
      for (o[1] = 0; o[1] < out[1]; o[1]++)
        for (o[2] = 0; o[2] < out[2]; o[2]++, k++)
          {
            const gint64 at = place_of_max (form, images + image * plane, o);
            const gdouble best = images[image * plane + at];

            g_assert_cmpint (places[k], ==, at);
            g_assert_true (values[k] == best || (isnan (values[k]) && isnan (best)));
          }
}

static void
maxima_are_those_of_the_definition (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32,  GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_BFLOAT16, GTORCH_DTYPE_FLOAT32,
                                        GTORCH_DTYPE_UINT8,    GTORCH_DTYPE_INT64 };
  Form form;
  guint i, d;

  for (i = 0; i < N_FORMS; i++)
    {
      gboolean has_elements = TRUE;

      draw_form (&form, 1 + i / 2 % 3);
      /* no window may lie entirely in the padding */
      for (d = 3 - form.dims; d < 3; d++)
        has_elements = has_elements && (form.kernel[d] - 1) * form.dilation[d] < form.in[d];
      if (has_elements)
        check (&form, dtypes[i % G_N_ELEMENTS (dtypes)]);
    }
}

/* --- adaptive windows, and what is refused --- */

static GTorchTensor *
counting (const gint64 *shape, gsize n_dims)
{
  g_autoptr (GTorchTensor) line = NULL;
  GTorchTensor *x;
  gint64 n = 1;
  gsize i;

  for (i = 0; i < n_dims; i++)
    n *= shape[i];
  line = gtorch_arange (0, n, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  x = gtorch_tensor_reshape (line, shape, n_dims, NULL);
  g_assert_nonnull (x);
  return x;
}

/* --- channels last --- */

/* The same images [N, C, …], with the channels last in memory. */
static GTorchTensor *
with_channels_last (GTorchTensor *x)
{
  const gint64 away[] = { 0, 2, 3, 4, 1 }, flat[] = { 0, 2, 3, 1 };
  const gint64 back[] = { 0, 4, 1, 2, 3 }, flat_back[] = { 0, 3, 1, 2 };
  const guint n = gtorch_tensor_get_n_dims (x);
  g_autoptr (GTorchTensor) moved = gtorch_tensor_permute (x, n == 5 ? away : flat, n, NULL);
  g_autoptr (GTorchTensor) dense = gtorch_tensor_contiguous (moved, NULL);

  return gtorch_tensor_permute (dense, n == 5 ? back : flat_back, n, NULL);
}

typedef GTorchTensor *(*Pooling) (const Form *form, GTorchTensor *x, GTorchTensor **indices,
                                  GError **error);

#define LIST(name) form->name + 3 - form->dims, form->dims

static GTorchTensor *
find_maxima (const Form *form, GTorchTensor *x, GTorchTensor **indices, GError **error)
{
  GTorchTensor *values = NULL;

  if (form->dims == 2)
    gtorch_tensor_max_pool2d_with_indices (x, LIST (kernel), LIST (stride), LIST (padding),
                                           LIST (dilation), form->ceil_mode, &values, indices,
                                           error);
  else
    gtorch_tensor_max_pool3d_with_indices (x, LIST (kernel), LIST (stride), LIST (padding),
                                           LIST (dilation), form->ceil_mode, &values, indices,
                                           error);
  return values;
}

static GTorchTensor *
find_means (const Form *form, GTorchTensor *x, GTorchTensor **indices, GError **error)
{
  return form->dims == 2
             ? gtorch_tensor_avg_pool2d (x, LIST (kernel), LIST (stride), LIST (padding),
                                         form->ceil_mode, FALSE, GTORCH_NONE, error)
             : gtorch_tensor_avg_pool3d (x, LIST (kernel), LIST (stride), LIST (padding),
                                         form->ceil_mode, TRUE, GTORCH_NONE, error);
}

static void
assert_same_elements (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) near =
      gtorch_tensor_allclose (a, b, 1e-3, 1e-3, TRUE, &error); /* of sums in another order */

  gboolean is_near = FALSE;

  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_item_bool (near, &is_near, &error));
  g_assert_true (is_near);
}

static void
assert_channels_last (GTorchTensor *x)
{
  gsize n;
  const gint64 *shape = gtorch_tensor_get_shape (x, &n),
               *strides = gtorch_tensor_get_strides (x, &n);
  gint64 pixels = 1;
  guint i;

  for (i = 2; i < n; i++)
    pixels *= shape[i];
  if (shape[1] > 1 && pixels > 1)
    g_assert_cmpint (strides[1], ==, 1);
}

static void
compare_layouts (const Form *form, Pooling how, gint64 channels, GTorchDType dtype)
{
  gint64 shape[5] = { form->n, channels };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = NULL, last = NULL, y = NULL, y_last = NULL, indices = NULL,
                           indices_last = NULL, upper = NULL, grad = NULL, grad_last = NULL;
  guint i;

  for (i = 0; i < form->dims; i++)
    shape[2 + i] = form->in[3 - form->dims + i];
  x = gtorch_randn (shape, form->dims + 2, dtype, NULL, NULL, &error);
  g_assert_no_error (error);
  last = with_channels_last (x);
  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, &error)
                 && gtorch_tensor_set_requires_grad (last, TRUE, &error));
  y = how (form, x, &indices, &error);
  if (y == NULL)
    return; /* the windows do not fit */
  y_last = how (form, last, &indices_last, &error);
  g_assert_no_error (error);
  assert_channels_last (y_last);
  assert_same_elements (y, y_last);
  if (indices != NULL)
    {
      assert_channels_last (indices_last);
      assert_same_elements (indices, indices_last);
    }
  upper = gtorch_tensor_randn_like (y, GTORCH_DTYPE_NONE, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_backward (y, upper, FALSE, FALSE, &error));
  g_assert_true (gtorch_tensor_backward (y_last, upper, FALSE, FALSE, &error));
  grad = gtorch_tensor_get_grad (x);
  grad_last = gtorch_tensor_get_grad (last);
  assert_same_elements (grad, grad_last);
}

static void
casts_keep_channels_last (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_randn (GTORCH_SHAPE (2, 3, 4, 5), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error);
  g_autoptr (GTorchTensor) last = with_channels_last (x);
  g_autoptr (GTorchTensor) half = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT16, &error);
  g_autoptr (GTorchTensor) last_half = gtorch_tensor_to_dtype (last, GTORCH_DTYPE_FLOAT16, &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_is_contiguous (half));
  g_assert_false (gtorch_tensor_is_contiguous (last_half));
  assert_channels_last (last_half);
  assert_same_elements (half, last_half);
}

static void
channels_may_be_last (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  static const gint64 channels[] = { 1, 3, 8, 16, 20 };
  guint i;

  for (i = 0; i < 80; i++)
    {
      Form form;

      draw_form (&form, 2 + i % 2);
      compare_layouts (&form, i / 2 % 2 ? find_maxima : find_means, channels[i % 5],
                       dtypes[i / 4 % 4]);
    }
  /* what a block of threads would have by itself, and a copy of images that are in order */
  {
    Form form = { 2, 2, { 1, 100, 120 }, { 1, 50, 60 }, { 1, 50, 60 }, { 0 }, { 1, 1, 1 }, FALSE };

    compare_layouts (&form, find_maxima, 8, GTORCH_DTYPE_FLOAT32);
    compare_layouts (&form, find_means, 8, GTORCH_DTYPE_FLOAT32);
  }
}

static void
adaptive_sizes_may_be_kept (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 2, 3));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) top = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  y = gtorch_tensor_adaptive_avg_pool2d (x, GTORCH_SHAPE (GTORCH_NONE, 1), &error);
  g_assert_no_error (error);
  values = gtorch_tensor_to_doubles (y, &n, NULL);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpfloat (values[0], ==, 1);
  g_assert_cmpfloat (values[1], ==, 4);
  top = gtorch_tensor_adaptive_max_pool2d (x, GTORCH_SHAPE (1, GTORCH_NONE), &error);
  g_assert_no_error (error);
  g_free (values);
  values = gtorch_tensor_to_doubles (top, &n, NULL);
  g_assert_cmpuint (n, ==, 3);
  g_assert_cmpfloat (values[2], ==, 5);
}

static void
integers_have_means_without_fraction (void)
{
  g_autoptr (GTorchTensor) x =
      gtorch_tensor_new_from_ints ((gint64[]){ -3, -2, 7, 8 }, 4, GTORCH_SHAPE (1, 1, 4),
                                   GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) y =
      gtorch_tensor_avg_pool1d (x, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0), FALSE, TRUE, NULL);
  g_autoptr (GTorchTensor) narrow = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_INT32, NULL);
  g_autoptr (GTorchTensor) none = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gint64 *values = NULL;
  gsize n;

  g_assert_nonnull (y);
  values = gtorch_tensor_to_ints (y, &n, NULL);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpint (values[0], ==, -2);
  g_assert_cmpint (values[1], ==, 7);
  none = gtorch_tensor_avg_pool1d (narrow, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0), FALSE, TRUE,
                                   &error);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_true (g_str_has_prefix (error->message, "avg_pool1d: "));
}

static void
unpooling_undoes_in_part (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 5));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) indices = NULL;
  g_autoptr (GTorchTensor) back = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  gtorch_tensor_max_pool1d_with_indices (x, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0),
                                         GTORCH_SHAPE (1), FALSE, &y, &indices, &error);
  g_assert_no_error (error);
  back = gtorch_tensor_max_unpool1d (y, indices, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0),
                                     GTORCH_SHAPE (5), &error);
  g_assert_no_error (error);
  values = gtorch_tensor_to_doubles (back, &n, NULL);
  g_assert_cmpuint (n, ==, 5);
  g_assert_cmpfloat (values[0], ==, 0);
  g_assert_cmpfloat (values[1], ==, 1);
  g_assert_cmpfloat (values[3], ==, 3);
  g_assert_cmpfloat (values[4], ==, 0);
}

#define REFUSED(call, code, text)                 \
  G_STMT_START                                    \
  {                                               \
    g_autoptr (GError) error = NULL;              \
    g_autoptr (GTorchTensor) made = (call);       \
                                                  \
    g_assert_null (made);                         \
    g_assert_error (error, GTORCH_ERROR, code);   \
    g_assert_cmpstr (error->message, ==, (text)); \
  }                                               \
  G_STMT_END

static void
wrong_windows_are_refused (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 2, 4, 4));
  g_autoptr (GTorchTensor) places =
      gtorch_tensor_new_from_ints ((gint64[]){ 0, 40 }, 2, GTORCH_SHAPE (1, 1, 2),
                                   GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) two = counting (GTORCH_SHAPE (1, 1, 2));

  REFUSED (gtorch_tensor_avg_pool3d (x, GTORCH_SHAPE (2, 2), NULL, 0, GTORCH_SHAPE (0), FALSE, TRUE,
                                     GTORCH_NONE, &error),
           GTORCH_ERROR_INVALID, "avg_pool3d: kernel_size must hold 1 or 3 numbers, it holds 2");
  REFUSED (gtorch_tensor_max_pool1d (x, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0),
                                     GTORCH_SHAPE (1), FALSE, &error),
           GTORCH_ERROR_SHAPE,
           "max_pool1d: images of shape [1, 2, 4, 4] must have 2 or 3 dimensions");
  REFUSED (gtorch_tensor_max_pool3d (x, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (2),
                                     GTORCH_SHAPE (1), FALSE, &error),
           GTORCH_ERROR_INVALID, "max_pool3d: padding 2 is more than half of the window's size 2");
  REFUSED (gtorch_tensor_lp_pool2d (x, 0, GTORCH_SHAPE (2), NULL, 0, FALSE, &error),
           GTORCH_ERROR_INVALID, "lp_pool2d: norm_type must not be 0");
  REFUSED (gtorch_tensor_adaptive_max_pool3d (x, GTORCH_SHAPE (-1), &error), GTORCH_ERROR_INVALID,
           "adaptive_max_pool3d: output_size must be from 0 to 2147483647, it is [-1]");
  REFUSED (gtorch_tensor_max_unpool1d (two, two, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0), NULL,
                                       0, &error),
           GTORCH_ERROR_DTYPE, "max_unpool1d: indices must be of dtype int64, they are of float32");
  REFUSED (gtorch_tensor_max_unpool1d (two, places, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0),
                                       GTORCH_SHAPE (6), &error),
           GTORCH_ERROR_INVALID,
           "max_unpool1d: output_size [6]: there must be 1 numbers, number 1 greater than 2 and "
           "less than 6");
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/pool/maxima_are_those_of_the_definition",
                   maxima_are_those_of_the_definition);
  g_test_add_func ("/GTorch/pool/channels_may_be_last", channels_may_be_last);
  g_test_add_func ("/GTorch/pool/casts_keep_channels_last", casts_keep_channels_last);
  g_test_add_func ("/GTorch/pool/adaptive_sizes_may_be_kept", adaptive_sizes_may_be_kept);
  g_test_add_func ("/GTorch/pool/integers_have_means_without_fraction",
                   integers_have_means_without_fraction);
  g_test_add_func ("/GTorch/pool/unpooling_undoes_in_part", unpooling_undoes_in_part);
  g_test_add_func ("/GTorch/pool/wrong_windows_are_refused", wrong_windows_are_refused);
  return g_test_run ();
}
