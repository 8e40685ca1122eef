/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-dataset.h>
#include <gtorch/device/gtorch-generator.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_WORKER_INFO (gtorch_worker_info_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchWorkerInfo, gtorch_worker_info, GTORCH, WORKER_INFO, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchWorkerInfo *gtorch_worker_info_get_current (void);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_worker_info_get_id (GTorchWorkerInfo *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_worker_info_get_num_workers (GTorchWorkerInfo *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_worker_info_get_seed (GTorchWorkerInfo *self);
GTORCH_AVAILABLE_IN_0_1
GTorchDataset *gtorch_worker_info_get_dataset (GTorchWorkerInfo *self);
GTORCH_AVAILABLE_IN_0_1
GTorchGenerator *gtorch_worker_info_get_generator (GTorchWorkerInfo *self);

G_END_DECLS
