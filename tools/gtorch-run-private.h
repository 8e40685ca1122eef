/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The parts of gtorch-run, from the one that others use to those that use it. */

#pragma once

#include <gio/gio.h>
#include <gtorch/gtorch.h>
#include <signal.h>

G_BEGIN_DECLS

/* Prints a line that begins with the program's name. */
void gtorch_run_say (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

/* --- options: gtorch-run-options.c, gtorch-run-values.c --- */

#define GTORCH_RUN_OUT 1 /* of redirects and tees, as torchrun counts */
#define GTORCH_RUN_ERR 2

typedef struct
{
  guint all;         /* bits of GTORCH_RUN_OUT, GTORCH_RUN_ERR */
  GHashTable *ranks; /* NULL, or local rank -> bits */
} GTorchRunStreams;

typedef struct
{
  guint min_nodes, max_nodes, n_workers;
  gint node_rank; /* -1: it does not matter */
  gboolean is_static;
  gchar *host;  /* of the store */
  guint port;   /* 0: a free one */
  gint is_host; /* -1: whoever can */
  gchar *run_id;
  gdouble join_timeout, last_call_timeout, close_timeout; /* seconds */
  gdouble keep_alive_interval;
  guint keep_alive_max_attempt;
  guint max_restarts;
  gdouble monitor_interval, shutdown_timeout;
  gchar *role, *log_dir, *prefix;
  GTorchRunStreams redirects, tees;
  GHashTable *shown; /* NULL, or the local ranks whose output is */
  gchar *local_addr, *master_addr;
  guint master_port; /* 0: a free one */
  gboolean hides_gpus;
  gint *signals; /* ends with 0 */
  gchar **command;
  gchar *name; /* of what runs, for reports */
} GTorchRunOptions;

/* NULL with an error, or, after what was asked for has been printed, without one. */
GTorchRunOptions *gtorch_run_options_parse (gchar **argv, GError **error);
void gtorch_run_options_free (GTorchRunOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchRunOptions, gtorch_run_options_free)

gboolean gtorch_run_refuse (GError **error, const gchar *format, ...) G_GNUC_PRINTF (2, 3);
gboolean gtorch_run_parse_nodes (const gchar *text, guint *min, guint *max, GError **error);
/* N, auto, cpu or gpu. */
gboolean gtorch_run_parse_workers (const gchar *text, const gchar *device, guint *n,
                                   GError **error);
gboolean gtorch_run_parse_streams (const gchar *option, const gchar *text,
                                   GTorchRunStreams *streams, GError **error);
guint gtorch_run_streams_of (const GTorchRunStreams *streams, guint local_rank);
gboolean gtorch_run_parse_ranks (const gchar *text, GHashTable **ranks, GError **error);
gboolean gtorch_run_parse_endpoint (const gchar *option, const gchar *text, gchar **host,
                                    guint *port, GError **error);
gboolean gtorch_run_parse_signals (const gchar *text, gint **signals, GError **error);
gboolean gtorch_run_parse_conf (GTorchRunOptions *options, const gchar *text, GError **error);
const gchar *gtorch_run_signal_name (gint number);

/* --- the state that all nodes share: gtorch-run-state.c --- */

typedef struct
{
  gchar *id, *address;
  guint n_workers, port, order; /* port: free at its host */
} GTorchRunNode;

typedef struct
{
  guint round, restarts;
  gboolean is_complete, is_closed;
  guint expected;            /* how many nodes are known to come */
  GPtrArray *nodes;          /* GTorchRunNode; once complete in the order of ranks */
  GPtrArray *waiting, *done; /* gchar *: nodes that came later; those whose workers have ended */
  gchar *reason;             /* of this round, or of the end */
  gint status;               /* of gtorch-run at the end */
} GTorchRunState;

GTorchRunState *gtorch_run_state_new (guint expected);
void gtorch_run_state_free (GTorchRunState *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchRunState, gtorch_run_state_free)
GBytes *gtorch_run_state_to_bytes (const GTorchRunState *state);
GTorchRunState *gtorch_run_state_from_bytes (GBytes *bytes, GError **error);
gint gtorch_run_state_find (const GTorchRunState *state, const gchar *id);
gboolean gtorch_run_state_has (GPtrArray *names, const gchar *id);
void gtorch_run_state_add (GTorchRunState *state, const gchar *id, const gchar *address,
                           guint n_workers, guint port, guint order);
void gtorch_run_state_remove (GTorchRunState *state, const gchar *id);
/* All join again. */
void gtorch_run_state_next_round (GTorchRunState *state, guint expected, const gchar *reason);
/* The workers of so many of the first nodes. */
guint gtorch_run_state_count (const GTorchRunState *state, guint n_nodes);
void gtorch_run_state_complete (GTorchRunState *state);
void gtorch_run_state_close (GTorchRunState *state, gint status, const gchar *reason);

/* --- rendezvous: gtorch-run-rendezvous.c --- */

typedef enum
{
  GTORCH_RUN_JOINED,  /* state: of the round */
  GTORCH_RUN_CHANGED, /* the round is over: stop the workers, and join again */
  GTORCH_RUN_ENDED,   /* with the status */
} GTorchRunEventKind;

typedef struct
{
  GTorchRunEventKind kind;
  GTorchRunState *state; /* JOINED, CHANGED */
  guint node;            /* JOINED: the place of this one */
  gint status;
  gchar *text;
} GTorchRunEvent;

typedef struct _GTorchRunRendezvous GTorchRunRendezvous;
typedef void (*GTorchRunEventFunc) (const GTorchRunEvent *event, gpointer user_data);

/* Calls back in the default main context. */
GTorchRunRendezvous *gtorch_run_rendezvous_new (const GTorchRunOptions *options,
                                                GTorchRunEventFunc func, gpointer user_data);
void gtorch_run_rendezvous_free (GTorchRunRendezvous *self);
void gtorch_run_rendezvous_join (GTorchRunRendezvous *self);
/* A worker has failed: ends the round, and the job if there may be no further one. */
void gtorch_run_rendezvous_fail (GTorchRunRendezvous *self, gint status, const gchar *text);
void gtorch_run_rendezvous_done (GTorchRunRendezvous *self);
/* This node goes: others go on without it, if they may. */
void gtorch_run_rendezvous_leave (GTorchRunRendezvous *self, gint status, const gchar *text);
/* Of the store; in an event and after it. */
GTorchStore *gtorch_run_rendezvous_get_store (GTorchRunRendezvous *self);
const gchar *gtorch_run_rendezvous_get_address (GTorchRunRendezvous *self);
const gchar *gtorch_run_rendezvous_get_token (GTorchRunRendezvous *self);

/* --- folders for the time of the job: gtorch-run-folders.c --- */

typedef struct
{
  gchar *plain;
  gchar *memory; /* for what processes share by mapping it */
} GTorchRunFolders;

gboolean gtorch_run_folders_make (GTorchRunFolders *folders, GError **error);
/* By both processes: either may be killed. */
void gtorch_run_folders_remove (GTorchRunFolders *folders);

/* --- variables of a worker: gtorch-run-environment.c --- */

gchar **gtorch_run_environment (const GTorchRunOptions *options, const GTorchRunState *state,
                                guint node, guint local_rank, GTorchRunRendezvous *rendezvous);

/* --- output of workers: gtorch-run-output.c --- */

typedef struct _GTorchRunOutput GTorchRunOutput;

/* Reads fd, which it takes, in a thread, and writes whole lines. console: 1, 2, or -1; file: -1, or one
 * that it takes; done is called in the default main context. */
GTorchRunOutput *gtorch_run_output_new (gint fd, gint console, const gchar *prefix, gint file,
                                        GSourceFunc done, gpointer user_data);
/* Reads what is there, and no more. */
void gtorch_run_output_stop (GTorchRunOutput *self);
/* The last lines. Once it is done. */
gchar *gtorch_run_output_get_tail (GTorchRunOutput *self);
void gtorch_run_output_unref (GTorchRunOutput *self);

/* --- MPI: gtorch-run-mpi.c --- */

typedef struct _GTorchRunMpi GTorchRunMpi;

/* Makes the workers of a round processes of one MPI, if PMIx is there. */
GTorchRunMpi *gtorch_run_mpi_new (const GTorchRunFolders *folders);
void gtorch_run_mpi_free (GTorchRunMpi *self);
/* Waits for PMIx, no longer than some seconds. */
gboolean gtorch_run_mpi_begin (GTorchRunMpi *self, const gchar *run_id, const GTorchRunState *state,
                               guint node, GTorchStore *store, GError **error);
void gtorch_run_mpi_end (GTorchRunMpi *self);
/* Adds to the variables of a worker. */
gchar **gtorch_run_mpi_environment (GTorchRunMpi *self, gchar **environment, guint rank);

/* --- the process that serves PMIx: gtorch-run-pmix.c --- */

#define GTORCH_RUN_PMIX "--pmix" /* the argument that makes gtorch-run this process */

typedef enum
{
  GTORCH_RUN_JOB,      /* to it: JOB_TYPE */
  GTORCH_RUN_READY,    /* from it: aaay, the variables of each worker */
  GTORCH_RUN_ABSENT,   /* from it: there is no PMIx, and why */
  GTORCH_RUN_FAILED,   /* from it: why */
  GTORCH_RUN_GATHER,   /* from it: the data of this node, for which that of all is wanted */
  GTORCH_RUN_GATHERED, /* to it: the data of all nodes */
  GTORCH_RUN_LOST,     /* to it: they will not come */
} GTorchRunMessageKind;

/* The name, the nodes, the number of workers of each, and which node this is. */
#define GTORCH_RUN_JOB_TYPE G_VARIANT_TYPE ("(sasaii)")

gboolean gtorch_run_message_write (gint fd, GTorchRunMessageKind kind, gconstpointer data,
                                   gsize size);
/* NULL at the end, and when it has not come before the deadline (monotonic time, -1: none) or a signal
 * that ends the job. */
GBytes *gtorch_run_message_read (gint fd, gint64 deadline, GTorchRunMessageKind *kind);
gint gtorch_run_pmix (const gchar *folder);

/* --- workers: gtorch-run-worker.c, gtorch-run-sweep.c --- */

typedef struct
{
  guint local_rank, rank;
  GPid pid;
  gint status; /* of waitpid () */
  gint64 end;  /* when it ended, real time; 0 while it runs */
  gboolean is_reaped;
  guint source;
  gchar *error_file, *log_file; /* log_file: of its stderr, or NULL */
  GTorchRunOutput *out, *err;
} GTorchRunWorker;

typedef void (*GTorchRunWorkerFunc) (GTorchRunWorker *worker, gpointer user_data);

typedef struct
{
  const GTorchRunOptions *options;
  const gchar *folder;       /* for files of errors */
  const gchar *log_folder;   /* of this round; NULL if nothing is logged */
  gchar **environment;       /* of this worker */
  GTorchRunWorkerFunc ended; /* called in the main context */
  gpointer user_data;
  GSourceFunc output_ended; /* the same, for each of its two streams */
  gpointer output_data;
} GTorchRunStart;

GTorchRunWorker *gtorch_run_worker_new (guint local_rank, guint rank, const GTorchRunStart *start,
                                        GError **error);
void gtorch_run_worker_free (GTorchRunWorker *self);
/* To it and to all processes of its group. */
void gtorch_run_worker_kill (GTorchRunWorker *self, gint number);
/* What gtorch-run ends with if this is the first one that fails; 0 if it does not. */
gint gtorch_run_worker_get_status (const GTorchRunWorker *self);

/* Ends all processes below this one but those of the workers, and takes their statuses. patience: for how
 * many seconds they may end by themselves. */
void gtorch_run_sweep (GPtrArray *workers, gdouble patience);

/* --- the rest --- */

/* gtorch-run-report.c: what torchrun prints when workers have failed, of which there is one at least. */
void gtorch_run_report (const GTorchRunOptions *options, GPtrArray *failed);
gchar *gtorch_run_worker_describe (const GTorchRunWorker *worker);
/* gtorch-run-agent.c; whether it was told to end, and whether more than once. */
gboolean gtorch_run_is_told (void);
gboolean gtorch_run_is_hurried (void);
/* gtorch-run-guard.c: ends this process and all below it if it still is there some time after the one that
 * the user has started is gone (parent: as below), or after hurry, an eventfd, is written. */
void gtorch_run_guard (const GTorchRunOptions *options, const GTorchRunFolders *folders,
                       gint parent, gint hurry);
/* gtorch-run-agent.c: runs the job, and returns the status. mask: the signals that are blocked from
 * when they are handled; parent: a pipe that ends with the process that was started by the user. */
gint gtorch_run_agent (const GTorchRunOptions *options, const GTorchRunFolders *folders,
                       const sigset_t *mask, gint parent);

G_END_DECLS
