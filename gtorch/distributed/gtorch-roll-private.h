/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "distributed/gtorch-store.h"

G_BEGIN_DECLS

/* How far the ranks of a group are. A rank that gives up asks the others, by their store: those that do not
 * answer are gone, and those that have not begun an operation are the ones that it has waited for. */
typedef struct _GTorchRoll GTorchRoll;

/* The keys begin with the prefix, which is the same on all ranks and no other group's. */
GTorchRoll *gtorch_roll_new (GTorchStore *store, const gchar *prefix, gint rank, gint size);
GTorchRoll *gtorch_roll_ref (GTorchRoll *self);
void gtorch_roll_unref (GTorchRoll *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchRoll, gtorch_roll_unref)

/* This rank begins a collective; the name is static. */
void gtorch_roll_begin (GTorchRoll *self, guint64 sequence, const gchar *name);
/* The key by which a rank asks; it has what that rank reports. */
gchar *gtorch_roll_get_key (GTorchRoll *self);
/* How long a rank that asks waits for the others, in seconds. */
gdouble gtorch_roll_get_answer_time (void);
/* Tells the others how far this rank is. */
gboolean gtorch_roll_post (GTorchRoll *self, GCancellable *cancellable);
/* Answers when a rank asks, in a thread, until stop (). */
void gtorch_roll_listen (GTorchRoll *self);
void gtorch_roll_stop (GTorchRoll *self);
/* Asks the others, for some seconds at most. Returns in words who has not begun the operation (0: that is not
 * asked), or does not answer; "" if there is none. The latter are in `lost`. */
gchar *gtorch_roll_inquire (GTorchRoll *self, const gchar *report, guint64 sequence, gint **lost,
                            guint *n_lost);

G_END_DECLS
