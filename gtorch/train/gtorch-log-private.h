/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-log.h>

G_BEGIN_DECLS

/* A file that lines or records are appended to; what the logs of the library write with. Not thread-safe:
 * GTorchLog has a lock around all functions of a log. */
typedef struct
{
  GFile *file;
  GOutputStream *stream; /* NULL: not opened yet */
} GTorchLogFile;

/* Fails if there is no file: such a log was made without its constructor. */
gboolean gtorch_log_file_check (const GTorchLogFile *self, GError **error);
/* Opens the file if it is not open, and appends. */
gboolean gtorch_log_file_write (GTorchLogFile *self, gconstpointer data, gsize n_bytes,
                                GError **error);
gboolean gtorch_log_file_flush (GTorchLogFile *self, GError **error);
gboolean gtorch_log_file_close (GTorchLogFile *self, GError **error);
void gtorch_log_file_clear (GTorchLogFile *self);

/* Appends the shortest text that is read back as the same number, such as 0.1. */
void gtorch_log_append_number (GString *text, gdouble value);
/* Around functions of a subclass beside those of GTorchLog; FALSE, and not locked, if the log is closed. */
gboolean gtorch_log_lock (GTorchLog *self, const gchar *op, GError **error);
void gtorch_log_unlock (GTorchLog *self);

G_END_DECLS
