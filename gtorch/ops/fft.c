/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fourier transforms. fft_c2c, fft_r2c and fft_c2r neither resize their input nor normalise; they are
 * what is differentiated and what devices implement. The public operations are composed of them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "gtorch-ops-private.h"

/* --- the three transforms --- */

gboolean
gtorch_shape_fft_c2c (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint64 mask;

  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_normalize_dims (call->op->name, call->attrs[0].list.data, call->attrs[0].list.n,
                                   self->n_dims, &mask, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

/* Sets an output of the shape of self, with another length along one dimension and another dtype. */
static gboolean
set_output (GTorchOpCall *call, gint64 n, guint dtype, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim;

  if (!gtorch_call_check_dtype (call, self->dtype, error)
      || !gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[dim] = n >= 0 ? n : shape[dim] / 2 + 1;
  return gtorch_shape_check (call->op->name, shape, self->n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, self->n_dims, error);
}

gboolean
gtorch_shape_fft_r2c (GTorchOpCall *call, GError **error)
{
  return set_output (call, -1,
                     call->inputs[0]->dtype == GTORCH_DTYPE_FLOAT64 ? GTORCH_DTYPE_COMPLEX128
                                                                    : GTORCH_DTYPE_COMPLEX64,
                     error);
}

gboolean
gtorch_shape_fft_c2r (GTorchOpCall *call, GError **error)
{
  return set_output (call, call->attrs[1].i, gtorch_dtype_infos[call->inputs[0]->dtype].real,
                     error);
}

/* --- gradients --- */

/* Pads the gradient with zeros for the elements that the forward transform left out, then transforms back. */
gboolean
gtorch_grad_fft_r2c (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0];
  const GTorchMeta *meta = &context->input_metas[0];
  const gint64 dim = context->attrs[0].i;
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) back = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint i;

  if (!gtorch_normalize_dim ("fft_r2c", dim, meta->n_dims, &i, error))
    return FALSE;
  memcpy (shape, grad->shape, grad->n_dims * sizeof (gint64));
  shape[i] = meta->shape[i];
  whole = shape[i] == grad->shape[i] ? gtorch_impl_ref (grad)
                                     : gtorch_op_slice_backward (grad, shape, grad->n_dims, i, 0,
                                                                 grad->shape[i], 1, error);
  if (whole == NULL
      || (back = gtorch_op_fft_c2c (whole, &dim, 1, context->attrs[1].d, TRUE, error)) == NULL)
    return FALSE;
  context->result[0] = gtorch_op_real (back, error);
  return context->result[0] != NULL;
}

/* Elements that also stand for their omitted conjugate count twice. */
gboolean
gtorch_grad_fft_c2r (GTorchGradContext *context, GError **error)
{
  const gint64 dim = context->attrs[0].i, n = context->attrs[1].i;
  g_autoptr (GTorchImpl) half = NULL;
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) middle = NULL;
  g_autoptr (GTorchImpl) doubled = NULL;
  g_autoptr (GTorchImpl) last = NULL;
  GTorchImpl *parts[3];
  gint64 size, n_twice = (n - 1) / 2;
  guint i;

  half = gtorch_op_fft_r2c (context->grads[0], dim, context->attrs[2].d, error);
  if (half == NULL || !gtorch_normalize_dim ("fft_c2r", dim, half->n_dims, &i, error))
    return FALSE;
  size = half->shape[i];
  if (n_twice == 0)
    {
      context->result[0] = g_steal_pointer (&half);
      return TRUE;
    }
  if ((first = gtorch_op_slice (half, i, 0, 1, 1, error)) == NULL
      || (middle = gtorch_op_slice (half, i, 1, 1 + n_twice, 1, error)) == NULL
      || (doubled = gtorch_op_add (middle, middle, 1, error)) == NULL
      || (last = gtorch_op_slice (half, i, 1 + n_twice, size, 1, error)) == NULL)
    return FALSE;
  parts[0] = first;
  parts[1] = doubled;
  parts[2] = last;
  context->result[0] = gtorch_op_cat (parts, size > 1 + n_twice ? 3 : 2, i, error);
  return context->result[0] != NULL;
}

/* --- helpers of the public operations --- */

static void fail (GError **error, const gchar *op, GTorchError code, const gchar *format, ...)
    G_GNUC_PRINTF (4, 5);

static void
fail (GError **error, const gchar *op, GTorchError code, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, "%s: %s", op, text);
}

/* Converts to a floating-point or complex dtype with parts of 32 or 64 bits. */
static GTorchImpl *
promote (GTorchImpl *input, gboolean to_complex, GError **error)
{
  guint dtype = input->dtype;

  if (gtorch_dtype_kind (dtype) < GTORCH_KIND_FLOAT)
    dtype = gtorch_get_default_dtype ();
  if (gtorch_dtype_size (dtype) == 2)
    dtype = GTORCH_DTYPE_FLOAT32;
  if (to_complex && gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT)
    dtype = dtype == GTORCH_DTYPE_FLOAT64 ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_COMPLEX64;
  return dtype == input->dtype ? gtorch_impl_ref (input) : gtorch_op_to_dtype (input, dtype, error);
}

static GTorchImpl *
promote_real (const gchar *op, GTorchImpl *input, GError **error)
{
  if (gtorch_dtype_kind (input->dtype) == GTORCH_KIND_COMPLEX)
    {
      fail (error, op, GTORCH_ERROR_DTYPE, _ ("a real tensor is wanted, not one of dtype %s"),
            gtorch_dtype_get_name (input->dtype));
      return NULL;
    }
  return promote (input, FALSE, error);
}

static gboolean
check_length (const gchar *op, gint64 n, GError **error)
{
  if (n >= 1)
    return TRUE;
  fail (error, op, GTORCH_ERROR_INVALID,
        _ ("%" PRId64 " elements cannot be transformed, at least 1 is needed"), n);
  return FALSE;
}

/* Computes the normalisation factor of a transform of n elements. */
static gboolean
find_scale (const gchar *op, GTorchFFTNorm norm, gboolean inverse, gdouble n, gdouble *scale,
            GError **error)
{
  switch (norm)
    {
    case GTORCH_FFT_NORM_BACKWARD:
      *scale = inverse ? 1 / n : 1;
      return TRUE;
    case GTORCH_FFT_NORM_ORTHO:
      *scale = 1 / sqrt (n);
      return TRUE;
    case GTORCH_FFT_NORM_FORWARD:
      *scale = inverse ? 1 : 1 / n;
      return TRUE;
    }
  fail (error, op, GTORCH_ERROR_INVALID, _ ("%d is not a norm"), (gint) norm);
  return FALSE;
}

/* Cuts self, or pads it with zeros, to n elements along dim. Takes the reference. */
static GTorchImpl *
resize (GTorchImpl *taken, guint dim, gint64 n, GError **error)
{
  g_autoptr (GTorchImpl) self = taken;
  gint64 shape[GTORCH_MAX_DIMS];

  if (self == NULL || self->shape[dim] == n)
    return g_steal_pointer (&self);
  if (self->shape[dim] > n)
    return gtorch_op_slice (self, dim, 0, n, 1, error);
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[dim] = n;
  if (!gtorch_shape_check ("fft", shape, self->n_dims, self->dtype, error))
    return NULL;
  return gtorch_op_slice_backward (self, shape, self->n_dims, dim, 0, self->shape[dim], 1, error);
}

typedef struct
{
  gsize n_dims;
  gint64 dims[GTORCH_MAX_DIMS];
  gint64 lengths[GTORCH_MAX_DIMS];
  gdouble n; /* the product of the lengths */
} Plan;

/* Finds the dimensions and their lengths: from one pair (n, dim), or from lists. With `half`, the last
 * dimension of the input holds n / 2 + 1 of n elements. */
static gboolean
plan_init (Plan *plan, const gchar *op, GTorchImpl *input, const gint64 *s, gsize n_s,
           const gint64 *dims, gsize n_dims, gboolean half, GError **error)
{
  guint64 mask;
  gsize i;

  if (n_s > 0 && n_dims > 0 && n_s != n_dims)
    {
      fail (error, op, GTORCH_ERROR_INVALID, _ ("lengths %s and dims %s must be of one length"),
            gtorch_shape_str (s, n_s), gtorch_shape_str (dims, n_dims));
      return FALSE;
    }
  if (!gtorch_normalize_dims (op, dims, n_dims, input->n_dims, &mask, error))
    return FALSE;
  plan->n_dims = n_dims > 0 ? n_dims : (n_s > 0 ? n_s : input->n_dims);
  if (plan->n_dims > input->n_dims)
    {
      if (n_s > 0 && n_dims == 0)
        fail (error, op, GTORCH_ERROR_SHAPE,
              _ ("%u lengths are more than the dimensions of shape %s"), (guint) n_s,
              gtorch_impl_shape_str (input));
      else
        fail (error, op, GTORCH_ERROR_SHAPE,
              _ ("a tensor without dimensions has none to transform"));
      return FALSE;
    }
  plan->n = 1;
  for (i = 0; i < plan->n_dims; i++)
    {
      gint64 dim = n_dims > 0 ? dims[i] : (gint64) (input->n_dims - plan->n_dims + i), size;

      plan->dims[i] = dim < 0 ? dim + input->n_dims : dim;
      size = input->shape[plan->dims[i]];
      if (half && i + 1 == plan->n_dims)
        size = 2 * (size - 1);
      plan->lengths[i] = n_s > 0 && s[i] != -1 ? s[i] : size;
      if (!check_length (op, plan->lengths[i], error))
        return FALSE;
      plan->n *= (gdouble) plan->lengths[i];
    }
  return TRUE;
}

static GTorchImpl *
resize_all (GTorchImpl *taken, const Plan *plan, gboolean half, GError **error)
{
  gsize i;

  for (i = 0; i < plan->n_dims; i++)
    taken =
        resize (taken, plan->dims[i],
                half && i + 1 == plan->n_dims ? plan->lengths[i] / 2 + 1 : plan->lengths[i], error);
  return taken;
}

static GTorchImpl *
complex_to_complex (const gchar *op, GTorchImpl *input, const gint64 *s, gsize n_s,
                    const gint64 *dims, gsize n_dims, GTorchFFTNorm norm, gboolean inverse,
                    GError **error)
{
  g_autoptr (GTorchImpl) x = NULL;
  gdouble scale;
  Plan plan;

  if (!plan_init (&plan, op, input, s, n_s, dims, n_dims, FALSE, error)
      || !find_scale (op, norm, inverse, plan.n, &scale, error))
    return NULL;
  x = resize_all (promote (input, TRUE, error), &plan, FALSE, error);
  if (x == NULL)
    return NULL;
  return plan.n_dims > 0 ? gtorch_op_fft_c2c (x, plan.dims, plan.n_dims, scale, inverse, error)
                         : gtorch_op_clone (x, error);
}

static GTorchImpl *
real_to_complex (const gchar *op, GTorchImpl *input, const gint64 *s, gsize n_s, const gint64 *dims,
                 gsize n_dims, GTorchFFTNorm norm, gboolean inverse, GError **error)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) half = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  gdouble scale;
  gsize last;
  Plan plan;

  if (!plan_init (&plan, op, input, s, n_s, dims, n_dims, FALSE, error)
      || !find_scale (op, norm, inverse, plan.n, &scale, error))
    return NULL;
  if (plan.n_dims == 0)
    {
      fail (error, op, GTORCH_ERROR_SHAPE, _ ("a tensor without dimensions has none to transform"));
      return NULL;
    }
  x = resize_all (promote_real (op, input, error), &plan, FALSE, error);
  if (x == NULL)
    return NULL;
  last = plan.n_dims - 1;
  half = gtorch_op_fft_r2c (x, plan.dims[last], scale, error);
  if (half != NULL && inverse)
    turned = gtorch_op_conj (half, error);
  else
    turned = g_steal_pointer (&half);
  if (turned == NULL)
    return NULL;
  return last > 0 ? gtorch_op_fft_c2c (turned, plan.dims, last, 1, inverse, error)
                  : g_steal_pointer (&turned);
}

static GTorchImpl *
complex_to_real (const gchar *op, GTorchImpl *input, const gint64 *s, gsize n_s, const gint64 *dims,
                 gsize n_dims, GTorchFFTNorm norm, gboolean inverse, GError **error)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) whole = NULL;
  gdouble scale;
  gsize last;
  Plan plan;

  if (!plan_init (&plan, op, input, s, n_s, dims, n_dims, TRUE, error)
      || !find_scale (op, norm, inverse, plan.n, &scale, error))
    return NULL;
  if (plan.n_dims == 0)
    {
      fail (error, op, GTORCH_ERROR_SHAPE, _ ("a tensor without dimensions has none to transform"));
      return NULL;
    }
  x = resize_all (promote (input, TRUE, error), &plan, TRUE, error);
  if (x == NULL)
    return NULL;
  last = plan.n_dims - 1;
  turned = inverse ? g_steal_pointer (&x) : gtorch_op_conj (x, error);
  whole = turned != NULL && last > 0 ? gtorch_op_fft_c2c (turned, plan.dims, last, 1, TRUE, error)
                                     : g_steal_pointer (&turned);
  return whole != NULL
             ? gtorch_op_fft_c2r (whole, plan.dims[last], plan.lengths[last], scale, error)
             : NULL;
}

/* --- the public operations --- */

#define ONE(name, function, inverse)                                                     \
  GTorchImpl *gtorch_composite_##name (GTorchImpl *input, gint64 n, gint64 dim,          \
                                       GTorchFFTNorm norm, GError **error)               \
  {                                                                                      \
    if (input->n_dims == 0)                                                              \
      {                                                                                  \
        fail (error, #name, GTORCH_ERROR_SHAPE,                                          \
              _ ("a tensor without dimensions has none to transform"));                  \
        return NULL;                                                                     \
      }                                                                                  \
    if (n != GTORCH_NONE && !check_length (#name, n, error))                             \
      return NULL;                                                                       \
    return function (#name, input, &n, n != GTORCH_NONE, &dim, 1, norm, inverse, error); \
  }

#define SEVERAL(name, function, inverse)                                                   \
  GTorchImpl *gtorch_composite_##name (GTorchImpl *input, const gint64 *s, gsize n_s,      \
                                       const gint64 *dim, gsize n_dim, GTorchFFTNorm norm, \
                                       GError **error)                                     \
  {                                                                                        \
    return function (#name, input, s, n_s, dim, n_dim, norm, inverse, error);              \
  }

ONE (fft_fft, complex_to_complex, FALSE)
ONE (fft_ifft, complex_to_complex, TRUE)
ONE (fft_rfft, real_to_complex, FALSE)
ONE (fft_irfft, complex_to_real, TRUE)
ONE (fft_hfft, complex_to_real, FALSE)
ONE (fft_ihfft, real_to_complex, TRUE)
SEVERAL (fft_fftn, complex_to_complex, FALSE)
SEVERAL (fft_ifftn, complex_to_complex, TRUE)
SEVERAL (fft_rfftn, real_to_complex, FALSE)
SEVERAL (fft_irfftn, complex_to_real, TRUE)
SEVERAL (fft_hfftn, complex_to_real, FALSE)
SEVERAL (fft_ihfftn, real_to_complex, TRUE)

/* The public functions have two dimensions by default. */
#define TWO(name, function)                                                                \
  GTorchImpl *gtorch_composite_##name (GTorchImpl *input, const gint64 *s, gsize n_s,      \
                                       const gint64 *dim, gsize n_dim, GTorchFFTNorm norm, \
                                       GError **error)                                     \
  {                                                                                        \
    GTorchImpl *result = gtorch_op_##function (input, s, n_s, dim, n_dim, norm, error);    \
                                                                                           \
    if (result == NULL)                                                                    \
      gtorch_error_set_op (error, #name);                                                  \
    return result;                                                                         \
  }

TWO (fft_fft2, fft_fftn)
TWO (fft_ifft2, fft_ifftn)
TWO (fft_rfft2, fft_rfftn)
TWO (fft_irfft2, fft_irfftn)
TWO (fft_hfft2, fft_hfftn)
TWO (fft_ihfft2, fft_ihfftn)

static GTorchImpl *
shift (const gchar *op, GTorchImpl *input, const gint64 *dims, gsize n_dims, gboolean up,
       GError **error)
{
  gint64 shifts[GTORCH_MAX_DIMS], all[GTORCH_MAX_DIMS];
  guint64 mask;
  gsize n = 0;
  guint i;

  if (!gtorch_normalize_dims (op, dims, n_dims, input->n_dims, &mask, error))
    return NULL;
  for (i = 0; i < input->n_dims; i++)
    if (mask & (G_GUINT64_CONSTANT (1) << i))
      {
        all[n] = i;
        shifts[n++] = (input->shape[i] + up) / 2;
      }
  return n > 0 ? gtorch_op_roll (input, shifts, n, all, n, error) : gtorch_op_clone (input, error);
}

GTorchImpl *
gtorch_op_fft_fftshift (GTorchImpl *input, const gint64 *dim, gsize n_dim, GError **error)
{
  return shift ("fft_fftshift", input, dim, n_dim, FALSE, error);
}

GTorchImpl *
gtorch_op_fft_ifftshift (GTorchImpl *input, const gint64 *dim, gsize n_dim, GError **error)
{
  return shift ("fft_ifftshift", input, dim, n_dim, TRUE, error);
}

static gboolean
check_frequencies (const gchar *op, gint64 n, gdouble d, guint dtype, GError **error)
{
  if (n < 1 || n > G_GINT64_CONSTANT (1) << 53)
    {
      fail (error, op, GTORCH_ERROR_INVALID, _ ("n is %" PRId64 ", it must be from 1 to 2^53"), n);
      return FALSE;
    }
  if (d == 0)
    {
      fail (error, op, GTORCH_ERROR_INVALID, _ ("d is 0, it must be another number"));
      return FALSE;
    }
  if (dtype == GTORCH_DTYPE_NONE
      || (dtype < GTORCH_N_DTYPES && gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT))
    return TRUE;
  fail (error, op, GTORCH_ERROR_DTYPE, _ ("the dtype must be a floating-point one"));
  return FALSE;
}

static GTorchImpl *
scaled (GTorchImpl *self, gint64 n, gdouble d, GError **error)
{
  g_autoptr (GTorchImpl) factor = gtorch_impl_new_number (1 / ((gdouble) n * d));

  return self != NULL ? gtorch_op_mul (self, factor, error) : NULL;
}

GTorchImpl *
gtorch_op_fft_fftfreq (gint64 n, gdouble d, GTorchDType dtype, GTorchDevice *device, GError **error)
{
  const gint64 n_up = (n + 1) / 2;
  g_autoptr (GTorchImpl) up = NULL;
  g_autoptr (GTorchImpl) down = NULL;
  g_autoptr (GTorchImpl) both = NULL;

  if (!check_frequencies ("fft_fftfreq", n, d, dtype, error)
      || (up = gtorch_op_arange (0, (gdouble) n_up, 1,
                                 dtype != GTORCH_DTYPE_NONE ? dtype : gtorch_get_default_dtype (),
                                 device, error))
             == NULL)
    return NULL;
  if (n == 1)
    return scaled (up, n, d, error);
  down = gtorch_op_arange ((gdouble) (-(n / 2)), 0, 1, up->dtype, device, error);
  both = down != NULL ? gtorch_op_cat ((GTorchImpl *[]){ up, down }, 2, 0, error) : NULL;
  return scaled (both, n, d, error);
}

GTorchImpl *
gtorch_op_fft_rfftfreq (gint64 n, gdouble d, GTorchDType dtype, GTorchDevice *device,
                        GError **error)
{
  g_autoptr (GTorchImpl) up = NULL;

  if (!check_frequencies ("fft_rfftfreq", n, d, dtype, error)
      || (up = gtorch_op_arange (0, (gdouble) (n / 2 + 1), 1,
                                 dtype != GTORCH_DTYPE_NONE ? dtype : gtorch_get_default_dtype (),
                                 device, error))
             == NULL)
    return NULL;
  return scaled (up, n, d, error);
}
