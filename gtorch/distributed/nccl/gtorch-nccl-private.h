/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-roll-private.h"
#include "distributed/nccl/gtorch-nccl-abi-private.h"

G_BEGIN_DECLS

/* --- the library (gtorch-nccl-library.c) --- */

/* NCCL's functions, by their own names: gtorch_nccl.ncclAllReduce (…). Filled by gtorch_nccl_load (). */
typedef struct
{
#define F(name, type, arguments) type (*name) arguments;
#include "distributed/nccl/gtorch-nccl-functions.inc"
#undef F
} GTorchNccl;

extern GTorchNccl gtorch_nccl;

/* Opens the library, once; FALSE with an error if it is not installed, or too old. */
gboolean gtorch_nccl_load (GError **error);
/* Returns FALSE with an error "what: NCCL's message" for results other than success. */
gboolean gtorch_nccl_check (ncclResult_t result, const gchar *what, GError **error);

/* --- engines --- */

typedef struct _NcclEngine NcclEngine;
typedef struct _NcclLocal NcclLocal;

/* What carries data among some ranks on one GPU, in order. */
typedef struct
{
  ncclComm_t base; /* made without blocking, so that a time limit holds */
  ncclComm_t comm; /* split from it, where calls block and start no thread; NULL after an abort */
  gint rank, n;    /* this rank among those of the communicator, and their number */
  GTorchDevice *device;
  GTorchStream *stream;
  GTorchImpl *token; /* what a barrier reduces; made when it is needed */
  NcclLocal *local;  /* with other threads of this process that are ranks of it */
  GQueue pending;    /* NcclOp: what is under way, in order */
  guint n_calls;     /* threads that are inside of NCCL */
} NcclComm;

/* An operation under way. */
typedef struct
{
  gint ref_count;
  NcclEngine *engine;
  NcclComm *comm;
  GTorchCollective *collective; /* until it is enqueued */
  GTorchWorkState *work;        /* until it is completed */
  const gchar *name;
  guint64 sequence;
  gint64 started; /* monotonic, microseconds */
  gdouble timeout;
  gboolean is_captured, is_barrier, is_message, is_sent;
  gint peer;          /* of a message: the other rank, in the communicator */
  gboolean is_posted; /* a message that has not been launched, since the other rank has not come */
  gboolean is_copied; /* its tensor may be overwritten before it is launched */
  GTorchFence *fence; /* NULL until it is enqueued */
} NcclOp;

struct _NcclEngine
{
  GTorchEngine parent;
  gint ref_count;
  gint rank, size, world_rank;
  GTorchStore *store;
  gchar *prefix;    /* of the keys in the store */
  gdouble timeout;  /* for making communicators */
  GMutex make_lock; /* held while communicators are made, one at a time */
  GMutex lock;      /* protects what follows */
  GCond changed;
  GHashTable *comms;    /* by name */
  GPtrArray *all;       /* the same, as they were made; none is removed */
  GTorchDevice *device; /* the one that the group is bound to, or that it used first */
  guint n_main;         /* communicators of all ranks so far */
  GError *failure;
  gboolean has_failed; /* atomic: whether there is a failure */
  GThread *watch;
  GCancellable *listening;
  gboolean is_listening; /* the thread that waits for another rank to fail runs */
  gboolean is_closed;    /* the group has been dropped */
  gboolean is_left;      /* the watching thread closes the communicators */
  gboolean is_resting;   /* the watching thread waits for an operation */
  gint64 looked;         /* when that thread looked at the operations last */
  gboolean is_reporting; /* this rank is telling the others of its failure */
  GPtrArray *batch;      /* NcclOp, between the beginning and the end of a batch */
  GTorchRoll *roll;
  gpointer of; /* the group that the reference is to; not used but compared */
  GWeakRef group;
};

extern const GTorchEngineClass gtorch_nccl_engine;

NcclEngine *gtorch_nccl_engine_ref (NcclEngine *self);
void gtorch_nccl_engine_unref (NcclEngine *self);
/* Closes all communicators. */
void gtorch_nccl_engine_close (NcclEngine *self);

/* --- communicators (gtorch-nccl-comm.c) --- */

/* Makes a communicator of n ranks, all of which call this with the same name; this one is `rank`. */
NcclComm *gtorch_nccl_comm_new (NcclEngine *engine, const gchar *name, gint rank, gint n,
                                GTorchDevice *device, gdouble timeout, GCancellable *cancellable,
                                GError **error);
/* Ends what is under way, in any thread. */
void gtorch_nccl_comm_abort (NcclEngine *engine, NcclComm *comm);
gboolean gtorch_nccl_is_aborting (void);
/* Destroys what NCCL has of it. No operation is under way, and none begins. */
void gtorch_nccl_comm_close (NcclEngine *engine, NcclComm *comm);
void gtorch_nccl_comm_free (gpointer comm);
/* Polls until the last call on the communicator is over. */
gboolean gtorch_nccl_comm_settle (ncclComm_t comm, const gchar *what, gdouble timeout,
                                  GCancellable *cancellable, GError **error);

/* --- the end of communicators (gtorch-nccl-end.c) --- */

/* When there is a communicator: a process that ends waits for threads of groups that were dropped. */
void gtorch_nccl_end_prepare (void);
/* So many threads more or less are to be waited for. */
void gtorch_nccl_end_add (gint n);
/* The threads of this process, as a set of numbers; empty if they are not to be had. What ends a communicator
 * without blocking tells nobody when it is over: it is when the threads that were not there before have
 * ended, which wait () waits for, for half a second at most. */
GHashTable *gtorch_nccl_end_list (void);
void gtorch_nccl_end_wait (GHashTable *before);

/* --- ranks that are threads of this process (gtorch-nccl-local.c) --- */

/* Before the ranks are connected. */
NcclLocal *gtorch_nccl_local_join (const ncclUniqueId *id, NcclComm *comm);
void gtorch_nccl_local_leave (NcclComm *comm);
/* Waits for the other threads to come to the same collective. FALSE if the group has failed, or the deadline
 * is over; then the text names the ranks that have not come, unless it is NULL. After TRUE, launched () must
 * be called; it waits for the others to have launched it. */
gboolean gtorch_nccl_local_meet (NcclComm *comm, NcclEngine *engine, gint64 deadline,
                                 gchar **missing);
void gtorch_nccl_local_launched (NcclComm *comm, NcclEngine *engine);
/* Wakes who waits, after a failure or a launch. */
void gtorch_nccl_local_wake (void);
/* An order of communicators that is the same for all ranks. */
gint gtorch_nccl_local_compare (const NcclComm *comm, const NcclComm *other);
/* Whether a rank is another thread of this process; -1: whether any is. */
gboolean gtorch_nccl_local_has (NcclComm *comm, gint rank);

/* --- messages between such ranks (gtorch-nccl-message.c) --- */

/* Launches messages of one communicator to and from such ranks, each with its other half, or leaves them to
 * the rank that comes later. */
gboolean gtorch_nccl_messages_post (NcclComm *comm, NcclOp *const *ops, guint n,
                                    GTorchStream *current, GError **error);
/* Waits until a message is launched, or may be taken for that. FALSE with an error if the group has
 * failed. */
gboolean gtorch_nccl_messages_wait (NcclOp *op, gint64 deadline, GCancellable *cancellable,
                                    GError **error);
/* Drops those that the communicator has not launched, after a failure. */
void gtorch_nccl_messages_drop (NcclComm *comm);

/* --- launching (gtorch-nccl-engine.c) --- */

/* Puts further work of the communicator's stream behind the stream's. */
gboolean gtorch_nccl_come_after (NcclComm *comm, GTorchStream *stream, GError **error);
/* Notes that the operation uses its tensors. */
void gtorch_nccl_use (NcclOp *op, gboolean is_written);

/* --- collectives (gtorch-nccl-collective.c) --- */

/* Whether NCCL can carry it out. */
gboolean gtorch_nccl_can_run (const GTorchCollective *collective, GError **error);
/* Whether it reads what is in the outputs before it begins. */
gboolean gtorch_nccl_reads_outputs (const GTorchCollective *collective);
/* Enqueues them as one on the streams of their communicators. */
gboolean gtorch_nccl_issue (NcclOp *const *ops, guint n, GError **error);

/* --- looking after operations (gtorch-nccl-watch.c) --- */

/* Begins to watch, unless that has been done. The lock must be held. */
void gtorch_nccl_watch (NcclEngine *self);
/* Completes the operation if the GPU is done with it. The lock must be held; it is released while the
 * driver is asked. While a communicator is aborted nothing is asked: the driver might answer only when all
 * kernels have ended. */
gboolean gtorch_nccl_op_poll (NcclOp *op);
/* Takes what is done from the queue; returns the first operation that is not, or NULL. As above. */
NcclOp *gtorch_nccl_comm_poll (NcclComm *comm);
/* Gives the operation up: it is late (ncclSuccess), or has the error. Asks the other ranks, and waits for
 * them. */
void gtorch_nccl_give_up (NcclEngine *self, NcclOp *op, ncclResult_t state);
/* Ends all operations with the error, tells the other ranks and the group, and aborts the communicators. */
void gtorch_nccl_engine_fail (NcclEngine *self, const GError *error, const gint *lost,
                              guint n_lost);

/* --- looking at the clock (gtorch-nccl-clock.c) --- */

/* The watching thread begins to look after operations, or has none left. */
void gtorch_nccl_clock_add (NcclEngine *self);
void gtorch_nccl_clock_remove (NcclEngine *self);

NcclOp *gtorch_nccl_op_ref (NcclOp *op);
void gtorch_nccl_op_unref (gpointer op);

G_END_DECLS
