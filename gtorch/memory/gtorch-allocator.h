/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ALLOCATOR (gtorch_allocator_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAllocator, gtorch_allocator, GTORCH, ALLOCATOR, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_allocator_get_device (GTorchAllocator *self);

GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_allocator_dup_stat_keys (GTorchAllocator *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_stat (GTorchAllocator *self, const gchar *key, GError **error);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_allocator_to_summary (GTorchAllocator *self, gboolean abbreviated);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_allocated (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_peak_allocated (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_reserved (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_peak_reserved (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_cached (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_allocator_get_fragmentation (GTorchAllocator *self);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_configure (GTorchAllocator *self, const gchar *text, GError **error);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_allocator_get_configuration (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_allocator_get_memory_fraction (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_set_memory_fraction (GTorchAllocator *self, gdouble fraction,
                                               GError **error);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_allocator_get_max_split_size (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_set_max_split_size (GTorchAllocator *self, guint64 n_bytes,
                                              GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_allocator_get_gc_threshold (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_set_gc_threshold (GTorchAllocator *self, gdouble threshold,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_get_caching (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_allocator_set_caching (GTorchAllocator *self, gboolean caching, GError **error);

GTORCH_AVAILABLE_IN_0_1
void gtorch_allocator_reset_peak (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_allocator_reset_accumulated (GTorchAllocator *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_allocator_trim (GTorchAllocator *self);

G_END_DECLS
