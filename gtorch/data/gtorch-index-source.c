/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-index-source.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"

/**
 * GTorchIndexSource:
 *
 * One pass of a [class@Sampler]: the indices of samples, some at a time.
 *
 * [ctor@IndexSource.new] makes one of a list, which is all that many samplers need. A subclass overrides
 * next.
 *
 * Since: 0.1
 */

typedef struct
{
  GTorchSize *indices; /* may be NULL */
  gsize at;
} GTorchIndexSourcePrivate;

G_DEFINE_TYPE_WITH_PRIVATE (GTorchIndexSource, gtorch_index_source, G_TYPE_OBJECT)

static GTorchIndexSourcePrivate *
private_of (GTorchIndexSource *self)
{
  return gtorch_index_source_get_instance_private (self);
}

static GTorchSize *
gtorch_index_source_real_next (GTorchIndexSource *self, gint64 n, GError **error)
{
  GTorchIndexSourcePrivate *priv = private_of (self);
  gsize length = 0;
  const gint64 *indices =
      priv->indices != NULL ? gtorch_size_get_values (priv->indices, &length) : NULL;
  GTorchSize *next;

  if (priv->at >= length)
    return NULL;
  n = MIN (n, (gint64) (length - priv->at));
  next = gtorch_size_new (indices + priv->at, n);
  priv->at += n;
  return next;
}

static GVariant *
gtorch_index_source_real_get_state (GTorchIndexSource *self)
{
  return NULL;
}

static void
gtorch_index_source_finalize (GObject *object)
{
  g_clear_pointer (&private_of (GTORCH_INDEX_SOURCE (object))->indices, gtorch_size_unref);
  G_OBJECT_CLASS (gtorch_index_source_parent_class)->finalize (object);
}

static void
gtorch_index_source_class_init (GTorchIndexSourceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_index_source_finalize;
  klass->next = gtorch_index_source_real_next;
  klass->get_state = gtorch_index_source_real_get_state;
}

static void
gtorch_index_source_init (GTorchIndexSource *self)
{
}

/**
 * gtorch_index_source_new:
 * @indices: the indices of a pass
 *
 * Creates a source of a list of indices.
 *
 * Returns: (transfer full): the source
 *
 * Since: 0.1
 */
GTorchIndexSource *
gtorch_index_source_new (GTorchSize *indices)
{
  GTorchIndexSource *self;

  g_return_val_if_fail (indices != NULL, NULL);
  self = g_object_new (GTORCH_TYPE_INDEX_SOURCE, NULL);
  private_of (self)->indices = gtorch_size_ref (indices);
  return self;
}

/**
 * gtorch_index_source_next: (virtual next)
 * @self: a source
 * @n: how many indices are wanted, at least 1
 * @error: return location for an error
 *
 * Gets the next indices: as many as are wanted, or fewer before the end. A source of batches gives the
 * indices of one batch, whatever @n is.
 *
 * Returns: (transfer full) (nullable): the indices, %NULL without an error at the end, or %NULL with
 *   @error set: %GTORCH_ERROR_INVALID for a number below 1, or an error of the sampler
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_index_source_next (GTorchIndexSource *self, gint64 n, GError **error)
{
  GError *local = NULL;
  GTorchSize *next;

  g_return_val_if_fail (GTORCH_IS_INDEX_SOURCE (self), NULL);
  if (n < 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("sampler: %" PRId64 " indices cannot be asked for: at least 1"), n);
      return NULL;
    }
  next = GTORCH_INDEX_SOURCE_GET_CLASS (self)->next (self, n, &local);
  if (local == NULL && next != NULL && gtorch_size_get_length (next) == 0)
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("sampler: next of %s gave no indices, which is not the end"),
                 G_OBJECT_TYPE_NAME (self));
  if (local == NULL)
    return next;
  g_clear_pointer (&next, gtorch_size_unref);
  g_propagate_error (error, local);
  return NULL;
}

/**
 * gtorch_index_source_get_state: (virtual get_state)
 * @self: a source
 *
 * Gets what lets [method@Sampler.set_state] begin this pass again.
 *
 * Returns: (transfer full) (nullable): the state, or %NULL if the sampler needs none
 *
 * Since: 0.1
 */
GVariant *
gtorch_index_source_get_state (GTorchIndexSource *self)
{
  GVariant *state;

  g_return_val_if_fail (GTORCH_IS_INDEX_SOURCE (self), NULL);
  state = GTORCH_INDEX_SOURCE_GET_CLASS (self)->get_state (self);
  return state != NULL ? g_variant_take_ref (state) : NULL;
}
