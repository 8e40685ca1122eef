/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Whether threads that wait for a device spin or sleep, as functions and as a property. */

#include "config.h"

#include "device/gtorch-device-wait.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-field-private.h"

typedef GTorchDevice Self;

static const GTorchField fields[] = {
  /**
   * GTorchDevice:wait-policy:
   *
   * Whether threads that wait for the device spin or sleep.
   *
   * [enum@WaitPolicy.ADAPTIVE] by default, or the value of the environment variable `GTORCH_WAIT_POLICY`:
   * `adaptive`, `spin` or `sleep`.
   *
   * On a GPU this applies to waits for streams, events and the device itself, and to reading elements. An
   * adaptive wait spins for up to a millisecond, then sleeps; after four waits in succession that took
   * longer, the thread spins for 50 microseconds only, until a wait is short again. With
   * [enum@WaitPolicy.SPIN] threads that run callbacks of a main loop still sleep after 1.6 milliseconds, a
   * tenth of a frame. Waits for events with %GTORCH_EVENT_BLOCKING always sleep at once.
   *
   * On the CPU this applies to the worker threads of operations: with the adaptive policy they look for
   * work for up to 200 microseconds before they sleep, depending on how often they find some; with
   * [enum@WaitPolicy.SPIN] they keep their processors busy all the time, and with [enum@WaitPolicy.SLEEP]
   * they sleep whenever there is nothing to do. None spins where threads outnumber processors.
   *
   * Since: 0.1
   */
  { "wait-policy",
    GTORCH_PROPERTY_ENUM (GTorchWaitPolicy, gtorch_wait_policy_get_type,
                          gtorch_device_get_wait_policy, gtorch_device_set_wait_policy),
    .value = GTORCH_WAIT_POLICY_ADAPTIVE },
};

void
gtorch_device_install_wait_property (GObjectClass *klass)
{
  GTORCH_FIELDS (klass, fields);
}

GType
gtorch_wait_policy_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_WAIT_POLICY_ADAPTIVE, "GTORCH_WAIT_POLICY_ADAPTIVE", "adaptive" },
        { GTORCH_WAIT_POLICY_SPIN, "GTORCH_WAIT_POLICY_SPIN", "spin" },
        { GTORCH_WAIT_POLICY_SLEEP, "GTORCH_WAIT_POLICY_SLEEP", "sleep" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchWaitPolicy", values));
    }
  return type;
}

GTorchWaitPolicy
gtorch_default_wait_policy (void)
{
  static gsize policy = 0; /* the policy plus 1 */

  if (g_once_init_enter (&policy))
    {
      static const GTorchWaitPolicy policies[] = { GTORCH_WAIT_POLICY_ADAPTIVE,
                                                   GTORCH_WAIT_POLICY_SPIN,
                                                   GTORCH_WAIT_POLICY_SLEEP };
      const gint choice = gtorch_env_choice ("GTORCH_WAIT_POLICY");

      g_once_init_leave (&policy, policies[MAX (choice, 0)] + 1);
    }
  return policy - 1;
}

/**
 * gtorch_device_get_wait_policy: (get-property wait-policy)
 * @self: a device
 *
 * Gets whether threads that wait for the device spin or sleep.
 *
 * Returns: the policy
 *
 * Since: 0.1
 */
GTorchWaitPolicy
gtorch_device_get_wait_policy (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), GTORCH_WAIT_POLICY_ADAPTIVE);
  self = gtorch_device_resolved (self);
  return g_atomic_int_get (&self->wait_policy);
}

/**
 * gtorch_device_set_wait_policy: (set-property wait-policy)
 * @self: a device
 * @policy: whether threads spin or sleep
 *
 * Sets whether threads that wait for the device spin or sleep, from the next wait on; see
 * [property@Device:wait-policy].
 *
 * ```c
 * gtorch_device_set_wait_policy (device, GTORCH_WAIT_POLICY_SLEEP);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_device_set_wait_policy (GTorchDevice *self, GTorchWaitPolicy policy)
{
  gint former;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  g_return_if_fail (policy >= GTORCH_WAIT_POLICY_ADAPTIVE && policy <= GTORCH_WAIT_POLICY_SLEEP);
  self = gtorch_device_resolved (self);
  former = __atomic_exchange_n (&self->wait_policy, (gint) policy, __ATOMIC_SEQ_CST);
  if (former == (gint) policy)
    return;
  g_object_notify (G_OBJECT (self), "wait-policy");
}
