/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "device/gtorch-device-monitor.h"

#include <string.h>

#include "device/gtorch-device-sample-private.h"
#include "base/gtorch-field-private.h"

/**
 * GTorchDeviceProcess:
 *
 * A process that uses a GPU, as reported by a [class@DeviceMonitor].
 *
 * Since: 0.1
 */

struct _GTorchDeviceProcess
{
  GObject parent_instance;
  guint pid;
  guint64 memory_used;
  gchar *name;
};

G_DEFINE_TYPE (GTorchDeviceProcess, gtorch_device_process, G_TYPE_OBJECT)

static const GTorchField fields[] = {
  /**
   * GTorchDeviceProcess:pid:
   *
   * The process ID, as the driver knows it.
   *
   * Since: 0.1
   */
  { "pid", GTORCH_FIELD_UINT, GTORCH_FIELD (GTorchDeviceProcess, pid),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDeviceProcess:memory-used:
   *
   * The memory of the device that the process uses, in bytes; 0 if that is not known.
   *
   * Since: 0.1
   */
  { "memory-used", GTORCH_FIELD_UINT64, GTORCH_FIELD (GTorchDeviceProcess, memory_used),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDeviceProcess:name:
   *
   * The name of the program, without folders; %NULL if it is not known.
   *
   * Since: 0.1
   */
  { "name", GTORCH_FIELD_STRING, GTORCH_FIELD (GTorchDeviceProcess, name),
    .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_device_process_finalize (GObject *object)
{
  g_free (((GTorchDeviceProcess *) object)->name);
  G_OBJECT_CLASS (gtorch_device_process_parent_class)->finalize (object);
}

static void
gtorch_device_process_class_init (GTorchDeviceProcessClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_device_process_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_device_process_init (GTorchDeviceProcess *self)
{
}

/**
 * gtorch_device_process_get_pid:
 * @self: a process
 *
 * Gets the process ID, as the driver knows it: in a container it may differ from the one that the process
 * itself sees.
 *
 * Returns: the process ID
 *
 * Since: 0.1
 */
guint
gtorch_device_process_get_pid (GTorchDeviceProcess *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_PROCESS (self), 0);
  return self->pid;
}

/**
 * gtorch_device_process_get_memory_used:
 * @self: a process
 *
 * Gets the memory of the device that the process uses.
 *
 * Returns: the number of bytes; 0 if that is not known
 *
 * Since: 0.1
 */
guint64
gtorch_device_process_get_memory_used (GTorchDeviceProcess *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_PROCESS (self), 0);
  return self->memory_used;
}

/**
 * gtorch_device_process_get_name:
 * @self: a process
 *
 * Gets the name of the program that the process runs, without folders.
 *
 * It is looked up by the process ID, which in a container may be that of another process, or of none.
 *
 * Returns: (nullable): the name; %NULL if it is not known
 *
 * Since: 0.1
 */
const gchar *
gtorch_device_process_get_name (GTorchDeviceProcess *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_PROCESS (self), NULL);
  return self->name;
}

void
gtorch_process_sample_find_name (GTorchProcessSample *process)
{
  g_autofree gchar *path = g_strdup_printf ("/proc/%u/cmdline", process->pid);
  g_autofree gchar *text = NULL;
  g_autofree gchar *name = NULL;
  g_autofree gchar *valid = NULL;
  const gchar *end;

  process->name[0] = '\0';
  /* Arguments end with a zero byte each; a thread of the kernel has none. */
  if (!g_file_get_contents (path, &text, NULL, NULL) || text[0] == '\0')
    return;
  name = g_path_get_basename (text);
  valid = g_utf8_make_valid (name, -1);
  /* As many whole characters as there is room for. */
  g_utf8_validate (valid, (gssize) MIN (strlen (valid), GTORCH_PROCESS_NAME_MAX - 1), &end);
  memcpy (process->name, valid, end - valid);
  process->name[end - valid] = '\0';
}
