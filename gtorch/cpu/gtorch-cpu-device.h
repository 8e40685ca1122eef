/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

GTorchDevice *gtorch_cpu_device_new (void);

/* --- gtorch-cpu-stream.c --- */
GTorchStream *gtorch_cpu_stream_new (GTorchDevice *device, gint priority, GError **error);
void gtorch_cpu_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest);
gboolean gtorch_cpu_stream_record (GTorchDevice *device, GTorchStorage *storage,
                                   GTorchStream *stream, GError **error);
gboolean gtorch_cpu_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                            GError **error);

/* --- gtorch-cpu-allocator.c --- */
GTorchStorage *gtorch_cpu_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
void gtorch_cpu_free (GTorchDevice *device, GTorchStorage *storage);
guint64 gtorch_cpu_total_memory (GTorchDevice *device);
gboolean gtorch_cpu_memory_info (GTorchDevice *device, guint64 *available, guint64 *total,
                                 GError **error);
void gtorch_cpu_sync_stats (GTorchDevice *device, struct _GTorchMemoryStats *stats);
void gtorch_cpu_reset_peak (GTorchDevice *device);
void gtorch_cpu_empty_cache (GTorchDevice *device);

G_END_DECLS
