/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Macros for the loops of optimizer steps. */

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

#define GTORCH_STEP_DISPATCH(name)              \
  switch (((const GTorchStepRun *) run)->dtype) \
    {                                           \
    case GTORCH_DTYPE_FLOAT64:                  \
      name##_f64 (data, strides, n, run);       \
      break;                                    \
    case GTORCH_DTYPE_FLOAT16:                  \
      name##_f16 (data, strides, n, run);       \
      break;                                    \
    case GTORCH_DTYPE_BFLOAT16:                 \
      name##_bf16 (data, strides, n, run);      \
      break;                                    \
    default:                                    \
      name##_f32 (data, strides, n, run);       \
    }

/* Returns whether all operands that are used are contiguous. Bit i of states stands for operand 2 + i. */
static inline gboolean
gtorch_step_is_packed (const gint64 *strides, guint n_operands, guint states, gint64 size)
{
  for (guint k = 0; k < n_operands; k++)
    if (strides[k] != size && (k < 2 || (states & 1u << (k - 2)) != 0))
      return FALSE;
  return TRUE;
}
