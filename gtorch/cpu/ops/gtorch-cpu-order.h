/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Sorting by keys. An element becomes an unsigned key that has the order of the values (NaN last, -0 equal
 * to 0), packed above its position. All items are different, so every sorting algorithm is stable. Keys of
 * up to 32 bits make 64-bit items, wider ones 128-bit items. */

typedef unsigned __int128 GTorchWideItem;

/* Writes n items for elements `stride` bytes apart, the first of which has position `first`. Elements of
 * int64 make 64-bit items if all of them are in [base, base + 2^32). */
void gtorch_order_items_32 (guint dtype, const char *data, gint64 stride, gint64 first, gint64 n,
                            gboolean descending, gint64 base, guint64 *items);
void gtorch_order_items_64 (guint dtype, const char *data, gint64 stride, gint64 first, gint64 n,
                            gboolean descending, gint64 base, GTorchWideItem *items);
/* Returns whether n int64 elements fit in such a range; base becomes the least of them. */
gboolean gtorch_order_fits_32 (const gint64 *data, gint64 n, gint64 *base);

/* Sort n items; spare has room for n items. Sorting is faster if the items are `ordered` by position
 * already. */
void gtorch_order_sort_32 (guint64 *items, guint64 *spare, gint64 n, gboolean ordered);
void gtorch_order_sort_64 (GTorchWideItem *items, GTorchWideItem *spare, gint64 n,
                           gboolean ordered);

/* Move the k smallest items to the front, unordered except that the k-th is the largest of them. */
void gtorch_order_select_32 (guint64 *items, gint64 n, gint64 k);
void gtorch_order_select_64 (GTorchWideItem *items, gint64 n, gint64 k);

G_END_DECLS
