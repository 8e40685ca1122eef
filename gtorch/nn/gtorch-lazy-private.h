/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lazy layers: those whose size the first input, or a loaded state, determines. */

#pragma once

#include <gtorch/nn/gtorch-layer-private.h>

G_BEGIN_DECLS

/* The tensors of a module for a size, until they become those of the module. */
typedef struct
{
  GTorchModule *module;
  gint64 size;
  GPtrArray *targets; /* of GTorchImpl: the tensors of the module, which are not initialized yet */
  GPtrArray *values;  /* of GTorchImpl: as many */
} GTorchLazyPlan;

void gtorch_lazy_plan_free (GTorchLazyPlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchLazyPlan, gtorch_lazy_plan_free)

/* Creates the tensors with their initial values, but for those that the table of a state has, in which the
 * path of the module is `path`. The table may be NULL. The module does not change. */
GTorchLazyPlan *gtorch_lazy_prepare (GTorchModule *self, gint64 size, GHashTable *state,
                                     const gchar *path, GError **error);
/* Fails with INVALID if the module got its tensors, or lost one, since. */
gboolean gtorch_lazy_commit (GTorchLazyPlan *self, GError **error);
/* Returns the plans for those of self and its descendants whose size the state tells. */
GPtrArray *gtorch_lazy_prepare_all (GTorchModule *self, GHashTable *state, GError **error);

G_END_DECLS
