/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* --- gtorch-cpu-stream.c: queues that a thread of the host serves, for all backends whose work the host
 * does --- */
GTorchStream *gtorch_cpu_stream_new (GTorchDevice *device, gint priority, const gpointer *handle,
                                     GError **error);
void gtorch_cpu_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest);
gboolean gtorch_cpu_stream_record (GTorchDevice *device, GTorchStorage *storage,
                                   GTorchStream *stream, GError **error);
gboolean gtorch_cpu_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                            GError **error);

/* --- gtorch-cpu-sample.c --- */
struct _GTorchDeviceSample;
gboolean gtorch_cpu_take_sample (GTorchDevice *device, struct _GTorchDeviceSample *sample,
                                 GError **error);

/* --- gtorch-cpu-allocator.c --- */
GTorchStorage *gtorch_cpu_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
void gtorch_cpu_free (GTorchDevice *device, GTorchStorage *storage);
gboolean gtorch_cpu_memory_info (GTorchDevice *device, guint64 *available, guint64 *total,
                                 GError **error);
void gtorch_cpu_sync_stats (GTorchDevice *device, struct _GTorchMemoryStats *stats,
                            gboolean restart);
void gtorch_cpu_empty_cache (GTorchDevice *device);
/* Moves storages to memory that other processes see. */
extern const struct _GTorchShareBackend gtorch_cpu_shares;

G_END_DECLS
