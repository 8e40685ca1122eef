/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/* The library's subclasses (GTorchParameter) derive from it. */
struct _GTorchTensor
{
  GObject parent_instance;
  GTorchImpl *impl; /* NULL only in an object that a binding created with g_object_new () */
};

/* Creates an object of a subclass around impl (taking its reference), which must not have one yet. */
GTorchTensor *gtorch_tensor_wrap_as (GType type, GTorchImpl *impl);

/* For the generated functions: returns the impl of a tensor argument, an empty one for a bare object. */
static inline GTorchImpl *
gtorch_tensor_unwrap (GTorchTensor *tensor)
{
  return G_LIKELY (tensor->impl != NULL) ? tensor->impl : gtorch_tensor_get_impl (tensor);
}

/* Returns a new array of the borrowed impls of the tensors. */
GTorchImpl **gtorch_tensors_unwrap (GTorchTensor **tensors, gsize n);
/* Converts an array of impls (taking its references) to an array of objects. NULL for NULL. */
GPtrArray *gtorch_tensors_wrap (GPtrArray *impls);

G_END_DECLS
