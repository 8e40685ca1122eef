/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients against differences of values. For each element of an input the outputs are computed a little
 * below and above it, which gives one column of the Jacobian; going backward from each element of the outputs
 * gives its rows. Complex elements count as two: the gradient of a real L with respect to z is
 * dL/d(Re z) + i dL/d(Im z). */

#include "config.h"

#include "autograd/gtorch-gradcheck.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-callback-private.h"
#include "stream/gtorch-stream-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "device/gtorch-device.h"
#include "gtorch-ops-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "tensor/gtorch-tensor-private.h"

/* What is checked: gives new references to the outputs. */
typedef GPtrArray *(*CheckFunc) (GTorchTensor **inputs, gsize n_inputs, gpointer data,
                                 GError **error);

typedef struct
{
  const gchar *name;
  CheckFunc func;
  gpointer data;
  guint n;
  GTorchTensor **inputs; /* contiguous copies, leaves */
  gdouble eps, atol, rtol;
} Check;

static void
check_clear (Check *self)
{
  guint i;

  for (i = 0; self->inputs != NULL && i < self->n; i++)
    g_clear_object (&self->inputs[i]);
  g_clear_pointer (&self->inputs, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Check, check_clear)

static gboolean
is_complex (GTorchTensor *tensor)
{
  return gtorch_dtype_kind (tensor->impl->dtype) == GTORCH_KIND_COMPLEX;
}

static gboolean
is_checked (GTorchTensor *tensor)
{
  return gtorch_impl_requires_grad (tensor->impl);
}

/* The elements as real numbers, two for a complex one, on the host; all outputs that have gradients one after
 * the other. */
static gboolean
append_values (GTorchImpl *impl, GArray *values, GError **error)
{
  const gboolean complex_one = gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX;
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) host = NULL;
  GTorchImpl *plain;
  GTorchChange mode;

  gtorch_change_to_grad (&mode, FALSE);
  wide = gtorch_op_to_dtype (impl, complex_one ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64,
                             error);
  plain = wide != NULL ? gtorch_op_contiguous (wide, error) : NULL;
  if (plain != NULL && gtorch_impl_device (plain) != gtorch_device_cpu ())
    {
      host = gtorch_op_to_device (plain, gtorch_device_cpu (), FALSE, error);
      gtorch_impl_unref (plain);
    }
  else
    host = plain;
  gtorch_change_end (&mode);
  if (host == NULL || !gtorch_impl_sync (host, error))
    return FALSE;
  g_array_append_vals (values, gtorch_impl_data (host), (complex_one ? 2 : 1) * host->numel);
  return TRUE;
}

static gboolean
has_gradient (GTorchTensor *output)
{
  return gtorch_dtype_kind (gtorch_tensor_unwrap (output)->dtype) >= GTORCH_KIND_FLOAT;
}

static GArray *
compute (Check *self, GError **error)
{
  g_autoptr (GPtrArray) outputs = self->func (self->inputs, self->n, self->data, error);
  g_autoptr (GArray) values = NULL;
  guint i;

  if (outputs == NULL)
    return NULL;
  values = g_array_new (FALSE, FALSE, sizeof (gdouble));
  for (i = 0; i < outputs->len; i++)
    if (has_gradient (outputs->pdata[i])
        && !append_values (gtorch_tensor_unwrap (outputs->pdata[i]), values, error))
      return NULL;
  return g_steal_pointer (&values);
}

/* A tensor like impl of which the real number at `position` is value and all else is zero. */
static GTorchImpl *
one_hot (GTorchImpl *impl, gint64 position, gdouble value, GError **error)
{
  const gboolean complex_one = gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX;
  const guint dtype = complex_one ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchImpl) host =
      gtorch_op_zeros (impl->shape, impl->n_dims, dtype, gtorch_device_cpu (), error);
  g_autoptr (GTorchImpl) cast = NULL;

  if (host == NULL || !gtorch_impl_sync (host, error))
    return NULL;
  ((gdouble *) gtorch_impl_data (host))[position] = value;
  cast = gtorch_op_to_dtype (host, impl->dtype, error);
  if (cast == NULL || gtorch_impl_device (impl) == gtorch_device_cpu ())
    return g_steal_pointer (&cast);
  return gtorch_op_to_device (cast, gtorch_impl_device (impl), FALSE, error);
}

static gboolean
shift (GTorchTensor *input, gint64 position, gdouble by, GError **error)
{
  g_autoptr (GTorchImpl) step = NULL;
  GTorchChange mode;
  gboolean success;

  gtorch_change_to_grad (&mode, FALSE);
  step = one_hot (input->impl, position, by, error);
  success = step != NULL && gtorch_op_add_inplace (input->impl, step, 1.0, error);
  gtorch_change_end (&mode);
  return success;
}

/* One column: by real number `position` of an input. */
static GArray *
numeric_column (Check *self, guint input, gint64 position, GError **error)
{
  GTorchTensor *tensor = self->inputs[input];
  g_autoptr (GTorchImpl) original = NULL;
  g_autoptr (GArray) below = NULL;
  g_autoptr (GArray) above = NULL;
  GTorchChange mode;
  gboolean restored;
  guint i;

  gtorch_change_to_grad (&mode, FALSE);
  original = gtorch_op_clone (tensor->impl, error);
  gtorch_change_end (&mode);
  if (original == NULL)
    return NULL;
  if (shift (tensor, position, -self->eps, error))
    below = compute (self, error);
  if (below != NULL && shift (tensor, position, 2 * self->eps, error))
    above = compute (self, error);
  gtorch_change_to_grad (&mode, FALSE);
  restored = gtorch_op_copy_inplace (tensor->impl, original, FALSE, above != NULL ? error : NULL);
  gtorch_change_end (&mode);
  if (above == NULL || !restored)
    return NULL;
  if (above->len != below->len)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the function does not give the same shapes each time"), self->name);
      return NULL;
    }
  for (i = 0; i < above->len; i++)
    g_array_index (above, gdouble, i) =
        (g_array_index (above, gdouble, i) - g_array_index (below, gdouble, i)) / (2 * self->eps);
  return g_steal_pointer (&above);
}

static gchar *
place_str (GTorchImpl *impl, gint64 position)
{
  const gboolean complex_one = gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX;
  gint64 index[GTORCH_MAX_DIMS] = { 0 }, rest = complex_one ? position / 2 : position;
  gint i;

  for (i = (gint) impl->n_dims - 1; i >= 0; i--)
    {
      index[i] = rest % impl->shape[i];
      rest /= impl->shape[i];
    }
  return g_strdup_printf ("%s%s", gtorch_shape_str (index, impl->n_dims),
                          !complex_one ? "" : (position % 2 == 0 ? " (real)" : " (imaginary)"));
}

/* NaN agrees with nothing: there is no gradient to be right. */
static gboolean
agrees (const Check *self, gdouble analytic, gdouble numeric)
{
  return analytic == numeric
         || fabs (analytic - numeric) <= self->atol + self->rtol * fabs (numeric);
}

/* One row, by going backward from real number `position` of an output; `row` counts over all outputs. */
static gboolean
check_row (Check *self, GTorchTensor *output, guint index, gint64 position, guint row,
           GPtrArray *columns, GError **error)
{
  g_autoptr (GTorchImpl) seed = one_hot (output->impl, position, 1, error);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  g_autoptr (GPtrArray) grads = g_ptr_array_new ();
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (gdouble));
  GTorchBackward backward = {
    .roots = &output->impl,
    .grads = &seed,
    .n_roots = 1,
    .retain_graph = TRUE,
  };
  gboolean success = seed != NULL;
  guint i, k = 0, column = 0;

  for (i = 0; i < self->n; i++)
    if (is_checked (self->inputs[i]))
      g_ptr_array_add (wanted, self->inputs[i]->impl);
  g_ptr_array_set_size (grads, wanted->len);
  if (success && gtorch_impl_requires_grad (output->impl))
    {
      backward.inputs = (GTorchImpl **) wanted->pdata;
      backward.n_inputs = wanted->len;
      backward.results = (GTorchImpl **) grads->pdata;
      success = gtorch_engine_run (&backward, error);
    }
  for (i = 0; success && i < self->n; i++)
    {
      GTorchImpl *input = self->inputs[i]->impl, *grad;
      gint64 j, n = input->numel * (is_complex (self->inputs[i]) ? 2 : 1);

      if (!is_checked (self->inputs[i]))
        continue;
      grad = grads->pdata[k++];
      g_array_set_size (values, 0);
      success = grad == NULL || append_values (grad, values, error);
      for (j = 0; success && j < n; j++)
        {
          gdouble analytic = grad != NULL ? g_array_index (values, gdouble, j) : 0;
          gdouble numeric = g_array_index ((GArray *) columns->pdata[column++], gdouble, row);
          g_autofree gchar *where = NULL;
          g_autofree gchar *by = NULL;

          if (agrees (self, analytic, numeric))
            continue;
          where = place_str (output->impl, position);
          by = place_str (input, j);
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("%s: output %u at %s by input %u at %s: the gradient is %.10g, "
                          "differences give %.10g (atol %g, rtol %g)"),
                       self->name, index, where, i, by, analytic, numeric, self->atol, self->rtol);
          success = FALSE;
        }
    }
  gtorch_impl_clear ((GTorchImpl **) grads->pdata, grads->len);
  return success;
}

static gboolean
run_check (Check *self, GError **error)
{
  g_autoptr (GPtrArray) columns = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  g_autoptr (GPtrArray) outputs = NULL;
  guint i, row = 0;
  gint64 j;

  for (i = 0; i < self->n; i++)
    if (is_checked (self->inputs[i]))
      for (j = 0; j < self->inputs[i]->impl->numel * (is_complex (self->inputs[i]) ? 2 : 1); j++)
        {
          GArray *column = numeric_column (self, i, j, error);

          if (column == NULL)
            return FALSE;
          g_ptr_array_add (columns, column);
        }
  outputs = self->func (self->inputs, self->n, self->data, error);
  if (outputs == NULL)
    return FALSE;
  for (i = 0; i < outputs->len; i++)
    {
      GTorchTensor *output = outputs->pdata[i];

      for (j = 0; has_gradient (output) && j < output->impl->numel * (is_complex (output) ? 2 : 1);
           j++, row++)
        {
          if (columns->len > 0 && row >= ((GArray *) columns->pdata[0])->len)
            {
              g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                           _ ("%s: the function does not give the same shapes each time"),
                           self->name);
              return FALSE;
            }
          if (!check_row (self, output, i, j, row, columns, error))
            return FALSE;
        }
    }
  return TRUE;
}

/* Copies of inputs, to be written to. */
static gboolean
take_inputs (Check *self, GTorchTensor **inputs, gsize n, GError **error)
{
  gboolean any = FALSE;
  gsize i;

  self->n = n;
  self->inputs = g_new0 (GTorchTensor *, MAX (n, 1));
  for (i = 0; i < n; i++)
    {
      GTorchImpl *impl = GTORCH_IS_TENSOR (inputs[i]) ? gtorch_tensor_unwrap (inputs[i]) : NULL;
      GTorchImpl *copy;
      GTorchChange mode;

      if (impl == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: input %zu is not a tensor"), self->name, i);
          return FALSE;
        }
      if (gtorch_impl_requires_grad (impl) && impl->dtype != GTORCH_DTYPE_FLOAT64
          && impl->dtype != GTORCH_DTYPE_COMPLEX128)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                       _ ("%s: input %zu has dtype %s: differences need float64 or complex128"),
                       self->name, i, gtorch_dtype_get_name (impl->dtype));
          return FALSE;
        }
      gtorch_change_to_grad (&mode, FALSE);
      copy = gtorch_op_clone (impl, error);
      gtorch_change_end (&mode);
      if (copy == NULL)
        return FALSE;
      if (gtorch_impl_requires_grad (impl))
        any = gtorch_autograd_ensure (copy)->requires_grad = TRUE;
      self->inputs[i] = gtorch_tensor_wrap (copy);
    }
  if (!any)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: no input requires grad"),
                 self->name);
  return any;
}

/* --- what can be checked --- */

typedef struct
{
  GTorchGradcheckFunc func;
  gpointer user_data;
  GTorchFunction *function; /* or */
} Target;

static GPtrArray *
call_target (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  Target *self = data;
  g_autoptr (GError) inner = NULL;
  GTorchTensor *output;
  GPtrArray *outputs;

  if (self->function != NULL)
    return gtorch_function_apply (self->function, inputs, n_inputs, error);
  output = self->func (inputs, n_inputs, self->user_data, &inner);
  if (output == NULL || inner != NULL
      || !gtorch_callback_check ("gradcheck", N_ ("the function"), &output, GTORCH_TYPE_TENSOR,
                                 &inner))
    {
      g_clear_object (&output);
      if (inner == NULL)
        g_set_error (&inner, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("gradcheck: the function gave nothing and set no error"));
      g_propagate_error (error, g_steal_pointer (&inner));
      return NULL;
    }
  outputs = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (outputs, output);
  return outputs;
}

/* The gradients of a target as a function of its inputs and, behind them, the gradients of its outputs. */
typedef struct
{
  Target *target;
  guint n_inputs;
} Derivative;

/* An input on which the roots do not depend has no gradient, which is one of zeros. */
static gboolean
fill_missing (GPtrArray *grads, GPtrArray *wanted, GError **error)
{
  guint i;

  for (i = 0; i < wanted->len; i++)
    {
      const GTorchImpl *impl = ((GTorchTensor *) wanted->pdata[i])->impl;
      GTorchImpl *zeros;

      if (grads->pdata[i] != NULL)
        continue;
      zeros = gtorch_op_zeros (impl->shape, impl->n_dims, impl->dtype, gtorch_impl_device (impl),
                               error);
      if (zeros == NULL)
        return FALSE;
      grads->pdata[i] = gtorch_tensor_wrap (zeros);
    }
  return TRUE;
}

static GPtrArray *
call_derivative (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  Derivative *self = data;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GPtrArray) grads = NULL;
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  g_autoptr (GPtrArray) seeds = g_ptr_array_new ();
  guint i, next = self->n_inputs;

  outputs = call_target (inputs, self->n_inputs, self->target, error);
  if (outputs == NULL)
    return NULL;
  for (i = 0; i < outputs->len; i++)
    if (gtorch_impl_requires_grad (gtorch_tensor_unwrap (outputs->pdata[i])) && next < n_inputs)
      {
        g_ptr_array_add (roots, outputs->pdata[i]);
        g_ptr_array_add (seeds, inputs[next++]);
      }
  for (i = 0; i < self->n_inputs; i++)
    if (is_checked (inputs[i]))
      g_ptr_array_add (wanted, inputs[i]);
  if (roots->len > 0)
    grads =
        gtorch_autograd_grad ((GTorchTensor **) roots->pdata, roots->len,
                              (GTorchTensor **) wanted->pdata, wanted->len,
                              (GTorchTensor **) seeds->pdata, seeds->len, TRUE, TRUE, TRUE, error);
  else
    {
      grads = g_ptr_array_new_with_free_func (g_object_unref);
      g_ptr_array_set_size (grads, wanted->len);
    }
  if (grads == NULL || !fill_missing (grads, wanted, error))
    return NULL;
  return g_steal_pointer (&grads);
}

/* Fixed and without symmetry, so that a gradient that is wrong shows. */
static GTorchTensor *
seed_like (GTorchImpl *impl, guint k, GError **error)
{
  const gboolean complex_one = gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX;
  g_autoptr (GTorchImpl) host = NULL;
  GTorchImpl *result = NULL;
  GTorchChange mode;
  gint64 i;

  gtorch_change_to_grad (&mode, FALSE);
  host = gtorch_op_zeros (impl->shape, impl->n_dims,
                          complex_one ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64,
                          gtorch_device_cpu (), error);
  if (host != NULL && gtorch_impl_sync (host, error))
    {
      for (i = 0; i < host->numel * (complex_one ? 2 : 1); i++)
        ((gdouble *) gtorch_impl_data (host))[i] = cos (1.0 + i + 10.0 * k);
      result = gtorch_impl_device (impl) == gtorch_device_cpu ()
                   ? g_steal_pointer (&host)
                   : gtorch_op_to_device (host, gtorch_impl_device (impl), FALSE, error);
    }
  gtorch_change_end (&mode);
  if (result != NULL)
    gtorch_autograd_ensure (result)->requires_grad = TRUE;
  return gtorch_tensor_wrap (result);
}

static gboolean
check (Target *target, gboolean second, GTorchTensor **inputs, gsize n_inputs, gdouble eps,
       gdouble atol, gdouble rtol, GError **error)
{
  g_auto (Check) self = {
    .name = second ? "gradgradcheck" : "gradcheck",
    .func = call_target,
    .data = target,
    .eps = eps,
    .atol = atol,
    .rtol = rtol,
  };
  Derivative derivative = { target, n_inputs };
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GPtrArray) outputs = NULL;
  guint i;

  if (!(eps > 0) || !(atol >= 0) || !(rtol >= 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: eps %g must be positive, atol %g and rtol %g not negative"), self.name,
                   eps, atol, rtol);
      return FALSE;
    }
  if (!take_inputs (&self, inputs, n_inputs, error))
    return FALSE;
  if (!second)
    return run_check (&self, error);

  outputs = call_target (self.inputs, self.n, target, error);
  if (outputs == NULL)
    return FALSE;
  self.inputs = g_renew (GTorchTensor *, self.inputs, self.n + outputs->len);
  for (i = 0; i < outputs->len; i++)
    {
      GTorchImpl *output = gtorch_tensor_unwrap (outputs->pdata[i]);
      GTorchTensor *seed;

      if (!gtorch_impl_requires_grad (output))
        continue;
      seed = seed_like (output, i, error);
      if (seed == NULL)
        return FALSE;
      self.inputs[self.n++] = seed;
    }
  self.func = call_derivative;
  self.data = &derivative;
  return run_check (&self, error);
}

/**
 * gtorch_gradcheck:
 * @func: (scope call) (closure user_data): a function of @inputs
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to check it; those that require grad must be float64 or complex128
 * @n_inputs: the length of @inputs
 * @eps: by how much elements are changed; 1e-6 is good
 * @atol: the difference that is allowed; 1e-5 is good
 * @rtol: the difference that is allowed in addition, relative to the gradient; 1e-3 is good
 * @error: return location for an error
 *
 * Checks the gradients of a function against differences of its values. @inputs are not changed.
 *
 * ```c
 * if (!gtorch_gradcheck (my_function, NULL, &x, 1, 1e-6, 1e-5, 1e-3, &error))
 *   g_printerr ("%s\n", error->message);
 * ```
 *
 * Returns: %TRUE if they agree, or %FALSE with %GTORCH_ERROR_AUTOGRAD, which tells the first element where
 *   they do not and both values, or another error if it cannot be checked
 *
 * Since: 0.1
 */
gboolean
gtorch_gradcheck (GTorchGradcheckFunc func, gpointer user_data, GTorchTensor **inputs,
                  gsize n_inputs, gdouble eps, gdouble atol, gdouble rtol, GError **error)
{
  Target target = { func, user_data, NULL };

  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, FALSE);
  return check (&target, FALSE, inputs, n_inputs, eps, atol, rtol, error);
}

/**
 * gtorch_gradgradcheck:
 * @func: (scope call) (closure user_data): a function of @inputs
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to check it; those that require grad must be float64 or complex128
 * @n_inputs: the length of @inputs
 * @eps: by how much elements are changed; 1e-6 is good
 * @atol: the difference that is allowed; 1e-5 is good
 * @rtol: the difference that is allowed in addition, relative to the gradient; 1e-3 is good
 * @error: return location for an error
 *
 * Checks the gradients of the gradients of a function, by its inputs and by the gradients of its outputs.
 *
 * Returns: %TRUE if they agree, or %FALSE with @error set as by [func@gradcheck]
 *
 * Since: 0.1
 */
gboolean
gtorch_gradgradcheck (GTorchGradcheckFunc func, gpointer user_data, GTorchTensor **inputs,
                      gsize n_inputs, gdouble eps, gdouble atol, gdouble rtol, GError **error)
{
  Target target = { func, user_data, NULL };

  g_return_val_if_fail (func != NULL, FALSE);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, FALSE);
  return check (&target, TRUE, inputs, n_inputs, eps, atol, rtol, error);
}

/**
 * gtorch_gradcheck_function:
 * @function: a function
 * @inputs: (array length=n_inputs): where to check it
 * @n_inputs: the length of @inputs
 * @eps: by how much elements are changed
 * @atol: the difference that is allowed
 * @rtol: the difference that is allowed in addition, relative to the gradient
 * @error: return location for an error
 *
 * Does what [func@gradcheck] does for a [class@Function], with all its outputs.
 *
 * Returns: %TRUE if gradients and differences agree, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_gradcheck_function (GTorchFunction *function, GTorchTensor **inputs, gsize n_inputs,
                           gdouble eps, gdouble atol, gdouble rtol, GError **error)
{
  Target target = { NULL, NULL, function };

  g_return_val_if_fail (GTORCH_IS_FUNCTION (function), FALSE);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, FALSE);
  return check (&target, FALSE, inputs, n_inputs, eps, atol, rtol, error);
}

/**
 * gtorch_gradgradcheck_function:
 * @function: a function
 * @inputs: (array length=n_inputs): where to check it
 * @n_inputs: the length of @inputs
 * @eps: by how much elements are changed
 * @atol: the difference that is allowed
 * @rtol: the difference that is allowed in addition, relative to the gradient
 * @error: return location for an error
 *
 * Does what [func@gradgradcheck] does for a [class@Function], with all its outputs.
 *
 * Returns: %TRUE if gradients and differences agree, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_gradgradcheck_function (GTorchFunction *function, GTorchTensor **inputs, gsize n_inputs,
                               gdouble eps, gdouble atol, gdouble rtol, GError **error)
{
  Target target = { NULL, NULL, function };

  g_return_val_if_fail (GTORCH_IS_FUNCTION (function), FALSE);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, FALSE);
  return check (&target, TRUE, inputs, n_inputs, eps, atol, rtol, error);
}
