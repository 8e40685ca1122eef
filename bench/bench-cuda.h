/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

#include "bench-launch.h"

/* One row. peer-cuda.py has the same names. */
typedef struct
{
  const gchar *name;
  GTorchTensor *(*run) (gconstpointer data, GError **error);
  gdouble amount; /* amount of the unit per call */
  /* "B", "FLOP", "key"; "s": none; "wall": wall time of consecutive calls; "wait": a wait's time beyond
   * the device's work; "audit": host time with GTORCH_CHECK minus that without; NULL: host time */
  const gchar *unit;
  gconstpointer data;
  /* In place of run: makes n calls without a result, if a call takes hardly longer than counting
   * references. */
  gboolean (*repeat) (gconstpointer data, guint n, GError **error);
  /* the same work in the driver, which alternates with the calls; or NULL */
  void (*floor) (CUstream stream);
} BenchCase;

extern GTorchDevice *bench_device;
extern GTorchStream *bench_stream; /* the stream of the calls, or NULL: the current one */
/* Both arrays end with a name NULL. */
extern const BenchCase bench_cases[];
extern const BenchCase bench_programs[]; /* graphs, training, inference */
