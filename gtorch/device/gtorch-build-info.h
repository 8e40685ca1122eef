/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_get_arch_list (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_get_build_keys (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_get_build_info (const gchar *key) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_get_cuda_libraries (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_get_cuda_library_version (const gchar *name,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
