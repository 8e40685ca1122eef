/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Bytes on a device, and the ordering of work that reads and writes them. */

#include "config.h"

#include "memory/gtorch-storage-private.h"

#include "base/gtorch-observer-private.h"
#include "device/gtorch-device-private.h"
#include "memory/gtorch-pinned-private.h"
#include "stream/gtorch-stream-private.h"

const GTorchPinnedMemory *gtorch_pinned_memory;

GTorchStorage *
gtorch_storage_new (GTorchDevice *device, gsize n_bytes, GError **error)
{
  return gtorch_device_alloc (device, n_bytes, error);
}

typedef struct
{
  GTorchStorage storage;
  gboolean is_read_only;
  const gchar *stale_by; /* atomic */
} ForeignStorage;

GTorchStorage *
gtorch_storage_new_foreign (GTorchDevice *device, gpointer data, gsize n_bytes,
                            void (*free_func) (GTorchStorage *), gpointer free_data)
{
  GTorchStorage *storage = (GTorchStorage *) g_new0 (ForeignStorage, 1);

  storage->ref_count = 1;
  storage->data = data;
  storage->n_bytes = n_bytes;
  storage->device = device;
  storage->free_func = free_func;
  storage->free_data = free_data;
  return storage;
}

void
gtorch_storage_set_read_only (GTorchStorage *storage)
{
  g_assert (storage->free_func != NULL);
  ((ForeignStorage *) storage)->is_read_only = TRUE;
}

gboolean
gtorch_storage_is_read_only (const GTorchStorage *storage)
{
  return storage->free_func != NULL && ((const ForeignStorage *) storage)->is_read_only;
}

void
gtorch_storage_set_stale (GTorchStorage *storage, const gchar *by)
{
  g_assert (storage->free_func != NULL);
  __atomic_store_n (&((ForeignStorage *) storage)->stale_by, by, __ATOMIC_RELEASE);
}

const gchar *
gtorch_storage_get_stale (const GTorchStorage *storage)
{
  return storage->free_func != NULL
             ? __atomic_load_n (&((const ForeignStorage *) storage)->stale_by, __ATOMIC_ACQUIRE)
             : NULL;
}

GTorchStorage *
gtorch_storage_ref (GTorchStorage *storage)
{
  g_atomic_int_inc (&storage->ref_count);
  return storage;
}

void
gtorch_storage_free (GTorchStorage *storage)
{
  gtorch_observe_storage_free (storage);
  if (storage->free_func != NULL)
    {
      storage->free_func (storage);
      g_free (storage);
    }
  else
    gtorch_device_free (storage->device, storage);
}

/* --- readers and writers of a storage --- */

void
gtorch_storage_set_writer (GTorchStorage *storage, GTorchTimeline *timeline, guint64 seq)
{
  __atomic_store_n (&storage->write_seq, seq, __ATOMIC_RELAXED);
  __atomic_store_n (&storage->writer, timeline, __ATOMIC_RELEASE);
}

gboolean
gtorch_storage_wait_for (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq,
                         GError **error)
{
  const gboolean is_of_copies = gtorch_timeline_is_of_copies (writer);
  g_auto (GTorchHostBlock) block = gtorch_observe_host_block (storage->device);

  if (is_of_copies ? !writer->wait (writer, seq, NULL, error)
                   : !gtorch_timeline_wait (writer, seq, NULL, error))
    return FALSE;
  gtorch_observe_storage_waited (storage, writer, seq);
  return is_of_copies || gtorch_timeline_report_work (writer, seq, error);
}

gboolean
gtorch_storage_wait (GTorchStorage *storage, GError **error)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  if (writer == NULL)
    return TRUE;
  if (!gtorch_storage_wait_for (storage, writer,
                                __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED), error))
    return FALSE; /* the next call reports the error as well */
  __atomic_store_n (&storage->writer, NULL, __ATOMIC_RELAXED);
  return TRUE;
}

gboolean
gtorch_stream_check_operand (GTorchStream *stream, GTorchStorage *storage, GError **error)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  return writer == NULL || (writer == stream->timeline && g_atomic_int_get (&writer->is_failed))
         || gtorch_timeline_check_work (writer,
                                        __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED),
                                        error);
}

gboolean
gtorch_storage_wait_copies (GTorchStorage *storage, GError **error)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  return writer == NULL || !gtorch_timeline_is_of_copies (writer)
         || gtorch_storage_wait (storage, error);
}

typedef struct
{
  GTorchTimeline *timeline;
  guint64 seq;
} Copies;

static gboolean
await_copies (gpointer data, GError **error)
{
  const Copies *copies = data;

  return !gtorch_timeline_is_of_copies (copies->timeline)
         || copies->timeline->wait (copies->timeline, copies->seq, NULL, error);
}

void
gtorch_stream_enqueue_copies (GTorchStream *stream, GTorchStorage *storage)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);
  Copies *copies;

  if (writer == NULL || !gtorch_timeline_is_of_copies (writer))
    return;
  copies = g_new (Copies, 1);
  copies->timeline = writer;
  copies->seq = __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED);
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, await_copies, copies, g_free);
}
