/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "op-values.h"

/* Calls of operations with the inputs of their rows' samples. */

#define MAX_TENSORS 16
#define MAX_ATTRS   16

typedef struct
{
  GTorchImpl *tensors[MAX_TENSORS];
  guint n;
} Inputs;

void inputs_clear (Inputs *inputs);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Inputs, inputs_clear)

void inputs_make (Inputs *inputs, const GTorchOpSample *sample, guint dtype, Layout layout);
/* Copies the inputs to the widest dtype of their kind. */
void inputs_widen (Inputs *wide, const Inputs *inputs, const GTorchOpSample *sample, Layout layout);
/* Moves the inputs to test_device (). */
void inputs_move (Inputs *inputs);

/* Returns the results, or NULL. */
GPtrArray *invoke (const GTorchOpSample *sample, const Inputs *inputs, GError **error);
/* Returns FALSE if the results are random, or not initialised. */
gboolean has_values (const GTorchOpClass *op);
/* Returns TRUE if the sample can be computed in the dtype. */
gboolean is_for (const GTorchOpSample *sample, guint dtype);

typedef struct
{
  GTorchOpSample sample;
  GTorchSampleTensor tensors[MAX_TENSORS];
  GTorchAttr attrs[MAX_ATTRS];
  gint64 sizes[8];
  gint64 most; /* the maximum number of elements of a tensor */
} Resized;

/* Replaces the size `old` in the sample by `length`. In element-wise operations all other sizes become 1,
 * so that their loops have that length. */
void sample_resize (Resized *resized, const GTorchOpSample *sample, gint64 old, gint64 length);
