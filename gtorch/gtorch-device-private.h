/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-device.h>
#include <gtorch/gtorch-impl-private.h>

G_BEGIN_DECLS

struct _GTorchDeviceClass
{
  GObjectClass parent_class;
};

GTorchStorage *gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
void gtorch_device_free (GTorchDevice *device, GTorchStorage *storage);
const gchar *gtorch_device_name (GTorchDevice *device);

G_END_DECLS
