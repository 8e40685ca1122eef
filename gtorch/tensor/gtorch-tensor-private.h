/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/* Subclasses of our own (GTorchParameter) derive from this. */
struct _GTorchTensor
{
  GObject parent_instance;
  GTorchImpl *impl; /* NULL only in an object that a binding made with g_object_new () */
};

/* Makes an object of a subclass around impl (whose reference is taken), which must have none yet. */
GTorchTensor *gtorch_tensor_wrap_as (GType type, GTorchImpl *impl);

/* For the generated functions: the impl of a tensor argument, an empty one for a bare object. */
static inline GTorchImpl *
gtorch_tensor_unwrap (GTorchTensor *tensor)
{
  return G_LIKELY (tensor->impl != NULL) ? tensor->impl : gtorch_tensor_get_impl (tensor);
}

/* An array of tensors into a new array of borrowed impls. */
GTorchImpl **gtorch_tensors_unwrap (GTorchTensor **tensors, gsize n);
/* Takes an array of impls (with its references) into an array of objects. NULL for NULL. */
GPtrArray *gtorch_tensors_wrap (GPtrArray *impls);

G_END_DECLS
