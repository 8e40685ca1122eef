/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Products of derivatives and vectors. A product with the Jacobian from the right, for which backward passes
 * are not made, is the derivative of a product from the left by its vector, in which that is linear. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-functional-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "tensor/gtorch-tensor-private.h"

/* Computes the products, which it puts into *products, from the inputs; returns the outputs. */
typedef GPtrArray *(*Compute) (const GTorchFunctional *self, GPtrArray *inputs, GTorchTensor **v,
                               gsize n_v, GPtrArray **products, GError **error);

static GPtrArray *
run (const GTorchFunctional *self, Compute compute, GTorchTensor **inputs, gsize n_inputs,
     GTorchTensor **v, gsize n_v, GPtrArray **products, GError **error)
{
  g_autoptr (GPtrArray) given = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GPtrArray) found = NULL;
  GTorchChange mode;

  gtorch_change_to_grad (&mode, TRUE);
  given = gtorch_functional_inputs (self, inputs, n_inputs, error);
  if (given != NULL)
    outputs = compute (self, given, v, n_v, &found, error);
  if (outputs != NULL)
    found = gtorch_functional_finish (self, found, error);
  if (outputs != NULL && found != NULL)
    outputs = gtorch_functional_finish (self, outputs, error);
  gtorch_change_end (&mode);
  if (outputs == NULL || found == NULL)
    return NULL;
  *products = g_steal_pointer (&found);
  return g_steal_pointer (&outputs);
}

static GPtrArray *
vjp (const GTorchFunctional *self, GPtrArray *inputs, GTorchTensor **v, gsize n_v,
     GPtrArray **products, GError **error)
{
  g_autoptr (GPtrArray) outputs = gtorch_functional_call (self, inputs, error);
  g_autoptr (GPtrArray) vector = NULL;
  GPtrArray *grads;

  if (outputs == NULL
      || !gtorch_functional_vector (self, v, n_v, outputs, _ ("output"), &vector, error))
    return NULL;
  grads = gtorch_functional_grad (outputs, inputs, vector, self->create_graph, self->create_graph,
                                  error);
  *products = gtorch_functional_fill (self, grads, inputs, _ ("output"), _ ("input"), error);
  return *products != NULL ? g_steal_pointer (&outputs) : NULL;
}

static GPtrArray *
jvp (const GTorchFunctional *self, GPtrArray *inputs, GTorchTensor **v, gsize n_v,
     GPtrArray **products, GError **error)
{
  g_autoptr (GPtrArray) vector = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GPtrArray) weights = NULL;
  g_autoptr (GPtrArray) linear = NULL;
  GPtrArray *grads;

  if (!gtorch_functional_vector (self, v, n_v, inputs, _ ("input"), &vector, error))
    return NULL;
  outputs = gtorch_functional_call (self, inputs, error);
  weights = outputs != NULL ? gtorch_functional_zeros (outputs, error) : NULL;
  if (weights == NULL)
    return NULL;
  linear = gtorch_functional_grad (outputs, inputs, weights, TRUE, TRUE, error);
  if (linear == NULL || !gtorch_functional_check (self, linear, _ ("gradient"), error))
    return NULL;
  grads = gtorch_functional_grad (linear, weights, vector, self->create_graph, self->create_graph,
                                  error);
  *products = gtorch_functional_fill (self, grads, outputs, _ ("product"), _ ("output"), error);
  return *products != NULL ? g_steal_pointer (&outputs) : NULL;
}

/* Returns the outputs and, in *slope, their gradients, which are recorded. */
static GPtrArray *
differentiate (const GTorchFunctional *self, GPtrArray *inputs, GPtrArray **slope, GError **error)
{
  g_autoptr (GPtrArray) outputs = gtorch_functional_call (self, inputs, error);

  if (outputs == NULL || !gtorch_functional_is_scalar (self, outputs, error))
    return NULL;
  *slope = gtorch_functional_grad (outputs, inputs, NULL, TRUE, TRUE, error);
  if (*slope == NULL || !gtorch_functional_check (self, *slope, _ ("gradient"), error))
    return NULL;
  return g_steal_pointer (&outputs);
}

static GPtrArray *
vhp (const GTorchFunctional *self, GPtrArray *inputs, GTorchTensor **v, gsize n_v,
     GPtrArray **products, GError **error)
{
  g_autoptr (GPtrArray) vector = NULL;
  g_autoptr (GPtrArray) slope = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  GPtrArray *grads;

  if (!gtorch_functional_vector (self, v, n_v, inputs, _ ("input"), &vector, error))
    return NULL;
  outputs = differentiate (self, inputs, &slope, error);
  if (outputs == NULL)
    return NULL;
  grads =
      gtorch_functional_grad (slope, inputs, vector, self->create_graph, self->create_graph, error);
  *products = gtorch_functional_fill (self, grads, inputs, _ ("gradient"), _ ("input"), error);
  return *products != NULL ? g_steal_pointer (&outputs) : NULL;
}

static GPtrArray *
hvp (const GTorchFunctional *self, GPtrArray *inputs, GTorchTensor **v, gsize n_v,
     GPtrArray **products, GError **error)
{
  g_autoptr (GPtrArray) vector = NULL;
  g_autoptr (GPtrArray) slope = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GPtrArray) weights = NULL;
  g_autoptr (GPtrArray) linear = NULL;
  GPtrArray *grads;

  if (!gtorch_functional_vector (self, v, n_v, inputs, _ ("input"), &vector, error))
    return NULL;
  outputs = differentiate (self, inputs, &slope, error);
  weights = outputs != NULL ? gtorch_functional_zeros (inputs, error) : NULL;
  if (weights == NULL)
    return NULL;
  linear = gtorch_functional_grad (slope, inputs, weights, TRUE, TRUE, error);
  if (linear == NULL || !gtorch_functional_check (self, linear, _ ("second derivative"), error))
    return NULL;
  grads = gtorch_functional_grad (linear, weights, vector, self->create_graph, self->create_graph,
                                  error);
  *products = gtorch_functional_fill (self, grads, inputs, _ ("product"), _ ("input"), error);
  return *products != NULL ? g_steal_pointer (&outputs) : NULL;
}

/**
 * gtorch_autograd_vjp:
 * @func: (scope call) (closure user_data): a function of @inputs
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @v: (array length=n_v) (nullable): a tensor for each output, of its shape
 * @n_v: the length of @v
 * @create_graph: record the computation, so that the results can be differentiated
 * @strict: fail if something does not depend on an input, instead of giving zeros
 * @products: (out) (transfer container) (element-type GTorchTensor): return location for the products
 * @error: return location for an error
 *
 * Computes the product of a vector and the Jacobian of a function: by one backward pass.
 *
 * There is a product for each input, of its shape. @v may be missing for a single output of one element.
 *
 * It is [`torch.autograd.functional.vjp`](https://pytorch.org/docs/stable/autograd.html).
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs of @func, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_vjp (GTorchFunctionalFunc func, gpointer user_data, GTorchTensor **inputs,
                     gsize n_inputs, GTorchTensor **v, gsize n_v, gboolean create_graph,
                     gboolean strict, GPtrArray **products, GError **error)
{
  const GTorchFunctional self = { "vjp", func, user_data, create_graph, strict };

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  g_return_val_if_fail (v != NULL || n_v == 0, NULL);
  g_return_val_if_fail (products != NULL, NULL);
  return run (&self, vjp, inputs, n_inputs, v, n_v, products, error);
}

/**
 * gtorch_autograd_jvp:
 * @func: (scope call) (closure user_data): a function of @inputs
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @v: (array length=n_v) (nullable): a tensor for each input, of its shape
 * @n_v: the length of @v
 * @create_graph: record the computation, so that the results can be differentiated
 * @strict: fail if something does not depend on an input, instead of giving zeros
 * @products: (out) (transfer container) (element-type GTorchTensor): return location for the products
 * @error: return location for an error
 *
 * Computes the product of the Jacobian of a function and a vector: the change of the outputs along it.
 *
 * There is a product for each output, of its shape. @v may be missing for a single input of one element. Two
 * backward passes compute it.
 *
 * It is [`torch.autograd.functional.jvp`](https://pytorch.org/docs/stable/autograd.html).
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs of @func, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_jvp (GTorchFunctionalFunc func, gpointer user_data, GTorchTensor **inputs,
                     gsize n_inputs, GTorchTensor **v, gsize n_v, gboolean create_graph,
                     gboolean strict, GPtrArray **products, GError **error)
{
  const GTorchFunctional self = { "jvp", func, user_data, create_graph, strict };

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  g_return_val_if_fail (v != NULL || n_v == 0, NULL);
  g_return_val_if_fail (products != NULL, NULL);
  return run (&self, jvp, inputs, n_inputs, v, n_v, products, error);
}

/**
 * gtorch_autograd_vhp:
 * @func: (scope call) (closure user_data): a function of @inputs with a single output of one element
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @v: (array length=n_v) (nullable): a tensor for each input, of its shape
 * @n_v: the length of @v
 * @create_graph: record the computation, so that the results can be differentiated
 * @strict: fail if something does not depend on an input, instead of giving zeros
 * @products: (out) (transfer container) (element-type GTorchTensor): return location for the products
 * @error: return location for an error
 *
 * Computes the product of a vector and the Hessian of a function.
 *
 * There is a product for each input, of its shape. @v may be missing for a single input of one element.
 *
 * It is [`torch.autograd.functional.vhp`](https://pytorch.org/docs/stable/autograd.html).
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs of @func, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_vhp (GTorchFunctionalFunc func, gpointer user_data, GTorchTensor **inputs,
                     gsize n_inputs, GTorchTensor **v, gsize n_v, gboolean create_graph,
                     gboolean strict, GPtrArray **products, GError **error)
{
  const GTorchFunctional self = { "vhp", func, user_data, create_graph, strict };

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  g_return_val_if_fail (v != NULL || n_v == 0, NULL);
  g_return_val_if_fail (products != NULL, NULL);
  return run (&self, vhp, inputs, n_inputs, v, n_v, products, error);
}

/**
 * gtorch_autograd_hvp:
 * @func: (scope call) (closure user_data): a function of @inputs with a single output of one element
 * @user_data: data for @func
 * @inputs: (array length=n_inputs): where to compute; with @create_graph they require grad
 * @n_inputs: the length of @inputs
 * @v: (array length=n_v) (nullable): a tensor for each input, of its shape
 * @n_v: the length of @v
 * @create_graph: record the computation, so that the results can be differentiated
 * @strict: fail if something does not depend on an input, instead of giving zeros
 * @products: (out) (transfer container) (element-type GTorchTensor): return location for the products
 * @error: return location for an error
 *
 * Computes the product of the Hessian of a function and a vector.
 *
 * There is a product for each input, of its shape. @v may be missing for a single input of one element. Where
 * the Hessian is symmetric, [func@autograd_vhp] gives the same and takes less time.
 *
 * It is [`torch.autograd.functional.hvp`](https://pytorch.org/docs/stable/autograd.html).
 *
 * Returns: (transfer container) (element-type GTorchTensor): the outputs of @func, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_autograd_hvp (GTorchFunctionalFunc func, gpointer user_data, GTorchTensor **inputs,
                     gsize n_inputs, GTorchTensor **v, gsize n_v, gboolean create_graph,
                     gboolean strict, GPtrArray **products, GError **error)
{
  const GTorchFunctional self = { "hvp", func, user_data, create_graph, strict };

  g_return_val_if_fail (func != NULL, NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  g_return_val_if_fail (v != NULL || n_v == 0, NULL);
  g_return_val_if_fail (products != NULL, NULL);
  return run (&self, hvp, inputs, n_inputs, v, n_v, products, error);
}
