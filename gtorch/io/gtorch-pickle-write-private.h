/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/io/gtorch-checkpoint-node.h>

G_BEGIN_DECLS

/* A value that is written. Values refer to one another by number. */
typedef struct
{
  GTorchCheckpointKind kind;
  gboolean is_hashable; /* Python can take it as a key */
  gint attributes;      /* of an OrderedDict: the number of a dictionary; -1: none */
  gint64 whole;         /* a bool, an integer, a dtype */
  gdouble parts[2];     /* a decimal or a complex number */
  GBytes *bytes;        /* a text, bytes, a long integer, the name of a device */
  GTorchTensor *tensor;
  GArray *items; /* of gint; of a dictionary: keys and values in turn */
} GTorchWrittenNode;

/* Memory that some tensors share. */
typedef struct
{
  GTorchTensor *tensor; /* one of them */
  gint64 numel;         /* up to the last element that one has */
} GTorchWrittenStorage;

/* Writes the value and all that it refers to as a pickle of protocol 2; storages receives what tensors
 * refer to. */
GBytes *gtorch_pickle_write (const gchar *op, GPtrArray *nodes, gint root, GPtrArray **storages,
                             GError **error);

G_END_DECLS
