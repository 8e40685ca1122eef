/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GOptionGroup *gtorch_get_option_group (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_add_options (GApplication *application);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_parse_options (const gchar *const *arguments,
                              GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
