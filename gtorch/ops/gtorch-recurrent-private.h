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

G_END_DECLS
