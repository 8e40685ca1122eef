/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

#ifndef GTORCH_EXTERN
#define GTORCH_EXTERN extern __attribute__ ((visibility ("default")))
#endif

/**
 * GTORCH_AVAILABLE_IN_0_1: (skip)
 *
 * Marks a function that exists since version 0.1.
 */
#define GTORCH_AVAILABLE_IN_0_1 GTORCH_EXTERN

/* g_autoptr () of a guard, which is there for its end: clang calls a variable that nobody reads unused. */
#ifndef __GI_SCANNER__
#define _GTORCH_DEFINE_GUARD_AUTOPTR(TypeName, free_func) \
  G_DEFINE_AUTOPTR_CLEANUP_FUNC (TypeName, free_func)     \
  typedef TypeName *TypeName##_autoptr G_GNUC_UNUSED;
#else
#define _GTORCH_DEFINE_GUARD_AUTOPTR(TypeName, free_func)
#endif
