/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/profiler/gtorch-profiler-private.h>

G_BEGIN_DECLS

/* A row of a viewer of traces: a process, and a thread of it. */
typedef struct
{
  guint64 pid, tid;
} GTorchTrack;

/* A track beside another one, for what overlaps there. */
typedef struct
{
  GTorchTrack track, of;
  guint number; /* from 2: the other one is the first */
} GTorchSpareTrack;

/* Given the tracks of n records, moves records to further ones until each track has only records that are
 * within one another or apart. Moments stay where they are. Returns a list of GTorchSpareTrack; (transfer
 * full). */
GArray *gtorch_profile_tracks_spread (GTorchTrack *tracks, const GTorchRecord *records, guint n);

G_END_DECLS
