/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-size.h>
#include <gtorch/device/gtorch-generator.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_INDEX_SOURCE (gtorch_index_source_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchIndexSource, gtorch_index_source, GTORCH, INDEX_SOURCE, GObject)

/**
 * GTorchIndexSourceClass:
 * @parent_class: the parent class
 * @next: gets the next indices
 * @get_state: returns what lets the sampler begin this pass again; by default nothing
 *
 * The virtual functions of a source of indices.
 *
 * Since: 0.1
 */
struct _GTorchIndexSourceClass
{
  GObjectClass parent_class;

  /**
   * GTorchIndexSourceClass::next:
   * @self: a source
   * @n: how many indices are wanted, at least 1
   * @error: return location for an error
   *
   * Gets the next indices: as many as are wanted, or fewer before the end. A source of batches gives the
   * indices of one batch, whatever @n is.
   *
   * Returns: (transfer full) (nullable): at least one index, %NULL without an error at the end, or %NULL with
   *   @error set
   *
   * Since: 0.1
   */
  GTorchSize *(*next) (GTorchIndexSource *self, gint64 n, GError **error);
  /**
   * GTorchIndexSourceClass::get_state:
   * @self: a source
   *
   * Returns what lets [method@Sampler.set_state] begin this pass again, from its first index.
   *
   * Returns: (transfer full) (nullable): the state, or %NULL if the sampler needs none
   *
   * Since: 0.1
   */
  GVariant *(*get_state) (GTorchIndexSource *self);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchIndexSource *gtorch_index_source_new (GTorchSize *indices) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSize *gtorch_index_source_next (GTorchIndexSource *self, gint64 n,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_index_source_get_state (GTorchIndexSource *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
