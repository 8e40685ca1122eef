/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-impl-private.h>
#include <gtorch/optim/gtorch-grad-scaler.h>

G_BEGIN_DECLS

struct _GTorchGradScaler
{
  GObject parent_instance;
  gdouble initial; /* until there is a tensor */
  gdouble growth_factor, backoff_factor;
  gint growth_interval, initial_tracker;
  gboolean enabled, capturable;
  GTorchImpl *scale, *tracker; /* float32, int32; NULL until something is scaled */
  GHashTable *optimizers;      /* of this iteration: GTorchOptimizer -> Progress */
  GHashTable *experienced;     /* those that made a step, and so have all their state; not owned */
  GThread *owner;
  GMainContext *context;
};

/* The arithmetic of GTorchGradScaler. It is made of operations, so that it can be enqueued and captured:
 * nothing is read on the host. */

/* Multiplies gradients of one device by inv_scale, in place. Gives 1 as a float32 without dimensions if an
 * element was not finite before, else 0. */
GTorchImpl *gtorch_amp_unscale (GTorchImpl *const *grads, guint n_grads, GTorchImpl *inv_scale,
                                GError **error);

/* After a step: less by the backoff if found_inf is not 0; more by the growth after `interval` steps
 * without. */
gboolean gtorch_amp_update_scale (GTorchImpl *scale, GTorchImpl *growth_tracker,
                                  GTorchImpl *found_inf, gdouble growth, gdouble backoff,
                                  gint interval, GError **error);

/* 1 / scale as a float32, without the error of a division in float32. */
GTorchImpl *gtorch_amp_inv_scale (GTorchImpl *scale, GError **error);

G_END_DECLS
