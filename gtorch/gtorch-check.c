/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checks that cost time and are done only for who asks for them, and places in the program. */

#include "config.h"

#include "gtorch-check-private.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>
#include <sys/auxv.h>

#define SHOWN           4
#define SHOWN_OF_STATIC 12 /* some are the library's */

_Atomic guint gtorch_checks;

void
gtorch_checks_init (void)
{
  const gchar *text = g_getenv ("GTORCH_CHECK");
  g_auto (GStrv) words = g_strsplit (text != NULL ? text : "", ",", -1);
  guint i;

  for (i = 0; words[i] != NULL; i++)
    {
      const gchar *word = g_strstrip (words[i]);

      if (strcmp (word, "errors") == 0)
        gtorch_checks |= GTORCH_CHECK_ERRORS;
      else if (strcmp (word, "streams") == 0)
        gtorch_checks |= GTORCH_CHECK_STREAMS;
      else if (strcmp (word, "streams=fatal") == 0)
        gtorch_checks |= GTORCH_CHECK_STREAMS | GTORCH_CHECK_STREAMS_FATAL;
      else if (strcmp (word, "graph") == 0)
        gtorch_checks |= GTORCH_CHECK_GRAPH;
      else if (strcmp (word, "replay") == 0)
        gtorch_checks |= GTORCH_CHECK_REPLAY;
      else if (word[0] != '\0')
        g_warning ("GTORCH_CHECK: “%s” is not one of errors, graph, replay, streams, streams=fatal",
                   word);
    }
}

void
gtorch_site_take (GTorchSite *site)
{
  gint n = backtrace (site->frames, GTORCH_SITE_FRAMES);

  if (n < GTORCH_SITE_FRAMES)
    site->frames[n] = NULL;
}

static gboolean
is_own (const Dl_info *info, const Dl_info *own, const Dl_info *program)
{
  /* Where the library is linked into the program, only names tell them apart. */
  if (own->dli_fbase != program->dli_fbase)
    return info->dli_fbase == own->dli_fbase;
  return info->dli_sname != NULL && g_str_has_prefix (info->dli_sname, "gtorch_");
}

gchar *
gtorch_site_to_string (const GTorchSite *site)
{
  GString *text = g_string_new (NULL);
  Dl_info own = { NULL }, program = { NULL };
  guint i, first = 0, shown = 0, most;

  dladdr ((void *) gtorch_site_to_string, &own);
  dladdr ((void *) getauxval (AT_ENTRY), &program);
  for (i = 0; i < GTORCH_SITE_FRAMES && site->frames[i] != NULL; i++)
    {
      Dl_info info;

      if (dladdr (site->frames[i], &info) != 0 && is_own (&info, &own, &program))
        first = i + 1;
    }
  if (first == i || site->frames[first] == NULL) /* called from the library's own threads */
    first = MIN (i, 2);
  most = own.dli_fbase == program.dli_fbase ? SHOWN_OF_STATIC : SHOWN;
  for (i = first; i < GTORCH_SITE_FRAMES && site->frames[i] != NULL && shown < most; i++, shown++)
    {
      g_autofree gchar *file = NULL;
      Dl_info info;

      if (dladdr (site->frames[i], &info) == 0)
        continue;
      file = g_path_get_basename (info.dli_fname);
      g_string_append_printf (text, "%s%s (%s+0x%zx)", shown > 0 ? ", " : "",
                              info.dli_sname != NULL ? info.dli_sname : "?", file,
                              (gsize) ((char *) site->frames[i] - (char *) info.dli_fbase));
    }
  return g_string_free (text, FALSE);
}
