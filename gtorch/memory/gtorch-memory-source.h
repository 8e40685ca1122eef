/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MEMORY_SOURCE (gtorch_memory_source_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchMemorySource, gtorch_memory_source, GTORCH, MEMORY_SOURCE, GObject)

/**
 * GTorchMemorySourceClass:
 * @parent_class: the parent class
 * @allocate: allocates memory; see [method@MemorySource.allocate]
 * @release: frees memory; see [method@MemorySource.release]
 *
 * The class structure; subclasses implement both functions. They are called from any thread, and never with
 * a lock of the library held.
 *
 * Since: 0.1
 */
struct _GTorchMemorySourceClass
{
  GObjectClass parent_class;

  guint64 (*allocate) (GTorchMemorySource *self, GTorchDevice *device, guint64 n_bytes,
                       guint64 stream, GError **error);
  void (*release) (GTorchMemorySource *self, GTorchDevice *device, guint64 address, guint64 n_bytes,
                   guint64 stream);

  /*< private >*/
  gpointer padding[6];
};

GTORCH_AVAILABLE_IN_0_1
GTorchMemorySource *gtorch_memory_source_load (const gchar *path, const gchar *alloc_symbol,
                                               const gchar *free_symbol,
                                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_memory_source_allocate (GTorchMemorySource *self, GTorchDevice *device,
                                       guint64 n_bytes, guint64 stream, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_memory_source_release (GTorchMemorySource *self, GTorchDevice *device, guint64 address,
                                   guint64 n_bytes, guint64 stream);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_set_source (GTorchAllocator *self, GTorchMemorySource *source,
                                      GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchMemorySource *gtorch_allocator_get_source (GTorchAllocator *self);

G_END_DECLS
