/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchPlaceFunc:
 * @user_data: the user data of the function
 * @error: return location for an error, whose message then stands for the place
 *
 * Tells where the program is, in the words of its language: a line of text for each function that has not
 * ended yet, such as `/home/me/train.py:12, in train`, the innermost first.
 *
 * Returns: (transfer full) (nullable): the place, or %NULL if it is not known, or with @error set
 *
 * Since: 0.1
 */
typedef gchar *(*GTorchPlaceFunc) (gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
void gtorch_set_place_func (gboolean any_thread, GTorchPlaceFunc func, gpointer user_data,
                            GDestroyNotify destroy);

G_END_DECLS
