/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The public forms of convolutions, for one to three dimensions, with or without a batch, and their
 * transposes. A transposed convolution is the gradient of a convolution for its input, whose size is what
 * the output padding chooses. Signals are convolved as images of one row; complex numbers by two
 * convolutions of both parts at once. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-ops-private.h"

typedef struct
{
  const gchar *op;
  guint n;     /* dimensions of the filters in the public form */
  guint inner; /* and in the operation: at least 2 */
  gboolean is_transposed;
  gint64 stride[3], padding[3], dilation[3], output_padding[3];
  gint64 groups;
} Form;

/* Reads one number for all dimensions, or one for each. A dimension that the public form lacks gets the
 * least one. */
static gboolean
read_numbers (Form *form, const gchar *name, const gint64 *list, gsize length, gint64 least,
              gint64 *result, GError **error)
{
  guint i;

  if (length != 1 && length != form->n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   form->n == 1 ? _ ("%s: %s must hold 1 number, it holds %u")
                                : _ ("%s: %s must hold 1 or %u numbers, it holds %u"),
                   form->op, name, form->n == 1 ? (guint) length : form->n, (guint) length);
      return FALSE;
    }
  for (i = 0; i < length; i++)
    if (list[i] < least || list[i] > G_MAXINT32)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: %s must be from %" PRId64 " to %d, it is %" PRId64), form->op, name,
                     least, G_MAXINT32, list[i]);
        return FALSE;
      }
  result[0] = least;
  for (i = 0; i < form->n; i++)
    result[form->inner - form->n + i] = list[length == 1 ? 0 : i];
  return TRUE;
}

static GTorchImpl *
insert_dims (GTorchImpl *impl, gboolean batch, gboolean height, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint n = 0, i;

  if (!batch && !height)
    return gtorch_impl_ref (impl);
  if (batch)
    shape[n++] = 1;
  for (i = 0; i < impl->n_dims; i++)
    {
      if (height && i == impl->n_dims - 1)
        shape[n++] = 1;
      shape[n++] = impl->shape[i];
    }
  return gtorch_op_reshape (impl, shape, n, error);
}

/* --- transposes --- */

/* Computes the shape of the result. An output padding of the stride or more, which is possible with a
 * dilation, continues the input with `extra` zeros. */
static gboolean
transposed_size (const Form *form, const GTorchImpl *x, const GTorchImpl *w, gint64 *size,
                 gint64 *extra, GError **error)
{
  guint i;

  if (w->shape[0] != x->shape[1] || form->groups < 1 || x->shape[1] % form->groups != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: input %s, weight %s, groups %" PRId64
                      ": the weight must have a filter for each channel of the input, and their "
                      "number must be a multiple of groups"),
                   form->op, gtorch_impl_shape_str (x), gtorch_impl_shape_str (w), form->groups);
      return FALSE;
    }
  size[0] = x->shape[0];
  if (__builtin_mul_overflow (w->shape[1], form->groups, &size[1]))
    goto too_large;
  for (i = 0; i < form->inner; i++)
    {
      gint64 reach, span, n = x->shape[2 + i], *to = &size[2 + i];

      if (form->output_padding[i] >= MAX (form->stride[i], form->dilation[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: output_padding must be less than the stride or the dilation, "
                          "%" PRId64 " is not less than %" PRId64 " or %" PRId64),
                       form->op, form->output_padding[i], form->stride[i], form->dilation[i]);
          return FALSE;
        }
      extra[i] = form->output_padding[i] / form->stride[i];
      if (__builtin_mul_overflow (n - 1, form->stride[i], &reach)
          || __builtin_mul_overflow (w->shape[2 + i] - 1, form->dilation[i], &span)
          || __builtin_add_overflow (reach, span, to)
          || __builtin_add_overflow (*to, form->output_padding[i] + 1 - 2 * form->padding[i], to))
        goto too_large;
      if (n < 1 || w->shape[2 + i] < 1 || *to < 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: the input %s and the weight %s with padding %" PRId64
                          " make no output"),
                       form->op, gtorch_impl_shape_str (x), gtorch_impl_shape_str (w),
                       form->padding[i]);
          return FALSE;
        }
    }
  return TRUE;

too_large:
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the input %s and the weight %s make an output that is too large"), form->op,
               gtorch_impl_shape_str (x), gtorch_impl_shape_str (w));
  return FALSE;
}

static GTorchImpl *
transposed (const Form *form, GTorchImpl *x, GTorchImpl *w, GTorchImpl *bias, GError **error)
{
  gint64 size[5], extra[3], pad[6] = { 0 };
  g_autoptr (GTorchImpl) longer = NULL;
  guint n = form->inner, i;
  gboolean is_longer = FALSE;

  if (!transposed_size (form, x, w, size, extra, error))
    return NULL;
  for (i = 0; i < n; i++)
    {
      pad[2 * (n - 1 - i) + 1] = extra[i];
      is_longer |= extra[i] > 0;
    }
  if (is_longer && (longer = gtorch_op_constant_pad_nd (x, pad, 2 * n, 0, error)) == NULL)
    return NULL;
  return gtorch_op_convolve_input (is_longer ? longer : x, w, bias, size, n + 2, form->stride, n,
                                   form->padding, n, form->dilation, n, form->groups, error);
}

/* --- batches --- */

static GTorchImpl *
convolve_real (const Form *form, GTorchImpl *x, GTorchImpl *w, GTorchImpl *bias, GError **error)
{
  if (form->is_transposed)
    return transposed (form, x, w, bias, error);
  return gtorch_op_convolve (x, w, bias, form->stride, form->inner, form->padding, form->inner,
                             form->dilation, form->inner, form->groups, error);
}

/* Multiplies both parts of x, as twice as long a batch, by one part of w. Returns the products. */
static gboolean
convolve_parts (const Form *form, GTorchImpl *parts, GTorchImpl *w, gint64 n, GTorchImpl **real,
                GTorchImpl **imag, GError **error)
{
  g_autoptr (GTorchImpl) both = w != NULL ? convolve_real (form, parts, w, NULL, error) : NULL;

  *real = both != NULL ? gtorch_op_narrow (both, 0, 0, n, error) : NULL;
  *imag = *real != NULL ? gtorch_op_narrow (both, 0, n, n, error) : NULL;
  return *imag != NULL;
}

static GTorchImpl *
convolve_complex (const Form *form, GTorchImpl *x, GTorchImpl *w, GTorchImpl *bias, GError **error)
{
  const gint64 n = x->shape[0];
  g_autoptr (GTorchImpl) x_real = gtorch_op_real (x, error);
  g_autoptr (GTorchImpl) x_imag = x_real != NULL ? gtorch_op_imag (x, error) : NULL;
  GTorchImpl *both[] = { x_real, x_imag };
  g_autoptr (GTorchImpl) parts = x_imag != NULL ? gtorch_op_cat (both, 2, 0, error) : NULL;
  g_autoptr (GTorchImpl) w_real = parts != NULL ? gtorch_op_real (w, error) : NULL;
  g_autoptr (GTorchImpl) w_imag = w_real != NULL ? gtorch_op_imag (w, error) : NULL;
  g_autoptr (GTorchImpl) real_real = NULL;
  g_autoptr (GTorchImpl) imag_real = NULL;
  g_autoptr (GTorchImpl) real_imag = NULL;
  g_autoptr (GTorchImpl) imag_imag = NULL;
  g_autoptr (GTorchImpl) real = NULL;
  g_autoptr (GTorchImpl) imag = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) column = NULL;
  gint64 shape[4] = { -1, 1, 1, 1 };

  if (w_imag == NULL || !convolve_parts (form, parts, w_real, n, &real_real, &imag_real, error)
      || !convolve_parts (form, parts, w_imag, n, &real_imag, &imag_imag, error))
    return NULL;
  real = gtorch_op_sub (real_real, imag_imag, 1, error);
  imag = real != NULL ? gtorch_op_add (real_imag, imag_real, 1, error) : NULL;
  y = imag != NULL ? gtorch_op_complex (real, imag, error) : NULL;
  if (y == NULL || bias == NULL)
    return g_steal_pointer (&y);
  if (bias->n_dims != 1 || bias->shape[0] != y->shape[1])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the bias %s must have one element for each of %" PRId64 " channels"),
                   form->op, gtorch_impl_shape_str (bias), y->shape[1]);
      return NULL;
    }
  column = gtorch_op_reshape (bias, shape, form->inner + 1, error);
  return column != NULL ? gtorch_op_add (y, column, 1, error) : NULL;
}

static gboolean
is_complex (const Form *form, GTorchImpl *x, GTorchImpl *w, GTorchImpl *bias, gboolean *result,
            GError **error)
{
  *result = gtorch_dtype_kind (x->dtype) == GTORCH_KIND_COMPLEX;
  if (!*result || (w->dtype == x->dtype && (bias == NULL || bias->dtype == x->dtype)))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: the input has dtype %s, the weight %s, the bias %s: they must be the same"),
               form->op, gtorch_dtype_get_name (x->dtype), gtorch_dtype_get_name (w->dtype),
               gtorch_dtype_get_name (bias != NULL ? bias->dtype : x->dtype));
  return FALSE;
}

static GTorchImpl *
convolve (Form *form, GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias, GError **error)
{
  const guint full = form->n + 2;
  const gboolean batched = input->n_dims == full, is_1d = form->n == 1;
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) w = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gboolean complex;
  guint n = 0, i;

  if ((!batched && input->n_dims != full - 1) || weight->n_dims != full)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the input %s must have %u or %u dimensions and the weight %s must have "
                      "%u"),
                   form->op, gtorch_impl_shape_str (input), full, full - 1,
                   gtorch_impl_shape_str (weight), full);
      return NULL;
    }
  if (!is_complex (form, input, weight, bias, &complex, error))
    return NULL;
  if (batched && !is_1d && !complex)
    return convolve_real (form, input, weight, bias, error);
  x = insert_dims (input, !batched, is_1d, error);
  w = x != NULL ? insert_dims (weight, FALSE, is_1d, error) : NULL;
  if (w != NULL)
    y = (complex ? convolve_complex : convolve_real) (form, x, w, bias, error);
  if (y == NULL || (batched && !is_1d))
    return g_steal_pointer (&y);
  for (i = batched ? 0 : 1; i < y->n_dims; i++)
    if (!is_1d || i != 2)
      shape[n++] = y->shape[i];
  return gtorch_op_reshape (y, shape, n, error);
}

/* --- the public forms --- */

static GTorchImpl *
run (Form form, GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias, const gint64 *const *lists,
     const gsize *lengths, GError **error)
{
  form.inner = MAX (form.n, 2);
  if (!read_numbers (&form, "stride", lists[0], lengths[0], 1, form.stride, error)
      || !read_numbers (&form, "padding", lists[1], lengths[1], 0, form.padding, error)
      || !read_numbers (&form, "dilation", lists[2], lengths[2], 1, form.dilation, error)
      || (form.is_transposed
          && !read_numbers (&form, "output_padding", lists[3], lengths[3], 0, form.output_padding,
                            error)))
    return NULL;
  return convolve (&form, input, weight, bias, error);
}

#define FORWARD(N)                                                                                 \
  GTorchImpl *gtorch_composite_conv##N##d (GTorchImpl *input, GTorchImpl *weight,                  \
                                           GTorchImpl *bias, const gint64 *stride, gsize n_stride, \
                                           const gint64 *padding, gsize n_padding,                 \
                                           const gint64 *dilation, gsize n_dilation,               \
                                           gint64 groups, GError **error)                          \
  {                                                                                                \
    const gint64 *lists[] = { stride, padding, dilation };                                         \
    const gsize lengths[] = { n_stride, n_padding, n_dilation };                                   \
                                                                                                   \
    return run ((Form){ .op = "conv" #N "d", .n = N, .groups = groups }, input, weight, bias,      \
                lists, lengths, error);                                                            \
  }
FORWARD (1)
FORWARD (2)
FORWARD (3)

#define BACKWARD(N)                                                                            \
  GTorchImpl *gtorch_composite_conv_transpose##N##d (GTorchImpl *input, GTorchImpl *weight,    \
                                                     GTorchImpl *bias, const gint64 *stride,   \
                                                     gsize n_stride, const gint64 *padding,    \
                                                     gsize n_padding,                          \
                                                     const gint64 *output_padding,             \
                                                     gsize n_output_padding, gint64 groups,    \
                                                     const gint64 *dilation, gsize n_dilation, \
                                                     GError **error)                           \
  {                                                                                            \
    const gint64 *lists[] = { stride, padding, dilation, output_padding };                     \
    const gsize lengths[] = { n_stride, n_padding, n_dilation, n_output_padding };             \
                                                                                               \
    return run ((Form){ .op = "conv_transpose" #N "d",                                         \
                        .n = N,                                                                \
                        .is_transposed = TRUE,                                                 \
                        .groups = groups },                                                    \
                input, weight, bias, lists, lengths, error);                                   \
  }
BACKWARD (1)
BACKWARD (2)
BACKWARD (3)
