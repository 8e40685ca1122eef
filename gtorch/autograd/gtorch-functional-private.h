/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-functional.h>

G_BEGIN_DECLS

/* A function whose derivatives are wanted. Lists are of GTorchTensor, with NULL where there is no gradient.
 * */
typedef struct
{
  const gchar *op; /* for errors */
  GTorchFunctionalFunc func;
  gpointer user_data;
  gboolean create_graph, strict;
} GTorchFunctional;

/* Returns inputs whose gradients can be told apart: views with create_graph, else leaves. */
GPtrArray *gtorch_functional_inputs (const GTorchFunctional *self, GTorchTensor **inputs, gsize n,
                                     GError **error);
/* Calls the function. With strict its outputs must require grad. */
GPtrArray *gtorch_functional_call (const GTorchFunctional *self, GPtrArray *inputs, GError **error);
/* Checks that there is a single output of one element. */
gboolean gtorch_functional_is_scalar (const GTorchFunctional *self, GPtrArray *outputs,
                                      GError **error);
/* Checks the vector of a product against tensors, of which `what` is the name. Without a vector there must be
 * a single element, whose vector is NULL. */
gboolean gtorch_functional_vector (const GTorchFunctional *self, GTorchTensor **v, gsize n_v,
                                   GPtrArray *tensors, const gchar *what, GPtrArray **vector,
                                   GError **error);
/* Computes the gradients of those outputs that have one. The vector may be NULL. */
GPtrArray *gtorch_functional_grad (GPtrArray *outputs, GPtrArray *inputs, GPtrArray *vector,
                                   gboolean retain_graph, gboolean create_graph, GError **error);
/* With strict, all must require grad; `what` names them. */
gboolean gtorch_functional_check (const GTorchFunctional *self, GPtrArray *tensors,
                                  const gchar *what, GError **error);
/* Replaces missing gradients by zeros like the tensors. With strict they are an error, and so are with
 * create_graph those that do not require grad; `what` is independent of `of` then. Takes the list, and
 * returns it or NULL. */
GPtrArray *gtorch_functional_fill (const GTorchFunctional *self, GPtrArray *grads,
                                   GPtrArray *tensors, const gchar *what, const gchar *of,
                                   GError **error);
/* Detaches the tensors unless create_graph is set. Takes the list, and returns it or NULL. */
GPtrArray *gtorch_functional_finish (const GTorchFunctional *self, GPtrArray *tensors,
                                     GError **error);
/* Returns zeros like the tensors, which require grad. */
GPtrArray *gtorch_functional_zeros (GPtrArray *tensors, GError **error);
/* The function whose Jacobian is the Hessian: the derivatives of the only output of another GTorchFunctional,
 * its data. */
GPtrArray *gtorch_functional_call_gradient (GTorchTensor **inputs, gsize n_inputs, gpointer data,
                                            GError **error);

G_END_DECLS
