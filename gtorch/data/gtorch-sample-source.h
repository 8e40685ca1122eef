/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/data/gtorch-sample.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SAMPLE_SOURCE (gtorch_sample_source_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchSampleSource, gtorch_sample_source, GTORCH, SAMPLE_SOURCE, GObject)

/**
 * GTorchSampleSourceClass:
 * @parent_class: the parent class
 * @next: gets the next sample
 * @close: ends reading
 *
 * The virtual functions of a source of samples.
 *
 * Since: 0.1
 */
struct _GTorchSampleSourceClass
{
  GObjectClass parent_class;

  /**
   * GTorchSampleSourceClass::next:
   * @self: a source
   * @cancellable: (nullable): is cancelled when the sample is not wanted any longer
   * @error: return location for an error
   *
   * Gets the next sample.
   *
   * Returns: (transfer full) (nullable): the sample, %NULL without an error at the end, or %NULL with
   *   @error set
   *
   * Since: 0.1
   */
  GTorchSample *(*next) (GTorchSampleSource *self, GCancellable *cancellable, GError **error);
  /**
   * GTorchSampleSourceClass::close:
   * @self: a source
   *
   * Ends reading: the source will not be asked again, although it may have further samples. May be called
   * several times.
   *
   * Since: 0.1
   */
  void (*close) (GTorchSampleSource *self);

  /*< private >*/
  gpointer padding[3];
};

GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_source_next (GTorchSampleSource *self, GCancellable *cancellable,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_sample_source_close (GTorchSampleSource *self);

G_END_DECLS
