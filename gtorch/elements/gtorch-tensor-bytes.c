/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reading the values of tensors, and releasing their memory. */

#include "config.h"

#include "elements/gtorch-tensor-bytes.h"

#include <complex.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "stream/gtorch-capturing-private.h"
#include "base/gtorch-observer-private.h"
#include "device/gtorch-device-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "stream/gtorch-stream-private.h"
#include "elements/gtorch-shared-memory-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * gtorch_tensor_get_bytes:
 * @self: a tensor
 * @error: return location for an error
 *
 * Gets the elements, in C order and the machine's byte order.
 *
 * A contiguous tensor on the CPU is not copied: the result aliases its memory, sees later in-place
 * operations, and keeps that memory alive, even after [method@Tensor.release]. Other tensors are copied.
 * Waits until the elements are computed.
 *
 * Returns: (transfer full): the bytes, or %NULL with %GTORCH_ERROR_RELEASED or, while a graph captures,
 *   %GTORCH_ERROR_CAPTURE
 *
 * Since: 0.1
 */
GBytes *
gtorch_tensor_get_bytes (GTorchTensor *self, GError **error)
{
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GTorchImpl) flat = NULL;
  GTorchStorage *storage;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);

  host = gtorch_impl_to_host ("get_bytes", gtorch_tensor_unwrap (self), error);
  if (host == NULL)
    return NULL;
  if (host->is_contiguous)
    flat = g_steal_pointer (&host);
  else
    {
      flat = gtorch_impl_new (gtorch_device_cpu (), host->dtype, host->shape, host->n_dims, error);
      if (flat == NULL)
        {
          gtorch_error_name_op (error, "get_bytes");
          return NULL;
        }
      gtorch_host_copy (flat, host);
    }
  if (flat->numel == 0)
    return g_bytes_new (NULL, 0);
  storage = gtorch_shared_memory_hold_address (flat->storage);
  return g_bytes_new_with_free_func (gtorch_impl_data (flat), gtorch_impl_n_bytes (flat),
                                     (GDestroyNotify) gtorch_shared_memory_drop_address, storage);
}

/* Changes the units of the layout from elements of @from bytes to those of @to. */
static gboolean
measure_anew (const GTorchImpl *self, gsize from, gsize to, gint64 *shape, gint64 *strides,
              gint64 *offset, GError **error)
{
  const gint64 grow = from / to, shrink = to / from;
  guint i, last = self->n_dims - 1;
  gboolean fits = shrink <= 1 || self->offset % shrink == 0;

  *offset = shrink > 1 ? self->offset / shrink : self->offset * MAX (grow, 1);
  for (i = 0; i < self->n_dims; i++)
    {
      shape[i] = self->shape[i];
      strides[i] = shrink > 1 ? self->strides[i] / shrink : self->strides[i] * MAX (grow, 1);
      fits = fits && (shrink <= 1 || i == last || self->strides[i] % shrink == 0);
    }
  if (from != to)
    {
      fits = fits && self->n_dims > 0 && (self->strides[last] == 1 || self->shape[last] == 1);
      if (fits && shrink > 1)
        fits = self->shape[last] % shrink == 0;
    }
  if (fits && from != to)
    {
      shape[last] = shrink > 1 ? shape[last] / shrink : shape[last] * grow;
      strides[last] = 1;
    }
  if (!fits)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("view_dtype: shape %s of %s in memory cannot be divided into elements of %u "
                    "bytes: those of the last dimension must lie side by side, and fill them"),
                 gtorch_impl_shape_str (self), gtorch_dtype_get_name (self->dtype), (guint) to);
  return fits;
}

/**
 * gtorch_tensor_view_dtype:
 * @self: a tensor
 * @dtype: a dtype
 * @error: return location for an error
 *
 * Shows the memory of @self as elements of @dtype: the bits stay, and the numbers are others.
 *
 * Where elements are larger or smaller, the last dimension has fewer or more of them, which must lie side by
 * side in
 * memory. No gradient flows to the result. The memory is shared.
 *
 * ```c
 * g_autoptr (GTorchTensor) bits = gtorch_tensor_view_dtype (x, GTORCH_DTYPE_INT32, &error);
 * ```
 *
 * Returns: (transfer full): the tensor; %NULL with %GTORCH_ERROR_SHAPE if the elements do not fit, with
 *   %GTORCH_ERROR_INVALID if the result would be of bools and @self is not, %GTORCH_ERROR_DTYPE for
 *   %GTORCH_DTYPE_NONE, or %GTORCH_ERROR_RELEASED
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_view_dtype (GTorchTensor *self, GTorchDType dtype, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS], offset;
  GTorchImpl *impl, *view;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("view_dtype: the tensor of shape %s was released"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (gtorch_dtype_get_size (dtype) == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("view_dtype: %d is no dtype"),
                   (gint) dtype);
      return NULL;
    }
  if (dtype == GTORCH_DTYPE_BOOL && impl->dtype != GTORCH_DTYPE_BOOL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("view_dtype: memory of %s may hold what is neither true nor false: compare "
                      "with 0"),
                   gtorch_dtype_get_name (impl->dtype));
      return NULL;
    }
  if (!measure_anew (impl, gtorch_dtype_get_size (impl->dtype), gtorch_dtype_get_size (dtype),
                     shape, strides, &offset, error))
    return NULL;
  view = gtorch_impl_new_strided (impl->storage, dtype, offset, shape, strides, impl->n_dims);
  view->inference = impl->inference;
  return gtorch_tensor_wrap (view);
}

/* Returns the integers that numbers are, in their own memory, which it takes. */
static gint64 *
as_integers (gdouble *numbers, gsize n, GError **error)
{
  G_STATIC_ASSERT (sizeof (gint64) == sizeof (gdouble));

  for (gsize i = 0; i < n; i++)
    {
      const gdouble number = numbers[i];
      const gint64 whole = number >= -0x1p63 && number < 0x1p63 ? (gint64) number : 0;

      if (!(number >= -0x1p63 && number < 0x1p63))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("to_ints: element %zu is %g, which is not an integer"), i, number);
          g_free (numbers);
          return NULL;
        }
      memcpy (&numbers[i], &whole, sizeof (whole));
    }
  return (gint64 *) (gpointer) numbers;
}

static gpointer
read_all (const gchar *op, GTorchTensor *self, guint dtype, gsize *n_values, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host (op, gtorch_tensor_unwrap (self), error);
  gpointer values;
  guint n_parts;

  if (host == NULL)
    return NULL;
  if (dtype == GTORCH_DTYPE_FLOAT64 && gtorch_dtype_kind (host->dtype) == GTORCH_KIND_COMPLEX)
    dtype = GTORCH_DTYPE_COMPLEX128;
  n_parts = dtype == GTORCH_DTYPE_COMPLEX128 ? 2 : 1;
  /* an expanded tensor may be larger than any memory */
  values = gtorch_scratch_new (host->numel, gtorch_dtype_size (dtype), error);
  if (values == NULL)
    {
      gtorch_error_set_op (error, op);
      return NULL;
    }
  gtorch_impl_read (host, dtype, values);
  *n_values = host->numel * n_parts;
  return values;
}

/**
 * gtorch_tensor_to_doubles:
 * @self: a tensor
 * @n_values: (out): the number of values
 * @error: return location for an error
 *
 * Gets the elements in C order, converted to double. A complex tensor has twice as many values:
 * alternating real and imaginary parts.
 *
 * Returns: (array length=n_values) (transfer full): the values, or %NULL with %GTORCH_ERROR_RELEASED,
 *   %GTORCH_ERROR_CAPTURE or %GTORCH_ERROR_OUT_OF_MEMORY; free with g_free()
 *
 * Since: 0.1
 */
gdouble *
gtorch_tensor_to_doubles (GTorchTensor *self, gsize *n_values, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  return read_all ("to_doubles", self, GTORCH_DTYPE_FLOAT64, n_values, error);
}

/**
 * gtorch_tensor_to_ints:
 * @self: a tensor
 * @n_values: (out): the number of values
 * @error: return location for an error
 *
 * Gets the elements in C order as integers; fractions are truncated, as by [method@Tensor.item_int]. bool
 * gives 0 and 1.
 *
 * Returns: (array length=n_values) (transfer full): the values, or %NULL with %GTORCH_ERROR_RELEASED,
 *   %GTORCH_ERROR_CAPTURE, %GTORCH_ERROR_OUT_OF_MEMORY, %GTORCH_ERROR_DTYPE if the elements are complex, or
 *   %GTORCH_ERROR_INVALID if one is NaN or exceeds 64 bits; free with g_free()
 *
 * Since: 0.1
 */
gint64 *
gtorch_tensor_to_ints (GTorchTensor *self, gsize *n_values, GError **error)
{
  const GTorchImpl *impl;
  gdouble *numbers;
  gint64 *values;
  gsize n;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  impl = gtorch_tensor_unwrap (self);
  if (gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("to_ints: elements of %s are not one number but two: use to_doubles"),
                   gtorch_dtype_get_name (impl->dtype));
      return NULL;
    }
  if (gtorch_dtype_kind (impl->dtype) != GTORCH_KIND_FLOAT)
    return read_all ("to_ints", self, GTORCH_DTYPE_INT64, n_values, error);
  numbers = read_all ("to_ints", self, GTORCH_DTYPE_FLOAT64, &n, error);
  values = numbers != NULL ? as_integers (numbers, n, error) : NULL;
  if (values != NULL)
    *n_values = n;
  return values;
}

/* --- one element --- */

/* Reads the element without a host copy of the tensor. */
static gboolean
reads_itself (const GTorchImpl *impl)
{
  return impl->storage != NULL && GTORCH_DEVICE_GET_CLASS (impl->storage->device)->read != NULL
         && !gtorch_captures_exist () && !gtorch_is_observed ();
}

static gboolean
read_there (GTorchImpl *impl, gpointer to, GError **error)
{
  GTorchDevice *device = impl->storage->device;

  if (gtorch_auto_sync (device, error)
      && GTORCH_DEVICE_GET_CLASS (device)->read (device, impl, to, error))
    return TRUE;
  gtorch_error_set_op (error, "item");
  return FALSE;
}

static gboolean
read_item (GTorchTensor *self, guint dtype, gpointer value, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (self);
  g_autoptr (GTorchImpl) host = NULL;
  GTORCH_HOLD (impl);
  char element[16] __attribute__ ((aligned (16)));
  gconstpointer from = element;

  if (G_UNLIKELY (impl->numel != 1))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("item: a tensor of shape %s has %" PRId64 " elements, not one"),
                   gtorch_impl_shape_str (impl), impl->numel);
      return FALSE;
    }
  if (reads_itself (impl))
    {
      if (!gtorch_impl_wait ("item", impl, error) || !read_there (impl, element, error))
        return FALSE;
    }
  else if (gtorch_device_is_host (gtorch_impl_device (impl)))
    {
      if (!gtorch_impl_wait ("item", impl, error))
        return FALSE;
      from = gtorch_impl_data (impl);
    }
  else
    {
      host = gtorch_impl_to_host ("item", impl, error);
      if (host == NULL)
        return FALSE;
      from = gtorch_impl_data (host);
    }
  if (dtype != GTORCH_DTYPE_COMPLEX128 && dtype != GTORCH_DTYPE_BOOL
      && gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("item: an element of %s is not one number but two: use item_complex"),
                   gtorch_dtype_get_name (impl->dtype));
      return FALSE;
    }
  gtorch_host_cast (dtype, impl->dtype) (value, gtorch_dtype_size (dtype), from, 0, 1);
  return TRUE;
}

/**
 * gtorch_tensor_item_double:
 * @self: a tensor with one element
 * @error: return location for an error
 *
 * Gets the only element as a number. Waits until it is computed.
 *
 * Returns: the element; 0 with @error set to %GTORCH_ERROR_SHAPE if there is not exactly one, or to
 *   %GTORCH_ERROR_DTYPE if it is complex
 *
 * Since: 0.1
 */
gdouble
gtorch_tensor_item_double (GTorchTensor *self, GError **error)
{
  gdouble value = 0;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  return read_item (self, GTORCH_DTYPE_FLOAT64, &value, error) ? value : 0;
}

/**
 * gtorch_tensor_item_int:
 * @self: a tensor with one element
 * @error: return location for an error
 *
 * Gets the only element as an integer; a fraction is truncated. Waits until it is computed.
 *
 * Returns: the element; 0 with @error set to %GTORCH_ERROR_SHAPE if there is not exactly one, to
 *   %GTORCH_ERROR_DTYPE if it is complex, or to %GTORCH_ERROR_INVALID if it exceeds 64 bits
 *
 * Since: 0.1
 */
gint64
gtorch_tensor_item_int (GTorchTensor *self, GError **error)
{
  gint64 value = 0;
  gdouble real;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);

  if (gtorch_dtype_kind (gtorch_tensor_unwrap (self)->dtype) != GTORCH_KIND_FLOAT)
    return read_item (self, GTORCH_DTYPE_INT64, &value, error) ? value : 0;
  if (!read_item (self, GTORCH_DTYPE_FLOAT64, &real, error))
    return 0;
  if (!(real >= -0x1p63 && real < 0x1p63))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("item: %g is not an integer"),
                   real);
      return 0;
    }
  return real;
}

/**
 * gtorch_tensor_item_bool:
 * @self: a tensor with one element
 * @value: (out): whether the element is not 0
 * @error: return location for an error
 *
 * Tells whether the only element is true, that is, not 0. Waits until it is computed.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE if there is not exactly one element
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_item_bool (GTorchTensor *self, gboolean *value, GError **error)
{
  guint8 byte;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (value != NULL, FALSE);

  if (!read_item (self, GTORCH_DTYPE_BOOL, &byte, error))
    return FALSE;
  *value = byte;
  return TRUE;
}

/**
 * gtorch_tensor_item_complex:
 * @self: a tensor with one element
 * @real: (out): the real part
 * @imaginary: (out): the imaginary part, 0 for real dtypes
 * @error: return location for an error
 *
 * Gets the only element as a complex number. Waits until it is computed.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_SHAPE if there is not exactly one element
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_item_complex (GTorchTensor *self, gdouble *real, gdouble *imaginary, GError **error)
{
  gdouble parts[2];

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (real != NULL && imaginary != NULL, FALSE);

  if (!read_item (self, GTORCH_DTYPE_COMPLEX128, parts, error))
    return FALSE;
  *real = parts[0];
  *imaginary = parts[1];
  return TRUE;
}

/* --- memory --- */

/**
 * gtorch_tensor_get_data_ptr:
 * @self: a tensor
 *
 * Gets the address of the first element, for interfaces that take addresses as numbers.
 *
 * It is an address of the device, does not wait for pending computations, and is valid as long as the
 * tensor and until [method@Tensor.release]; [method@Tensor.get_bytes] has none of these traps.
 *
 * Returns: the address; 0 if there is no element or the memory was released
 *
 * Since: 0.1
 */
gsize
gtorch_tensor_get_data_ptr (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  impl = gtorch_tensor_unwrap (self);
  return impl->storage != NULL && impl->numel > 0 ? (gsize) gtorch_impl_data (impl) : 0;
}

/**
 * gtorch_tensor_is_read_only:
 * @self: a tensor
 *
 * Tells whether the tensor's memory is read-only: that of a [struct@GLib.Bytes] or of a library that
 * shared it so.
 *
 * Returns: %TRUE if in-place operations fail
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_read_only (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  return impl->storage != NULL && gtorch_storage_is_read_only (impl->storage);
}

/**
 * gtorch_tensor_release:
 * @self: a tensor
 *
 * Releases the memory now, without waiting for the last reference or a garbage collector.
 *
 * The memory is freed at once unless something else uses it: a view, a pending operation, one that has
 * saved it for its gradient, or a [struct@GLib.Bytes] from [method@Tensor.get_bytes]. The tensor keeps
 * its shape and dtype; operations on it fail with %GTORCH_ERROR_RELEASED. The second call has no effect.
 *
 * Since: 0.1
 */
void
gtorch_tensor_release (GTorchTensor *self)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  gtorch_impl_release (gtorch_tensor_unwrap (self));
}
