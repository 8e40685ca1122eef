/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which code holds how much memory, and what an error about too little memory says of it: the places that
 * hold most, and one of them that would free enough. */

#include "config.h"

#include "memory/gtorch-allocator-history-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-place-private.h"

#define MAX_PLACES 5

/* The sizes in which drivers give memory; see gtorch-cuda-arena.c. */
#define PAGE          (G_GUINT64_CONSTANT (2) << 20)
#define SEGMENT_LARGE (G_GUINT64_CONSTANT (20) << 20)
#define SEGMENT_EXACT (G_GUINT64_CONSTANT (10) << 20)

/* --- places --- */

const gchar *
gtorch_memory_site_get_op (const GTorchMemorySite *self)
{
  return self->op != NULL ? self->op : _ ("memory");
}

gchar *
gtorch_memory_site_to_string (const GTorchMemorySite *self)
{
  return self->place != NULL ? gtorch_place_dup_first (self->place)
                             : gtorch_site_to_string (&self->site);
}

static guint
site_hash (gconstpointer key)
{
  const GTorchMemorySite *self = key;
  guint hash = g_direct_hash (self->op) ^ g_direct_hash (self->place), i;

  for (i = 0; self->place == NULL && i < GTORCH_SITE_FRAMES && self->site.frames[i] != NULL; i++)
    hash = hash * 31 + g_direct_hash (self->site.frames[i]);
  return hash;
}

gboolean
gtorch_memory_site_equal (gconstpointer a, gconstpointer b)
{
  const GTorchMemorySite *x = a, *y = b;
  guint i;

  if (x->op != y->op || x->place != y->place) /* equal texts have one address */
    return FALSE;
  /* What is compiled at run time calls from other addresses than what interprets the same line. */
  for (i = 0; x->place == NULL && i < GTORCH_SITE_FRAMES; i++)
    {
      if (x->site.frames[i] != y->site.frames[i])
        return FALSE;
      if (x->site.frames[i] == NULL)
        break;
    }
  return TRUE;
}

static void
place_free (gpointer data)
{
  gtorch_memory_site_unref (((GTorchMemoryPlace *) data)->site);
  g_free (data);
}

GHashTable *
gtorch_memory_places_new (void)
{
  return g_hash_table_new_full (site_hash, gtorch_memory_site_equal, NULL, place_free);
}

void
gtorch_memory_places_add (GHashTable *places, GTorchMemorySite *site, gint64 n_bytes)
{
  GTorchMemoryPlace *place;

  if (site == NULL)
    return;
  place = g_hash_table_lookup (places, site);
  if (place == NULL)
    {
      place = g_new0 (GTorchMemoryPlace, 1);
      place->site = gtorch_memory_site_ref (site);
      g_hash_table_insert (places, place->site, place);
    }
  place->n_bytes += n_bytes;
  if (n_bytes > 0)
    place->n++;
  else
    place->n--;
}

static gint
by_size (gconstpointer a, gconstpointer b)
{
  const GTorchMemoryPlace *x = *(GTorchMemoryPlace *const *) a;
  const GTorchMemoryPlace *y = *(GTorchMemoryPlace *const *) b;

  return x->n_bytes > y->n_bytes ? -1 : x->n_bytes < y->n_bytes;
}

GPtrArray *
gtorch_memory_places_sort (GHashTable *places)
{
  GPtrArray *sorted = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer place;

  g_hash_table_iter_init (&iter, places);
  while (g_hash_table_iter_next (&iter, NULL, &place))
    if (((GTorchMemoryPlace *) place)->n > 0)
      g_ptr_array_add (sorted, place);
  g_ptr_array_sort (sorted, by_size);
  return sorted;
}

GHashTable *
gtorch_memory_places_of_blocks (const GArray *blocks)
{
  GHashTable *places = gtorch_memory_places_new ();
  guint i;

  for (i = 0; i < blocks->len; i++)
    {
      const GTorchBlockInfo *info = &g_array_index (blocks, GTorchBlockInfo, i);

      if (info->state != GTORCH_BLOCK_INACTIVE)
        gtorch_memory_places_add (places, info->site, info->size);
    }
  return places;
}

/* --- what would be enough --- */

typedef struct
{
  guint64 run;   /* the largest piece in one */
  guint64 whole; /* in pages or segments without anything else */
} Room;

/* Whether the block would be free without the tensors of the place. */
static gboolean
is_free_without (const GTorchBlockInfo *info, const GTorchMemorySite *site)
{
  return info->state != GTORCH_BLOCK_ALLOCATED
         || (info->site != NULL && gtorch_memory_site_equal (info->site, site));
}

/* The bytes of the pages that lie in the free blocks from first to last, which follow each other. */
static guint64
whole_pages (const GTorchBlockInfo *first, const GTorchBlockInfo *last, gboolean is_segment)
{
  guint64 start = first->address, end = last->address + last->size;

  if (!first->is_expandable)
    return is_segment ? end - start : 0;
  if (start > first->head.start)
    start = first->head.end;
  if (end < last->tail.end)
    end = last->tail.start;
  return end > start ? end - start : 0;
}

/* A piece can be used as it is only by requests of its stream, which is not known here unless there is only
 * one, and of its pool; others can get whole pages. */
static gboolean
has_streams (const GArray *blocks)
{
  const GTorchBlockInfo *all = (const GTorchBlockInfo *) (gpointer) blocks->data;
  guint i;

  for (i = 1; i < blocks->len; i++)
    if (all[i].stream != all[0].stream)
      return TRUE;
  return FALSE;
}

static Room
room_without (const GArray *blocks, const GTorchMemorySite *site, guint pool)
{
  const GTorchBlockInfo *all = (const GTorchBlockInfo *) (gpointer) blocks->data;
  const gboolean is_one = !has_streams (blocks);
  Room room = { 0, 0 };
  guint i, n;

  for (i = 0; i < blocks->len; i += n)
    {
      guint64 size = 0;

      n = 1;
      if (all[i].pool_id != 0 || !is_free_without (&all[i], site))
        continue;
      for (n = 0; i + n < blocks->len && is_free_without (&all[i + n], site)
                  && (n == 0 || !all[i + n].begins_segment);
           n++)
        size += all[i + n].size;
      if (all[i].pool == pool && is_one)
        room.run = MAX (room.run, size);
      room.whole += whole_pages (&all[i], &all[i + n - 1],
                                 all[i].begins_segment
                                     && (i + n == blocks->len || all[i + n].begins_segment));
    }
  return room;
}

/* What the driver is asked for. */
static guint64
round_request (GTorchAllocator *self, guint64 n_bytes)
{
  if (self->config.backend != GTORCH_BACKEND_ARENAS && n_bytes > PAGE / 2
      && n_bytes < SEGMENT_EXACT)
    return SEGMENT_LARGE;
  return (n_bytes + PAGE - 1) / PAGE * PAGE;
}

static gboolean
is_enough (GTorchAllocator *self, const GArray *blocks, const GTorchMemoryPlace *place,
           guint64 n_bytes, guint64 available)
{
  const gdouble limit = self->config.fraction * gtorch_device_get_total_memory (self->device);
  const guint pool = n_bytes <= PAGE / 2 ? GTORCH_POOL_SMALL : GTORCH_POOL_LARGE;
  const Room room = room_without (blocks, place->site, pool);
  const gdouble reserved = gtorch_allocator_get_reserved (self);

  return room.run >= n_bytes
         || (available + room.whole >= round_request (self, n_bytes)
             && reserved - room.whole + round_request (self, n_bytes) <= limit);
}

/* Example: 3 × randn, together 96 MiB, in train (program+0x1234) */
static void
append_place (GString *text, const GTorchMemoryPlace *place)
{
  g_autofree gchar *size = g_format_size_full (place->n_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *where = gtorch_memory_site_to_string (place->site);

  g_string_append_printf (text, _ ("; %u × %s, together %s, in %s"), place->n,
                          gtorch_memory_site_get_op (place->site), size, where);
}

gchar *
gtorch_allocator_describe_places (GTorchAllocator *self, gsize n_bytes, gsize available)
{
  g_autoptr (GArray) blocks = NULL;
  g_autoptr (GHashTable) table = NULL;
  g_autoptr (GPtrArray) places = NULL;
  GString *text;
  guint i;

  if (self->list_blocks == NULL)
    return NULL;
  if (!gtorch_allocator_has_history (self, GTORCH_HISTORY_STATE))
    return g_strdup (_ ("; if record_history of the allocator was called, this also says where "
                        "the largest tensors were made"));
  blocks = gtorch_allocator_dup_blocks (self);
  table = gtorch_memory_places_of_blocks (blocks);
  places = gtorch_memory_places_sort (table);
  text = g_string_new (NULL);
  for (i = 0; i < MIN (places->len, MAX_PLACES); i++)
    append_place (text, places->pdata[i]);
  for (i = 0; i < MIN (places->len, MAX_PLACES); i++)
    {
      const GTorchMemoryPlace *place = places->pdata[i];
      g_autofree gchar *where = NULL;

      if (!is_enough (self, blocks, place, n_bytes, available))
        continue;
      where = gtorch_memory_site_to_string (place->site);
      g_string_append_printf (text, _ ("; it is enough to drop what was made in %s (%s)"), where,
                              gtorch_memory_site_get_op (place->site));
      break;
    }
  if (i > 0 && i == MIN (places->len, MAX_PLACES) && !has_streams (blocks))
    g_string_append (text,
                     _ ("; to drop what was made in one of these places alone is not enough"));
  return g_string_free (text, FALSE);
}
