/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PROGRESS_BAR (gtorch_progress_bar_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchProgressBar, gtorch_progress_bar, GTORCH, PROGRESS_BAR, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchProgressBar *gtorch_progress_bar_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_progress_bar_begin (GTorchProgressBar *self, const gchar *title, gint64 total);
GTORCH_AVAILABLE_IN_0_1
void gtorch_progress_bar_update (GTorchProgressBar *self, gint64 position, const gchar *text);
GTORCH_AVAILABLE_IN_0_1
void gtorch_progress_bar_end (GTorchProgressBar *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_progress_bar_is_shown (GTorchProgressBar *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_progress_bar_get_fd (GTorchProgressBar *self);

G_END_DECLS
