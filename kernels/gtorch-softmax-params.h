/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* softmax, log_softmax and their gradients, of [outer, n, inner]; logsumexp of rows. */
typedef struct
{
  const void *x; /* the input; for gradients, the result */
  const void *g; /* the gradient of the result, or NULL */
  void *y;       /* like x; for logsumexp, one element for each row */
  int64_t rows;  /* outer * inner */
  int64_t n, inner;
  int64_t is_log;
} GtSoftmax;
GT_SIZE (GtSoftmax, 56);
