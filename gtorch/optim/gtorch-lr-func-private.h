/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-references-private.h>
#include <gtorch/optim/gtorch-lambda-lr.h>

G_BEGIN_DECLS

/* A function of the program that a schedule calls. */
typedef struct
{
  GTorchLRFunc func; /* or NULL */
  gpointer user_data;
  GDestroyNotify destroy;
} GTorchLRFunction;

void gtorch_lr_function_set (GTorchLRFunction *self, GTorchLRFunc func, gpointer user_data,
                             GDestroyNotify destroy);
void gtorch_lr_function_add_references (GTorchLRFunction *self, GTorchReferences *references);
/* Calls the function for the group whose rate is being computed. */
gboolean gtorch_lr_function_call (GTorchLRFunction *self, GTorchLRScheduler *scheduler, gint64 n,
                                  gdouble *factor, GError **error);

G_END_DECLS
