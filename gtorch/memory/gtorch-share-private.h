/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-storage-private.h>

G_BEGIN_DECLS

/* How memory of a device gets to other processes: GTorchDeviceClass.shares. A device of the host moves the
 * memory of a storage to memory that other processes can map, and implements move and find_moved; any other
 * device implements describe and open. */
struct _GTorchShareBackend
{
  /* Gives the storage other memory, from which its tensors have their elements from now on; free_func is
   * called when the storage is freed. The storage is of the device's own allocator, and no work uses it. */
  void (*move) (GTorchStorage *storage, gpointer data, GDestroyNotify free_func,
                gpointer free_data);
  /* Returns the free_data of a storage that was moved with this free_func, or NULL. */
  gpointer (*find_moved) (const GTorchStorage *storage, GDestroyNotify free_func);

  /* Describes the memory of the storage for another process, and appends the file descriptors (gint) that
   * the process needs, which the caller closes. Returns a floating reference. */
  GVariant *(*describe) (GTorchDevice *device, GTorchStorage *storage, GArray *fds, GError **error);
  /* Opens memory that another process has described, and returns a storage of n_bytes. free_func is called,
   * in any thread, when no work uses the memory any more. Keeps none of the file descriptors. */
  GTorchStorage *(*open) (GTorchDevice *device, GVariant *description, const gint *fds, gsize n_fds,
                          gsize n_bytes, GDestroyNotify free_func, gpointer free_data,
                          GError **error);
};

G_END_DECLS
