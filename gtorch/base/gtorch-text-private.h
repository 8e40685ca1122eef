/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Texts for messages. They are in a ring of eight buffers of the thread: nobody frees them, and the ninth
 * one overwrites the first. */

/* A shape or another list of numbers: "[2, 3]". */
const gchar *gtorch_shape_str (const gint64 *shape, gsize n_dims);
/* The beginning of a text that the program gave, in valid UTF-8. */
const gchar *gtorch_name_str (const gchar *name);

/* INVALID, beginning with `who`, unless the name is UTF-8, which bindings and files need. */
gboolean gtorch_name_check (const gchar *who, const gchar *name, GError **error);
/* Inserts into a table of strings without duplicating anything; refuses a name that is in it. */
gboolean gtorch_name_insert (const gchar *who, GHashTable *table, const gchar *name, gpointer value,
                             GError **error);

G_END_DECLS
