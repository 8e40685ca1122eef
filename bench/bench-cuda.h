/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

#include "bench-launch.h"

/* One row. The same names are in peer-cuda.py. */
typedef struct
{
  const gchar *name;
  GTorchTensor *(*run) (gconstpointer data, GError **error);
  gdouble amount; /* of the unit, for one call */
  /* "B", "FLOP", "key"; "s": none; "wall": what passes while calls follow each other; "wait": what a wait
   * takes longer than the device's work; "audit": host time with GTORCH_CHECK and without; NULL: host time */
  const gchar *unit;
  gconstpointer data;
  /* Instead of run: n calls without a result, for what is not much longer than to count references of one. */
  gboolean (*repeat) (gconstpointer data, guint n, GError **error);
  void (*floor) (
      CUstream stream); /* what the driver does of it, which takes turns with it; or NULL */
} BenchCase;

extern GTorchDevice *bench_device;
extern GTorchStream *bench_stream; /* what calls put their work on, or NULL: the current one */
/* Both end with a name NULL. */
extern const BenchCase bench_cases[];
extern const BenchCase bench_programs[]; /* graphs, training, inference */
