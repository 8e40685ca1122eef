/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Shared helpers of the tests of synchronisation between streams. They run on the fake driver and, with
 * ON_A_REAL_GPU, on that of a GPU. */

#include <tests/sanitizer.h>

#include "cuda-test.h"
#include "warnings.h"

#ifdef ON_A_REAL_GPU
#define fake_cuda_set_seed(seed) ((void) (seed))
#endif

/* Skips the test if there is no GPU, or no kernels. Call it before g_test_init (). */
static inline gboolean
skips_without_gpu (void)
{
#ifdef ON_A_REAL_GPU
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;
  GTorchDevice *found = gtorch_device_cuda (0, &error);

  if (found != NULL)
    x = gtorch_full (GTORCH_SHAPE (5), 2, GTORCH_DTYPE_FLOAT32, found, &error);
  if (x == NULL)
    {
      g_print ("1..0 # SKIP %s\n", error->message);
      return TRUE;
    }
#endif
  return FALSE;
}

/* Streams of the CPU are threads: ThreadSanitizer would report the deliberate races, too. */
#ifdef __SANITIZE_THREAD__
#define RACE_ON_CPU(name) g_test_skip ("threads race on purpose, which ThreadSanitizer reports")
#else
#define RACE_ON_CPU(name) name ()
#endif

/* Makes name_on_cpu () and name_on_gpu (), which set the program's variable `device`. */
#define ON_BOTH_AS(name, run_on_cpu) \
  static void name##_on_cpu (void)   \
  {                                  \
    device = gtorch_device_cpu ();   \
    run_on_cpu;                      \
  }                                  \
  static void name##_on_gpu (void)   \
  {                                  \
    guint seed;                      \
                                     \
    device = gpu (0);                \
    for (seed = 0; seed < 4; seed++) \
      {                              \
        fake_cuda_set_seed (seed);   \
        name ();                     \
      }                              \
  }
#define ON_BOTH(name) ON_BOTH_AS (name, name ())
#define RACING(name)  ON_BOTH_AS (name, RACE_ON_CPU (name))
