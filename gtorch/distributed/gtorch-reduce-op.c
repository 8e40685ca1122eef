/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-reduce-op.h"

GType
gtorch_reduce_op_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_REDUCE_OP_SUM, "GTORCH_REDUCE_OP_SUM", "sum" },
        { GTORCH_REDUCE_OP_AVG, "GTORCH_REDUCE_OP_AVG", "avg" },
        { GTORCH_REDUCE_OP_PRODUCT, "GTORCH_REDUCE_OP_PRODUCT", "product" },
        { GTORCH_REDUCE_OP_MIN, "GTORCH_REDUCE_OP_MIN", "min" },
        { GTORCH_REDUCE_OP_MAX, "GTORCH_REDUCE_OP_MAX", "max" },
        { GTORCH_REDUCE_OP_BAND, "GTORCH_REDUCE_OP_BAND", "band" },
        { GTORCH_REDUCE_OP_BOR, "GTORCH_REDUCE_OP_BOR", "bor" },
        { GTORCH_REDUCE_OP_BXOR, "GTORCH_REDUCE_OP_BXOR", "bxor" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchReduceOp", values));
    }
  return type;
}
