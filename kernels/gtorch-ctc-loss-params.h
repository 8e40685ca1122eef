/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Connectionist temporal classification of n examples, whose log-probabilities are x [steps, n, classes]. */
typedef struct
{
  const void *x;
  const int64_t *targets;
  const int64_t
      *lengths; /* [3, n]: numbers of steps, numbers of labels, where these begin in targets */
  void *loss, *alpha; /* [n] and [n, steps, states] */
  const void *upper;  /* the gradient of the losses; NULL in the forward pass */
  void *grad;
  void *beta;   /* [n, 2, states] */
  void *shares; /* [n, states]: probabilities of the states at a step */
  int64_t
      *next; /* [n, states / 2]: the next place of each label times 2, plus 1 at its first place */
  int64_t n, steps, classes, states;
  int64_t blank;
  int64_t op;
  void *report; /* GtReport */
} GtCtc;
GT_SIZE (GtCtc, 136);
