/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FFT_PLAN_CACHE (gtorch_fft_plan_cache_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchFFTPlanCache, gtorch_fft_plan_cache, GTORCH, FFT_PLAN_CACHE, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchFFTPlanCache *gtorch_device_get_fft_plan_cache (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_fft_plan_cache_get_size (GTorchFFTPlanCache *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_fft_plan_cache_get_max_size (GTorchFFTPlanCache *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_fft_plan_cache_set_max_size (GTorchFFTPlanCache *self, guint max_size);
GTORCH_AVAILABLE_IN_0_1
void gtorch_fft_plan_cache_clear (GTorchFFTPlanCache *self);

G_END_DECLS
