/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_LR_SCHEDULER (gtorch_lr_scheduler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchLRScheduler, gtorch_lr_scheduler, GTORCH, LR_SCHEDULER, GObject)

/**
 * GTorchLRSchedulerClass:
 * @parent_class: the parent class
 * @compute: computes the learning rate of a group
 *
 * The virtual functions of a schedule.
 *
 * Since: 0.1
 */
struct _GTorchLRSchedulerClass
{
  GObjectClass parent_class;

  /**
   * GTorchLRSchedulerClass::compute:
   * @self: a schedule, whose last-epoch is the new epoch
   * @group: a group of the optimizer
   * @base_lr: the initial learning rate of the group
   * @lr: (out): the learning rate of this epoch
   * @error: return location for an error
   *
   * Computes the learning rate of a group. Nothing is changed until the rates of all groups are known.
   *
   * Returns: %TRUE, or %FALSE with @error set
   */
  gboolean (*compute) (GTorchLRScheduler *self, GTorchParamGroup *group, gdouble base_lr,
                       gdouble *lr, GError **error);

  /*< private >*/
  gpointer check;
  gconstpointer row; /* the table of the settings */
  gpointer step;     /* these four: gtorch-lr-scheduler-private.h */
  gpointer ready;
  gpointer done;
  gpointer parts;
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchOptimizer *gtorch_lr_scheduler_get_optimizer (GTorchLRScheduler *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_lr_scheduler_get_last_epoch (GTorchLRScheduler *self);
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_lr_scheduler_get_base_lrs (GTorchLRScheduler *self,
                                           gsize *n) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_lr_scheduler_get_last_lr (GTorchLRScheduler *self,
                                          gsize *n) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_lr_scheduler_check (GTorchLRScheduler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_lr_scheduler_initial_step (GTorchLRScheduler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_lr_scheduler_step (GTorchLRScheduler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_lr_scheduler_step_to (GTorchLRScheduler *self, gdouble epoch, GError **error);
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_lr_scheduler_state_dict (GTorchLRScheduler *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_lr_scheduler_load_state_dict (GTorchLRScheduler *self, GHashTable *state,
                                              GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_lr_scheduler_state_lists (GTorchLRScheduler *self,
                                            gchar ***names) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_lr_scheduler_load_state_lists (GTorchLRScheduler *self, const gchar *const *names,
                                               GTorchTensor **tensors, gsize n_tensors,
                                               GError **error);

G_END_DECLS
