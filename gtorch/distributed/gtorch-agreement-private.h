/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The ranks of a group meet by its store, without its engine: to compare what they are about to do, and to
 * find out who does not come. */

#pragma once

#include "distributed/gtorch-engine-private.h"

G_BEGIN_DECLS

/* What a group keeps for that. */
typedef struct _GTorchAgreement GTorchAgreement;

/* A group of all processes. Takes a reference to the store. */
GTorchAgreement *gtorch_agreement_new (GTorchStore *store, gint rank, gint size,
                                       GCancellable *cancellable, GError **error);
/* A group of some of them; its number is the same on all. */
GTorchAgreement *gtorch_agreement_new_part (GTorchAgreement *whole, gint number, gint rank,
                                            gint size);
void gtorch_agreement_free (GTorchAgreement *self);
const gchar *gtorch_agreement_get_name (GTorchAgreement *self);

/* Waits until all ranks are here; FALSE with an error that names those that have not come in time, on all
 * ranks. */
gboolean gtorch_agreement_meet (GTorchAgreement *self, const gchar *operation, gdouble timeout,
                                GCancellable *cancellable, GError **error);
/* Compares the call with those of the others. Sets is_lost if they do not agree on what comes next. */
gboolean gtorch_agreement_check (GTorchAgreement *self, const GTorchCollective *collective,
                                 guint64 sequence, gdouble timeout, gboolean *is_lost,
                                 GError **error);
/* "all_reduce of float32 [3] on cpu with sum" */
gchar *gtorch_agreement_describe (const GTorchCollective *collective);

/* Whether all ranks name one of them. */
gboolean gtorch_agreement_has_root (const GTorchCollective *collective);
gboolean gtorch_agreement_is_reduction (const GTorchCollective *collective);
/* The tensor that has the same shape on all ranks; NULL if there is none. */
GTorchImpl *gtorch_agreement_get_common_tensor (const GTorchCollective *collective);

/* A store that rank 0 serves to the others, which learn by a broadcast of the group where it is. All ranks
 * call this. */
GTorchStore *gtorch_agreement_make_store (GTorchProcessGroup *group, gdouble timeout,
                                          GCancellable *cancellable, GError **error);

G_END_DECLS
