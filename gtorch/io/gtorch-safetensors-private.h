/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

#define GTORCH_SAFETENSORS_MAX_HEADER 100000000

typedef struct
{
  gchar *name;
  guint dtype;
  guint n_dims;
  gint64 shape[GTORCH_MAX_DIMS];
  guint64 begin, end; /* in bytes, from the end of the header */
} GTorchSafetensorsEntry;

typedef struct
{
  GArray *entries;      /* of GTorchSafetensorsEntry, in the order of their data */
  GHashTable *metadata; /* utf8 to utf8 */
  guint64 n_bytes;      /* of the data */
} GTorchSafetensorsHeader;

/* Parses and checks a header: afterwards the entries fill [0, n_bytes) without gaps and their sizes
 * match. */
GTorchSafetensorsHeader *gtorch_safetensors_header_parse (const gchar *text, gsize length,
                                                          GError **error);
GTorchSafetensorsHeader *gtorch_safetensors_header_new (void);
void gtorch_safetensors_header_free (GTorchSafetensorsHeader *header);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchSafetensorsHeader, gtorch_safetensors_header_free)
/* Sorts the entries, assigns their positions, and appends the length and text of the header. */
void gtorch_safetensors_header_write (GTorchSafetensorsHeader *header, GString *text);

/* The content of a file, in the order of the file. */
typedef struct
{
  GPtrArray *names;
  GPtrArray *tensors;
  GHashTable *metadata;
} GTorchSafetensorsContent;

void gtorch_safetensors_content_free (GTorchSafetensorsContent *content);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchSafetensorsContent, gtorch_safetensors_content_free)
/* Takes ownership of content, which may be NULL. */
GPtrArray *gtorch_safetensors_content_to_lists (GTorchSafetensorsContent *content, gchar ***names,
                                                gchar ***metadata);
GTorchSafetensorsContent *gtorch_safetensors_read_bytes (GBytes *bytes, GError **error);
GTorchSafetensorsContent *gtorch_safetensors_read_stream (GInputStream *stream,
                                                          GTorchDevice *device,
                                                          GCancellable *cancellable,
                                                          GFileProgressCallback progress,
                                                          gpointer progress_data, GError **error);
GTorchSafetensorsContent *gtorch_safetensors_read_file (GFile *file, gboolean map,
                                                        GTorchDevice *device,
                                                        GCancellable *cancellable,
                                                        GFileProgressCallback progress,
                                                        gpointer progress_data, GError **error);
GTorchSafetensorsContent *gtorch_safetensors_read_finish (GAsyncResult *result, GError **error);

/* Both can be cancelled while they wait for data (gtorch-blocking-read.c). */
GInputStream *gtorch_file_open (GFile *file, GCancellable *cancellable, GError **error);
gboolean gtorch_stream_read_all (GInputStream *stream, gpointer buffer, gsize count, gsize *n_read,
                                 GCancellable *cancellable, GError **error);

/* A progress callback that is called in the main context of the caller. */
typedef struct _GTorchProgress GTorchProgress;

GTorchProgress *gtorch_progress_new (GFileProgressCallback func, gpointer data,
                                     GDestroyNotify destroy);
/* Called in the thread of the owner: ends the reports, though the work may continue. */
void gtorch_progress_stop (GTorchProgress *self);
void gtorch_progress_report (goffset current, goffset total, gpointer progress);
void gtorch_progress_unref (gpointer progress);

G_END_DECLS
