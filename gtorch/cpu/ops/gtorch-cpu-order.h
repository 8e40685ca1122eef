/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Sorting by keys. An element becomes an unsigned key that orders as the values do (NaN last, -0 equal
 * to 0), packed above its position: items are all different, so that every way to sort them is stable.
 * Keys of up to 32 bits make 64-bit items, others 128-bit ones. */

typedef unsigned __int128 GTorchWideItem;

/* Writes n items for elements `stride` bytes apart, the first of which has position first. Elements of
 * int64 make small items if all lie in [base, base + 2^32). */
void gtorch_order_items_32 (guint dtype, const char *data, gint64 stride, gint64 first, gint64 n,
                            gboolean descending, gint64 base, guint64 *items);
void gtorch_order_items_64 (guint dtype, const char *data, gint64 stride, gint64 first, gint64 n,
                            gboolean descending, gint64 base, GTorchWideItem *items);
/* Do they? Then base is their least. */
gboolean gtorch_order_fits_32 (const gint64 *data, gint64 n, gint64 *base);

/* Sorts; spare has room for n items. If they are `ordered` by position already it goes faster. */
void gtorch_order_sort_32 (guint64 *items, guint64 *spare, gint64 n, gboolean ordered);
void gtorch_order_sort_64 (GTorchWideItem *items, GTorchWideItem *spare, gint64 n,
                           gboolean ordered);

/* Moves the k smallest items to the front, in no order but for the k-th, which is the last of them. */
void gtorch_order_select_32 (guint64 *items, gint64 n, gint64 k);
void gtorch_order_select_64 (GTorchWideItem *items, gint64 n, gint64 k);

G_END_DECLS
