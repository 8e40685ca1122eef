/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-fft-plan-cache.h>

G_BEGIN_DECLS

/* The common header of all plans; each device type appends its own fields. */
typedef struct
{
  gint ref_count;
  gsize n_bytes;                /* of host memory */
  void (*free) (gpointer plan); /* called with the last reference */
} GTorchFFTCached;

/* The key of a plan; all words are compared. */
typedef struct
{
  gint64 words[14];
} GTorchFFTKey;

gpointer gtorch_fft_cached_ref (gpointer plan);
void gtorch_fft_cached_unref (gpointer plan);

/* Returns a new reference to the plan, or NULL. */
gpointer gtorch_fft_plan_cache_find (GTorchFFTPlanCache *self, const GTorchFFTKey *key);
/* Adds a plan and takes the caller's reference. Returns a reference to the plan that is now in the cache,
 * which may have been added by another thread. */
gpointer gtorch_fft_plan_cache_add (GTorchFFTPlanCache *self, const GTorchFFTKey *key,
                                    gpointer plan) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
