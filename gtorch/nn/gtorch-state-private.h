/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Returns the reason why it cannot be written to, as in “weight is read-only”: translated; NULL if it
 * can. */
const gchar *gtorch_impl_write_obstacle (const GTorchImpl *impl);
/* Drops the gradients of tensors, or fills them with zeros. */
gboolean gtorch_zero_grads (GPtrArray *tensors, gboolean set_to_none, GError **error);
/* Returns TRUE if an imaginary part would be lost. */
gboolean gtorch_dtype_loses_imaginary (guint from, guint to);

/* Lists missing and unexpected entries of a state: “missing: a, b; unexpected: c”; NULL if there are
 * none. The names are borrowed, and the unexpected ones are sorted. */
gchar *gtorch_state_describe_names (GPtrArray *missing, GPtrArray *unexpected);
/* Fails with NOT_FOUND if there are any. */
gboolean gtorch_state_check_names (const gchar *who, GPtrArray *missing, GPtrArray *unexpected,
                                   GError **error);

/* Does the same for a state that must have exactly these names. */
gboolean gtorch_state_check_keys (const gchar *who, GHashTable *state, const gchar *const *names,
                                  guint n_names, GError **error);

/* Gets a number of a state. Fails with FORMAT, naming the value, if the only element of the tensor is not
 * within the bounds, or has an invalid fraction. Errors begin with `who`, the loading function. */
gboolean gtorch_state_get_number (const gchar *who, const gchar *name, GTorchTensor *value,
                                  gdouble low, gdouble high, gboolean is_whole, gdouble *number,
                                  GError **error);

/* Values for existing tensors: either all are written or none. */
typedef struct _GTorchStateWrites GTorchStateWrites;

GTorchStateWrites *gtorch_state_writes_new (void);
void gtorch_state_writes_free (GTorchStateWrites *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchStateWrites, gtorch_state_writes_free)
/* Takes the present value, in the dtype and on the device of the target, which must be writable and have
 * the same shape. Errors begin with the loading function, and the name. */
gboolean gtorch_state_writes_add (GTorchStateWrites *self, GTorchImpl *target, GTorchImpl *value,
                                  const gchar *who, const gchar *name, GError **error);
/* On failure nothing is written, unless a GPU failed in between. */
gboolean gtorch_state_writes_run (GTorchStateWrites *self, GError **error);

G_END_DECLS
