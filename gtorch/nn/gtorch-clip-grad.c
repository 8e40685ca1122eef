/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions of the gradients of all parameters together. The host waits for no GPU, unless it is asked
 * whether a norm is finite. */

#include "config.h"

#include "nn/gtorch-clip-grad.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-dtype-private.h"
#include "base/gtorch-range-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-spread-private.h"
#include "tensor/gtorch-impl-overlap-private.h"
#include "tensor/gtorch-tensor-private.h"

const GTorchSpread *gtorch_spread;

static gboolean
are_tensors (const gchar *who, GTorchTensor **tensors, gsize n, GError **error)
{
  gsize i;

  for (i = 0; i < n; i++)
    if (!GTORCH_IS_TENSOR (tensors[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: element %zu is no tensor"),
                     who, i);
        return FALSE;
      }
  return TRUE;
}

static gboolean
check_limit (const gchar *who, const gchar *name, gdouble value, GError **error)
{
  return gtorch_check_range (who, name, value, 0, (gdouble) INFINITY, FALSE, error);
}

/* Returns the gradients of those parameters that have one; new references. As many `processes`, unless that
 * is NULL, say which other processes have parts of them. */
static GPtrArray *
find_grads (GTorchTensor **parameters, gsize n, GPtrArray *processes)
{
  GPtrArray *grads = g_ptr_array_new_with_free_func (g_object_unref);
  gsize i;

  for (i = 0; i < n; i++)
    {
      GTorchTensor *grad = gtorch_tensor_get_grad (parameters[i]);

      if (grad == NULL)
        continue;
      g_ptr_array_add (grads, grad);
      if (processes != NULL)
        g_ptr_array_add (processes, gtorch_spread_find (parameters[i]));
    }
  return grads;
}

static gboolean
check_finite (const gchar *op, GTorchImpl *norm, gdouble norm_type, GError **error)
{
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (norm));
  GError *failure = NULL;
  const gdouble value = gtorch_tensor_item_double (tensor, &failure);

  if (failure != NULL)
    {
      g_propagate_error (error, failure);
      return FALSE;
    }
  if (isfinite (value))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the norm of degree %g is %g, it must be finite"), op, norm_type, value);
  return FALSE;
}

/* Whether the norms of many tensors are computed together: an empty tensor has no norm of some degrees, which
 * is said by name. */
static gboolean
is_plain (const GTorchImpl *impl)
{
  return gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_FLOAT && impl->numel > 0;
}

/* The tensors of one device, and the others. */
static GPtrArray *
take_device (GPtrArray *left)
{
  GPtrArray *taken = g_ptr_array_new ();
  GTorchDevice *device = ((GTorchImpl *) left->pdata[0])->device;
  guint kept = 0;

  for (guint i = 0; i < left->len; i++)
    if (((GTorchImpl *) left->pdata[i])->device == device)
      g_ptr_array_add (taken, left->pdata[i]);
    else
      left->pdata[kept++] = left->pdata[i];
  g_ptr_array_set_size (left, kept);
  return taken;
}

/* Adds the norms of tensors of one device, float64 on `device`, to the list. */
static gboolean
add_norms (GPtrArray *impls, gdouble norm_type, GTorchDevice *device, GPtrArray *norms,
           GError **error)
{
  g_autoptr (GPtrArray) plain = g_ptr_array_new ();

  for (guint i = 0; i < impls->len; i++)
    {
      g_autoptr (GTorchImpl) norm = NULL;
      const gint64 one = 1;
      GTorchImpl *line;

      if (is_plain (impls->pdata[i]))
        {
          g_ptr_array_add (plain, impls->pdata[i]);
          continue;
        }
      norm = gtorch_op_linalg_vector_norm (impls->pdata[i], norm_type, NULL, 0, FALSE,
                                           GTORCH_DTYPE_NONE, error);
      line = norm != NULL ? gtorch_op_reshape (norm, &one, 1, error) : NULL;
      if (line == NULL)
        return FALSE;
      g_ptr_array_add (norms, line);
    }
  if (plain->len > 0)
    {
      GTorchImpl *line =
          gtorch_op_foreach_norm ((GTorchImpl **) plain->pdata, plain->len, norm_type, error);

      if (line == NULL)
        return FALSE;
      g_ptr_array_add (norms, line);
    }
  for (guint i = 0; i < norms->len; i++)
    {
      GTorchImpl *near =
          gtorch_op_to (norms->pdata[i], GTORCH_DTYPE_FLOAT64, device, FALSE, FALSE, error);

      if (near == NULL)
        return FALSE;
      gtorch_impl_unref (norms->pdata[i]);
      norms->pdata[i] = near;
    }
  return TRUE;
}

/* Checks the degree of a norm. */
static gboolean
check_degree (const gchar *op, gdouble norm_type, GError **error)
{
  if (!isnan (norm_type) && !gtorch_is_none_double (norm_type))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: norm_type is %g, it must be a number or infinite"), op, norm_type);
  return FALSE;
}

/* The norm of the tensors' norms, on the device of the first one, in the dtype that they have together. */
static GTorchImpl *
measure (GTorchTensor **tensors, gsize n, gdouble norm_type, GError **error)
{
  g_autoptr (GPtrArray) norms = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();
  g_autoptr (GTorchImpl) all = NULL;
  g_autoptr (GTorchImpl) norm = NULL;
  guint dtype;

  if (n == 0)
    return gtorch_op_full (NULL, 0, 0, GTORCH_DTYPE_FLOAT32, NULL, error);
  dtype = gtorch_dtype_infos[gtorch_tensor_unwrap (tensors[0])->dtype].real;
  for (gsize i = 0; i < n; i++)
    {
      GTorchImpl *impl = gtorch_tensor_unwrap (tensors[i]);

      dtype = gtorch_dtype_promote (dtype, gtorch_dtype_infos[impl->dtype].real);
      g_ptr_array_add (left, impl);
    }
  while (left->len > 0)
    {
      g_autoptr (GPtrArray) taken = take_device (left);

      if (!add_norms (taken, norm_type, gtorch_tensor_get_device (tensors[0]), norms, error))
        return NULL;
    }
  all = norms->len == 1 ? gtorch_impl_ref (norms->pdata[0])
                        : gtorch_op_cat ((GTorchImpl **) norms->pdata, norms->len, 0, error);
  if (all != NULL)
    norm = gtorch_op_linalg_vector_norm (all, norm_type, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  return norm != NULL ? gtorch_op_to_dtype (norm, dtype, error) : NULL;
}

/* --- over several processes --- */

/* The norm of tensors of which these processes have other parts, in float64. */
static GTorchImpl *
measure_spread (GPtrArray *tensors, gpointer processes, gdouble norm_type, GError **error)
{
  const gboolean adds = norm_type != 0 && isfinite (norm_type);
  const GTorchSpreadOp op = isfinite (norm_type) ? GTORCH_SPREAD_SUM
                            : norm_type > 0      ? GTORCH_SPREAD_MAX
                                                 : GTORCH_SPREAD_MIN;
  g_autoptr (GPtrArray) filled = g_ptr_array_new ();
  g_autoptr (GTorchImpl) own = NULL, wide = NULL, term = NULL, all = NULL;

  for (guint i = 0; i < tensors->len; i++)
    if (gtorch_tensor_get_numel (tensors->pdata[i]) > 0)
      g_ptr_array_add (filled, tensors->pdata[i]);
  own = filled->len > 0
            ? measure ((GTorchTensor **) filled->pdata, filled->len, norm_type, error)
            : gtorch_op_full (NULL, 0, op == GTORCH_SPREAD_MIN ? INFINITY : 0, GTORCH_DTYPE_FLOAT64,
                              gtorch_tensor_get_device (tensors->pdata[0]), error);
  wide = own == NULL ? NULL : gtorch_op_to_dtype (own, GTORCH_DTYPE_FLOAT64, error);
  if (wide == NULL)
    return NULL;
  /* none of this rank is 0, whatever the degree */
  term =
      !adds || filled->len == 0 ? gtorch_impl_ref (wide) : gtorch_op_power (wide, norm_type, error);
  all = term == NULL ? NULL : gtorch_spread->reduce (processes, term, op, error);
  return all == NULL || !adds ? g_steal_pointer (&all)
                              : gtorch_op_power (all, 1 / norm_type, error);
}

/* The norm of all gradients, of which other processes may have parts. */
static GTorchImpl *
measure_all (GPtrArray *grads, GPtrArray *processes, gdouble norm_type, GError **error)
{
  GTorchTensor **tensors = (GTorchTensor **) grads->pdata;
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) norms = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GTorchImpl) line = NULL, norm = NULL;
  guint dtype;

  if (grads->len == 0)
    return measure (NULL, 0, norm_type, error);
  dtype = gtorch_dtype_infos[gtorch_tensor_unwrap (tensors[0])->dtype].real;
  for (guint i = 0; i < grads->len; i++)
    {
      g_autoptr (GPtrArray) part = g_ptr_array_new ();
      g_autoptr (GTorchImpl) own = NULL;
      const gint64 one = 1;
      GTorchImpl *near = NULL;

      dtype =
          gtorch_dtype_promote (dtype,
                                gtorch_dtype_infos[gtorch_tensor_unwrap (tensors[i])->dtype].real);
      if (!g_hash_table_add (seen, processes->pdata[i]))
        continue;
      for (guint k = i; k < grads->len; k++)
        if (processes->pdata[k] == processes->pdata[i])
          g_ptr_array_add (part, tensors[k]);
      own = processes->pdata[i] == NULL
                ? measure ((GTorchTensor **) part->pdata, part->len, norm_type, error)
                : measure_spread (part, processes->pdata[i], norm_type, error);
      if (own != NULL && part->len == grads->len)
        return gtorch_op_to_dtype (own, dtype, error);
      if (own != NULL)
        near = gtorch_op_to (own, GTORCH_DTYPE_FLOAT64, gtorch_tensor_get_device (tensors[0]),
                             FALSE, FALSE, error);
      if (near == NULL)
        return NULL;
      own = g_steal_pointer (&near);
      near = gtorch_op_reshape (own, &one, 1, error);
      if (near == NULL)
        return NULL;
      g_ptr_array_add (norms, near);
    }
  line = gtorch_op_cat ((GTorchImpl **) norms->pdata, norms->len, 0, error);
  if (line != NULL)
    norm = gtorch_op_linalg_vector_norm (line, norm_type, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  return norm != NULL ? gtorch_op_to_dtype (norm, dtype, error) : NULL;
}

/* The norm of tensors that may be parts, or gradients of parts. */
static GTorchImpl *
measure_values (GTorchTensor **tensors, gsize n, gdouble norm_type, GError **error)
{
  g_autoptr (GPtrArray) list = NULL, processes = NULL;
  gboolean is_spread = FALSE;

  if (gtorch_spread == NULL)
    return measure (tensors, n, norm_type, error);
  list = g_ptr_array_new ();
  processes = g_ptr_array_new ();
  for (gsize i = 0; i < n; i++)
    {
      gpointer found = gtorch_spread->find_value (tensors[i]);

      is_spread = is_spread || found != NULL;
      g_ptr_array_add (list, tensors[i]);
      g_ptr_array_add (processes, found);
    }
  return is_spread ? measure_all (list, processes, norm_type, error)
                   : measure (tensors, n, norm_type, error);
}

gboolean
gtorch_spread_check_whole (const gchar *who, GPtrArray *params, GError **error)
{
  for (guint i = 0; i < params->len; i++)
    if (gtorch_spread_find (params->pdata[i]) != NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("%s: parameter %u, of shape %s, is a part of one that is spread over "
                        "processes, and a step of this optimizer needs the whole"),
                     who, i, gtorch_impl_shape_str (gtorch_tensor_unwrap (params->pdata[i])));
        return FALSE;
      }
  return TRUE;
}

static GTorchImpl *
total_norm (const gchar *op, GTorchTensor **tensors, gsize n, gdouble norm_type, gboolean is_finite,
            GError **error)
{
  GTorchImpl *norm;

  if (!check_degree (op, norm_type, error))
    return NULL;
  norm = measure_values (tensors, n, norm_type, error);
  if (norm == NULL)
    gtorch_error_set_op (error, op);
  else if (is_finite && !check_finite (op, norm, norm_type, error))
    g_clear_pointer (&norm, gtorch_impl_unref);
  return norm;
}

/**
 * gtorch_get_total_norm:
 * @tensors: (array length=n_tensors): tensors, of any shapes
 * @n_tensors: the length of @tensors
 * @norm_type: the degree of the norm; infinity for the greatest absolute value
 * @error_if_nonfinite: whether a norm that is NaN or infinite is an error, for which the host waits
 * @error: return location for an error
 *
 * Computes the norm of all elements of some tensors. Where processes have parts of them, as of parameters of
 * [class@ModuleShards] or [func@parallelize_columns] and of their gradients, it is the norm of the whole
 * ones, and all ranks call this.
 *
 * Returns: (transfer full): one number on the device of the first tensor, 0 if there are none; %NULL with
 *   @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_get_total_norm (GTorchTensor **tensors, gsize n_tensors, gdouble norm_type,
                       gboolean error_if_nonfinite, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;

  g_return_val_if_fail (tensors != NULL || n_tensors == 0, NULL);
  if (!are_tensors ("get_total_norm", tensors, n_tensors, error))
    return NULL;
  guard = gtorch_no_grad ();
  return gtorch_tensor_wrap (
      total_norm ("get_total_norm", tensors, n_tensors, norm_type, error_if_nonfinite, error));
}

typedef gboolean (*ChangeFunc) (GTorchImpl *const *impls, guint n, gconstpointer data,
                                GError **error);

/* Calls func with the gradients of each device, complex ones as their parts; one by one if they share
 * memory. */
static gboolean
change_grads (GPtrArray *grads, ChangeFunc func, gconstpointer data, GError **error)
{
  g_autoptr (GPtrArray) real = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();

  for (guint i = 0; i < grads->len; i++)
    {
      GTorchImpl *grad = gtorch_tensor_unwrap (grads->pdata[i]);
      GTorchImpl *parts = gtorch_dtype_kind (grad->dtype) == GTORCH_KIND_COMPLEX
                              ? gtorch_op_view_as_real (grad, error)
                              : gtorch_impl_ref (grad);

      if (parts == NULL)
        return FALSE;
      g_ptr_array_add (real, parts);
      g_ptr_array_add (left, parts);
    }
  while (left->len > 0)
    {
      g_autoptr (GPtrArray) taken = take_device (left);
      GTorchImpl *const *impls = (GTorchImpl *const *) taken->pdata;
      const guint step = gtorch_impl_are_apart (impls, taken->len) ? taken->len : 1;

      for (guint i = 0; i < taken->len; i += step)
        if (!func (impls + i, step, data, error))
          return FALSE;
    }
  return TRUE;
}

static gboolean
multiply (GTorchImpl *const *impls, guint n, gconstpointer factor, GError **error)
{
  g_autoptr (GTorchImpl) near = gtorch_op_to ((GTorchImpl *) factor, GTORCH_DTYPE_NONE,
                                              impls[0]->device, FALSE, FALSE, error);

  return near != NULL && gtorch_op_foreach_mul_inplace (impls[0], near, impls + 1, n - 1, error);
}

static gboolean
limit (GTorchImpl *const *impls, guint n, gconstpointer data, GError **error)
{
  return gtorch_op_foreach_clamp_inplace (impls[0], impls + 1, n - 1, *(const gdouble *) data,
                                          error);
}

/* Multiplies the gradients by max_norm / norm if that is below 1, on each of their devices. */
static gboolean
scale (GPtrArray *grads, gdouble max_norm, GTorchImpl *norm, GError **error)
{
  g_autoptr (GTorchImpl) margin = gtorch_impl_new_number (1e-6);
  g_autoptr (GTorchImpl) most = gtorch_impl_new_number (max_norm);
  g_autoptr (GTorchImpl) sum = gtorch_op_add (norm, margin, 1, error);
  g_autoptr (GTorchImpl) factor = sum != NULL ? gtorch_op_div (most, sum, error) : NULL;

  if (factor == NULL || !gtorch_op_clamp_inplace (factor, -INFINITY, 1, error))
    return FALSE;
  if (factor->dtype != GTORCH_DTYPE_FLOAT64)
    {
      GTorchImpl *wide = gtorch_op_to_dtype (factor, GTORCH_DTYPE_FLOAT32, error);

      if (wide == NULL)
        return FALSE;
      gtorch_impl_unref (factor);
      factor = wide;
    }
  return change_grads (grads, multiply, factor, error);
}

/**
 * gtorch_clip_grads_with_norm:
 * @parameters: (array length=n_parameters): tensors
 * @n_parameters: the length of @parameters
 * @max_norm: the greatest norm
 * @total_norm: the norm of all gradients, as [func@get_total_norm] computes it
 * @error: return location for an error
 *
 * Scales the gradients of @parameters so that their norm is at most @max_norm.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_clip_grads_with_norm (GTorchTensor **parameters, gsize n_parameters, gdouble max_norm,
                             GTorchTensor *total_norm, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) grads = NULL;
  GTorchImpl *norm;

  g_return_val_if_fail (parameters != NULL || n_parameters == 0, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (total_norm), FALSE);
  if (!are_tensors ("clip_grads_with_norm", parameters, n_parameters, error)
      || !check_limit ("clip_grads_with_norm", "max_norm", max_norm, error))
    return FALSE;
  norm = gtorch_tensor_unwrap (total_norm);
  if (norm->numel != 1 || gtorch_dtype_kind (norm->dtype) == GTORCH_KIND_COMPLEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("clip_grads_with_norm: total_norm must be one real number, it is a %s of "
                      "shape %s"),
                   gtorch_dtype_get_name (norm->dtype), gtorch_impl_shape_str (norm));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  grads = find_grads (parameters, n_parameters, NULL);
  if (scale (grads, max_norm, norm, error))
    return TRUE;
  gtorch_error_set_op (error, "clip_grads_with_norm");
  return FALSE;
}

/**
 * gtorch_clip_grad_norm:
 * @parameters: (array length=n_parameters): tensors; those without a gradient do not count
 * @n_parameters: the length of @parameters
 * @max_norm: the greatest norm
 * @norm_type: the degree of the norm; infinity for the greatest absolute value
 * @error_if_nonfinite: whether a norm that is NaN or infinite is an error, for which the host waits
 * @error: return location for an error
 *
 * Scales the gradients of @parameters so that the norm of all of them together is at most @max_norm. The
 * host does not wait for the norm. Where processes have parts of the parameters, as with
 * [class@ModuleShards] or [func@parallelize_columns], it is the norm of the whole gradients, and all ranks
 * call this.
 *
 * ```c
 * norm = gtorch_clip_grad_norm (parameters, n_parameters, 1.0, 2.0, FALSE, &error);
 * ```
 *
 * Returns: (transfer full): the norm before; %NULL with @error set: %GTORCH_ERROR_INVALID if @max_norm is
 *   negative, @norm_type is NaN, or the norm is not finite and @error_if_nonfinite is %TRUE, and then no
 *   gradient has changed
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_clip_grad_norm (GTorchTensor **parameters, gsize n_parameters, gdouble max_norm,
                       gdouble norm_type, gboolean error_if_nonfinite, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) grads = NULL, processes = NULL;
  g_autoptr (GTorchImpl) norm = NULL;

  g_return_val_if_fail (parameters != NULL || n_parameters == 0, NULL);
  if (!are_tensors ("clip_grad_norm", parameters, n_parameters, error)
      || !check_limit ("clip_grad_norm", "max_norm", max_norm, error))
    return NULL;
  guard = gtorch_no_grad ();
  processes = g_ptr_array_new ();
  grads = find_grads (parameters, n_parameters, processes);
  if (!check_degree ("clip_grad_norm", norm_type, error))
    return NULL;
  norm = measure_all (grads, processes, norm_type, error);
  if (norm == NULL)
    {
      gtorch_error_set_op (error, "clip_grad_norm");
      return NULL;
    }
  if (error_if_nonfinite && !check_finite ("clip_grad_norm", norm, norm_type, error))
    return NULL;
  if (scale (grads, max_norm, norm, error))
    return gtorch_tensor_wrap (g_steal_pointer (&norm));
  gtorch_error_set_op (error, "clip_grad_norm");
  return NULL;
}

/**
 * gtorch_clip_grad_value:
 * @parameters: (array length=n_parameters): tensors
 * @n_parameters: the length of @parameters
 * @clip_value: the greatest absolute value
 * @error: return location for an error
 *
 * Limits each element of the gradients of @parameters to the range from -@clip_value to @clip_value.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if @clip_value is negative
 *
 * Since: 0.1
 */
gboolean
gtorch_clip_grad_value (GTorchTensor **parameters, gsize n_parameters, gdouble clip_value,
                        GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) grads = NULL;

  g_return_val_if_fail (parameters != NULL || n_parameters == 0, FALSE);
  if (!are_tensors ("clip_grad_value", parameters, n_parameters, error)
      || !check_limit ("clip_grad_value", "clip_value", clip_value, error))
    return FALSE;
  guard = gtorch_no_grad ();
  grads = find_grads (parameters, n_parameters, NULL);
  for (guint i = 0; i < grads->len; i++)
    {
      const GTorchImpl *grad = gtorch_tensor_unwrap (grads->pdata[i]);

      if (gtorch_dtype_kind (grad->dtype) != GTORCH_KIND_FLOAT)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                       _ ("clip_grad_value: a gradient of dtype %s has no order: it must be of a "
                          "floating-point dtype"),
                       gtorch_dtype_get_name (grad->dtype));
          return FALSE;
        }
    }
  return change_grads (grads, limit, &clip_value, error);
}

/* --- vectors --- */

static gboolean
check_one_device (const gchar *who, GTorchTensor **parameters, gsize n, GError **error)
{
  gsize i;

  for (i = 1; i < n; i++)
    if (gtorch_tensor_get_device (parameters[i]) != gtorch_tensor_get_device (parameters[0]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                     _ ("%s: parameter %zu is on another device than the first one"), who, i);
        return FALSE;
      }
  return TRUE;
}

/**
 * gtorch_parameters_to_vector:
 * @parameters: (array length=n_parameters): tensors of one device
 * @n_parameters: the length of @parameters
 * @error: return location for an error
 *
 * Puts the elements of all parameters into one vector.
 *
 * Returns: (transfer full): the vector, which is differentiable; %NULL with %GTORCH_ERROR_INVALID if there
 *   are none, or %GTORCH_ERROR_DEVICE_MISMATCH
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parameters_to_vector (GTorchTensor **parameters, gsize n_parameters, GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  const gint64 whole = -1;
  GTorchImpl *vector;
  gsize i;

  g_return_val_if_fail (parameters != NULL || n_parameters == 0, NULL);
  if (n_parameters == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there are no parameters"),
                   "parameters_to_vector");
      return NULL;
    }
  if (!are_tensors ("parameters_to_vector", parameters, n_parameters, error)
      || !check_one_device ("parameters_to_vector", parameters, n_parameters, error))
    return NULL;
  for (i = 0; i < n_parameters; i++)
    {
      GTorchImpl *part = gtorch_op_reshape (gtorch_tensor_unwrap (parameters[i]), &whole, 1, error);

      if (part == NULL)
        return NULL;
      g_ptr_array_add (parts, part);
    }
  vector = gtorch_op_cat ((GTorchImpl **) parts->pdata, parts->len, 0, error);
  return vector != NULL ? gtorch_tensor_wrap (vector) : NULL;
}

/**
 * gtorch_vector_to_parameters:
 * @vec: a vector with as many elements as all parameters together
 * @parameters: (array length=n_parameters): tensors of one device
 * @n_parameters: the length of @parameters
 * @error: return location for an error
 *
 * Copies the elements of a vector into parameters, in their order, as [func@parameters_to_vector] has taken
 * them.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @vec is no vector of that length, or
 *   %GTORCH_ERROR_DEVICE_MISMATCH; then nothing has changed
 *
 * Since: 0.1
 */
gboolean
gtorch_vector_to_parameters (GTorchTensor *vec, GTorchTensor **parameters, gsize n_parameters,
                             GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *vector;
  gint64 total = 0, at = 0;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (vec), FALSE);
  g_return_val_if_fail (parameters != NULL || n_parameters == 0, FALSE);
  if (!are_tensors ("vector_to_parameters", parameters, n_parameters, error))
    return FALSE;
  guard = gtorch_no_grad ();
  vector = gtorch_tensor_unwrap (vec);
  for (i = 0; i < n_parameters; i++)
    total += gtorch_tensor_unwrap (parameters[i])->numel;
  if (vector->n_dims != 1 || vector->numel != total)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("vector_to_parameters: the vector has shape %s, the parameters have "
                      "%" PRId64 " elements"),
                   gtorch_impl_shape_str (vector), total);
      return FALSE;
    }
  if (!check_one_device ("vector_to_parameters", parameters, n_parameters, error))
    return FALSE;
  for (i = 0; i < n_parameters; i++)
    {
      GTorchImpl *param = gtorch_tensor_unwrap (parameters[i]);
      g_autoptr (GTorchImpl) part = gtorch_op_narrow (vector, 0, at, param->numel, error);
      g_autoptr (GTorchImpl) shaped =
          part != NULL ? gtorch_op_reshape (part, param->shape, param->n_dims, error) : NULL;

      if (shaped == NULL || !gtorch_op_copy_inplace (param, shaped, FALSE, error))
        return FALSE;
      at += param->numel;
    }
  return TRUE;
}
