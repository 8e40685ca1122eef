/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A small program whose calls of the driver are made to fail. */
typedef struct
{
  const gchar *name;
  gboolean (*run) (gdouble *result, GError **error);
  gdouble expected;         /* its result */
  const gchar *fake;        /* what it wants of GTORCH_FAKE_CUDA */
  const gchar *key, *value; /* and of the environment */
} FaultProgram;

/* They end with one that has no name. */
extern const FaultProgram fault_programs[];      /* run again and again in one process */
extern const FaultProgram fault_programs_once[]; /* begin in a process of their own */

G_END_DECLS
