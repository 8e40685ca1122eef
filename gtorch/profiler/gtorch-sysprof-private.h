/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/profiler/gtorch-profiler-private.h>
#include <sysprof-capture.h>

G_BEGIN_DECLS

/* Captures for Sysprof. Used by one thread at a time. */
typedef struct
{
  SysprofCaptureWriter *writer;
  GHashTable *counters; /* of memory, by device */
} GTorchCapturer;

void gtorch_capturer_init (GTorchCapturer *self, SysprofCaptureWriter *writer);
void gtorch_capturer_clear (GTorchCapturer *self);
/* start and end: nanoseconds of CLOCK_MONOTONIC. A group has at most 23 bytes, a longer name is in the
 * message. */
void gtorch_capturer_mark (GTorchCapturer *self, gint64 start, gint64 end, const gchar *group,
                           const gchar *name, const gchar *message);
/* reserved: -1 if it is unknown. */
void gtorch_capturer_count (GTorchCapturer *self, gint64 time, GTorchDevice *device,
                            gint64 allocated, gint64 reserved);
/* Adds a record; those of memory become counters. */
void gtorch_capturer_add (GTorchCapturer *self, const GTorchTrace *trace,
                          const GTorchRecord *record);

G_END_DECLS
