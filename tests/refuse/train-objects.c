/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Trainers, metrics and logs to pass to functions. */

#include "config.h"

#include <gio/gio.h>

#include "refuse.h"
#include "test-device.h"

gpointer
refuse_make_accuracy (void)
{
  return gtorch_accuracy_new (1);
}

gpointer
refuse_make_confusion_matrix (void)
{
  return gtorch_confusion_matrix_new (3);
}

gpointer
refuse_make_mean_squared_error (void)
{
  return gtorch_mean_squared_error_new (TRUE);
}

gpointer
refuse_make_precision_score (void)
{
  return gtorch_precision_score_new (3, GTORCH_SCORE_AVERAGE_MACRO, NULL);
}

gpointer
refuse_make_recall_score (void)
{
  return gtorch_recall_score_new (3, GTORCH_SCORE_AVERAGE_MACRO, NULL);
}

gpointer
refuse_make_f1_score (void)
{
  return gtorch_f1_score_new (3, GTORCH_SCORE_AVERAGE_MACRO, NULL);
}

/* Of a folder in which nothing can be made. */
gpointer
refuse_make_csv_log (void)
{
  g_autoptr (GFile) file = g_file_new_for_path ("/proc/none/log.csv");

  return gtorch_csv_log_new (file);
}

gpointer
refuse_make_json_log (void)
{
  g_autoptr (GFile) file = g_file_new_for_path ("/proc/none/log.jsonl");

  return gtorch_json_log_new (file);
}

gpointer
refuse_make_exporter (void)
{
  return gtorch_exporter_new ("test");
}

gpointer
refuse_make_event_writer (void)
{
  g_autoptr (GFile) folder = g_file_new_for_path ("/proc/none");

  return gtorch_event_writer_new (folder, NULL);
}

gpointer
refuse_make_trainer (void)
{
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_linear_new (3, 4, NULL));
  g_autoptr (GTorchTensor) tensor =
      gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchDataset) dataset = GTORCH_DATASET (gtorch_tensor_dataset_new (&tensor, 1, NULL));
  g_autoptr (GTorchDataLoader) loader = gtorch_data_loader_new (dataset, 2, FALSE);
  g_autoptr (GListModel) params = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GTorchOptimizer) optimizer =
      GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.1, 0.9, NULL));

  return gtorch_trainer_new (module, loader, NULL, optimizer);
}
