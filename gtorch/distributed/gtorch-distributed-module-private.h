/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the files of GTorchDistributedModule share: its buckets (gtorch-ddp-buckets.c), what the ranks must
 * have alike (gtorch-ddp-state.c) and uneven inputs (gtorch-ddp-join.c). */

#pragma once

#include "distributed/gtorch-distributed-module.h"
#include "distributed/gtorch-grad-bucket.h"
#include "distributed/gtorch-module-shards.h"

G_BEGIN_DECLS

typedef struct _GTorchDDPBucket GTorchDDPBucket;

typedef struct
{
  GTorchDistributedModule *owner; /* not owned */
  GTorchTensor *parameter;
  guint number; /* its place in the first order, by which ranks name it */
  guint64 hook;
  GTorchDDPBucket *bucket;
  GTorchTensor *slice; /* of the bucket, in the parameter's shape */
  gboolean is_ready;
  gboolean is_unused;  /* by the output of this rank */
  gboolean is_skipped; /* the same, of all passes of a graph that stays as it is */
} GTorchDDPEntry;

struct _GTorchDDPBucket
{
  GTorchTensor *flat;
  GTorchWork *work;       /* of this backward pass, or NULL */
  GTorchGradBucket *face; /* for the program's function */
  GTorchTensor *result;   /* of the program's function, unless that is flat; or NULL */
  guint n_entries;
  guint n_pending;
};

typedef enum
{
  GTORCH_DDP_ORDER_FIRST,   /* the reverse of that of the parameters */
  GTORCH_DDP_ORDER_KNOWN,   /* a pass has told another one */
  GTORCH_DDP_ORDER_REBUILT, /* the buckets have it */
} GTorchDDPOrder;

struct _GTorchDistributedModule
{
  GTorchModule parent_instance;
  GTorchModule *module;
  GTorchProcessGroup *group;
  gdouble bucket_cap_mb;
  gboolean broadcast_buffers, find_unused_parameters, is_static, require_sync;
  GPtrArray *entries; /* of GTorchDDPEntry, in the order of the buckets */
  GPtrArray *buckets;
  guint n_ready;     /* entries of this backward pass */
  guint next_bucket; /* the first that has not been sent */
  gboolean is_armed; /* a forward pass expects gradients to be sent */
  gchar *failure;    /* of an exchange, after which the ranks may be at different ones */
  gboolean was_called;
  gboolean is_compared;   /* what may be set after it was made, with the other ranks */
  gboolean knows_skipped; /* which parameters a graph that stays the same does not use */
  gboolean *used;         /* by any rank, by number: of a graph that stays the same; or NULL */
  GTorchDDPOrder order;
  gint64 *arrived; /* the numbers of the entries, as gradients have come */
  guint n_arrived;

  GTorchCommHook hook; /* or NULL */
  gpointer hook_data;
  GDestroyNotify hook_destroy;

  gboolean is_joining;
  gboolean divides_by_all; /* also by the ranks that have ended */
  gboolean throws;
  guint n_active; /* ranks that go on, of the present pass */
  gint source;    /* the rank whose buffers are taken */
};

/* Called by all ranks that go on, before gradients are exchanged: do they exchange them alike? */
gboolean gtorch_ddp_compare (GTorchDistributedModule *self, GError **error);

/* --- buckets --- */

GTorchTensor *gtorch_ddp_make_slice (GTorchTensor *flat, gint64 start, GTorchTensor *parameter,
                                     GError **error);
void gtorch_ddp_bucket_free (gpointer bucket);
gboolean gtorch_ddp_make_buckets (GTorchDistributedModule *self, GError **error);
/* A forward pass begins. */
void gtorch_ddp_reset (GTorchDistributedModule *self);
/* A gradient is there, or will not come. */
gboolean gtorch_ddp_mark_ready (GTorchDistributedModule *self, GTorchDDPEntry *entry,
                                GError **error);
/* Does what a backward pass does with gradients of zero. */
gboolean gtorch_ddp_send_zeros (GTorchDistributedModule *self, GError **error);
/* Gives the buckets the order in which gradients have come at the rank. */
gboolean gtorch_ddp_rebuild (GTorchDistributedModule *self, gint source, GError **error);

/* --- state --- */

/* Gives all ranks the buffers of one of them, and its parameters if `parameters`. */
/* Names the group to the layers that share statistics, unless another one was named. With parts, which may
 * be NULL, their replicas are looked for when a layer is called. */
void gtorch_sync_set_default (GTorchModule *module, GTorchProcessGroup *group,
                              GTorchModuleShards *shards);
/* Does a layer share its statistics with other processes? */
gboolean gtorch_sync_has_group (GTorchModule *module);

/* Adds references to the buffers of the module, and to its parameters before them if `parameters`. */
void gtorch_ddp_add_tensors (GTorchDistributedModule *self, GPtrArray *tensors,
                             gboolean parameters);
gboolean gtorch_ddp_broadcast (GTorchDistributedModule *self, gboolean parameters, gint source,
                               GError **error);

/* Gives all ranks of a group the elements that tensors have in one of them. */
gboolean gtorch_group_send_tensors (GTorchProcessGroup *group, GPtrArray *tensors, gint source,
                                    GError **error);

/* --- uneven inputs --- */

/* Tells the others that this rank goes on, and finds out which do; does nothing outside of a join. */
gboolean gtorch_ddp_join_forward (GTorchDistributedModule *self, gboolean is_synced,
                                  GError **error);

/* --- for the program's function --- */

GTorchGradBucket *gtorch_grad_bucket_new (guint index, GTorchProcessGroup *group,
                                          GTorchTensor *buffer);
void gtorch_grad_bucket_add (GTorchGradBucket *self, GTorchTensor *parameter);
void gtorch_grad_bucket_prepare (GTorchGradBucket *self, GTorchTensor *buffer, gboolean is_last);

G_END_DECLS
