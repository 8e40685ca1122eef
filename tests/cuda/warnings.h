/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

/* The warnings that a test has caused: their number, and the last one. */
static guint n_warnings;
static gchar *warning;

static void
count_warning (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
  if ((level & G_LOG_LEVEL_WARNING) == 0)
    {
      g_log_default_handler (domain, level, message, data);
      return;
    }
  g_free (warning);
  warning = g_strdup (message);
  n_warnings++;
}

/* Replaces the log handler of the test framework, which would abort. */
static inline void
count_warnings (void)
{
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  g_log_set_default_handler (count_warning, NULL);
}
