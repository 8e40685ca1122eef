/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Programs that show traces draw the events of a thread as a tree, and Perfetto drops those that overlap
 * another one without being within it. Ranges of tasks that take turns in a thread do so, and kernels of a
 * stream that begin before the one before them has ended: they get tracks of their own. */

#include "config.h"

#include "profiler/gtorch-profile-tracks-private.h"

/* Above the numbers of the system's threads and of streams. */
#define FIRST_SPARE (G_GUINT64_CONSTANT (1) << 22)

typedef struct
{
  const GTorchTrack *tracks;
  const GTorchRecord *records;
} Order;

static gint
compare (gconstpointer a, gconstpointer b, gpointer data)
{
  const Order *order = data;
  const guint i = *(const guint *) a, j = *(const guint *) b;
  const GTorchTrack *x = &order->tracks[i], *y = &order->tracks[j];
  const GTorchRecord *one = &order->records[i], *other = &order->records[j];

  if (x->pid != y->pid)
    return x->pid < y->pid ? -1 : 1;
  if (x->tid != y->tid)
    return x->tid < y->tid ? -1 : 1;
  if (one->start != other->start)
    return one->start < other->start ? -1 : 1;
  if (one->end != other->end)
    return one->end > other->end ? -1 : 1;
  return i < j ? -1 : i > j;
}

/* The ends of what is open in a track, the innermost last. FALSE: the record would overlap. */
static gboolean
put (GArray *ends, const GTorchRecord *record)
{
  while (ends->len > 0 && g_array_index (ends, gint64, ends->len - 1) <= record->start)
    g_array_set_size (ends, ends->len - 1);
  if (ends->len > 0 && g_array_index (ends, gint64, ends->len - 1) < record->end)
    return FALSE;
  g_array_append_val (ends, record->end);
  return TRUE;
}

static GArray *
ends_new (void)
{
  return g_array_new (FALSE, FALSE, sizeof (gint64));
}

GArray *
gtorch_profile_tracks_spread (GTorchTrack *tracks, const GTorchRecord *records, guint n)
{
  GArray *spares = g_array_new (FALSE, FALSE, sizeof (GTorchSpareTrack));
  g_autoptr (GPtrArray) open = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  g_autoptr (GArray) indices = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autofree GTorchTrack *given = g_memdup2 (tracks, n * sizeof *tracks);
  Order order = { given, records };
  GTorchTrack last = { G_MAXUINT64, G_MAXUINT64 };
  guint first_spare = 0, i, j;

  for (i = 0; i < n; i++)
    if (records[i].kind != GTORCH_RECORD_ALLOC && records[i].kind != GTORCH_RECORD_FREE)
      g_array_append_val (indices, i);
  g_array_sort_with_data (indices, compare, &order);
  for (i = 0; i < indices->len; i++)
    {
      const guint index = g_array_index (indices, guint, i);
      const GTorchTrack own = given[index];

      if (own.pid != last.pid || own.tid != last.tid)
        {
          g_ptr_array_set_size (open, 0);
          g_ptr_array_add (open, ends_new ());
          first_spare = spares->len;
          last = own;
        }
      for (j = 0; j < open->len && !put (open->pdata[j], &records[index]);)
        j++;
      if (j == open->len)
        {
          const GTorchSpareTrack spare = { { own.pid, FIRST_SPARE + spares->len }, own, j + 1 };

          g_array_append_val (spares, spare);
          g_ptr_array_add (open, ends_new ());
          put (open->pdata[j], &records[index]);
        }
      if (j > 0)
        tracks[index] = g_array_index (spares, GTorchSpareTrack, first_spare + j - 1).track;
    }
  return spares;
}
