/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "fail-driver.h"

#include <dlfcn.h>

#include <gtorch/device/gtorch-device-private.h>

#include "test-device.h"

static struct
{
  void (*fail) (const gchar *name, guint nth, gint result);
  gboolean (*clear_faults) (void);
  gboolean (*is_borrowing) (void);
} driver;

/* If the program runs on the driver, the library has opened it before main (). */
static void
find_driver (void)
{
  static gsize is_done;
  const gchar *path = g_getenv ("GTORCH_CUDA_DRIVER");
  void *library;

  if (!g_once_init_enter (&is_done))
    return;
  library = path != NULL && test_device () != gtorch_device_cpu ()
                ? dlopen (path, RTLD_NOW | RTLD_NOLOAD)
                : NULL;
  if (library != NULL)
    {
      driver.fail = dlsym (library, "fake_cuda_fail");
      driver.clear_faults = dlsym (library, "fake_cuda_clear_faults");
      driver.is_borrowing = dlsym (library, "fake_cuda_is_borrowing");
      g_assert_nonnull (driver.fail);
      g_assert_nonnull (driver.clear_faults);
      g_assert_nonnull (driver.is_borrowing);
    }
  g_once_init_leave (&is_done, 1);
}

gboolean
fail_driver_can (void)
{
  find_driver ();
  return driver.fail != NULL;
}

void
fail_driver_at (guint nth, gint result)
{
  find_driver ();
  driver.fail (NULL, nth, result);
}

gboolean
fail_driver_stop (void)
{
  const gboolean has_failed = driver.clear_faults ();

  gtorch_device_forget_failure (test_device ());
  return has_failed;
}

gboolean
fail_driver_is_computing (void)
{
  find_driver ();
  return driver.is_borrowing != NULL && driver.is_borrowing ();
}
