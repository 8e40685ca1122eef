/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PROFILE_RANGE (gtorch_profile_range_get_type ())

/**
 * GTorchProfileFunc:
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * A function that runs in a range.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchProfileFunc) (gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GType gtorch_profile_range_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileRange *gtorch_profile_range_new (const gchar *name) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileRange *
gtorch_profile_range_new_with_args (const gchar *name, const gchar *args) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_profile_range_end (GTorchProfileRange *range);
GTORCH_AVAILABLE_IN_0_1
GTorchProfileRange *gtorch_profile_range_ref (GTorchProfileRange *range);
GTORCH_AVAILABLE_IN_0_1
void gtorch_profile_range_unref (GTorchProfileRange *range);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchProfileRange, gtorch_profile_range_unref)
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_profiling (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_record_function (const gchar *name, GTorchProfileFunc func, gpointer user_data,
                                 GError **error);

#ifndef __GI_SCANNER__
/* A range until the end of the block: GTORCH_PROFILE_RANGE ("forward"); */
#define GTORCH_PROFILE_RANGE(name)                                                          \
  g_autoptr (GTorchProfileRange) G_PASTE (_gtorch_profile_range_, __LINE__) G_GNUC_UNUSED = \
      gtorch_profile_range_new (name)
#endif

G_END_DECLS
