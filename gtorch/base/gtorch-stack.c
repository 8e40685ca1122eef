/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Stacks of threads differ by a factor of a hundred, and so does what a function of the program takes of
 * them: so what is left is measured, and calls within one another are not counted. */

#include "config.h"

#include "base/gtorch-stack-private.h"

#include <glib/gi18n-lib.h>
#include <pthread.h>

#include "base/gtorch-error.h"

/* What must be left: enough for operations, the program's function and the error. */
#define RESERVE (256 * 1024)

static __thread guintptr lowest; /* an address above which there is enough; 0: not known yet */

/* The stack of the thread, of which a quarter is reserved if it is small. */
static gboolean
find_stack (guintptr *start, guintptr *end)
{
  pthread_attr_t attr;
  gpointer address;
  gsize size, guard;
  gboolean found;

  if (pthread_getattr_np (pthread_self (), &attr) != 0)
    return FALSE;
  found = pthread_attr_getstack (&attr, &address, &size) == 0
          && pthread_attr_getguardsize (&attr, &guard) == 0 && guard < size;
  pthread_attr_destroy (&attr);
  if (!found)
    return FALSE;
  *start = (guintptr) address + guard;
  *end = (guintptr) address + size;
  lowest = *start + MIN (RESERVE, (*end - *start) / 4);
  return TRUE;
}

/* With the part of it that is left, if that is little. */
static gboolean
look (const guintptr here, gsize *left, gsize *size)
{
  guintptr start, end;

  if (G_LIKELY (lowest != 0 && here > lowest))
    return FALSE;
  /* a program may run on a stack of its own, of which nothing is known */
  if (!find_stack (&start, &end) || here < start || here >= end || here > lowest)
    return FALSE;
  *left = here - start;
  *size = end - start;
  return TRUE;
}

gboolean
gtorch_stack_is_low (void)
{
  gsize left, size;

  return look ((guintptr) __builtin_frame_address (0), &left, &size);
}

gboolean
gtorch_stack_check (const gchar *op, GError **error)
{
  gsize left, size;

  if (!look ((guintptr) __builtin_frame_address (0), &left, &size))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: only %zu of the %zu bytes of the thread's stack are left: a hook, function "
                  "or module calls what calls it, too often"),
               op, left, size);
  return FALSE;
}
