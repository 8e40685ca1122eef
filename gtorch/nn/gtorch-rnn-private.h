/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the rows of recurrent networks name. */

#pragma once

#include <gtorch/nn/gtorch-layer-private.h>
#include <gtorch/nn/gtorch-rnn-base.h>
#include <gtorch/ops/gtorch-op-parts-private.h>

G_BEGIN_DECLS

/* Computes the output and the next states: the virtual function of a GTorchRNNBase. Without batch_sizes, the
 * input is not packed. */
typedef GPtrArray *(*GTorchRNNBaseRun) (GTorchRNNBase *self, GTorchTensor *input,
                                        const gint64 *batch_sizes, gsize n_batch_sizes,
                                        GTorchTensor **states, gsize n_states, GError **error);

/* Create the parameters; they store an error in the module. */
void gtorch_layer_make_rnn_cell (GTorchModule *self, GTorchRecurrentMode mode, gint64 input_size,
                                 gint64 hidden_size, gboolean has_bias);
void gtorch_layer_make_rnn (GTorchModule *self, GTorchRecurrentMode mode, gint64 input_size,
                            gint64 hidden_size, gint64 num_layers, gboolean has_bias,
                            gboolean bidirectional, gint64 proj_size);

/* Compute the results. */
GPtrArray *gtorch_layer_rnn_cell (GTorchRNNBase *self, GTorchTensor *input,
                                  const gint64 *batch_sizes, gsize n_batch_sizes,
                                  GTorchTensor **states, gsize n_states, GTorchRecurrentMode mode,
                                  gint64 hidden_size, GError **error);
GPtrArray *gtorch_layer_rnn (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes,
                             gsize n_batch_sizes, GTorchTensor **states, gsize n_states,
                             GTorchRecurrentMode mode, gint64 hidden_size, gint64 num_layers,
                             gboolean has_bias, gboolean batch_first, gdouble dropout,
                             gboolean bidirectional, gint64 proj_size, GError **error);

G_END_DECLS
