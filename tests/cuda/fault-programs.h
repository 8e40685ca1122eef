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
  gdouble expected;         /* the expected result */
  const gchar *fake;        /* the settings in GTORCH_FAKE_CUDA */
  const gchar *key, *value; /* an environment variable */
} FaultProgram;

/* Each array ends with an element that has no name. */
extern const FaultProgram fault_programs[];      /* these run again and again in one process */
extern const FaultProgram fault_programs_once[]; /* these start in their own process */

/* fault-lender.c: opens a tensor of another process, which is this program with the argument --lend. */
gboolean fault_borrow (gdouble *result, GError **error);
int fault_lend (void);

G_END_DECLS
