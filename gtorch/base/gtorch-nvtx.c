/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Marks and ranges that programs name, for NVIDIA's tools (NVTX).
 *
 * A tool that traces a process names a library in NVTX_INJECTION64_PATH. Whoever reports events,
 * here the first function that is called, loads it and calls its InitializeInjectionNvtx2 (),
 * which asks for tables of pointers to slots for functions, one table for each kind of events,
 * and writes its own functions into the slots. There is no library of NVIDIA's in between: what
 * it does is in headers, and this file does the same for the events of the kind CORE. The tables
 * of the other kinds are there because tools refuse a process without them. A slot that is NULL
 * is an event that nobody wants. */

#include "config.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/gtorch-nvtx.h"

#include "base/gtorch-environment-private.h"

#define PATH_VARIABLE (sizeof (gpointer) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH")
#define ENTRY         "InitializeInjectionNvtx2"

/* What there is without a tool, as NVIDIA's headers define it. */
#define NO_PUSH_POP (-2)

/* The kinds of events. */
enum
{
  KIND_CORE = 1,
  KIND_DRIVER,
  KIND_OPENCL,
  KIND_RUNTIME,
  KIND_DOMAINS,
  KIND_SYNC,
  N_KINDS,
};

/* The events of the kind CORE that are reported. */
enum
{
  EVENT_MARK = 2,
  EVENT_START = 5,
  EVENT_END = 7,
  EVENT_PUSH = 9,
  EVENT_POP = 11,
};

/* The first number of an event that a kind has not. */
static const guint n_events[N_KINDS] = {
  [KIND_CORE] = 16,   [KIND_DRIVER] = 9,   [KIND_OPENCL] = 15,
  [KIND_RUNTIME] = 7, [KIND_DOMAINS] = 16, [KIND_SYNC] = 7,
};

#define MAX_EVENTS 16

typedef void (*Slot) (void);

static Slot slots[N_KINDS][MAX_EVENTS];
static Slot *tables[N_KINDS][MAX_EVENTS + 1]; /* the first and the last are NULL */

static gint
get_table (guint kind, Slot ***table, guint *n)
{
  if (kind == 0 || kind >= N_KINDS)
    return 0;
  if (n != NULL)
    *n = n_events[kind];
  if (table != NULL)
    *table = tables[kind];
  return 1;
}

static void
ignore_version (G_GNUC_UNUSED guint32 version)
{
}

/* The two tables that a tool asks for by number. */
static const struct
{
  gsize size;
  gint (*get_table) (guint kind, Slot ***table, guint *n);
} callbacks = { sizeof callbacks, get_table };

static const struct
{
  gsize size;
  guint32 version, reserved;
  void (*set_version) (guint32 version);
} versions = { sizeof versions, 3, 0, ignore_version };

static gconstpointer
export_table (guint32 number)
{
  return number == 1 ? (gconstpointer) &callbacks : number == 3 ? (gconstpointer) &versions : NULL;
}

static void
load (const gchar *path)
{
  gpointer library = gtorch_library_open (path, RTLD_LAZY);
  gint (*begin) (gconstpointer (*export) (guint32 number)) = NULL;
  guint kind, i;

  if (library == NULL)
    {
      g_warning ("nvtx: the tool %s of %s cannot be loaded: %s", path, PATH_VARIABLE,
                 gtorch_library_error ());
      return;
    }
  *(gpointer *) &begin = dlsym (library, ENTRY);
  for (kind = 1; kind < N_KINDS; kind++)
    for (i = 1; i < n_events[kind]; i++)
      tables[kind][i] = &slots[kind][i];
  if (begin != NULL && begin (export_table) != 0)
    return; /* it stays loaded */
  g_warning ("nvtx: the tool %s of %s does not take part", path, PATH_VARIABLE);
  for (kind = 1; kind < N_KINDS; kind++)
    for (i = 1; i < n_events[kind]; i++)
      slots[kind][i] = NULL;
}

/* The function of the tool, or NULL. */
static Slot
find (guint event)
{
  static gsize is_ready;

  if (g_once_init_enter (&is_ready))
    {
      const gchar *path = gtorch_getenv (PATH_VARIABLE);

      if (path != NULL && path[0] != '\0')
        load (path);
      g_once_init_leave (&is_ready, 1);
    }
  return slots[KIND_CORE][event];
}

/**
 * gtorch_nvtx_is_traced:
 *
 * Tells whether a tool, such as Nsight Systems, wants to know of ranges.
 *
 * Names that take time to make need not be made for nobody. The functions below do nothing without a tool.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_nvtx_is_traced (void)
{
  return find (EVENT_PUSH) != NULL;
}

/**
 * gtorch_nvtx_mark:
 * @message: the name of the mark
 *
 * Marks this moment in the timeline of a tool.
 *
 * Since: 0.1
 */
void
gtorch_nvtx_mark (const gchar *message)
{
  Slot call = find (EVENT_MARK);

  g_return_if_fail (message != NULL);
  if (call != NULL)
    ((void (*) (const gchar *)) call) (message);
}

/**
 * gtorch_nvtx_range_push:
 * @message: the name of the range
 *
 * Begins a range of this thread in the timeline of a tool, inside those that have begun before.
 *
 * The range covers the time in which the host enqueues work, not that in which the GPU does it; tools show
 * the latter beside it.
 *
 * ```c
 * gtorch_nvtx_range_push ("forward");
 * output = gtorch_module_forward (model, input, &error);
 * gtorch_nvtx_range_pop ();
 * ```
 *
 * Returns: how many ranges it is inside of; negative without a tool
 *
 * Since: 0.1
 */
gint
gtorch_nvtx_range_push (const gchar *message)
{
  Slot call = find (EVENT_PUSH);

  g_return_val_if_fail (message != NULL, NO_PUSH_POP);
  return call != NULL ? ((gint (*) (const gchar *)) call) (message) : NO_PUSH_POP;
}

/**
 * gtorch_nvtx_range_pop:
 *
 * Ends the range that this thread has begun last with [func@nvtx_range_push].
 *
 * Returns: how many ranges it was inside of; negative without a tool
 *
 * Since: 0.1
 */
gint
gtorch_nvtx_range_pop (void)
{
  Slot call = find (EVENT_POP);

  return call != NULL ? ((gint (*) (void)) call) () : NO_PUSH_POP;
}

/**
 * gtorch_nvtx_range_start:
 * @message: the name of the range
 *
 * Begins a range that any thread may end, and that may overlap others.
 *
 * Returns: a number for [func@nvtx_range_end]; 0 without a tool
 *
 * Since: 0.1
 */
guint64
gtorch_nvtx_range_start (const gchar *message)
{
  Slot call = find (EVENT_START);

  g_return_val_if_fail (message != NULL, 0);
  return call != NULL ? ((guint64 (*) (const gchar *)) call) (message) : 0;
}

/**
 * gtorch_nvtx_range_end:
 * @range_id: the result of [func@nvtx_range_start]
 *
 * Ends a range of the timeline of a tool.
 *
 * Since: 0.1
 */
void
gtorch_nvtx_range_end (guint64 range_id)
{
  Slot call = find (EVENT_END);

  if (call != NULL)
    ((void (*) (guint64)) call) (range_id);
}
