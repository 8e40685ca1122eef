/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Records of the stream checker: which part of a storage was used by which call. Every operation makes
 * some, so calls and records are recycled and nothing is allocated once there are as many as the program
 * needs. */

#include "config.h"

#include "check/gtorch-race-use-private.h"

#include <stdlib.h>
#include <string.h>

#define MAX_USES 64

/* --- parts of memory --- */

static void
part_init (GTorchRacePart *part, const GTorchImpl *impl)
{
  gint64 size = gtorch_dtype_size (impl->dtype), n_bytes = size;
  GTorchRaceGrid grid;
  guint d, i;

  part->low = impl->offset * size;
  part->grid = NULL;
  if (G_LIKELY (impl->is_contiguous))
    {
      part->high = part->low + impl->numel * size;
      return;
    }
  part->high = part->low + size;
  grid.n_dims = 0;
  grid.offset = part->low;
  grid.size = size;
  for (d = 0; d < impl->n_dims; d++)
    {
      gint64 stride = impl->strides[d] * size, shape = impl->shape[d];

      if (shape == 1 || stride == 0)
        continue;
      *(stride < 0 ? &part->low : &part->high) += (shape - 1) * stride;
      for (i = grid.n_dims; i > 0 && llabs (grid.strides[i - 1]) < llabs (stride); i--)
        {
          grid.strides[i] = grid.strides[i - 1];
          grid.shape[i] = grid.shape[i - 1];
        }
      grid.strides[i] = stride;
      grid.shape[i] = shape;
      grid.n_dims++;
      n_bytes *= shape;
    }
  if (n_bytes != part->high - part->low)
    part->grid = g_memdup2 (&grid, sizeof grid);
}

/* Finds a bounding box of the part. If a byte's address is written as numbers of steps of each stride, the
 * largest first, and a rest in bytes, the representation is unique. `first` and `last` become the range of
 * each of these coordinates. Returns FALSE if the box is not known. */
static gboolean
find_box (const GTorchRacePart *part, const gint64 *strides, guint n, gint64 *first, gint64 *last)
{
  const GTorchRaceGrid contiguous = { .offset = part->low, .size = part->high - part->low };
  const GTorchRaceGrid *grid = part->grid != NULL ? part->grid : &contiguous;
  gint64 rest = grid->offset, reach = grid->size - 1; /* reach: distance to the last byte */
  guint own = 0, d, i;

  for (i = 0; i < grid->n_dims; i++)
    {
      if (grid->strides[i] < 0)
        return FALSE;
      reach += (grid->shape[i] - 1) * grid->strides[i];
    }
  for (d = 0; d < n; d++)
    {
      gint64 more = 0;

      for (; own < grid->n_dims && grid->strides[own] == strides[d]; own++)
        more += grid->shape[own] - 1;
      reach -= more * strides[d];
      first[d] = rest / strides[d];
      rest %= strides[d];
      last[d] = first[d] + more + (rest + reach) / strides[d];
      if (rest + reach < strides[d])
        continue;
      for (d++; d < n; d++) /* the range crosses into the next step: any coordinate is possible */
        {
          first[d] = 0;
          last[d] = G_MAXINT64;
        }
    }
  return TRUE;
}

gboolean
gtorch_race_parts_meet (const GTorchRacePart *part, const GTorchRacePart *other)
{
  const GTorchRaceGrid none = { .n_dims = 0 };
  const GTorchRaceGrid *a = part->grid != NULL ? part->grid : &none;
  const GTorchRaceGrid *b = other->grid != NULL ? other->grid : &none;
  gint64 strides[2 * GTORCH_MAX_DIMS + 1];
  gint64 first[2][G_N_ELEMENTS (strides)], last[2][G_N_ELEMENTS (strides)];
  guint n = 0, i = 0, j = 0, d;

  if (part->low >= other->high || other->low >= part->high)
    return FALSE;
  while (i < a->n_dims || j < b->n_dims)
    if (j == b->n_dims || (i < a->n_dims && a->strides[i] >= b->strides[j]))
      strides[n++] = a->strides[i++];
    else
      strides[n++] = b->strides[j++];
  strides[n++] = 1;
  if (!find_box (part, strides, n, first[0], last[0])
      || !find_box (other, strides, n, first[1], last[1]))
    return TRUE;
  for (d = 0; d < n; d++)
    if (last[0][d] < first[1][d] || last[1][d] < first[0][d])
      return FALSE;
  return TRUE;
}

static gboolean
part_covers (const GTorchRacePart *part, const GTorchRacePart *other)
{
  const GTorchRaceGrid *a = part->grid, *b = other->grid;

  if (part->low > other->low || part->high < other->high)
    return FALSE;
  return a == NULL
         || (b != NULL && a->n_dims == b->n_dims && a->offset == b->offset
             && memcmp (a->shape, b->shape, a->n_dims * sizeof a->shape[0]) == 0
             && memcmp (a->strides, b->strides, a->n_dims * sizeof a->strides[0]) == 0);
}

/* --- uses --- */

static GTorchRaceCall *free_calls;

GTorchRaceCall *
gtorch_race_call_new (const gchar *what, gboolean in_place, const GTorchSite *site)
{
  GTorchRaceCall *call = free_calls;
  guint i;

  if (call != NULL)
    free_calls = call->next;
  else
    call = g_new (GTorchRaceCall, 1);
  call->n_uses = 1;
  call->in_place = in_place;
  call->what = what;
  for (i = 0; i < GTORCH_SITE_FRAMES; i++)
    {
      call->site.frames[i] = site->frames[i];
      if (site->frames[i] == NULL)
        break;
    }
  return call;
}

void
gtorch_race_call_unref (GTorchRaceCall *call)
{
  if (--call->n_uses > 0)
    return;
  call->next = free_calls;
  free_calls = call;
}

void
gtorch_race_use_init (GTorchRaceUse *use, GTorchRaceCall *call, GTorchStorage *storage,
                      const GTorchImpl *impl, gboolean is_write)
{
  use->call = call;
  call->n_uses++;
  use->order = NULL;
  use->is_write = is_write;
  if (impl == NULL)
    {
      use->part = (GTorchRacePart){ .high = storage->n_bytes };
      use->n_dims = GTORCH_RACE_ALL;
      return;
    }
  part_init (&use->part, impl);
  use->n_dims = impl->n_dims;
  if (impl->n_dims > GTORCH_INLINE_DIMS)
    use->shape.many = g_memdup2 (impl->shape, impl->n_dims * sizeof (gint64));
  else
    {
      guint d;

      for (d = 0; d < impl->n_dims; d++)
        use->shape.few[d] = impl->shape[d];
    }
}

static inline gboolean
has_many (const GTorchRaceUse *use)
{
  return use->n_dims > GTORCH_INLINE_DIMS && use->n_dims != GTORCH_RACE_ALL;
}

void
gtorch_race_use_clear (GTorchRaceUse *use)
{
  gtorch_race_call_unref (use->call);
  if (G_UNLIKELY (use->order != NULL))
    g_free (use->order);
  if (G_UNLIKELY (use->part.grid != NULL))
    g_free (use->part.grid);
  if (G_UNLIKELY (has_many (use)))
    g_free (use->shape.many);
}

gboolean
gtorch_race_use_covers (const GTorchRaceUse *use, const GTorchRaceUse *former)
{
  return (use->is_write || (!former->is_write && former->queue == use->queue))
         && part_covers (&use->part, &former->part);
}

gchar *
gtorch_race_use_get_shape (const GTorchRaceUse *use)
{
  if (use->n_dims == GTORCH_RACE_ALL)
    return g_strdup_printf ("[%" G_GINT64_FORMAT " bytes]", use->part.high);
  return g_strdup (
      gtorch_shape_str (has_many (use) ? use->shape.many : use->shape.few, use->n_dims));
}

/* --- records --- */

static GTorchRaceRecord *free_records;
/* Hash table by storage address, with linear probing: slots between a record's home slot and its actual one
 * are occupied. */
static GTorchRaceRecord **table;
static guint table_bits;

guint gtorch_race_n_records;

static inline guint
home_of (const GTorchStorage *storage)
{
  return ((guintptr) storage * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> (64 - table_bits);
}

static inline guint
find_place (const GTorchStorage *storage)
{
  guint mask = (1u << table_bits) - 1, i;

  for (i = home_of (storage); table[i] != NULL && table[i]->storage != storage; i = (i + 1) & mask)
    continue;
  return i;
}

static void
grow_table (void)
{
  GTorchRaceRecord **former = table;
  guint n = former != NULL ? 1u << table_bits : 0, i;

  table_bits = former != NULL ? table_bits + 1 : 10;
  table = g_new0 (GTorchRaceRecord *, (gsize) 1 << table_bits);
  for (i = 0; i < n; i++)
    if (former[i] != NULL)
      table[find_place (former[i]->storage)] = former[i];
  g_free (former);
}

GTorchRaceRecord *
gtorch_race_record_find (const GTorchStorage *storage)
{
  return table != NULL ? table[find_place (storage)] : NULL;
}

GTorchRaceRecord *
gtorch_race_record_get (GTorchStorage *storage)
{
  GTorchRaceRecord *record = gtorch_race_record_find (storage);

  if (record != NULL)
    return record;
  if (table == NULL || gtorch_race_n_records >= 1u << (table_bits - 1))
    grow_table ();
  record = free_records;
  if (record != NULL)
    free_records = record->next;
  else
    {
      record = g_new (GTorchRaceRecord, 1);
      record->uses = record->few;
      record->n_allocated = G_N_ELEMENTS (record->few);
    }
  record->storage = storage;
  record->members = NULL;
  record->n_members = record->n_uses = 0;
  table[find_place (storage)] = record;
  __atomic_store_n (&gtorch_race_n_records, gtorch_race_n_records + 1, __ATOMIC_RELAXED);
  return record;
}

void
gtorch_race_record_remove (GTorchStorage *storage)
{
  GTorchRaceRecord *record;
  guint mask = (1u << table_bits) - 1, i, j;

  if (table == NULL)
    return;
  i = find_place (storage);
  record = table[i];
  if (record == NULL)
    return;
  for (j = (i + 1) & mask; table[j] != NULL; j = (j + 1) & mask)
    if (((j - home_of (table[j]->storage)) & mask) >= ((j - i) & mask))
      {
        table[i] = table[j];
        i = j;
      }
  table[i] = NULL;
  __atomic_store_n (&gtorch_race_n_records, gtorch_race_n_records - 1, __ATOMIC_RELAXED);

  for (i = 0; i < record->n_uses; i++)
    gtorch_race_use_clear (&record->uses[i]);
  g_free (record->members);
  if (record->uses != record->few)
    {
      g_free (record->uses);
      record->uses = record->few;
      record->n_allocated = G_N_ELEMENTS (record->few);
    }
  record->next = free_records;
  free_records = record;
}

void
gtorch_race_record_append (GTorchRaceRecord *record, const GTorchRaceUse *use)
{
  if (G_UNLIKELY (record->n_uses == MAX_USES)) /* drop the oldest use */
    {
      gtorch_race_use_clear (&record->uses[0]);
      record->n_uses--;
      memmove (record->uses, record->uses + 1, record->n_uses * sizeof record->uses[0]);
    }
  else if (G_UNLIKELY (record->n_uses == record->n_allocated))
    {
      gboolean is_first = record->uses == record->few;

      record->n_allocated *= 2;
      record->uses = g_renew (GTorchRaceUse, is_first ? NULL : record->uses, record->n_allocated);
      if (is_first)
        memcpy (record->uses, record->few, sizeof record->few);
    }
  record->uses[record->n_uses++] = *use;
}

void
gtorch_race_record_remove_use (GTorchRaceRecord *record, guint i)
{
  gtorch_race_use_clear (&record->uses[i]);
  record->uses[i] = record->uses[--record->n_uses];
}

GTorchRaceMember *
gtorch_race_record_join (GTorchRaceRecord *record, GTorchRaceGraph *graph)
{
  guint i;

  for (i = 0; i < record->n_members; i++)
    if (record->members[i].graph == graph)
      return &record->members[i];
  record->members = g_renew (GTorchRaceMember, record->members, record->n_members + 1);
  record->members[record->n_members] = (GTorchRaceMember){ .graph = graph };
  return &record->members[record->n_members++];
}

void
gtorch_race_record_leave (GTorchRaceRecord *record, GTorchRaceGraph *graph)
{
  guint i;

  for (i = 0; i < record->n_members; i++)
    if (record->members[i].graph == graph)
      {
        record->members[i] = record->members[--record->n_members];
        return;
      }
}
