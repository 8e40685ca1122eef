/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors that are in the place of parameters and buffers for what one thread computes, so that several
 * threads can use a module with tensors of several devices at once. */

#pragma once

#include <gtorch/base/gtorch-internal-private.h>
#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

/* From tensors of modules to those in their place; NULL if there are none. Not owned. */
extern __thread GHashTable *gtorch_stand_ins GTORCH_INTERNAL;

/* Returns the tensor for that of a member, which may be NULL. Not a new reference. */
static inline GTorchTensor *
gtorch_stand_in (GTorchTensor *tensor)
{
  gpointer other;

  if (G_LIKELY (gtorch_stand_ins == NULL) || tensor == NULL)
    return tensor;
  other = g_hash_table_lookup (gtorch_stand_ins, tensor);
  return other != NULL ? (GTorchTensor *) other : tensor;
}

/* Sets those of this thread, and returns the former ones, which the caller sets again. */
GHashTable *gtorch_stand_ins_set (GHashTable *stand_ins);

/* Tells whether another language defines the class, whose objects are more than C knows. */
gboolean gtorch_module_is_foreign (gpointer self);

G_END_DECLS
