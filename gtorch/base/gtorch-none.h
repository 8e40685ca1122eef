/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTORCH_NONE:
 *
 * The value of an integer that is not given: of an optional argument, such as the number of columns of
 * [func@eye], or of a property, such as [property@Embedding:padding-idx]. That of a number with a fraction is
 * [const@NONE_DOUBLE].
 *
 * Since: 0.1
 */
#define GTORCH_NONE -2147483648

/**
 * GTORCH_NONE_DOUBLE:
 *
 * The value of a number with a fraction that is not given: of an optional argument, such as the scale of
 * [func@scaled_dot_product_attention], or of a property, such as [property@BatchNorm1d:momentum].
 *
 * NaN and the infinities are numbers that are given. This one is none that a program computes; it is compared
 * as it is, and never computed with.
 *
 * Since: 0.1
 */
#define GTORCH_NONE_DOUBLE 6.180339887498948e+301

G_END_DECLS
