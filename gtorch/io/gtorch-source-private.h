/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* How much memory the content of a file may take, if the caller does not say. */
#define GTORCH_SOURCE_MAX_BYTES (G_GUINT64_CONSTANT (16) << 30)

/* Bytes that are read at any place: those of a GBytes, of a mapped file or of a stream that can seek. What
 * comes from a stream that cannot is read to its end first. */
typedef struct
{
  const gchar *op;       /* for messages */
  GBytes *bytes;         /* all of them, or NULL */
  gboolean is_read_only; /* the bytes belong to somebody else */
  gboolean is_mapped;    /* they are read from the disk when they are used */
  GInputStream *stream;  /* or NULL */
  goffset base;          /* where the content begins in the stream */
  guint64 size;
  guint64 max_bytes, left; /* of memory that may be taken */
} GTorchSource;

/* max_bytes 0: the default. `op` is static. */
GTorchSource *gtorch_source_new_from_bytes (const gchar *op, GBytes *bytes, guint64 max_bytes);
GTorchSource *gtorch_source_new_from_stream (const gchar *op, GInputStream *stream,
                                             guint64 max_bytes, GCancellable *cancellable,
                                             GError **error);
/* With `map`, a regular file is mapped, writable but private. */
GTorchSource *gtorch_source_new_from_file (const gchar *op, GFile *file, gboolean map,
                                           guint64 max_bytes, GCancellable *cancellable,
                                           GError **error);
void gtorch_source_free (GTorchSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchSource, gtorch_source_free)

/* Takes memory for n bytes out of what is allowed: aligned to a cache line, to be freed with g_free(). */
gpointer gtorch_source_allocate (GTorchSource *source, guint64 n, GError **error);
/* FALSE with FORMAT if the content is shorter. */
gboolean gtorch_source_read (GTorchSource *source, guint64 offset, gpointer buffer, gsize n,
                             GCancellable *cancellable, GError **error);
/* A part of the content: of the source's memory if it has it, else read. */
GBytes *gtorch_source_read_bytes (GTorchSource *source, guint64 offset, guint64 n,
                                  GCancellable *cancellable, GError **error);
/* Whether what the function above returns may not be written to. */
gboolean gtorch_source_is_read_only (const GTorchSource *source);

/* Work of an asynchronous function in another thread. */
typedef gpointer (*GTorchSourceFunc) (gpointer data, GCancellable *cancellable, GError **error);

/* Takes the data; the task returns the pointer that func returns, or its error. A stream may block and
 * ignore the cancellable; then only the thread waits for it. */
void gtorch_source_run (GTask *task, int io_priority, GTorchSourceFunc func, gpointer data,
                        GDestroyNotify free_data, GDestroyNotify free_result);

/* What func gets of a call that reads a stream or a file into an object. */
typedef struct
{
  GObject *from;
  gboolean map;
  guint64 max_bytes;
} GTorchSourceLoad;

void gtorch_source_load (GTask *task, int io_priority, GTorchSourceFunc func, gpointer from,
                         gboolean map, guint64 max_bytes);

G_END_DECLS
