/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-children-private.h"

#include <glib/gi18n-lib.h>

#include "nn/gtorch-module-private.h"

static GListModel *
list_of (gpointer self)
{
  return G_LIST_MODEL (gtorch_module_get_private (self)->children);
}

static GType
gtorch_children_get_item_type (GListModel *model)
{
  return GTORCH_TYPE_MODULE;
}

static guint
gtorch_children_get_n_items (GListModel *model)
{
  return g_list_model_get_n_items (list_of (model));
}

static gpointer
gtorch_children_get_item (GListModel *model, guint position)
{
  return g_list_model_get_item (list_of (model), position);
}

void
gtorch_children_list_model_init (GListModelInterface *iface)
{
  iface->get_item_type = gtorch_children_get_item_type;
  iface->get_n_items = gtorch_children_get_n_items;
  iface->get_item = gtorch_children_get_item;
}

static void
forward_changes (GListModel *list, guint position, guint removed, guint added, gpointer self)
{
  g_list_model_items_changed (G_LIST_MODEL (self), position, removed, added);
}

void
gtorch_children_init (GTorchModule *self, gboolean are_numbered)
{
  gtorch_module_get_private (self)->is_numbered = are_numbered;
  g_signal_connect_object (list_of (self), "items-changed", G_CALLBACK (forward_changes), self, 0);
}

gboolean
gtorch_children_append (GTorchModule *self, GTorchModule **modules, gsize n_modules, GError **error)
{
  gsize i;

  for (i = 0; i < n_modules; i++)
    if (!GTORCH_IS_MODULE (modules[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %zu is not a module"),
                     gtorch_module_type_name (self), i);
        return FALSE;
      }
  for (i = 0; i < n_modules; i++)
    if (!gtorch_module_insert_child (self, NULL, modules[i], error))
      return FALSE;
  return TRUE;
}
