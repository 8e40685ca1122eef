/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A file of text that is written piece by piece, and compressed if its name ends with ".gz". */
typedef struct
{
  GString *text; /* what is not yet written */
  GOutputStream *stream;
  GCancellable *cancellable;
} GTorchProfileFile;

typedef gboolean (*GTorchProfileFileFunc) (GTorchProfileFile *file, gpointer data, GError **error);

/* Writes the text if it is long, or if is_end is set. */
gboolean gtorch_profile_file_flush (GTorchProfileFile *file, gboolean is_end, GError **error);
/* Lets func append all of the text, as it is. */
gboolean gtorch_profile_file_write (GOutputStream *stream, GTorchProfileFileFunc func,
                                    gpointer data, GCancellable *cancellable, GError **error);
/* The same for a file. On failure it is as it was before. */
gboolean gtorch_profile_file_save (GFile *file, GTorchProfileFileFunc func, gpointer data,
                                   GCancellable *cancellable, GError **error);

G_END_DECLS
