/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Crowds: places that receive many elements through indices. Each addition to a float32 is rounded, and
 * the errors of n successive additions add up to n / 2 units in the last place. A few elements may be
 * added directly to the target, but the elements of a crowd are summed in an accumulator of twice the
 * width, which is rounded once. There are few crowds, since each takes many of the n elements, so their
 * accumulators are small whatever the size of the target. Usually there are none, and finding that out
 * must be cheap. The elements are counted in one of these ways:
 *
 *   - not at all, if there are so few places that most are crowded: every place has an accumulator;
 *   - else one of eight elements, in buckets of several places that fit into the cache: usually no
 *     bucket is crowded;
 *   - else all elements, in the same buckets, then in a table of the places whose bucket is crowded.
 *
 * Counting one of eight may miss places that barely exceed the limit. A place with 1024 elements has 128
 * of them counted on average, with a standard deviation of 11, and 32 are enough. The position of the
 * counted element within each eight is stepped by the golden ratio, so that no period of the indices
 * hides a crowd.
 *
 * Neither the choice of crowds nor the order in which their elements are added depends on the number of
 * threads. */

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "device/gtorch-device-manager.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

/* The limit for successive additions to a float32: their rounding errors stay below 2^-16 of the sum of
 * the absolute values. */
#define FEW 256

guint
gtorch_crowds_limit (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
    case GTORCH_DTYPE_COMPLEX64:
      return FEW;
    case GTORCH_DTYPE_FLOAT16:
    case GTORCH_DTYPE_BFLOAT16:
      return 1; /* even a few roundings to these dtypes are visible */
    default:
      return 0;
    }
}

static inline guint64
hash (gint64 place, guint bits)
{
  return ((guint64) place * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> (64 - bits);
}

static guint
bits_for (gint64 n, guint least)
{
  return MAX (least, g_bit_storage (MAX (n, 1)));
}

/* One of SAMPLE elements is counted. */
#define SAMPLE_BITS 3
#define SAMPLE      (1 << SAMPLE_BITS)

static inline gint64
pick (guint32 *turn)
{
  *turn += 0x9e3779b9u;
  return *turn >> (32 - SAMPLE_BITS);
}

/* Count places in 2^bits buckets and tell whether any count is that of a crowd. `seen` is the bitwise OR
 * of all counts and has a high bit as soon as one count does. The counts do not overflow, because `seen`
 * is checked after each PIECE elements. */
#define PIECE        (4096 * SAMPLE)
#define IS_CROWDED() (seen >= FEW / SAMPLE)

#define COUNT(place, bucket)                               \
  {                                                        \
    const guint16 count = counts[bucket] + ((place) >= 0); \
                                                           \
    seen |= count;                                         \
    counts[bucket] = count;                                \
  }

static gboolean
count_places (guint16 *counts, guint bits, gboolean direct, const gint64 *places, gint64 n)
{
  guint32 turn = 0;
  guint seen = 0;
  gint64 i = 0;

  while (i + SAMPLE <= n && !IS_CROWDED ())
    {
      const gint64 stop = MIN (i + PIECE, n - SAMPLE + 1);

      if (direct)
        for (; i < stop; i += SAMPLE)
          {
            const gint64 place = places[i + pick (&turn)];

            COUNT (place, place)
          }
      else
        for (; i < stop; i += SAMPLE)
          {
            const gint64 place = places[i + pick (&turn)];

            COUNT (place, hash (place, bits))
          }
    }
  return IS_CROWDED ();
}

/* Counts like count_places (), but for m adjacent lines that start next to each other: one of SAMPLE
 * rows is counted. */
static gboolean
count_rows (guint16 *counts, guint bits, gboolean direct, const gint64 *index, gint64 length,
            gint64 inner, gint64 m, gint64 width)
{
  guint32 turn = 0;
  guint seen = 0;
  gint64 i, k;

  for (i = 0; i + SAMPLE <= length && !IS_CROWDED (); i += SAMPLE)
    {
      const gint64 *row = index + (i + pick (&turn)) * inner;

      if (direct)
        for (k = 0; k < m; k++)
          COUNT (0, row[k] * width + k)
      else
        for (k = 0; k < m; k++)
          COUNT (0, hash (row[k] * width + k, bits))
    }
  return IS_CROWDED ();
}

/* --- places of one list --- */

static gboolean
number_all (GTorchCrowds *self, const gint64 *offsets, gint64 n, gint64 unit, gint64 n_places,
            GError **error)
{
  const guint shift = g_bit_nth_lsf (unit, -1);
  gint64 i;

  self->places = gtorch_scratch_new (n_places, sizeof (gint64), error);
  if (self->places == NULL)
    return FALSE;
  self->n_slots = n_places;
  for (i = 0; i < n_places; i++)
    self->places[i] = i * unit;
  if (unit == G_GINT64_CONSTANT (1) << shift)
    for (i = 0; i < n; i++)
      self->slots[i] = offsets[i] < 0 ? GTORCH_NO_CROWD : (guint32) (offsets[i] >> shift);
  else
    for (i = 0; i < n; i++)
      self->slots[i] = offsets[i] < 0 ? GTORCH_NO_CROWD : (guint32) (offsets[i] / unit);
  return TRUE;
}

/* An entry of a hash table with open addressing, which counts the elements of a place. */
typedef struct
{
  gint64 place;  /* -1 if the entry is free */
  guint32 count; /* replaced by the number of the crowd at the end */
} Entry;

typedef struct
{
  Entry *entries;
  guint bits;
  gint64 n_used;
} Table;

static inline Entry *
table_find (const Table *table, gint64 place)
{
  const guint64 mask = (G_GUINT64_CONSTANT (1) << table->bits) - 1;
  guint64 at = hash (place, table->bits);

  while (table->entries[at].place >= 0 && table->entries[at].place != place)
    at = (at + 1) & mask;
  return &table->entries[at];
}

static gboolean
table_grow (Table *table, GError **error)
{
  g_autofree Entry *old = table->entries;
  const gint64 n_old = old != NULL ? G_GINT64_CONSTANT (1) << table->bits : 0;
  gint64 i, n;

  table->bits = old != NULL ? table->bits + 2 : 8;
  n = G_GINT64_CONSTANT (1) << table->bits;
  table->entries = gtorch_scratch_new (n, sizeof (Entry), error);
  if (table->entries == NULL)
    return FALSE;
  for (i = 0; i < n; i++)
    table->entries[i] = (Entry){ -1, 0 };
  for (i = 0; i < n_old; i++)
    if (old[i].place >= 0)
      *table_find (table, old[i].place) = old[i];
  return TRUE;
}

static gboolean
number_table (GTorchCrowds *self, const Table *table, guint limit, GError **error)
{
  const gint64 n = G_GINT64_CONSTANT (1) << table->bits;
  gint64 i, k = 0;

  for (i = 0; i < n; i++)
    k += table->entries[i].count > limit;
  self->n_slots = k;
  if (k == 0)
    return TRUE;
  self->places = gtorch_scratch_new (k, sizeof (gint64), error);
  if (self->places == NULL)
    return FALSE;
  for (i = 0, k = 0; i < n; i++)
    if (table->entries[i].count > limit)
      {
        self->places[k] = table->entries[i].place;
        table->entries[i].count = k++;
      }
    else
      table->entries[i].count = GTORCH_NO_CROWD;
  return TRUE;
}

/* Finds the crowds with a table. If `buckets` is NULL, all places are candidates, else those in crowded
 * buckets. */
static gboolean
number_found (GTorchCrowds *self, const gint64 *offsets, gint64 n, const guint16 *buckets,
              guint bits, guint limit, GError **error)
{
  Table table = { NULL };
  gboolean done = table_grow (&table, error);
  gint64 i;

#define IS_CANDIDATE(i) \
  (offsets[i] >= 0 && (buckets == NULL || buckets[hash (offsets[i], bits)] > limit))
  for (i = 0; done && i < n; i++)
    if (IS_CANDIDATE (i))
      {
        Entry *entry = table_find (&table, offsets[i]);

        entry->count++;
        if (entry->place >= 0)
          continue;
        entry->place = offsets[i];
        if (2 * ++table.n_used > G_GINT64_CONSTANT (1) << table.bits)
          done = table_grow (&table, error);
      }
  done = done && number_table (self, &table, limit, error);
  for (i = 0; done && i < n && self->n_slots > 0; i++)
    self->slots[i] = IS_CANDIDATE (i) ? table_find (&table, offsets[i])->count : GTORCH_NO_CROWD;
#undef IS_CANDIDATE
  g_free (table.entries);
  return done;
}

static gboolean
number (GTorchCrowds *self, const gint64 *offsets, gint64 n, gint64 unit, gint64 n_places,
        guint limit, GError **error)
{
  const guint bits = bits_for (n / 64, 8);
  g_autofree guint16 *buckets = NULL;
  gint64 i;

  if (n_places <= n / FEW)
    return number_all (self, offsets, n, unit, n_places, error);
  if (limit == 1)
    return number_found (self, offsets, n, NULL, 0, limit, error);
  buckets = gtorch_scratch_new0 (G_GINT64_CONSTANT (1) << bits, sizeof (guint16), error);
  if (buckets == NULL)
    return FALSE;
  if (!count_places (buckets, bits, FALSE, offsets, n))
    return TRUE;
  /* count_places () stopped at the first crowd, so all elements are counted anew. */
  memset (buckets, 0, sizeof (guint16) << bits);
  for (i = 0; i < n; i++)
    {
      guint16 *count = &buckets[hash (offsets[i], bits)];

      *count += offsets[i] >= 0 && *count <= limit;
    }
  return number_found (self, offsets, n, buckets, bits, limit, error);
}

gboolean
gtorch_crowds_init (GTorchCrowds *self, const gint64 *offsets, gint64 n, gint64 unit, gint64 extent,
                    guint dtype, GError **error)
{
  const guint limit = gtorch_crowds_limit (dtype);
  const gint64 n_places = extent / unit + 1;
  gboolean done;

  memset (self, 0, sizeof *self);
  if (limit == 0 || n <= limit || n >= GTORCH_NO_CROWD)
    return TRUE;
  self->slots = gtorch_scratch_new (n, sizeof (guint32), error);
  if (self->slots == NULL)
    return FALSE;
  done = number (self, offsets, n, unit, n_places, limit, error);
  if (!done || self->n_slots == 0)
    gtorch_crowds_clear (self);
  return done;
}

void
gtorch_crowds_clear (GTorchCrowds *self)
{
  g_clear_pointer (&self->slots, g_free);
  g_clear_pointer (&self->places, g_free);
  self->n_slots = 0;
}

/* --- lines, each of which has places of its own --- */

#define WIDTH 32 /* the lines counted together if their elements are far apart */

typedef struct
{
  const gint64 *index;
  gint64 length, inner, n_tiles, size;
  gint64 n, n_parts; /* tiles of all lines, and the parts that they are counted in */
  guint bits;
  guint16 *counts; /* 2^bits counts for each part */
  gint found;
} Lines;

static void
count_part (Lines *l, gint64 begin, gint64 end, guint16 *counts)
{
  const gint64 width = l->inner == 1 ? 1 : WIDTH;
  const gsize n = (gsize) 1 << l->bits;
  const gboolean direct = l->size * width <= (gint64) n;

  for (; begin < end && !g_atomic_int_get (&l->found); begin++)
    {
      const gint64 first = begin % l->n_tiles * width, m = MIN (width, l->inner - first);
      const gint64 *index = l->index + begin / l->n_tiles * l->length * l->inner + first;

      memset (counts, 0, n * sizeof *counts);
      if (width == 1 ? count_places (counts, l->bits, direct, index, l->length)
                     : count_rows (counts, l->bits, direct, index, l->length, l->inner, m, width))
        g_atomic_int_set (&l->found, 1);
    }
}

/* Threads may take any number of ranges, so the counts belong to parts of the tiles, not to threads. */
static void
count_parts (gint64 begin, gint64 end, gpointer user_data)
{
  Lines *l = user_data;

  for (; begin < end; begin++)
    count_part (l, begin * l->n / l->n_parts, (begin + 1) * l->n / l->n_parts,
                l->counts + (begin << l->bits));
}

gboolean
gtorch_crowds_find (const GTorchImpl *index, guint dim, gint64 size, guint dtype, gboolean *found,
                    GError **error)
{
  const guint limit = gtorch_crowds_limit (dtype);
  Lines l = { .inner = 1, .size = size };
  gint64 grain;
  guint i;

  *found = FALSE;
  l.length = index->n_dims > 0 ? index->shape[dim] : 1;
  if (limit == 0 || l.length <= limit || index->numel >= GTORCH_NO_CROWD)
    return TRUE;
  if (limit == 1 || size <= l.length / FEW)
    {
      *found = TRUE;
      return TRUE;
    }
  for (i = dim + 1; i < index->n_dims; i++)
    l.inner *= index->shape[i];
  l.index = gtorch_impl_data (index);
  l.n_tiles = l.inner == 1 ? 1 : (l.inner + WIDTH - 1) / WIDTH;
  l.n = index->numel / (l.length * l.inner) * l.n_tiles;
  grain = 1 + GTORCH_CPU_GRAIN / (l.length * MIN (l.inner, WIDTH));
  l.n_parts = CLAMP (l.n / grain, 1, (gint64) gtorch_get_num_threads ());
  l.bits = bits_for (l.length / 64, 6) + (l.inner == 1 ? 0 : 5);
  l.counts = gtorch_scratch_new (l.n_parts << l.bits, sizeof (guint16), error);
  if (l.counts == NULL)
    return FALSE;
  gtorch_parallel_for (l.n_parts, 1, count_parts, &l);
  g_free (l.counts);
  *found = l.found;
  return TRUE;
}
