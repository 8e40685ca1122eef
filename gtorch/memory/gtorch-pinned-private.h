/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-storage-private.h>

G_BEGIN_DECLS

/* Pinned memory of the host, which devices copy from and to while the host does other things. The backend
 * that has it fills this in when the library is loaded. */
typedef struct
{
  /* Returns a storage of the CPU; fails if the limit is exceeded. */
  GTorchStorage *(*alloc) (gsize n_bytes, GError **error);
  void (*free) (GTorchStorage *storage); /* the free_func of these storages */
} GTorchPinnedMemory;

extern const GTorchPinnedMemory *gtorch_pinned_memory;

static inline gboolean
gtorch_storage_is_pinned (const GTorchStorage *storage)
{
  return storage->free_func != NULL && storage->free_func == gtorch_pinned_memory->free;
}

G_END_DECLS
