/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Changing the shape of a tensor that stays the same object. The elements stay where they are, except where
 * there are more than before. */

#include "config.h"

#include "elements/gtorch-tensor-geometry.h"

#include <glib/gi18n-lib.h>

#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-recorder-private.h"
#include "tensor/gtorch-tensor-private.h"

static gboolean
check (const gchar *who, GTorchImpl *impl, GError **error)
{
  if (!gtorch_impl_check_write (impl, who, error))
    return FALSE;
  if (!gtorch_impl_requires_grad (impl))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: a tensor of shape %s that requires grad keeps its shape: the form that is "
                  "not in "
                  "place is recorded"),
               who, gtorch_impl_shape_str (impl));
  return FALSE;
}

/* Takes ownership of changed, which is NULL after an error. */
static GTorchTensor *
put (const gchar *who, GTorchTensor *self, GTorchImpl *changed, GError **error)
{
  g_autoptr (GTorchImpl) owned = changed;
  GTorchImpl *impl = gtorch_tensor_unwrap (self);

  if (changed == NULL)
    return NULL;
  owned->inference = impl->inference; /* also where it gets new memory */
  if (gtorch_impls_set_data (&impl, &owned, 1))
    return g_object_ref (self);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: another call uses the tensor, or it was released"), who);
  return NULL;
}

/**
 * gtorch_tensor_unsqueeze_inplace:
 * @self: a tensor that does not require grad
 * @dim: where the dimension is inserted; negative ones count from the end
 * @error: return location for an error
 *
 * Does what [method@Tensor.unsqueeze] does, to the tensor itself. The elements stay where they are.
 *
 * ```c
 * g_autoptr (GTorchTensor) same = gtorch_tensor_unsqueeze_inplace (x, 0, &error);
 * ```
 *
 * Returns: (transfer full): @self; %NULL with %GTORCH_ERROR_INDEX if there is no such place, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if it requires grad
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_unsqueeze_inplace (GTorchTensor *self, gint64 dim, GError **error)
{
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (!check ("unsqueeze_", impl, error))
    return NULL;
  return put ("unsqueeze_", self, gtorch_op_unsqueeze (impl, dim, error), error);
}

/**
 * gtorch_tensor_squeeze_inplace:
 * @self: a tensor that does not require grad
 * @dim: (array length=n_dim): dimensions; negative ones count from the end
 * @n_dim: the length of @dim; 0: all
 * @error: return location for an error
 *
 * Does what [method@Tensor.squeeze] does, to the tensor itself. The elements stay where they are.
 *
 * Returns: (transfer full): @self; %NULL with %GTORCH_ERROR_INDEX if there is no such dimension, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if it requires grad
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_squeeze_inplace (GTorchTensor *self, const gint64 *dim, gsize n_dim, GError **error)
{
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (dim != NULL || n_dim == 0, NULL);
  impl = gtorch_tensor_unwrap (self);
  if (!check ("squeeze_", impl, error))
    return NULL;
  return put ("squeeze_", self, gtorch_op_squeeze (impl, dim, n_dim, error), error);
}

/**
 * gtorch_tensor_transpose_inplace:
 * @self: a tensor that does not require grad
 * @dim0: a dimension; negative ones count from the end
 * @dim1: another one
 * @error: return location for an error
 *
 * Does what [method@Tensor.transpose] does, to the tensor itself. The elements stay where they are.
 *
 * Returns: (transfer full): @self; %NULL with %GTORCH_ERROR_INDEX if there are no such dimensions, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if it requires grad
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_transpose_inplace (GTorchTensor *self, gint64 dim0, gint64 dim1, GError **error)
{
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  impl = gtorch_tensor_unwrap (self);
  if (!check ("transpose_", impl, error))
    return NULL;
  return put ("transpose_", self, gtorch_op_transpose (impl, dim0, dim1, error), error);
}

/* Returns the elements in the new shape: the first ones, or all and others of any value behind them. */
static GTorchImpl *
resized (GTorchImpl *impl, const gint64 *shape, gsize n_dims, gint64 numel, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  const gint64 whole = -1;
  g_autoptr (GTorchImpl) flat = gtorch_op_view (impl, &whole, 1, error);
  g_autoptr (GTorchImpl) made = NULL;
  g_autoptr (GTorchImpl) first = NULL;

  if (flat == NULL)
    return NULL;
  if (numel <= impl->numel)
    {
      first = gtorch_op_narrow (flat, 0, 0, numel, error);
      return first != NULL ? gtorch_op_view (first, shape, n_dims, error) : NULL;
    }
  made = gtorch_op_empty (&numel, 1, impl->dtype, gtorch_impl_device (impl), error);
  first = made != NULL ? gtorch_op_narrow (made, 0, 0, impl->numel, error) : NULL;
  if (first == NULL || !gtorch_op_copy_inplace (first, flat, FALSE, error))
    return NULL;
  return gtorch_op_view (made, shape, n_dims, error);
}

/**
 * gtorch_tensor_resize_inplace:
 * @self: a contiguous tensor that does not require grad
 * @shape: (array length=n_dims): the new shape
 * @n_dims: the length of @shape
 * @error: return location for an error
 *
 * Gives a tensor another shape with, perhaps, another number of elements. The first elements stay; if there
 * are more than before, the tensor gets new memory, and the others may have any values. Views of it keep the
 * former memory.
 *
 * Returns: (transfer full): @self; %NULL with %GTORCH_ERROR_SHAPE if the shape is invalid, or
 *   %GTORCH_ERROR_NOT_SUPPORTED if it requires grad or is not contiguous
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_resize_inplace (GTorchTensor *self, const gint64 *shape, gsize n_dims, GError **error)
{
  GTorchImpl *impl;
  gint64 numel = 1;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (shape != NULL || n_dims == 0, NULL);
  impl = gtorch_tensor_unwrap (self);
  if (!check ("resize_", impl, error))
    return NULL;
  for (gsize i = 0; i < n_dims; i++)
    if (n_dims > GTORCH_MAX_DIMS || shape[i] < 0
        || __builtin_mul_overflow (numel, shape[i], &numel))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("resize_: the shape %s is invalid"),
                     gtorch_shape_str (shape, (guint) MIN (n_dims, GTORCH_MAX_DIMS)));
        return NULL;
      }
  if (!impl->is_contiguous)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("resize_: a tensor of shape %s that is not contiguous cannot be resized"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  return put ("resize_", self, resized (impl, shape, n_dims, numel, error), error);
}
