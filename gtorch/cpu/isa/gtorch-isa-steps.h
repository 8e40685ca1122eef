/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Macros for loops that change tensors in place. */

#include "cpu/ops/gtorch-cpu-optim.h"
#include "cpu/gtorch-cpu-half.h"

#define GTORCH_STEP_OPERANDS_MAX (2 + GTORCH_STEP_MAX_STATES)

/* Element i of operand k; `packed` is a compile-time constant. */
#define GTORCH_STEP_AT(S, k) (*(S *) (at[k] + i * (packed ? (gint64) sizeof (S) : stride[k])))

/* Copies the operands' pointers and strides to locals, so that the compiler knows that stores do not alias
 * them. */
#define GTORCH_STEP_OPERANDS(n_operands)   \
  char *at[GTORCH_STEP_OPERANDS_MAX];      \
  gint64 stride[GTORCH_STEP_OPERANDS_MAX]; \
                                           \
  for (guint k = 0; k < (n_operands); k++) \
    {                                      \
      at[k] = data[k];                     \
      stride[k] = strides[k];              \
    }
