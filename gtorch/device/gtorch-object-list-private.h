/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/* A list model that the library shows to programs and changes itself. Unlike a GListStore it cannot be
 * changed from outside, and several threads may read and change it at once. */
#define GTORCH_TYPE_OBJECT_LIST (gtorch_object_list_get_type ())
G_DECLARE_FINAL_TYPE (GTorchObjectList, gtorch_object_list, GTORCH, OBJECT_LIST, GObject)

GTorchObjectList *gtorch_object_list_new (GType item_type);
/* Takes references to the additions, and emits items-changed. What is behind the end is not removed, and a
 * position behind it is the end. */
void gtorch_object_list_splice (GTorchObjectList *self, guint position, guint n_removals,
                                gpointer *additions, guint n_additions);
void gtorch_object_list_append (GTorchObjectList *self, gpointer item);
/* Returns a copy of the list, with references. */
GPtrArray *gtorch_object_list_dup_items (GTorchObjectList *self);

/* The lock guards the items, and what the owner of the list keeps beside them. It is held only while memory
 * is read or written. Whoever changes something takes gtorch_references_lock () before it, too.
 *
 * An object that the list owns may be referenced meanwhile: with another reference than the list's it has
 * two at least, so that nobody is told. Nothing is unreferenced, because that may call the program. */
void gtorch_object_list_lock (GTorchObjectList *self);
void gtorch_object_list_unlock (GTorchObjectList *self);
/* With the lock held. Borrowed. */
GPtrArray *gtorch_object_list_get_items (GTorchObjectList *self);
/* With both locks held. Takes ownership of the additions, moves the removed items to `removed`, and emits
 * nothing. */
void gtorch_object_list_change (GTorchObjectList *self, guint position, guint n_removals,
                                gpointer *additions, guint n_additions, GPtrArray *removed);

G_END_DECLS
