/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "ops/gtorch-op-parts-private.h"

G_BEGIN_DECLS

/* Resamples n images of bytes, two dimensions, by weights of 16 bits. Both dimensions round, the last one
 * first, as in Pillow and in PyTorch. n_beside: how many of the images have their elements beside each other,
 * as those of the channels of decoded files; in the result, no images have. */
gboolean gtorch_cpu_resample_bytes (const GTorchResample *geometry, const guint8 *x, guint8 *y,
                                    gint64 n, gint64 n_beside, GError **error);

G_END_DECLS
