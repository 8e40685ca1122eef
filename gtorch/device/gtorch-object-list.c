/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "device/gtorch-object-list-private.h"
#include "base/gtorch-references-private.h"

struct _GTorchObjectList
{
  GObject parent_instance;
  GType item_type;
  GMutex lock;      /* see the header */
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
  GTorchObjectList *self = GTORCH_OBJECT_LIST (model);
  guint n;

  gtorch_object_list_lock (self);
  n = self->items->len;
  gtorch_object_list_unlock (self);
  return n;
}

static gpointer
gtorch_object_list_get_item (GListModel *model, guint position)
{
  GTorchObjectList *self = GTORCH_OBJECT_LIST (model);
  gpointer item = NULL;

  gtorch_object_list_lock (self);
  if (position < self->items->len)
    item = g_object_ref (self->items->pdata[position]);
  gtorch_object_list_unlock (self);
  return item;
}

static void
gtorch_object_list_init_model (GListModelInterface *iface)
{
  iface->get_item_type = gtorch_object_list_get_item_type;
  iface->get_n_items = gtorch_object_list_get_n_items;
  iface->get_item = gtorch_object_list_get_item;
}

/* Items may have lists themselves, such as the modules of a deep tree. From the level DEEP on, items
 * wait until the list at that level drops them, one after the other: the stack would not suffice for
 * all levels. */
#define DEEP 50

static __thread guint level; /* how many lists are being dropped, each by an item of another */
static __thread GPtrArray
    *waiting; /* arrays of items, while the list at the level DEEP drops its own */

static void
drop_items (GPtrArray *items)
{
  if (level < DEEP)
    {
      level++;
      g_ptr_array_unref (items);
      level--;
    }
  else if (waiting != NULL)
    g_ptr_array_add (waiting, items);
  else
    {
      g_autoptr (GPtrArray) all = waiting = g_ptr_array_new ();

      g_ptr_array_add (all, items);
      while (all->len > 0)
        g_ptr_array_unref (g_ptr_array_steal_index (all, all->len - 1));
      waiting = NULL;
    }
}

static void
gtorch_object_list_finalize (GObject *object)
{
  GTorchObjectList *self = GTORCH_OBJECT_LIST (object);

  drop_items (self->items);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gtorch_object_list_parent_class)->finalize (object);
}

/* With gtorch_references_lock (), which whoever changes the list takes, too. */
static void
gtorch_object_list_add_references (gpointer object, GTorchReferences *references)
{
  GTorchObjectList *self = object;
  guint i;

  for (i = 0; i < self->items->len; i++)
    gtorch_references_add_object (references, self->items->pdata[i]);
}

static GTorchReferencesType references_type = { .look = gtorch_object_list_add_references };

static void
gtorch_object_list_class_init (GTorchObjectListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_object_list_finalize;
  references_type.type = GTORCH_TYPE_OBJECT_LIST;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_object_list_init (GTorchObjectList *self)
{
  g_mutex_init (&self->lock);
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
gtorch_object_list_lock (GTorchObjectList *self)
{
  g_mutex_lock (&self->lock);
}

void
gtorch_object_list_unlock (GTorchObjectList *self)
{
  g_mutex_unlock (&self->lock);
}

GPtrArray *
gtorch_object_list_get_items (GTorchObjectList *self)
{
  return self->items;
}

GPtrArray *
gtorch_object_list_dup_items (GTorchObjectList *self)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  gtorch_object_list_lock (self);
  for (i = 0; i < self->items->len; i++)
    g_ptr_array_add (items, g_object_ref (self->items->pdata[i]));
  gtorch_object_list_unlock (self);
  return items;
}

void
gtorch_object_list_change (GTorchObjectList *self, guint position, guint n_removals,
                           gpointer *additions, guint n_additions, GPtrArray *removed)
{
  guint i;

  g_assert (position + n_removals <= self->items->len);
  for (i = 0; i < n_removals; i++)
    g_ptr_array_add (removed, g_ptr_array_steal_index (self->items, position));
  for (i = 0; i < n_additions; i++)
    g_ptr_array_insert (self->items, position + i, additions[i]);
}

void
gtorch_object_list_splice (GTorchObjectList *self, guint position, guint n_removals,
                           gpointer *additions, guint n_additions)
{
  /* The removed items are dropped when the list is consistent again: a destructor may read the list. */
  g_autoptr (GPtrArray) removed = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < n_additions; i++)
    g_object_ref (additions[i]);
  gtorch_references_lock ();
  gtorch_object_list_lock (self);
  position = MIN (position, self->items->len);
  n_removals = MIN (n_removals, self->items->len - position);
  gtorch_object_list_change (self, position, n_removals, additions, n_additions, removed);
  gtorch_object_list_unlock (self);
  gtorch_references_unlock ();
  if (n_removals > 0 || n_additions > 0)
    g_list_model_items_changed (G_LIST_MODEL (self), position, n_removals, n_additions);
}

void
gtorch_object_list_append (GTorchObjectList *self, gpointer item)
{
  gtorch_object_list_splice (self, G_MAXUINT, 0, &item, 1);
}
