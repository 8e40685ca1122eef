/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

G_BEGIN_DECLS

/* The steps of a program: prepared without faults, run with one, inspected without. */
typedef struct
{
  GHashTable *objects; /* the prepared objects, by name */
  GPtrArray *results;  /* tensors */
} State;

void state_clear (State *state);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (State, state_clear)

typedef struct
{
  const gchar *name;
  void (*prepare) (State *state);
  gboolean (*run) (State *state, GError **error);
  const gchar *may_change;        /* the object that a failure may change, or NULL */
  gboolean is_parted;             /* changes tensors one by one, with separate launches */
  gboolean (*is_possible) (void); /* NULL: always */
} Program;

extern const Program programs[];
extern const guint n_programs;

G_END_DECLS
