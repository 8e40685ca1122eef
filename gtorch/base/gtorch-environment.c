/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the environment may decide, and from where code is loaded. The environment belongs to whoever starts
 * the program: where that person has fewer rights than the program, no variable counts, be it the name of a
 * library or only a switch, so that nobody has to think about which are harmless. All variables are asked for
 * here, and all libraries opened. */

#include "config.h"

#include "base/gtorch-environment-private.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

static __thread gboolean refused; /* the last library of the thread */

gboolean
gtorch_is_privileged (void)
{
#ifdef AT_SECURE
  return getauxval (AT_SECURE) != 0;
#else
  return getuid () != geteuid () || getgid () != getegid ();
#endif
}

const gchar *
gtorch_getenv (const gchar *name)
{
  if (gtorch_env_is_ignored (name))
    {
      g_debug ("%s is ignored: this process has rights that its user lacks", name);
      return NULL;
    }
  return g_getenv (name);
}

gboolean
gtorch_env_is_ignored (const gchar *name)
{
  return gtorch_is_privileged () && g_getenv (name) != NULL;
}

gpointer
gtorch_library_open (const gchar *path, int flags)
{
  refused = gtorch_is_privileged () && strchr (path, '/') != NULL && !g_path_is_absolute (path);
  return refused ? NULL : dlopen (path, flags);
}

const gchar *
gtorch_library_error (void)
{
  return refused ? _ ("in a process with rights that its user lacks, a library wants its full path")
                 : dlerror ();
}
