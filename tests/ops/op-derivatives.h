/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "op-values.h"

/* Gradients of a sample of a row against differences, once in each form that its inputs may have. */

/* Which of the floating-point inputs are complex. */
typedef enum
{
  PARTS_REAL,
  PARTS_COMPLEX,
  PARTS_REAL_FIRST,
  PARTS_COMPLEX_FIRST,
  N_PARTS,
} Parts;

typedef struct
{
  const GTorchSample *sample;
  guint order; /* 1 or 2 */
  gboolean in_place;
  Parts parts;
  Layout layout;       /* of the inputs */
  Layout upper_layout; /* of the gradients that arrive */
  guint round;         /* other numbers each time */
} Derivative;

typedef enum
{
  DERIVATIVE_AGREES,
  DERIVATIVE_DIFFERS, /* the message tells where */
  DERIVATIVE_NO_FORM, /* the operation is not defined for such inputs, or nothing can flow */
  DERIVATIVE_FAILS,   /* with error set */
} DerivativeResult;

DerivativeResult derivative_check (const Derivative *self, gchar **message, GError **error);
/* Is there no derivative of the operation, or none with respect to this input? It is an error to want it. */
gboolean derivative_is_undefined (const GTorchSample *sample, guint input);
/* For the messages of tests. */
gchar *derivative_str (const Derivative *self);
/* How many inputs have no dtype of their own. */
guint sample_count_floats (const GTorchSample *sample);
