/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

/* Marks a variable that only the library uses, so that no table is read to find it. Builds whose tests are
 * linked with the shared library define it as empty: such tests use the library's variables. */
#ifndef GTORCH_INTERNAL
#define GTORCH_INTERNAL G_GNUC_INTERNAL
#endif
