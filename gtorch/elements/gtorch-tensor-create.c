/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors from values of the program. */

#include "config.h"

#include "elements/gtorch-tensor-create.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-tensor-private.h"

gboolean
gtorch_tensor_check_target (const gchar *op, gint64 dtype, const gint64 *shape, gsize n_dims,
                            gint64 *numel, GError **error)
{
  gsize i;

  if (dtype <= GTORCH_DTYPE_NONE || dtype >= GTORCH_N_DTYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: %d is not a dtype"), op,
                   (gint) dtype);
      return FALSE;
    }
  if (n_dims > 0 && shape == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE, _ ("%s: no shape was given"), op);
      return FALSE;
    }
  if (!gtorch_shape_check (op, shape, n_dims, dtype, error))
    return FALSE;
  for (*numel = 1, i = 0; i < n_dims; i++)
    *numel *= shape[i];
  return TRUE;
}

static gboolean
check_count (const gchar *op, gsize n_values, gint64 numel, guint dtype, const gint64 *shape,
             gsize n_dims, GError **error)
{
  guint n_parts = gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX ? 2 : 1;

  if (n_values % n_parts == 0 && n_values / n_parts == (guint64) numel)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               n_parts == 2 ? _ ("%s: %zu values do not fill shape %s, which takes %" PRId64
                                 " real and imaginary parts")
                            : _ ("%s: %zu values do not fill shape %s, which takes %" PRId64),
               op, n_values, gtorch_shape_str (shape, n_dims), numel);
  return FALSE;
}

static gboolean
check_range (const gchar *op, guint source, gconstpointer values, gsize n_values, guint dtype,
             GError **error)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];
  gsize i;

  if (info->kind != GTORCH_KIND_INT || (source == dtype))
    return TRUE;
  for (i = 0; i < n_values; i++)
    {
      gdouble value;

      if (source == GTORCH_DTYPE_INT64)
        {
          gint64 whole = ((const gint64 *) values)[i];

          if (whole >= (gint64) info->min && whole <= (gint64) info->max)
            continue;
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: value %" PRId64 " at %zu does not fit into %s"), op, whole, i,
                       info->name);
          return FALSE;
        }
      value = source == GTORCH_DTYPE_FLOAT32 ? ((const gfloat *) values)[i]
                                             : ((const gdouble *) values)[i];
      /* 2^63 itself is the smallest double that exceeds int64 */
      if (value > info->min - 1
          && (dtype == GTORCH_DTYPE_INT64 ? value < info->max : value < info->max + 1))
        continue;
      if (dtype == GTORCH_DTYPE_INT64 && value == info->min)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: value %g at %zu does not fit into %s"), op, value, i, info->name);
      return FALSE;
    }
  return TRUE;
}

GTorchImpl *
gtorch_impl_move (GTorchImpl *impl, GTorchDevice *device, GError **error)
{
  g_autoptr (GTorchImpl) here = impl;
  g_autoptr (GTorchImpl) there = NULL;

  if (impl == NULL || device == gtorch_impl_device (impl))
    return g_steal_pointer (&here);
  there = gtorch_impl_new (device, impl->dtype, impl->shape, impl->n_dims, error);
  if (there == NULL)
    gtorch_error_name_op (error, "to_device");
  if (there == NULL || !gtorch_op_copy_inplace (there, impl, FALSE, error))
    return NULL;
  return g_steal_pointer (&there);
}

static GTorchTensor *
new_from_values (const gchar *op, guint source, gconstpointer values, gsize n_values,
                 const gint64 *shape, gsize n_dims, gint64 dtype, GTorchDevice *device,
                 GError **error)
{
  g_autoptr (GTorchImpl) impl = NULL;
  gint64 numel;

  if (!gtorch_tensor_check_target (op, dtype, shape, n_dims, &numel, error)
      || !check_count (op, n_values, numel, dtype, shape, n_dims, error)
      || !check_range (op, source, values, n_values, dtype, error))
    return NULL;
  impl = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, error);
  if (impl == NULL)
    {
      gtorch_error_name_op (error, op);
      return NULL;
    }
  if (numel > 0)
    {
      guint parts = gtorch_dtype_infos[dtype].real;

      gtorch_host_cast (parts, source) (gtorch_impl_data (impl), gtorch_dtype_size (parts), values,
                                        gtorch_dtype_size (source), n_values);
    }
  return gtorch_tensor_wrap (
      gtorch_impl_move (g_steal_pointer (&impl), gtorch_device_or_default (device), error));
}

/**
 * gtorch_tensor_new_from_doubles: (constructor)
 * @values: (array length=n_values): the elements in C order
 * @n_values: the length of @values
 * @shape: (array length=n_dims) (nullable): the shape of the tensor
 * @n_dims: the number of dimensions; 0 for a single number
 * @dtype: the dtype, %GTORCH_DTYPE_NONE for the default one
 * @device: (nullable): the device, %NULL for the default one
 * @error: return location for an error
 *
 * Creates a tensor from numbers, converted to @dtype.
 *
 * A complex dtype takes twice as many numbers: alternating real and imaginary parts. For integers a
 * fraction is truncated.
 *
 * ```c
 * const gdouble values[] = { 1, 2, 3, 4, 5, 6 };
 * g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (
 *     values, 6, GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error);
 * ```
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_SHAPE if the number of values does
 *   not match @shape and %GTORCH_ERROR_INVALID if an integer dtype cannot represent a value
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_new_from_doubles (const gdouble *values, gsize n_values, const gint64 *shape,
                                gsize n_dims, GTorchDType dtype, GTorchDevice *device,
                                GError **error)
{
  g_return_val_if_fail (values != NULL || n_values == 0, NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  return new_from_values ("from_doubles", GTORCH_DTYPE_FLOAT64, values, n_values, shape, n_dims,
                          dtype != GTORCH_DTYPE_NONE ? dtype : gtorch_get_default_dtype (), device,
                          error);
}

/**
 * gtorch_tensor_new_from_floats: (constructor)
 * @values: (array length=n_values): the elements in C order
 * @n_values: the length of @values
 * @shape: (array length=n_dims) (nullable): the shape of the tensor
 * @n_dims: the number of dimensions; 0 for a single number
 * @dtype: the dtype, %GTORCH_DTYPE_NONE for the default one
 * @device: (nullable): the device, %NULL for the default one
 * @error: return location for an error
 *
 * Creates a tensor from single-precision numbers, converted to @dtype. The rules are those of
 * [ctor@Tensor.new_from_doubles].
 *
 * Returns: (transfer full): the tensor, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_new_from_floats (const gfloat *values, gsize n_values, const gint64 *shape,
                               gsize n_dims, GTorchDType dtype, GTorchDevice *device,
                               GError **error)
{
  g_return_val_if_fail (values != NULL || n_values == 0, NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  return new_from_values ("from_floats", GTORCH_DTYPE_FLOAT32, values, n_values, shape, n_dims,
                          dtype != GTORCH_DTYPE_NONE ? dtype : gtorch_get_default_dtype (), device,
                          error);
}

/**
 * gtorch_tensor_new_from_ints: (constructor)
 * @values: (array length=n_values): the elements in C order
 * @n_values: the length of @values
 * @shape: (array length=n_dims) (nullable): the shape of the tensor
 * @n_dims: the number of dimensions; 0 for a single number
 * @dtype: the dtype, %GTORCH_DTYPE_NONE for int64
 * @device: (nullable): the device, %NULL for the default one
 * @error: return location for an error
 *
 * Creates a tensor from integers, converted to @dtype. The rules are those of
 * [ctor@Tensor.new_from_doubles].
 *
 * Returns: (transfer full): the tensor, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_new_from_ints (const gint64 *values, gsize n_values, const gint64 *shape,
                             gsize n_dims, GTorchDType dtype, GTorchDevice *device, GError **error)
{
  g_return_val_if_fail (values != NULL || n_values == 0, NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  return new_from_values ("from_ints", GTORCH_DTYPE_INT64, values, n_values, shape, n_dims,
                          dtype != GTORCH_DTYPE_NONE ? dtype : GTORCH_DTYPE_INT64, device, error);
}

/**
 * gtorch_tensor_new_from_bools: (constructor)
 * @values: (array length=n_values): the elements in C order
 * @n_values: the length of @values
 * @shape: (array length=n_dims) (nullable): the shape of the tensor
 * @n_dims: the number of dimensions; 0 for a single number
 * @device: (nullable): the device, %NULL for the default one
 * @error: return location for an error
 *
 * Creates a tensor of dtype bool.
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_SHAPE if the number of values does
 *   not match @shape
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_new_from_bools (const gboolean *values, gsize n_values, const gint64 *shape,
                              gsize n_dims, GTorchDevice *device, GError **error)
{
  g_return_val_if_fail (values != NULL || n_values == 0, NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  return new_from_values ("from_bools", GTORCH_DTYPE_INT32, values, n_values, shape, n_dims,
                          GTORCH_DTYPE_BOOL, device, error);
}

/* --- bytes --- */

static void
free_bytes_storage (GTorchStorage *storage)
{
  g_bytes_unref (storage->free_data);
}

GTorchImpl *
gtorch_impl_new_from_bytes (const gchar *op, GBytes *bytes, gsize start, gsize length,
                            gboolean is_read_only, guint dtype, const gint64 *shape, guint n_dims,
                            GError **error)
{
  const guint8 *data = (const guint8 *) g_bytes_get_data (bytes, NULL) + start;
  GTorchStorage *storage;
  GTorchImpl *impl;
  gsize i;

  if (dtype == GTORCH_DTYPE_BOOL)
    for (i = 0; i < length; i++)
      if (data[i] > 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("%s: byte %u at %zu is not a bool, which is 0 or 1"), op, data[i],
                       start + i);
          return NULL;
        }
  if (length == 0 || (guintptr) data % gtorch_dtype_infos[dtype].alignment != 0)
    {
      impl = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, error);
      if (impl == NULL)
        gtorch_error_name_op (error, op);
      else if (length > 0)
        memcpy (gtorch_impl_data (impl), data, length);
      return impl;
    }
  storage = gtorch_storage_new_foreign (gtorch_device_cpu (), (gpointer) data, length,
                                        free_bytes_storage, g_bytes_ref (bytes));
  if (is_read_only)
    gtorch_storage_set_read_only (storage);
  impl = gtorch_impl_new_strided (storage, dtype, 0, shape, NULL, n_dims);
  gtorch_storage_unref (storage);
  return impl;
}

/**
 * gtorch_tensor_new_from_bytes: (constructor)
 * @bytes: the elements in C order and in the machine's byte order
 * @dtype: the dtype of the elements
 * @shape: (array length=n_dims) (nullable): the shape of the tensor
 * @n_dims: the number of dimensions; 0 for a single number
 * @error: return location for an error
 *
 * Creates a tensor on the CPU that aliases the memory of @bytes, without a copy, and keeps it alive.
 *
 * As the memory of a [struct@GLib.Bytes] must not change, the tensor is read-only: writing to it in place
 * fails with %GTORCH_ERROR_INVALID. [method@Tensor.clone] returns a writable copy. Memory that is
 * misaligned for @dtype is copied.
 *
 * ```c
 * g_autoptr (GBytes) bytes = g_file_load_bytes (file, NULL, NULL, &error);
 * g_autoptr (GTorchTensor) images = gtorch_tensor_new_from_bytes (
 *     bytes, GTORCH_DTYPE_UINT8, GTORCH_SHAPE (1797, 8, 8), &error);
 * ```
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_SHAPE if the size of @bytes is not
 *   that of @shape, %GTORCH_ERROR_DTYPE if there is no such dtype, and %GTORCH_ERROR_FORMAT if a bool is
 *   neither 0 nor 1
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_new_from_bytes (GBytes *bytes, GTorchDType dtype, const gint64 *shape, gsize n_dims,
                              GError **error)
{
  gint64 numel;

  g_return_val_if_fail (bytes != NULL, NULL);

  if (!gtorch_tensor_check_target ("from_bytes", dtype, shape, n_dims, &numel, error))
    return NULL;
  if ((gsize) numel * gtorch_dtype_size (dtype) != g_bytes_get_size (bytes))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("from_bytes: %zu bytes are not shape %s of %s, which takes %zu"),
                   g_bytes_get_size (bytes), gtorch_shape_str (shape, n_dims),
                   gtorch_dtype_get_name (dtype), (gsize) numel * gtorch_dtype_size (dtype));
      return NULL;
    }
  return gtorch_tensor_wrap (gtorch_impl_new_from_bytes ("from_bytes", bytes, 0,
                                                         g_bytes_get_size (bytes), TRUE, dtype,
                                                         shape, n_dims, error));
}
