/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The mantissas and exponents of n numbers. */
typedef struct
{
  const void *x;
  void *mantissas;
  int32_t *exponents;
  int64_t n;
} GtFrexp;
GT_SIZE (GtFrexp, 32);
