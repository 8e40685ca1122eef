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
  guint8 in_caller; /* that of the backend */
  gint16 index;
  guint16 slot;
  const gchar *string; /* "cpu", "cuda:1" */
  const GTorchBackend *backend;
  const GTorchRun *runs;        /* those of the backend */
  GTorchStream *default_stream; /* atomically */
  GTorchStream *no_stream;      /* stands for the default one while that cannot be made */
  GTorchGenerator *generator;
  gint matmul_precision; /* GTorchPrecision; atomically */
  gint conv_precision;
  gboolean benchmark; /* atomically, as … */
  gboolean deterministic;
  gint wait_policy; /* GTorchWaitPolicy */
  GTorchAllocator *allocator;
  GThread *owner;        /* where memory-pressure is emitted */
  GMainContext *context; /* … and error */
  GError *failure;       /* atomically; set once: why nothing works on it any more */
  guint64 pressure_threshold;
  guint64 pressure_mark; /* atomically: emit when that much is allocated */
};

/* Allocates without regard to captures; gtorch_call_set_output () has that. */
GTorchStorage *gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error);
void gtorch_device_free (GTorchDevice *device, GTorchStorage *storage);
/* The default stream, made if it is not there; NULL with an error if it cannot be made just now. */
GTorchStream *gtorch_device_make_default_stream (GTorchDevice *device, GError **error);
/* As if it had not; for tests. */
void gtorch_device_forget_failure (GTorchDevice *device);

/* FALSE with the first reason for a device that has failed. */
static inline gboolean
gtorch_device_works (GTorchDevice *device, GError **error)
{
  const GError *failure = __atomic_load_n (&device->failure, __ATOMIC_ACQUIRE);

  if (G_LIKELY (failure == NULL))
    return TRUE;
  g_propagate_error (error, g_error_copy (failure));
  return FALSE;
}

/* Returns whether the host can work on the memory of the device itself. */
static inline gboolean
gtorch_device_is_host (GTorchDevice *device)
{
  return device->type == GTORCH_DEVICE_TYPE_CPU;
}

/* "cpu", "cuda:1", for messages. */
const gchar *gtorch_device_name (GTorchDevice *device);
/* Asks the application to drop what it can; for allocators, without a lock held. TRUE if anybody was
 * asked. */
gboolean gtorch_device_memory_pressure (GTorchDevice *device, guint64 n_bytes);
/* The elements of src on another device, contiguous: written to `into` if that is given, which must then be
 * contiguous and of src's shape and dtype. A new reference. */
GTorchImpl *gtorch_copy_to_device (GTorchImpl *src, GTorchDevice *device, gboolean non_blocking,
                                   GTorchImpl *into, GError **error);
/* NULL until one is set. */
GTorchDevice *gtorch_peek_default_device (void);
/* The one with the number 0. */
GTorchDevice *gtorch_device_find_first (GTorchDeviceType type, GError **error);
/* The one without a number, which stands for whichever is current. */
GTorchDevice *gtorch_device_get_follower (GTorchDeviceType type, GError **error);
/* The current device of the type of one without a number; gtorch_device_resolved () calls it. */
GTorchDevice *gtorch_device_follow (GTorchDevice *device);

/* The device that this one stands for in this thread. Each public function does this with the devices
 * that it is given; what is private has never anything to do with one that has no number. NULL stays
 * NULL. */
static inline GTorchDevice *
gtorch_device_resolved (GTorchDevice *device)
{
  return device == NULL || G_LIKELY (device->index >= 0) ? device : gtorch_device_follow (device);
}

/* The same; NULL: the device that this thread has chosen last. */
GTorchDevice *gtorch_device_or_current (GTorchDevice *device);
/* The same; NULL: the default device. */
GTorchDevice *gtorch_device_or_default (GTorchDevice *device);
gboolean gtorch_device_can_be_current (GTorchDevice *device, GError **error);
void gtorch_device_install_math_properties (GObjectClass *klass);
void gtorch_device_install_wait_property (GObjectClass *klass);
/* The longest that a thread spins in a callback of a main loop: a tenth of a frame. */
#define GTORCH_MAIN_LOOP_SPIN_US 1600
/* What the environment asks for. */
GTorchWaitPolicy gtorch_default_wait_policy (void);
void gtorch_device_install_info_properties (GObjectClass *klass);

G_END_DECLS
