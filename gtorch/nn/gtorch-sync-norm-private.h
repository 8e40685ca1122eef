/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Statistics of a layer that are those of the batches of several processes. */

#pragma once

#include <gtorch/nn/gtorch-module.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

typedef struct
{
  /* Sets the processes that train the layer together, or NULL for this one alone. Fails if there are several,
   * and nothing tells which are meant. */
  gboolean (*find) (GTorchModule *module, gpointer *processes, GError **error);
  /* Returns the sum of the tensors of all processes; the backward pass does the same with gradients. */
  GTorchImpl *(*sum) (gpointer processes, GTorchImpl *tensor, GError **error);
} GTorchSync;

/* Set by a folder below; NULL until then. */
extern const GTorchSync *gtorch_sync;

G_END_DECLS
