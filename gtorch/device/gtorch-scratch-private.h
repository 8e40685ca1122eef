/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Working memory of the host whose size follows from shapes, values or files: n elements of `size` bytes,
 * on a cache line, to be freed with g_free(). NULL with OUT_OF_MEMORY if n is negative, if the product
 * overflows or if the machine has less; the caller puts the name of the operation in front, or
 * gtorch_op_run() does. */
gpointer gtorch_scratch_new (gint64 n, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The same, filled with zeros; aligned as malloc() does. */
gpointer gtorch_scratch_new0 (gint64 n, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* For threads that share in an operation, and cannot fail by themselves: what the two would have set. */
void gtorch_scratch_set_error (gint64 n, gsize size, GError **error);
/* Would n things of `size` bytes each fit into the machine at all? For many small ones, which GLib makes. */
gboolean gtorch_scratch_check (gint64 n, gsize size, GError **error);

G_END_DECLS
