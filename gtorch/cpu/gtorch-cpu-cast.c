/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cpu/gtorch-cpu-cast.h"

typedef const GTorchCast Table[GTORCH_N_DTYPES][GTORCH_N_DTYPES];

extern Table gtorch_cast_table_baseline;
#ifdef GTORCH_HAVE_ISA_V3
extern Table gtorch_cast_table_v3;
#endif
#ifdef GTORCH_HAVE_ISA_V4
extern Table gtorch_cast_table_v4;
#endif

GTorchCast
gtorch_cpu_cast (guint dst_dtype, guint src_dtype)
{
  return GTORCH_ISA_CALL (gtorch_cast_table)[dst_dtype][src_dtype];
}

/* Earlier than constructors of programs that link the library statically, which may use it. */
static void __attribute__ ((constructor (200))) set_host_cast (void)
{
  gtorch_host_cast = gtorch_cpu_cast;
}
