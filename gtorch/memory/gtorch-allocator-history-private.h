/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-allocator-history.h>
#include <gtorch/memory/gtorch-allocator-private.h>
#include <gtorch/base/gtorch-check-private.h>

G_BEGIN_DECLS

/* What snapshots, reports and messages read of an allocator's history. */

struct _GTorchMemorySite
{
  gint ref_count;
  const gchar *op;   /* static; NULL outside operations */
  const char *place; /* see gtorch_place_take (): a GRefString, or NULL */
  GTorchSite site;
};

typedef struct
{
  GTorchMemoryAction action;
  guint64 address, size, stream, pool_id;
  gint64 time_us;
  gsize available;        /* free memory of the device, for OOM entries */
  GTorchMemorySite *site; /* owned reference or NULL */
} GTorchMemoryEntry;

/* The memory that one site has allocated. */
typedef struct
{
  GTorchMemorySite *site; /* owned reference */
  guint64 n_bytes;
  guint n;
} GTorchMemoryPlace;

gboolean gtorch_memory_site_equal (gconstpointer a, gconstpointer b);
/* The operation, or “memory”. */
const gchar *gtorch_memory_site_get_op (const GTorchMemorySite *self);
/* One line: where the program was in the words of its language, otherwise functions of C. */
gchar *gtorch_memory_site_to_string (const GTorchMemorySite *self);

/* GTorchBlockInfo: all blocks of an allocator that has list_blocks. */
GArray *gtorch_allocator_dup_blocks (GTorchAllocator *self);
/* GTorchMemoryEntry: the recorded events, of one pool or of all (0). */
GArray *gtorch_allocator_dup_entries (GTorchAllocator *self, guint64 pool_id);
GTorchHistoryLevel gtorch_allocator_get_history_level (GTorchAllocator *self);

/* GTorchMemoryPlace, by site. */
GHashTable *gtorch_memory_places_new (void);
void gtorch_memory_places_add (GHashTable *places, GTorchMemorySite *site, gint64 n_bytes);
/* The places that hold memory, the largest first; they belong to the table. */
GPtrArray *gtorch_memory_places_sort (GHashTable *places);
/* Those of blocks that are in use. */
GHashTable *gtorch_memory_places_of_blocks (const GArray *blocks);

G_END_DECLS
