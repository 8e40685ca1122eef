/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* Memory of GPUs that others have allocated. */

/* free_func is called, in any thread, when nothing that was given to the GPU uses it. FORMAT if the memory is
 * not the device's. is_managed: it may be the host's as well. */
GTorchStorage *gtorch_cuda_adopt (GTorchDevice *device, gpointer data, gsize n_bytes,
                                  gboolean is_managed, GDestroyNotify free_func, gpointer free_data,
                                  GError **error);
/* The bits of the lanes that have used it; NULL for other storages. */
guint64 *gtorch_cuda_adopted_uses (GTorchStorage *storage);
/* Pinned, by whoever it was: the driver copies it after the call has returned. */
gboolean gtorch_cuda_is_host_memory (gconstpointer address);

G_END_DECLS
