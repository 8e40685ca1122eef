/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/profiler/gtorch-profile-file-private.h>
#include <gtorch/profiler/gtorch-profiler-private.h>

G_BEGIN_DECLS

/* What memory is used for, with the numbers that PyTorch's timelines have. */
enum
{
  GTORCH_CATEGORY_PARAMETER,
  GTORCH_CATEGORY_OPTIMIZER_STATE,
  GTORCH_CATEGORY_INPUT,
  GTORCH_CATEGORY_TEMPORARY,
  GTORCH_CATEGORY_ACTIVATION,
  GTORCH_CATEGORY_GRADIENT,
  GTORCH_CATEGORY_AUTOGRAD_DETAIL,
  GTORCH_CATEGORY_NONE,
  GTORCH_N_CATEGORIES,
};

/* The memory of a device. */
typedef struct
{
  GTorchTrace *trace;
  GArray *order; /* indices of the events, by time */
  GTorchDevice *device;
  gboolean is_raw;
} GTorchProfileTimeline;

/* Goes through the events. */
typedef struct
{
  const GTorchProfileTimeline *timeline;
  const GTorchRecord *records;
  GHashTable *categories;             /* address -> category + 1 */
  gint64 totals[GTORCH_N_CATEGORIES]; /* after the last event */
  guint next;
} GTorchTimelineWalk;

void gtorch_timeline_walk_begin (GTorchTimelineWalk *self, const GTorchProfileTimeline *timeline);
/* The next event and its category; NULL: there is none. */
const GTorchRecord *gtorch_timeline_walk_next (GTorchTimelineWalk *self, guint *category);
void gtorch_timeline_walk_end (GTorchTimelineWalk *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchTimelineWalk, gtorch_timeline_walk_end)

/* A GTorchProfileFileFunc: the timeline as a page. */
gboolean gtorch_profile_write_memory_page (GTorchProfileFile *file, gpointer timeline,
                                           GError **error);

G_END_DECLS
