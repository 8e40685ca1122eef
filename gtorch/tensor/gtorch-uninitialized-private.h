/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors without elements: the parameters of lazy layers before their first use. */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* What is_released is then, instead of TRUE: what uses such a tensor fails as if it were released. */
#define GTORCH_IMPL_UNINITIALIZED 2

static inline gboolean
gtorch_impl_is_uninitialized (const GTorchImpl *impl)
{
  return __atomic_load_n (&impl->is_released, __ATOMIC_RELAXED) == GTORCH_IMPL_UNINITIALIZED;
}

/* Returns a tensor of shape [0]. */
GTorchImpl *gtorch_impl_new_uninitialized (GTorchDevice *device, guint dtype);
/* Returns why a tensor without a storage has none, as in “weight was released”: translated. */
const gchar *gtorch_impl_loss (const GTorchImpl *impl);
/* Returns FALSE if the tensor has no storage; the error begins with the name of the operation. */
gboolean gtorch_impl_check_memory (const GTorchImpl *impl, const gchar *op, GError **error);
/* Lets each of impls, which is not initialized yet, refer to the elements of its entry of data. Returns
 * FALSE, and changes none, if one is initialized or was released. */
gboolean gtorch_impls_initialize (GTorchImpl *const *impls, GTorchImpl *const *data, guint n);

G_END_DECLS
