/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls of modules in profiles. */

#include "config.h"

#include "nn/gtorch-module-profile.h"

#include "nn/gtorch-module-private.h"

/* A number that no other module has, also when this one is gone. */
static guint64
serial_of (GTorchModule *self)
{
  static guint64 last;
  guint64 *serial = &gtorch_module_get_private (self)->serial;
  guint64 found = __atomic_load_n (serial, __ATOMIC_RELAXED);

  if (found == 0)
    {
      const guint64 fresh = __atomic_add_fetch (&last, 1, __ATOMIC_RELAXED);

      if (__atomic_compare_exchange_n (serial, &found, fresh, FALSE, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED))
        found = fresh;
    }
  return found;
}

static gchar *
path_of (GTorchModule *self)
{
  gchar *path = gtorch_module_dup_path (&gtorch_module_get_private (self)->outer, self);

  return path != NULL ? path : g_strdup ("");
}

GTorchProfileScope
gtorch_module_profile_scope (GTorchModule *self)
{
  g_autofree gchar *path = NULL;

  if (G_LIKELY (!gtorch_trace_wants_modules ()))
    return (GTorchProfileScope){ 0, GTORCH_RECORD_MODULE, NULL };
  path = path_of (self);
  return gtorch_profile_scope_begin_module (gtorch_module_type_name (self), path, serial_of (self));
}

/**
 * gtorch_module_profile_call:
 * @self: a module
 *
 * Begins a call of the module in profiles, for bindings, which call forward of a class of the program by
 * themselves: [method@Module.forward] does it for all others.
 *
 * ```python
 * call = module.profile_call()
 * try:
 *     output = compute(*inputs)
 * finally:
 *     if call is not None:
 *         call.end()
 * ```
 *
 * Returns: (transfer full) (nullable): what ends the call, or %NULL unless a profiler records with
 *   [property@Profiler:with-modules] or [property@Profiler:with-stack]
 *
 * Since: 0.1
 */
GTorchProfileRange *
gtorch_module_profile_call (GTorchModule *self)
{
  g_autofree gchar *path = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  if (G_LIKELY (!gtorch_trace_wants_modules ()))
    return NULL;
  path = path_of (self);
  return gtorch_profile_range_new_module (gtorch_module_type_name (self), path, serial_of (self));
}
