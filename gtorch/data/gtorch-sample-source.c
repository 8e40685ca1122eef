/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-sample-source.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"

/**
 * GTorchSampleSource:
 *
 * Samples that come one after another, once.
 *
 * A subclass overrides next, and close if it has something to give back when its samples are not wanted any
 * longer. One thread at a time uses a source.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchSampleSource, gtorch_sample_source, G_TYPE_OBJECT)

static GTorchSample *
gtorch_sample_source_real_next (GTorchSampleSource *self, GCancellable *cancellable, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("sample_source: %s has no next"),
               G_OBJECT_TYPE_NAME (self));
  return NULL;
}

static void
gtorch_sample_source_real_close (GTorchSampleSource *self)
{
}

static void
gtorch_sample_source_class_init (GTorchSampleSourceClass *klass)
{
  klass->next = gtorch_sample_source_real_next;
  klass->close = gtorch_sample_source_real_close;
}

static void
gtorch_sample_source_init (GTorchSampleSource *self)
{
}

/**
 * gtorch_sample_source_next: (virtual next)
 * @self: a source
 * @cancellable: (nullable): cancels reading the sample
 * @error: return location for an error
 *
 * Gets the next sample.
 *
 * Returns: (transfer full) (nullable): the sample, %NULL without an error at the end, or %NULL with
 *   @error set: %G_IO_ERROR_CANCELLED or an error of the data set
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_source_next (GTorchSampleSource *self, GCancellable *cancellable, GError **error)
{
  GError *local = NULL;
  GTorchSample *sample;

  g_return_val_if_fail (GTORCH_IS_SAMPLE_SOURCE (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  sample = GTORCH_SAMPLE_SOURCE_GET_CLASS (self)->next (self, cancellable, &local);
  if (local == NULL)
    return sample;
  g_clear_pointer (&sample, gtorch_sample_unref);
  g_propagate_error (error, local);
  return NULL;
}

/**
 * gtorch_sample_source_close: (virtual close)
 * @self: a source
 *
 * Ends reading. A loader calls it at the end of the samples, and when its epoch is closed before that;
 * not when the epoch is dropped, which languages do while they collect garbage.
 *
 * Since: 0.1
 */
void
gtorch_sample_source_close (GTorchSampleSource *self)
{
  g_return_if_fail (GTORCH_IS_SAMPLE_SOURCE (self));
  GTORCH_SAMPLE_SOURCE_GET_CLASS (self)->close (self);
}
