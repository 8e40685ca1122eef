/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The devices and processes that are shown. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-top-private.h"

static void
top_device_free (gpointer data)
{
  TopDevice *self = data;

  g_clear_object (&self->monitor);
  g_object_unref (self->device);
  g_clear_error (&self->error);
  g_free (self->id);
  g_free (self);
}

static void
top_process_free (gpointer data)
{
  TopProcess *self = data;

  g_string_free (self->devices, TRUE);
  g_free (self->name);
  g_free (self);
}

static void
add_device (TopState *state, GTorchDevice *device)
{
  TopDevice *self;
  guint i;

  for (i = 0; i < state->devices->len; i++)
    if (gtorch_device_equal (((TopDevice *) state->devices->pdata[i])->device, device))
      return;
  self = g_new0 (TopDevice, 1);
  self->device = g_object_ref (device);
  self->id = gtorch_device_to_string (device);
  for (i = 0; i < TOP_HISTORY; i++)
    self->history[i] = -1;
  self->monitor = gtorch_device_monitor_new (device, &self->error);
  if (self->monitor != NULL)
    gtorch_device_monitor_set_interval (self->monitor, state->interval, NULL);
  g_ptr_array_add (state->devices, self);
}

TopState *
top_state_new (gchar **names, guint interval, GError **error)
{
  GListModel *devices = G_LIST_MODEL (gtorch_device_manager_get_default ());
  TopState *state = g_new0 (TopState, 1);
  guint i;

  state->interval = interval;
  state->devices = g_ptr_array_new_with_free_func (top_device_free);
  state->processes = g_ptr_array_new_with_free_func (top_process_free);
  state->reason = gtorch_device_manager_dup_reason (gtorch_device_manager_get_default ());
  for (i = 0; names != NULL && names[i] != NULL; i++)
    {
      g_autoptr (GTorchDevice) device = gtorch_device_new_from_string (names[i], error);

      if (device == NULL)
        {
          top_state_free (state);
          return NULL;
        }
      add_device (state, gtorch_device_resolve (device));
    }
  for (i = 0; names == NULL && i < g_list_model_get_n_items (devices); i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (devices, i);

      if (device != NULL)
        add_device (state, device);
    }
  return state;
}

void
top_state_free (TopState *state)
{
  g_ptr_array_unref (state->processes);
  g_clear_pointer (&state->programs, top_programs_free);
  g_ptr_array_unref (state->devices);
  g_free (state->reason);
  g_free (state);
}

static TopProcess *
find_process (TopState *state, guint pid)
{
  TopProcess *process;
  guint i;

  for (i = 0; i < state->processes->len; i++)
    {
      process = state->processes->pdata[i];
      if (process->pid == pid)
        return process;
    }
  process = g_new0 (TopProcess, 1);
  process->pid = pid;
  process->devices = g_string_new (NULL);
  g_ptr_array_add (state->processes, process);
  return process;
}

static void
add_processes (TopState *state, TopDevice *device)
{
  GListModel *list = gtorch_device_monitor_get_processes (device->monitor);
  guint i;

  for (i = 0; i < g_list_model_get_n_items (list); i++)
    {
      g_autoptr (GTorchDeviceProcess) item = g_list_model_get_item (list, i);
      TopProcess *process = find_process (state, gtorch_device_process_get_pid (item));

      if (process->name == NULL)
        process->name = g_strdup (gtorch_device_process_get_name (item));
      g_string_append_printf (process->devices, "%s%s", process->devices->len > 0 ? " " : "",
                              device->id);
      process->memory_used += gtorch_device_process_get_memory_used (item);
    }
}

static gint
compare (gconstpointer a, gconstpointer b, gpointer data)
{
  const TopProcess *x = *(TopProcess *const *) a, *y = *(TopProcess *const *) b;
  TopSort sort = GPOINTER_TO_UINT (data);
  gint order = 0;

  if (sort == TOP_SORT_MEMORY)
    order = x->memory_used > y->memory_used ? -1 : x->memory_used < y->memory_used;
  else if (sort == TOP_SORT_NAME)
    order = g_strcmp0 (x->name, y->name);
  return order != 0 ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

void
top_state_sort (TopState *state)
{
  g_ptr_array_sort_with_data (state->processes, compare, GUINT_TO_POINTER (state->sort));
}

void
top_state_update (TopState *state)
{
  guint i;

  g_ptr_array_set_size (state->processes, 0);
  for (i = 0; i < state->devices->len; i++)
    {
      TopDevice *device = state->devices->pdata[i];
      const GError *error;

      if (device->monitor == NULL)
        continue;
      memmove (device->history + 1, device->history, sizeof device->history - sizeof (gint));
      device->history[0] = gtorch_device_monitor_get_utilization (device->monitor);
      add_processes (state, device);
      error = gtorch_device_monitor_get_error (device->monitor);
      if (error != NULL && device->error == NULL)
        device->error = g_error_copy (error);
    }
  for (i = 0; state->programs != NULL && i < top_programs_get_list (state->programs)->len; i++)
    {
      TopProgram *program = top_programs_get_list (state->programs)->pdata[i];
      TopProcess *process = find_process (state, program->pid);

      process->program = program;
      if (program->name != NULL)
        {
          g_free (process->name);
          process->name = g_strdup (program->name);
        }
    }
  top_state_sort (state);
}

TopProcess *
top_state_get_selected (TopState *state, guint *position)
{
  guint i;

  for (i = 0; i < state->processes->len; i++)
    if (((TopProcess *) state->processes->pdata[i])->pid == state->selected_pid)
      break;
  if (i == state->processes->len) /* it has ended: the first one */
    i = 0;
  *position = i;
  if (state->processes->len == 0)
    return NULL;
  state->selected_pid = ((TopProcess *) state->processes->pdata[i])->pid;
  return state->processes->pdata[i];
}

void
top_state_move (TopState *state, gint by)
{
  guint position;

  if (top_state_get_selected (state, &position) == NULL)
    return;
  position = (guint) CLAMP ((gint) position + by, 0, (gint) state->processes->len - 1);
  state->selected_pid = ((TopProcess *) state->processes->pdata[position])->pid;
}
