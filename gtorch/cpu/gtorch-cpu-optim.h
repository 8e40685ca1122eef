/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>

G_BEGIN_DECLS

/* The loops of optimizer steps, of one parameter, and of unscaling. Operands that a step does not have are
 * not touched. */
typedef struct
{
  guint dtype;
  gboolean has_buffer, nesterov, maximize, first;
  gdouble lr, momentum, dampening, weight_decay;
} GTorchSGDStep;

typedef struct
{
  guint dtype;
  gboolean amsgrad, decoupled, maximize;
  gdouble lr, beta1, beta2, eps, weight_decay;
  gdouble correction1, correction2_sqrt; /* 1 - beta1^t, sqrt (1 - beta2^t) */
} GTorchAdamStep;

typedef struct
{
  guint dtype;
  gfloat factor;
  gint found; /* becomes 1, atomically, where an element is not finite */
} GTorchUnscaleStep;

GTORCH_ISA_DECLARE (void, gtorch_sgd_loop,
                    (char *const *data, const gint64 *strides, gint64 n, gpointer step));
GTORCH_ISA_DECLARE (void, gtorch_adam_loop,
                    (char *const *data, const gint64 *strides, gint64 n, gpointer step));
GTORCH_ISA_DECLARE (void, gtorch_unscale_loop,
                    (char *const *data, const gint64 *strides, gint64 n, gpointer step));

G_END_DECLS
