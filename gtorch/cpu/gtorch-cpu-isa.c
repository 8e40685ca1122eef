/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cpu/gtorch-cpu-isa.h"

#ifdef GTORCH_HAVE_ISA_V3
#include <cpuid.h>
#endif

#include "base/gtorch-environment-private.h"

typedef const GTorchLoop (*LoopTable)[GTORCH_N_DTYPES];

extern const GTorchLoop gtorch_loop_table_baseline[][GTORCH_N_DTYPES];
#ifdef GTORCH_HAVE_ISA_V3
extern const GTorchLoop gtorch_loop_table_v3[][GTORCH_N_DTYPES];
#endif
#ifdef GTORCH_HAVE_ISA_V4
extern const GTorchLoop gtorch_loop_table_v4[][GTORCH_N_DTYPES];
#endif

#ifdef GTORCH_HAVE_ISA_V3
/* Clang's __builtin_cpu_supports () does not know F16C. AVX2 support implies that the system saves the
 * registers. */
static gboolean
has_f16c (void)
{
  guint a, b, c, d;

  return __get_cpuid (1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}
#endif

static guint
detect (const gchar *limit)
{
  guint level = GTORCH_ISA_LEVEL_BASELINE;

#ifdef GTORCH_HAVE_ISA_V3
  if (__builtin_cpu_supports ("avx2") && __builtin_cpu_supports ("fma")
      && __builtin_cpu_supports ("bmi2") && has_f16c ())
    level = GTORCH_ISA_LEVEL_V3;
#endif
#ifdef GTORCH_HAVE_ISA_V4
  if (level == GTORCH_ISA_LEVEL_V3 && __builtin_cpu_supports ("avx512f")
      && __builtin_cpu_supports ("avx512bw") && __builtin_cpu_supports ("avx512cd")
      && __builtin_cpu_supports ("avx512dq") && __builtin_cpu_supports ("avx512vl"))
    level = GTORCH_ISA_LEVEL_V4;
#endif
  if (g_strcmp0 (limit, "baseline") == 0)
    return GTORCH_ISA_LEVEL_BASELINE;
  if (g_strcmp0 (limit, "v3") == 0)
    return MIN (level, GTORCH_ISA_LEVEL_V3);
  return level;
}

static guint isa_level;
static LoopTable loop_table = gtorch_loop_table_baseline;

void
gtorch_cpu_isa_choose (const gchar *limit)
{
  isa_level = detect (limit);
  loop_table = gtorch_loop_table_baseline;
#ifdef GTORCH_HAVE_ISA_V3
  if (isa_level >= GTORCH_ISA_LEVEL_V3)
    loop_table = gtorch_loop_table_v3;
#endif
#ifdef GTORCH_HAVE_ISA_V4
  if (isa_level >= GTORCH_ISA_LEVEL_V4)
    loop_table = gtorch_loop_table_v4;
#endif
}

static void __attribute__ ((constructor)) choose (void)
{
  static const gchar *const names[] = { "baseline", "v3", "v4" };
  const gint choice = gtorch_env_choice ("GTORCH_CPU_ISA");

  gtorch_cpu_isa_choose (choice >= 0 ? names[choice] : NULL);
}

guint
gtorch_cpu_isa (void)
{
  return isa_level;
}

GTorchLoop
gtorch_cpu_loop (gint loop, guint dtype)
{
  return loop_table[loop][dtype];
}
