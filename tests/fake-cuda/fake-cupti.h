/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* CUPTI without a GPU, for tests: libcupti.so.13 in the folder of GTORCH_CUDA_LIBRARY_PATH. It reports the
 * calls of the fake driver and what that executes. Programs that link it can let it fail: */

#include <glib.h>

G_BEGIN_DECLS

#define FAKE_CUPTI_API __attribute__ ((visibility ("default")))

/* Lets the n-th call (1: the next) of a function return the result without doing anything; 0: none. */
FAKE_CUPTI_API void fake_cupti_fail (const gchar *name, guint nth, gint result);
/* Lets so many records be lost. */
FAKE_CUPTI_API void fake_cupti_drop (guint n);
/* Lets the clock of the device be ahead of the host's by so many nanoseconds: records have earlier times. */
FAKE_CUPTI_API void fake_cupti_skew (gint64 skew);
/* Lets the next so many records of kernels have no times. */
FAKE_CUPTI_API void fake_cupti_untime (guint n);
/* Lets the next call that is recorded have returned this. */
FAKE_CUPTI_API void fake_cupti_return (guint result);
/* Returns how many records of kernels were made so far. */
FAKE_CUPTI_API guint fake_cupti_get_kernels (void);
/* Returns how many kinds of records are wanted now. */
FAKE_CUPTI_API guint fake_cupti_get_enabled (void);

G_END_DECLS
