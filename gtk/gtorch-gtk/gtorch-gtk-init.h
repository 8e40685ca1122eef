/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

#include <gtorch/base/gtorch-version-macros.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_init (void);

G_END_DECLS
