/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Opening NCCL. Its own variables of the environment are left as they are. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "distributed/nccl/gtorch-nccl-private.h"

#define SONAME      "libnccl.so.2"
#define LEAST       21800 /* the first version with ncclCommSplit () */
#define LEAST_WORDS "2.18"

GTorchNccl gtorch_nccl;

static const struct
{
  const gchar *name;
  gpointer *slot;
} symbols[] = {
#define F(name, type, arguments) { #name, (gpointer *) &gtorch_nccl.name },
#include "distributed/nccl/gtorch-nccl-functions.inc"
#undef F
};

static gboolean
open_library (GError **error)
{
  gpointer library = gtorch_cuda_library_open (SONAME, error);
  gint version = 0;
  guint i;

  for (i = 0; library != NULL && i < G_N_ELEMENTS (symbols); i++)
    {
      *symbols[i].slot = gtorch_cuda_library_symbol (library, SONAME, symbols[i].name, error);
      if (*symbols[i].slot == NULL)
        return FALSE;
    }
  if (library == NULL)
    return FALSE;
  if (!gtorch_nccl_check (gtorch_nccl.ncclGetVersion (&version), "ncclGetVersion", error))
    return FALSE;
  if (version >= LEAST)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("nccl: the number of the version of %s is %d; it is at least %d, for %s"), SONAME,
               version, LEAST, LEAST_WORDS);
  return FALSE;
}

gboolean
gtorch_nccl_load (GError **error)
{
  static GMutex lock;
  static gboolean is_open;
  gboolean result;

  g_mutex_lock (&lock);
  result = is_open || open_library (error);
  is_open = result;
  g_mutex_unlock (&lock);
  return result;
}

gboolean
gtorch_nccl_check (ncclResult_t result, const gchar *what, GError **error)
{
  const gchar *detail;

  if (G_LIKELY (result == ncclSuccess))
    return TRUE;
  detail = gtorch_nccl.ncclGetLastError (NULL);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA, _ ("%s: %s%s%s"), what,
               gtorch_nccl.ncclGetErrorString (result),
               detail != NULL && *detail != '\0' ? ": " : "", detail != NULL ? detail : "");
  return FALSE;
}
