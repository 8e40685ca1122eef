/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Data parallelism within one process: each device gets a part of the batch, and a thread that calls the
 * module with it. Threads have the settings of the calling one, and enqueue on its streams, so that what
 * follows there needs no further order. */

#include "config.h"

#include "distributed/gtorch-data-parallel.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-references-private.h"
#include "device/gtorch-choice-private.h"
#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-autocast-private.h"
#include "distributed/gtorch-comm-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-replica-private.h"
#include "distributed/gtorch-replica-threads-private.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-stand-ins-private.h"
#include "profiler/gtorch-profiler-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchDataParallel:
 *
 * A module that computes on several devices of one process, each with a part of the batch.
 *
 * The module inside is on the first device. Each call divides its inputs, copies the parameters to the other
 * devices, calls the module in a thread for each device, and joins the outputs on
 * [property@DataParallel:output-device]. Gradients of all devices go to the parameters of the module inside,
 * which an optimizer gets. If the batch is shorter than there are devices, or its length no multiple of them,
 * the last devices have less than the others, or nothing. An output without dimensions, such as a loss,
 * becomes an element of a vector. The threads end with the object.
 *
 * ```c
 * g_autoptr (GTorchDataParallel) model = gtorch_data_parallel_new (net, NULL, 0, NULL, 0, &error);
 * g_autoptr (GTorchTensor) output = gtorch_module_forward (GTORCH_MODULE (model), batch, &error);
 * ```
 *
 * Keys of the state dict begin with `module.`. Buffers, such as running means, are those of the first device.
 *
 * What cannot run in other threads is called for one device after the other in the calling thread: modules
 * with hooks, those whose class is defined in Python or JavaScript, and calls that are captured in a graph or
 * within hooks of saved tensors. The devices compute at the same time in either case.
 *
 * A process for each device, by [class@DistributedModule], copies no parameters and is faster.
 *
 * Since: 0.1
 */

struct _GTorchDataParallel
{
  GTorchModule parent_instance;
  GTorchModule *module;
  GTorchDevice **devices; /* not owned: devices stay */
  gsize n_devices;
  GTorchSize *device_ids;
  GTorchDevice *output_device; /* NULL without devices */
  gint dim;
  GTorchReplicaThreads *threads;
};

G_DEFINE_TYPE (GTorchDataParallel, gtorch_data_parallel, GTORCH_TYPE_MODULE)

typedef GTorchDataParallel Self;

static const GTorchField fields[] = {
  /**
   * GTorchDataParallel:wrapped:
   *
   * The module inside.
   *
   * Since: 0.1
   */
  { "wrapped", GTORCH_PROPERTY_OBJECT (GTorchModule, gtorch_module_get_type,
                                       gtorch_data_parallel_get_wrapped, NULL) },
  /**
   * GTorchDataParallel:device-ids:
   *
   * The numbers of the devices.
   *
   * Since: 0.1
   */
  { "device-ids", GTORCH_PROPERTY_BOXED (GTorchSize, gtorch_size_get_type,
                                         gtorch_data_parallel_get_device_ids, NULL) },
  /**
   * GTorchDataParallel:output-device:
   *
   * Where the outputs are joined.
   *
   * Since: 0.1
   */
  { "output-device", GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type,
                                             gtorch_data_parallel_get_output_device, NULL) },
  /**
   * GTorchDataParallel:dim:
   *
   * The dimension along which inputs are divided and outputs joined.
   *
   * Since: 0.1
   */
  { "dim", GTORCH_PROPERTY_INT (gtorch_data_parallel_get_dim, NULL) },
};

/* --- threads --- */

/* What a thread has set, for others. */
typedef struct
{
  GTorchThreadStreams streams;
  GTorchAutocastRegion autocast;
  GTorchDevice *default_device;
  guint8 no_grad, no_forward;
} Settings;

typedef struct
{
  const Settings *settings;
  GTorchModule *module;
  GTorchTensor **inputs;
  gsize n_inputs;
  GTorchDevice *device;
  GTorchTensor *output;
  GError *error;
} Call;

static void
settings_take (Settings *self)
{
  gtorch_guards_settle ();
  gtorch_thread_streams_take (&self->streams);
  gtorch_autocast_get (&self->autocast);
  self->default_device = gtorch_thread.default_device;
  self->no_grad = gtorch_thread.no_grad;
  self->no_forward = gtorch_thread.no_forward;
}

static void
call_run (gpointer data)
{
  Call *self = data;
  GTorchChange streams, autocast, others;

  gtorch_thread_streams_change_to (&self->settings->streams, &streams);
  gtorch_autocast_change_to (&autocast, &self->settings->autocast);
  gtorch_thread.n_regions++;
  gtorch_change_begin (&others);
  gtorch_change_byte (&others, &gtorch_thread.no_grad, self->settings->no_grad);
  gtorch_change_byte (&others, &gtorch_thread.no_forward, self->settings->no_forward);
  gtorch_change_device (&others, &gtorch_thread.default_device, self->settings->default_device);
  gtorch_change_current (&others, self->device);
  self->output =
      gtorch_module_forward_many (self->module, self->inputs, self->n_inputs, &self->error);
  gtorch_change_end (&others);
  gtorch_change_end (&autocast);
  gtorch_autocast_region_ended ();
  gtorch_change_end (&streams);
}

static void
find_local (GTorchModule *module, const gchar *path, gpointer data)
{
  gboolean *is_local = data;
  g_autoptr (GPtrArray) hooks = NULL;

  if (*is_local)
    return;
  hooks = gtorch_module_dup_hooks (module);
  *is_local = hooks != NULL || gtorch_module_is_foreign (module);
}

/* Must all calls be made in this thread? */
static gboolean
are_local (const Call *calls, gsize n)
{
  gboolean is_local = gtorch_thread.saved_hooks != NULL;
  gsize i;

  for (i = 0; !is_local && i < n; i++)
    {
      GTorchModule *origin = gtorch_replica_get_origin (calls[i].module);

      is_local = gtorch_stream_is_capturing (gtorch_stream_get_current (calls[i].device));
      if (!is_local && (i == 0 || origin != gtorch_replica_get_origin (calls[i - 1].module)))
        gtorch_module_visit (origin, TRUE, find_local, &is_local);
    }
  return is_local;
}

/* Calls all; the first in this thread. Returns the outputs. The threads are kept for other calls, unless they
 * are NULL. */
static GPtrArray *
run_calls (const gchar *name, GTorchReplicaThreads *threads, Call *calls, gsize n, GError **error)
{
  const gboolean is_local = n == 1 || are_local (calls, n);
  g_autoptr (GPtrArray) outputs = g_ptr_array_new_full (n, g_object_unref);
  Settings settings;
  gboolean is_done = TRUE;
  gsize i;

  settings_take (&settings);
  for (i = 0; i < n; i++)
    calls[i].settings = &settings;
  if (!is_local)
    gtorch_replica_threads_run (threads, call_run, calls, sizeof *calls, n);
  for (i = 0; is_local && i < n; i++)
    call_run (&calls[i]);
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) output = calls[i].output;

      if (output != NULL && is_done)
        g_ptr_array_add (outputs, g_steal_pointer (&output));
      else if (!is_done)
        g_clear_error (&calls[i].error);
      else
        {
          is_done = FALSE;
          g_propagate_prefixed_error (error, calls[i].error, _ ("%s: on %s: "), name,
                                      gtorch_device_name (calls[i].device));
        }
    }
  gtorch_thread_streams_clear (&settings.streams);
  return is_done ? g_steal_pointer (&outputs) : NULL;
}

static gboolean
are_modules (GTorchModule **modules, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    if (modules == NULL || !GTORCH_IS_MODULE (modules[i]))
      return FALSE;
  return TRUE;
}

/**
 * gtorch_parallel_apply:
 * @modules: (array length=n_modules): modules, such as [func@replicate] makes
 * @n_modules: the number of @modules, 1 or more
 * @inputs: (array length=n_inputs): the inputs of the first module, then those of the second, and so on
 * @n_inputs: the number of @inputs, a multiple of that of the modules
 * @devices: (array length=n_devices) (nullable): the device that is current for each module, or %NULL for
 *   those of their first inputs
 * @n_devices: the number of @devices: that of the modules, or 0
 * @error: return location for an error
 *
 * Calls several modules at the same time, in a thread for each: with the streams of the calling thread, and
 * with its settings of gradients and autocast.
 *
 * What cannot run in other threads is called in the calling one, as [class@DataParallel] says.
 *
 * ```c
 * g_autoptr (GPtrArray) outputs
 *     = gtorch_parallel_apply (replicas, 2, parts, 2, NULL, 0, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the output of each module, or %NULL with the
 *   error of the first one that failed, which names its device
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_parallel_apply (GTorchModule **modules, gsize n_modules, GTorchTensor **inputs,
                       gsize n_inputs, GTorchDevice **devices, gsize n_devices, GError **error)
{
  const gchar *const name = "parallel_apply";
  g_autofree Call *calls = NULL;
  gsize n, i;

  g_return_val_if_fail (are_modules (modules, n_modules), NULL);
  g_return_val_if_fail (gtorch_are_tensors (inputs, n_inputs), NULL);
  g_return_val_if_fail (gtorch_are_devices (devices, n_devices), NULL);
  if (!gtorch_comm_check_some (name, n_modules, N_ ("modules"), error))
    return NULL;
  n = n_inputs / n_modules;
  if (n_inputs % n_modules != 0 || (n_devices != 0 && n_devices != n_modules)
      || (n == 0 && n_devices == 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are %zu modules, %zu inputs and %zu devices; each module has as "
                      "many inputs as the others, and a device if it has no input"),
                   name, n_modules, n_inputs, n_devices);
      return NULL;
    }
  calls = g_new0 (Call, n_modules);
  for (i = 0; i < n_modules; i++)
    {
      calls[i].module = modules[i];
      calls[i].inputs = n > 0 ? inputs + i * n : NULL;
      calls[i].n_inputs = n;
      calls[i].device = n_devices > 0 ? gtorch_device_resolved (devices[i])
                                      : gtorch_impl_device (gtorch_tensor_unwrap (inputs[i * n]));
    }
  return run_calls (name, NULL, calls, n_modules, error);
}

/* --- batches --- */

static gboolean
check_place (GListModel *list, GTorchDevice *first, GError **error)
{
  g_autoptr (GListModel) tensors = list;
  guint i;

  for (i = 0; i < g_list_model_get_n_items (tensors); i++)
    {
      g_autoptr (GTorchTensor) tensor = g_list_model_get_item (tensors, i);
      GTorchDevice *own = gtorch_impl_device (gtorch_tensor_unwrap (tensor));

      if (own == first)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("data_parallel: the module must be on %s, the first of the devices, but has "
                      "a parameter or buffer on %s"),
                   gtorch_device_name (first), gtorch_device_name (own));
      return FALSE;
    }
  return TRUE;
}

/* Returns the parts of all inputs, those of the first device first, and sets the number of devices that get
 * some. */
static GPtrArray *
scatter (GTorchTensor **inputs, gsize n_inputs, GTorchDevice **devices, gsize n_devices, gint dim,
         gsize *n_parts, GError **error)
{
  g_autoptr (GPtrArray) lists = g_ptr_array_new_with_free_func ((GDestroyNotify) g_ptr_array_unref);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  gsize i, k;

  *n_parts = 1;
  for (i = 0; i < n_inputs; i++)
    {
      GPtrArray *list =
          gtorch_comm_scatter (inputs[i], devices, n_devices, NULL, 0, dim, NULL, 0, error);

      if (list == NULL)
        {
          g_prefix_error (error, "data_parallel: ");
          return NULL;
        }
      g_ptr_array_add (lists, list);
      if (i == 0)
        *n_parts = list->len;
      if (list->len == *n_parts)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("data_parallel: input %zu, of shape %s, makes up %u parts for %zu devices, "
                      "and the first one, of shape %s, %zu"),
                   i, gtorch_impl_shape_str (gtorch_tensor_unwrap (inputs[i])), list->len,
                   n_devices, gtorch_impl_shape_str (gtorch_tensor_unwrap (inputs[0])), *n_parts);
      return NULL;
    }
  for (k = 0; k < *n_parts; k++)
    for (i = 0; i < n_inputs; i++)
      g_ptr_array_add (parts, g_object_ref (((GPtrArray *) lists->pdata[i])->pdata[k]));
  return g_steal_pointer (&parts);
}

static GTorchTensor *
gather (GPtrArray *outputs, GTorchDevice *device, gint dim, GError **error)
{
  g_autoptr (GPtrArray) vectors = g_ptr_array_new_with_free_func (g_object_unref);
  const gint64 one = 1;
  guint i;

  if (gtorch_tensor_unwrap (outputs->pdata[0])->n_dims > 0)
    return gtorch_comm_gather ((GTorchTensor **) outputs->pdata, outputs->len, dim, device, error);
  for (i = 0; i < outputs->len; i++)
    {
      GTorchTensor *vector = gtorch_tensor_reshape (outputs->pdata[i], &one, 1, error);

      if (vector == NULL)
        return NULL;
      g_ptr_array_add (vectors, vector);
    }
  return gtorch_comm_gather ((GTorchTensor **) vectors->pdata, vectors->len, 0, device, error);
}

/* The devices have numbers, and there is one or more. */
static GTorchTensor *
call (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchDevice **devices,
      gsize n_devices, GTorchDevice *output_device, gint dim, GTorchReplicaThreads *threads,
      GError **error)
{
  g_autoptr (GPtrArray) parts = NULL, replicas = NULL, outputs = NULL;
  g_autofree Call *calls = NULL;
  gsize n, i;

  if (!check_place (gtorch_module_get_parameters (module, TRUE), devices[0], error)
      || !check_place (gtorch_module_get_buffers (module, TRUE), devices[0], error))
    return NULL;
  parts = scatter (inputs, n_inputs, devices, n_devices, dim, &n, error);
  if (parts == NULL)
    return NULL;
  if (n > 1)
    {
      replicas = gtorch_replicate (module, devices, n, FALSE, error);
      if (replicas == NULL)
        {
          g_prefix_error (error, "data_parallel: ");
          return NULL;
        }
    }
  calls = g_new0 (Call, n);
  for (i = 0; i < n; i++)
    {
      calls[i].module = replicas != NULL ? replicas->pdata[i] : module;
      calls[i].inputs = (GTorchTensor **) parts->pdata + i * n_inputs;
      calls[i].n_inputs = n_inputs;
      calls[i].device = devices[i];
    }
  outputs = run_calls ("data_parallel", threads, calls, n, error);
  if (outputs == NULL)
    return NULL;
  return n == 1 ? gtorch_tensor_to_device (outputs->pdata[0], output_device, FALSE, error)
                : gather (outputs, output_device, dim, error);
}

/* Returns all GPUs for an empty list. */
static GTorchDevice **
choose_devices (GTorchDevice **devices, gsize *n, GError **error)
{
  GTorchDevice **chosen;
  gsize i, k;

  if (*n > 0)
    chosen = gtorch_devices_resolve (devices, *n);
  else
    {
      *n = gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ());
      chosen = g_new (GTorchDevice *, MAX (*n, 1));
      for (i = 0; i < *n; i++)
        {
          chosen[i] = gtorch_device_cuda ((gint) i, error);
          if (chosen[i] == NULL)
            {
              g_free (chosen);
              return NULL;
            }
        }
    }
  for (i = 0; i < *n; i++)
    for (k = 0; k < i; k++)
      if (chosen[i] == chosen[k])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("data_parallel: %s is there twice; a device has one replica"),
                       gtorch_device_name (chosen[i]));
          g_free (chosen);
          return NULL;
        }
  return chosen;
}

/**
 * gtorch_data_parallel_call:
 * @module: a module with its parameters and buffers on the first of the devices
 * @inputs: (array length=n_inputs): its inputs, which have the same length along @dim
 * @n_inputs: the number of @inputs
 * @devices: (array length=n_devices) (nullable): the devices, or %NULL for all GPUs
 * @n_devices: the number of @devices
 * @output_device: (nullable): where the outputs are joined, or %NULL for the first device
 * @dim: the dimension along which inputs are divided and outputs joined
 * @error: return location for an error
 *
 * Calls a module once with a batch that is divided among devices, as a [class@DataParallel] does. Without
 * GPUs, and without @devices, it calls the module.
 *
 * Returns: (transfer full): the output, or %NULL with @error set: %GTORCH_ERROR_DEVICE_MISMATCH if the module
 *   is not on the first device
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_data_parallel_call (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                           GTorchDevice **devices, gsize n_devices, GTorchDevice *output_device,
                           gint dim, GError **error)
{
  g_autofree GTorchDevice **chosen = NULL;
  gsize n = n_devices;

  g_return_val_if_fail (GTORCH_IS_MODULE (module), NULL);
  g_return_val_if_fail (gtorch_are_tensors (inputs, n_inputs), NULL);
  g_return_val_if_fail (gtorch_are_devices (devices, n_devices), NULL);
  g_return_val_if_fail (output_device == NULL || GTORCH_IS_DEVICE (output_device), NULL);
  chosen = choose_devices (devices, &n, error);
  if (chosen == NULL)
    return NULL;
  if (n == 0)
    return gtorch_module_forward_many (module, inputs, n_inputs, error);
  return call (module, inputs, n_inputs, chosen, n,
               output_device == NULL ? chosen[0] : gtorch_device_resolved (output_device), dim,
               NULL, error);
}

/* --- the class --- */

static GTorchTensor *
gtorch_data_parallel_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                   GError **error)
{
  g_auto (GTorchProfileScope) scope = gtorch_profile_scope_begin ("DataParallel.forward", module);
  GTorchDataParallel *self = GTORCH_DATA_PARALLEL (module);

  if (self->module == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("data_parallel: there is no module inside"));
      return NULL;
    }
  return self->n_devices == 0
             ? gtorch_module_forward_many (self->module, inputs, n_inputs, error)
             : call (self->module, inputs, n_inputs, self->devices, self->n_devices,
                     self->output_device, self->dim, self->threads, error);
}

static GTorchTensor *
gtorch_data_parallel_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_data_parallel_forward_many (module, &input, 1, error);
}

static void
gtorch_data_parallel_finalize (GObject *object)
{
  GTorchDataParallel *self = GTORCH_DATA_PARALLEL (object);

  gtorch_replica_threads_free (self->threads);
  g_clear_object (&self->module);
  g_clear_pointer (&self->device_ids, gtorch_size_unref);
  g_free (self->devices);
  G_OBJECT_CLASS (gtorch_data_parallel_parent_class)->finalize (object);
}

static void
add_references (gpointer object, GTorchReferences *references)
{
  gtorch_references_add_object (references, ((GTorchDataParallel *) object)->module);
}

static GTorchReferencesType references_type = { .look = add_references };

static void
gtorch_data_parallel_class_init (GTorchDataParallelClass *klass)
{
  GTorchModuleClass *module_class = GTORCH_MODULE_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_data_parallel_finalize;
  module_class->forward = gtorch_data_parallel_forward;
  module_class->forward_many = gtorch_data_parallel_forward_many;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_DATA_PARALLEL;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_data_parallel_init (GTorchDataParallel *self)
{
  self->device_ids = gtorch_size_new (NULL, 0);
  self->threads = gtorch_replica_threads_new ();
}

/**
 * gtorch_data_parallel_new:
 * @module: a module
 * @devices: (array length=n_devices) (nullable): the devices, of which none is there twice, or %NULL for all
 *   GPUs
 * @n_devices: the number of @devices
 * @output_device: (nullable): where the outputs are joined, or %NULL for the first device
 * @dim: the dimension along which inputs are divided and outputs joined; 0 is usual
 * @error: return location for an error
 *
 * Creates a module for data parallelism within this process. With one device, the module is moved there; with
 * several, it must be on the first one when it is called. Without GPUs, and without @devices, it calls the
 * module as it is.
 *
 * Returns: (transfer full): a new module, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchDataParallel *
gtorch_data_parallel_new (GTorchModule *module, GTorchDevice **devices, gsize n_devices,
                          GTorchDevice *output_device, gint dim, GError **error)
{
  g_autoptr (GTorchDataParallel) self = NULL;
  g_autofree GTorchDevice **chosen = NULL;
  g_autofree gint64 *ids = NULL;
  gsize n = n_devices, i;

  g_return_val_if_fail (GTORCH_IS_MODULE (module), NULL);
  g_return_val_if_fail (gtorch_are_devices (devices, n_devices), NULL);
  g_return_val_if_fail (output_device == NULL || GTORCH_IS_DEVICE (output_device), NULL);
  chosen = choose_devices (devices, &n, error);
  if (chosen == NULL || (n == 1 && !gtorch_module_to (module, chosen[0], GTORCH_DTYPE_NONE, error)))
    return NULL;
  ids = g_new (gint64, MAX (n, 1));
  for (i = 0; i < n; i++)
    ids[i] = gtorch_device_get_index (chosen[i]);
  self = g_object_new (GTORCH_TYPE_DATA_PARALLEL, NULL);
  self->module = g_object_ref (module);
  gtorch_size_unref (self->device_ids);
  self->device_ids = gtorch_size_new (ids, n);
  self->output_device = output_device != NULL ? gtorch_device_resolved (output_device)
                        : n > 0               ? chosen[0]
                                              : NULL;
  self->devices = g_steal_pointer (&chosen);
  self->n_devices = n;
  self->dim = dim;
  return gtorch_module_register_module (GTORCH_MODULE (self), "module", module, error)
             ? g_steal_pointer (&self)
             : NULL;
}

/**
 * gtorch_data_parallel_get_wrapped:
 * @self: a module
 *
 * Gets the module inside.
 *
 * Returns: (transfer none) (nullable): the module
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_data_parallel_get_wrapped (GTorchDataParallel *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_PARALLEL (self), NULL);
  return self->module;
}

/**
 * gtorch_data_parallel_get_device_ids:
 * @self: a module
 *
 * Gets the numbers of the devices.
 *
 * Returns: (transfer none): the numbers, none if there were no GPUs
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_data_parallel_get_device_ids (GTorchDataParallel *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_PARALLEL (self), NULL);
  return self->device_ids;
}

/**
 * gtorch_data_parallel_get_output_device:
 * @self: a module
 *
 * Gets the device where the outputs are joined.
 *
 * Returns: (transfer none) (nullable): the device; %NULL if there are none
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_data_parallel_get_output_device (GTorchDataParallel *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_PARALLEL (self), NULL);
  return self->output_device;
}

/**
 * gtorch_data_parallel_get_dim:
 * @self: a module
 *
 * Gets the dimension along which inputs are divided and outputs joined.
 *
 * Returns: the dimension
 *
 * Since: 0.1
 */
gint
gtorch_data_parallel_get_dim (GTorchDataParallel *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_PARALLEL (self), 0);
  return self->dim;
}
