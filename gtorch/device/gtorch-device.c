/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-check-private.h"
#include "device/gtorch-device-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "device/gtorch-generator-private.h"

/**
 * GTorchDevice:
 *
 * Something that holds tensors and computes with them: the CPU, or a GPU.
 *
 * There is one object for each device, and it lives as long as the process: devices can be compared by
 * pointer. [ctor@Device.new_from_string] finds one by its name. An operation runs on the device of its
 * operands; the default device ([func@get_default_device]) is where tensors are created when none is named.
 *
 * Each thread has a current device of each type ([func@Device.get_current]), initially the one with index
 * 0. The device called `cuda`, without a number, is an object of its own: each use of it stands for the GPU
 * that is current in that thread at that moment. Its index is -1, it equals none of the devices with a
 * number, and it emits no signals.
 *
 * Since: 0.1
 */

#define DEFAULT_PRESSURE_THRESHOLD (G_GUINT64_CONSTANT (512) << 20)

enum
{
  ERROR,
  MEMORY_PRESSURE,
  N_SIGNALS
};

static guint signals[N_SIGNALS];
static GMutex lock; /* protects members of devices that are created lazily */
GTORCH_FORK_LOCK (lock);

static void (*add_allocator) (GTorchDevice *device);

G_DEFINE_TYPE (GTorchDevice, gtorch_device, G_TYPE_OBJECT)

void
gtorch_device_set_add_allocator (void (*func) (GTorchDevice *device))
{
  add_allocator = func;
}

GType
gtorch_device_type_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_DEVICE_TYPE_CPU, "GTORCH_DEVICE_TYPE_CPU", "cpu" },
    { GTORCH_DEVICE_TYPE_CUDA, "GTORCH_DEVICE_TYPE_CUDA", "cuda" },
    { GTORCH_DEVICE_TYPE_PRIVATE, "GTORCH_DEVICE_TYPE_PRIVATE", "private" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchDeviceType", values));
  return type;
}

/* Constructing a plain GTorchDevice, as bindings do, returns the CPU. */
static GObject *
gtorch_device_constructor (GType type, guint n_properties, GObjectConstructParam *properties)
{
  if (type == GTORCH_TYPE_DEVICE)
    return g_object_ref (G_OBJECT (gtorch_device_cpu ()));
  return G_OBJECT_CLASS (gtorch_device_parent_class)->constructor (type, n_properties, properties);
}

typedef GTorchDevice Self;

static const GTorchField fields[] = {
  /**
   * GTorchDevice:type: (getter get_device_type)
   *
   * The type of the device.
   *
   * Since: 0.1
   */
  { "type", GTORCH_PROPERTY_ENUM (GTorchDeviceType, gtorch_device_type_get_type,
                                  gtorch_device_get_device_type, NULL) },
  /**
   * GTorchDevice:index:
   *
   * The index among the devices of its type, from 0; -1 for the device that stands for the current one.
   *
   * Since: 0.1
   */
  { "index", GTORCH_PROPERTY_INT (gtorch_device_get_index, NULL), .low = -1, .high = INFINITY },
  /**
   * GTorchDevice:name:
   *
   * The product name.
   *
   * Since: 0.1
   */
  { "name", GTORCH_PROPERTY_STRING (gtorch_device_get_name, NULL) },
};

static void
gtorch_device_class_init (GTorchDeviceClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  gtorch_checks_init ();
  object_class->constructor = gtorch_device_constructor;
  GTORCH_FIELDS (klass, fields);
  gtorch_device_install_info_properties (object_class);
  gtorch_device_install_math_properties (object_class);
  gtorch_device_install_wait_property (object_class);

  /**
   * GTorchDevice::error:
   * @self: the device
   * @error: the error
   *
   * The device has failed; every further call that uses it fails with the same error. See
   * [method@Device.check].
   *
   * Emitted once, in the main context that was the thread-default one of the thread that used the device
   * first.
   *
   * Since: 0.1
   */
  signals[ERROR] = g_signal_new ("error", GTORCH_TYPE_DEVICE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 1, G_TYPE_ERROR);
  /**
   * GTorchDevice::memory-pressure:
   * @self: the device
   * @n_bytes: how much is about to be allocated
   *
   * Much memory was allocated since the last emission, or an allocation would fail.
   *
   * Handlers should drop tensors that are no longer needed: a language with a garbage collector runs it,
   * since the collector does not know how much memory a small object stands for. Emitted inside an
   * allocation, and only in the thread that used the library first.
   *
   * Since: 0.1
   */
  signals[MEMORY_PRESSURE] = g_signal_new ("memory-pressure", GTORCH_TYPE_DEVICE, G_SIGNAL_RUN_LAST,
                                           0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void
gtorch_device_init (GTorchDevice *self)
{
  self->owner = g_thread_self ();
  self->context = g_main_context_ref_thread_default ();
  self->wait_policy = gtorch_default_wait_policy ();
  self->pressure_threshold = DEFAULT_PRESSURE_THRESHOLD;
  self->pressure_mark = DEFAULT_PRESSURE_THRESHOLD;
  add_allocator (self);
}

/**
 * gtorch_device_get_device_type: (get-property type)
 * @self: a device
 *
 * Gets the type of the device.
 *
 * Returns: the type
 *
 * Since: 0.1
 */
GTorchDeviceType
gtorch_device_get_device_type (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), GTORCH_DEVICE_TYPE_CPU);
  return self->type;
}

/**
 * gtorch_device_get_index:
 * @self: a device
 *
 * Gets the index of the device among those of its type.
 *
 * Returns: the index, from 0; -1 for the device that stands for the current one
 *
 * Since: 0.1
 */
gint
gtorch_device_get_index (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), -1);
  return self->index;
}

/**
 * gtorch_device_get_name:
 * @self: a device
 *
 * Gets the product name.
 *
 * Returns: (transfer none): the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_device_get_name (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  return GTORCH_DEVICE_GET_CLASS (self)->get_info (self)->name;
}

/**
 * gtorch_device_to_string:
 * @self: a device
 *
 * Gets the name by which [ctor@Device.new_from_string] finds the device: `cpu`, `cuda:0`, `cuda`.
 *
 * Returns: (transfer full): the string
 *
 * Since: 0.1
 */
gchar *
gtorch_device_to_string (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  return g_strdup (self->string);
}

/**
 * gtorch_device_equal:
 * @self: a device
 * @other: another device
 *
 * Tells whether both are the same device. `cuda` is not `cuda:0`; see [method@Device.resolve].
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_device_equal (GTorchDevice *self, GTorchDevice *other)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_DEVICE (other), FALSE);
  return self == other;
}

/* --- generators and priorities --- */

/**
 * gtorch_device_get_default_generator:
 * @self: a device
 *
 * Gets the generator that random operations on the device use when none is given.
 *
 * Returns: (transfer none): the generator
 *
 * Since: 0.1
 */
GTorchGenerator *
gtorch_device_get_default_generator (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  g_mutex_lock (&lock);
  if (self->generator == NULL)
    self->generator = gtorch_generator_new ();
  g_mutex_unlock (&lock);
  return self->generator;
}

/**
 * gtorch_device_get_stream_priority_range:
 * @self: a device
 * @least: (out) (optional): return location for the lowest priority
 * @greatest: (out) (optional): return location for the highest priority
 *
 * Gets the range of priorities that [ctor@Stream.new] distinguishes; smaller numbers go first. Priorities
 * outside it are clamped. Both are 0 if all streams have the same priority, or if the device cannot be
 * queried.
 *
 * Since: 0.1
 */
void
gtorch_device_get_stream_priority_range (GTorchDevice *self, gint *least, gint *greatest)
{
  gint last = 0, first = 0;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  if (GTORCH_DEVICE_GET_CLASS (self)->get_priorities != NULL)
    GTORCH_DEVICE_GET_CLASS (self)->get_priorities (self, &last, &first);
  if (least != NULL)
    *least = last;
  if (greatest != NULL)
    *greatest = first;
}

/* --- failures --- */

static gboolean
emit_error (gpointer data)
{
  GTorchDevice *self = data;
  g_autoptr (GError) error = NULL;

  if (!gtorch_device_works (self, &error))
    g_signal_emit (self, signals[ERROR], 0, error);
  return G_SOURCE_REMOVE;
}

void
gtorch_device_fail (GTorchDevice *self, GError *reason)
{
  GError *none = NULL;
  GSource *source;

  if (!__atomic_compare_exchange_n (&self->failure, &none, reason, FALSE, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
    {
      g_error_free (reason);
      return;
    }
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_static_name (source, "[GTorch] device failed");
  g_source_set_callback (source, emit_error, self, NULL);
  g_source_attach (source, self->context);
  g_source_unref (source);
}

void
gtorch_device_forget_failure (GTorchDevice *self)
{
  GError *failure = __atomic_exchange_n (&self->failure, NULL, __ATOMIC_ACQ_REL);

  g_clear_error (&failure);
}

/**
 * gtorch_device_check:
 * @self: a device
 * @error: return location for an error
 *
 * Tells, without waiting, whether the device can still be used.
 *
 * Some errors, such as a kernel that writes out of bounds, invalidate everything on a GPU: its memory
 * cannot be read any more, and every later call fails with the first error. The call that follows the
 * failed work detects it; the message says which work it can have been. With `GTORCH_CHECK=errors` in the
 * environment the message names the operation that failed, and where in the program it was called. Only a
 * new process can use the device again.
 *
 * Returns: %TRUE if the device has not failed; %FALSE with %GTORCH_ERROR_DEVICE_LOST
 *
 * Since: 0.1
 */
gboolean
gtorch_device_check (GTorchDevice *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  self = gtorch_device_resolved (self);
  return gtorch_device_works (self, error);
}

/* --- memory --- */

/**
 * gtorch_device_get_total_memory:
 * @self: a device
 *
 * Gets the memory of the device; for the CPU memory and swap space, or the limit of the container.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_total_memory (GTorchDevice *self)
{
  guint64 total = 0;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  GTORCH_DEVICE_GET_CLASS (self)->get_memory_info (self, NULL, &total, NULL);
  return total;
}

/**
 * gtorch_device_get_memory_info:
 * @self: a device
 * @available: (out) (optional): return location for the number of free bytes
 * @total: (out) (optional): return location for the total number of bytes
 * @error: return location for an error
 *
 * Asks the driver, or the kernel for the CPU, how much memory is free for all programs.
 *
 * Memory that the [class@Allocator] caches does not count as free; [method@Allocator.trim] returns it to
 * the system.
 *
 * ```c
 * guint64 available, total;
 *
 * if (gtorch_device_get_memory_info (device, &available, &total, &error))
 *   g_print ("%.0f %% are in use\n", 100.0 * (total - available) / total);
 * ```
 *
 * Returns: %TRUE on success; %FALSE if the device cannot be used
 *
 * Since: 0.1
 */
gboolean
gtorch_device_get_memory_info (GTorchDevice *self, guint64 *available, guint64 *total,
                               GError **error)
{
  guint64 numbers[2];

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  self = gtorch_device_resolved (self);
  if (!GTORCH_DEVICE_GET_CLASS (self)->get_memory_info (self, &numbers[0], &numbers[1], error))
    return FALSE;
  if (available != NULL)
    *available = numbers[0];
  if (total != NULL)
    *total = numbers[1];
  return TRUE;
}

/**
 * gtorch_device_empty_cache:
 * @self: a device
 *
 * Returns memory to the system that no tensor holds. Small blocks cached by other threads follow when those
 * threads next allocate.
 *
 * Since: 0.1
 */
void
gtorch_device_empty_cache (GTorchDevice *self)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  if (GTORCH_DEVICE_GET_CLASS (self)->empty_cache != NULL)
    GTORCH_DEVICE_GET_CLASS (self)->empty_cache (self);
}

gboolean
gtorch_device_emit_memory_pressure (GTorchDevice *device, guint64 n_bytes)
{
  gboolean has_asked = gtorch_device_manager_memory_pressure (device, n_bytes);

  if (!g_signal_has_handler_pending (device, signals[MEMORY_PRESSURE], 0, FALSE))
    return has_asked;
  g_signal_emit (device, signals[MEMORY_PRESSURE], 0, n_bytes);
  return TRUE;
}

const gchar *
gtorch_device_name (GTorchDevice *device)
{
  return device->string;
}
