/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checks that cost time and are done only for who asks for them. */

#include "config.h"

#include "base/gtorch-check-private.h"

#include <string.h>

#include "base/gtorch-environment-private.h"

_Atomic guint gtorch_checks;

void
gtorch_checks_init (void)
{
  const gchar *text = gtorch_getenv ("GTORCH_CHECK");
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
