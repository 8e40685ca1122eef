/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-inner-types-private.h>

G_BEGIN_DECLS

/* Bytes on a device, shared by a tensor and its views. */
struct _GTorchStorage
{
  gint ref_count;
  guint version; /* atomically counted up by every in-place write */
  gpointer data;
  gsize n_bytes;
  GTorchDevice *device;                       /* devices live as long as the process */
  void (*free_func) (GTorchStorage *storage); /* NULL: the device's allocator */
  gpointer free_data;
  struct _GTorchTimeline *writer; /* the queue whose work wrote to it last, if not yet waited for */
  guint64 write_seq;              /* which work of that queue */
};

GTorchStorage *gtorch_storage_new (GTorchDevice *device, gsize n_bytes, GError **error);
GTorchStorage *gtorch_storage_new_foreign (GTorchDevice *device, gpointer data, gsize n_bytes,
                                           void (*free_func) (GTorchStorage *), gpointer free_data);
/* Only for a foreign one: in-place operations on tensors that show it are refused from now on. */
void gtorch_storage_set_read_only (GTorchStorage *storage);
gboolean gtorch_storage_is_read_only (const GTorchStorage *storage);
/* Only for a foreign one: a replay of what is named has given the memory other values, and using it is an
 * error from now on. */
void gtorch_storage_set_stale (GTorchStorage *storage, const gchar *by);
/* Who did, or NULL. */
const gchar *gtorch_storage_get_stale (const GTorchStorage *storage);
GTorchStorage *gtorch_storage_ref (GTorchStorage *storage);
/* The last reference is gone. */
void gtorch_storage_free (GTorchStorage *storage);

/* Is it the last one? The only owner need not tell others: locked instructions are much of the time of a
 * small operation. */
static inline gboolean
gtorch_drop_reference (gint *ref_count)
{
  return __atomic_load_n (ref_count, __ATOMIC_ACQUIRE) == 1
         || g_atomic_int_dec_and_test (ref_count);
}

static inline void
gtorch_storage_unref (GTorchStorage *storage)
{
  if (gtorch_drop_reference (&storage->ref_count))
    gtorch_storage_free (storage);
}

/* --- who writes to a storage, and reads it --- */
/* Notes that the work of this number writes to the storage. */
void gtorch_storage_set_writer (GTorchStorage *storage, GTorchTimeline *timeline, guint64 seq);
/* Waits for whoever wrote to the storage; FALSE with the error if that was not done. */
gboolean gtorch_storage_wait (GTorchStorage *storage, GError **error);
/* Waits for the writer's work up to this number, which wrote to the storage or to its pool. */
gboolean gtorch_storage_wait_for (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq,
                                  GError **error);
/* Checks the work on an operand, if it is done: returns FALSE with its error if it failed or was skipped, and
 * TRUE if the stream itself will skip what uses the operand. */
gboolean gtorch_stream_check_operand (GTorchStream *stream, GTorchStorage *storage, GError **error);
/* Waits for copies that GPUs make from and to the storage. */
gboolean gtorch_storage_wait_copies (GTorchStorage *storage, GError **error);
/* The stream's further work comes after them. */
void gtorch_stream_enqueue_copies (GTorchStream *stream, GTorchStorage *storage);

G_END_DECLS
