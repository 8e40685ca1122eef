/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The state as text: for a terminal, of which no line is longer and there are no more lines than it has; or
 * for a file. Names come from other users' processes: what controls a terminal is taken out of them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-top-private.h"

typedef enum
{
  PLAIN,
  BOLD,
  DIM,
  REVERSE,
  GREEN,
  YELLOW,
  RED,
} Style;

static const gchar *const styles[] = { "", "1", "2", "7", "32", "33", "31" };

/* --- putting texts down --- */

static gboolean
is_file (const TopCanvas *canvas)
{
  return canvas->width == G_MAXUINT;
}

/* Appends a text as far as the line goes. */
static void
put (TopCanvas *canvas, Style style, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);
  gboolean styled = canvas->is_styled && style != PLAIN;
  const gchar *p;

  if (styled)
    top_screen_begin_style (canvas->text, styles[style]);
  for (p = valid; *p != '\0'; p = g_utf8_next_char (p))
    {
      gunichar c = g_utf8_get_char (p);
      guint width = g_unichar_iszerowidth (c) ? 0 : g_unichar_iswide (c) ? 2 : 1;

      if (g_unichar_iscntrl (c) || (!canvas->is_utf8 && c > 127))
        c = '?';
      if (!is_file (canvas) && canvas->column + width > canvas->width)
        break;
      g_string_append_unichar (canvas->text, c);
      canvas->column += width;
    }
  if (styled)
    top_screen_end_style (canvas->text);
}

static void put_format (TopCanvas *canvas, Style style, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);

static void
put_format (TopCanvas *canvas, Style style, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  put (canvas, style, text);
}

static gboolean
has_lines (const TopCanvas *canvas, guint n)
{
  return is_file (canvas) || canvas->line + n <= canvas->height;
}

static void
end_line (TopCanvas *canvas)
{
  if (!is_file (canvas))
    top_screen_end_line (canvas->text, canvas->line + 1 < canvas->height);
  else
    while (canvas->text->len > 0 && canvas->text->str[canvas->text->len - 1] == ' ')
      g_string_truncate (canvas->text, canvas->text->len - 1);
  canvas->line++;
  if (is_file (canvas))
    g_string_append_c (canvas->text, '\n');
  canvas->column = 0;
}

static void
put_bar (TopCanvas *canvas, gdouble fraction, guint length)
{
  guint n = (guint) (CLAMP (fraction, 0, 1) * length + 0.5), i;
  Style style = fraction < 0.6 ? GREEN : fraction < 0.9 ? YELLOW : RED;
  g_autoptr (GString) full = g_string_new (NULL), empty = g_string_new (NULL);

  for (i = 0; i < length; i++)
    g_string_append (i < n ? full : empty,
                     i < n ? (canvas->is_utf8 ? "█" : "#") : (canvas->is_utf8 ? "░" : "."));
  put (canvas, style, full->str);
  put (canvas, DIM, empty->str);
}

static gchar *
format_size (guint64 n)
{
  return g_format_size_full (n, G_FORMAT_SIZE_IEC_UNITS);
}

/* --- devices --- */

static void
draw_history (TopCanvas *canvas, TopDevice *device, guint length)
{
  static const gchar *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
  static const gchar *const letters[] = { "_", ".", "-", "=", "+", "*", "%", "#" };
  g_autoptr (GString) text = g_string_new (NULL);
  guint i;

  for (i = MIN (length, TOP_HISTORY); i > 0; i--)
    {
      gint value = device->history[i - 1];

      if (value < 0)
        g_string_append_c (text, ' ');
      else
        g_string_append (text, (canvas->is_utf8 ? blocks : letters)[MIN (value, 99) * 8 / 100]);
    }
  put (canvas, GREEN, text->str);
}

static void
draw_sensors (TopCanvas *canvas, GTorchDeviceMonitor *monitor)
{
  gint temperature = gtorch_device_monitor_get_temperature (monitor);
  gint fan = gtorch_device_monitor_get_fan_speed (monitor);
  gdouble power = gtorch_device_monitor_get_power (monitor);
  gdouble limit = gtorch_device_monitor_get_power_limit (monitor);

  if (temperature >= 0)
    put_format (canvas, temperature >= 85 ? RED : PLAIN, canvas->is_utf8 ? "  %d °C" : "  %d C",
                temperature);
  if (power >= 0 && limit >= 0)
    put_format (canvas, PLAIN, "  %.0f / %.0f W", power, limit);
  else if (power >= 0)
    put_format (canvas, PLAIN, "  %.0f W", power);
  if (fan >= 0)
    put_format (canvas, PLAIN, "  %s %d %%", _ ("fan"), fan);
}

static void
draw_clock (TopCanvas *canvas, gint mhz)
{
  if (mhz >= 0)
    put_format (canvas, PLAIN, "  %d MHz", mhz);
}

static void
draw_load (TopCanvas *canvas, GTorchDeviceMonitor *monitor, guint bar)
{
  gint load = gtorch_device_monitor_get_utilization (monitor);

  put (canvas, DIM, _ ("  load   "));
  put_bar (canvas, load / 100.0, bar);
  if (load >= 0)
    put_format (canvas, BOLD, " %3d %%", load);
  else
    put (canvas, PLAIN, "   - %");
  draw_clock (canvas, gtorch_device_monitor_get_sm_clock (monitor));
  end_line (canvas);
}

static void
draw_memory (TopCanvas *canvas, TopDevice *device, guint bar)
{
  guint64 used = gtorch_device_monitor_get_memory_used (device->monitor);
  guint64 total = gtorch_device_get_total_memory (device->device);
  g_autofree gchar *used_text = format_size (used);
  g_autofree gchar *total_text = format_size (total);
  gint load = gtorch_device_monitor_get_memory_utilization (device->monitor);

  put (canvas, DIM, _ ("  memory "));
  put_bar (canvas, total > 0 ? (gdouble) used / total : 0, bar);
  put_format (canvas, BOLD, " %3.0f %%", total > 0 ? 100.0 * used / total : 0);
  put_format (canvas, PLAIN, "  %s / %s", used_text, total_text);
  draw_clock (canvas, gtorch_device_monitor_get_memory_clock (device->monitor));
  if (load >= 0)
    put_format (canvas, PLAIN, "  %s %d %%", _ ("busy"), load);
  end_line (canvas);
}

static void
draw_device (TopCanvas *canvas, TopDevice *device)
{
  guint bar = is_file (canvas) ? 20 : CLAMP (canvas->width / 3, 5, 40);

  put_format (canvas, BOLD, "%-7s", device->id);
  put_format (canvas, PLAIN, " %s", gtorch_device_get_name (device->device));
  if (device->monitor != NULL)
    draw_sensors (canvas, device->monitor);
  end_line (canvas);
  if (device->error != NULL && has_lines (canvas, 1))
    {
      put_format (canvas, RED, "  %s", device->error->message);
      end_line (canvas);
    }
  if (device->monitor == NULL)
    return;
  if (has_lines (canvas, 1))
    draw_load (canvas, device->monitor, bar);
  if (has_lines (canvas, 1))
    draw_memory (canvas, device, bar);
  if (!is_file (canvas) && has_lines (canvas, 8))
    {
      put (canvas, PLAIN, "         ");
      draw_history (canvas, device, canvas->width > 10 ? canvas->width - 10 : 1);
      end_line (canvas);
    }
}

/* --- processes --- */

static const gchar *
sort_name (TopSort sort)
{
  switch (sort)
    {
    case TOP_SORT_MEMORY:
      return _ ("memory");
    case TOP_SORT_PID:
      return _ ("process ID");
    default:
      return _ ("name");
    }
}

static void
draw_process (TopCanvas *canvas, TopProcess *process, gboolean selected)
{
  g_autofree gchar *memory = format_size (process->memory_used);
  Style style = selected && !is_file (canvas) ? REVERSE : PLAIN;

  put_format (canvas, style, "%s%9u  %10s  ", selected && !is_file (canvas) ? ">" : " ",
              process->pid, process->memory_used > 0 ? memory : "-");
  put_format (canvas, style, "%-16s  %s", process->devices->len > 0 ? process->devices->str : "-",
              process->name != NULL ? process->name : _ ("(unknown)"));
  if (process->program != NULL)
    put (canvas, BOLD, _ ("  exported"));
  end_line (canvas);
}

static void
draw_processes (TopCanvas *canvas, TopState *state, guint n_below)
{
  guint position = 0, first = 0, room, i;

  if (!has_lines (canvas, 2))
    return;
  top_state_get_selected (state, &position);
  put_format (canvas, BOLD, " %9s  %10s  %-16s  %s", _ ("PID"), _ ("MEMORY"), _ ("DEVICES"),
              _ ("NAME"));
  end_line (canvas);
  room = is_file (canvas) ? G_MAXUINT : canvas->height - canvas->line;
  if (!is_file (canvas) && room > n_below + 3)
    room -= n_below;
  if (position >= room)
    first = position - room + 1;
  for (i = first; i < state->processes->len && i - first < room; i++)
    draw_process (canvas, state->processes->pdata[i], i == position);
  if (state->processes->len == 0 && has_lines (canvas, 1))
    {
      put (canvas, DIM, _ ("  no process uses a GPU or exports itself"));
      end_line (canvas);
    }
}

/* --- a program that exports itself --- */

static guint64
look_up_size (GVariant *device, const gchar *key)
{
  guint64 value = 0;

  g_variant_lookup (device, key, "t", &value);
  return value;
}

static void
draw_allocators (TopCanvas *canvas, TopProgram *program)
{
  GVariantIter iter;
  GVariant *device;

  g_variant_iter_init (&iter, program->devices);
  while ((device = g_variant_iter_next_value (&iter)) != NULL)
    {
      g_autofree gchar *allocated = format_size (look_up_size (device, "allocated"));
      g_autofree gchar *peak = format_size (look_up_size (device, "peak-allocated"));
      g_autofree gchar *reserved = format_size (look_up_size (device, "reserved"));
      const gchar *id = "";

      g_variant_lookup (device, "device", "&s", &id);
      if (has_lines (canvas, 1))
        {
          put_format (canvas, PLAIN, "  %-8s ", id);
          put_format (canvas, PLAIN, _ ("tensors %s, at most %s; reserved %s"), allocated, peak,
                      reserved);
          end_line (canvas);
        }
      g_variant_unref (device);
    }
}

static void
draw_streams (TopCanvas *canvas, TopProgram *program)
{
  GVariantIter iter;
  GVariant *stream;
  guint n = 0;

  if (!has_lines (canvas, 1) || g_variant_n_children (program->streams) == 0)
    return;
  put (canvas, DIM, _ ("  streams "));
  g_variant_iter_init (&iter, program->streams);
  while ((stream = g_variant_iter_next_value (&iter)) != NULL)
    {
      const gchar *id = "";
      gboolean is_default = FALSE, is_capturing = FALSE;
      guint64 submitted = 0, completed = 0;
      gint priority = 0;

      g_variant_lookup (stream, "device", "&s", &id);
      g_variant_lookup (stream, "priority", "i", &priority);
      g_variant_lookup (stream, "is-default", "b", &is_default);
      g_variant_lookup (stream, "is-capturing", "b", &is_capturing);
      g_variant_lookup (stream, "submitted", "t", &submitted);
      g_variant_lookup (stream, "completed", "t", &completed);
      put_format (canvas, PLAIN, "%s%s", n++ > 0 ? ", " : "", id);
      if (is_default)
        put (canvas, PLAIN, _ (" (default)"));
      if (priority != 0)
        put_format (canvas, PLAIN, _ (" (priority %d)"), priority);
      if (is_capturing)
        put (canvas, PLAIN, _ (" (captures)"));
      if (submitted > completed)
        put_format (canvas, PLAIN, _ (" (%" PRIu64 " waiting)"), submitted - completed);
      g_variant_unref (stream);
    }
  end_line (canvas);
}

#define MAX_SCALARS 16

static void
draw_scalars (TopCanvas *canvas, TopProgram *program)
{
  GVariantIter iter;
  const gchar *name;
  guint64 count;
  gint64 step;
  gdouble value;
  guint n = 0;

  g_variant_iter_init (&iter, program->scalars);
  while (g_variant_iter_next (&iter, "(&stxd)", &name, &count, &step, &value))
    if (count > 0 && has_lines (canvas, 1) && n++ < MAX_SCALARS)
      {
        put_format (canvas, PLAIN, "  %-24s %12.6g", name, value);
        put_format (canvas, DIM, _ ("  step %" PRId64), step);
        end_line (canvas);
      }
  if (n > MAX_SCALARS && has_lines (canvas, 1))
    {
      put_format (canvas, DIM,
                  g_dngettext (GETTEXT_PACKAGE, "  and %u more number, which --json prints",
                               "  and %u more numbers, which --json prints", n - MAX_SCALARS),
                  n - MAX_SCALARS);
      end_line (canvas);
    }
}

static void
draw_program (TopCanvas *canvas, TopProgram *program)
{
  if (!has_lines (canvas, 2))
    return;
  if (is_file (canvas))
    end_line (canvas);
  put_format (canvas, BOLD, "%s", program->name != NULL ? program->name : program->bus_name);
  put_format (canvas, PLAIN,
              g_dngettext (GETTEXT_PACKAGE, " (%u): GTorch %s, %u module",
                           " (%u): GTorch %s, %u modules", program->n_modules),
              program->pid, program->version != NULL ? program->version : "-", program->n_modules);
  end_line (canvas);
  if (program->devices != NULL)
    draw_allocators (canvas, program);
  if (program->streams != NULL)
    draw_streams (canvas, program);
  if (program->scalars != NULL)
    draw_scalars (canvas, program);
}

static guint
count_lines (TopProgram *program)
{
  guint n = 2;

  if (program->devices != NULL)
    n += g_variant_n_children (program->devices);
  if (program->scalars != NULL)
    n += MIN (g_variant_n_children (program->scalars), 8);
  return n;
}

void
top_draw (TopCanvas *canvas, TopState *state)
{
  TopProcess *selected;
  guint position, i;

  if (!is_file (canvas))
    {
      put_format (canvas, REVERSE,
                  _ ("gtorch-top %s   every %.1f s   q: quit   s: sort (%s)   arrows: select"),
                  GTORCH_VERSION, state->interval / 1000.0, sort_name (state->sort));
      end_line (canvas);
    }
  for (i = 0; i < state->devices->len && has_lines (canvas, 1); i++)
    draw_device (canvas, state->devices->pdata[i]);
  if (state->reason != NULL && has_lines (canvas, 1))
    {
      put (canvas, YELLOW, state->reason);
      end_line (canvas);
    }
  if (has_lines (canvas, 3))
    end_line (canvas);
  selected = top_state_get_selected (state, &position);
  if (is_file (canvas))
    selected = NULL; /* all of them, below */
  draw_processes (canvas, state,
                  selected != NULL && selected->program != NULL ? count_lines (selected->program)
                                                                : 0);
  if (selected != NULL && selected->program != NULL)
    draw_program (canvas, selected->program);
  for (i = 0; is_file (canvas) && i < state->processes->len; i++)
    {
      TopProcess *process = state->processes->pdata[i];

      if (process->program != NULL)
        draw_program (canvas, process->program);
    }
  if (!is_file (canvas))
    top_screen_end_picture (canvas->text);
}
