/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The samples of the rows of layers, written by the generator. */

#pragma once

#include <gtorch/gtorch.h>

typedef struct
{
  const gchar *layer;
  const gchar *arguments; /* in Python's form */
  gpointer (*make) (GError **error);
  gint64 shape[8];
  gsize n_dims;
  gint64 target_shape[8]; /* for a loss */
  gsize n_target_dims;
  /* inputs of an embedding, targets of a loss: integers below this; 0 for floats */
  gint64 n_integers;
  gboolean is_loss;
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
