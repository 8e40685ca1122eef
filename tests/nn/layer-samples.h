/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The samples of the rows of layers, written by the generator. */

#pragma once

#include <gtorch/gtorch.h>

/* The values of a tensor that a layer gets. */
typedef enum
{
  LAYER_INPUT_WAVES,
  LAYER_INPUT_POSITIVE,
  LAYER_INPUT_SIGNS, /* 1 and -1 */
  LAYER_INPUT_LOGS,  /* logarithms of probabilities that sum up to 1 along the last dimension */
  LAYER_INPUT_INTEGERS,
} LayerInputKind;

typedef struct
{
  gint64 shape[8];
  gsize n_dims;
  LayerInputKind kind;
  gint64 limit; /* integers are below it */
} LayerInput;

typedef struct
{
  const gchar *layer;
  const gchar *arguments; /* in Python's form */
  gpointer (*make) (GError **error);
  LayerInput inputs[4];
  gsize n_inputs;
  gboolean has_target; /* the second input is a target, whose gradient is not compared */
  gboolean training;
  const gchar *text; /* PyTorch's text */
} LayerSample;

/* Arguments that the constructor refuses. */
typedef struct
{
  const gchar *layer;
  const gchar *arguments;
  gpointer (*make) (GError **error);
} LayerRefusal;

extern const LayerSample layer_samples[];
extern const guint n_layer_samples;
extern const LayerRefusal layer_refusals[];
extern const guint n_layer_refusals;

/* Returns 0.5, 1, 2, 4, … in float64: the value of `tensor(n)` among the arguments. */
GTorchTensor *layer_sample_weights (gint64 n);
