/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-index-source.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SAMPLER (gtorch_sampler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchSampler, gtorch_sampler, GTORCH, SAMPLER, GObject)

/**
 * GTorchSamplerClass:
 * @parent_class: the parent class
 * @get_length: counts the indices of a pass, or the batches of one
 * @iterate: begins a pass
 * @set_state: makes the next pass one that was begun before
 *
 * The virtual functions of a sampler.
 *
 * Since: 0.1
 */
struct _GTorchSamplerClass
{
  GObjectClass parent_class;

  /**
   * GTorchSamplerClass::get_length:
   * @self: a sampler
   * @error: return location for an error
   *
   * Counts the indices of a pass; the batches, if the sampler gives batches.
   *
   * Returns: the number, or -1 with @error set
   *
   * Since: 0.1
   */
  gint64 (*get_length) (GTorchSampler *self, GError **error);
  /**
   * GTorchSamplerClass::iterate:
   * @self: a sampler
   * @epoch: which pass of a loader this is, from 0
   * @error: return location for an error
   *
   * Begins a pass. Several passes may be read at a time.
   *
   * Returns: (transfer full): the source of the indices, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchIndexSource *(*iterate) (GTorchSampler *self, guint64 epoch, GError **error);
  /**
   * GTorchSamplerClass::set_state:
   * @self: a sampler
   * @state: a state from [method@IndexSource.get_state]
   * @error: return location for an error
   *
   * Makes the next call of [method@Sampler.iterate] begin the pass again that @state came from.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*set_state) (GTorchSampler *self, GVariant *state, GError **error);

  /*< private >*/
  gpointer padding[5];
};

GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_sampler_get_length (GTorchSampler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchIndexSource *gtorch_sampler_iterate (GTorchSampler *self, guint64 epoch,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sampler_set_state (GTorchSampler *self, GVariant *state, GError **error);

G_END_DECLS
