/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Going through a module and its descendants. Trees may be deeper than the stack of a thread: the way down is
 * kept in an array, not in calls. */

#include "config.h"

#include "nn/gtorch-module-private.h"

/* A module on the way down, and how many of its children have been looked at. */
typedef struct
{
  GTorchModule *module;
  GPtrArray *children;
  gchar **names; /* of the children; NULL without paths */
  guint next;
  gsize length; /* of the module's path */
} Level;

static void
clear_level (gpointer data)
{
  Level *level = data;

  g_ptr_array_unref (level->children);
  g_strfreev (level->names);
}

static void
go_down (GArray *levels, GTorchModule *module, GString *path, GTorchModuleEnter enter,
         gpointer user_data)
{
  Level level = { .module = module, .length = path != NULL ? path->len : 0 };

  if (enter != NULL && !enter (module, path != NULL ? path->str : NULL, user_data))
    return;
  level.children = gtorch_module_dup_children (module, path != NULL ? &level.names : NULL);
  g_array_append_val (levels, level);
}

gboolean
gtorch_module_walk (GTorchModule *self, gboolean with_paths, GTorchModuleEnter enter,
                    GTorchModuleLeave leave, gpointer user_data, GError **error)
{
  g_autoptr (GArray) levels = g_array_new (FALSE, FALSE, sizeof (Level));
  g_autoptr (GString) path = with_paths ? g_string_new (NULL) : NULL;

  g_array_set_clear_func (levels, clear_level);
  go_down (levels, self, path, enter, user_data);
  while (levels->len > 0)
    {
      Level *level = &g_array_index (levels, Level, levels->len - 1);
      guint i = level->next++;

      if (i == level->children->len)
        {
          if (leave != NULL && !leave (level->module, user_data, error))
            return FALSE;
          g_array_set_size (levels, levels->len - 1);
          continue;
        }
      if (path != NULL)
        {
          g_string_truncate (path, level->length);
          g_string_append_printf (path, "%s%s", level->length > 0 ? "." : "", level->names[i]);
        }
      go_down (levels, level->children->pdata[i], path, enter, user_data);
    }
  return TRUE;
}

typedef struct
{
  GHashTable *seen; /* with a reference to each: another module could have its address later */
  GTorchModuleVisit func;
  gpointer user_data;
} Visit;

static gboolean
enter_once (GTorchModule *module, const gchar *path, gpointer user_data)
{
  const Visit *visit = user_data;

  if (g_hash_table_contains (visit->seen, module))
    return FALSE;
  g_hash_table_add (visit->seen, g_object_ref (module));
  visit->func (module, path, visit->user_data);
  return TRUE;
}

void
gtorch_module_visit_unseen (GTorchModule *self, gboolean with_paths, GHashTable *seen,
                            GTorchModuleVisit func, gpointer user_data)
{
  Visit visit = { seen, func, user_data };

  gtorch_module_walk (self, with_paths, enter_once, NULL, &visit, NULL);
}

void
gtorch_module_visit (GTorchModule *self, gboolean recurse, GTorchModuleVisit func,
                     gpointer user_data)
{
  g_autoptr (GHashTable) seen = NULL;

  if (!recurse)
    {
      func (self, "", user_data);
      return;
    }
  seen = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  gtorch_module_visit_unseen (self, TRUE, seen, func, user_data);
}
