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

void inputs_make (Inputs *inputs, const GTorchSample *sample, guint dtype, Layout layout);
/* The same values in the widest dtype of the kind. */
void inputs_widen (Inputs *wide, const Inputs *inputs, const GTorchSample *sample, Layout layout);
/* To test_device (). */
void inputs_move (Inputs *inputs);

/* The results, or NULL. */
GPtrArray *invoke (const GTorchSample *sample, const Inputs *inputs, GError **error);
/* Gives the operation values to be held against others? Not if they are random, or not initialised. */
gboolean has_values (const GTorchOpClass *op);
/* Can what the row says of the sample be computed in the dtype? */
gboolean is_for (const GTorchSample *sample, guint dtype);

typedef struct
{
  GTorchSample sample;
  GTorchSampleTensor tensors[MAX_TENSORS];
  GTorchAttr attrs[MAX_ATTRS];
  gint64 sizes[8];
  gint64 most; /* elements of a tensor */
} Resized;

/* The sample with `length` in the place of the size `old`. Of point-wise operations all else becomes 1, so
 * that their loops have that length. */
void sample_resize (Resized *resized, const GTorchSample *sample, gint64 old, gint64 length);
