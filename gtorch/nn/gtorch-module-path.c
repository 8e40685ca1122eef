/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The way from the outermost module to a member. A module is not told of the modules that it is in by
 * references, which would be cycles, and it may be in several: each keeps a weak one to the first, and its
 * name there is looked for when it is asked for. */

#include "config.h"

#include "nn/gtorch-module-private.h"

static gboolean
find_name (GTorchModule *outer, gpointer member, gchar **name)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (outer);
  const gchar *found = NULL;

  gtorch_module_lock (outer);
  if (GTORCH_IS_MODULE (member))
    {
      const GPtrArray *children = gtorch_object_list_get_items (priv->children);

      for (guint i = 0; i < children->len && found == NULL; i++)
        if (children->pdata[i] == member)
          found = priv->child_names->pdata[i];
    }
  else
    for (guint i = 0; i < priv->parameters->len && found == NULL; i++)
      if ((gpointer) g_array_index (priv->parameters, GTorchMember, i).tensor == member)
        found = g_array_index (priv->parameters, GTorchMember, i).name;
  if (found != NULL && name != NULL)
    *name = g_strdup (found);
  gtorch_module_unlock (outer);
  return found != NULL;
}

void
gtorch_module_be_inside (GWeakRef *place, GTorchModule *outer, gpointer member)
{
  g_autoptr (GTorchModule) former = g_weak_ref_get (place);

  if (former == NULL || (former != outer && !find_name (former, member, NULL)))
    g_weak_ref_set (place, outer);
}

gchar *
gtorch_module_dup_path (GWeakRef *place, gpointer member)
{
  g_autoptr (GTorchModule) outer = g_weak_ref_get (place);
  g_autofree gchar *path = NULL;
  gchar *name;

  while (outer != NULL && find_name (outer, member, &name))
    {
      GTorchModule *inner = outer;
      g_autofree gchar *rest = path;

      path = rest != NULL ? g_strconcat (name, ".", rest, NULL) : g_strdup (name);
      g_free (name);
      /* what is inside another module is owned by it, and is only compared from here on */
      outer = g_weak_ref_get (&gtorch_module_get_private (inner)->outer);
      member = inner;
      g_object_unref (inner);
    }
  return g_steal_pointer (&path);
}
