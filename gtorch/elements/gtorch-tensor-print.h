/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchSciMode:
 * @GTORCH_SCI_MODE_AUTO: if the values need it
 * @GTORCH_SCI_MODE_NEVER: never
 * @GTORCH_SCI_MODE_ALWAYS: for all floating-point tensors
 *
 * When numbers are printed with an exponent.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_SCI_MODE_AUTO,
  GTORCH_SCI_MODE_NEVER,
  GTORCH_SCI_MODE_ALWAYS,
} GTorchSciMode;

#define GTORCH_TYPE_SCI_MODE (gtorch_sci_mode_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_sci_mode_get_type (void) G_GNUC_CONST;

GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_tensor_to_string (GTorchTensor *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_set_print_options (gint precision, gint64 threshold, gint edge_items,
                                   gint line_width, GTorchSciMode sci_mode, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_get_print_options (gint *precision, gint64 *threshold, gint *edge_items,
                               gint *line_width, GTorchSciMode *sci_mode);

G_END_DECLS
