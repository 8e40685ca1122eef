/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Writes JSON, for the tools that print it. */

#include "config.h"

#include "gtorch-tool-json-private.h"

#include <math.h>

void
tool_json_quote (GString *json, const gchar *text)
{
  g_autofree gchar *valid = text != NULL ? g_utf8_make_valid (text, -1) : NULL;
  const gchar *p;

  if (valid == NULL)
    {
      g_string_append (json, "null");
      return;
    }
  g_string_append_c (json, '"');
  for (p = valid; *p != '\0'; p++)
    {
      if (*p == '"' || *p == '\\')
        g_string_append_c (json, '\\');
      if (g_ascii_iscntrl (*p))
        g_string_append_printf (json, "\\u%04x", *p);
      else
        g_string_append_c (json, *p);
    }
  g_string_append_c (json, '"');
}

void
tool_json_begin (GString *json, guint depth, const gchar *name)
{
  if (!g_str_has_suffix (json->str, "{") && !g_str_has_suffix (json->str, "["))
    g_string_append_c (json, ',');
  g_string_append_printf (json, "\n%*s", (int) (2 * depth), "");
  if (name != NULL)
    {
      tool_json_quote (json, name);
      g_string_append (json, ": ");
    }
}

void
tool_json_end (GString *json, guint depth, const gchar *bracket)
{
  g_string_append_printf (json, "\n%*s%s", (int) (2 * depth), "", bracket);
}

void
tool_json_string (GString *json, guint depth, const gchar *name, const gchar *value)
{
  tool_json_begin (json, depth, name);
  tool_json_quote (json, value);
}

void
tool_json_number (GString *json, guint depth, const gchar *name, guint64 value)
{
  tool_json_begin (json, depth, name);
  g_string_append_printf (json, "%" G_GUINT64_FORMAT, value);
}

void
tool_json_integer (GString *json, guint depth, const gchar *name, gint64 value)
{
  tool_json_begin (json, depth, name);
  g_string_append_printf (json, "%" G_GINT64_FORMAT, value);
}

void
tool_json_double (GString *json, guint depth, const gchar *name, gdouble value)
{
  gchar text[G_ASCII_DTOSTR_BUF_SIZE];

  tool_json_begin (json, depth, name);
  if (isfinite (value))
    g_string_append (json, g_ascii_dtostr (text, sizeof text, value));
  else
    g_string_append (json, "null");
}

void
tool_json_bool (GString *json, guint depth, const gchar *name, gboolean value)
{
  tool_json_begin (json, depth, name);
  g_string_append (json, value ? "true" : "false");
}
