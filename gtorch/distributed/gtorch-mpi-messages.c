/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-mpi-messages-private.h"

#include "device/gtorch-device.h"

#define MAX_STREAMS 64 /* each has a thread; further messages share them */

typedef struct
{
  GTorchStream *stream;
  guint n_pairs;
} Place;

/* Messages that have not ended. */
typedef struct
{
  Place *place;
  guint n;
} Pair;

struct _GTorchMpiMessages
{
  GMutex lock;
  GPtrArray *places;
  GHashTable *pairs; /* gint64 -> Pair */
};

static void
place_free (gpointer data)
{
  Place *self = data;

  g_object_unref (self->stream);
  g_free (self);
}

GTorchMpiMessages *
gtorch_mpi_messages_new (void)
{
  GTorchMpiMessages *self = g_new0 (GTorchMpiMessages, 1);

  g_mutex_init (&self->lock);
  self->places = g_ptr_array_new_with_free_func (place_free);
  self->pairs = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  return self;
}

void
gtorch_mpi_messages_free (GTorchMpiMessages *self)
{
  g_hash_table_unref (self->pairs);
  g_ptr_array_unref (self->places);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* One without messages, a new one, or the one that has the fewest. */
static Place *
find_place (GTorchMpiMessages *self, GError **error)
{
  Place *found = NULL;
  GTorchStream *stream;
  guint i;

  for (i = 0; i < self->places->len; i++)
    {
      Place *place = self->places->pdata[i];

      if (found == NULL || place->n_pairs < found->n_pairs)
        found = place;
    }
  if (found != NULL && (found->n_pairs == 0 || self->places->len == MAX_STREAMS))
    return found;
  stream = gtorch_stream_new (gtorch_device_cpu (), 0, error);
  if (stream == NULL)
    return NULL;
  found = g_new0 (Place, 1);
  found->stream = stream;
  g_ptr_array_add (self->places, found);
  return found;
}

GTorchStream *
gtorch_mpi_messages_begin (GTorchMpiMessages *self, gint64 pair, GError **error)
{
  GTorchStream *stream = NULL;
  Place *place = NULL;
  Pair *found;

  g_mutex_lock (&self->lock);
  found = g_hash_table_lookup (self->pairs, &pair);
  if (found == NULL)
    place = find_place (self, error);
  if (place != NULL)
    {
      found = g_new0 (Pair, 1);
      found->place = place;
      place->n_pairs++;
      g_hash_table_insert (self->pairs, g_memdup2 (&pair, sizeof pair), found);
    }
  if (found != NULL)
    {
      found->n++;
      stream = found->place->stream;
    }
  g_mutex_unlock (&self->lock);
  return stream;
}

void
gtorch_mpi_messages_end (GTorchMpiMessages *self, gint64 pair)
{
  Pair *found;

  g_mutex_lock (&self->lock);
  found = g_hash_table_lookup (self->pairs, &pair);
  if (--found->n == 0)
    {
      found->place->n_pairs--;
      g_hash_table_remove (self->pairs, &pair);
    }
  g_mutex_unlock (&self->lock);
}
