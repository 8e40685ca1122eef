/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-log.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CSV_LOG (gtorch_csv_log_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCSVLog, gtorch_csv_log, GTORCH, CSV_LOG, GTorchLog)

GTORCH_AVAILABLE_IN_0_1
GTorchCSVLog *gtorch_csv_log_new (GFile *file) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
