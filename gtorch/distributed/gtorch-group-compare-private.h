/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "distributed/gtorch-process-group.h"
#include "nn/gtorch-module.h"

G_BEGIN_DECLS

/* What the ranks of a group must have alike: names with values, in order. */
typedef struct
{
  GPtrArray *names, *values; /* gchar * */
  GTorchDevice *device;      /* of the first tensor; not owned */
  GError *failure;           /* why this rank cannot go on, of which the others are told; or NULL */
} GTorchGroupFacts;

void gtorch_group_facts_init (GTorchGroupFacts *self);
void gtorch_group_facts_clear (GTorchGroupFacts *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchGroupFacts, gtorch_group_facts_clear)

void gtorch_group_facts_add (GTorchGroupFacts *self, const gchar *name, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);
void gtorch_group_facts_add_flag (GTorchGroupFacts *self, const gchar *name, gboolean flag);
/* In digits that do not depend on the language of the host. */
void gtorch_group_facts_add_number (GTorchGroupFacts *self, const gchar *name, gdouble value);
/* Returns the name of a parameter or buffer in the module, with those of the modules around it, or NULL. */
gchar *gtorch_group_find_name (GTorchModule *module, GTorchTensor *tensor);
/* Adds dtypes and shapes, by the names that the tensors have in the module; it may be NULL. */
void gtorch_group_facts_add_tensors (GTorchGroupFacts *self, GTorchModule *module,
                                     GTorchTensor *const *tensors, guint n);
/* Called by all ranks. Fails on all of them if those of one differ from those of rank 0, or a rank has
 * failed; the error names the first difference. */
gboolean gtorch_group_facts_compare (GTorchGroupFacts *self, GTorchProcessGroup *group,
                                     const gchar *who, GError **error);

G_END_DECLS
