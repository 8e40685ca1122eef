/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors that are in the place of parameters and buffers for what one thread computes, so that several
 * threads can use a module with tensors of several devices at once. */

#pragma once

#include <gtorch/base/gtorch-internal-private.h>
#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

/* How many threads have stand-ins, which the others do not look for; atomic. */
extern gint gtorch_n_stand_ins GTORCH_INTERNAL;

GTorchTensor *gtorch_stand_in_find (GTorchTensor *tensor);

/* Returns the tensor for that of a member, which may be NULL. Not a new reference. */
static inline GTorchTensor *
gtorch_stand_in (GTorchTensor *tensor)
{
  return G_LIKELY (__atomic_load_n (&gtorch_n_stand_ins, __ATOMIC_RELAXED) == 0)
             ? tensor
             : gtorch_stand_in_find (tensor);
}

/* Sets those of this thread, a table from tensors of modules to those in their place, or NULL. Returns the
 * former ones, which the caller sets again. The table stays the caller's. */
GHashTable *gtorch_stand_ins_set (GHashTable *stand_ins);

/* Tells whether another language defines the class, whose objects are more than C knows. */
gboolean gtorch_module_is_foreign (gpointer self);

G_END_DECLS
