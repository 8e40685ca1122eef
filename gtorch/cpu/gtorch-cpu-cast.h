/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/gtorch-cpu-isa.h>
#include <gtorch/tensor/gtorch-cast-private.h>

G_BEGIN_DECLS

GTorchCast gtorch_cpu_cast (guint dst_dtype, guint src_dtype);

G_END_DECLS
