/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrices of derivatives by tangents, column by column. */

#include "config.h"

#include "autograd/gtorch-functional.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-forward-ad.h"
#include "autograd/gtorch-functional-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

/* The columns of each output and input: lists of lists of tensors, outputs first. */
typedef struct
{
  const GTorchFunctional *of;
  GPtrArray *inputs;  /* GTorchTensor */
  GPtrArray *outputs; /* of the first call: only their descriptions matter */
  GPtrArray *columns; /* n_outputs * n_inputs of GPtrArray */
} Columns;

static void
columns_clear (Columns *self)
{
  g_clear_pointer (&self->inputs, g_ptr_array_unref);
  g_clear_pointer (&self->outputs, g_ptr_array_unref);
  g_clear_pointer (&self->columns, g_ptr_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Columns, columns_clear)

/* Returns zeros with a one at element i. */
static GTorchTensor *
unit_new (const GTorchImpl *like, gint64 i, GError **error)
{
  g_autoptr (GTorchImpl) flat = gtorch_op_zeros (&like->numel, 1, like->dtype, like->device, error);
  g_autoptr (GTorchImpl) one = flat != NULL ? gtorch_op_select (flat, 0, i, error) : NULL;

  if (one == NULL || !gtorch_op_fill_inplace (one, 1, error))
    return NULL;
  return gtorch_tensor_wrap (gtorch_op_reshape (flat, like->shape, like->n_dims, error));
}

/* Returns the inputs, number j with the tangent. */
static GPtrArray *
dual_inputs (Columns *self, guint j, GTorchTensor *tangent, GError **error)
{
  g_autoptr (GPtrArray) duals = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < self->inputs->len; i++)
    {
      GTorchTensor *one = i == j && tangent != NULL
                              ? gtorch_forward_ad_make_dual (self->inputs->pdata[i], tangent, error)
                              : g_object_ref (self->inputs->pdata[i]);

      if (one == NULL)
        return NULL;
      g_ptr_array_add (duals, one);
    }
  return g_steal_pointer (&duals);
}

/* Keeps the outputs of the first call, and compares later ones with them. */
static gboolean
keep_outputs (Columns *self, GPtrArray *outputs, GError **error)
{
  guint i;

  if (self->outputs == NULL)
    {
      self->outputs = g_ptr_array_ref (outputs);
      self->columns = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
      for (i = 0; i < outputs->len * self->inputs->len; i++)
        g_ptr_array_add (self->columns, g_ptr_array_new_with_free_func (g_object_unref));
      return TRUE;
    }
  for (i = 0; i < outputs->len && outputs->len == self->outputs->len; i++)
    if (!gtorch_impl_same_shape (gtorch_tensor_unwrap (outputs->pdata[i]),
                                 gtorch_tensor_unwrap (self->outputs->pdata[i])))
      break;
  if (i == self->outputs->len && i == outputs->len)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the function gave other outputs in a later call, of which the forward mode "
                  "takes one for each element of the inputs"),
               self->of->op);
  return FALSE;
}

/* Adds the tangents of the outputs to the columns of input j. */
static gboolean
add_column (Columns *self, GPtrArray *outputs, guint j, GError **error)
{
  guint i;

  for (i = 0; i < outputs->len; i++)
    {
      g_autoptr (GTorchTensor) tangent = NULL;
      g_autoptr (GTorchTensor) primal =
          gtorch_forward_ad_unpack_dual (outputs->pdata[i], &tangent, error);

      if (primal == NULL)
        return FALSE;
      if (tangent == NULL && self->of->strict)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("%s: output %u does not depend on input %u, which strict forbids"),
                       self->of->op, i, j);
          return FALSE;
        }
      if (tangent == NULL)
        {
          const GTorchImpl *impl = gtorch_tensor_unwrap (primal);

          tangent = gtorch_tensor_wrap (
              gtorch_op_zeros (impl->shape, impl->n_dims, impl->dtype, impl->device, error));
        }
      if (tangent == NULL)
        return FALSE;
      g_ptr_array_add (self->columns->pdata[i * self->inputs->len + j], g_steal_pointer (&tangent));
    }
  return TRUE;
}

/* Calls the function with the derivative by element k of input j, or without any if that is negative. */
static gboolean
call (Columns *self, guint j, gint64 k, GError **error)
{
  GTorchFunctional plain = *self->of;
  g_autoptr (GTorchTensor) unit = NULL;
  g_autoptr (GPtrArray) duals = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  gboolean success;

  plain.strict = FALSE; /* the tangents tell */
  if (k >= 0)
    {
      unit = unit_new (gtorch_tensor_unwrap (self->inputs->pdata[j]), k, error);
      if (unit == NULL)
        return FALSE;
    }
  if (gtorch_forward_ad_enter_dual_level (error) < 0)
    return FALSE;
  duals = dual_inputs (self, j, unit, error);
  outputs = duals != NULL ? gtorch_functional_call (&plain, duals, error) : NULL;
  success = outputs != NULL && keep_outputs (self, outputs, error)
            && (k < 0 || add_column (self, outputs, j, error));
  gtorch_forward_ad_exit_dual_level (NULL);
  return success;
}

/* Puts the columns of one output and one input together. */
static GTorchTensor *
matrix_new (Columns *self, guint i, guint j, GError **error)
{
  const GTorchImpl *output = gtorch_tensor_unwrap (self->outputs->pdata[i]);
  const GTorchImpl *input = gtorch_tensor_unwrap (self->inputs->pdata[j]);
  GPtrArray *columns = self->columns->pdata[i * self->inputs->len + j];
  const guint n_dims = output->n_dims + input->n_dims;
  gint64 shape[2 * GTORCH_MAX_DIMS];
  g_autofree GTorchImpl **impls = NULL;
  g_autoptr (GTorchImpl) stacked = NULL;

  memcpy (shape, output->shape, output->n_dims * sizeof (gint64));
  memcpy (shape + output->n_dims, input->shape, input->n_dims * sizeof (gint64));
  if (n_dims > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the result for an output of shape %s and an input of shape %s would "
                      "have %u dimensions, more than %d"),
                   self->of->op, gtorch_shape_str (output->shape, output->n_dims),
                   gtorch_shape_str (input->shape, input->n_dims), n_dims, GTORCH_MAX_DIMS);
      return NULL;
    }
  if (columns->len == 0)
    return gtorch_tensor_wrap (
        gtorch_op_zeros (shape, n_dims, output->dtype, output->device, error));
  impls = gtorch_tensors_unwrap ((GTorchTensor **) columns->pdata, columns->len);
  stacked = gtorch_op_stack (impls, columns->len, -1, error);
  return stacked != NULL ? gtorch_tensor_wrap (gtorch_op_reshape (stacked, shape, n_dims, error))
                         : NULL;
}

static GPtrArray *
compute (Columns *self, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autoptr (GPtrArray) results = g_ptr_array_new_with_free_func (g_object_unref);
  guint i, j;
  gint64 k;

  self->inputs = gtorch_functional_inputs (self->of, inputs, n_inputs, error);
  if (self->inputs == NULL)
    return NULL;
  for (j = 0; j < self->inputs->len; j++)
    for (k = 0; k < gtorch_tensor_unwrap (self->inputs->pdata[j])->numel; k++)
      if (!call (self, j, k, error))
        return NULL;
  if (self->outputs == NULL && !call (self, 0, -1, error)) /* there are no elements */
    return NULL;
  for (i = 0; i < self->outputs->len; i++)
    for (j = 0; j < self->inputs->len; j++)
      {
        GTorchTensor *matrix = matrix_new (self, i, j, error);

        if (matrix == NULL)
          return NULL;
        g_ptr_array_add (results, matrix);
      }
  return gtorch_functional_finish (self->of, g_steal_pointer (&results), error);
}

/**
 * gtorch_autograd_jacobian_forward:
 * @func: (scope call) (closure user_data): a function of @inputs
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute the derivatives; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @create_graph: record the computation, so that the result can be differentiated
 * @strict: fail if an output does not depend on an input, instead of giving zeros
 * @error: return location for an error
 *
 * Computes what [func@autograd_jacobian] does in forward mode: a call of the function for each element of the
 * inputs, and no backward pass. That is faster for functions with few inputs and many outputs.
 *
 * It opens a level of dual tensors for each call, so none may be open.
 *
 * It is [`torch.autograd.functional.jacobian`](https://pytorch.org/docs/stable/autograd.html) with the strategy
 * `forward-mode`.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the derivatives, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_jacobian_forward (GTorchFunctionalFunc func, gpointer user_data,
                                  GTorchTensor **inputs, gsize n_inputs, gboolean create_graph,
                                  gboolean strict, GError **error)
{
  const GTorchFunctional of = { "jacobian", func, user_data, create_graph, strict };
  g_auto (Columns) self = { .of = &of };
  GTorchChange mode;
  GPtrArray *results;

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  gtorch_change_to_grad (&mode, create_graph);
  results = compute (&self, inputs, n_inputs, error);
  gtorch_change_end (&mode);
  return results;
}

/**
 * gtorch_autograd_hessian_forward:
 * @func: (scope call) (closure user_data): a function of @inputs with a single output of one element
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute the derivatives; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @create_graph: record the computation, so that the result can be differentiated
 * @strict: fail if a derivative does not depend on an input, instead of giving zeros
 * @error: return location for an error
 *
 * Computes what [func@autograd_hessian] does with tangents of gradients: a call of the function and a
 * backward pass for each element of the inputs.
 *
 * It is [`torch.autograd.functional.hessian`](https://pytorch.org/docs/stable/autograd.html) with the outer
 * strategy `forward-mode`.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the derivatives, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_hessian_forward (GTorchFunctionalFunc func, gpointer user_data,
                                 GTorchTensor **inputs, gsize n_inputs, gboolean create_graph,
                                 gboolean strict, GError **error)
{
  GTorchFunctional inner = { "hessian", func, user_data, TRUE, strict };
  const GTorchFunctional of = { "hessian", gtorch_functional_call_gradient, &inner, create_graph,
                                strict };
  g_auto (Columns) self = { .of = &of };
  GTorchChange mode;
  GPtrArray *results;

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  gtorch_change_to_grad (&mode, TRUE);
  results = compute (&self, inputs, n_inputs, error);
  gtorch_change_end (&mode);
  return results;
}
