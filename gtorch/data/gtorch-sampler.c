/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-sampler.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-error.h"

/**
 * GTorchSampler:
 *
 * The order in which a [class@DataLoader] reads the samples of a data set.
 *
 * Each call of [method@Sampler.iterate] begins a pass. A subclass overrides iterate and get_length; a
 * sampler of batches, for [property@DataLoader:batch-sampler], gives the indices of one batch at a time,
 * and counts batches.
 *
 * ```c
 * g_autoptr (GTorchSampler) sampler = gtorch_random_sampler_new (1000, FALSE, -1, NULL);
 * g_autoptr (GTorchIndexSource) pass = gtorch_sampler_iterate (sampler, 0, &error);
 * g_autoptr (GTorchSize) first = gtorch_index_source_next (pass, 32, &error);
 * ```
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchSampler, gtorch_sampler, G_TYPE_OBJECT)

static gint64
gtorch_sampler_real_get_length (GTorchSampler *self, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("sampler: the length of %s is unknown"), G_OBJECT_TYPE_NAME (self));
  return -1;
}

static GTorchIndexSource *
gtorch_sampler_real_iterate (GTorchSampler *self, guint64 epoch, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("sampler: %s has no iterate"),
               G_OBJECT_TYPE_NAME (self));
  return NULL;
}

static gboolean
gtorch_sampler_real_set_state (GTorchSampler *self, GVariant *state, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("sampler: %s has no state, so one of type %s is not its"),
               G_OBJECT_TYPE_NAME (self), g_variant_get_type_string (state));
  return FALSE;
}

static void
gtorch_sampler_class_init (GTorchSamplerClass *klass)
{
  klass->get_length = gtorch_sampler_real_get_length;
  klass->iterate = gtorch_sampler_real_iterate;
  klass->set_state = gtorch_sampler_real_set_state;
}

static void
gtorch_sampler_init (GTorchSampler *self)
{
}

/**
 * gtorch_sampler_get_length: (virtual get_length)
 * @self: a sampler
 * @error: return location for an error
 *
 * Counts the indices of a pass; the batches, if the sampler gives batches.
 *
 * Returns: the number; -1 with @error set: %GTORCH_ERROR_NOT_SUPPORTED if the sampler does not know it, or
 *   %GTORCH_ERROR_INVALID if its settings are wrong
 *
 * Since: 0.1
 */
gint64
gtorch_sampler_get_length (GTorchSampler *self, GError **error)
{
  GError *local = NULL;
  gint64 length;

  g_return_val_if_fail (GTORCH_IS_SAMPLER (self), -1);
  length = GTORCH_SAMPLER_GET_CLASS (self)->get_length (self, &local);
  if (length < 0 && local == NULL)
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("sampler: get_length of %s gave %" PRId64 ", without an error"),
                 G_OBJECT_TYPE_NAME (self), length);
  if (local == NULL)
    return length;
  g_propagate_error (error, local);
  return -1;
}

/**
 * gtorch_sampler_iterate: (virtual iterate)
 * @self: a sampler
 * @epoch: which pass of a loader this is, from 0
 * @error: return location for an error
 *
 * Begins a pass. Several passes may be read at a time.
 *
 * Returns: (transfer full): the source of the indices; %NULL with @error set: %GTORCH_ERROR_INVALID if
 *   settings are wrong, or an error of the sampler
 *
 * Since: 0.1
 */
GTorchIndexSource *
gtorch_sampler_iterate (GTorchSampler *self, guint64 epoch, GError **error)
{
  GError *local = NULL;
  GTorchIndexSource *source;

  g_return_val_if_fail (GTORCH_IS_SAMPLER (self), NULL);
  source = GTORCH_SAMPLER_GET_CLASS (self)->iterate (self, epoch, &local);
  if (!gtorch_callback_gave ("sampler: iterate", source, local, error))
    {
      g_clear_object (&source);
      return NULL;
    }
  if (!gtorch_callback_check ("sampler", "iterate", &source, GTORCH_TYPE_INDEX_SOURCE, error))
    return NULL;
  return source;
}

/**
 * gtorch_sampler_set_state: (virtual set_state)
 * @self: a sampler
 * @state: a state from [method@IndexSource.get_state]
 * @error: return location for an error
 *
 * Makes the next call of [method@Sampler.iterate] begin the pass again that @state came from.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_FORMAT if @state is not one of such a sampler
 *
 * Since: 0.1
 */
gboolean
gtorch_sampler_set_state (GTorchSampler *self, GVariant *state, GError **error)
{
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_SAMPLER (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  g_variant_ref_sink (state);
  done = GTORCH_SAMPLER_GET_CLASS (self)->set_state (self, state, &local);
  g_variant_unref (state);
  return gtorch_callback_ended ("sampler: set_state", done, local, error);
}
