/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "fail-memory.h"

#include "fail-driver.h"

#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/memory/gtorch-memory-pool-private.h>
#include <gtorch/device/gtorch-scratch-private.h>

/* all of these are accessed atomically */
static guint fails_at, n_so_far;
static gboolean has_failed;
static gsize most;

void
fail_memory_at (guint nth)
{
  __atomic_store_n (&n_so_far, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n (&has_failed, FALSE, __ATOMIC_SEQ_CST);
  __atomic_store_n (&fails_at, nth, __ATOMIC_SEQ_CST);
}

gboolean
fail_memory_stop (void)
{
  __atomic_store_n (&fails_at, 0, __ATOMIC_SEQ_CST);
  return __atomic_load_n (&has_failed, __ATOMIC_SEQ_CST);
}

guint
fail_memory_count (void)
{
  return __atomic_load_n (&n_so_far, __ATOMIC_SEQ_CST);
}

void
fail_memory_above (gsize n_bytes)
{
  __atomic_store_n (&most, n_bytes, __ATOMIC_SEQ_CST);
}

static gboolean
may_have (gsize n_bytes)
{
  const gsize limit = __atomic_load_n (&most, __ATOMIC_SEQ_CST);
  guint nth;

  if (fail_driver_is_computing ())
    return TRUE;
  nth = __atomic_add_fetch (&n_so_far, 1, __ATOMIC_SEQ_CST);
  if (nth == __atomic_load_n (&fails_at, __ATOMIC_SEQ_CST))
    {
      __atomic_store_n (&has_failed, TRUE, __ATOMIC_SEQ_CST);
      return FALSE;
    }
  return limit == 0 || n_bytes <= limit;
}

static gboolean
device_has (gsize n_bytes, GError **error)
{
  if (may_have (n_bytes))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               "%" G_GSIZE_FORMAT " bytes are not given", n_bytes);
  return FALSE;
}

static gboolean
host_has (gint64 n, gsize size, GError **error)
{
  gsize n_bytes;

  if (n < 0 || !g_size_checked_mul (&n_bytes, n, size))
    n_bytes = G_MAXSIZE;
  if (may_have (n_bytes))
    return TRUE;
  gtorch_scratch_set_error (n, size, error);
  return FALSE;
}

/* --- entry points of the linker's --wrap --- */

GTorchStorage *__real_gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
GTorchStorage *__wrap_gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
GTorchStorage *__real_gtorch_pool_alloc (GTorchPool *pool, gsize n_bytes, gboolean captured,
                                         GError **error);
GTorchStorage *__wrap_gtorch_pool_alloc (GTorchPool *pool, gsize n_bytes, gboolean captured,
                                         GError **error);
gpointer __real_gtorch_scratch_new (gint64 n, gsize size, GError **error);
gpointer __wrap_gtorch_scratch_new (gint64 n, gsize size, GError **error);
gpointer __real_gtorch_scratch_new0 (gint64 n, gsize size, GError **error);
gpointer __wrap_gtorch_scratch_new0 (gint64 n, gsize size, GError **error);

GTorchStorage *
__wrap_gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  return device_has (n_bytes, error) ? __real_gtorch_device_alloc (device, n_bytes, error) : NULL;
}

GTorchStorage *
__wrap_gtorch_pool_alloc (GTorchPool *pool, gsize n_bytes, gboolean captured, GError **error)
{
  return device_has (n_bytes, error) ? __real_gtorch_pool_alloc (pool, n_bytes, captured, error)
                                     : NULL;
}

gpointer
__wrap_gtorch_scratch_new (gint64 n, gsize size, GError **error)
{
  return host_has (n, size, error) ? __real_gtorch_scratch_new (n, size, error) : NULL;
}

gpointer
__wrap_gtorch_scratch_new0 (gint64 n, gsize size, GError **error)
{
  return host_has (n, size, error) ? __real_gtorch_scratch_new0 (n, size, error) : NULL;
}
