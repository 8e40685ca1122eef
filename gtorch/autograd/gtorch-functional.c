/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Derivatives of functions: matrices of all of them, row by row. The names and the rules are those of
 * torch.autograd.functional. */

#include "config.h"

#include "autograd/gtorch-functional.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-functional-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-callback-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

static void
unref_tensor (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

static GPtrArray *
list_new (void)
{
  return g_ptr_array_new_with_free_func (unref_tensor);
}

/* --- what all have in common --- */

GPtrArray *
gtorch_functional_inputs (const GTorchFunctional *self, GTorchTensor **inputs, gsize n,
                          GError **error)
{
  g_autoptr (GPtrArray) made = list_new ();
  gsize i;

  if (n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there are no inputs"),
                   self->op);
      return NULL;
    }
  for (i = 0; i < n; i++)
    {
      GTorchImpl *impl = GTORCH_IS_TENSOR (inputs[i]) ? gtorch_tensor_unwrap (inputs[i]) : NULL;
      GTorchTensor *one;

      if (impl == NULL || impl->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: input %zu is not a tensor or was released"), self->op, i);
          return NULL;
        }
      if (self->create_graph)
        one = gtorch_tensor_view_as (inputs[i], inputs[i], error);
      else
        one = gtorch_tensor_wrap (gtorch_impl_alias (impl));
      if (one == NULL)
        return NULL;
      g_ptr_array_add (made, one);
      if (!self->create_graph && !gtorch_tensor_set_requires_grad (one, TRUE, error))
        {
          g_prefix_error (error, _ ("%s: input %zu: "), self->op, i);
          return NULL;
        }
      if (!gtorch_tensor_get_requires_grad (one))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("%s: input %zu, of shape %s, does not require grad, which create_graph "
                          "needs"),
                       self->op, i, gtorch_impl_shape_str (impl));
          return NULL;
        }
    }
  return g_steal_pointer (&made);
}

gboolean
gtorch_functional_check (const GTorchFunctional *self, GPtrArray *tensors, const gchar *what,
                         GError **error)
{
  guint i;

  for (i = 0; self->strict && i < tensors->len; i++)
    if (tensors->pdata[i] == NULL || !gtorch_tensor_get_requires_grad (tensors->pdata[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                     _ ("%s: %s %u does not depend on the inputs by operations with gradients, "
                        "which strict asks for"),
                     self->op, what, i);
        return FALSE;
      }
  return TRUE;
}

GPtrArray *
gtorch_functional_call (const GTorchFunctional *self, GPtrArray *inputs, GError **error)
{
  GError *local = NULL;
  GPtrArray *given =
      self->func ((GTorchTensor **) inputs->pdata, inputs->len, self->user_data, &local);
  g_autoptr (GPtrArray) outputs = NULL;
  gpointer *elements;
  gsize i, n;

  if (given != NULL)
    {
      /* arrays from other languages may have no function that frees their elements */
      elements = g_ptr_array_steal (given, &n);
      g_ptr_array_unref (given);
      outputs = list_new ();
      for (i = 0; i < n; i++)
        g_ptr_array_add (outputs, elements[i]);
      g_free (elements);
    }
  if (!gtorch_callback_gave (self->op, outputs, local, error))
    return NULL;
  for (i = 0; i < outputs->len; i++)
    if (!GTORCH_IS_TENSOR (outputs->pdata[i])
        || gtorch_tensor_unwrap (outputs->pdata[i])->storage == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: output %zu of the function is not a tensor or was released"), self->op,
                     i);
        return NULL;
      }
  return gtorch_functional_check (self, outputs, _ ("output"), error) ? g_steal_pointer (&outputs)
                                                                      : NULL;
}

gboolean
gtorch_functional_vector (const GTorchFunctional *self, GTorchTensor **v, gsize n_v,
                          GPtrArray *tensors, const gchar *what, GPtrArray **vector, GError **error)
{
  GPtrArray *made;
  gsize i;

  *vector = NULL;
  if (n_v == 0)
    {
      if (tensors->len == 1 && gtorch_tensor_unwrap (tensors->pdata[0])->numel == 1)
        return TRUE;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: v may be missing only where there is a single %s of one element"),
                   self->op, what);
      return FALSE;
    }
  if (n_v != tensors->len)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: v has %zu tensors for %u: there must be one for each %s"), self->op, n_v,
                   tensors->len, what);
      return FALSE;
    }
  for (i = 0; i < n_v; i++)
    {
      GTorchImpl *one = GTORCH_IS_TENSOR (v[i]) ? gtorch_tensor_unwrap (v[i]) : NULL;
      GTorchImpl *other = gtorch_tensor_unwrap (tensors->pdata[i]);

      if (one == NULL || !gtorch_impl_same_shape (one, other))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: v %zu has shape %s, the %s %s"), self->op, i,
                       one != NULL ? gtorch_impl_shape_str (one) : "-", what,
                       gtorch_impl_shape_str (other));
          return FALSE;
        }
    }
  made = list_new ();
  for (i = 0; i < n_v; i++)
    {
      GTorchImpl *impl = gtorch_tensor_unwrap (v[i]);

      g_ptr_array_add (made, self->create_graph ? g_object_ref (v[i])
                                                : gtorch_tensor_wrap (gtorch_impl_alias (impl)));
    }
  *vector = made;
  return TRUE;
}

GPtrArray *
gtorch_functional_grad (GPtrArray *outputs, GPtrArray *inputs, GPtrArray *vector,
                        gboolean retain_graph, gboolean create_graph, GError **error)
{
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) weights = g_ptr_array_new ();
  g_autoptr (GPtrArray) grads = NULL;
  GPtrArray *results;
  guint i;

  for (i = 0; i < outputs->len; i++)
    if (outputs->pdata[i] != NULL && gtorch_tensor_get_requires_grad (outputs->pdata[i]))
      {
        g_ptr_array_add (roots, outputs->pdata[i]);
        if (vector != NULL)
          g_ptr_array_add (weights, vector->pdata[i]);
      }
  results = list_new ();
  g_ptr_array_set_size (results, inputs->len);
  if (roots->len == 0)
    return results;
  grads = gtorch_autograd_grad ((GTorchTensor **) roots->pdata, roots->len,
                                (GTorchTensor **) inputs->pdata, inputs->len,
                                (GTorchTensor **) weights->pdata, weights->len, retain_graph,
                                create_graph, TRUE, error);
  if (grads == NULL)
    {
      g_ptr_array_unref (results);
      return NULL;
    }
  for (i = 0; i < inputs->len; i++)
    results->pdata[i] = grads->pdata[i] != NULL ? g_object_ref (grads->pdata[i]) : NULL;
  return results;
}

GPtrArray *
gtorch_functional_fill (const GTorchFunctional *self, GPtrArray *grads, GPtrArray *tensors,
                        const gchar *what, const gchar *of, GError **error)
{
  g_autoptr (GPtrArray) list = grads;
  guint i;

  for (i = 0; list != NULL && i < list->len; i++)
    {
      const gboolean is_missing = list->pdata[i] == NULL;

      if (self->strict
          && (is_missing
              || (self->create_graph && !gtorch_tensor_get_requires_grad (list->pdata[i]))))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       is_missing ? _ ("%s: the %s does not depend on %s %u, which strict forbids")
                                  : _ ("%s: the derivative of the %s by %s %u does not depend on "
                                       "the inputs, which strict forbids with create_graph"),
                       self->op, what, of, i);
          return NULL;
        }
      if (is_missing)
        list->pdata[i] = gtorch_tensor_zeros_like (tensors->pdata[i], GTORCH_DTYPE_NONE, error);
      if (list->pdata[i] == NULL)
        return NULL;
    }
  return g_steal_pointer (&list);
}

GPtrArray *
gtorch_functional_finish (const GTorchFunctional *self, GPtrArray *tensors, GError **error)
{
  g_autoptr (GPtrArray) list = tensors;
  guint i;

  for (i = 0; list != NULL && !self->create_graph && i < list->len; i++)
    {
      GTorchTensor *plain = gtorch_tensor_detach (list->pdata[i], error);

      if (plain == NULL)
        return NULL;
      g_object_unref (list->pdata[i]);
      list->pdata[i] = plain;
    }
  return g_steal_pointer (&list);
}

GPtrArray *
gtorch_functional_zeros (GPtrArray *tensors, GError **error)
{
  g_autoptr (GPtrArray) list = list_new ();
  guint i;

  for (i = 0; i < tensors->len; i++)
    {
      GTorchTensor *zeros = gtorch_tensor_zeros_like (tensors->pdata[i], GTORCH_DTYPE_NONE, error);

      if (zeros == NULL)
        return NULL;
      g_ptr_array_add (list, zeros);
      if (gtorch_dtype_kind (zeros->impl->dtype) >= GTORCH_KIND_FLOAT
          && !gtorch_tensor_set_requires_grad (zeros, TRUE, error))
        return NULL;
    }
  return g_steal_pointer (&list);
}

gboolean
gtorch_functional_is_scalar (const GTorchFunctional *self, GPtrArray *outputs, GError **error)
{
  if (outputs->len == 1 && gtorch_tensor_unwrap (outputs->pdata[0])->numel == 1)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the function gave %u outputs, the first of shape %s: a single one of one "
                  "element is wanted"),
               self->op, outputs->len,
               outputs->len > 0 ? gtorch_impl_shape_str (gtorch_tensor_unwrap (outputs->pdata[0]))
                                : "-");
  return FALSE;
}

/* --- the matrices --- */

/* Returns the gradients of element i of an output by all inputs. */
static GPtrArray *
row_of (const GTorchFunctional *self, GTorchTensor *flat, gint64 i, guint output, GPtrArray *inputs,
        GError **error)
{
  g_autoptr (GPtrArray) one = list_new ();
  g_autofree gchar *what = g_strdup_printf (_ ("output %u"), output);

  g_ptr_array_add (one, gtorch_tensor_select (flat, 0, i, error));
  if (one->pdata[0] == NULL)
    return NULL;
  return gtorch_functional_fill (self,
                                 gtorch_functional_grad (one, inputs, NULL, TRUE,
                                                         self->create_graph, error),
                                 inputs, what, _ ("input"), error);
}

/* Puts rows together; without rows, the result has no elements. */
static GTorchTensor *
stack_rows (const GTorchFunctional *self, GPtrArray *rows, const GTorchImpl *output,
            GTorchTensor *input, GError **error)
{
  const GTorchImpl *by = gtorch_tensor_unwrap (input);
  const guint n_dims = output->n_dims + by->n_dims;
  gint64 shape[2 * GTORCH_MAX_DIMS];
  g_autoptr (GTorchTensor) stacked = NULL;

  memcpy (shape, output->shape, output->n_dims * sizeof (gint64));
  memcpy (shape + output->n_dims, by->shape, by->n_dims * sizeof (gint64));
  if (n_dims > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the result for an output of shape %s and an input of shape %s would "
                      "have %u dimensions, more than %d"),
                   self->op, gtorch_shape_str (output->shape, output->n_dims),
                   gtorch_shape_str (by->shape, by->n_dims), n_dims, GTORCH_MAX_DIMS);
      return NULL;
    }
  if (rows->len == 0)
    return gtorch_zeros (shape, n_dims, by->dtype, gtorch_impl_device (by), error);
  stacked = gtorch_stack ((GTorchTensor **) rows->pdata, rows->len, 0, error);
  return stacked != NULL ? gtorch_tensor_reshape (stacked, shape, n_dims, error) : NULL;
}

/* Adds the derivatives of one output by all inputs. */
static gboolean
add_output (const GTorchFunctional *self, GTorchTensor *output, guint number, GPtrArray *inputs,
            GPtrArray *results, GError **error)
{
  const gint64 all = -1;
  const GTorchImpl *impl = gtorch_tensor_unwrap (output);
  g_autoptr (GTorchTensor) flat =
      impl->numel > 0 ? gtorch_tensor_reshape (output, &all, 1, error) : NULL;
  g_autoptr (GPtrArray) columns = NULL; /* for each input, the rows of its matrix */
  gboolean success = flat != NULL || impl->numel == 0;
  gint64 i;
  guint j;

  columns = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  for (j = 0; j < inputs->len; j++)
    g_ptr_array_add (columns, list_new ());
  for (i = 0; success && i < impl->numel; i++)
    {
      g_autoptr (GPtrArray) row = row_of (self, flat, i, number, inputs, error);

      success = row != NULL;
      for (j = 0; success && j < inputs->len; j++)
        g_ptr_array_add (columns->pdata[j], g_steal_pointer (&row->pdata[j]));
    }
  for (j = 0; success && j < inputs->len; j++)
    {
      GTorchTensor *matrix = stack_rows (self, columns->pdata[j], impl, inputs->pdata[j], error);

      success = matrix != NULL;
      if (success)
        g_ptr_array_add (results, matrix);
    }
  return success;
}

static GPtrArray *
jacobian (const GTorchFunctional *self, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autoptr (GPtrArray) given = gtorch_functional_inputs (self, inputs, n_inputs, error);
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GPtrArray) results = NULL;
  guint i;

  if (given == NULL)
    return NULL;
  outputs = gtorch_functional_call (self, given, error);
  if (outputs == NULL)
    return NULL;
  results = list_new ();
  for (i = 0; i < outputs->len; i++)
    if (!add_output (self, outputs->pdata[i], i, given, results, error))
      return NULL;
  return gtorch_functional_finish (self, g_steal_pointer (&results), error);
}

/**
 * gtorch_autograd_jacobian:
 * @func: (scope call) (closure user_data): a function of @inputs
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute the derivatives; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @create_graph: record the computation, so that the result can be differentiated
 * @strict: fail if an output does not depend on an input, instead of giving zeros
 * @error: return location for an error
 *
 * Computes the derivatives of all elements of the outputs by all elements of the inputs.
 *
 * There is a tensor for each output and each input, whose shape is that of the output followed by that of the
 * input; those of the first output come first. Each element of an output takes a backward pass. Of complex
 * numbers the elements are what a backward pass gives.
 *
 * It is [`torch.autograd.functional.jacobian`](https://pytorch.org/docs/stable/autograd.html).
 *
 * ```c
 * jacobian = gtorch_autograd_jacobian (square, NULL, &x, 1, FALSE, FALSE, &error);
 * // square of [1, 2]: [[2, 0], [0, 4]]
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the derivatives, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_jacobian (GTorchFunctionalFunc func, gpointer user_data, GTorchTensor **inputs,
                          gsize n_inputs, gboolean create_graph, gboolean strict, GError **error)
{
  const GTorchFunctional self = { "jacobian", func, user_data, create_graph, strict };
  GTorchChange mode;
  GPtrArray *results;

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  gtorch_change_to_grad (&mode, TRUE);
  results = jacobian (&self, inputs, n_inputs, error);
  gtorch_change_end (&mode);
  return results;
}

GPtrArray *
gtorch_functional_call_gradient (GTorchTensor **inputs, gsize n_inputs, gpointer data,
                                 GError **error)
{
  const GTorchFunctional *outer = data;
  GTorchFunctional self = { "hessian", outer->func, outer->user_data, TRUE, outer->strict };
  g_autoptr (GPtrArray) given = gtorch_functional_inputs (&self, inputs, n_inputs, error);
  g_autoptr (GPtrArray) outputs =
      given != NULL ? gtorch_functional_call (&self, given, error) : NULL;
  g_autoptr (GPtrArray) results = NULL;

  if (outputs == NULL || !gtorch_functional_is_scalar (&self, outputs, error))
    return NULL;
  self.strict = FALSE; /* the derivatives are checked as outputs */
  results = list_new ();
  return add_output (&self, outputs->pdata[0], 0, given, results, error)
             ? g_steal_pointer (&results)
             : NULL;
}

/**
 * gtorch_autograd_hessian:
 * @func: (scope call) (closure user_data): a function of @inputs with a single output of one element
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute the derivatives; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @create_graph: record the computation, so that the result can be differentiated
 * @strict: fail if a derivative does not depend on an input, instead of giving zeros
 * @error: return location for an error
 *
 * Computes all second derivatives of a function.
 *
 * There is a tensor for each two inputs, whose shape is that of the first followed by that of the second;
 * those with the first input as the first come first.
 *
 * It is [`torch.autograd.functional.hessian`](https://pytorch.org/docs/stable/autograd.html).
 *
 * Returns: (transfer container) (element-type GTorchTensor): the derivatives, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_hessian (GTorchFunctionalFunc func, gpointer user_data, GTorchTensor **inputs,
                         gsize n_inputs, gboolean create_graph, gboolean strict, GError **error)
{
  const GTorchFunctional inner = { "hessian", func, user_data, create_graph, strict };
  const GTorchFunctional self = { "hessian", gtorch_functional_call_gradient, (gpointer) &inner,
                                  create_graph, strict };
  GTorchChange mode;
  GPtrArray *results;

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  gtorch_change_to_grad (&mode, TRUE);
  results = jacobian (&self, inputs, n_inputs, error);
  gtorch_change_end (&mode);
  return results;
}
