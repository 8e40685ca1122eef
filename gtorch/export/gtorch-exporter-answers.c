/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the bus is told, beside what takes long. No device is initialized for it, and no driver asked: a call
 * in another thread may spoil the capture of a graph. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "export/gtorch-exporter-private.h"
#include "memory/gtorch-allocator-private.h"
#include "stream/gtorch-stream-private.h"
#include "stream/gtorch-timeline-private.h"
#include "tensor/gtorch-hold-private.h"

#define MAX_BLOCKS     1000000
#define MAX_PARAMETERS 10000
#define MAX_VALUES     100000

static gboolean
check_number (const gchar *method, const gchar *name, guint value, guint most, GError **error)
{
  if (value >= 1 && value <= most)
    return TRUE;
  g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
               _ ("%s: %s is %u, it must be from 1 to %u"), method, name, value, most);
  return FALSE;
}

/* --- devices --- */

static void
add_device (GTorchStream *stream, gpointer data)
{
  GPtrArray *devices = data;

  if (!g_ptr_array_find (devices, stream->device, NULL))
    g_ptr_array_add (devices, stream->device); /* devices live as long as the process */
}

/* Devices that were used have a stream. */
static GPtrArray *
list_used_devices (void)
{
  GPtrArray *devices = g_ptr_array_new ();

  g_ptr_array_add (devices, gtorch_device_cpu ());
  gtorch_streams_foreach (add_device, devices);
  return devices;
}

static GTorchDevice *
find_device (const gchar *method, const gchar *name, GError **error)
{
  g_autoptr (GPtrArray) devices = list_used_devices ();
  guint i;

  for (i = 0; i < devices->len; i++)
    if (strcmp (gtorch_device_name (devices->pdata[i]), name) == 0)
      return devices->pdata[i];
  g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
               _ ("%s: the program uses no device “%s”"), method, gtorch_name_str (name));
  return NULL;
}

static void
add_size (GVariantBuilder *builder, const gchar *key, guint64 value)
{
  g_variant_builder_add (builder, "{sv}", key, g_variant_new_uint64 (value));
}

GVariant *
gtorch_export_list_devices (void)
{
  g_autoptr (GPtrArray) devices = list_used_devices ();
  GVariantBuilder builder;
  guint i;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("aa{sv}"));
  for (i = 0; i < devices->len; i++)
    {
      GTorchDevice *device = devices->pdata[i];
      g_autofree gchar *name = g_utf8_make_valid (gtorch_device_get_name (device), -1);
      GTorchMemoryStats stats;
      const GTorchCounter *allocated, *reserved;

      gtorch_allocator_get_stats (device->allocator, &stats);
      allocated = &stats.counters[GTORCH_POOL_ALL][GTORCH_STAT_ALLOCATED_BYTES];
      reserved = &stats.counters[GTORCH_POOL_ALL][GTORCH_STAT_RESERVED_BYTES];
      g_variant_builder_open (&builder, G_VARIANT_TYPE_VARDICT);
      g_variant_builder_add (&builder, "{sv}", "device",
                             g_variant_new_string (gtorch_device_name (device)));
      g_variant_builder_add (&builder, "{sv}", "name", g_variant_new_string (name));
      add_size (&builder, "total-memory", gtorch_device_get_total_memory (device));
      add_size (&builder, "allocated", (guint64) MAX (allocated->current, 0));
      add_size (&builder, "peak-allocated", (guint64) MAX (allocated->peak, 0));
      add_size (&builder, "reserved", (guint64) MAX (reserved->current, 0));
      add_size (&builder, "peak-reserved", (guint64) MAX (reserved->peak, 0));
      g_variant_builder_close (&builder);
    }
  return g_variant_new ("(aa{sv})", &builder);
}

GVariant *
gtorch_export_get_allocator_statistics (const gchar *name, GError **error)
{
  GTorchDevice *device = find_device ("GetAllocatorStatistics", name, error);
  g_auto (GStrv) keys = NULL;
  GTorchMemoryStats stats;
  GVariantBuilder builder;
  guint i;

  if (device == NULL)
    return NULL;
  gtorch_allocator_get_stats (device->allocator, &stats);
  keys = gtorch_memory_stats_keys (&stats, device);
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a{st}"));
  for (i = 0; keys[i] != NULL; i++)
    {
      gint64 value = 0;

      if (gtorch_memory_stats_find (&stats, device, keys[i], &value))
        g_variant_builder_add (&builder, "{st}", keys[i], (guint64) MAX (value, 0));
    }
  return g_variant_new ("(a{st})", &builder);
}

static void
block_clear (gpointer data)
{
  gtorch_memory_site_unref (((GTorchBlockInfo *) data)->site);
}

GVariant *
gtorch_export_get_memory_blocks (const gchar *name, guint max_blocks, GError **error)
{
  g_autoptr (GArray) blocks = NULL;
  GTorchDevice *device;
  GVariantBuilder builder;
  guint i, j, n;

  if (!check_number ("GetMemoryBlocks", "max_blocks", max_blocks, MAX_BLOCKS, error)
      || (device = find_device ("GetMemoryBlocks", name, error)) == NULL)
    return NULL;
  if (device->allocator->list_blocks == NULL)
    {
      g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_NOT_SUPPORTED,
                   _ ("%s: the allocator of %s keeps no list of its blocks"), "GetMemoryBlocks",
                   gtorch_device_name (device));
      return NULL;
    }
  blocks = g_array_new (FALSE, FALSE, sizeof (GTorchBlockInfo));
  g_array_set_clear_func (blocks, block_clear);
  device->allocator->list_blocks (device, blocks);
  n = MIN (blocks->len, max_blocks);
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(ttsta(tty))"));
  for (i = 0; i < n; i = j)
    {
      const GTorchBlockInfo *first = &g_array_index (blocks, GTorchBlockInfo, i);
      guint64 size = first->size;

      for (j = i + 1; j < n && !g_array_index (blocks, GTorchBlockInfo, j).begins_segment; j++)
        size += g_array_index (blocks, GTorchBlockInfo, j).size;
      g_variant_builder_open (&builder, G_VARIANT_TYPE ("(ttsta(tty))"));
      g_variant_builder_add (&builder, "t", first->address);
      g_variant_builder_add (&builder, "t", size);
      g_variant_builder_add (&builder, "s", first->pool == GTORCH_POOL_SMALL ? "small" : "large");
      g_variant_builder_add (&builder, "t", first->stream);
      g_variant_builder_open (&builder, G_VARIANT_TYPE ("a(tty)"));
      for (guint k = i; k < j; k++)
        {
          const GTorchBlockInfo *block = &g_array_index (blocks, GTorchBlockInfo, k);

          g_variant_builder_add (&builder, "(tty)", block->size,
                                 block->state != GTORCH_BLOCK_INACTIVE ? block->requested : 0,
                                 block->state);
        }
      g_variant_builder_close (&builder);
      g_variant_builder_close (&builder);
    }
  return g_variant_new ("(ba(ttsta(tty)))", n == blocks->len, &builder);
}

/* --- streams --- */

static void
add_stream (GTorchStream *stream, gpointer data)
{
  GVariantBuilder *builder = data;

  g_variant_builder_open (builder, G_VARIANT_TYPE_VARDICT);
  add_size (builder, "id", stream->id);
  g_variant_builder_add (builder, "{sv}", "device",
                         g_variant_new_string (gtorch_device_name (stream->device)));
  g_variant_builder_add (builder, "{sv}", "priority", g_variant_new_int32 (stream->priority));
  g_variant_builder_add (builder, "{sv}", "is-default", g_variant_new_boolean (stream->is_default));
  g_variant_builder_add (builder, "{sv}", "is-capturing",
                         g_variant_new_boolean (__atomic_load_n (&stream->capture, __ATOMIC_RELAXED)
                                                != NULL));
  if (stream->timeline != NULL)
    {
      /* First what is done, so that there never seems to be more of it than there was to do. */
      guint64 completed = gtorch_timeline_completed (stream->timeline);

      add_size (builder, "submitted", gtorch_timeline_submitted (stream->timeline));
      add_size (builder, "completed", completed);
    }
  g_variant_builder_close (builder);
}

GVariant *
gtorch_export_list_streams (void)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("aa{sv}"));
  gtorch_streams_foreach (add_stream, &builder);
  return g_variant_new ("(aa{sv})", &builder);
}

/* --- modules --- */

GVariant *
gtorch_export_list_modules (GTorchExport *self)
{
  GVariantBuilder builder;
  guint i;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(su)"));
  g_mutex_lock (&self->lock);
  for (i = 0; i < self->modules->len; i++)
    {
      GTorchExportedModule *module = self->modules->pdata[i];

      g_mutex_lock (&module->lock);
      if (module->parameters != NULL)
        g_variant_builder_add (&builder, "(su)", module->name, module->parameters->len);
      g_mutex_unlock (&module->lock);
    }
  g_mutex_unlock (&self->lock);
  return g_variant_new ("(a(su))", &builder);
}

/* Returns the module with its lock held; a new reference. */
static GTorchExportedModule *
lock_module (GTorchExport *self, const gchar *method, const gchar *name, GError **error)
{
  GTorchExportedModule *module = NULL;
  guint i;

  g_mutex_lock (&self->lock);
  for (i = 0; module == NULL && i < self->modules->len; i++)
    if (strcmp (((GTorchExportedModule *) self->modules->pdata[i])->name, name) == 0)
      module = gtorch_exported_module_ref (self->modules->pdata[i]);
  g_mutex_unlock (&self->lock);
  if (module != NULL)
    {
      g_mutex_lock (&module->lock);
      if (module->parameters != NULL)
        return module;
      g_mutex_unlock (&module->lock);
      gtorch_exported_module_unref (module);
    }
  g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS, _ ("%s: there is no module “%s”"),
               method, gtorch_name_str (name));
  return NULL;
}

static void
unlock_module (GTorchExportedModule *module)
{
  g_mutex_unlock (&module->lock);
  gtorch_exported_module_unref (module);
}

static void
add_parameter (GVariantBuilder *builder, const GTorchExportedParameter *parameter)
{
  GTorchImpl *impl = parameter->impl;
  GTORCH_HOLD (impl);
  GTorchAutograd *autograd = g_atomic_pointer_get (&impl->autograd);
  gboolean has_shape = !gtorch_impl_is_released (impl);
  guint i;

  g_variant_builder_open (builder, G_VARIANT_TYPE ("(saxssb)"));
  g_variant_builder_add (builder, "s", parameter->name);
  g_variant_builder_open (builder, G_VARIANT_TYPE ("ax"));
  for (i = 0; has_shape && i < impl->n_dims; i++)
    g_variant_builder_add (builder, "x", impl->shape[i]);
  g_variant_builder_close (builder);
  g_variant_builder_add (builder, "s", gtorch_dtype_get_name (impl->dtype));
  g_variant_builder_add (builder, "s", gtorch_device_name (impl->device));
  g_variant_builder_add (builder, "b", autograd != NULL && autograd->requires_grad);
  g_variant_builder_close (builder);
}

GVariant *
gtorch_export_list_parameters (GTorchExport *self, const gchar *name, guint first, guint n,
                               GError **error)
{
  GTorchExportedModule *module;
  GVariantBuilder builder;
  guint total, i;

  if (!check_number ("ListParameters", "n", n, MAX_PARAMETERS, error))
    return NULL;
  module = lock_module (self, "ListParameters", name, error);
  if (module == NULL)
    return NULL;
  total = module->parameters->len;
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(saxssb)"));
  for (i = first; i < total && i - first < n; i++)
    add_parameter (&builder, &g_array_index (module->parameters, GTorchExportedParameter, i));
  unlock_module (module);
  return g_variant_new ("(ua(saxssb))", total, &builder);
}

GTorchImpl *
gtorch_export_find_parameter (GTorchExport *self, const gchar *name, const gchar *parameter,
                              GError **error)
{
  GTorchExportedModule *module = lock_module (self, "GetParameterStatistics", name, error);
  GTorchImpl *impl = NULL;
  guint i;

  if (module == NULL)
    return NULL;
  for (i = 0; impl == NULL && i < module->parameters->len; i++)
    {
      const GTorchExportedParameter *item =
          &g_array_index (module->parameters, GTorchExportedParameter, i);

      if (strcmp (item->name, parameter) == 0)
        impl = gtorch_impl_ref (item->impl);
    }
  unlock_module (module);
  if (impl == NULL)
    g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
                 _ ("%s: the module “%s” has no parameter “%s”"), "GetParameterStatistics",
                 gtorch_name_str (name), gtorch_name_str (parameter));
  return impl;
}

/* --- scalars --- */

GVariant *
gtorch_export_list_scalars (GTorchExport *self)
{
  GVariantBuilder builder;
  guint i;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(stxd)"));
  g_mutex_lock (&self->lock);
  for (i = 0; i < self->scalars->len; i++)
    {
      const GTorchExportedScalar *scalar = self->scalars->pdata[i];
      const GTorchExportedValue *last =
          &g_array_index (scalar->values, GTorchExportedValue, scalar->values->len - 1);

      g_variant_builder_add (&builder, "(stxd)", scalar->name, (guint64) scalar->values->len,
                             last->step, last->value);
    }
  g_mutex_unlock (&self->lock);
  return g_variant_new ("(a(stxd))", &builder);
}

GVariant *
gtorch_export_get_scalar_values (GTorchExport *self, const gchar *name, guint64 first, guint n,
                                 GError **error)
{
  const GTorchExportedScalar *scalar;
  GVariantBuilder builder;
  guint64 total = 0, i;
  guint generation = 0;

  if (!check_number ("GetScalarValues", "n", n, MAX_VALUES, error))
    return NULL;
  g_mutex_lock (&self->lock);
  scalar = g_hash_table_lookup (self->scalars_by_name, name);
  if (scalar == NULL)
    {
      g_mutex_unlock (&self->lock);
      g_set_error (error, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
                   _ ("%s: there is no scalar “%s”"), "GetScalarValues", gtorch_name_str (name));
      return NULL;
    }
  generation = scalar->generation;
  total = scalar->values->len;
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(xxd)"));
  for (i = first; i < total && i - first < n; i++)
    {
      const GTorchExportedValue *value = &g_array_index (scalar->values, GTorchExportedValue, i);

      g_variant_builder_add (&builder, "(xxd)", value->step, value->time, value->value);
    }
  g_mutex_unlock (&self->lock);
  return g_variant_new ("(uta(xxd))", generation, total, &builder);
}
