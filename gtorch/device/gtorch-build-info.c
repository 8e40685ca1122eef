/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What this build of the library is made of, and what it finds at run time. */

#include "config.h"

#include <string.h>

#include "device/gtorch-build-info.h"

#include "gtorch-build-config.h"
#include "device/gtorch-backend-private.h"

static const GTorchFact library[] = {
  { "version", GTORCH_VERSION, NULL },
  { "build-type", GTORCH_BUILD_TYPE, NULL },
  { "compiler", GTORCH_BUILD_COMPILER, NULL },
  { NULL },
};

/* Returns the facts of the library itself, for 0, and of the backends; NULL where there are none. */
static const GTorchFact *
get_facts (guint i)
{
  if (i == 0)
    return library;
  return gtorch_backends[i - 1] != NULL ? gtorch_backends[i - 1]->facts : NULL;
}

/**
 * gtorch_get_build_keys:
 *
 * Lists what [func@get_build_info] knows.
 *
 * Returns: (transfer full): the keys
 *
 * Since: 0.1
 */
gchar **
gtorch_get_build_keys (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  const GTorchFact *fact;
  guint i;

  for (i = 0; i <= GTORCH_N_DEVICE_TYPES; i++)
    for (fact = get_facts (i); fact != NULL && fact->key != NULL; fact++)
      g_strv_builder_add (builder, fact->key);
  return g_strv_builder_end (builder);
}

/**
 * gtorch_get_build_info:
 * @key: one of [func@get_build_keys]
 *
 * Says how the library was built and what it found.
 *
 * | key | value |
 * |---|---|
 * | `version` | of GTorch |
 * | `build-type` | of Meson: `debugoptimized`, `release` |
 * | `compiler` | of C, with its version |
 * | `cpu-levels` | for which levels of x86-64 there are loops: `baseline v3 v4` |
 * | `cpu-level` | which of them this process uses |
 * | `blas` | the library for products of matrices on the CPU, with its version |
 * | `cuda-compiler` | the compiler of the kernels, empty if there are none |
 * | `cuda-archs` | [func@get_arch_list], separated by blanks |
 * | `cuda-driver-minimum` | the oldest version of CUDA whose driver will do |
 * | `cuda-driver` | the version of CUDA that the installed driver is for; empty if there is none |
 *
 * One library serves every version of CUDA from the oldest on: drivers and NVIDIA's libraries are
 * looked for at run time.
 *
 * Returns: (transfer full) (nullable): the value, %NULL if there is no such key
 *
 * Since: 0.1
 */
gchar *
gtorch_get_build_info (const gchar *key)
{
  const GTorchFact *fact;
  guint i;

  g_return_val_if_fail (key != NULL, NULL);
  for (i = 0; i <= GTORCH_N_DEVICE_TYPES; i++)
    for (fact = get_facts (i); fact != NULL && fact->key != NULL; fact++)
      if (strcmp (key, fact->key) == 0)
        return fact->dup != NULL ? fact->dup () : g_strdup (fact->value);
  return NULL;
}
