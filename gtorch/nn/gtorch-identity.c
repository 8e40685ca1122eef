/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-identity.h"

#include "gtorch-field-private.h"

/**
 * GTorchIdentity:
 *
 * A module whose output is its input; to take the place of another.
 *
 * Since: 0.1
 */

struct _GTorchIdentity
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchIdentity, gtorch_identity, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_identity_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return g_object_ref (input);
}

static void
gtorch_identity_class_init (GTorchIdentityClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_identity_forward;
}

static void
gtorch_identity_init (GTorchIdentity *self)
{
}

/**
 * gtorch_identity_new:
 *
 * Makes a module that does nothing.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchIdentity *
gtorch_identity_new (void)
{
  return g_object_new (GTORCH_TYPE_IDENTITY, NULL);
}
