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
  guint version; /* of the part that was gathered last */
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
  GTorchProcessGroup *replicas; /* that have the same parts; or NULL */
  GTorchProcessGroup
      *nearby;          /* among which whole parameters are kept after the forward pass; or NULL */
  GTorchDevice *device; /* where the module computes */
  GPtrArray *shards;    /* of GTorchShard */
  GPtrArray *places;    /* of GTorchShardPlace */
  gint64 numel;         /* of the buffer of a rank */
  gboolean reshard_after_forward, reshard_after_backward;
  gboolean requires_gradient_sync, requires_all_reduce, cast_forward_inputs;
  gboolean is_offloaded;
  gdouble gradient_divide_factor;                      /* 0: the number of ranks */
  GTorchDType param_dtype, reduce_dtype, output_dtype; /* NONE: that of the parameters */
  GTorchFunction *function;
  guint depth;            /* of calls of the module */
  gboolean is_open;       /* by unshard () */
  GPtrArray *fulls;       /* GTorchTensor with autograd, in the places of the parameters; or NULL */
  GPtrArray *whole;       /* GTorchTensor without, as gathered last; or NULL */
  GTorchWork *work;       /* that gathers them; or NULL */
  GTorchTensor *all;      /* what they are taken from; afterwards with nearby only */
  GTorchTensor *piece;    /* this rank's part of that among the nearby ranks; or NULL */
  gboolean is_ahead;      /* they were gathered for a call that has not come */
  gboolean is_kept;       /* until the end of a backward pass */
  GTorchTensor **unsent;  /* sums of whole gradients that were not sent; or NULL */
  GTorchTensor *unshared; /* sum of parts of gradients that the replicas have not got; or NULL */
  GTorchSavedTensorsGuard *guard;
  guint serial; /* of the last forward pass that saves parameters */
  gint n_saved; /* how often it did, as far as that is still there; atomic */
  GPtrArray
      *ahead[2]; /* GWeakRef: what is gathered ahead, forward and backward; NULL for what is next */
  gpointer next_in;      /* the outermost module of the pass in which `next` came; only compared */
  GWeakRef next, before; /* who was called after this one, and before it */
};

/* --- gtorch-module-shards.c --- */

/* Of the data of a parameter: the GTorchModuleShards that has divided it. */
GQuark gtorch_shards_quark (void);
/* Makes the parameters whole for the second call of a checkpoint, of which the first was within a call of the
 * module, and ends that. */
gboolean gtorch_shards_begin_again (GTorchModuleShards *self, GError **error);
void gtorch_shards_end_again (GTorchModuleShards *self);

/* --- gtorch-shard-again.c --- */

/* Notes that this thread calls the module, and that the call has ended. */
void gtorch_shards_push (GTorchModuleShards *self);
void gtorch_shards_pop (GTorchModuleShards *self);
/* Whether the whole parameters stay at the end of a call, since a backward pass is going on that needs them
 * for what it computes again. It drops them when it has their gradients, and at its end. */
gboolean gtorch_shards_keep (GTorchModuleShards *self);

/* --- gtorch-shard-state.c --- */

/* How a parameter, or a tensor that was adopted or shares its elements, is divided; NULL if it is not by
 * self. */
GTorchShard *gtorch_shards_find (GTorchModuleShards *self, GTorchTensor *param);
/* Whether a tensor has the elements of a parameter, as a detached one has. */
gboolean gtorch_shards_is_same (GTorchTensor *tensor, GTorchTensor *param);
/* Lists the object among those whose parameters are looked through, and takes it out. */
void gtorch_shards_list (GTorchModuleShards *self);
void gtorch_shards_unlist (GTorchModuleShards *self);
/* Returns the parameter, one of those that are divided, of which a tensor is the gradient; or NULL. */
GTorchTensor *gtorch_shards_of_grad (GTorchTensor *grad);

/* --- gtorch-shard-exchange.c --- */

/* Begins to gather the whole parameters, unless that has been done. */
gboolean gtorch_shards_start (GTorchModuleShards *self, GError **error);
/* Whether the parts are still what was gathered; for calls within a call, which gather nothing. */
gboolean gtorch_shards_check_current (GTorchModuleShards *self, GError **error);
/* Forgets them, and what was begun. */
void gtorch_shards_drop (GTorchModuleShards *self);
/* Keeps a piece of them only, by which the backward pass gathers them from the nearby ranks. */
gboolean gtorch_shards_keep_piece (GTorchModuleShards *self, GError **error);
/* The same with autograd: the backward pass gives each rank its rows of the mean of the gradients. */
GTorchFunction *gtorch_shards_function_new (GTorchModuleShards *self);
/* Saves parameters by their names, so to speak: the backward pass gathers them again. */
GTorchSavedTensorsGuard *gtorch_shards_guard_new (GTorchModuleShards *self, GError **error);

/* --- gtorch-shard-order.c --- */

/* A call of the module begins, and ends: what comes next is gathered. */
gboolean gtorch_shards_enter (GTorchModuleShards *self, GError **error);
void gtorch_shards_leave (GTorchModuleShards *self);
/* The backward pass needs the parameters: those that it needs next are gathered. */
gboolean gtorch_shards_look_back (GTorchModuleShards *self, GError **error);
void gtorch_shards_order_clear (GTorchModuleShards *self);

/* --- gtorch-shard-spread.c --- */

/* Where a part is in a whole tensor. Its shape is that of the tensor. */
typedef struct
{
  guint n_dims;
  gint64 shape[GTORCH_MAX_DIMS]; /* of the whole */
  gint64 first[GTORCH_MAX_DIMS]; /* of the part */
} GTorchPart;

/* FALSE for a tensor that is whole. */
gboolean gtorch_part_find (GTorchTensor *tensor, GTorchPart *part);
/* Whether another rank of the group has another part of the tensor: what treats the tensors of the ranks of
 * that group as parts, or as the same, would mix them up. */
gboolean gtorch_part_is_within (GTorchTensor *tensor, GTorchProcessGroup *group);
/* Fails if a parameter is one of which another rank of the group has another part. */
gboolean gtorch_part_check_group (const gchar *who, GTorchTensor *param, GTorchProcessGroup *group,
                                  GError **error);

/* --- gtorch-parallelize.c --- */

/* How a parameter of a layer was divided, or a tensor that was adopted or shares its elements. */
typedef struct
{
  GTorchProcessGroup *group;
  gint dim;
  guint n_dims;
  gint64 first, n; /* of this rank, along that dimension */
  gint64 shape[GTORCH_MAX_DIMS];
} GTorchDivision;

/* NULL for a tensor that is not divided so. */
const GTorchDivision *gtorch_division_find (GTorchTensor *tensor);
/* As gtorch_shards_of_grad (). */
GTorchTensor *gtorch_division_of_grad (GTorchTensor *grad);
/* Says that a tensor is divided as a parameter is, of whose shape it is. */
void gtorch_division_share (GTorchTensor *tensor, GTorchTensor *param);

G_END_DECLS
