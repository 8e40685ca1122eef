/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Forward-mode derivatives for programs. The names and the rules are those of torch.autograd.forward_ad. */

#include "config.h"

#include "autograd/gtorch-forward-ad.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * gtorch_forward_ad_enter_dual_level:
 * @error: return location for an error
 *
 * Opens a level, within which tensors may have tangents: derivatives along one direction, which operations
 * compute beside their results.
 *
 * A tensor gets a tangent by [func@forward_ad_make_dual]. The results of operations with such tensors have
 * tangents, too, and [func@forward_ad_unpack_dual] gives them. So one run of a function computes the product
 * of its Jacobian and a vector, without a backward pass.
 *
 * The level is one of the process, as in PyTorch: operations of all threads follow tangents while it is open.
 * There is only one, so a second one is an error.
 *
 * ```c
 * if (gtorch_forward_ad_enter_dual_level (&error) < 0)
 *   return FALSE;
 * dual = gtorch_forward_ad_make_dual (x, direction, &error);
 * y = gtorch_tensor_exp (dual, &error);
 * value = gtorch_forward_ad_unpack_dual (y, &tangent, &error); // exp (x), exp (x) * direction
 * gtorch_forward_ad_exit_dual_level (&error);
 * ```
 *
 * Returns: 0, the number of the level, or -1 with @error set
 *
 * Since: 0.1
 */
gint
gtorch_forward_ad_enter_dual_level (GError **error)
{
  if (g_atomic_int_compare_and_exchange (&gtorch_forward_levels, 0, 1))
    return 0;
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("forward_ad: a level of dual tensors is open already, and there are no "
                          "nested ones"));
  return -1;
}

/**
 * gtorch_forward_ad_exit_dual_level:
 * @error: return location for an error
 *
 * Closes the level. All tensors lose their tangents; those that [func@forward_ad_unpack_dual] gave stay.
 *
 * Returns: %TRUE, or %FALSE with @error set if no level is open
 *
 * Since: 0.1
 */
gboolean
gtorch_forward_ad_exit_dual_level (GError **error)
{
  if (!g_atomic_int_compare_and_exchange (&gtorch_forward_levels, 1, 0))
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                           _ ("forward_ad: no level of dual tensors is open"));
      return FALSE;
    }
  gtorch_tangents_end ();
  return TRUE;
}

/**
 * gtorch_forward_ad_has_dual_level:
 *
 * Tells whether a level is open; see [func@forward_ad_enter_dual_level].
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_forward_ad_has_dual_level (void)
{
  return g_atomic_int_get (&gtorch_forward_levels) != 0;
}

/* Returns a view of all of a tensor, recorded if gradients are, without a tangent. */
static GTorchImpl *
view_new (GTorchImpl *impl, GError **error)
{
  GTorchChange off;
  GTorchImpl *view;

  gtorch_change_begin (&off);
  gtorch_change_byte (&off, &gtorch_thread.no_forward, TRUE);
  view = gtorch_op_view_as (impl, impl, error);
  gtorch_change_end (&off);
  return view;
}

static GTorchImpl *
lay_out (GTorchImpl *value, const GTorchImpl *impl, GError **error)
{
  GTorchChange off;
  GTorchImpl *placed;

  gtorch_change_begin (&off);
  gtorch_change_byte (&off, &gtorch_thread.no_forward, TRUE);
  placed = gtorch_tangent_lay_out (value, impl, error);
  gtorch_change_end (&off);
  return placed;
}

static gboolean
check_dual (const GTorchImpl *primal, const GTorchImpl *tangent, GError **error)
{
  if (!gtorch_forward_ad_has_dual_level ())
    g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("make_dual: no level of dual tensors is open: enter one first"));
  else if (gtorch_impl_is_released (primal) || gtorch_impl_is_released (tangent))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED, _ ("make_dual: the %s was released"),
                 gtorch_impl_is_released (primal) ? "primal" : "tangent");
  else if (gtorch_dtype_kind (primal->dtype) < GTORCH_KIND_FLOAT || primal->dtype != tangent->dtype)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("make_dual: the primal is of dtype %s, the tangent of %s: both must be of one "
                    "floating-point or complex dtype"),
                 gtorch_dtype_get_name (primal->dtype), gtorch_dtype_get_name (tangent->dtype));
  else if (!gtorch_impl_same_shape (primal, tangent))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("make_dual: the primal has shape %s, the tangent %s"),
                 gtorch_impl_shape_str (primal), gtorch_impl_shape_str (tangent));
  else if (primal->device != tangent->device)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                 _ ("make_dual: the primal is on %s, the tangent on %s"),
                 gtorch_device_name (primal->device), gtorch_device_name (tangent->device));
  else if (gtorch_impl_has_tangent (primal) || gtorch_impl_has_tangent (tangent))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("make_dual: the %s of shape %s has a tangent already"),
                 gtorch_impl_has_tangent (primal) ? "primal" : "tangent",
                 gtorch_impl_shape_str (primal));
  else
    return TRUE;
  return FALSE;
}

/**
 * gtorch_forward_ad_make_dual:
 * @primal: a tensor of a floating-point or complex dtype
 * @tangent: a tensor of the same dtype, shape and device: the direction
 * @error: return location for an error
 *
 * Returns a view of @primal that has a tangent.
 *
 * The tangent shares the memory of @tangent if both tensors have the same strides. An operation in
 * place on the dual tensor changes that memory, as it changes @primal.
 *
 * Returns: (transfer full): the dual tensor, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_forward_ad_make_dual (GTorchTensor *primal, GTorchTensor *tangent, GError **error)
{
  g_autoptr (GTorchImpl) dual = NULL;
  g_autoptr (GTorchImpl) placed = NULL;
  GTorchImpl *impl, *value;

  g_return_val_if_fail (GTORCH_IS_TENSOR (primal), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (tangent), NULL);
  impl = gtorch_tensor_unwrap (primal);
  value = gtorch_tensor_unwrap (tangent);
  if (!check_dual (impl, value, error))
    return NULL;
  placed = lay_out (value, impl, error);
  dual = placed != NULL ? view_new (impl, error) : NULL;
  if (dual == NULL)
    return NULL;
  gtorch_tangent_set (dual, placed);
  return gtorch_tensor_wrap (g_steal_pointer (&dual));
}

/**
 * gtorch_forward_ad_unpack_dual:
 * @dual: a tensor
 * @tangent: (out) (optional) (transfer full) (nullable): return location for the tangent, %NULL for zeros:
 *   @dual does not depend on a tensor with a tangent, or no level is open
 * @error: return location for an error
 *
 * Takes a dual tensor apart.
 *
 * Where gradients are recorded and the inputs require them, both results can be differentiated.
 *
 * Returns: (transfer full): a view of @dual without a tangent, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_forward_ad_unpack_dual (GTorchTensor *dual, GTorchTensor **tangent, GError **error)
{
  g_autoptr (GTorchImpl) value = NULL;
  GTorchImpl *impl, *primal;

  g_return_val_if_fail (GTORCH_IS_TENSOR (dual), NULL);
  impl = gtorch_tensor_unwrap (dual);
  if (gtorch_forward_ad_has_dual_level () && !gtorch_impl_is_released (impl)
      && !gtorch_tangent_get (impl, &value, error))
    return NULL;
  primal = view_new (impl, error);
  if (primal == NULL)
    return NULL;
  gtorch_autograd_ensure (primal)->is_primal = TRUE;
  if (tangent != NULL)
    *tangent = gtorch_tensor_wrap (g_steal_pointer (&value));
  return gtorch_tensor_wrap (primal);
}
