/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A contiguous tensor as [outer, n, inner]: rows of n elements, which are `inner` elements apart. */
typedef struct
{
  gint64 outer, n, inner;
} GTorchRows;

/* Returns the rows along a dimension; without dimensions there is one row of one element. */
static inline GTorchRows
gtorch_rows_along (const gint64 *shape, guint n_dims, guint dim)
{
  GTorchRows rows = { 1, 1, 1 };
  guint i;

  for (i = 0; i < n_dims; i++)
    *(i < dim ? &rows.outer : i == dim ? &rows.n : &rows.inner) *= shape[i];
  return rows;
}

G_END_DECLS
