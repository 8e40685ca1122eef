/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Returns scratch memory of the host whose size follows from shapes, values or files: n elements of `size`
 * bytes, aligned to a cache line, to be freed with g_free(). Returns NULL with OUT_OF_MEMORY if n is
 * negative, if the product overflows or if the machine has less memory; the caller or gtorch_op_run()
 * prefixes the message with the name of the operation. */
gpointer gtorch_scratch_new (gint64 n, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Returns scratch memory that is filled with zeros, aligned as by malloc(). */
gpointer gtorch_scratch_new0 (gint64 n, gsize size, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Sets the error of the two functions above; for worker threads of an operation, which cannot report errors
 * themselves. */
void gtorch_scratch_set_error (gint64 n, gsize size, GError **error);
/* Tells whether the machine has memory for n items of `size` bytes each; for many small ones that GLib
 * allocates. */
gboolean gtorch_scratch_check (gint64 n, gsize size, GError **error);

G_END_DECLS
