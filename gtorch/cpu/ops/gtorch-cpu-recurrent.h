/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* The pointwise part of one step of a recurrent network, for some of its elements. A row of gates has a
 * part of `hidden` numbers for each gate. Rows are `stride` numbers apart where that is given, else
 * contiguous. */
typedef struct
{
  gint64 rows, hidden;
  gpointer
      gates; /* forward: the gates before their functions, replaced by those after them; the part
                             * behind them gets the cells, or the products of the state */
  gint64 gates_stride;
  gconstpointer products; /* GRU: the products of the state, with their bias */
  gpointer h;             /* the states; forward they are replaced */
  gpointer c; /* LSTM: the cells; forward they are replaced, backward it is their gradient */
  gpointer y; /* forward: gets the states as well */
  gconstpointer former; /* backward: the former states (GRU) or cells (LSTM) */
  gint64 former_stride;
  gpointer upper;      /* backward: the gradient of the states; GRU: replaced by its direct part */
  gpointer grad_gates; /* backward: gets the gradients of the gates */
  gpointer grad_products; /* backward, GRU: gets those of the products */
} GTorchRecurrentRows;

#define GTORCH_RECURRENT_DECLARE(name)                                               \
  GTORCH_ISA_DECLARE (void, gtorch_##name##_f32, (const GTorchRecurrentRows *rows)); \
  GTORCH_ISA_DECLARE (void, gtorch_##name##_f64, (const GTorchRecurrentRows *rows))

GTORCH_RECURRENT_DECLARE (recurrent_tanh);
GTORCH_RECURRENT_DECLARE (recurrent_relu);
GTORCH_RECURRENT_DECLARE (recurrent_lstm);
GTORCH_RECURRENT_DECLARE (recurrent_gru);
GTORCH_RECURRENT_DECLARE (recurrent_tanh_grad);
GTORCH_RECURRENT_DECLARE (recurrent_relu_grad);
GTORCH_RECURRENT_DECLARE (recurrent_lstm_grad);
GTORCH_RECURRENT_DECLARE (recurrent_gru_grad);

G_END_DECLS
