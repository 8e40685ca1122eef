/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "op-values.h"

/* Compares the gradients of a row's sample with differences, in each form that its inputs may have. */

/* The floating-point inputs that are complex. */
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
  const GTorchOpSample *sample;
  guint order; /* 1 or 2 */
  gboolean in_place;
  Parts parts;
  Layout layout;       /* of the inputs */
  Layout upper_layout; /* of the incoming gradients */
  guint round;         /* selects the random numbers */
} Derivative;

typedef enum
{
  DERIVATIVE_AGREES,
  DERIVATIVE_DIFFERS, /* the message names the element */
  DERIVATIVE_NO_FORM, /* the operation is not defined for such inputs, or no gradient can flow */
  DERIVATIVE_FAILS,   /* with the error set */
} DerivativeResult;

DerivativeResult derivative_check (const Derivative *self, gchar **message, GError **error);
/* Compares the tangents of the results, or for the second order those of their gradients, with
 * differences along the directions of all inputs at once. */
DerivativeResult derivative_check_forward (const Derivative *self, gchar **message, GError **error);
/* Runs the operation with a tangent of one input, though it may have no derivative by it. */
gboolean derivative_run_dual (const GTorchOpSample *sample, guint input, GError **error);
/* Returns TRUE if the operation has no derivative, or none with respect to this input: computing it is an
 * error. */
gboolean derivative_is_undefined (const GTorchOpSample *sample, guint input);
/* Returns a description for the messages of tests. */
gchar *derivative_str (const Derivative *self);
/* Returns how many inputs have no dtype of their own. */
guint sample_count_floats (const GTorchOpSample *sample);
