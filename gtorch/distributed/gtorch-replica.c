/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Replicas of modules. A replica is no copy: it calls the module, and for this call parameters and buffers
 * are those of the replica, in the calling thread alone. So settings are those of the module whatever its
 * class keeps, and a class of another language needs no copies. */

#include "config.h"

#include "distributed/gtorch-replica-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-references-private.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-comm-private.h"
#include "distributed/gtorch-data-parallel.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-graphed-module.h"
#include "nn/gtorch-nn.h"
#include "nn/gtorch-stand-ins-private.h"
#include "tensor/gtorch-scope-private.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  GTorchModule parent_instance;
  GTorchModule *module;
  GHashTable *tensors; /* owned, keys as well */
} GTorchReplica;

typedef GTorchModuleClass GTorchReplicaClass;

static GType gtorch_replica_get_type (void);

G_DEFINE_TYPE (GTorchReplica, gtorch_replica, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_replica_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                             GError **error)
{
  GTorchReplica *self = (GTorchReplica *) module;
  GHashTable *former = gtorch_stand_ins_set (self->tensors);
  GTorchTensor *output = gtorch_module_call (self->module, inputs, n_inputs, error);

  gtorch_stand_ins_set (former);
  return output;
}

static GTorchTensor *
gtorch_replica_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_replica_forward_many (module, &input, 1, error);
}

static void
gtorch_replica_finalize (GObject *object)
{
  GTorchReplica *self = (GTorchReplica *) object;

  g_clear_object (&self->module);
  g_clear_pointer (&self->tensors, g_hash_table_unref);
  G_OBJECT_CLASS (gtorch_replica_parent_class)->finalize (object);
}

static void
add_references (gpointer object, GTorchReferences *references)
{
  GTorchReplica *self = object;
  GHashTableIter iter;
  gpointer key, value;

  gtorch_references_add_object (references, self->module);
  if (self->tensors == NULL)
    return;
  g_hash_table_iter_init (&iter, self->tensors);
  while (g_hash_table_iter_next (&iter, &key, &value))
    {
      gtorch_references_add_object (references, key);
      gtorch_references_add_object (references, value);
    }
}

static GTorchReferencesType references_type = { .look = add_references };

static void
gtorch_replica_class_init (GTorchReplicaClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_replica_finalize;
  klass->forward = gtorch_replica_forward;
  klass->forward_many = gtorch_replica_forward_many;
  references_type.type = gtorch_replica_get_type ();
  gtorch_references_add_type (&references_type);
}

static void
gtorch_replica_init (GTorchReplica *self)
{
}

GTorchModule *
gtorch_replica_new (GTorchModule *module, GHashTable *tensors)
{
  GTorchReplica *self = g_object_new (gtorch_replica_get_type (), NULL);

  self->module = g_object_ref (module);
  self->tensors = tensors;
  gtorch_module_set_training (GTORCH_MODULE (self), gtorch_module_get_training (module));
  return GTORCH_MODULE (self);
}

GTorchModule *
gtorch_replica_get_origin (GTorchModule *self)
{
  return G_OBJECT_TYPE (self) == gtorch_replica_get_type () ? ((GTorchReplica *) self)->module
                                                            : self;
}

/* --- what can have replicas --- */

typedef struct
{
  GTorchModule *refused;
  gchar *path;
} Refusal;

static void
find_refused (GTorchModule *module, const gchar *path, gpointer data)
{
  Refusal *refusal = data;

  if (refusal->refused != NULL
      || !(GTORCH_IS_DISTRIBUTED_MODULE (module) || GTORCH_IS_DATA_PARALLEL (module)
           || GTORCH_IS_GRAPHED_MODULE (module)
           || (GTORCH_IS_SYNC_BATCH_NORM (module) && gtorch_sync_has_group (module))))
    return;
  refusal->refused = module;
  refusal->path = g_strdup (path);
}

static gboolean
check_modules (GTorchModule *module, GError **error)
{
  Refusal refusal = { NULL, NULL };

  gtorch_module_visit (module, TRUE, find_refused, &refusal);
  if (refusal.refused == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("replicate: %s “%s” has one device only, since it calls other processes, has "
                  "replicas itself, or was captured: it cannot have replicas"),
               gtorch_module_type_name (refusal.refused), refusal.path != NULL ? refusal.path : "");
  g_free (refusal.path);
  return FALSE;
}

static gboolean
check_tensor (GTorchTensor *tensor, GTorchDevice *device, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);

  if (gtorch_is_lazy (tensor))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("replicate: a parameter or buffer is lazy: call the module once before"));
  else if (gtorch_module_shards_find (tensor) != NULL || gtorch_division_find (tensor) != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("replicate: a parameter of shape %s is a part of a whole one, of which other "
                    "processes have other parts: such a module cannot have replicas"),
                 gtorch_impl_shape_str (impl));
  else if (gtorch_impl_device (impl) != device)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                 _ ("replicate: parameters and buffers must be on one device, not %s and %s"),
                 gtorch_device_name (device), gtorch_device_name (gtorch_impl_device (impl)));
  else
    return TRUE;
  return FALSE;
}

static GPtrArray *
list_tensors (GListModel *list)
{
  GPtrArray *tensors = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < g_list_model_get_n_items (list); i++)
    g_ptr_array_add (tensors, g_list_model_get_item (list, i));
  g_object_unref (list);
  return tensors;
}

/* --- replicas --- */

typedef struct
{
  GTorchModule *module;
  GTorchDevice **devices;
  gsize n_devices;
  gboolean detach;
  GHashTable **tables; /* NULL where the module itself is used */
} Replication;

static void
stand_in (GHashTable *table, GTorchTensor *tensor, GTorchTensor *other)
{
  gtorch_tensor_unwrap (other);
  if (gtorch_scope_current != NULL)
    gtorch_scope_exempt (other);
  /* lists of parameters have the module's own */
  g_object_set_qdata_full (G_OBJECT (other), gtorch_module_stands_for_quark (),
                           g_object_ref (tensor), g_object_unref);
  g_hash_table_insert (table, g_object_ref (tensor), g_object_ref (other));
}

/* Of one device, all with gradients or all without. */
static gboolean
copy_tensors (Replication *self, GPtrArray *tensors, gsize buffer_size, GError **error)
{
  g_autoptr (GPtrArray) copies = NULL;
  const guint n = tensors->len;
  gsize k;
  guint i;

  if (n == 0)
    return TRUE;
  copies = gtorch_comm_broadcast_coalesced ((GTorchTensor **) tensors->pdata, n, self->devices,
                                            self->n_devices, buffer_size, error);
  if (copies == NULL)
    return FALSE;
  for (k = 0; k < self->n_devices; k++)
    for (i = 0; self->tables[k] != NULL && i < n; i++)
      {
        GTorchTensor *copy = copies->pdata[k * n + i];
        g_autoptr (GTorchTensor) own =
            copy == tensors->pdata[i] ? gtorch_tensor_clone (copy, error) : g_object_ref (copy);

        if (own == NULL)
          return FALSE;
        stand_in (self->tables[k], tensors->pdata[i], own);
      }
  return TRUE;
}

static gboolean
copy_all (Replication *self, GPtrArray *params, GPtrArray *buffers, GError **error)
{
  g_autoptr (GPtrArray) trained = g_ptr_array_new (), frozen = g_ptr_array_new ();
  g_autoptr (GTorchGradGuard) guard = NULL;
  guint i;

  for (i = 0; i < params->len; i++)
    g_ptr_array_add (gtorch_impl_requires_grad (gtorch_tensor_unwrap (params->pdata[i])) ? trained
                                                                                         : frozen,
                     params->pdata[i]);
  if (!self->detach && !copy_tensors (self, trained, GTORCH_COMM_BUFFER_SIZE, error))
    return FALSE;
  guard = gtorch_no_grad ();
  /* buffers are written in place, each by itself */
  return (!self->detach || copy_tensors (self, trained, GTORCH_COMM_BUFFER_SIZE, error))
         && copy_tensors (self, frozen, GTORCH_COMM_BUFFER_SIZE, error)
         && copy_tensors (self, buffers, 0, error);
}

static GPtrArray *
make_modules (Replication *self)
{
  GPtrArray *modules = g_ptr_array_new_full (self->n_devices, g_object_unref);
  gsize k;

  for (k = 0; k < self->n_devices; k++)
    g_ptr_array_add (modules,
                     self->tables[k] == NULL
                         ? g_object_ref (self->module)
                         : gtorch_replica_new (self->module, g_steal_pointer (&self->tables[k])));
  return modules;
}

/**
 * gtorch_replicate:
 * @module: a module with its parameters and buffers on one device
 * @devices: (array length=n_devices): where the replicas compute
 * @n_devices: the number of @devices, 1 or more
 * @detach: whether the replicas have no gradients, and none of them is @module itself
 * @error: return location for an error
 *
 * Makes modules for several devices of a module for one of them. Their parameters are copied from those of
 * the module, which get the sum of the gradients. On the device of the module it is that module itself.
 *
 * A replica calls the module, with copies in the place of its parameters and buffers. So hooks are called
 * with @module, and what a class of the program keeps in its objects is there for all of them: such a class
 * must not write to it in `forward`, which may be called in several threads. Buffers that a replica changes
 * are lost with it. A replica has no parameters, and no state, of its own.
 *
 * ```c
 * GTorchDevice *devices[] = { gtorch_device_cuda (0, NULL), gtorch_device_cuda (1, NULL) };
 * g_autoptr (GPtrArray) replicas = gtorch_replicate (module, devices, 2, FALSE, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchModule): a module for each device, or %NULL with @error
 *   set: %GTORCH_ERROR_NOT_SUPPORTED if it has a module of which there can be one only, such as a
 *   [class@DistributedModule], or parts of parameters
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_replicate (GTorchModule *module, GTorchDevice **devices, gsize n_devices, gboolean detach,
                  GError **error)
{
  Replication self = { module, NULL, n_devices, detach, NULL };
  g_autofree GTorchDevice **resolved = NULL;
  g_autofree GHashTable **tables = NULL;
  g_autoptr (GPtrArray) params = NULL, buffers = NULL, modules = NULL;
  GTorchDevice *own;
  gboolean is_done = TRUE;
  gsize k;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (module), NULL);
  g_return_val_if_fail (gtorch_are_devices (devices, n_devices), NULL);
  if (!gtorch_comm_check_some ("replicate", n_devices, N_ ("devices"), error)
      || !gtorch_module_is_usable (module, error) || !check_modules (module, error))
    return NULL;
  params = list_tensors (gtorch_module_get_parameters (module, TRUE));
  buffers = list_tensors (gtorch_module_get_buffers (module, TRUE));
  self.devices = resolved = gtorch_devices_resolve (devices, n_devices);
  self.tables = tables = g_new0 (GHashTable *, n_devices);
  own = params->len > 0    ? gtorch_impl_device (gtorch_tensor_unwrap (params->pdata[0]))
        : buffers->len > 0 ? gtorch_impl_device (gtorch_tensor_unwrap (buffers->pdata[0]))
                           : NULL;
  for (i = 0; i < params->len; i++)
    if (!check_tensor (params->pdata[i], own, error))
      return NULL;
  for (i = 0; i < buffers->len; i++)
    if (!check_tensor (buffers->pdata[i], own, error))
      return NULL;
  for (k = 0; own != NULL && k < n_devices; k++)
    if (resolved[k] != own || detach)
      tables[k] = g_hash_table_new_full (NULL, NULL, g_object_unref, g_object_unref);
  if (own != NULL)
    is_done = copy_all (&self, params, buffers, error);
  if (is_done)
    modules = make_modules (&self);
  for (k = 0; k < n_devices; k++)
    g_clear_pointer (&tables[k], g_hash_table_unref);
  return g_steal_pointer (&modules);
}
