/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Images of other sizes and samples at positions: values that are known, and what is refused. */

#include "config.h"

#include <math.h>

#include "test-device.h"

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

static void
assert_values (GTorchTensor *x, const gdouble *expected, gsize n_expected)
{
  gsize n, i;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (x, &n, NULL);

  g_assert_cmpuint (n, ==, n_expected);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (values[i], expected[i], 1e-6 * (10 + ABS (expected[i])));
}

static void
assert_close (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GTorchTensor) close = gtorch_tensor_allclose (a, b, 1e-3, 1e-3, FALSE, NULL);

  g_assert_nonnull (close);
  assert_values (close, (gdouble[]){ 1 }, 1);
}

static GTorchTensor *
resize (GTorchTensor *x, const gint64 *size, gsize n_size, GTorchResampling mode,
        gboolean align_corners, gboolean antialias, GError **error)
{
  return gtorch_interpolate (x, size, n_size, GTORCH_NONE_DOUBLE, mode, align_corners, FALSE,
                             antialias, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, error);
}

static GTorchTensor *
scale (GTorchTensor *x, gdouble factor, gboolean recompute, gdouble height, gdouble width,
       GError **error)
{
  return gtorch_interpolate (x, NULL, 0, factor, GTORCH_RESAMPLING_NEAREST, FALSE, recompute, FALSE,
                             height, width, error);
}

static void
lines_become_longer_and_shorter (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 4));
  g_autoptr (GTorchTensor) linear =
      resize (x, GTORCH_SHAPE (8), GTORCH_RESAMPLING_LINEAR, FALSE, FALSE, NULL);
  g_autoptr (GTorchTensor) corners =
      resize (x, GTORCH_SHAPE (7), GTORCH_RESAMPLING_LINEAR, TRUE, FALSE, NULL);
  g_autoptr (GTorchTensor) nearest =
      resize (x, GTORCH_SHAPE (3), GTORCH_RESAMPLING_NEAREST, FALSE, FALSE, NULL);
  g_autoptr (GTorchTensor) exact =
      resize (x, GTORCH_SHAPE (3), GTORCH_RESAMPLING_NEAREST_EXACT, FALSE, FALSE, NULL);
  g_autoptr (GTorchTensor) area =
      resize (x, GTORCH_SHAPE (2), GTORCH_RESAMPLING_AREA, FALSE, FALSE, NULL);

  assert_values (linear, (gdouble[]){ 0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3 }, 8);
  assert_values (corners, (gdouble[]){ 0, 0.5, 1, 1.5, 2, 2.5, 3 }, 7);
  assert_values (nearest, (gdouble[]){ 0, 1, 2 }, 3);
  assert_values (exact, (gdouble[]){ 0, 2, 3 }, 3);
  assert_values (area, (gdouble[]){ 0.5, 2.5 }, 2);
}

/* Columns of more elements than rows, whose results are rows of one element. */
static void
columns_become_single_elements (void)
{
  gint64 height;

  for (height = 1; height < 40; height++)
    {
      g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, height, 2));
      g_autoptr (GTorchTensor) volume = counting (GTORCH_SHAPE (1, 1, height, 1, 2));
      g_autoptr (GTorchTensor) y =
          resize (x, GTORCH_SHAPE (1, 1), GTORCH_RESAMPLING_BILINEAR, FALSE, TRUE, NULL);
      g_autoptr (GTorchTensor) z =
          resize (volume, GTORCH_SHAPE (1, 1, 1), GTORCH_RESAMPLING_TRILINEAR, FALSE, FALSE, NULL);

      /* the filter of the first, a triangle, is symmetric; the second has the two in the middle */
      assert_values (y, (gdouble[]){ height - 0.5 }, 1);
      assert_values (z, (gdouble[]){ height - 0.5 }, 1);
    }
}

static void
factors_may_differ (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 1, 2));
  g_autoptr (GTorchTensor) y = scale (x, GTORCH_NONE_DOUBLE, FALSE, 2, 1.5, NULL);
  g_autoptr (GTorchTensor) bytes = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_UINT8, NULL);
  g_autoptr (GTorchTensor) large = scale (bytes, 2, FALSE, 1, GTORCH_NONE_DOUBLE, NULL);

  assert_values (y, (gdouble[]){ 0, 0, 1, 0, 0, 1 }, 6);
  assert_values (large, (gdouble[]){ 0, 0, 1, 1 }, 4);
  g_assert_cmpint (gtorch_tensor_get_dtype (large), ==, GTORCH_DTYPE_UINT8);
}

/* The results are those of PyTorch on CPUs. */
static void
bytes_are_resampled_as_elsewhere (void)
{
  static const struct
  {
    GTorchResampling mode;
    gboolean antialias;
    gint64 size[2];
    gdouble values[2 * 44];
  } expected[] = {
    { GTORCH_RESAMPLING_BILINEAR, TRUE, { 3, 4 }, { 117, 163, 121, 141, 119, 137, 130, 154,
                                                    147, 191, 112, 125, 133, 149, 150, 155,
                                                    142, 130, 148, 138, 116, 129, 125, 176 } },
    { GTORCH_RESAMPLING_BICUBIC, TRUE, { 3, 4 }, { 115, 164, 117, 143, 117, 136, 130, 158,
                                                   147, 199, 108, 124, 133, 150, 147, 159,
                                                   142, 130, 153, 131, 113, 130, 122, 181 } },
    { GTORCH_RESAMPLING_BILINEAR, FALSE, { 3, 4 }, { 139, 221, 149, 125, 139, 12,  158, 161,
                                                     147, 227, 111, 140, 101, 165, 192, 162,
                                                     162, 49,  145, 130, 102, 101, 42,  202 } },
    { GTORCH_RESAMPLING_BICUBIC,
      FALSE,
      { 4, 11 },
      { 77,  94,  133, 198, 194, 42,  155, 184, 88,  80,  240, 122, 90,  13,  78,  232, 255, 58,
        19,  83,  152, 207, 225, 86,  71,  177, 225, 147, 43,  164, 222, 156, 146, 49,  174, 220,
        215, 219, 171, 100, 49,  122, 162, 45,  115, 73,  190, 254, 149, 100, 167, 164, 152, 175,
        202, 149, 218, 94,  2,   98,  184, 62,  158, 187, 92,  64,  97,  46,  156, 244, 183, 186,
        201, 248, 132, 20,  114, 99,  76,  152, 147, 50,  105, 19,  148, 232, 185, 170 } },
  };
  guint8 bytes[2 * 7 * 9];
  g_autoptr (GBytes) data = NULL;
  g_autoptr (GTorchTensor) on_host = NULL;
  g_autoptr (GTorchTensor) like = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) last = NULL;
  g_autoptr (GTorchTensor) packed = NULL;
  g_autoptr (GTorchTensor) beside = NULL;
  guint i;

  for (i = 0; i < sizeof bytes; i++)
    bytes[i] = (guint8) (i * 37 + i * i * 11);
  data = g_bytes_new (bytes, sizeof bytes);
  on_host =
      gtorch_tensor_new_from_bytes (data, GTORCH_DTYPE_UINT8, GTORCH_SHAPE (1, 2, 7, 9), NULL);
  like = gtorch_zeros (GTORCH_SHAPE (1), GTORCH_DTYPE_UINT8, NULL, NULL);
  x = gtorch_tensor_to_device (on_host, gtorch_tensor_get_device (like), FALSE, NULL);
  g_assert_nonnull (x);
  /* the same with the elements of the channels beside each other, as decoders give them */
  last = gtorch_tensor_permute (x, (gint64[]){ 0, 2, 3, 1 }, 4, NULL);
  packed = gtorch_tensor_contiguous (last, NULL);
  beside = gtorch_tensor_permute (packed, (gint64[]){ 0, 3, 1, 2 }, 4, NULL);
  g_assert_nonnull (beside);
  for (i = 0; i < G_N_ELEMENTS (expected); i++)
    {
      const gint64 *size = expected[i].size;
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y =
          resize (x, size, 2, expected[i].mode, FALSE, expected[i].antialias, &error);
      g_autoptr (GTorchTensor) z = NULL;

      if (gtorch_tensor_get_device (x) != gtorch_tensor_get_device (on_host))
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
          continue;
        }
      g_assert_no_error (error);
      z = resize (beside, size, 2, expected[i].mode, FALSE, expected[i].antialias, NULL);
      assert_values (y, expected[i].values, 2 * size[0] * size[1]);
      assert_values (z, expected[i].values, 2 * size[0] * size[1]);
      g_assert_cmpint (gtorch_tensor_get_dtype (y), ==, GTORCH_DTYPE_UINT8);
    }
}

static void
samples_are_taken_beyond_the_borders (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 1, 3));
  g_autoptr (GTorchTensor) grid =
      gtorch_tensor_new_from_doubles ((gdouble[]){ -2, 0, 0.5, 0, 2, 0, NAN, 0 }, 8,
                                      GTORCH_SHAPE (1, 1, 4, 2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) zeros = gtorch_grid_sample (x, grid, GTORCH_GRID_MODE_BILINEAR,
                                                       GTORCH_GRID_PADDING_ZEROS, TRUE, NULL);
  g_autoptr (GTorchTensor) border = gtorch_grid_sample (x, grid, GTORCH_GRID_MODE_BILINEAR,
                                                        GTORCH_GRID_PADDING_BORDER, TRUE, NULL);
  g_autoptr (GTorchTensor) mirrored =
      gtorch_grid_sample (x, grid, GTORCH_GRID_MODE_BILINEAR, GTORCH_GRID_PADDING_REFLECTION, TRUE,
                          NULL);

  assert_values (zeros, (gdouble[]){ 0, 1.5, 0, 0 }, 4);
  assert_values (border, (gdouble[]){ 0, 1.5, 2, 0 }, 4);
  assert_values (mirrored, (gdouble[]){ 1, 1.5, 1, 0 }, 4);
}

/* The values are those of PyTorch on GPUs; on CPUs it gives NaN for some samples beside images. */
static void
positions_may_be_infinite_or_no_numbers (void)
{
  static const gdouble expected[][4] = {
    [GTORCH_GRID_PADDING_ZEROS] = { 0, 0, 0, 0 },
    [GTORCH_GRID_PADDING_BORDER] = { 0, 2, 0, 0 },
    [GTORCH_GRID_PADDING_REFLECTION] = { 0, 0, 0, 0 },
  };
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 1, 3));
  g_autoptr (GTorchTensor) grid =
      gtorch_tensor_new_from_doubles ((gdouble[]){ NAN, 0, INFINITY, 0, -INFINITY, 0, NAN, NAN }, 8,
                                      GTORCH_SHAPE (1, 1, 4, 2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  gint padding, align;
  gsize n;

  for (padding = 0; padding < 3; padding++)
    for (align = 0; align < 2; align++)
      {
        g_autoptr (GTorchTensor) cubic =
            gtorch_grid_sample (x, grid, GTORCH_GRID_MODE_BICUBIC, padding, align, NULL);
        g_autofree gdouble *values = gtorch_tensor_to_doubles (cubic, &n, NULL);
        gint mode, i;

        for (i = 0; i < 4; i++)
          g_assert_true (isnan (values[i]));
        for (mode = GTORCH_GRID_MODE_BILINEAR; mode <= GTORCH_GRID_MODE_NEAREST; mode++)
          {
            g_autoptr (GTorchTensor) y = gtorch_grid_sample (x, grid, mode, padding, align, NULL);

            assert_values (y, expected[padding], 4);
          }
      }
}

/* The gradients that are computed for a second derivative are those of another form. */
static void
both_forms_have_the_same_gradients (void)
{
  gint mode, padding, align, dims;

  for (mode = 0; mode < 3; mode++)
    for (padding = 0; padding < 3; padding++)
      for (align = 0; align < 2; align++)
        for (dims = 2; dims < (mode == GTORCH_GRID_MODE_BICUBIC ? 3 : 4); dims++)
          {
            const gint64 shape[] = { 2, 3, 4, 5, 3 }, places[] = { 2, 3, dims == 2 ? 50 : 7, 3, 3 };
            const gint64 flat[] = { 2, 3, 50, 2 };
            g_autoptr (GTorchTensor) values = counting (shape, dims + 2);
            g_autoptr (GTorchTensor) x = gtorch_tensor_sin (values, NULL);
            g_autoptr (GTorchTensor) numbers =
                counting (dims == 2 ? flat : places, dims == 2 ? 4 : 5);
            g_autoptr (GTorchTensor) waves = gtorch_tensor_cos (numbers, NULL);
            g_autoptr (GTorchTensor) grid = gtorch_tensor_mul_scalar (waves, 1.7, NULL);
            g_autoptr (GTorchTensor) y = NULL;
            g_autoptr (GTorchTensor) upper = NULL;
            g_autoptr (GPtrArray) quick = NULL;
            g_autoptr (GPtrArray) composed = NULL;
            GTorchTensor *inputs[] = { x, grid };
            guint i;

            g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
            g_assert_true (gtorch_tensor_set_requires_grad (grid, TRUE, NULL));
            y = gtorch_grid_sample (x, grid, mode, padding, align, NULL);
            upper = gtorch_tensor_cos (y, NULL);
            quick = gtorch_autograd_grad (&y, 1, inputs, 2, &upper, 1, TRUE, FALSE, FALSE, NULL);
            composed = gtorch_autograd_grad (&y, 1, inputs, 2, &upper, 1, TRUE, TRUE, FALSE, NULL);
            g_assert_nonnull (quick);
            g_assert_nonnull (composed);
            for (i = 0; i < 2; i++)
              assert_close (quick->pdata[i], composed->pdata[i]);
          }
}

static void
the_identity_gives_the_image (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 2, 2, 3));
  g_autoptr (GTorchTensor) theta =
      gtorch_tensor_new_from_doubles ((gdouble[]){ 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 }, 12,
                                      GTORCH_SHAPE (1, 3, 4), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  gint align;

  for (align = 0; align < 2; align++)
    {
      g_autoptr (GTorchTensor) grid =
          gtorch_affine_grid (theta, GTORCH_SHAPE (1, 1, 2, 2, 3), align, NULL);
      g_autoptr (GTorchTensor) y = gtorch_grid_sample (x, grid, GTORCH_GRID_MODE_BILINEAR,
                                                       GTORCH_GRID_PADDING_ZEROS, align, NULL);

      assert_values (y, (gdouble[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 12);
    }
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
wrong_sizes_and_modes_are_refused (void)
{
  g_autoptr (GTorchTensor) x = counting (GTORCH_SHAPE (1, 1, 2, 2));
  g_autoptr (GTorchTensor) whole = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_INT32, NULL);
  g_autoptr (GTorchTensor) volume = counting (GTORCH_SHAPE (1, 1, 1, 2, 2));

  REFUSED (scale (x, GTORCH_NONE_DOUBLE, FALSE, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, &error),
           GTORCH_ERROR_INVALID, "interpolate: either size or scale_factor must be given");
  REFUSED (gtorch_interpolate (x, GTORCH_SHAPE (3), 2, GTORCH_RESAMPLING_NEAREST, FALSE, FALSE,
                               FALSE, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, &error),
           GTORCH_ERROR_INVALID,
           "interpolate: size [3] and scale_factor 2: only one of both may be given");
  REFUSED (scale (x, -1, FALSE, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, &error),
           GTORCH_ERROR_INVALID,
           "interpolate: scale_factor must be a positive number, and sizes less than 2^53, it is "
           "-1");
  REFUSED (scale (x, GTORCH_NONE_DOUBLE, FALSE, 2, GTORCH_NONE_DOUBLE, &error),
           GTORCH_ERROR_INVALID, "interpolate: a dimension has no scale_factor");
  REFUSED (resize (x, GTORCH_SHAPE (2, 3, 4), GTORCH_RESAMPLING_NEAREST, FALSE, FALSE, &error),
           GTORCH_ERROR_INVALID, "interpolate: size must hold 1 or 2 numbers, it is [2, 3, 4]");
  REFUSED (resize (x, GTORCH_SHAPE (0), GTORCH_RESAMPLING_NEAREST, FALSE, FALSE, &error),
           GTORCH_ERROR_SHAPE,
           "interpolate: images of shape [1, 1, 2, 2] cannot become those of shape [1, 1, 0, 0]: "
           "sizes must be positive");
  REFUSED (resize (x, GTORCH_SHAPE (3), GTORCH_RESAMPLING_LINEAR, FALSE, FALSE, &error),
           GTORCH_ERROR_SHAPE,
           "interpolate: the mode linear is for inputs with 3 dimensions, the input has shape "
           "[1, 1, 2, 2]");
  REFUSED (resize (x, GTORCH_SHAPE (3), GTORCH_RESAMPLING_NEAREST, TRUE, FALSE, &error),
           GTORCH_ERROR_INVALID,
           "interpolate: align_corners is for the modes linear, bilinear, bicubic and trilinear, "
           "not for nearest");
  REFUSED (resize (x, GTORCH_SHAPE (3), GTORCH_RESAMPLING_AREA, FALSE, TRUE, &error),
           GTORCH_ERROR_INVALID,
           "interpolate: antialias is for the modes bilinear and bicubic, not for area");
  REFUSED (resize (whole, GTORCH_SHAPE (3), GTORCH_RESAMPLING_BILINEAR, FALSE, FALSE, &error),
           GTORCH_ERROR_DTYPE,
           "interpolate: dtype int32: only modes that take the nearest element are for integers, "
           "and on "
           "the CPU bilinear and bicubic for uint8");
  REFUSED (gtorch_grid_sample (volume, x, GTORCH_GRID_MODE_NEAREST, GTORCH_GRID_PADDING_ZEROS,
                               FALSE, &error),
           GTORCH_ERROR_SHAPE,
           "grid_sample: images of shape [1, 1, 1, 2, 2] and a grid of shape [1, 1, 2, 2]: they "
           "must "
           "have 4 or 5 dimensions, the first the same, and the grid's last one must hold a "
           "position");
  REFUSED (gtorch_affine_grid (x, GTORCH_SHAPE (1, 2, 3), FALSE, &error), GTORCH_ERROR_INVALID,
           "affine_grid: size [1, 2, 3] must hold 4 or 5 positive numbers");
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/resample/lines_become_longer_and_shorter",
                   lines_become_longer_and_shorter);
  g_test_add_func ("/GTorch/resample/columns_become_single_elements",
                   columns_become_single_elements);
  g_test_add_func ("/GTorch/resample/factors_may_differ", factors_may_differ);
  g_test_add_func ("/GTorch/resample/positions_may_be_infinite_or_no_numbers",
                   positions_may_be_infinite_or_no_numbers);
  g_test_add_func ("/GTorch/resample/both_forms_have_the_same_gradients",
                   both_forms_have_the_same_gradients);
  g_test_add_func ("/GTorch/resample/bytes_are_resampled_as_elsewhere",
                   bytes_are_resampled_as_elsewhere);
  g_test_add_func ("/GTorch/resample/samples_are_taken_beyond_the_borders",
                   samples_are_taken_beyond_the_borders);
  g_test_add_func ("/GTorch/resample/the_identity_gives_the_image", the_identity_gives_the_image);
  g_test_add_func ("/GTorch/resample/wrong_sizes_and_modes_are_refused",
                   wrong_sizes_and_modes_are_refused);
  return g_test_run ();
}
