/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A tool for NVTX_INJECTION64_PATH, which keeps the events that it is told of, and appends them to the file
 * NVTX_TOOL_LOG. */

#include <glib.h>
#include <stdio.h>

#define EXPORT __attribute__ ((visibility ("default")))

typedef void (*Slot) (void);

typedef struct
{
  gsize size;
  gint (*get_table) (guint kind, Slot ***table, guint *n);
} Callbacks;

static GString *log_of_events;
static GPrivate depth;

static void
take (const gchar *what, const gchar *message)
{
  const gchar *path = g_getenv ("NVTX_TOOL_LOG");
  FILE *file = path != NULL ? fopen (path, "a") : NULL;

  g_string_append_printf (log_of_events, "%s(%s) ", what, message);
  if (file == NULL)
    return;
  fprintf (file, "%s(%s) ", what, message);
  fclose (file);
}

static void
mark (const gchar *message)
{
  take ("mark", message);
}

static gint
push (const gchar *message)
{
  gint n = GPOINTER_TO_INT (g_private_get (&depth));

  take ("push", message);
  g_private_set (&depth, GINT_TO_POINTER (n + 1));
  return n;
}

static gint
pop (void)
{
  gint n = GPOINTER_TO_INT (g_private_get (&depth)) - 1;

  take ("pop", "");
  g_private_set (&depth, GINT_TO_POINTER (n));
  return n;
}

static guint64
start (const gchar *message)
{
  take ("start", message);
  return G_GUINT64_CONSTANT (1) << 40;
}

static void
end (guint64 range)
{
  take ("end", range == G_GUINT64_CONSTANT (1) << 40 ? "the range" : "another one");
}

EXPORT gint InitializeInjectionNvtx2 (gconstpointer (*get_export_table) (guint32 number));
EXPORT const gchar *nvtx_tool_get_log (void);

gint
InitializeInjectionNvtx2 (gconstpointer (*get_export_table) (guint32 number))
{
  const Callbacks *callbacks = get_export_table (1);
  Slot **core, **domains;
  guint n_core, n_domains;

  if (g_getenv ("NVTX_TOOL_REFUSES") != NULL)
    return 0;
  if (callbacks == NULL || callbacks->size < sizeof *callbacks || get_export_table (3) == NULL
      || get_export_table (2) != NULL || callbacks->get_table (0, &core, &n_core) != 0
      || callbacks->get_table (7, &core, &n_core) != 0
      || callbacks->get_table (1, &core, &n_core) != 1
      || callbacks->get_table (5, &domains, &n_domains) != 1 || n_core != 16 || n_domains != 16
      || core[0] != NULL || core[16] != NULL || domains[15] == NULL)
    return 0;
  log_of_events = g_string_new (NULL);
  *core[2] = (Slot) mark;
  *core[5] = (Slot) start;
  *core[7] = (Slot) end;
  *core[9] = (Slot) push;
  *core[11] = (Slot) pop;
  return 1;
}

const gchar *
nvtx_tool_get_log (void)
{
  return log_of_events != NULL ? log_of_events->str : "";
}
