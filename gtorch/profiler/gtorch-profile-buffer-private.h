/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/profiler/gtorch-profiler-private.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* What a thread has written, as the file that makes traces reads it. */

enum
{
  GTORCH_RAW_LINK =
      GTORCH_N_RECORD_KINDS, /* the operation `id` was recorded with the number `sequence` */
  GTORCH_RAW_OPEN,   /* a range of the kind `flags` has begun; its record comes at its end */
  GTORCH_RAW_CLOSED, /* another thread than its own has ended the range `id`, at `end` */
  GTORCH_RAW_GIVEN,  /* what the record `id`, which comes at its end, was given at its beginning */
};

typedef struct
{
  guint8 dtype, n_dims, is_number, is_given;
  guint32 reserved;
} GTorchRawInput; /* shape and strides follow */

/* In this order follow the inputs, the frames of a site, and a text: the place, or a name, behind whose end
 * there may be the arguments of a range. */
typedef struct
{
  guint32 size; /* of all of it, in bytes, a multiple of 8 */
  guint8 kind, flags;
  guint16 n_frames;
  guint32 text;        /* bytes of the text with its end, 0: none */
  guint32 inputs_size; /* bytes of the inputs */
  guint32 n_inputs;
  const gchar *name; /* static; NULL: the text */
  gint64 start, end;
  guint64 id, parent; /* parent: the id */
  guint64 sequence;
  GTorchDevice *device;
  guint64 a,
      b; /* OP: flops; RUN: id of the OP; MODULE: serial; ALLOC, FREE: address and bytes; SPAN: events */
} GTorchRaw;

#define GTORCH_RAW_NATIVE (1 << 0) /* FREE: of memory that the backend has allocated */

typedef void (*GTorchRawFunc) (const GTorchRaw *raw, guint thread, gpointer data);

/* Calls the function for everything that was written since the last time, by thread, and forgets it. func
 * NULL: forgets it. */
void gtorch_profile_buffers_take (GTorchRawFunc func, gpointer data);
/* The threads by the numbers that the function was given; (transfer full). */
GArray *gtorch_profile_buffers_list_threads (void);
/* How many bytes of records were not taken yet. */
gsize gtorch_profile_buffers_count_bytes (void);
void gtorch_profile_buffers_set_flags (guint flags, gboolean uses_tracer, gboolean uses_events);
/* The devices, by slots, that operations ran on since the flags were set. */
guint32 gtorch_profile_buffers_get_devices (void);

/* --- parts of records (gtorch-profile-raw.c) --- */
gsize gtorch_raw_inputs_size (GTorchImpl *const *inputs, gsize n);
void gtorch_raw_write_inputs (char *to, GTorchImpl *const *inputs, gsize n);
/* The innermost frames of the program, in the words of its language or as addresses. */
gchar *gtorch_raw_take_stack (GTorchSite *site, guint *n_frames);

/* --- sinks (gtorch-profile-sink.c) --- */
extern gint gtorch_n_range_sinks;

static inline gboolean
gtorch_profile_sinks_want_ranges (void)
{
  return g_atomic_int_get (&gtorch_n_range_sinks) > 0;
}

void gtorch_profile_sinks_tell_begin (guint64 id, const gchar *name);
void gtorch_profile_sinks_tell_end (guint64 id);

/* --- making a trace (gtorch-profile-trace.c) --- */
typedef struct _GTorchTraceBuilder GTorchTraceBuilder;

GTorchTraceBuilder *gtorch_trace_builder_new (void);
void gtorch_trace_builder_add_raw (const GTorchRaw *raw, guint thread, gpointer builder);
void gtorch_trace_builder_add_activity (const GTorchGpuActivity *activity, gpointer builder);
/* Takes the builder and the threads. */
GTorchTrace *gtorch_trace_builder_end (GTorchTraceBuilder *builder, GArray *threads, gint64 start,
                                       gint64 end, GTorchProfilerGpuSource source, guint64 n_lost);

G_END_DECLS
