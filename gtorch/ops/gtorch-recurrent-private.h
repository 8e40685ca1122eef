/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* One layer of a recurrent network in one direction. Everything is borrowed. */
typedef struct
{
  guint mode;
  GTorchImpl *hx, *cx; /* the first states, [N, P], and the first cells of an LSTM, [N, H] */
  GTorchImpl *w_hh, *b_hh, *w_hr; /* b_hh is NULL if the gates contain it; w_hr may be NULL */
  const gint64 *batch_sizes;
  gsize n_steps;
  gboolean reverse;
} GTorchRecurrentLayer;

/* Computes all steps from what the input gives to the gates, a row for each element of each step. *output has
 * the states, *h_n and *c_n the last ones; *c_n is *h_n if there are no cells. */
gboolean gtorch_recurrent_layer_run (const GTorchRecurrentLayer *self, GTorchImpl *gates,
                                     GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n,
                                     GError **error);

/* Layers of a network between which nothing is dropped. Everything is borrowed. */
typedef struct
{
  guint mode;
  GTorchImpl *hx, *cx; /* the first dimension has the layers and in each the directions */
  GTorchImpl *const *params;
  guint n_params; /* of each layer and direction */
  gboolean has_biases, has_projections;
  guint n_layers, n_directions;
  const gint64 *batch_sizes;
  gsize n_steps;
} GTorchRecurrentNetwork;

/* Computes the network, whose weights have been checked, at once if the device can, else layer by layer.
 * *c_n is *h_n if there are no cells. *is_kept tells whether the gradient needs *output as it is. */
gboolean gtorch_recurrent_network_run (const GTorchRecurrentNetwork *self, GTorchImpl *input,
                                       GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n,
                                       gboolean *is_kept, GError **error);
/* Computes it layer by layer. */
gboolean gtorch_recurrent_network_compose (const GTorchRecurrentNetwork *self, GTorchImpl *input,
                                           GTorchImpl **output, GTorchImpl **h_n, GTorchImpl **c_n,
                                           GError **error);

G_END_DECLS
