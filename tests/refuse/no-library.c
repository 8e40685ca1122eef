/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* For programs that call GTorch's own functions. */

#include "config.h"

#include "refuse.h"

const RefuseLibrary refuse_library = { NULL, NULL, NULL };
