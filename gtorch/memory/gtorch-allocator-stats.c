/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The names of the allocators' statistics, and their table for users. */

#include "config.h"

#include <string.h>

#include "memory/gtorch-memory-pool-private.h"

static const gchar *const pools[GTORCH_N_POOLS] = { "all", "small_pool", "large_pool" };
static const gchar *const parts[] = { "current", "peak", "allocated", "freed" };

/* clang-format off */
static const gchar *const stats_names[GTORCH_N_STATS] = {
  [GTORCH_STAT_ALLOCATION]           = "allocation",
  [GTORCH_STAT_SEGMENT]              = "segment",
  [GTORCH_STAT_ACTIVE]               = "active",
  [GTORCH_STAT_INACTIVE_SPLIT]       = "inactive_split",
  [GTORCH_STAT_ALLOCATED_BYTES]      = "allocated_bytes",
  [GTORCH_STAT_RESERVED_BYTES]       = "reserved_bytes",
  [GTORCH_STAT_ACTIVE_BYTES]         = "active_bytes",
  [GTORCH_STAT_INACTIVE_SPLIT_BYTES] = "inactive_split_bytes",
  [GTORCH_STAT_REQUESTED_BYTES]      = "requested_bytes",
};

static const struct
{
  const gchar *name;
  gsize offset;
} singles[] = {
  { "num_alloc_retries",    G_STRUCT_OFFSET (GTorchMemoryStats, num_alloc_retries) },
  { "num_ooms",             G_STRUCT_OFFSET (GTorchMemoryStats, num_ooms) },
  { "num_sync_all_streams", G_STRUCT_OFFSET (GTorchMemoryStats, num_sync_all_streams) },
  { "num_device_alloc",     G_STRUCT_OFFSET (GTorchMemoryStats, num_device_alloc) },
  { "num_device_free",      G_STRUCT_OFFSET (GTorchMemoryStats, num_device_free) },
  { "max_split_size",       G_STRUCT_OFFSET (GTorchMemoryStats, max_split_size) },
}, oversize[] = {
  { "oversize_allocations", G_STRUCT_OFFSET (GTorchMemoryStats, oversize_allocations) },
  { "oversize_segments",    G_STRUCT_OFFSET (GTorchMemoryStats, oversize_segments) },
};
/* clang-format on */

static gint64
counter_part (const GTorchCounter *counter, guint part)
{
  switch (part)
    {
    case 0:
      return counter->current;
    case 1:
      return counter->peak;
    case 2:
      return counter->added;
    default:
      return gtorch_counter_freed (counter);
    }
}

typedef struct
{
  guint64 id;
  GTorchCounter reserved[GTORCH_N_POOLS];
} PoolStats;

static void
copy_pool (GTorchPool *pool, gpointer data)
{
  PoolStats copy = { .id = pool->id };

  gtorch_allocator_lock_stats (pool->device->allocator);
  memcpy (copy.reserved, pool->reserved, sizeof copy.reserved);
  gtorch_allocator_unlock_stats (pool->device->allocator);
  g_array_append_val ((GArray *) data, copy);
}

/* Calls func for each key until it returns TRUE. */
static gboolean
for_each (const GTorchMemoryStats *stats, GTorchDevice *device,
          gboolean (*func) (const gchar *key, gint64 value, gpointer data), gpointer data)
{
  g_autoptr (GArray) own = g_array_new (FALSE, FALSE, sizeof (PoolStats));
  gchar key[96];
  guint i, pool, part;

  for (i = 0; i < GTORCH_N_STATS; i++)
    for (pool = 0; pool < GTORCH_N_POOLS; pool++)
      for (part = 0; part < G_N_ELEMENTS (parts); part++)
        {
          g_snprintf (key, sizeof key, "%s.%s.%s", stats_names[i], pools[pool], parts[part]);
          if (func (key, counter_part (&stats->counters[pool][i], part), data))
            return TRUE;
        }
  for (i = 0; i < G_N_ELEMENTS (oversize); i++)
    for (part = 0; part < G_N_ELEMENTS (parts); part++)
      {
        g_snprintf (key, sizeof key, "%s.%s", oversize[i].name, parts[part]);
        if (func (key, counter_part (G_STRUCT_MEMBER_P (stats, oversize[i].offset), part), data))
          return TRUE;
      }
  for (i = 0; i < G_N_ELEMENTS (singles); i++)
    if (func (singles[i].name, G_STRUCT_MEMBER (gint64, stats, singles[i].offset), data))
      return TRUE;
  gtorch_pool_foreach (device, copy_pool, own);
  for (i = 0; i < own->len; i++)
    for (pool = 0; pool < GTORCH_N_POOLS; pool++)
      for (part = 0; part < G_N_ELEMENTS (parts); part++)
        {
          const PoolStats *of_pool = &g_array_index (own, PoolStats, i);

          g_snprintf (key, sizeof key,
                      "reserved_bytes_by_private_pools.0_%" G_GUINT64_FORMAT ".%s.%s", of_pool->id,
                      pools[pool], parts[part]);
          if (func (key, counter_part (&of_pool->reserved[pool], part), data))
            return TRUE;
        }
  return FALSE;
}

typedef struct
{
  const gchar *key;
  gint64 value;
} Search;

static gboolean
is_it (const gchar *key, gint64 value, gpointer data)
{
  Search *search = data;

  search->value = value;
  return strcmp (key, search->key) == 0;
}

gboolean
gtorch_memory_stats_find (const GTorchMemoryStats *stats, GTorchDevice *device, const gchar *key,
                          gint64 *value)
{
  Search search = { key, 0 };

  if (!for_each (stats, device, is_it, &search))
    return FALSE;
  *value = search.value;
  return TRUE;
}

static gboolean
note_key (const gchar *key, gint64 value, gpointer data)
{
  g_ptr_array_add (data, g_strdup (key));
  return FALSE;
}

gchar **
gtorch_memory_stats_keys (const GTorchMemoryStats *stats, GTorchDevice *device)
{
  GPtrArray *list = g_ptr_array_new ();

  for_each (stats, device, note_key, list);
  g_ptr_array_add (list, NULL);
  return (gchar **) g_ptr_array_free (list, FALSE);
}

/* --- the table --- */

#define WIDTH 75

static void
add_line (GString *text, gchar fill)
{
  guint i;

  g_string_append_c (text, '|');
  for (i = 0; i < WIDTH; i++)
    g_string_append_c (text, fill);
  g_string_append (text, "|\n");
}

/* Appends a number in the unit that suits `scale`, so that all rows of a metric have the same unit. */
static void
add_number (GString *text, gint64 value, gint64 scale, gboolean is_size)
{
  static const gchar *const size_units[] = { "B  ", "KiB", "MiB", "GiB", "TiB", "PiB" };
  static const gchar *const count_units[] = { " ", "K", "M" };
  gint64 step = is_size ? 1024 : 1000;
  gdouble limit = is_size ? 768 * 1024 : 750 * 1000, rest = scale;
  guint unit, n_units = is_size ? G_N_ELEMENTS (size_units) : G_N_ELEMENTS (count_units);

  for (unit = 0; unit + 1 < n_units && rest >= limit; unit++)
    {
      value /= step;
      rest /= step;
    }
  if (is_size)
    g_string_append_printf (text, "| %6" G_GINT64_FORMAT " %s ", value, size_units[unit]);
  else
    g_string_append_printf (text, "| %7" G_GINT64_FORMAT " %s  ", value, count_units[unit]);
}

static void
add_row (GString *text, const gchar *name, const GTorchCounter *counter, const GTorchCounter *scale,
         gboolean is_size)
{
  guint part;

  g_string_append_printf (text, "| %-21s ", name);
  for (part = 0; part < G_N_ELEMENTS (parts); part++)
    add_number (text, counter_part (counter, part), counter_part (scale, part), is_size);
  g_string_append (text, "|\n");
}

gchar *
gtorch_memory_stats_summary (const GTorchMemoryStats *stats, GTorchDevice *device,
                             gboolean abbreviated)
{
  static const struct
  {
    GTorchStat stat;
    const gchar *name;
    gboolean is_size;
  } rows[] = {
    { GTORCH_STAT_ALLOCATED_BYTES, "Allocated memory", TRUE },
    { GTORCH_STAT_ACTIVE_BYTES, "Active memory", TRUE },
    { GTORCH_STAT_REQUESTED_BYTES, "Requested memory", TRUE },
    { GTORCH_STAT_RESERVED_BYTES, "GPU reserved memory", TRUE },
    { GTORCH_STAT_INACTIVE_SPLIT_BYTES, "Non-releasable memory", TRUE },
    { GTORCH_STAT_ALLOCATION, "Allocations", FALSE },
    { GTORCH_STAT_ACTIVE, "Active allocs", FALSE },
    { GTORCH_STAT_SEGMENT, "GPU reserved segments", FALSE },
    { GTORCH_STAT_INACTIVE_SPLIT, "Non-releasable allocs", FALSE },
  };
  const GTorchCounter *large, *small;
  GString *text = g_string_new (NULL);
  guint i;

  add_line (text, '=');
  g_string_append_printf (text, "|%20s GTorch memory summary, device %-24s|\n", "",
                          gtorch_device_name (device));
  add_line (text, '-');
  g_string_append_printf (text,
                          "|%11s CUDA OOMs: %-12" G_GINT64_FORMAT
                          " | %6s cudaMalloc retries: %-8" G_GINT64_FORMAT "  |\n",
                          "", stats->num_ooms, "", stats->num_alloc_retries);
  add_line (text, '=');
  g_string_append (text, "|        Metric         "
                         "| Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
  for (i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      const GTorchCounter *all = &stats->counters[GTORCH_POOL_ALL][rows[i].stat];

      large = &stats->counters[GTORCH_POOL_LARGE][rows[i].stat];
      small = &stats->counters[GTORCH_POOL_SMALL][rows[i].stat];
      add_line (text, '-');
      add_row (text, rows[i].name, all, all, rows[i].is_size);
      if (abbreviated)
        continue;
      add_row (text, "      from large pool", large, all, rows[i].is_size);
      add_row (text, "      from small pool", small, all, rows[i].is_size);
    }
  add_line (text, '-');
  add_row (text, "Oversize allocations", &stats->oversize_allocations, &stats->oversize_allocations,
           FALSE);
  add_line (text, '-');
  add_row (text, "Oversize GPU segments", &stats->oversize_segments, &stats->oversize_segments,
           FALSE);
  add_line (text, '=');
  return g_string_free (text, FALSE);
}
