/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_RNN_BASE (gtorch_rnn_base_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchRNNBase, gtorch_rnn_base, GTORCH, RNN_BASE, GTorchModule)

/**
 * GTorchRNNBaseClass:
 * @parent_class: the parent class
 *
 * The class of recurrent networks.
 *
 * Since: 0.1
 */
struct _GTorchRNNBaseClass
{
  GTorchModuleClass parent_class;

  /*< private >*/
  gpointer run; /* a GTorchRNNBaseRun */
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_rnn_base_run (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes,
                                gsize n_batch_sizes, GTorchTensor **states, gsize n_states,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_rnn_base_compute (GTorchRNNBase *self, GTorchTensor *input,
                                    const gint64 *batch_sizes, gsize n_batch_sizes,
                                    GTorchTensor **states, gsize n_states,
                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_rnn_base_flatten_parameters (GTorchRNNBase *self);

G_END_DECLS
