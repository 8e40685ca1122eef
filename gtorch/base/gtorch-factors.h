/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FACTORS (gtorch_factors_get_type ())

/**
 * GTorchFactors:
 *
 * A short list of floating-point numbers that does not change: one factor for each dimension of an image.
 *
 * [property@Upsample:scale-factor] is of this type. One number stands for all dimensions.
 *
 * Since: 0.1
 */
typedef struct _GTorchFactors GTorchFactors;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_factors_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchFactors *gtorch_factors_new (const gdouble *values, gsize n_values) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchFactors *gtorch_factors_ref (GTorchFactors *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_factors_unref (GTorchFactors *self);
GTORCH_AVAILABLE_IN_0_1
const gdouble *gtorch_factors_get_values (GTorchFactors *self, gsize *n_values);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_factors_get_length (GTorchFactors *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_factors_equal (GTorchFactors *self, GTorchFactors *other);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchFactors, gtorch_factors_unref)

G_END_DECLS
