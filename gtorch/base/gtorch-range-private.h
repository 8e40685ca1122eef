/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-none-private.h>
#include <math.h>

G_BEGIN_DECLS

/* Is a number of a setting within its range? NaN is in none. A high bound of G_MAXDOUBLE asks for what is
 * finite, INFINITY for nothing; an open range has not its low bound. The constant for no number is in
 * none. */
static inline gboolean
gtorch_is_in_range (gdouble value, gdouble low, gdouble high, gboolean is_open)
{
  return (is_open ? value > low : value >= low) && value <= high && !gtorch_is_none_double (value);
}

/* The rule: “finite and at least 0”. */
gchar *gtorch_range_describe (gdouble low, gdouble high, gboolean is_open);
/* INVALID, with the value and the rule: “sgd: momentum is -1, it must be finite and at least 0”. A name
 * that is words is marked by N_ (), and translated here. */
gboolean gtorch_check_range (const gchar *who, const gchar *name, gdouble value, gdouble low,
                             gdouble high, gboolean is_open, GError **error);
/* Returns whether the dtype has the number. As in PyTorch, infinities are there, and numbers that an unsigned
 * integer wraps to; fractions are cut off. */
gboolean gtorch_dtype_has (guint dtype, gdouble value);

G_END_DECLS
