/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

/**
 * GTorchLRFunc:
 * @scheduler: the schedule
 * @n: the number of the epoch, or of the cycle
 * @group: the position of the group of parameters
 * @factor: (out): a factor of the learning rate
 * @user_data: the user data of the function
 * @error: return location for an error, with which the step fails
 *
 * A function that computes a factor of the learning rate of a group.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchLRFunc) (GTorchLRScheduler *scheduler, gint64 n, guint group,
                                  gdouble *factor, gpointer user_data, GError **error);

#define GTORCH_TYPE_LAMBDA_LR (gtorch_lambda_lr_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchLambdaLR, gtorch_lambda_lr, GTORCH, LAMBDA_LR, GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchLambdaLR *gtorch_lambda_lr_new (GTorchOptimizer *optimizer, GTorchLRFunc lr_lambda,
                                      gpointer user_data, GDestroyNotify destroy,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_lambda_lr_set_lr_lambda (GTorchLambdaLR *self, GTorchLRFunc lr_lambda,
                                     gpointer user_data, GDestroyNotify destroy);

#define GTORCH_TYPE_MULTIPLICATIVE_LR (gtorch_multiplicative_lr_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMultiplicativeLR, gtorch_multiplicative_lr, GTORCH, MULTIPLICATIVE_LR,
                      GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchMultiplicativeLR *gtorch_multiplicative_lr_new (GTorchOptimizer *optimizer,
                                                      GTorchLRFunc lr_lambda, gpointer user_data,
                                                      GDestroyNotify destroy,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_multiplicative_lr_set_lr_lambda (GTorchMultiplicativeLR *self, GTorchLRFunc lr_lambda,
                                             gpointer user_data, GDestroyNotify destroy);

G_END_DECLS
