/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-sample-collate.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* How deep samples may be nested: functions that walk them call themselves. */
#define GTORCH_SAMPLE_MAX_DEPTH 64

struct _GTorchSample
{
  GTorchSampleKind kind;
  guint depth; /* 1 more than that of the deepest child */
  union
  {
    GTorchTensor *tensor;
    gint64 integer; /* and a boolean */
    gdouble number;
    gchar *string;
    GBytes *bytes;
    GValue *value;
    struct
    {
      GTorchSample **children;
      gchar **keys; /* NULL for a tuple */
      guint n_children;
    };
  };
};

/* Takes the references of the children, which are at most GTORCH_SAMPLE_MAX_DEPTH - 1 deep, and the array;
 * keys belong to a dict. */
GTorchSample *gtorch_sample_take (GTorchSample **children, guint n_children, gchar **keys);
GTorchSample *gtorch_sample_take_tensor (GTorchTensor *tensor);
/* "a tuple of 2": for messages. */
gchar *gtorch_sample_describe (GTorchSample *self);
/* Lets batches that this thread makes from now on be in pinned memory, or no longer; returns what was
 * before. */
gboolean gtorch_sample_pin_batches (gboolean pin);
/* Returns a new contiguous tensor of the CPU for a batch that this thread makes. */
GTorchImpl *gtorch_sample_alloc (const gchar *op, guint dtype, const gint64 *shape, guint n_dims,
                                 GError **error);
/* The samples of a batch that are of one data set. */
typedef struct
{
  gchar *name;    /* for messages */
  gint64 *places; /* where they are in the batch */
  gsize n;
} GTorchSamplePart;

/* Makes one batch of a batch for each part. */
GTorchSample *gtorch_sample_join (GTorchSample **batches, const GTorchSamplePart *parts,
                                  guint n_parts, GError **error);
/* Copies rows of a tensor, on its device, into a batch that this thread makes. */
GTorchTensor *gtorch_sample_select_rows (GTorchTensor *rows, const gint64 *indices, gsize n,
                                         GError **error);

G_END_DECLS
