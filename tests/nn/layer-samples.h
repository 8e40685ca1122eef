/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The samples of the rows of layers, which the generator writes. */

#pragma once

#include <gtorch/gtorch.h>

typedef struct
{
  const gchar *layer;
  const gchar *arguments; /* as Python has them */
  gpointer (*make) (GError **error);
  gint64 shape[8];
  gsize n_dims;
  gint64 target_shape[8]; /* of a loss */
  gsize n_target_dims;
  gint64 n_integers; /* inputs of an embedding, targets of a loss: integers below this; 0: not */
  gboolean is_loss;
  gboolean training;
  const gchar *text; /* what PyTorch prints */
} LayerSample;

/* What the constructor refuses. */
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

/* 0.5, 1, 2, 4 …, float64: what `tensor(n)` means among the arguments. */
GTorchTensor *layer_sample_weights (gint64 n);
