/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Optimizers with the settings of the samples of all rows. */

#pragma once

#include <gtorch/optim/gtorch-step-samples.h>
#include <string.h>

#define N_STEP_SAMPLES G_N_ELEMENTS (gtorch_step_samples)

static inline GTorchOptimizer *
step_sample_new (guint index, GListModel *params, gdouble learning_rate)
{
  const GTorchStepSample *sample = &gtorch_step_samples[index];
  GTorchOptimizer *optimizer = g_object_new (sample->get_type (), NULL);
  g_autoptr (GTorchParamGroup) group = NULL;
  g_autoptr (GError) error = NULL;
  gdouble decay = sample->weight_decay;
  guint i;

  for (i = 0; i < sample->n_settings; i++)
    {
      const gchar *name = sample->settings[i].name;
      gdouble value = sample->settings[i].value;
      GParamSpec *pspec = g_object_class_find_property (G_OBJECT_GET_CLASS (optimizer), name);

      if (strcmp (name, "weight_decay") == 0)
        decay = value;
      else if (G_IS_PARAM_SPEC_BOOLEAN (pspec))
        g_object_set (optimizer, name, value != 0, NULL);
      else
        g_object_set (optimizer, name, value, NULL);
    }
  group = gtorch_param_group_new (params, learning_rate, decay, &error);
  g_assert_no_error (error);
  gtorch_optimizer_add_param_group (optimizer, group, &error);
  g_assert_no_error (error);
  gtorch_optimizer_check (optimizer, &error);
  g_assert_no_error (error);
  return optimizer;
}

static inline guint
step_sample_find (const gchar *name)
{
  guint i;

  for (i = 0; i < N_STEP_SAMPLES; i++)
    if (strcmp (gtorch_step_samples[i].name, name) == 0)
      return i;
  g_error ("there is no sample %s", name);
}
