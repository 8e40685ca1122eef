/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What moves the data of a group. The functions of GTorchProcessGroup check their arguments and make of
 * each call a GTorchCollective, a struct; an engine carries it out. There is one for each library that
 * does. */

#pragma once

#include "base/gtorch-observer-named-private.h"
#include "device/gtorch-device.h"
#include "distributed/gtorch-process-group.h"
#include "distributed/gtorch-work-private.h"
#include "tensor/gtorch-impl-private.h"

G_BEGIN_DECLS

typedef enum
{
  GTORCH_COLLECTIVE_BROADCAST,  /* outputs: 1 */
  GTORCH_COLLECTIVE_ALL_REDUCE, /* outputs: 1, its value goes in */
  GTORCH_COLLECTIVE_REDUCE,     /* the same */
  GTORCH_COLLECTIVE_ALL_GATHER, /* inputs: 1, outputs: 1 with all parts, or one for each rank */
  GTORCH_COLLECTIVE_GATHER,     /* the same at the root, no outputs elsewhere */
  GTORCH_COLLECTIVE_SCATTER, /* inputs: 1 with all parts, or one for each rank, at the root; outputs: 1 */
  GTORCH_COLLECTIVE_REDUCE_SCATTER, /* inputs as for scatter; outputs: 1 */
  GTORCH_COLLECTIVE_ALL_TO_ALL,     /* inputs and outputs: 1, or one for each rank */
  GTORCH_COLLECTIVE_SEND,           /* inputs: 1 */
  GTORCH_COLLECTIVE_RECEIVE,        /* outputs: 1 */
  GTORCH_COLLECTIVE_BARRIER,
} GTorchCollectiveKind;

typedef struct
{
  GTorchCollectiveKind kind;
  const gchar *name; /* "all_reduce"; static */
  GTorchReduceOp op;
  gint
      root; /* the rank that sends or gets all, or the other one of SEND and RECEIVE; -1 for any of RECEIVE */
  gint tag;
  gboolean is_scaled; /* a sum of numbers that the engine multiplies by the factor before */
  gdouble factor;     /* of this rank */
  guint dtype;
  GPtrArray *inputs, *outputs; /* GTorchImpl, contiguous */
  gint64 *in_counts,
      *out_counts; /* elements for and from each rank; NULL where there is one count */
} GTorchCollective;

GTorchCollective *gtorch_collective_new (GTorchCollectiveKind kind, const gchar *name);
void gtorch_collective_free (gpointer collective);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchCollective, gtorch_collective_free)

/* Begins an operation that reduces numbers which each rank multiplies by a factor, of an engine that does
 * that; `input` is NULL but for REDUCE_SCATTER. */
GTorchWork *gtorch_collective_begin_scaled (GTorchProcessGroup *group, GTorchCollectiveKind kind,
                                            const gchar *name, GTorchTensor *output,
                                            GTorchTensor *input, gint root, gdouble factor,
                                            GError **error);

/* Functions that consist of several operations name themselves: the operations that this thread begins until
 * the end of the block have the name of the outermost such function, which the program has called, in errors.
 * The name is static. */
typedef const gchar *GTorchGroupCall;

GTorchGroupCall gtorch_group_call_begin (const gchar *name);
void gtorch_group_call_end (GTorchGroupCall *former);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchGroupCall, gtorch_group_call_end)
#define GTORCH_GROUP_CALL(name) \
  g_auto (GTorchGroupCall) group_call_ G_GNUC_UNUSED = gtorch_group_call_begin (name)
/* Whether ranks are to find out cheaply that their calls differ: always, unless the program, or the
 * environment, has named the level `off`. */
gboolean gtorch_group_compares_calls (void);

/* What an operation of this name is called in errors. */
const gchar *gtorch_group_call_name (const gchar *name);

typedef struct _GTorchEngine GTorchEngine;

typedef struct
{
  const gchar *name;            /* "mpi" */
  GTorchDeviceType device_type; /* of the tensors */
  /* Whether its library is installed. */
  gboolean (*is_available) (GError **error);
  /* For all ranks of the job. Sets rank and size if the engine knows them (they are -1 otherwise). */
  GTorchEngine *(*new_world) (GTorchStore *store, gint *rank, gint *size, gdouble timeout,
                              GCancellable *cancellable, GError **error);
  /* For some ranks, which are the only ones to call it. The number is that of the part among those of
   * `whole`, and the ranks are of the group of all. */
  GTorchEngine *(*new_part) (GTorchEngine *whole, const gint *ranks, guint n, guint number,
                             gdouble timeout, GCancellable *cancellable, GError **error);
  void (*free) (GTorchEngine *engine);
  /* Enqueues the collective, behind the current stream's work on its tensors, takes it, and lets its
   * outputs wait for it. */
  gboolean (*start) (GTorchEngine *engine, GTorchProcessGroup *group, GTorchCollective *collective,
                     GTorchWork *work, GError **error);
  /* What follows is optional. Connects all ranks, which call it, for tensors on the device. */
  gboolean (*bind) (GTorchEngine *engine, GTorchProcessGroup *group, GTorchDevice *device,
                    GCancellable *cancellable, GError **error);
  /* Ends all that is under way with the error; no further operation begins. */
  void (*abort) (GTorchEngine *engine, const GError *reason);
  /* What is started between the two is enqueued as one by the second; `drop_batch` ends the batch instead,
   * and none of it begins. */
  gboolean (*begin_batch) (GTorchEngine *engine, GError **error);
  gboolean (*end_batch) (GTorchEngine *engine, GError **error);
  void (*drop_batch) (GTorchEngine *engine, const GError *reason);
  gboolean has_any_source; /* whether RECEIVE may take what any rank sends */
  gboolean has_factor;     /* whether it multiplies before it adds up */
  gboolean
      names_transfers; /* whether it tells observers of each transfer, in the thread that moves the data */
} GTorchEngineClass;

struct _GTorchEngine
{
  const GTorchEngineClass *klass;
  gboolean in_batch; /* a batch has begun; set by the engine, if it has `begin_batch` */
};

extern const GTorchEngineClass gtorch_mpi_engine;

/* Adds an engine of a folder below this one, when the library is loaded. */
void gtorch_engine_register (const GTorchEngineClass *klass);

/* What observers are told of, until the end of the block:
 * g_auto (GTorchNamedCollective) named = { { 0 } };
 * It keeps the tensors, since the collective may be over first. */
typedef struct
{
  GTorchNamed named;
  GPtrArray *tensors; /* NULL: nobody observes */
} GTorchNamedCollective;

/* Of the program's call, for one collective or several of a kind. */
void gtorch_collective_named_begin (GTorchNamedCollective *self, const gchar *name,
                                    GTorchCollective *const *collectives, guint n);
/* Of what the engine does for it. */
void gtorch_transfer_named_begin (GTorchNamedCollective *self, const GTorchEngineClass *klass,
                                  const GTorchCollective *collective);
void gtorch_named_collective_end (GTorchNamedCollective *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchNamedCollective, gtorch_named_collective_end)

/* Called by engines, in any thread: no further operation begins, and signals are emitted. Takes the group:
 * the reference is dropped in its context. */
void gtorch_process_group_fail (GTorchProcessGroup *group, const GError *error);

/* Called by engines, in any thread: another rank is gone. */
void gtorch_process_group_lose (GTorchProcessGroup *group, gint rank);

/* Lets the current stream of a GPU wait for the operation; does nothing for work of the CPU, whose readers
 * wait by themselves. */
gboolean gtorch_work_join (GTorchWork *work, GError **error);

/* For checks of what only C can get wrong. */
gboolean gtorch_are_tensors (GTorchTensor **tensors, gsize n);

/* Of the tensors that it exchanges; that of the CPU for a group without a backend. */
GTorchDeviceType gtorch_process_group_get_device_type (GTorchProcessGroup *group);
/* How many groups of more than one process there are. */
guint gtorch_process_group_count_several (void);
/* Also of a group that has failed; NULL if this process has no part in it. */
GTorchEngine *gtorch_process_group_peek_engine (GTorchProcessGroup *group);

/* For gtorch-collectives.c: the engine, or NULL with an error if the group has failed or this process has
 * no part in it. */
GTorchEngine *gtorch_process_group_get_engine (GTorchProcessGroup *group, const gchar *name,
                                               GError **error);
/* Compares the call with those of the other ranks, or logs it, if the level of debugging says so. */
gboolean gtorch_process_group_check_call (GTorchProcessGroup *group,
                                          const GTorchCollective *collective, guint64 sequence,
                                          GError **error);
/* The number of a collective, which is that of the other ranks; messages between two ranks have numbers of
 * their own. */
guint64 gtorch_process_group_next_sequence (GTorchProcessGroup *group, gboolean is_message);

G_END_DECLS
