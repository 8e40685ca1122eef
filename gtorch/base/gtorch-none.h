/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTORCH_NONE:
 *
 * The value of an integer that is not given: of an optional argument, such as the number of columns of
 * [func@eye], or of a property, such as [property@Embedding:padding-idx]. Numbers that are not given are NaN.
 *
 * Since: 0.1
 */
#define GTORCH_NONE -2147483648

G_END_DECLS
