/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/optim/gtorch-grad-scaler.h>

G_BEGIN_DECLS

struct _GTorchGradScaler
{
  GObject parent_instance;
  gdouble initial;   /* used until there is a tensor */
  gboolean is_stale; /* or while the tensor has not got the new value */
  gdouble growth_factor, backoff_factor;
  gint growth_interval, initial_tracker;
  gboolean enabled, capturable;
  GTorchImpl *scale, *tracker; /* float32, int32; NULL until something is scaled */
  GHashTable *optimizers;      /* the state of this iteration: GTorchOptimizer -> Progress */
  GThread *owner;
  GMainContext *context;
};

/* Divides gradients of one device by the scale, in place. Returns a zero-dimensional float32: 1 if an
 * element was not finite before, otherwise 0. The host does not wait. */
GTorchImpl *gtorch_amp_unscale (GTorchImpl *const *grads, guint n_grads, GTorchImpl *scale,
                                GError **error);

G_END_DECLS
