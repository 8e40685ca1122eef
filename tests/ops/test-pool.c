/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Maxima of windows of many forms, compared with the definition: the last NaN, or the first of the
 * largest. */

#include "config.h"

#include <math.h>

#include "test-device.h"

#define N_FORMS 400

typedef struct
{
  gint64 n, in[2], kernel[2], stride[2], padding[2], dilation[2];
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
draw_form (Form *form)
{
  guint d;

  form->n = g_test_rand_int_range (1, 4);
  form->ceil_mode = g_test_rand_int_range (0, 2);
  for (d = 0; d < 2; d++)
    {
      const gboolean usual = g_test_rand_int_range (0, 2);

      form->in[d] = g_test_rand_int_range (8, 24);
      form->kernel[d] = usual ? 2 : g_test_rand_int_range (1, 4);
      form->stride[d] = usual ? 2 : g_test_rand_int_range (1, 4);
      form->padding[d] = usual ? 0 : g_test_rand_int_range (0, form->kernel[d] / 2 + 1);
      form->dilation[d] = usual ? 1 : g_test_rand_int_range (1, 3);
    }
}

static gint64
place_of_max (const Form *form, const gdouble *image, gint64 oy, gint64 ox)
{
  gint64 at = -1, i, j;

  for (i = 0; i < form->kernel[0]; i++)
    for (j = 0; j < form->kernel[1]; j++)
      {
        const gint64 y = oy * form->stride[0] - form->padding[0] + i * form->dilation[0];
        const gint64 x = ox * form->stride[1] - form->padding[1] + j * form->dilation[1];
        const gint64 place = y * form->in[1] + x;

        if (y < 0 || y >= form->in[0] || x < 0 || x >= form->in[1])
          continue;
        if (at < 0 || isnan (image[place]) || image[place] > image[at])
          at = place;
      }
  return at;
}

static void
check (const Form *form, GTorchDType dtype)
{
  const gint64 plane = form->in[0] * form->in[1];
  const gboolean with_nan = g_test_rand_int_range (0, 2);
  g_autofree gdouble *images = g_new (gdouble, form->n * plane);
  g_autofree gdouble *values = NULL;
  g_autofree gint64 *places = NULL;
  g_autoptr (GTorchTensor) wide = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) indices = NULL;
  g_autoptr (GError) error = NULL;
  gint64 out[2], image, oy, ox, k;
  gsize n;

  for (k = 0; k < form->n * plane; k++)
    images[k] = draw (with_nan);
  wide = gtorch_tensor_new_from_doubles (images, form->n * plane,
                                         GTORCH_SHAPE (form->n, form->in[0], form->in[1]),
                                         GTORCH_DTYPE_FLOAT64, NULL, &error);
  g_assert_no_error (error);
  x = gtorch_tensor_to_dtype (wide, dtype, &error);
  g_assert_no_error (error);
  gtorch_tensor_max_pool2d_with_indices (x, form->kernel, 2, form->stride, 2, form->padding, 2,
                                         form->dilation, 2, form->ceil_mode, &y, &indices, &error);
  g_assert_no_error (error);
  out[0] = gtorch_tensor_get_size (y, 1, NULL);
  out[1] = gtorch_tensor_get_size (y, 2, NULL);
  values = gtorch_tensor_to_doubles (y, &n, NULL);
  g_assert_cmpuint (n, ==, form->n * out[0] * out[1]);
  places = gtorch_tensor_to_ints (indices, &n, NULL);
  for (image = k = 0; image < form->n; image++)
    for (oy = 0; oy < out[0]; oy++)
      for (ox = 0; ox < out[1]; ox++, k++)
        {
          const gint64 at = place_of_max (form, images + image * plane, oy, ox);
          const gdouble best = images[image * plane + at];

          g_assert_cmpint (places[k], ==, at);
          g_assert_true (values[k] == best || (isnan (values[k]) && isnan (best)));
        }
}

static void
maxima_are_those_of_the_definition (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_BFLOAT16 };
  Form form;
  guint i;

  for (i = 0; i < N_FORMS; i++)
    {
      draw_form (&form);
      /* no window may lie entirely in the padding */
      if ((form.kernel[0] - 1) * form.dilation[0] >= form.in[0]
          || (form.kernel[1] - 1) * form.dilation[1] >= form.in[1])
        continue;
      check (&form, dtypes[i % G_N_ELEMENTS (dtypes)]);
    }
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/pool/maxima_are_those_of_the_definition",
                   maxima_are_those_of_the_definition);
  return g_test_run ();
}
