/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-wait.h>
#include <gtorch/device/gtorch-device.h>
#include <gtorch/base/gtorch-inner-types-private.h>
#include <gtorch/device/gtorch-backend-private.h>

G_BEGIN_DECLS

struct _GTorchDevice
{
  GObject parent_instance;
  guint8 type;      /* GTorchDeviceType */
  guint8 in_caller; /* copy of the backend's in_caller */
  gint16 index;
  guint16 slot;
  const gchar *string; /* "cpu", "cuda:1" */
  const GTorchBackend *backend;
  const GTorchRun *runs;        /* copy of the backend's runs */
  GTorchStream *default_stream; /* atomic */
  GTorchStream *no_stream;      /* stands in for default_stream while that cannot be created */
  GTorchGenerator *generator;
  gint matmul_precision; /* GTorchPrecision; atomic, as are the next three fields */
  gint conv_precision;
  gboolean benchmark;
  gboolean deterministic;
  gint wait_policy; /* GTorchWaitPolicy */
  GTorchAllocator *allocator;
  GThread *owner;        /* thread in which memory-pressure is emitted */
  GMainContext *context; /* main context in which error is emitted */
  GError *failure;       /* why the device is unusable; atomic, set once */
  guint64 pressure_threshold;
  guint64 pressure_mark; /* memory-pressure is emitted when this much is allocated; atomic */
};

/* Allocates memory, ignoring captures; see gtorch_call_set_output () for outputs of operations. */
GTorchStorage *gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
void gtorch_device_free (GTorchDevice *device, GTorchStorage *storage);
/* Returns the default stream, creating it if need be; NULL with an error if it cannot be created now. */
GTorchStream *gtorch_device_make_default_stream (GTorchDevice *device, GError **error);
/* Makes a failed device usable again; for tests. */
void gtorch_device_forget_failure (GTorchDevice *device);

/* Returns TRUE if the device is usable, else FALSE with the reason of the first failure. */
static inline gboolean
gtorch_device_works (GTorchDevice *device, GError **error)
{
  const GError *failure = __atomic_load_n (&device->failure, __ATOMIC_ACQUIRE);

  if (G_LIKELY (failure == NULL))
    return TRUE;
  g_propagate_error (error, g_error_copy (failure));
  return FALSE;
}

/* Returns whether the host can access the memory of the device directly. */
static inline gboolean
gtorch_device_is_host (const GTorchDevice *device)
{
  return device->type == GTORCH_DEVICE_TYPE_CPU;
}

/* Returns the name of the device for messages: "cpu", "cuda:1". */
const gchar *gtorch_device_name (GTorchDevice *device);
/* Has the function called for each new device, to set its allocator. Called when the library is loaded. */
void gtorch_device_set_add_allocator (void (*func) (GTorchDevice *device));
/* Emits memory-pressure of the manager and of the device; returns TRUE if a handler was called. */
gboolean gtorch_device_emit_memory_pressure (GTorchDevice *device, guint64 n_bytes);
gboolean gtorch_device_manager_memory_pressure (GTorchDevice *device, guint64 n_bytes);
/* Asks the application to drop tensors that it does not need; returns TRUE if a handler was called. For
 * allocators; no lock may be held. */
gboolean gtorch_device_memory_pressure (GTorchDevice *device, guint64 n_bytes);
/* Copies the elements of src to another device; returns a new reference to a contiguous tensor. The copy is
 * written to `into` unless that is NULL, which must be contiguous and have src's shape and dtype. */
GTorchImpl *gtorch_copy_to_device (GTorchImpl *src, GTorchDevice *device, gboolean non_blocking,
                                   GTorchImpl *into, GError **error);
/* Returns the first backend other than the CPU's that has devices, else the next one after the CPU's. Its
 * devices are meant where the type is not named. */
const GTorchBackend *gtorch_backend_find_accelerator (void);
/* Returns the default device of the process, NULL if none is set. */
GTorchDevice *gtorch_peek_default_device (void);
/* Returns the device of the type with index 0. */
GTorchDevice *gtorch_device_find_first (GTorchDeviceType type, GError **error);
/* Returns the device of the type without a number, which stands for the current one. */
GTorchDevice *gtorch_device_get_follower (GTorchDeviceType type, GError **error);
/* Returns the current device of the type of a device without a number; gtorch_device_resolved ()
 * calls it. */
GTorchDevice *gtorch_device_follow (GTorchDevice *device);

/* Returns the device that this one stands for in this thread, NULL for NULL. Each public function does this
 * with the devices passed to it; private functions never see a device without a number. */
static inline GTorchDevice *
gtorch_device_resolved (GTorchDevice *device)
{
  return device == NULL || G_LIKELY (device->index >= 0) ? device : gtorch_device_follow (device);
}

/* Resolves the device; NULL stands for this thread's current device. */
GTorchDevice *gtorch_device_or_current (GTorchDevice *device);
/* Resolves the device; NULL stands for the default device. */
GTorchDevice *gtorch_device_or_default (GTorchDevice *device);
gboolean gtorch_device_can_be_current (GTorchDevice *device, GError **error);
void gtorch_device_install_math_properties (GObjectClass *klass);
void gtorch_device_install_wait_property (GObjectClass *klass);
/* The longest that a thread spins in a callback of a main loop: a tenth of a frame. */
#define GTORCH_MAIN_LOOP_SPIN_US 1600
/* Returns the policy that the environment variable GTORCH_WAIT_POLICY asks for. */
GTorchWaitPolicy gtorch_default_wait_policy (void);
void gtorch_device_install_info_properties (GObjectClass *klass);

G_END_DECLS
