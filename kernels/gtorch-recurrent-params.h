/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The gates of one step of a recurrent network, for `rows` elements of the batch. A row of gates has `hidden`
 * numbers for each gate. */
typedef struct
{
  const void *gates;    /* what the input gives to them */
  const void *products; /* what the former states give, for a GRU with the bias */
  void *h;              /* the states, which are replaced; or NULL */
  void *c;              /* LSTM: the cells, which are replaced */
  void *y;              /* gets the states as well */
  void *
      saved; /* LSTM, GRU: gets the gates after their functions and the cell, or the GRU's product; or NULL */
  int64_t rows, hidden;
} GtRecurrent;
GT_SIZE (GtRecurrent, 64);

/* The gradients of such a step. */
typedef struct
{
  const void *saved; /* LSTM, GRU */
  const void *y;     /* the states of the step */
  const void *known; /* the former cells (LSTM) or states (GRU) of the first n_known rows … */
  const void *first; /* … and, from row n_known on, of the others */
  const void *more;  /* gradients that are added to those of the states; or NULL */
  void *h;           /* gradients of the states; GRU: replaced by their direct part */
  void *c;           /* LSTM: gradients of the cells, which are replaced */
  void *grad;        /* gets the gradients of the gates */
  void *inner;       /* GRU: gets those of the products */
  int64_t rows, hidden, n_known;
  int64_t known_stride; /* from row to row */
} GtRecurrentGrad;
GT_SIZE (GtRecurrentGrad, 104);
