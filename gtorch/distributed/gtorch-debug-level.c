/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-debug-level.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "distributed/gtorch-engine-private.h"

#define UNKNOWN -1 /* the environment was not asked yet */

static gint current = UNKNOWN;
static gint is_named; /* a level, by the program or the environment */

GType
gtorch_debug_level_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_DEBUG_LEVEL_OFF, "GTORCH_DEBUG_LEVEL_OFF", "off" },
        { GTORCH_DEBUG_LEVEL_INFO, "GTORCH_DEBUG_LEVEL_INFO", "info" },
        { GTORCH_DEBUG_LEVEL_DETAIL, "GTORCH_DEBUG_LEVEL_DETAIL", "detail" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchDebugLevel", values));
    }
  return type;
}

/* That of the library's own variable or, without it, of PyTorch's, whose words are in capitals. */
static gint
ask (void)
{
  static const gchar *const theirs[] = { "off", "info", "detail" };
  const gint own = gtorch_env_choice ("GTORCH_DISTRIBUTED_DEBUG");
  const gchar *text = gtorch_getenv ("TORCH_DISTRIBUTED_DEBUG");
  guint i;

  g_atomic_int_set (&is_named, TRUE);
  if (own >= 0)
    return own;
  for (i = 0; text != NULL && i < G_N_ELEMENTS (theirs); i++)
    if (g_ascii_strcasecmp (text, theirs[i]) == 0)
      return (gint) i;
  g_atomic_int_set (&is_named, FALSE);
  return GTORCH_DEBUG_LEVEL_OFF;
}

/**
 * gtorch_distributed_get_debug_level:
 *
 * Gets how closely the operations of groups of processes are watched.
 *
 * Returns: what [func@distributed_set_debug_level] has set; else what the environment variable
 *   `GTORCH_DISTRIBUTED_DEBUG` says or, without it, `TORCH_DISTRIBUTED_DEBUG`
 *
 * Since: 0.1
 */
GTorchDebugLevel
gtorch_distributed_get_debug_level (void)
{
  gint level = g_atomic_int_get (&current);

  if (level == UNKNOWN)
    {
      level = ask ();
      if (!g_atomic_int_compare_and_exchange (&current, UNKNOWN, level))
        level = g_atomic_int_get (&current);
    }
  return (GTorchDebugLevel) level;
}

/**
 * gtorch_distributed_set_debug_level:
 * @level: a level, the same in all processes
 * @error: return location for an error
 *
 * Sets how closely the operations of groups are watched that are made from now on.
 *
 * With %GTORCH_DEBUG_LEVEL_DETAIL the ranks of a group tell each other by its store what they are about to
 * do: the operation, shape and dtype of its tensor, the type of its device, the reduction and the rank that
 * sends or gets. If the calls differ, none begins, and each rank gets an error that names two ranks and both
 * calls. If a rank does not come within the group's timeout, the others get %G_IO_ERROR_TIMED_OUT with its
 * number. Each call then waits for the other ranks and takes four messages to the store, so this is for
 * finding mistakes. A group that was made without a store gets one of its own.
 *
 * Groups of MPI compare the kinds and sizes of their collectives in any case, by a small exchange of their
 * own, unless %GTORCH_DEBUG_LEVEL_OFF is set here, or `GTORCH_DISTRIBUTED_DEBUG=off` in the environment, on
 * all ranks: calls that differ can then destroy memory.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_set_debug_level (GTorchDebugLevel level, GError **error)
{
  if (level > GTORCH_DEBUG_LEVEL_DETAIL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_set_debug_level: there is no level %d"), (gint) level);
      return FALSE;
    }
  g_atomic_int_set (&is_named, TRUE);
  g_atomic_int_set (&current, (gint) level);
  return TRUE;
}

gboolean
gtorch_group_compares_calls (void)
{
  return gtorch_distributed_get_debug_level () != GTORCH_DEBUG_LEVEL_OFF
         || !g_atomic_int_get (&is_named);
}

/* --- names of operations in errors --- */

/* Of the thread, not owned; __thread memory is scarce. */
static GPrivate outermost; /* name of a function that consists of several operations; or NULL */
static GPrivate n_begun;   /* by the program */

GTorchGroupCall
gtorch_group_call_begin (const gchar *name)
{
  const gchar *former = g_private_get (&outermost);

  if (former == NULL)
    g_private_set (&outermost, (gpointer) name);
  return former;
}

void
gtorch_group_call_end (GTorchGroupCall *former)
{
  g_private_set (&outermost, (gpointer) *former);
}

/**
 * gtorch_distributed_begin_operation:
 * @name: the name of the operation, such as `broadcast_object_list`
 *
 * Begins an operation that consists of several operations of groups: in this thread, errors of these name
 * @name until [func@distributed_end_operation]. Within another one it changes nothing.
 *
 * ```c
 * gtorch_distributed_begin_operation ("share_settings");
 * settings = gtorch_process_group_broadcast_variant (group, own, 0, &error);
 * gtorch_distributed_end_operation ();
 * ```
 *
 * Since: 0.1
 */
void
gtorch_distributed_begin_operation (const gchar *name)
{
  const guint n = GPOINTER_TO_UINT (g_private_get (&n_begun));

  g_return_if_fail (name != NULL);
  g_private_set (&n_begun, GUINT_TO_POINTER (n + 1));
  if (n == 0 && g_private_get (&outermost) == NULL)
    g_private_set (&outermost, (gpointer) g_intern_string (name));
}

/**
 * gtorch_distributed_end_operation:
 *
 * Ends what [func@distributed_begin_operation] has begun in this thread; does nothing if nothing was.
 *
 * Since: 0.1
 */
void
gtorch_distributed_end_operation (void)
{
  const guint n = GPOINTER_TO_UINT (g_private_get (&n_begun));

  if (n == 0)
    return;
  g_private_set (&n_begun, GUINT_TO_POINTER (n - 1));
  if (n == 1)
    g_private_set (&outermost, NULL);
}

const gchar *
gtorch_group_call_name (const gchar *name)
{
  const gchar *outer = g_private_get (&outermost);

  return outer != NULL ? outer : name;
}
