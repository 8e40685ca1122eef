/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profile-kind.h"

GType
gtorch_profile_kind_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_PROFILE_KIND_NONE, "GTORCH_PROFILE_KIND_NONE", "none" },
        { GTORCH_PROFILE_KIND_OPERATION, "GTORCH_PROFILE_KIND_OPERATION", "operation" },
        { GTORCH_PROFILE_KIND_RANGE, "GTORCH_PROFILE_KIND_RANGE", "range" },
        { GTORCH_PROFILE_KIND_STEP, "GTORCH_PROFILE_KIND_STEP", "step" },
        { GTORCH_PROFILE_KIND_BACKWARD, "GTORCH_PROFILE_KIND_BACKWARD", "backward" },
        { GTORCH_PROFILE_KIND_MODULE, "GTORCH_PROFILE_KIND_MODULE", "module" },
        { GTORCH_PROFILE_KIND_TRANSFER, "GTORCH_PROFILE_KIND_TRANSFER", "transfer" },
        { GTORCH_PROFILE_KIND_REPLAY, "GTORCH_PROFILE_KIND_REPLAY", "replay" },
        { GTORCH_PROFILE_KIND_MEMORY, "GTORCH_PROFILE_KIND_MEMORY", "memory" },
        { GTORCH_PROFILE_KIND_DRIVER, "GTORCH_PROFILE_KIND_DRIVER", "driver" },
        { GTORCH_PROFILE_KIND_KERNEL, "GTORCH_PROFILE_KIND_KERNEL", "kernel" },
        { GTORCH_PROFILE_KIND_COPY, "GTORCH_PROFILE_KIND_COPY", "copy" },
        { GTORCH_PROFILE_KIND_FILL, "GTORCH_PROFILE_KIND_FILL", "fill" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchProfileKind", values));
    }
  return type;
}
