/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/train/gtorch-metric.h>

G_BEGIN_DECLS

/* For init (): a state of one zero, int64 or float64. */
void gtorch_metric_add_zero (GTorchMetric *self, const gchar *name, GTorchDType dtype);
/* The state on the device, borrowed. One of another shape, as that of add_zero () after a reset, is replaced
 * by zeros. */
GTorchImpl *gtorch_metric_state_on (GTorchMetric *self, const gchar *name, const gint64 *shape,
                                    guint n_dims, GTorchDevice *device, GError **error);
/* Adds one number to a state of one; NULL, of something that failed, returns FALSE. */
gboolean gtorch_metric_accumulate (GTorchMetric *self, const gchar *name, GTorchDevice *device,
                                   GTorchImpl *value, GError **error);

/* What classification metrics look at: classes as flat int64 on the device of the outputs. */
typedef struct
{
  GTorchImpl *predicted; /* flat, a number below all classes where scores are NaN; NULL for top-k */
  GTorchImpl *target;    /* flat */
  GTorchImpl *hits;      /* flat bools: is the prediction right? */
  GTorchImpl *counted;   /* flat bools; NULL: all */
  GTorchImpl *is_nan;    /* flat bools: is a score NaN? NULL: none can be */
  gint64 n;              /* classes; 0: not known, there are no scores */
} GTorchClasses;

/* The outputs are scores, which have one dimension, the classes, more than the targets, or classes; FALSE
 * with an error that begins with `op`. With n_classes, the number of scores must be that, and ignore_index
 * may be GTORCH_NONE. */
gboolean gtorch_classes_find (GTorchClasses *classes, const gchar *op, GTorchImpl *output,
                              GTorchImpl *target, gint64 n_classes, gint64 top_k,
                              gint64 ignore_index, GError **error);
/* Fails, as far as the device tells at once, if something is counted whose scores are NaN, or whose target is
 * none of the classes: GTORCH_ERROR_INVALID, GTORCH_ERROR_INDEX. */
gboolean gtorch_classes_check (const GTorchClasses *classes, const gchar *op, GError **error);
void gtorch_classes_clear (GTorchClasses *classes);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchClasses, gtorch_classes_clear)
/* Classes as they are, and those that there are not as a number below -n. */
GTorchImpl *gtorch_classes_inside (GTorchImpl *classes, gint64 n, GError **error);
/* Adds 1 to the cells of the flat int64 state at the places for which both flat bools hold (NULL: all); fails
 * for a place outside, as far as the device tells at once. */
gboolean gtorch_classes_count (GTorchImpl *state, GTorchImpl *places, GTorchImpl *counted,
                               GTorchImpl *hits, const gchar *op, gint64 n_classes, GError **error);
/* Fails for a number of classes below 1, or so many that their square is no number. */
gboolean gtorch_metric_check_classes (const gchar *op, gint64 n_classes, GError **error);
/* Fails unless there is a target. */
gboolean gtorch_metric_check_target (const gchar *op, GTorchTensor *target, GError **error);
/* Fails for outputs and targets on two devices. */
gboolean gtorch_metric_check_devices (const gchar *op, const GTorchImpl *output,
                                      const GTorchImpl *target, GError **error);

G_END_DECLS
