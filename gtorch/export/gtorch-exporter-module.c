/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The parameters of a module that is exported. The module has a note of each list that was made of it, and
 * empties the lists when it is finalized; no list refers to the module. */

#include "config.h"

#include "export/gtorch-exporter-private.h"
#include "nn/gtorch-module-private.h"

GTorchExportedModule *
gtorch_exported_module_ref (GTorchExportedModule *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

static void
parameter_clear (gpointer data)
{
  GTorchExportedParameter *self = data;

  g_free (self->name);
  gtorch_impl_unref (self->impl);
}

void
gtorch_exported_module_unref (gpointer data)
{
  GTorchExportedModule *self = data;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_clear_pointer (&self->parameters, g_array_unref);
  g_mutex_clear (&self->lock);
  g_free (self->name);
  g_free (self);
}

/* The notes of a module that is finalized. */
static void
forget (gpointer data)
{
  GPtrArray *notes = data;
  guint i;

  for (i = 0; i < notes->len; i++)
    {
      GTorchExportedModule *self = notes->pdata[i];
      GArray *parameters;

      g_mutex_lock (&self->lock);
      parameters = g_steal_pointer (&self->parameters);
      g_mutex_unlock (&self->lock);
      g_clear_pointer (&parameters, g_array_unref);
    }
  g_ptr_array_unref (notes);
}

static void
collect (GTorchModule *module, const gchar *path, gpointer data)
{
  GArray *parameters = data;
  g_autoptr (GArray) members = gtorch_module_dup_members (module, FALSE);
  guint i;

  for (i = 0; i < members->len; i++)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);
      GTorchExportedParameter parameter;

      if (member->tensor == NULL)
        continue;
      parameter.name = g_strconcat (path, path[0] != '\0' ? "." : "", member->name, NULL);
      parameter.impl = gtorch_impl_ref (gtorch_tensor_get_impl (member->tensor));
      g_array_append_val (parameters, parameter);
    }
}

GTorchExportedModule *
gtorch_exported_module_new (const gchar *name, GTorchModule *module)
{
  static GMutex lock;
  static GQuark quark;
  GTorchExportedModule *self = g_new0 (GTorchExportedModule, 1);
  GPtrArray *notes;

  self->ref_count = 2; /* the module's note, and the caller's */
  self->name = g_strdup (name);
  self->module = module;
  g_mutex_init (&self->lock);
  self->parameters = g_array_new (FALSE, FALSE, sizeof (GTorchExportedParameter));
  g_array_set_clear_func (self->parameters, parameter_clear);
  gtorch_module_visit (module, TRUE, collect, self->parameters);

  g_mutex_lock (&lock);
  if (quark == 0)
    quark = g_quark_from_static_string ("gtorch-exported-modules");
  notes = g_object_get_qdata (G_OBJECT (module), quark);
  if (notes == NULL)
    {
      notes = g_ptr_array_new_with_free_func (gtorch_exported_module_unref);
      g_object_set_qdata_full (G_OBJECT (module), quark, notes, forget);
    }
  g_ptr_array_add (notes, self);
  g_mutex_unlock (&lock);
  return self;
}
