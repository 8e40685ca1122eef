/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-object-list-private.h>
#include <gtorch/optim/gtorch-setting-private.h>

G_BEGIN_DECLS

struct _GTorchParamGroup
{
  GObject parent_instance;
  GTorchObjectList *params;
  gdouble learning_rate;
  gdouble initial_learning_rate; /* negative before a schedule has begun */
  gdouble weight_decay;
  /* the table of the optimizer to which it was added, with the value of each number; NULL before, and for
   * optimizers without one */
  const GTorchSettings *settings;
  gdouble numbers[GTORCH_SETTINGS_MAX];
  /* the settings that it was given before, or without such a table: names, and numbers for each */
  GPtrArray *names;
  GPtrArray *values;
  GPtrArray
      *cells; /* the learning rate in memory, one for each device on which steps are captured */
  gboolean was_captured;
};

/* Tells handlers that a setting has changed. */
void gtorch_param_group_notify (GTorchParamGroup *self, const gchar *name);

G_END_DECLS
