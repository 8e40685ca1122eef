/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-inner-types-private.h>
#include <gtorch/device/gtorch-device.h>
#include <gtorch/profiler/gtorch-profile-range.h>
#include <gtorch/profiler/gtorch-profiler.h>

G_BEGIN_DECLS

/* What profilers record, and how it is read once a profile is finished.
 *
 * While a profiler runs, each thread writes what happens into a buffer of its own (gtorch-profile-buffer.c).
 * When the profiler stops, the buffers and what the GPU's library of traces has delivered become a
 * GTorchTrace: an array of records that never changes. Everything else, such as averages, the trace for
 * Perfetto and reports of other tools, is made from it. */

/* --- records --- */

typedef enum
{
  /* Of the host, with a thread; they nest within it. */
  GTORCH_RECORD_OP, /* an operation, from the allocation of its result until it is computed or enqueued; a
                       function of the program's; or a collective, until it is enqueued */
  GTORCH_RECORD_RANGE,    /* a GTorchProfileRange */
  GTORCH_RECORD_STEP,     /* a step of the profiler's schedule */
  GTORCH_RECORD_BACKWARD, /* a node of a backward pass, or the addition to the gradient of a leaf */
  GTORCH_RECORD_MODULE,   /* a call of a module */
  GTORCH_RECORD_TRANSFER, /* what a library does for a collective: MPI in a thread of its own, NCCL
                             until it is enqueued */
  GTORCH_RECORD_WAIT, /* a range of the library's beside what its thread does; nothing is inside of it */
  GTORCH_RECORD_RUN,    /* what an OP has enqueued in a stream of the CPU, in the thread of that */
  GTORCH_RECORD_REPLAY, /* the replay of a graph, until it is enqueued */
  /* Moments: end == start. */
  GTORCH_RECORD_ALLOC,
  GTORCH_RECORD_FREE,
  /* A call of the driver, with the thread that makes it, if that is known. */
  GTORCH_RECORD_DRIVER,
  /* Of a device, without a thread. */
  GTORCH_RECORD_KERNEL,
  GTORCH_RECORD_COPY,
  GTORCH_RECORD_FILL,
  GTORCH_RECORD_SPAN, /* an operation on the device, between two timing events, where kernels are unknown */
  GTORCH_N_RECORD_KINDS,
} GTorchRecordKind;

/* A tensor that an operation was given. */
typedef struct
{
  guint8 dtype;  /* GTORCH_DTYPE_NONE: an optional one that was not given */
  guint8 n_dims; /* a number has none */
  gboolean is_number;
  const gint64 *shape, *strides;
} GTorchRecordInput;

/* Members that a kind does not have are 0, NULL or -1. */
typedef struct
{
  guint8 kind;       /* GTorchRecordKind */
  gint32 thread;     /* index among the trace's threads; -1: none */
  const gchar *name; /* in UTF-8; of memory "[memory]" */
  gint64 start, end; /* nanoseconds of CLOCK_MONOTONIC */
  guint64 id;        /* of records of the host; greater than 0, and unique in the process */
  gint32
      parent; /* index of the record of the host in which it happened, or that launched it; or -1 */
  gint32 depth; /* how many records of the host it is inside of */
  gint32
      forward; /* index of the OP; or -1. BACKWARD: whose gradient it computes; RUN: that enqueued it */
  guint64 sequence; /* OP that was recorded for backward passes, BACKWARD: the number of the node */
  guint64 correlation;  /* DRIVER and what it has launched, RUN and its OP: the same number */
  GTorchDevice *device; /* that computes, or whose memory it is; NULL: unknown, as with ranges */
  guint64 stream;       /* KERNEL, COPY, FILL: the number that the driver gives to the stream */
  const gchar
      *place; /* OP, with stacks: the frames of the program, the innermost first, one a line */
  union
  {
    struct
    {
      const GTorchRecordInput *inputs; /* with shapes */
      guint n_inputs;
      guint64 flops; /* 0: unknown */
    } op;            /* also of TRANSFER, and of BACKWARD, whose inputs are gradients */
    struct
    {
      const gchar *args; /* what the program has said of it; NULL: nothing */
    } range;
    struct
    {
      guint64 serial;    /* of the module, in the process */
      guint64 number;    /* of the module among those of its class in the trace, from 0 */
      const gchar *path; /* from the outermost module on; "" for that one itself */
    } module;
    struct
    {
      guint64 address, n_bytes;
      gint64
          total; /* bytes that all storages of the device have after it, as far as they are known */
    } memory;
    struct
    {
      guint grid[3], block[3];
      guint n_registers;
      gsize static_shared, dynamic_shared;
      guint32 graph; /* 0: none */
      guint64 graph_node;
    } kernel;
    struct
    {
      guint64 n_bytes;
      const gchar *direction; /* "HtoD", "DtoH", "DtoD", …; of a fill NULL */
    } copy;
    struct
    {
      gint result; /* 0: success */
    } call;
  };
} GTorchRecord;

typedef struct
{
  guint64 id; /* of the system */
  gchar *name;
} GTorchTraceThread;

/* Has a reference count. */
typedef struct _GTorchTrace GTorchTrace;

GTorchTrace *gtorch_trace_ref (GTorchTrace *trace);
void gtorch_trace_unref (GTorchTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchTrace, gtorch_trace_unref)

/* All records: those of the host by thread and, within one, by start, a parent before its children; then
 * those of devices by start. */
const GTorchRecord *gtorch_trace_get_records (const GTorchTrace *trace, guint *n);
const GTorchTraceThread *gtorch_trace_get_threads (const GTorchTrace *trace, guint *n);
/* When recording began and ended, and what a moment of CLOCK_MONOTONIC is in CLOCK_REALTIME. */
gint64 gtorch_trace_get_start (const GTorchTrace *trace);
gint64 gtorch_trace_get_end (const GTorchTrace *trace);
gint64 gtorch_trace_get_realtime_offset (const GTorchTrace *trace);
/* Whether a device has records. */
gboolean gtorch_trace_has_gpu (const GTorchTrace *trace);
GTorchProfilerGpuSource gtorch_trace_get_gpu_source (const GTorchTrace *trace);
/* How many records of the GPU's library had no room, and how many came without times and are left out. */
guint64 gtorch_trace_get_n_lost (const GTorchTrace *trace);
guint64 gtorch_trace_get_n_untimed (const GTorchTrace *trace);
/* Sorts indices (guint) of records by their start. */
void gtorch_trace_sort_by_start (const GTorchTrace *trace, GArray *indices);

static inline gboolean
gtorch_record_is_of_host (const GTorchRecord *record)
{
  return record->kind <= GTORCH_RECORD_REPLAY;
}

/* Whether it may have inputs. */
static inline gboolean
gtorch_record_is_call (const GTorchRecord *record)
{
  return record->kind == GTORCH_RECORD_OP || record->kind == GTORCH_RECORD_TRANSFER
         || record->kind == GTORCH_RECORD_BACKWARD || record->kind == GTORCH_RECORD_RUN;
}

/* Whether it goes on beside what the program's thread does. */
static inline gboolean
gtorch_record_is_async (const GTorchRecord *record)
{
  return record->kind == GTORCH_RECORD_WAIT || record->kind == GTORCH_RECORD_RUN
         || (record->kind == GTORCH_RECORD_TRANSFER && record->parent < 0);
}

static inline gboolean
gtorch_record_is_of_device (const GTorchRecord *record)
{
  return record->kind >= GTORCH_RECORD_KERNEL;
}

/* The last finished profile, which the profiler owns; NULL before the first one. */
GTorchTrace *gtorch_profiler_get_trace (GTorchProfiler *self);

/* --- sinks --- */

/* Who wants to have each finished trace, and to be told of ranges of the program as they come, with or
 * without a profiler. All functions are optional. */
typedef struct
{
  void (*trace) (GTorchProfiler *profiler,
                 GTorchTrace *trace);                  /* in the thread that stops the profiler */
  void (*range_begin) (guint64 id, const gchar *name); /* in the range's thread */
  void (*range_end) (guint64 id); /* in any thread; and of ids that it does not know */
} GTorchProfileSink;

/* The sink must be static: threads may still be calling it. At most four. */
void gtorch_profile_sink_add (const GTorchProfileSink *sink);
void gtorch_profile_sink_remove (const GTorchProfileSink *sink);
void gtorch_profile_sinks_tell_trace (GTorchProfiler *profiler, GTorchTrace *trace);

/* --- recording (gtorch-profile-buffer.c) --- */

/* What is recorded with an operation, and what else. */
typedef enum
{
  GTORCH_TRACE_HOST = 1 << 0,
  GTORCH_TRACE_SHAPES = 1 << 1,
  GTORCH_TRACE_MEMORY = 1 << 2,
  GTORCH_TRACE_STACK = 1 << 3,
  GTORCH_TRACE_FLOPS = 1 << 4,
  GTORCH_TRACE_GPU = 1 << 5,
  GTORCH_TRACE_MODULES = 1 << 6,
} GTorchTraceFlags;

gboolean gtorch_trace_is_running (void);
gboolean gtorch_trace_wants_modules (void);
/* What is said of a range. The name of a MODULE is that of its class, a new line, and its path. */
typedef struct
{
  const gchar *name;
  const gchar *args; /* NULL: nothing */
} GTorchRangeText;

/* Ranges: returns an id for the end, which may come in another thread, or 0 if nobody wants to know. The
 * serial is that of a MODULE, 0 for all others. */
guint64 gtorch_trace_range_begin (GTorchRecordKind kind, const GTorchRangeText *text,
                                  guint64 serial);
void gtorch_trace_range_end (guint64 id, GTorchRecordKind kind, const GTorchRangeText *text);

/* A WAIT that this thread begins and any thread ends. Returns an id for the end; 0: nothing is recorded. */
guint64 gtorch_trace_wait_begin (const gchar *name);
void gtorch_trace_wait_end (guint64 id);

/* Whether a range would be recorded, or told to a sink. */
gboolean gtorch_trace_wants_ranges (void);

/* A range of the library's own until the end of the block, without a cost if nobody wants to know:
 * g_auto (GTorchProfileScope) scope = gtorch_profile_scope_begin ("Optimizer.step#%s.step", self); the object
 * gives the name of its class. */
typedef struct
{
  guint64 id;
  GTorchRecordKind kind;
  gchar *name;
} GTorchProfileScope;

GTorchProfileScope gtorch_profile_scope_begin (const gchar *format, gpointer object);
/* A call of a module, if gtorch_trace_wants_modules (). */
GTorchProfileScope gtorch_profile_scope_begin_module (const gchar *class_name, const gchar *path,
                                                      guint64 serial);
void gtorch_profile_scope_end (GTorchProfileScope *scope);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchProfileScope, gtorch_profile_scope_end)
/* The same, for languages without such ends of blocks. */
GTorchProfileRange *gtorch_profile_range_new_module (const gchar *class_name, const gchar *path,
                                                     guint64 serial);

/* --- parts of a trace --- */

/* The operations that an operation's call takes (gtorch-profile-flops.c); 0 if there is no formula. */
guint64 gtorch_profile_flops (const GTorchOpCall *call);
/* Calls the function that the program has set, see gtorch_profiler_set_stack_func (); NULL if there is
 * none. */
gchar *gtorch_profile_ask_for_stack (void);
gint64 gtorch_profile_now (void);

/* --- traces of GPUs --- */

/* What a backend's library of traces has seen. */
typedef struct
{
  GTorchRecordKind kind; /* DRIVER, KERNEL, COPY or FILL */
  const gchar *name;     /* borrowed; a driver's or compiler's name of a kernel */
  gint64 start, end;     /* nanoseconds of CLOCK_MONOTONIC; 0: not known */
  guint64 correlation;
  guint64 external; /* the id that was pushed in the thread when the call was made; 0: none */
  guint64 thread;   /* DRIVER: of the system */
  gint result;      /* DRIVER: what the call returned; 0: success */
  gint device;      /* index; -1 for DRIVER */
  guint64 stream;
  guint64 n_bytes;
  const gchar *direction;
  guint grid[3], block[3], n_registers;
  gsize static_shared, dynamic_shared;
  guint32 graph;
  guint64 graph_node;
} GTorchGpuActivity;

typedef void (*GTorchGpuActivityFunc) (const GTorchGpuActivity *activity, gpointer data);

typedef struct
{
  /* Opens the library if need be and begins; FALSE with an error if it is missing or refuses. */
  gboolean (*begin) (GError **error);
  /* Ends, and delivers everything, in any order, if func is not NULL. The work that is traced is done.
   * Returns how many records were lost. */
  guint64 (*end) (GTorchGpuActivityFunc func, gpointer data);
  /* Calls of the driver in this thread from now on are on behalf of the record. They nest. */
  void (*push) (guint64 id);
  void (*pop) (void);
  GTorchDeviceType device_type;
} GTorchGpuTracer;

/* NULL: no backend has one. A backend sets it when the library is loaded. */
extern const GTorchGpuTracer *gtorch_gpu_tracer;

G_END_DECLS
