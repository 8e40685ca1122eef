/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Why it cannot be written to, as in “weight is read-only”: translated; NULL if it can. */
const gchar *gtorch_impl_write_obstacle (const GTorchImpl *impl);
/* Forgets the gradients of tensors, or fills them with zeros. */
gboolean gtorch_zero_grads (GPtrArray *tensors, gboolean set_to_none, GError **error);
/* Whether an imaginary part would be lost. */
gboolean gtorch_dtype_loses_imaginary (guint from, guint to);

/* Entries that a state lacks, and those that it must not have: “missing: a, b; unexpected: c”; NULL if there
 * are none. The names are borrowed, and those that are unexpected are sorted. */
gchar *gtorch_state_describe_names (GPtrArray *missing, GPtrArray *unexpected);
/* NOT_FOUND where there are some. */
gboolean gtorch_state_check_names (const gchar *who, GPtrArray *missing, GPtrArray *unexpected,
                                   GError **error);

/* The same for a state that has these names and no others. */
gboolean gtorch_state_check_keys (const gchar *who, GHashTable *state, const gchar *const *names,
                                  guint n_names, GError **error);

/* A number that a state may have: FORMAT, naming the value, where the only element of the tensor is not
 * within the bounds, or has a fraction and must not. Errors begin with `who`: what loads. */
gboolean gtorch_state_get_number (const gchar *who, const gchar *name, GTorchTensor *value,
                                  gdouble low, gdouble high, gboolean is_whole, gdouble *number,
                                  GError **error);

/* Values for tensors that are there already: they are written all or none. */
typedef struct _GTorchStateWrites GTorchStateWrites;

GTorchStateWrites *gtorch_state_writes_new (void);
void gtorch_state_writes_free (GTorchStateWrites *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchStateWrites, gtorch_state_writes_free)
/* Takes the value as it is now, in the dtype and on the device of the target: one that can be written to, of
 * the same shape. Errors begin with who loads, and the name. */
gboolean gtorch_state_writes_add (GTorchStateWrites *self, GTorchImpl *target, GTorchImpl *value,
                                  const gchar *who, const gchar *name, GError **error);
/* On failure nothing is written, unless it was a GPU that failed in between. */
gboolean gtorch_state_writes_run (GTorchStateWrites *self, GError **error);

G_END_DECLS
