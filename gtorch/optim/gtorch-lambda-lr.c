/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Schedules whose factors a function of the program computes. */

#include "config.h"

#include "optim/gtorch-lambda-lr.h"

#include <glib/gi18n-lib.h>

#include "optim/gtorch-lr-func-private.h"
#include "optim/gtorch-lr-scheduler-private.h"

/* --- functions --- */

void
gtorch_lr_function_set (GTorchLRFunction *self, GTorchLRFunc func, gpointer user_data,
                        GDestroyNotify destroy)
{
  GTorchLRFunction former = *self;

  *self = (GTorchLRFunction){ func, user_data, destroy };
  if (former.destroy != NULL)
    former.destroy (former.user_data);
}

void
gtorch_lr_function_add_references (GTorchLRFunction *self, GTorchReferences *references)
{
  if (self->func != NULL)
    gtorch_references_add_data (references, self->user_data, self->destroy);
}

gboolean
gtorch_lr_function_call (GTorchLRFunction *self, GTorchLRScheduler *scheduler, gint64 n,
                         gdouble *factor, GError **error)
{
  GError *failure = NULL;

  *factor = 0;
  if (self->func == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lr_scheduler: %s has no function"), G_OBJECT_TYPE_NAME (scheduler));
      return FALSE;
    }
  if (self->func (scheduler, n, gtorch_lr_scheduler_get_state (scheduler)->group, factor,
                  self->user_data, &failure)
      && failure == NULL)
    return TRUE;
  if (failure != NULL)
    g_propagate_error (error, failure);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("lr_scheduler: the function of %s failed without saying why"),
                 G_OBJECT_TYPE_NAME (scheduler));
  return FALSE;
}

/* --- LambdaLR --- */

/**
 * GTorchLambdaLR:
 *
 * Multiplies the initial learning rate by what a function gives for the epoch.
 *
 * ```c
 * scheduler = gtorch_lambda_lr_new (optimizer, decay, NULL, NULL, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchLambdaLR
{
  GTorchLRScheduler parent_instance;
  GTorchLRFunction function;
};

G_DEFINE_TYPE (GTorchLambdaLR, gtorch_lambda_lr, GTORCH_TYPE_LR_SCHEDULER)

static const GTorchScheduleClass lambda_lr_row = { .who = "lambdalr" };

static gboolean
gtorch_lambda_lr_compute (GTorchLRScheduler *scheduler, GTorchParamGroup *group, gdouble base_lr,
                          gdouble *lr, GError **error)
{
  gdouble factor;

  if (!gtorch_lr_function_call (&GTORCH_LAMBDA_LR (scheduler)->function, scheduler,
                                gtorch_lr_scheduler_get_last_epoch (scheduler), &factor, error))
    return FALSE;
  *lr = base_lr * factor;
  return TRUE;
}

static void
gtorch_lambda_lr_finalize (GObject *object)
{
  gtorch_lr_function_set (&GTORCH_LAMBDA_LR (object)->function, NULL, NULL, NULL);
  G_OBJECT_CLASS (gtorch_lambda_lr_parent_class)->finalize (object);
}

static void
gtorch_lambda_lr_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_lr_function_add_references (&GTORCH_LAMBDA_LR (self)->function, references);
}

static GTorchReferencesType lambda_references = { .look = gtorch_lambda_lr_add_references };

static void
gtorch_lambda_lr_class_init (GTorchLambdaLRClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_lambda_lr_finalize;
  gtorch_schedule_class_init (GTORCH_LR_SCHEDULER_CLASS (klass), &lambda_lr_row);
  GTORCH_LR_SCHEDULER_CLASS (klass)->compute = gtorch_lambda_lr_compute;
  lambda_references.type = GTORCH_TYPE_LAMBDA_LR;
  gtorch_references_add_type (&lambda_references);
}

static void
gtorch_lambda_lr_init (GTorchLambdaLR *self)
{
}

/**
 * gtorch_lambda_lr_new:
 * @optimizer: the optimizer
 * @lr_lambda: (scope notified) (closure user_data) (destroy destroy): computes the factor of a group
 * @user_data: data for @lr_lambda
 * @destroy: (nullable): frees @user_data
 * @error: return location for an error
 *
 * Creates a schedule, and sets the learning rates of the first epoch.
 *
 * Returns: (transfer full): the schedule, or %NULL with the error of @lr_lambda
 *
 * Since: 0.1
 */
GTorchLambdaLR *
gtorch_lambda_lr_new (GTorchOptimizer *optimizer, GTorchLRFunc lr_lambda, gpointer user_data,
                      GDestroyNotify destroy, GError **error)
{
  GTorchLambdaLR *self;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  g_return_val_if_fail (lr_lambda != NULL, NULL);
  self = g_object_new (GTORCH_TYPE_LAMBDA_LR, "optimizer", optimizer, NULL);
  gtorch_lambda_lr_set_lr_lambda (self, lr_lambda, user_data, destroy);
  return gtorch_schedule_start (self, error);
}

/**
 * gtorch_lambda_lr_set_lr_lambda:
 * @self: a schedule
 * @lr_lambda: (scope notified) (closure user_data) (destroy destroy): computes the factor of a group
 * @user_data: data for @lr_lambda
 * @destroy: (nullable): frees @user_data
 *
 * Replaces the function. It is no part of the state dict.
 *
 * Since: 0.1
 */
void
gtorch_lambda_lr_set_lr_lambda (GTorchLambdaLR *self, GTorchLRFunc lr_lambda, gpointer user_data,
                                GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_LAMBDA_LR (self));
  g_return_if_fail (lr_lambda != NULL);
  gtorch_lr_function_set (&self->function, lr_lambda, user_data, destroy);
}

/* --- MultiplicativeLR --- */

/**
 * GTorchMultiplicativeLR:
 *
 * Multiplies the learning rate of the epoch before by what a function gives for the epoch. The function is
 * not called for the first epoch.
 *
 * Since: 0.1
 */
struct _GTorchMultiplicativeLR
{
  GTorchLRScheduler parent_instance;
  GTorchLRFunction function;
};

G_DEFINE_TYPE (GTorchMultiplicativeLR, gtorch_multiplicative_lr, GTORCH_TYPE_LR_SCHEDULER)

static const GTorchScheduleClass multiplicative_lr_row = { .who = "multiplicativelr" };

static gboolean
gtorch_multiplicative_lr_compute (GTorchLRScheduler *scheduler, GTorchParamGroup *group,
                                  gdouble base_lr, gdouble *lr, GError **error)
{
  gdouble factor = 1;

  if (gtorch_lr_scheduler_get_state (scheduler)->how != GTORCH_SCHEDULE_FIRST
      && !gtorch_lr_function_call (&GTORCH_MULTIPLICATIVE_LR (scheduler)->function, scheduler,
                                   gtorch_lr_scheduler_get_last_epoch (scheduler), &factor, error))
    return FALSE;
  *lr = gtorch_param_group_get_learning_rate (group) * factor;
  return TRUE;
}

static void
gtorch_multiplicative_lr_finalize (GObject *object)
{
  gtorch_lr_function_set (&GTORCH_MULTIPLICATIVE_LR (object)->function, NULL, NULL, NULL);
  G_OBJECT_CLASS (gtorch_multiplicative_lr_parent_class)->finalize (object);
}

static void
gtorch_multiplicative_lr_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_lr_function_add_references (&GTORCH_MULTIPLICATIVE_LR (self)->function, references);
}

static GTorchReferencesType multiplicative_references = {
  .look = gtorch_multiplicative_lr_add_references
};

static void
gtorch_multiplicative_lr_class_init (GTorchMultiplicativeLRClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_multiplicative_lr_finalize;
  gtorch_schedule_class_init (GTORCH_LR_SCHEDULER_CLASS (klass), &multiplicative_lr_row);
  GTORCH_LR_SCHEDULER_CLASS (klass)->compute = gtorch_multiplicative_lr_compute;
  multiplicative_references.type = GTORCH_TYPE_MULTIPLICATIVE_LR;
  gtorch_references_add_type (&multiplicative_references);
}

static void
gtorch_multiplicative_lr_init (GTorchMultiplicativeLR *self)
{
}

/**
 * gtorch_multiplicative_lr_new:
 * @optimizer: the optimizer
 * @lr_lambda: (scope notified) (closure user_data) (destroy destroy): computes the factor of a group
 * @user_data: data for @lr_lambda
 * @destroy: (nullable): frees @user_data
 * @error: return location for an error
 *
 * Creates a schedule. The learning rates remain as they are for the first epoch.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
GTorchMultiplicativeLR *
gtorch_multiplicative_lr_new (GTorchOptimizer *optimizer, GTorchLRFunc lr_lambda,
                              gpointer user_data, GDestroyNotify destroy, GError **error)
{
  GTorchMultiplicativeLR *self;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  g_return_val_if_fail (lr_lambda != NULL, NULL);
  self = g_object_new (GTORCH_TYPE_MULTIPLICATIVE_LR, "optimizer", optimizer, NULL);
  gtorch_multiplicative_lr_set_lr_lambda (self, lr_lambda, user_data, destroy);
  return gtorch_schedule_start (self, error);
}

/**
 * gtorch_multiplicative_lr_set_lr_lambda:
 * @self: a schedule
 * @lr_lambda: (scope notified) (closure user_data) (destroy destroy): computes the factor of a group
 * @user_data: data for @lr_lambda
 * @destroy: (nullable): frees @user_data
 *
 * Replaces the function. It is no part of the state dict.
 *
 * Since: 0.1
 */
void
gtorch_multiplicative_lr_set_lr_lambda (GTorchMultiplicativeLR *self, GTorchLRFunc lr_lambda,
                                        gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_MULTIPLICATIVE_LR (self));
  g_return_if_fail (lr_lambda != NULL);
  gtorch_lr_function_set (&self->function, lr_lambda, user_data, destroy);
}
