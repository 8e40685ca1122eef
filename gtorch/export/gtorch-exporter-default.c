/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The exporter that GTORCH_EXPORT asks for. It is started by a thread of its own when the library is loaded,
 * since whoever loads a library must not wait; nothing in that thread needs what is initialized later. */

#include "config.h"

#include "base/gtorch-environment-private.h"
#include "export/gtorch-exporter-private.h"
#include "train/gtorch-trainer-private.h"

static GTorchExporter *
make_default (void)
{
  static GTorchExporter *exporter;
  static gsize once;

  if (g_once_init_enter (&once))
    {
      if (gtorch_env_flag ("GTORCH_EXPORT", FALSE))
        exporter = gtorch_exporter_new (NULL);
      g_once_init_leave (&once, 1);
    }
  return exporter;
}

/**
 * gtorch_exporter_get_default:
 *
 * Gets the exporter that `GTORCH_EXPORT=1` in the environment has started.
 *
 * Trainers are added to it when they run. A program that trains by itself can add its modules and numbers:
 *
 * ```python
 * exporter = GTorch.Exporter.get_default()
 * if exporter is not None:
 *     exporter.add_module('model', model)
 * ```
 *
 * Returns: (transfer none) (nullable): the exporter; %NULL if the variable is not set
 *
 * Since: 0.1
 */
GTorchExporter *
gtorch_exporter_get_default (void)
{
  return make_default ();
}

/* Called when a run of a trainer begins. */
static void
trainer_begins (GTorchTrainer *trainer)
{
  GTorchTrainerPrivate *priv = gtorch_trainer_get_private (trainer);
  GTorchExporter *exporter = make_default ();
  GTorchExport *export = gtorch_exporter_get_export (exporter);
  g_autofree gchar *name = NULL;
  guint i, n = 0;

  if (g_ptr_array_find (priv->logs, exporter, NULL))
    return;
  g_mutex_lock (&export->lock);
  for (i = 0; i < export->modules->len; i++)
    n += ((GTorchExportedModule *) export->modules->pdata[i])->parameters != NULL;
  g_mutex_unlock (&export->lock);
  name = n == 0 ? g_strdup ("model") : g_strdup_printf ("model %u", n + 1);
  gtorch_exporter_add_trainer (exporter, name, trainer, NULL);
}

static gpointer
start (gpointer data)
{
  GError *error = NULL;

  if (!gtorch_exporter_start (make_default (), NULL, &error))
    {
      g_warning ("GTORCH_EXPORT: %s", error->message);
      g_error_free (error);
    }
  return NULL;
}

static void __attribute__ ((constructor)) start_default (void)
{
  if (!gtorch_env_flag ("GTORCH_EXPORT", FALSE))
    return;
  gtorch_trainer_begins = trainer_begins;
  g_thread_unref (g_thread_new ("gtorch-export-start", start, NULL));
}
