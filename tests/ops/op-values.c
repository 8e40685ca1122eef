/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "op-values.h"

#include <math.h>
#include <string.h>

#include <gtorch/cpu/gtorch-cpu-cast.h>
#include <gtorch/device/gtorch-device-private.h>

const gchar *const layout_names[N_LAYOUTS] = { "contiguous", "transposed", "strided",
                                               "expanded",   "offset",     "channels last" };

static char *
element (const GTorchImpl *impl, gint64 index)
{
  gint64 offset = 0;
  guint i;

  for (i = impl->n_dims; i-- > 0;)
    {
      offset += index % impl->shape[i] * impl->strides[i];
      index /= impl->shape[i];
    }
  return (char *) gtorch_impl_data (impl) + offset * (gint64) gtorch_dtype_size (impl->dtype);
}

/* A cache of host copies of the device tensors that were read last. */
static struct
{
  GTorchStorage *theirs;
  GTorchImpl *bytes;
  guint version;
} mirrors[4];
static guint next_mirror;

static GTorchImpl *
all_bytes (GTorchStorage *storage)
{
  const gint64 n_bytes = storage->n_bytes;

  return gtorch_impl_new_strided (storage, GTORCH_DTYPE_UINT8, 0, &n_bytes, NULL, 1);
}

static void
forget_mirror (guint i)
{
  g_clear_pointer (&mirrors[i].theirs, gtorch_storage_unref);
  g_clear_pointer (&mirrors[i].bytes, gtorch_impl_unref);
}

static const char *
find_mirror (const GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) bytes = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (mirrors); i++)
    if (mirrors[i].theirs == impl->storage && mirrors[i].version == impl->storage->version)
      return gtorch_impl_data (mirrors[i].bytes);
  i = next_mirror++ % G_N_ELEMENTS (mirrors);
  forget_mirror (i);
  bytes = all_bytes (impl->storage);
  mirrors[i].theirs = gtorch_storage_ref (impl->storage);
  mirrors[i].version = impl->storage->version;
  mirrors[i].bytes = impl_to_host (bytes);
  return gtorch_impl_data (mirrors[i].bytes);
}

Number
element_get (const GTorchImpl *impl, gint64 index)
{
  const char *at = element (impl, index);
  Number value;

  if (impl->storage->device != gtorch_device_cpu ())
    at = find_mirror (impl) + (at - (char *) impl->storage->data);
  gtorch_cpu_cast (GTORCH_DTYPE_COMPLEX128, impl->dtype) ((char *) &value, 16, at, 16, 1);
  return value;
}

void
element_set (const GTorchImpl *impl, gint64 index, Number value)
{
  GTorchDevice *device = impl->storage->device;
  const gint64 size = gtorch_dtype_size (impl->dtype);
  char *at = element (impl, index);
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GTorchImpl) there = NULL;
  g_autoptr (GTorchImpl) copied = NULL;
  GError *error = NULL;
  guint i;

  if (device != gtorch_device_cpu ())
    {
      host = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_UINT8, &size, 1, NULL);
      there = gtorch_impl_new_strided (impl->storage, GTORCH_DTYPE_UINT8,
                                       at - (char *) impl->storage->data, &size, NULL, 1);
      at = gtorch_impl_data (host);
    }
  gtorch_cpu_cast (impl->dtype, GTORCH_DTYPE_COMPLEX128) (at, 16, (const char *) &value, 16, 1);
  if (there == NULL)
    return;
  copied = gtorch_copy_to_device (host, device, FALSE, there, &error);
  g_assert_no_error (error);
  for (i = 0; i < G_N_ELEMENTS (mirrors); i++)
    if (mirrors[i].theirs == impl->storage)
      forget_mirror (i);
}

static GTorchImpl *
shaped (guint dtype, Layout layout, const gint64 *shape, guint n_dims)
{
  g_autoptr (GTorchImpl) base = NULL;
  gint64 big[8], strides[8];
  gint64 stride = 1;
  guint i;

  switch (layout)
    {
    case LAYOUT_TRANSPOSED:
      for (i = 0; i < n_dims; i++)
        {
          strides[i] = stride;
          stride *= MAX (shape[i], 1);
        }
      base = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, NULL);
      return gtorch_impl_new_view (base, 0, shape, strides, n_dims);

    case LAYOUT_STRIDED:
      for (i = 0; i < n_dims; i++)
        big[i] = 2 * shape[i] + 1;
      base = gtorch_impl_new (gtorch_device_cpu (), dtype, big, n_dims, NULL);
      memset (gtorch_impl_data (base), 0x55, gtorch_impl_n_bytes (base));
      for (i = 0; i < n_dims; i++)
        strides[i] = base->strides[i] * 2;
      return gtorch_impl_new_view (base, n_dims > 0 ? 1 : 0, shape, strides, n_dims);

    case LAYOUT_EXPANDED:
      base = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, NULL);
      for (i = 0; i < n_dims; i++)
        strides[i] = i == 0 ? 0 : base->strides[i];
      return gtorch_impl_new_view (base, 0, shape, strides, n_dims);

    case LAYOUT_OFFSET:
      for (i = 0; i < n_dims; i++)
        stride *= shape[i];
      stride += 2;
      base = gtorch_impl_new (gtorch_device_cpu (), dtype, &stride, 1, NULL);
      memset (gtorch_impl_data (base), 0x55, gtorch_impl_n_bytes (base));
      return gtorch_impl_new_view (base, 1, shape, NULL, n_dims);

    case LAYOUT_LAST:
      base = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, NULL);
      if (n_dims < 3)
        return g_steal_pointer (&base);
      stride = MAX (shape[1], 1);
      strides[1] = 1;
      for (i = n_dims; i-- > 0;)
        if (i != 1)
          {
            strides[i] = stride;
            stride *= MAX (shape[i], 1);
          }
      return gtorch_impl_new_view (base, 0, shape, strides, n_dims);

    default:
      return gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, NULL);
    }
}

void
input_make_positive (GTorchImpl *impl)
{
  const gint64 n = impl->n_dims >= 2 ? impl->shape[impl->n_dims - 1] : 0;
  const guint kind = gtorch_dtype_kind (impl->dtype);
  g_autofree Number *matrix = NULL;
  gint64 first, i, j, k;

  for (i = 0; kind == GTORCH_KIND_INT && i < impl->numel; i++)
    element_set (impl, i, fmax (1, creal (element_get (impl, i))));
  if (n == 0 || impl->shape[impl->n_dims - 2] != n || kind < GTORCH_KIND_FLOAT)
    return;
  matrix = g_new (Number, n * n);
  for (first = 0; first < impl->numel; first += n * n)
    {
      for (i = 0; i < n * n; i++)
        matrix[i] = element_get (impl, first + i);
      for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
          {
            Number sum = i == j ? n : 0;

            for (k = 0; k < n; k++)
              sum += matrix[i * n + k] * conj (matrix[j * n + k]);
            element_set (impl, first + i * n + j, sum / (gdouble) n);
          }
    }
}

GTorchImpl *
input_new (const GTorchSampleTensor *spec, guint dtype, Layout layout, gdouble low, gdouble high,
           GRand *rand)
{
  guint kind = gtorch_dtype_kind (dtype);
  GTorchImpl *impl;
  gint64 i;

  if (spec->n_dims < 0)
    return NULL;
  impl = shaped (dtype, layout, spec->shape, spec->n_dims);
  if (spec->dtype != GTORCH_DTYPE_NONE && kind == GTORCH_KIND_INT)
    {
      /* an index or a class: valid for every dimension of size two or more */
      low = 0;
      high = 1;
    }
  for (i = 0; i < impl->numel; i++)
    {
      gdouble value = g_rand_double_range (rand, low, high);

      if (kind == GTORCH_KIND_INT)
        value = round (value);
      if (!gtorch_dtype_is_signed (dtype))
        value = fabs (value);
      if (kind == GTORCH_KIND_BOOL)
        value = g_rand_boolean (rand);
      element_set (impl, i,
                   value
                       + (kind == GTORCH_KIND_COMPLEX ? g_rand_double_range (rand, low, high) * I
                                                      : 0));
    }
  if (spec->is_positive)
    input_make_positive (impl);
  return impl;
}

GTorchImpl *
input_copy_laid (const GTorchImpl *impl, guint dtype, Layout layout)
{
  GTorchImpl *copy;
  gint64 i;

  if (impl == NULL)
    return NULL;
  copy = shaped (dtype, layout, impl->shape, impl->n_dims);
  for (i = 0; i < impl->numel; i++)
    element_set (copy, i, element_get (impl, i));
  return copy;
}

GTorchImpl *
input_copy (const GTorchImpl *impl, guint dtype)
{
  return input_copy_laid (impl, dtype, LAYOUT_CONTIGUOUS);
}

gboolean
is_lacking (const GError *error)
{
  if (test_device () == gtorch_device_cpu ()
      || !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
    return FALSE;
  g_test_skip (error->message);
  return TRUE;
}

gdouble
dtype_tolerance (guint dtype)
{
  gdouble eps = gtorch_dtype_infos[gtorch_dtype_infos[dtype].real].eps;

  /* the reference of float64 is float64 itself, computed in another order */
  return eps * (eps < 1e-10 ? 128 : 32);
}

gdouble
device_error (const GTorchOpClass *op)
{
  const gboolean is_limited = g_str_has_prefix (op->name, "special_bessel_");

  return is_limited && test_device ()->type == GTORCH_DEVICE_TYPE_CUDA ? 5e-12 : 0;
}

/* The tolerance is relative to the scale. */
static gboolean
same (gdouble a, gdouble b, gdouble tolerance, gdouble scale)
{
  if (isnan (a) || isnan (b))
    return isnan (a) && isnan (b);
  if (isinf (a) || isinf (b))
    return a == b;
  return fabs (a - b) <= tolerance * (1 + scale);
}

gchar *
difference (const GTorchImpl *impl, const GTorchImpl *expected, gdouble tolerance)
{
  const guint kind = gtorch_dtype_kind (impl->dtype);
  const gdouble max = gtorch_dtype_infos[gtorch_dtype_infos[impl->dtype].real].max;
  gdouble scale;
  gint64 i;

  if (!gtorch_impl_same_shape (impl, expected))
    return g_strdup_printf ("shape %s, expected %s", gtorch_impl_shape_str (impl),
                            gtorch_impl_shape_str (expected));
  if (kind < GTORCH_KIND_FLOAT)
    tolerance = 0;
  else /* for integers */
    tolerance = MAX (tolerance, dtype_tolerance (impl->dtype));
  for (i = 0; i < impl->numel; i++)
    {
      Number a = element_get (impl, i), b = element_get (expected, i);

      if (tolerance == 0) /* small integers wrap around */
        {
          Number wrapped;
          char small[16];

          gtorch_cpu_cast (impl->dtype, expected->dtype) (small, 16, element (expected, i), 16, 1);
          gtorch_cpu_cast (GTORCH_DTYPE_COMPLEX128, impl->dtype) ((char *) &wrapped, 16, small, 16,
                                                                  1);
          b = wrapped;
        }

      if (kind == GTORCH_KIND_FLOAT && fabs (creal (b)) > max)
        b = copysign (INFINITY, creal (b));
      /* if out of range, infinities and NaN are in either part */
      if (kind == GTORCH_KIND_COMPLEX && cabs (b) > max && !(cabs (a) <= max))
        continue;
      /* a part of a complex number has the rounding error of the whole */
      scale = isfinite (cabs (b)) ? cabs (b) : 0;
      if (!same (creal (a), creal (b), tolerance, scale)
          || !same (cimag (a), cimag (b), tolerance, scale))
        return g_strdup_printf ("element %" G_GINT64_FORMAT ": %.17g%+.17gi, expected %.17g%+.17gi",
                                i, creal (a), cimag (a), creal (b), cimag (b));
    }
  return NULL;
}
