/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "device/gtorch-object-list-private.h"
#include "base/gtorch-references-private.h"

struct _GTorchObjectList
{
  GObject parent_instance;
  GType item_type;
  GPtrArray *items; /* owned */
};

static void gtorch_object_list_init_model (GListModelInterface *iface);

G_DEFINE_TYPE_WITH_CODE (GTorchObjectList, gtorch_object_list, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_object_list_init_model))

static GType
gtorch_object_list_get_item_type (GListModel *model)
{
  return GTORCH_OBJECT_LIST (model)->item_type;
}

static guint
gtorch_object_list_get_n_items (GListModel *model)
{
  return GTORCH_OBJECT_LIST (model)->items->len;
}

static gpointer
gtorch_object_list_get_item (GListModel *model, guint position)
{
  GPtrArray *items = GTORCH_OBJECT_LIST (model)->items;

  return position < items->len ? g_object_ref (items->pdata[position]) : NULL;
}

static void
gtorch_object_list_init_model (GListModelInterface *iface)
{
  iface->get_item_type = gtorch_object_list_get_item_type;
  iface->get_n_items = gtorch_object_list_get_n_items;
  iface->get_item = gtorch_object_list_get_item;
}

static void
gtorch_object_list_finalize (GObject *object)
{
  g_ptr_array_unref (GTORCH_OBJECT_LIST (object)->items);
  G_OBJECT_CLASS (gtorch_object_list_parent_class)->finalize (object);
}

static void
gtorch_object_list_class_init (GTorchObjectListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_object_list_finalize;
}

static void
gtorch_object_list_init (GTorchObjectList *self)
{
  self->items = g_ptr_array_new_with_free_func (g_object_unref);
}

GTorchObjectList *
gtorch_object_list_new (GType item_type)
{
  GTorchObjectList *self = g_object_new (GTORCH_TYPE_OBJECT_LIST, NULL);

  self->item_type = item_type;
  return self;
}

void
gtorch_object_list_splice (GTorchObjectList *self, guint position, guint n_removals,
                           gpointer *additions, guint n_additions)
{
  /* What is removed is dropped when the list is whole again: a destructor may look at it. */
  g_autoptr (GPtrArray) removed = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  g_assert (position + n_removals <= self->items->len);
  for (i = 0; i < n_additions; i++)
    g_object_ref (additions[i]);
  gtorch_references_lock ();
  for (i = 0; i < n_removals; i++)
    g_ptr_array_add (removed, g_ptr_array_steal_index (self->items, position));
  for (i = 0; i < n_additions; i++)
    g_ptr_array_insert (self->items, position + i, additions[i]);
  gtorch_references_unlock ();
  if (n_removals > 0 || n_additions > 0)
    g_list_model_items_changed (G_LIST_MODEL (self), position, n_removals, n_additions);
}

void
gtorch_object_list_append (GTorchObjectList *self, gpointer item)
{
  gtorch_object_list_splice (self, self->items->len, 0, &item, 1);
}

void
gtorch_object_list_add_references (GTorchObjectList *self, GTorchReferences *references)
{
  guint i;

  for (i = 0; i < self->items->len; i++)
    gtorch_references_add_object (references, self->items->pdata[i]);
}
