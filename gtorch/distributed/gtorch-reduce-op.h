/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchReduceOp:
 * @GTORCH_REDUCE_OP_SUM: the sum
 * @GTORCH_REDUCE_OP_AVG: the sum divided by the number of ranks; for floating-point and complex numbers
 * @GTORCH_REDUCE_OP_PRODUCT: the product
 * @GTORCH_REDUCE_OP_MIN: the smallest; NaN if one is
 * @GTORCH_REDUCE_OP_MAX: the largest; NaN if one is
 * @GTORCH_REDUCE_OP_BAND: bitwise and of integers and bools
 * @GTORCH_REDUCE_OP_BOR: bitwise or of integers and bools
 * @GTORCH_REDUCE_OP_BXOR: bitwise exclusive or of integers and bools
 *
 * How the elements of several ranks become one.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_REDUCE_OP_SUM,
  GTORCH_REDUCE_OP_AVG,
  GTORCH_REDUCE_OP_PRODUCT,
  GTORCH_REDUCE_OP_MIN,
  GTORCH_REDUCE_OP_MAX,
  GTORCH_REDUCE_OP_BAND,
  GTORCH_REDUCE_OP_BOR,
  GTORCH_REDUCE_OP_BXOR,
} GTorchReduceOp;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_reduce_op_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_REDUCE_OP (gtorch_reduce_op_get_type ())

G_END_DECLS
