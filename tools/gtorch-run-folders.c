/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-run-private.h"

#include <glib/gstdio.h>
#include <unistd.h>

#define MEMORY "/dev/shm"

gboolean
gtorch_run_folders_make (GTorchRunFolders *folders, GError **error)
{
  g_autofree gchar *path = g_build_filename (MEMORY, "gtorch-run-XXXXXX", NULL);

  folders->plain = g_dir_make_tmp ("gtorch-run-XXXXXX", error);
  if (folders->plain == NULL)
    return FALSE;
  folders->memory = g_mkdtemp (path) != NULL ? g_steal_pointer (&path) : g_strdup (folders->plain);
  return TRUE;
}

/* Does not follow links. */
static void
remove_tree (const gchar *path)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  const gchar *name;

  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL)
    {
      g_autofree gchar *inner = g_build_filename (path, name, NULL);

      if (g_unlink (inner) != 0)
        remove_tree (inner);
    }
  g_rmdir (path);
}

void
gtorch_run_folders_remove (GTorchRunFolders *folders)
{
  remove_tree (folders->plain);
  remove_tree (folders->memory);
  g_clear_pointer (&folders->plain, g_free);
  g_clear_pointer (&folders->memory, g_free);
}
