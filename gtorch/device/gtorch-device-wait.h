/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchWaitPolicy:
 * @GTORCH_WAIT_POLICY_ADAPTIVE: spin as long as that is likely to help, then sleep
 * @GTORCH_WAIT_POLICY_SPIN: spin until the wait ends
 * @GTORCH_WAIT_POLICY_SLEEP: sleep at once
 *
 * How a thread waits for a device. A thread that spins notices the end within a microsecond or two and
 * keeps a processor busy; one that sleeps leaves the processor to others and wakes up some 30 microseconds
 * late.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_WAIT_POLICY_ADAPTIVE,
  GTORCH_WAIT_POLICY_SPIN,
  GTORCH_WAIT_POLICY_SLEEP,
} GTorchWaitPolicy;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_wait_policy_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_WAIT_POLICY (gtorch_wait_policy_get_type ())

GTORCH_AVAILABLE_IN_0_1
GTorchWaitPolicy gtorch_device_get_wait_policy (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_set_wait_policy (GTorchDevice *self, GTorchWaitPolicy policy);

G_END_DECLS
