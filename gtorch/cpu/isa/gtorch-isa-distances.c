/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Distances of one row from many others, of which a vector holds one element each. Sums of a few elements
 * are added up in float64. The file includes itself, once for each type. */

#ifndef T

#include "config.h"

#include "cpu/gtorch-cpu-loops.h"
#include "cpu/ops/gtorch-cpu-distances.h"

#define WIDTH GTORCH_DISTANCES_WIDTH

enum
{
  DEPTH = 16, /* elements of a sum */
};

#define T       float
#define NAME(n) n##_f32
#include "gtorch-isa-distances.c"
#undef T
#undef NAME
#define T       double
#define NAME(n) n##_f64
#include "gtorch-isa-distances.c"

#else

#define EACH_OTHER _Pragma ("omp simd") for (gint64 j = 0; j < WIDTH; j++)

/* STEP adds the difference v to part, COMBINE adds part to acc. */
#define DISTANCES(STEP, COMBINE, FINISH)                               \
  {                                                                    \
    for (gint64 d = 0; d < depth; d += DEPTH)                          \
      {                                                                \
        T parts[WIDTH] = { 0 };                                        \
                                                                       \
        for (gint64 k = d; k < MIN (d + DEPTH, depth); k++)            \
          EACH_OTHER                                                   \
          {                                                            \
            const T v = x[k] - others[k * WIDTH + j], part = parts[j]; \
                                                                       \
            parts[j] = STEP;                                           \
          }                                                            \
        EACH_OTHER                                                     \
        {                                                              \
          const double acc = sums[j], part = (double) parts[j];        \
                                                                       \
          sums[j] = COMBINE;                                           \
        }                                                              \
      }                                                                \
    EACH_OTHER                                                         \
    {                                                                  \
      const double acc = sums[j];                                      \
                                                                       \
      distances[j] = (T) (FINISH);                                     \
    }                                                                  \
  }

void
GTORCH_ISA_SYMBOL (NAME (gtorch_distances)) (const T *x, const T *others, gint64 depth, gdouble p,
                                             T *distances)
{
  double sums[WIDTH] = { 0 };

  if (p == 2)
    DISTANCES (part + v * v, acc + part, sqrt (acc))
  else if (p == 1)
    DISTANCES (part + fabs (v), acc + part, acc)
  else if (p == 0)
    DISTANCES (part + (v != 0 ? 1 : 0), acc + part, acc)
  else if (p == INFINITY)
    DISTANCES (gt_maximum (part, fabs (v)), gt_maximum (acc, part), acc)
  else
    DISTANCES (part + pow (fabs (v), (T) p), acc + part, pow (acc, 1 / p))
}

#undef EACH_OTHER
#undef DISTANCES

#endif
