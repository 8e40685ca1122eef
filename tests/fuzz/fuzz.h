/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Each target defines these; fuzz-driver.c, or libFuzzer in its place, calls the first. */
int LLVMFuzzerTestOneInput (const guint8 *data, gsize size);

typedef struct
{
  const gchar *data;
  gsize size;
} FuzzSeed;

#define FUZZ_SEED(text)   \
  {                       \
    text, sizeof text - 1 \
  }

extern const gchar fuzz_name[];
extern const FuzzSeed fuzz_seeds[]; /* NULL ends the array */
extern const guint fuzz_weight;     /* divides the number of runs in the suite */

G_END_DECLS
