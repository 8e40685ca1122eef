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
