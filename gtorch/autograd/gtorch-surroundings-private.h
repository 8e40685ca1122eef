/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What surrounds the call of a function in its thread, such as tensors that stand for those of a module: the
 * second call of a checkpoint finds it again. This folder knows of no modules; those below have such things,
 * and add each kind of them when the library is loaded. */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A kind of them. */
typedef struct
{
  /* Returns what is there in this thread, or NULL. It may be entered in other threads, and several times. */
  gpointer (*take) (void);
  void (*drop) (gpointer taken);
  /* Makes it be there; the former one is handed to leave (). */
  gboolean (*enter) (gpointer taken, gpointer *former, GError **error);
  void (*leave) (gpointer taken, gpointer former);
} GTorchSurroundingsClass;

#define GTORCH_MAX_SURROUNDINGS 2 /* kinds */

/* What is there of each kind. */
typedef struct
{
  gpointer taken[GTORCH_MAX_SURROUNDINGS];
} GTorchSurroundings;

/* What was there before. */
typedef struct
{
  gpointer formers[GTORCH_MAX_SURROUNDINGS];
} GTorchFormerSurroundings;

/* Takes no reference. */
void gtorch_surroundings_add (const GTorchSurroundingsClass *klass);

void gtorch_surroundings_take (GTorchSurroundings *self);
void gtorch_surroundings_clear (GTorchSurroundings *self);
gboolean gtorch_surroundings_enter (const GTorchSurroundings *self,
                                    GTorchFormerSurroundings *former, GError **error);
void gtorch_surroundings_leave (const GTorchSurroundings *self,
                                const GTorchFormerSurroundings *former);

G_END_DECLS
