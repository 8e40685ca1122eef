/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_GENERATOR (gtorch_generator_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGenerator, gtorch_generator, GTORCH, GENERATOR, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchGenerator *gtorch_generator_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGenerator *gtorch_generator_new_with_seed (guint64 seed) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGenerator *gtorch_generator_new_for_device (GTorchDevice *device) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_generator_get_device (GTorchGenerator *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_generator_get_seed (GTorchGenerator *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_generator_set_seed (GTorchGenerator *self, guint64 seed);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_generator_seed_from_entropy (GTorchGenerator *self);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_generator_get_state (GTorchGenerator *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_generator_set_state (GTorchGenerator *self, GBytes *state, GError **error);

GTORCH_AVAILABLE_IN_0_1
void gtorch_manual_seed (guint64 seed);

G_END_DECLS
