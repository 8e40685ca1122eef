/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* NVIDIA's libraries beside the driver, each opened when it is first needed. */

#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>

#include "cuda/gtorch-cuda-private.h"

/* What is in the process already (another framework's copy), then the folders of the environment, then what
 * the system finds, then where toolkits are installed. */
gpointer
gtorch_cuda_library_open (const gchar *soname, GError **error)
{
  const gchar *own = g_getenv ("GTORCH_CUDA_LIBRARY_PATH");
  const gchar *home = g_getenv ("CUDA_HOME");
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) folders = NULL;
  g_autoptr (GString) tried = g_string_new (NULL);
  gpointer library = dlopen (soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  guint i;

  if (library != NULL)
    return library;
  folders = g_strsplit (own != NULL ? own : "", ":", -1);
  for (i = 0; folders[i] != NULL; i++)
    if (folders[i][0] != '\0')
      g_ptr_array_add (paths, g_build_filename (folders[i], soname, NULL));
  g_ptr_array_add (paths, g_strdup (soname));
  if (home != NULL)
    g_ptr_array_add (paths, g_build_filename (home, "lib64", soname, NULL));
  g_ptr_array_add (paths, g_build_filename ("/usr/local/cuda/lib64", soname, NULL));
  for (i = 0; i < paths->len; i++)
    {
      library = dlopen (paths->pdata[i], RTLD_NOW | RTLD_LOCAL);
      if (library != NULL)
        return library;
      g_string_append_printf (tried, "%s%s", i > 0 ? ", " : "", (gchar *) paths->pdata[i]);
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
               _ ("cuda: %s was not found; tried %s. It comes with the CUDA toolkit; "
                  "GTORCH_CUDA_LIBRARY_PATH can name its folder"),
               soname, tried->str);
  return NULL;
}

gpointer
gtorch_cuda_library_symbol (gpointer library, const gchar *soname, const gchar *name,
                            GError **error)
{
  gpointer symbol = dlsym (library, name);

  if (symbol == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA, _ ("cuda: %s has no %s"), soname, name);
  return symbol;
}
