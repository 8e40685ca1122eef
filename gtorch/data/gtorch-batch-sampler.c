/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Samplers of batches, and of the part of one process among several. */

#include "config.h"

#include "data/gtorch-batch-sampler.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "data/gtorch-sampler-private.h"

/* --- BatchSampler --- */

/**
 * GTorchBatchSampler:
 *
 * Groups the indices of another sampler into batches: each call of [method@IndexSource.next] gives one.
 *
 * Since: 0.1
 */
struct _GTorchBatchSampler
{
  GTorchSampler parent_instance;
  GTorchSampler *sampler;
  gint64 batch_size;
  gboolean drop_last;
};

G_DEFINE_TYPE (GTorchBatchSampler, gtorch_batch_sampler, GTORCH_TYPE_SAMPLER)

#define GTORCH_TYPE_BATCH_SOURCE (gtorch_batch_source_get_type ())
G_DECLARE_FINAL_TYPE (GTorchBatchSource, gtorch_batch_source, GTORCH, BATCH_SOURCE,
                      GTorchIndexSource)

struct _GTorchBatchSource
{
  GTorchIndexSource parent_instance;
  GTorchIndexSource *source;
  gint64 batch_size;
  gboolean drop_last;
};

G_DEFINE_TYPE (GTorchBatchSource, gtorch_batch_source, GTORCH_TYPE_INDEX_SOURCE)

static GTorchSize *
gtorch_batch_source_next (GTorchIndexSource *source, gint64 n, GError **error)
{
  GTorchBatchSource *self = GTORCH_BATCH_SOURCE (source);
  g_autoptr (GArray) indices = g_array_new (FALSE, FALSE, sizeof (gint64));

  while ((gint64) indices->len < self->batch_size)
    {
      GError *local = NULL;
      g_autoptr (GTorchSize) next =
          gtorch_index_source_next (self->source, self->batch_size - (gint64) indices->len, &local);
      const gint64 *values;
      gsize length;

      if (local != NULL)
        {
          g_propagate_error (error, local);
          return NULL;
        }
      if (next == NULL)
        break;
      values = gtorch_size_get_values (next, &length);
      g_array_append_vals (indices, values, length);
    }
  if (indices->len == 0 || (self->drop_last && (gint64) indices->len < self->batch_size))
    return NULL;
  return gtorch_size_new ((gint64 *) indices->data, indices->len);
}

static GVariant *
gtorch_batch_source_get_state (GTorchIndexSource *source)
{
  return gtorch_index_source_get_state (GTORCH_BATCH_SOURCE (source)->source);
}

static void
gtorch_batch_source_finalize (GObject *object)
{
  g_clear_object (&GTORCH_BATCH_SOURCE (object)->source);
  G_OBJECT_CLASS (gtorch_batch_source_parent_class)->finalize (object);
}

static void
gtorch_batch_source_class_init (GTorchBatchSourceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_batch_source_finalize;
  GTORCH_INDEX_SOURCE_CLASS (klass)->next = gtorch_batch_source_next;
  GTORCH_INDEX_SOURCE_CLASS (klass)->get_state = gtorch_batch_source_get_state;
}

static void
gtorch_batch_source_init (GTorchBatchSource *self)
{
}

static gboolean
gtorch_batch_sampler_check (GTorchBatchSampler *self, GError **error)
{
  if (self->sampler == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("batch_sampler: there is no sampler"));
  else if (self->batch_size < 1 || self->batch_size > G_MAXINT32)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("batch_sampler: batch_size is %" PRId64 ", and must be 1 to %d"),
                 self->batch_size, G_MAXINT32);
  else
    return TRUE;
  return FALSE;
}

static gint64
gtorch_batch_sampler_get_length (GTorchSampler *sampler, GError **error)
{
  GTorchBatchSampler *self = GTORCH_BATCH_SAMPLER (sampler);
  gint64 n;

  if (!gtorch_batch_sampler_check (self, error)
      || (n = gtorch_sampler_get_length (self->sampler, error)) < 0)
    return -1;
  return n / self->batch_size + (n % self->batch_size > 0 && !self->drop_last);
}

static GTorchIndexSource *
gtorch_batch_sampler_iterate (GTorchSampler *sampler, guint64 epoch, GError **error)
{
  GTorchBatchSampler *self = GTORCH_BATCH_SAMPLER (sampler);
  GTorchIndexSource *source;
  GTorchBatchSource *batches;

  if (!gtorch_batch_sampler_check (self, error)
      || (source = gtorch_sampler_iterate (self->sampler, epoch, error)) == NULL)
    return NULL;
  batches = g_object_new (GTORCH_TYPE_BATCH_SOURCE, NULL);
  batches->source = source;
  batches->batch_size = self->batch_size;
  batches->drop_last = self->drop_last;
  return GTORCH_INDEX_SOURCE (batches);
}

static gboolean
gtorch_batch_sampler_set_state (GTorchSampler *sampler, GVariant *state, GError **error)
{
  GTorchBatchSampler *self = GTORCH_BATCH_SAMPLER (sampler);

  return gtorch_batch_sampler_check (self, error)
         && gtorch_sampler_set_state (self->sampler, state, error);
}

static void
gtorch_batch_sampler_finalize (GObject *object)
{
  g_clear_object (&GTORCH_BATCH_SAMPLER (object)->sampler);
  G_OBJECT_CLASS (gtorch_batch_sampler_parent_class)->finalize (object);
}

static const GTorchField batch_fields[] = {
  /**
   * GTorchBatchSampler:sampler:
   *
   * The sampler whose indices are grouped.
   *
   * Since: 0.1
   */
  { "sampler", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchBatchSampler, sampler),
    .type = gtorch_sampler_get_type, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchBatchSampler:batch-size:
   *
   * How many indices a batch has.
   *
   * Since: 0.1
   */
  { "batch-size", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchBatchSampler, batch_size), 1,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchBatchSampler:drop-last:
   *
   * Whether a last batch that has fewer is left out.
   *
   * Since: 0.1
   */
  { "drop-last", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchBatchSampler, drop_last),
    .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_batch_sampler_add_references (gpointer object, GTorchReferences *references)
{
  gtorch_references_add_object (references, GTORCH_BATCH_SAMPLER (object)->sampler);
}

static GTorchReferencesType references_type = { .look = gtorch_batch_sampler_add_references };

static void
gtorch_batch_sampler_class_init (GTorchBatchSamplerClass *klass)
{
  GTorchSamplerClass *sampler_class = GTORCH_SAMPLER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_batch_sampler_finalize;
  sampler_class->get_length = gtorch_batch_sampler_get_length;
  sampler_class->iterate = gtorch_batch_sampler_iterate;
  sampler_class->set_state = gtorch_batch_sampler_set_state;
  GTORCH_FIELDS (klass, batch_fields);
  references_type.type = GTORCH_TYPE_BATCH_SAMPLER;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_batch_sampler_init (GTorchBatchSampler *self)
{
  self->batch_size = 1;
}

/**
 * gtorch_batch_sampler_new: (constructor)
 * @sampler: the sampler whose indices are grouped
 * @batch_size: how many indices a batch has
 * @drop_last: whether a last batch that has fewer is left out
 *
 * Creates a sampler of batches.
 *
 * Returns: (transfer full) (type GTorchBatchSampler): the sampler
 *
 * Since: 0.1
 */
GTorchSampler *
gtorch_batch_sampler_new (GTorchSampler *sampler, gint64 batch_size, gboolean drop_last)
{
  g_return_val_if_fail (GTORCH_IS_SAMPLER (sampler), NULL);
  return g_object_new (GTORCH_TYPE_BATCH_SAMPLER, "sampler", sampler, "batch-size", batch_size,
                       "drop-last", drop_last, NULL);
}

/* --- DistributedSampler --- */

/**
 * GTorchDistributedSampler:
 *
 * The indices of one process among several that train together: every process gets another part of the
 * samples, all parts of the same length.
 *
 * If the samples cannot be divided evenly, some of them come twice, or with `drop-last` some are left
 * out. With `shuffle` the order follows from the seed and the epoch alone, which must be the same in all
 * processes; call [method@DistributedSampler.set_epoch] before each epoch, or all have the same order.
 *
 * Since: 0.1
 */
struct _GTorchDistributedSampler
{
  GTorchSampler parent_instance;
  gint64 length, num_replicas, rank, epoch;
  guint64 seed;
  gboolean shuffle, drop_last;
};

G_DEFINE_TYPE (GTorchDistributedSampler, gtorch_distributed_sampler, GTORCH_TYPE_SAMPLER)

static gint64
gtorch_distributed_sampler_get_length (GTorchSampler *sampler, GError **error)
{
  GTorchDistributedSampler *self = GTORCH_DISTRIBUTED_SAMPLER (sampler);
  const gint64 n = self->length, parts = self->num_replicas;

  if (n < 0 || parts < 1 || self->rank < 0 || self->rank >= parts)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_sampler: %" PRId64 " samples, num_replicas %" PRId64
                      " and rank %" PRId64
                      ": there must be at least one process, and its rank below their number"),
                   n, parts, self->rank);
      return -1;
    }
  return n / parts + (n % parts > 0 && !self->drop_last);
}

static GTorchIndexSource *
gtorch_distributed_sampler_iterate (GTorchSampler *sampler, guint64 epoch, GError **error)
{
  GTorchDistributedSampler *self = GTORCH_DISTRIBUTED_SAMPLER (sampler);
  const gint64 n = gtorch_distributed_sampler_get_length (sampler, error);
  g_autofree gint64 *order = NULL;
  g_autofree gint64 *mine = NULL;
  g_autoptr (GTorchSize) indices = NULL;
  gint64 i;

  if (n < 0)
    return NULL;
  if (n > G_MAXINT32)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_sampler: %" PRId64 " indices are more than %d"), n, G_MAXINT32);
      return NULL;
    }
  if (self->shuffle)
    {
      g_autoptr (GTorchGenerator) generator =
          gtorch_generator_new_with_seed (self->seed + (guint64) self->epoch);

      order = gtorch_draw_permutation ("distributed_sampler", self->length, generator, error);
      if (order == NULL)
        return NULL;
    }
  /* What is missing for parts of the same length is taken from the beginning. */
  mine = g_new (gint64, n + 1);
  for (i = 0; i < n; i++)
    {
      const gint64 at = (i * self->num_replicas + self->rank) % self->length;

      mine[i] = order != NULL ? order[at] : at;
    }
  indices = gtorch_size_new (mine, n);
  return gtorch_index_source_new (indices);
}

typedef GTorchDistributedSampler Self;

static const GTorchField distributed_fields[] = {
  /**
   * GTorchDistributedSampler:length:
   *
   * How many samples there are.
   *
   * Since: 0.1
   */
  { "length", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchDistributedSampler, length),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDistributedSampler:num-replicas:
   *
   * How many processes there are.
   *
   * Since: 0.1
   */
  { "num-replicas", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchDistributedSampler, num_replicas), 1,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDistributedSampler:rank:
   *
   * Which of the processes this is, from 0.
   *
   * Since: 0.1
   */
  { "rank", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchDistributedSampler, rank),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDistributedSampler:shuffle:
   *
   * Whether the order is by chance.
   *
   * Since: 0.1
   */
  { "shuffle", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchDistributedSampler, shuffle), TRUE,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDistributedSampler:seed:
   *
   * What the order follows from, with the epoch.
   *
   * Since: 0.1
   */
  { "seed", GTORCH_FIELD_UINT64, GTORCH_FIELD (GTorchDistributedSampler, seed),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDistributedSampler:drop-last:
   *
   * Whether samples are left out rather than given twice.
   *
   * Since: 0.1
   */
  { "drop-last", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchDistributedSampler, drop_last),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDistributedSampler:epoch:
   *
   * What the order follows from, with the seed.
   *
   * Since: 0.1
   */
  { "epoch", GTORCH_PROPERTY_INT64 (gtorch_distributed_sampler_get_epoch,
                                    gtorch_distributed_sampler_set_epoch) },
};

static void
gtorch_distributed_sampler_class_init (GTorchDistributedSamplerClass *klass)
{
  GTORCH_SAMPLER_CLASS (klass)->get_length = gtorch_distributed_sampler_get_length;
  GTORCH_SAMPLER_CLASS (klass)->iterate = gtorch_distributed_sampler_iterate;
  GTORCH_FIELDS (klass, distributed_fields);
}

static void
gtorch_distributed_sampler_init (GTorchDistributedSampler *self)
{
  self->num_replicas = 1;
  self->shuffle = TRUE;
}

/**
 * gtorch_distributed_sampler_new: (constructor)
 * @length: how many samples there are
 * @num_replicas: how many processes there are
 * @rank: which of them this is, from 0
 * @shuffle: whether the order is by chance
 * @seed: what the order follows from, with the epoch; the same in all processes
 * @drop_last: whether samples are left out rather than given twice
 *
 * Creates a sampler of one process among several.
 *
 * Returns: (transfer full) (type GTorchDistributedSampler): the sampler
 *
 * Since: 0.1
 */
GTorchSampler *
gtorch_distributed_sampler_new (gint64 length, gint64 num_replicas, gint64 rank, gboolean shuffle,
                                guint64 seed, gboolean drop_last)
{
  return g_object_new (GTORCH_TYPE_DISTRIBUTED_SAMPLER, "length", length, "num-replicas",
                       num_replicas, "rank", rank, "shuffle", shuffle, "seed", seed, "drop-last",
                       drop_last, NULL);
}

/**
 * gtorch_distributed_sampler_get_epoch: (get-property epoch)
 * @self: a sampler
 *
 * Gets the epoch that was last set.
 *
 * Returns: the epoch
 *
 * Since: 0.1
 */
gint64
gtorch_distributed_sampler_get_epoch (GTorchDistributedSampler *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_SAMPLER (self), 0);
  return self->epoch;
}

/**
 * gtorch_distributed_sampler_set_epoch: (set-property epoch)
 * @self: a sampler
 * @epoch: the epoch
 *
 * Sets the epoch, so that the next pass has another order.
 *
 * Since: 0.1
 */
void
gtorch_distributed_sampler_set_epoch (GTorchDistributedSampler *self, gint64 epoch)
{
  g_return_if_fail (GTORCH_IS_DISTRIBUTED_SAMPLER (self));
  if (self->epoch == epoch)
    return;
  self->epoch = epoch;
  g_object_notify (G_OBJECT (self), "epoch");
}
