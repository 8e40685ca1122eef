/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

/* One row. The same names are in peer-cuda.py. */
typedef struct
{
  const gchar *name;
  GTorchTensor *(*run) (GError **error);
  gdouble amount; /* of the unit, for one call */
  const gchar *
      unit; /* "B", "FLOP", "key"; "s": none; "wall": what passes while calls follow each other; NULL:
                      * host time */
} BenchCase;

extern GTorchDevice *bench_device;
extern const BenchCase bench_cases[]; /* ends with a name NULL */

/* --- bench-cuda-training.c --- */
GTorchTensor *bench_eager_tiny (GError **error);
GTorchTensor *bench_replay_tiny (GError **error);
GTorchTensor *bench_train_manuals (GError **error);
GTorchTensor *bench_train_manuals_graph (GError **error);
GTorchTensor *bench_train_small (GError **error);
GTorchTensor *bench_train_small_graph (GError **error);
GTorchTensor *bench_infer_small (GError **error);
