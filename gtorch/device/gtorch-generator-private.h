/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-generator.h>
#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* One call's numbers. Element i of a result is made from (seed, counter, i) alone, so a call takes one
 * step of the counter, however many elements it has. */
void gtorch_generator_reserve (GTorchGenerator *self, guint64 *seed, guint64 *counter);

G_END_DECLS
