/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The numbers and the histogram of a tensor. It is read in parts, by the host, so that neither the device nor
 * the host need memory for more than a part; tensors that are not contiguous are copied whole. The program
 * may be writing meanwhile: a value that is out of the range of the first pass counts for its nearest bin. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "autograd/gtorch-autograd-private.h"
#include "device/gtorch-scratch-private.h"
#include "export/gtorch-exporter-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-hold-private.h"

#define OP        "exporter"
#define PART_SIZE (1 << 20) /* elements */

typedef struct
{
  guint64 n, non_finite;
  gdouble low, high;
  long double sum, squares; /* whose exponents are larger than those of doubles */
  gdouble mean;             /* of the first pass, about which the second one sums */
  gdouble deviations;       /* in squares of units */
  guint64 *counts;          /* NULL in the first pass */
  guint n_bins;
} Numbers;

/* A power of two by which numbers are multiplied: sums of their squares are then neither infinite nor 0. */
static gdouble
find_unit (gdouble low, gdouble high)
{
  const gdouble largest = MAX (fabs (low), fabs (high));

  return largest > 1e150 ? 0x1p-600 : largest < 1e-150 ? 0x1p600 : 1;
}

static void
measure (Numbers *self, const gdouble *values, gsize n)
{
  gdouble low = INFINITY, high = -INFINITY, unit, sum = 0, squares = 0;
  gsize i;

  self->n += n;
  for (i = 0; i < n; i++)
    {
      gdouble x = values[i];

      if (!isfinite (x))
        {
          self->non_finite++;
          continue;
        }
      low = MIN (low, x);
      high = MAX (high, x);
    }
  if (low > high)
    return;
  self->low = MIN (self->low, low);
  self->high = MAX (self->high, high);
  unit = find_unit (low, high);
  for (i = 0; i < n; i++)
    if (isfinite (values[i]))
      {
        const gdouble x = values[i] * unit;

        sum += x;
        squares += x * x;
      }
  self->sum += (long double) sum / unit;
  self->squares += (long double) squares / unit / unit;
}

static void
count (Numbers *self, const gdouble *values, gsize n)
{
  const gdouble unit = find_unit (self->low, self->high);
  const gdouble low = self->low * unit, mean = self->mean * unit;
  const gdouble width = self->high * unit - low;
  gsize i;

  for (i = 0; i < n; i++)
    {
      gdouble x = values[i] * unit, place;

      if (!isfinite (values[i]))
        continue;
      self->deviations += (x - mean) * (x - mean);
      place = width > 0 ? (x - low) / width * self->n_bins : 0;
      self->counts[(guint) CLAMP (place, 0, self->n_bins - 1)]++;
    }
}

typedef void (*PartFunc) (Numbers *self, const gdouble *values, gsize n);

/* Calls func for the elements in parts. The buffer has room for PART_SIZE elements. */
static gboolean
read_parts (GTorchImpl *impl, gdouble *buffer, PartFunc func, Numbers *numbers,
            const gint *is_stopped, GError **error)
{
  gint64 at;

  for (at = 0; at < impl->numel; at += PART_SIZE)
    {
      const gint64 length = MIN (impl->numel - at, PART_SIZE), stride = 1;
      g_autoptr (GTorchImpl) part =
          gtorch_impl_new_view (impl, impl->offset + at, &length, &stride, 1);
      g_autoptr (GTorchImpl) host = NULL;

      if (g_atomic_int_get (is_stopped))
        {
          g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_FAILED, "%s",
                       _ ("exporter: it was stopped"));
          return FALSE;
        }
      host = gtorch_impl_to_host (OP, part, error);
      if (host == NULL)
        return FALSE;
      gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, buffer);
      func (numbers, buffer, (gsize) length);
    }
  return TRUE;
}

static void
add_double (GVariantBuilder *builder, const gchar *key, gdouble value)
{
  g_variant_builder_add (builder, "{sv}", key, g_variant_new_double (value));
}

static void
build (GVariantBuilder *builder, const Numbers *numbers)
{
  const guint64 n_finite = numbers->n - numbers->non_finite;

  g_variant_builder_add (builder, "{sv}", "n-values", g_variant_new_uint64 (numbers->n));
  g_variant_builder_add (builder, "{sv}", "non-finite", g_variant_new_uint64 (numbers->non_finite));
  if (n_finite == 0)
    return;
  add_double (builder, "minimum", numbers->low);
  add_double (builder, "maximum", numbers->high);
  add_double (builder, "mean", numbers->mean);
  add_double (builder, "standard-deviation",
              sqrt (numbers->deviations / n_finite) / find_unit (numbers->low, numbers->high));
  add_double (builder, "norm", (gdouble) sqrtl (numbers->squares));
  g_variant_builder_add (builder, "{sv}", "counts",
                         g_variant_new_fixed_array (G_VARIANT_TYPE_UINT64, numbers->counts,
                                                    numbers->n_bins, sizeof (guint64)));
}

static gboolean
compute (GTorchImpl *impl, guint n_bins, const gint *is_stopped, GVariantBuilder *builder,
         GError **error)
{
  g_autofree gdouble *buffer = NULL;
  g_autofree guint64 *counts = g_new0 (guint64, n_bins);
  g_autoptr (GTorchImpl) whole = NULL;
  Numbers numbers = { .low = INFINITY, .high = -INFINITY, .counts = counts, .n_bins = n_bins };

  if (gtorch_dtype_is_complex (impl->dtype))
    {
      g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_NOT_SUPPORTED,
                   _ ("exporter: complex numbers have no histogram"));
      return FALSE;
    }
  buffer = gtorch_scratch_new (MIN (MAX (impl->numel, 1), PART_SIZE), sizeof (gdouble), error);
  if (buffer == NULL)
    return FALSE;
  whole = impl->is_contiguous ? gtorch_impl_ref (impl) : gtorch_impl_to_host (OP, impl, error);
  if (whole != NULL && !whole->is_contiguous)
    {
      GTorchImpl *copy =
          gtorch_impl_new (gtorch_device_cpu (), whole->dtype, whole->shape, whole->n_dims, error);

      if (copy != NULL)
        gtorch_host_copy (copy, whole);
      gtorch_impl_unref (whole);
      whole = copy;
    }
  if (whole == NULL || !read_parts (whole, buffer, measure, &numbers, is_stopped, error))
    return FALSE;
  numbers.mean = numbers.n > numbers.non_finite
                     ? (gdouble) (numbers.sum / (long double) (numbers.n - numbers.non_finite))
                     : 0;
  if (!read_parts (whole, buffer, count, &numbers, is_stopped, error))
    return FALSE;
  build (builder, &numbers);
  return TRUE;
}

/* Returns a tensor of the same elements, which nothing that the program does to impl changes; NULL if it has
 * none. */
static GTorchImpl *
take_elements (GTorchImpl *impl)
{
  GTORCH_HOLD (impl);

  return gtorch_impl_is_released (impl) ? NULL : gtorch_impl_alias (impl);
}

static GTorchImpl *
take_grad (GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) grad = NULL;
  GTorchAutograd *autograd = g_atomic_pointer_get (&impl->autograd);

  if (autograd == NULL)
    return NULL;
  g_mutex_lock (&autograd->lock);
  if (autograd->grad != NULL)
    grad = gtorch_impl_ref (autograd->grad);
  g_mutex_unlock (&autograd->lock);
  return grad != NULL ? take_elements (grad) : NULL;
}

GVariant *
gtorch_export_compute_statistics (GTorchImpl *impl, guint n_bins, const gint *is_stopped,
                                  GError **error)
{
  g_autoptr (GTorchImpl) elements = take_elements (impl);
  g_autoptr (GTorchImpl) grad = take_grad (impl);
  g_auto (GVariantBuilder) builder = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  g_auto (GVariantBuilder) of_grad = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);

  if (elements == NULL)
    {
      g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
                   _ ("exporter: the parameter has no elements, it was released or has no shape "
                      "yet"));
      return NULL;
    }
  if (!compute (elements, n_bins, is_stopped, &builder, error)
      || (grad != NULL && !compute (grad, n_bins, is_stopped, &of_grad, error)))
    return NULL;
  if (grad != NULL)
    g_variant_builder_add (&builder, "{sv}", "gradient", g_variant_builder_end (&of_grad));
  return g_variant_builder_end (&builder);
}
