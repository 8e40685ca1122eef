/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-generator.h>
#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* Reserves the numbers of one call. Element i of a result depends on (seed, counter, i) alone, so a call
 * advances the counter by one, however many elements it has. */
void gtorch_generator_reserve (GTorchGenerator *self, guint64 *seed, guint64 *counter);

/* The states of the default generators of all devices. */
typedef struct _GTorchRandomStates GTorchRandomStates;

GTorchRandomStates *gtorch_random_states_new (void);
void gtorch_random_states_free (GTorchRandomStates *self);
/* Sets the states, and returns those that were there. */
GTorchRandomStates *gtorch_random_states_exchange (const GTorchRandomStates *self);
/* Sets the states and frees them. */
void gtorch_random_states_restore (GTorchRandomStates *self);

G_END_DECLS
