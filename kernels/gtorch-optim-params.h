/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The update of a gradient scaler's scale. */
typedef struct
{
  float *scale;
  int32_t *tracker; /* number of steps since the last infinity */
  const float *found;
  double growth, backoff;
  int64_t interval;
} GtAmpUpdate;
GT_SIZE (GtAmpUpdate, 48);
