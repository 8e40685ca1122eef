/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/elements/gtorch-shared-memory.h>
#include <gtorch/memory/gtorch-storage-private.h>

G_BEGIN_DECLS

/* Memory of one storage, which all processes that have it use for this storage only. */
GTorchSharedMemory *gtorch_shared_memory_new_lasting (gsize n_bytes, GError **error);
/* Opens it by a file descriptor, which remains the caller's; the same file is the same object. */
GTorchSharedMemory *gtorch_shared_memory_open_lasting (gint fd, GError **error);
gboolean gtorch_shared_memory_is_lasting (GTorchSharedMemory *self);
/* Returns a storage of the first n_bytes, which must be there. */
GTorchStorage *gtorch_shared_memory_make_storage (GTorchSharedMemory *self, gsize n_bytes);
/* Returns the memory in which the storage is, borrowed, or NULL. */
GTorchSharedMemory *gtorch_shared_memory_find (const GTorchStorage *storage);
/* Lets others have the address of a storage, which does not move until they have given it back. Adds a
 * reference to the storage, which the second function drops. */
GTorchStorage *gtorch_shared_memory_hold_address (GTorchStorage *storage);
void gtorch_shared_memory_drop_address (GTorchStorage *storage);
/* Moves a storage of the host, which the library has allocated and no work uses, to lasting memory; FALSE
 * with GTORCH_ERROR_INVALID if others have its address. */
gboolean gtorch_shared_memory_move (GTorchStorage *storage, GError **error);

G_END_DECLS
