/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Asynchronous functions of a group. Each works in a thread, and those that must keep their order, which is
 * that of the other ranks, one after the other: collectives are one lane, messages between two ranks with
 * one tag another one. What would come in between is refused. */

#pragma once

#include "distributed/gtorch-engine-private.h"

G_BEGIN_DECLS

typedef struct
{
  GMutex lock;
  GHashTable *lanes; /* gint64 -> Lane */
  gint n_calls;      /* accessed atomically */
} GTorchGroupCalls;

void gtorch_group_calls_init (GTorchGroupCalls *self);
void gtorch_group_calls_clear (GTorchGroupCalls *self);

/* Of gtorch-process-group.c. */
GTorchGroupCalls *gtorch_process_group_get_calls (GTorchProcessGroup *group);
/* gtorch_process_group_new_part () that can be cancelled: the other ranks then get an error. */
GTorchProcessGroup *gtorch_process_group_make_part (GTorchProcessGroup *group, const gint64 *ranks,
                                                    gsize n_ranks, gdouble timeout,
                                                    GCancellable *cancellable, GError **error);
/* Signals come there from now on. */
void gtorch_process_group_set_context (GTorchProcessGroup *group, GMainContext *context);

#define GTORCH_GROUP_LANE_COLLECTIVES -1
#define GTORCH_GROUP_LANE_ALONE       -2 /* does not wait for collectives, which it ends */

gint64 gtorch_group_lane_of_message (gboolean is_send, gint other, gint tag);

/* FALSE with an error until the program has got the results of the asynchronous functions of the lane, but
 * for those themselves. */
gboolean gtorch_group_calls_check (GTorchProcessGroup *group, gint64 lane, const gchar *name,
                                   GError **error);
gboolean gtorch_group_calls_check_collective (GTorchProcessGroup *group,
                                              const GTorchCollective *collective, GError **error);

/* Returns NULL with an error, or the result. */
typedef gpointer (*GTorchGroupFunc) (GTorchProcessGroup *group, gpointer data,
                                     GCancellable *cancellable, GError **error);

/* Calls the function in a thread, behind those of the lane that began before. Takes the task, whose source is
 * the group and whose name tells what has not ended, and the data. Cancelling ends the wait at once; an
 * exchange with other ranks that has begun, or stands behind one that has, is carried out. */
void gtorch_group_calls_begin (GTask *task, gint64 lane, GTorchGroupFunc func, gpointer data,
                               GDestroyNotify free_data, GDestroyNotify free_result);

G_END_DECLS
