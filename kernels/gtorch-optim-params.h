/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The new scale of a gradient scaler. */
typedef struct
{
  float *scale;
  int32_t *tracker; /* steps without an infinity */
  const float *found;
  double growth, backoff;
  int64_t interval;
} GtAmpUpdate;
GT_SIZE (GtAmpUpdate, 48);
