/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device/gtorch-scratch-private.h"

#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"

#define ALIGNMENT 64
#define SMALL     (1024 * 1024) /* sizes in bytes up to this are not checked */

/* Computes the size and tells whether the machine has that much memory. The system promises more memory
 * than there is, so large requests are compared with what exists. */
static gboolean
measure (gint64 n, gsize size, gsize *n_bytes)
{
  gsize rounded;

  return n >= 0 && g_size_checked_mul (n_bytes, n, size)
         && g_size_checked_add (&rounded, *n_bytes, ALIGNMENT)
         && (*n_bytes <= SMALL
             || *n_bytes <= gtorch_device_get_total_memory (gtorch_device_cpu ()));
}

void
gtorch_scratch_set_error (gint64 n, gsize size, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               _ ("working memory of %" PRId64
                  " times %zu bytes cannot be allocated on cpu: out of memory"),
               n, size);
}

gboolean
gtorch_scratch_check (gint64 n, gsize size, GError **error)
{
  gsize n_bytes;

  if (measure (n, size, &n_bytes))
    return TRUE;
  gtorch_scratch_set_error (n, size, error);
  return FALSE;
}

gpointer
gtorch_scratch_new (gint64 n, gsize size, GError **error)
{
  gpointer data = NULL;
  gsize n_bytes;

  if (!measure (n, size, &n_bytes) || posix_memalign (&data, ALIGNMENT, MAX (n_bytes, 1)) != 0)
    {
      gtorch_scratch_set_error (n, size, error);
      return NULL;
    }
  return data;
}

gpointer
gtorch_scratch_new0 (gint64 n, gsize size, GError **error)
{
  gpointer data = NULL;
  gsize n_bytes;

  /* Fresh pages are zero already, which calloc () takes advantage of. */
  if (!measure (n, size, &n_bytes) || (data = calloc (1, MAX (n_bytes, 1))) == NULL)
    gtorch_scratch_set_error (n, size, error);
  return data;
}
