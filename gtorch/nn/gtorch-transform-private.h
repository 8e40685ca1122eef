/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the functions of transforms share. */

#pragma once

#include "nn/gtorch-layer-private.h"
#include "ops/gtorch-formula-private.h"

G_BEGIN_DECLS

gboolean gtorch_transform_check (GTorchModule *self, GTorchImpl *image, guint least_dims,
                                 GError **error);
/* n numbers from 0 to 1. */
gboolean gtorch_transform_draw (gdouble *numbers, guint n, GError **error);
/* The first and the last of the factors, or what is given if there are none. */
void gtorch_transform_range (GTorchFactors *factors, gdouble low, gdouble high, gdouble range[2]);

G_END_DECLS
