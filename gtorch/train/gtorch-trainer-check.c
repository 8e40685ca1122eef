/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which settings of a trainer are valid. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-text-private.h"

static gboolean
check_number (const gchar *name, gint64 value, gint64 least, GError **error)
{
  if (value >= least)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("trainer: %s is %" PRId64 ", it must be at least %" PRId64), name, value, least);
  return FALSE;
}

static gboolean
check_size (const gchar *name, gdouble value, GError **error)
{
  if (value >= 0 && isfinite (value))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("trainer: %s is %g, it must be a number that is not below 0"), name, value);
  return FALSE;
}

/**
 * gtorch_trainer_check:
 * @self: a trainer
 * @error: return location for an error
 *
 * Tells whether a run can be made with the present settings. Properties accept any number; this function and
 * runs report an invalid one.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID, or %GTORCH_ERROR_NOT_SUPPORTED if there is a
 *   [property@Trainer:checkpoint-folder] and each process has a part of the module, as with
 *   [class@ModuleShards]
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_check (GTorchTrainer *self, GError **error)
{
  GTorchTrainerPrivate *priv;
  const GTorchTrainerSettings *settings;
  const gchar *missing, *evaluating, *saving;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  priv = gtorch_trainer_get_private (self);
  settings = &priv->settings;
  missing = priv->module == NULL      ? "module"
            : priv->loader == NULL    ? "loader"
            : priv->optimizer == NULL ? "optimizer"
                                      : NULL;
  if (missing != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("trainer: there is no %s"),
                   missing);
      return FALSE;
    }
  if (!check_number ("n_epochs", settings->n_epochs, 1, error)
      || !check_number ("max_steps", settings->max_steps, 0, error)
      || !check_number ("accumulate_steps", settings->accumulate_steps, 1, error)
      || !check_number ("evaluate_every", settings->evaluate_every, 0, error)
      || !check_number ("log_every", settings->log_every, 1, error)
      || !check_number ("patience", settings->patience, 0, error)
      || !check_number ("checkpoint_every", settings->checkpoint_every, 0, error)
      || !check_number ("keep_checkpoints", settings->keep_checkpoints, 0, error)
      || !check_number ("max_ahead", settings->max_ahead, 0, error)
      || !check_size ("clip_norm", settings->clip_norm, error)
      || !check_size ("min_delta", settings->min_delta, error))
    return FALSE;
  if (settings->autocast != GTORCH_DTYPE_NONE && settings->autocast != GTORCH_DTYPE_FLOAT16
      && settings->autocast != GTORCH_DTYPE_BFLOAT16)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("trainer: autocast is %s, it must be float16, bfloat16 or none"),
                   gtorch_dtype_get_name (settings->autocast));
      return FALSE;
    }
  evaluating = settings->patience > 0         ? "patience"
               : settings->save_best          ? "save_best"
               : settings->evaluate_every > 0 ? "evaluate_every"
               : settings->monitor != NULL    ? "monitor"
                                              : NULL;
  if (evaluating != NULL && settings->validation_loader == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("trainer: %s is set, and there is no validation_loader"), evaluating);
      return FALSE;
    }
  if (priv->metrics->len > 0 && settings->validation_loader == NULL)
    {
      const GTorchTrainerMetric *first = priv->metrics->pdata[0];

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("trainer: there is a metric, “%s”, and no validation_loader whose batches it "
                      "is of"),
                   gtorch_name_str (first->name));
      return FALSE;
    }
  saving = settings->save_best              ? "save_best"
           : settings->checkpoint_every > 0 ? "checkpoint_every"
           : settings->keep_checkpoints > 0 ? "keep_checkpoints"
                                            : NULL;
  if (saving != NULL && settings->checkpoint_folder == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("trainer: %s is set, and there is no checkpoint_folder"), saving);
      return FALSE;
    }
  return settings->checkpoint_folder == NULL || gtorch_trainer_check_whole (self, "trainer", error);
}
