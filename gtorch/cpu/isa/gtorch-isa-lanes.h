/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reductions of one row in a fixed number of lanes, whose order does not depend on the processor.
 * Included with T and NAME defined. */

#define LANES 32

#define LANE_LOOP(INIT, X, STEP, COMBINE)                \
  T lane[LANES] __attribute__ ((aligned (64)));          \
  gint64 i;                                              \
  for (int l = 0; l < LANES; l++)                        \
    lane[l] = INIT;                                      \
  for (i = 0; i + LANES <= n; i += LANES)                \
    _Pragma ("omp simd") for (int l = 0; l < LANES; l++) \
    {                                                    \
      const T acc = lane[l], v = X (i + l);              \
      lane[l] = STEP;                                    \
    }                                                    \
  for (int l = 0; i + l < n; l++)                        \
    {                                                    \
      const T acc = lane[l], v = X (i + l);              \
      lane[l] = STEP;                                    \
    }                                                    \
  for (int w = LANES / 2; w > 0; w /= 2)                 \
    for (int l = 0; l < w; l++)                          \
      {                                                  \
        const T acc = lane[l], v = lane[l + w];          \
        lane[l] = COMBINE;                               \
      }                                                  \
  return lane[0];

static inline T
NAME (row_max) (const T *x, gint64 n)
{
#define X(i) x[i]
  LANE_LOOP (-(T) INFINITY, X, v > acc ? v : acc, v > acc ? v : acc)
#undef X
}

static inline T
NAME (row_sum) (const T *x, gint64 n)
{
#define X(i) x[i]
  LANE_LOOP (0, X, acc + v, acc + v)
#undef X
}

/* The sum of the squared distances from mean. */
static inline T
NAME (row_spread) (const T *x, gint64 n, T mean)
{
#define X(i) (x[i] - mean)
  LANE_LOOP (0, X, acc + v * v, acc + v)
#undef X
}

static inline T
NAME (row_dot) (const T *x, const T *y, gint64 n)
{
#define X(i) (x[i] * y[i])
  LANE_LOOP (0, X, acc + v, acc + v)
#undef X
}

/* The sum of x (y - mean). */
static inline T
NAME (row_dot_centred) (const T *x, const T *y, gint64 n, T mean)
{
#define X(i) (x[i] * (y[i] - mean))
  LANE_LOOP (0, X, acc + v, acc + v)
#undef X
}

#undef LANES
#undef LANE_LOOP
