/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Included before everything else in each file of the library, see meson.build.
 *
 * GLib's macros give the hint to a variable that an if statement has set, and GCC has forgotten it by the
 * time that it lays the branches out: what is unlikely stands in the way of what is likely, in
 * g_return_if_fail (), too. Without optimization they stay as they are, and warn of assignments. */

#include <glib.h>

#ifdef __OPTIMIZE__
#undef G_LIKELY
#undef G_UNLIKELY
#define G_LIKELY(expr)   (__builtin_expect (!!(expr), 1))
#define G_UNLIKELY(expr) (__builtin_expect (!!(expr), 0))
#endif
