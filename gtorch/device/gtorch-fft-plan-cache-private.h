/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-fft-plan-cache.h>

G_BEGIN_DECLS

/* What the kinds of devices put into their caches begins with this. */
typedef struct
{
  gint ref_count;
  gsize n_bytes;                /* of host memory */
  void (*free) (gpointer plan); /* when the last reference goes */
} GTorchFFTCached;

/* What a plan is for; all words count. */
typedef struct
{
  gint64 words[14];
} GTorchFFTKey;

gpointer gtorch_fft_cached_ref (gpointer plan);
void gtorch_fft_cached_unref (gpointer plan);

/* A reference to the plan, or NULL. */
gpointer gtorch_fft_plan_cache_find (GTorchFFTPlanCache *self, const GTorchFFTKey *key);
/* Takes the reference to plan and gives one to what is in the cache now: that of another thread, perhaps. */
gpointer gtorch_fft_plan_cache_add (GTorchFFTPlanCache *self, const GTorchFFTKey *key,
                                    gpointer plan) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
