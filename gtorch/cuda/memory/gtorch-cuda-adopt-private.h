/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* Adopted memory: memory of a GPU that other libraries have allocated. */

/* Makes a storage that wraps memory of another library. free_func is called, in any thread, when no work on
 * the GPU uses the memory any more. With is_managed, the memory may also be the host's. Returns NULL with
 * GTORCH_ERROR_FORMAT if the memory is not the device's. */
GTorchStorage *gtorch_cuda_adopt (GTorchDevice *device, gpointer data, gsize n_bytes,
                                  gboolean is_managed, GDestroyNotify free_func, gpointer free_data,
                                  GError **error);
/* Returns the bits of the lanes that have used an adopted storage; NULL for other storages. */
guint64 *gtorch_cuda_adopted_uses (GTorchStorage *storage);
/* Returns whether the address is in pinned host memory, whoever pinned it. Copies of such memory may still
 * be in progress when the driver's function returns. */
gboolean gtorch_cuda_is_host_memory (gconstpointer address);

G_END_DECLS
