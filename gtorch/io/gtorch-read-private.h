/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Reads a stream to its end, in growing steps, the first of which is what is expected. NULL without an error
 * if there are more than max_bytes, or no memory for what comes behind those that n tells of. */
GBytes *gtorch_read_to_end (GInputStream *stream, gsize expected, gsize max_bytes, gsize *n,
                            GCancellable *cancellable, GError **error);
/* The same for a stream of which nothing is known; FORMAT, beginning with `who`, if there are more than
 * max_bytes. */
GBytes *gtorch_read_stream (const gchar *who, GInputStream *stream, gsize max_bytes,
                            GCancellable *cancellable, GError **error);
/* The same for a file; the length of a regular one is looked at before anything is read. */
GBytes *gtorch_read_file (const gchar *who, GFile *file, gsize max_bytes, GCancellable *cancellable,
                          GError **error);

G_END_DECLS
