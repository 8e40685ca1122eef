/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-check-private.h"
#include "device/gtorch-device-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "device/gtorch-generator-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "stream/gtorch-stream-private.h"
#include "base/gtorch-task-private.h"

/**
 * GTorchDevice:
 *
 * Something that holds tensors and computes with them: the CPU, or a GPU.
 *
 * There is one object for each device, and it lives as long as the process: devices can be compared
 * by pointer. [ctor@Device.new_from_string] finds one by its name. An operation works on the device
 * of its operands; the default device ([func@get_default_device]) is where tensors are made when
 * none is named.
 *
 * Each thread has a current device of each type ([func@Device.get_current]), at first the one with the
 * number 0. The device called `cuda`, without a number, is an object of its own: whatever is done with
 * it is done with the GPU that is current at that moment in that thread. Its index is -1, it equals none
 * of the devices with a number, and emits no signals.
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
static GMutex lock; /* of what devices make late */
GTORCH_FORK_LOCK (lock);

G_DEFINE_TYPE (GTorchDevice, gtorch_device, G_TYPE_OBJECT)

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

/* A bare one, as bindings make it, is the CPU. */
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
   * The kind of device.
   *
   * Since: 0.1
   */
  { "type", GTORCH_PROPERTY_ENUM (GTorchDeviceType, gtorch_device_type_get_type,
                                  gtorch_device_get_device_type, NULL) },
  /**
   * GTorchDevice:index:
   *
   * Which one of its kind, from 0; -1 for the one that stands for whichever is current.
   *
   * Since: 0.1
   */
  { "index", GTORCH_PROPERTY_INT (gtorch_device_get_index, NULL), .low = -1, .high = INFINITY },
  /**
   * GTorchDevice:name:
   *
   * The product's name.
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
   * @error: what has happened
   *
   * The device has failed; every further call that needs it does, too, with the same error. See
   * [method@Device.check].
   *
   * Emitted once, from the main context that was the default one of the thread that used the device
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
   * Much memory was allocated since the last time, or an allocation would fail.
   *
   * Whoever holds tensors that nobody needs should drop them now: a language with a garbage
   * collector runs it, since it does not know how much memory a small object stands for. Emitted
   * inside of an allocation, and only in the thread that used the library first.
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
  self->allocator = g_object_new (GTORCH_TYPE_ALLOCATOR, "device", self, NULL);
}

/**
 * gtorch_device_get_device_type: (get-property type)
 * @self: a device
 *
 * Gets the kind of device.
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
 * Gets which one of its kind the device is.
 *
 * Returns: the index, from 0; -1 for the device that stands for whichever is current
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
 * Gets the product's name.
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
 * Tells whether the two are one. `cuda` is not `cuda:0`; see [method@Device.resolve].
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

/* --- streams and generators --- */

GTorchStream *
gtorch_device_make_default_stream (GTorchDevice *self, GError **error)
{
  GTorchStream *stream = g_atomic_pointer_get (&self->default_stream);
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self);
  const gpointer legacy = NULL; /* the driver's own default queue */
  g_autoptr (GError) reason = NULL;
  gboolean is_legacy;

  if (G_LIKELY (stream != NULL))
    return stream;
  is_legacy = gtorch_env_choice ("GTORCH_DEFAULT_STREAM") == 0;
  g_mutex_lock (&lock);
  stream = self->default_stream;
  if (stream == NULL)
    {
      if (self->in_caller)
        stream = g_object_new (GTORCH_TYPE_STREAM, NULL);
      else
        {
          stream = is_legacy ? klass->new_stream (self, 0, &legacy, &reason) : NULL;
          if (!is_legacy || g_error_matches (reason, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
            stream = klass->new_stream (self, 0, NULL, error);
          else if (stream == NULL)
            g_propagate_error (error, g_steal_pointer (&reason));
        }
      if (stream != NULL)
        {
          stream->device = self;
          stream->is_default = TRUE;
          g_atomic_pointer_set (&self->default_stream, stream);
        }
    }
  g_mutex_unlock (&lock);
  return stream;
}

/**
 * gtorch_device_get_default_stream:
 * @self: a device
 *
 * Gets the stream that is current where no other one was set.
 *
 * On a GPU it is a queue of GTorch's own. With `GTORCH_DEFAULT_STREAM=legacy` in the environment it is
 * the one that other libraries use by default (the driver's stream 0), so that their work and GTorch's
 * are in order with each other; it waits for all others and cannot be captured.
 *
 * Returns: (transfer none): the stream
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_device_get_default_stream (GTorchDevice *self)
{
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  stream = gtorch_device_make_default_stream (self, NULL);
  if (stream != NULL)
    return stream;
  g_mutex_lock (&lock); /* one without a queue stands for it; operations will say what is wrong */
  if (self->no_stream == NULL)
    {
      self->no_stream = g_object_new (GTORCH_TYPE_STREAM, NULL);
      self->no_stream->device = self;
      self->no_stream->is_default = TRUE;
    }
  g_mutex_unlock (&lock);
  return self->no_stream;
}

/**
 * gtorch_device_get_default_generator:
 * @self: a device
 *
 * Gets the generator of random operations on the device when none is given.
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
 * @least: (out) (optional): return location for the priority of streams that go last
 * @greatest: (out) (optional): return location for the priority of streams that go first
 *
 * Gets the priorities that [ctor@Stream.new] can tell apart; smaller numbers go first. Others are taken
 * for the nearest of these. Both are 0 if all streams are equal, or if the device cannot be asked.
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

/* --- failing --- */

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
 * Some mistakes, such as a kernel that writes where it must not, cost a GPU all that it has: its
 * memory cannot be read any more, and every later call fails with the error that came first. It is
 * noticed when the work is done, by whatever call comes next; the message says which work it can
 * have been. With `GTORCH_CHECK=errors` in the environment it names the one that failed, and where
 * in the program it was called. Only a new process can use the device again.
 *
 * Returns: %TRUE if nothing has happened; %FALSE with %GTORCH_ERROR_DEVICE_LOST
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

/* --- waiting --- */

/**
 * gtorch_device_synchronize:
 * @self: a device
 * @cancellable: (nullable): stops the waiting, not the work
 * @error: return location for an error
 *
 * Waits until all work that was queued on any stream of the device is done.
 *
 * Returns: %TRUE on success; %FALSE with the first error of the work, %G_IO_ERROR_CANCELLED, or
 *   %GTORCH_ERROR_CAPTURE while the current stream captures a graph
 *
 * Since: 0.1
 */
gboolean
gtorch_device_synchronize (GTorchDevice *self, GCancellable *cancellable, GError **error)
{
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  self = gtorch_device_resolved (self);
  stream = gtorch_current_stream (self);
  if (stream != NULL && gtorch_stream_is_capturing (stream))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("device: %s cannot be waited for while the current stream captures a graph"),
                   self->string);
      return FALSE;
    }
  if (GTORCH_DEVICE_GET_CLASS (self)->synchronize != NULL)
    return GTORCH_DEVICE_GET_CLASS (self)->synchronize (self, cancellable, error);
  return gtorch_timelines_synchronize (self, cancellable, error);
}

static void
synchronize_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;

  if (GTORCH_DEVICE_GET_CLASS (data)->synchronize != NULL
          ? GTORCH_DEVICE_GET_CLASS (data)->synchronize (data, cancellable, &error)
          : gtorch_timelines_synchronize (data, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_device_synchronize_async:
 * @self: a device
 * @cancellable: (nullable): stops the waiting, not the work
 * @callback: (nullable) (scope async) (closure user_data): called when all is done
 * @user_data: given to @callback
 *
 * Waits in the main loop until all work on the device is done.
 *
 * Since: 0.1
 */
void
gtorch_device_synchronize_async (GTorchDevice *self, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_device_synchronize_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  g_task_set_task_data (task, gtorch_device_resolved (self), NULL);
  g_task_run_in_thread (task, synchronize_in_thread);
}

/**
 * gtorch_device_synchronize_finish:
 * @self: a device
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends [method@Device.synchronize_async].
 *
 * Returns: as [method@Device.synchronize]
 *
 * Since: 0.1
 */
gboolean
gtorch_device_synchronize_finish (GTorchDevice *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_device_synchronize_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}

/* --- memory --- */

/**
 * gtorch_device_get_allocator:
 * @self: a device
 *
 * Gets where tensors of the device have their memory from, with all that is known about it.
 *
 * Returns: (transfer none): the allocator
 *
 * Since: 0.1
 */
GTorchAllocator *
gtorch_device_get_allocator (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  return self->allocator;
}

/**
 * gtorch_device_get_memory_allocated:
 * @self: a device
 *
 * Gets how much memory tensors hold, rounded as the allocator rounds.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_memory_allocated (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_allocated (self->allocator);
}

/**
 * gtorch_device_get_peak_memory_allocated:
 * @self: a device
 *
 * Gets the most memory that tensors held since [method@Device.reset_peak_memory]. On the CPU exact
 * to 64 KiB a thread.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_peak_memory_allocated (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_peak_allocated (self->allocator);
}

/**
 * gtorch_device_get_memory_reserved:
 * @self: a device
 *
 * Gets how much memory the allocator has taken: what tensors hold, and what it keeps for the next
 * ones.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_memory_reserved (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_reserved (self->allocator);
}

/**
 * gtorch_device_get_peak_memory_reserved:
 * @self: a device
 *
 * Gets the most memory that the allocator had since [method@Device.reset_peak_memory].
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_peak_memory_reserved (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_peak_reserved (self->allocator);
}

/**
 * gtorch_device_get_total_memory:
 * @self: a device
 *
 * Gets how much memory the device has; for the CPU with swap space, or what a container may use.
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
 * @available: (out) (optional): how many bytes nobody has
 * @total: (out) (optional): how many bytes there are
 * @error: return location for an error
 *
 * Asks the driver, or the kernel for the CPU, how much memory is left for all programs.
 *
 * What the [class@Allocator] keeps ready for new tensors is not among it; [method@Allocator.trim]
 * gives that back.
 *
 * ```c
 * guint64 available, total;
 *
 * if (gtorch_device_get_memory_info (device, &available, &total, &error))
 *   g_print ("%.0f %% are in use\n", 100.0 * (total - available) / total);
 * ```
 *
 * Returns: %TRUE on success; %FALSE with the error of a device that does not work
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
 * gtorch_device_reset_peak_memory:
 * @self: a device
 *
 * Lets the peaks begin again at the current values; short for [method@Allocator.reset_peak].
 *
 * Since: 0.1
 */
void
gtorch_device_reset_peak_memory (GTorchDevice *self)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  gtorch_allocator_reset_peak (self->allocator);
}

/**
 * gtorch_device_empty_cache:
 * @self: a device
 *
 * Gives memory back that no tensor holds. Other threads' small blocks follow when those threads
 * next allocate.
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

/**
 * gtorch_device_get_pressure_threshold:
 * @self: a device
 *
 * Gets after how much more memory [signal@Device::memory-pressure] is emitted.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_pressure_threshold (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return __atomic_load_n (&self->pressure_threshold, __ATOMIC_RELAXED);
}

/**
 * gtorch_device_set_pressure_threshold:
 * @self: a device
 * @n_bytes: a number of bytes
 *
 * Sets after how much more memory [signal@Device::memory-pressure] is emitted; at first 512 MiB.
 *
 * Since: 0.1
 */
void
gtorch_device_set_pressure_threshold (GTorchDevice *self, guint64 n_bytes)
{
  guint64 allocated;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  allocated = gtorch_allocator_get_allocated (self->allocator);
  __atomic_store_n (&self->pressure_threshold, n_bytes, __ATOMIC_RELAXED);
  __atomic_store_n (&self->pressure_mark,
                    n_bytes > G_MAXUINT64 - allocated ? G_MAXUINT64 : allocated + n_bytes,
                    __ATOMIC_RELAXED);
}

gboolean
gtorch_device_memory_pressure (GTorchDevice *device, guint64 n_bytes)
{
  static __thread gboolean is_asking;
  gboolean has_asked;

  if (is_asking || device->owner != g_thread_self ())
    return FALSE;
  is_asking = TRUE;
  has_asked = gtorch_device_manager_memory_pressure (device, n_bytes);
  if (g_signal_has_handler_pending (device, signals[MEMORY_PRESSURE], 0, FALSE))
    {
      g_signal_emit (device, signals[MEMORY_PRESSURE], 0, n_bytes);
      has_asked = TRUE;
    }
  if (has_asked)
    gtorch_device_set_pressure_threshold (device, gtorch_device_get_pressure_threshold (device));
  is_asking = FALSE;
  return has_asked;
}

const gchar *
gtorch_device_name (GTorchDevice *device)
{
  return device->string;
}

GTorchStorage *
gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  GTorchPool *pool = gtorch_thread.pools[device->slot];

  if (G_UNLIKELY (pool != NULL))
    return gtorch_pool_alloc (pool, n_bytes, 0, error);
  return GTORCH_DEVICE_GET_CLASS (device)->alloc (device, n_bytes, error);
}

void
gtorch_device_free (GTorchDevice *device, GTorchStorage *storage)
{
  GTORCH_DEVICE_GET_CLASS (device)->free (device, storage);
}
