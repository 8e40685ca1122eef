/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-inner-types-private.h>

G_BEGIN_DECLS

/* Bytes on a device, shared by a tensor and its views. */
struct _GTorchStorage
{
  gint ref_count;
  guint version; /* incremented by every in-place write; atomic */
  gpointer data;
  gsize n_bytes;
  GTorchDevice *device;                       /* devices live as long as the process */
  void (*free_func) (GTorchStorage *storage); /* NULL: free with the device's allocator */
  gpointer free_data;
  struct _GTorchTimeline *writer; /* the queue that wrote to it last, until that was waited for */
  guint64 write_seq;              /* the position of that work in the queue */
};

GTorchStorage *gtorch_storage_new (GTorchDevice *device, gsize n_bytes, GError **error);
GTorchStorage *gtorch_storage_new_foreign (GTorchDevice *device, gpointer data, gsize n_bytes,
                                           void (*free_func) (GTorchStorage *), gpointer free_data);
/* Makes in-place operations on tensors that use the storage fail from now on. Only for storages that wrap
 * foreign memory. */
void gtorch_storage_set_read_only (GTorchStorage *storage);
gboolean gtorch_storage_is_read_only (const GTorchStorage *storage);
/* Makes every use of the storage fail from now on, since a replay of what `by` names has overwritten it.
 * Only for storages that wrap foreign memory. */
void gtorch_storage_set_stale (GTorchStorage *storage, const gchar *by);
/* Returns the name passed to gtorch_storage_set_stale (), or NULL. */
const gchar *gtorch_storage_get_stale (const GTorchStorage *storage);
GTorchStorage *gtorch_storage_ref (GTorchStorage *storage);
/* Frees the storage when the last reference has been dropped. */
void gtorch_storage_free (GTorchStorage *storage);

/* Drops a reference; returns TRUE if it was the last one. A sole owner skips the atomic instruction, since
 * these are much of the time of a small operation. */
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

/* --- readers and writers of a storage --- */
/* Records that the work of this number on the timeline writes to the storage. */
void gtorch_storage_set_writer (GTorchStorage *storage, GTorchTimeline *timeline, guint64 seq);
/* Waits for the last writer of the storage; returns FALSE with its error if it failed. */
gboolean gtorch_storage_wait (GTorchStorage *storage, GError **error);
/* Waits for the writer's work up to this number, which wrote to the storage or to its pool. */
gboolean gtorch_storage_wait_for (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq,
                                  GError **error);
/* Checks the work that wrote the operand, if it is done. Returns FALSE with its error if it failed or was
 * skipped; returns TRUE if this stream will skip the work that uses the operand anyway. */
gboolean gtorch_stream_check_operand (GTorchStream *stream, GTorchStorage *storage, GError **error);
/* Waits for copies by GPUs from and to the storage. */
gboolean gtorch_storage_wait_copies (GTorchStorage *storage, GError **error);
/* Makes the stream's further work wait for copies by GPUs from and to the storage. */
void gtorch_stream_enqueue_copies (GTorchStream *stream, GTorchStorage *storage);

G_END_DECLS
