/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "autograd/gtorch-function.h"
#include "autograd/gtorch-saved-private.h"
#include "distributed/gtorch-module-shards.h"
#include "nn/gtorch-module-private.h"

G_BEGIN_DECLS

/* A parameter of which this rank has some rows. */
typedef struct
{
  GTorchTensor *param;
  gint64 shape[GTORCH_MAX_DIMS]; /* of the whole */
  guint n_dims;
  gint64 per;    /* rows of a rank, with those that only fill up */
  gint64 first;  /* of this rank */
  gint64 n_rows; /* of this rank */
  gint64 row;    /* elements of a row */
  gint64 offset; /* in the buffer of a rank */
} GTorchShard;

/* Where a module has a parameter. */
typedef struct
{
  GTorchModule *module; /* not owned: what is sharded owns it */
  gchar *name;
  guint shard;
} GTorchShardPlace;

struct _GTorchModuleShards
{
  GObject parent_instance;
  GTorchProcessGroup *group;
  GPtrArray *shards; /* of GTorchShard */
  GPtrArray *places; /* of GTorchShardPlace */
  gint64 numel;      /* of the buffer of a rank */
  gboolean reshard;
  GTorchDType param_dtype, reduce_dtype, output_dtype; /* NONE: that of the parameters */
  GTorchFunction *function;
  guint depth;      /* of calls of the module */
  GPtrArray *fulls; /* GTorchTensor, of the present call; or NULL */
  GPtrArray *again; /* GTorchTensor, of the backward pass; or NULL */
  GTorchSavedTensorsGuard *guard;
};

/* --- gtorch-shard-exchange.c --- */

/* Returns the whole parameters, without autograd. */
GPtrArray *gtorch_shards_gather_all (GTorchModuleShards *self, GTorchTensor **params,
                                     GError **error);
/* The same with autograd: the backward pass gives each rank its rows of the mean of the gradients. */
GTorchFunction *gtorch_shards_function_new (GTorchModuleShards *self);
/* Saves parameters by their names, so to speak: the backward pass gathers them again. */
GTorchSavedTensorsGuard *gtorch_shards_guard_new (GTorchModuleShards *self, GError **error);

G_END_DECLS
