/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Appends the text with its quotes, or null for NULL. */
void tool_json_quote (GString *json, const gchar *text);
/* Begins a value on a line of its own; a NULL name denotes an element of an array. */
void tool_json_begin (GString *json, guint depth, const gchar *name);
void tool_json_end (GString *json, guint depth, const gchar *bracket);
void tool_json_string (GString *json, guint depth, const gchar *name, const gchar *value);
void tool_json_number (GString *json, guint depth, const gchar *name, guint64 value);
void tool_json_integer (GString *json, guint depth, const gchar *name, gint64 value);
/* Writes null for what is no number. */
void tool_json_double (GString *json, guint depth, const gchar *name, gdouble value);
void tool_json_bool (GString *json, guint depth, const gchar *name, gboolean value);

G_END_DECLS
