/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The state as JSON, for programs. What is not known is null. */

#include "config.h"

#include <math.h>

#include "gtorch-tool-json-private.h"
#include "gtorch-top-private.h"

static void
put_percentage (GString *json, const gchar *name, gint value)
{
  if (value >= 0)
    tool_json_integer (json, 3, name, value);
  else
    tool_json_string (json, 3, name, NULL);
}

static void
put_processes (GString *json, GTorchDeviceMonitor *monitor)
{
  GListModel *list = gtorch_device_monitor_get_processes (monitor);
  guint i;

  tool_json_begin (json, 3, "processes");
  g_string_append_c (json, '[');
  for (i = 0; i < g_list_model_get_n_items (list); i++)
    {
      g_autoptr (GTorchDeviceProcess) process = g_list_model_get_item (list, i);

      tool_json_begin (json, 4, NULL);
      g_string_append_c (json, '{');
      tool_json_number (json, 5, "pid", gtorch_device_process_get_pid (process));
      tool_json_string (json, 5, "name", gtorch_device_process_get_name (process));
      tool_json_number (json, 5, "memory-used", gtorch_device_process_get_memory_used (process));
      tool_json_end (json, 4, "}");
    }
  tool_json_end (json, 3, "]");
}

static void
put_device (GString *json, TopDevice *device)
{
  GTorchDeviceMonitor *monitor = device->monitor;

  tool_json_begin (json, 2, NULL);
  g_string_append_c (json, '{');
  tool_json_string (json, 3, "device", device->id);
  tool_json_string (json, 3, "name", gtorch_device_get_name (device->device));
  tool_json_number (json, 3, "total-memory", gtorch_device_get_total_memory (device->device));
  tool_json_string (json, 3, "error", device->error != NULL ? device->error->message : NULL);
  if (monitor != NULL)
    {
      gdouble power = gtorch_device_monitor_get_power (monitor);
      gdouble limit = gtorch_device_monitor_get_power_limit (monitor);

      put_percentage (json, "utilization", gtorch_device_monitor_get_utilization (monitor));
      put_percentage (json, "memory-utilization",
                      gtorch_device_monitor_get_memory_utilization (monitor));
      tool_json_number (json, 3, "memory-used", gtorch_device_monitor_get_memory_used (monitor));
      put_percentage (json, "temperature", gtorch_device_monitor_get_temperature (monitor));
      tool_json_double (json, 3, "power", power >= 0 ? power : NAN);
      tool_json_double (json, 3, "power-limit", limit >= 0 ? limit : NAN);
      put_percentage (json, "fan-speed", gtorch_device_monitor_get_fan_speed (monitor));
      put_percentage (json, "sm-clock", gtorch_device_monitor_get_sm_clock (monitor));
      put_percentage (json, "memory-clock", gtorch_device_monitor_get_memory_clock (monitor));
      put_processes (json, monitor);
    }
  tool_json_end (json, 2, "}");
}

/* Objects, whose values are those that the exporter has: texts, numbers and booleans. */
static void
put_dictionaries (GString *json, const gchar *name, GVariant *list)
{
  GVariantIter iter, members;
  GVariant *item, *value;
  const gchar *key;

  tool_json_begin (json, 3, name);
  g_string_append_c (json, '[');
  if (list != NULL)
    g_variant_iter_init (&iter, list);
  while (list != NULL && (item = g_variant_iter_next_value (&iter)) != NULL)
    {
      tool_json_begin (json, 4, NULL);
      g_string_append_c (json, '{');
      g_variant_iter_init (&members, item);
      while (g_variant_iter_next (&members, "{&sv}", &key, &value))
        {
          if (g_variant_is_of_type (value, G_VARIANT_TYPE_STRING))
            tool_json_string (json, 5, key, g_variant_get_string (value, NULL));
          else if (g_variant_is_of_type (value, G_VARIANT_TYPE_BOOLEAN))
            tool_json_bool (json, 5, key, g_variant_get_boolean (value));
          else if (g_variant_is_of_type (value, G_VARIANT_TYPE_UINT64))
            tool_json_number (json, 5, key, g_variant_get_uint64 (value));
          else if (g_variant_is_of_type (value, G_VARIANT_TYPE_INT32))
            tool_json_integer (json, 5, key, g_variant_get_int32 (value));
          g_variant_unref (value);
        }
      tool_json_end (json, 4, "}");
      g_variant_unref (item);
    }
  tool_json_end (json, 3, "]");
}

static void
put_scalars (GString *json, GVariant *scalars)
{
  GVariantIter iter;
  const gchar *name;
  guint64 count;
  gint64 step;
  gdouble value;

  tool_json_begin (json, 3, "scalars");
  g_string_append_c (json, '[');
  if (scalars != NULL)
    g_variant_iter_init (&iter, scalars);
  while (scalars != NULL && g_variant_iter_next (&iter, "(&stxd)", &name, &count, &step, &value))
    {
      tool_json_begin (json, 4, NULL);
      g_string_append_c (json, '{');
      tool_json_string (json, 5, "name", name);
      tool_json_number (json, 5, "count", count);
      tool_json_integer (json, 5, "step", step);
      tool_json_double (json, 5, "value", value);
      tool_json_end (json, 4, "}");
    }
  tool_json_end (json, 3, "]");
}

static void
put_program (GString *json, TopProgram *program)
{
  tool_json_begin (json, 2, NULL);
  g_string_append_c (json, '{');
  tool_json_number (json, 3, "pid", program->pid);
  tool_json_string (json, 3, "name", program->name);
  tool_json_string (json, 3, "version", program->version);
  tool_json_string (json, 3, "bus-name", program->bus_name);
  tool_json_number (json, 3, "n-modules", program->n_modules);
  put_dictionaries (json, "devices", program->devices);
  put_dictionaries (json, "streams", program->streams);
  put_scalars (json, program->scalars);
  tool_json_end (json, 2, "}");
}

void
top_draw_json (GString *json, TopState *state)
{
  guint i;

  g_string_append_c (json, '{');
  tool_json_begin (json, 1, "devices");
  g_string_append_c (json, '[');
  for (i = 0; i < state->devices->len; i++)
    put_device (json, state->devices->pdata[i]);
  tool_json_end (json, 1, "]");
  tool_json_string (json, 1, "reason", state->reason);
  tool_json_begin (json, 1, "programs");
  g_string_append_c (json, '[');
  for (i = 0; state->programs != NULL && i < top_programs_get_list (state->programs)->len; i++)
    put_program (json, top_programs_get_list (state->programs)->pdata[i]);
  tool_json_end (json, 1, "]");
  tool_json_end (json, 0, "}\n");
}
