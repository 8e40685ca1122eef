/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/* A list model that the library shows to programs and changes by itself. Unlike a GListStore it cannot be
 * changed from outside, and several threads may read it at once: a store remembers the position that was
 * read last. */
#define GTORCH_TYPE_OBJECT_LIST (gtorch_object_list_get_type ())
G_DECLARE_FINAL_TYPE (GTorchObjectList, gtorch_object_list, GTORCH, OBJECT_LIST, GObject)

GTorchObjectList *gtorch_object_list_new (GType item_type);
/* Takes references to the additions, and emits items-changed. */
void gtorch_object_list_splice (GTorchObjectList *self, guint position, guint n_removals,
                                gpointer *additions, guint n_additions);
void gtorch_object_list_append (GTorchObjectList *self, gpointer item);
void gtorch_object_list_add_references (GTorchObjectList *self, GTorchReferences *references);

G_END_DECLS
