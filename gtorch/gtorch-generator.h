/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-types.h>

G_BEGIN_DECLS

G_END_DECLS
