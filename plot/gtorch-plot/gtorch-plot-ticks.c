/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Ticks of axes: at multiples of 1, 2 or 5 times a power of ten, on logarithmic axes at powers of ten.
 * Numbers have as many digits as neighbours need to differ, and a power of ten beside them if they are
 * very large or very small. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "gtorch-plot-private.h"

#define MAX_TICKS 200

static void
tick_clear (gpointer data)
{
  g_free (((GTorchPlotTick *) data)->label);
}

static GArray *
ticks_new (void)
{
  GArray *ticks = g_array_new (FALSE, FALSE, sizeof (GTorchPlotTick));

  g_array_set_clear_func (ticks, tick_clear);
  return ticks;
}

static void
ticks_take (GArray *ticks, gdouble value, gchar *label)
{
  GTorchPlotTick tick = { value, label };

  g_array_append_val (ticks, tick);
}

gdouble
gtorch_plot_axis_place (const GTorchPlotAxis *axis, gdouble value)
{
  gdouble place;

  if (axis->is_log)
    {
      if (!(value > 0))
        return NAN;
      place = (log10 (value) - axis->log_low) / (axis->log_high - axis->log_low);
    }
  else
    place = gtorch_plot_find_part (value, axis->low, axis->high);
  return axis->is_inverted ? 1 - place : place;
}

/* --- numbers as text --- */

static void
append_exponent (GString *text, gint exponent)
{
  static const gchar *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
  g_autofree gchar *number = g_strdup_printf ("%d", ABS (exponent));

  g_string_append (text, "10");
  if (exponent < 0)
    g_string_append (text, "⁻");
  for (const gchar *c = number; *c != '\0'; c++)
    g_string_append (text, digits[*c - '0']);
}

/* Thin blanks between thousands, from five digits on. */
static gchar *
with_groups (gchar *text)
{
  const gsize n = strspn (text, "0123456789");
  GString *string;

  if (n < 5 || text[n] != '\0')
    return text;
  string = g_string_new (NULL);
  for (gsize i = 0; i < n; i++)
    {
      if (i > 0 && (n - i) % 3 == 0)
        g_string_append (string, "\u202f");
      g_string_append_c (string, text[i]);
    }
  g_free (text);
  return g_string_free (string, FALSE);
}

static gchar *
with_minus (gchar *text)
{
  g_autofree gchar *number = NULL;

  if (text[0] != '-')
    return with_groups (text);
  number = with_groups (g_strdup (text + 1));
  g_free (text);
  return g_strconcat ("−", number, NULL);
}

static gchar *
format_fixed (gdouble value, gint n_digits)
{
  gchar buffer[512], format[16];

  g_snprintf (format, sizeof (format), "%%.%df", CLAMP (n_digits, 0, 17));
  g_ascii_formatd (buffer, sizeof (buffer), format, value);
  return with_minus (g_strdup (buffer));
}

/* "1.00" is a one. */
static gboolean
is_one (const gchar *number)
{
  return number[0] == '1' && number[1 + strspn (number + 1, ".0")] == '\0'
         && (number[1] == '.' || number[1] == '\0');
}

/* value = number * 10^exponent, where the numbers have n_digits behind the point. Those that become 10 or
 * more have a digit more, and the next power. is_short: 1.0 times a power is that power. */
static gchar *
format_power (gdouble value, gint exponent, gint n_digits, gboolean is_short)
{
  g_autofree gchar *text = NULL;
  const gchar *number;
  GString *string;

  if (value == 0)
    return g_strdup ("0");
  /* in two steps: 10^-exponent may be too large */
  text =
      format_fixed (value / pow (10, exponent / 2) / pow (10, exponent - exponent / 2), n_digits);
  number = g_str_has_prefix (text, "−") ? text + strlen ("−") : text;
  if (strspn (number, "0123456789") > 1)
    return format_power (value, exponent + 1, n_digits + 1, TRUE);
  string = g_string_new (NULL);
  if (is_one (number) && (is_short || n_digits == 0))
    g_string_append_len (string, text, number - text);
  else
    g_string_append_printf (string, "%s×", text);
  append_exponent (string, exponent);
  return g_string_free (string, FALSE);
}

gchar *
gtorch_plot_format_count (gdouble value)
{
  return format_fixed (value, 0);
}

/* Four digits, as a number in a cell or beside a bar has. */
gchar *
gtorch_plot_format_number (gdouble value)
{
  gchar buffer[G_ASCII_DTOSTR_BUF_SIZE];
  gint exponent;

  if (isnan (value))
    return g_strdup ("NaN");
  if (isinf (value))
    return g_strdup (value > 0 ? "∞" : "−∞");
  if (value == round (value) && fabs (value) < 1e6)
    return format_fixed (value, 0);
  exponent = floor (log10 (fabs (value)));
  if (exponent < -3 || exponent > 5)
    return format_power (value, exponent, 1, TRUE);
  g_ascii_formatd (buffer, sizeof (buffer), fabs (value) < 1 ? "%.2f" : "%.3g", value);
  return exponent > 2 ? format_fixed (value, 0) : with_minus (g_strdup (buffer));
}

/* --- linear --- */

#define LEAST_STEP 1e-318 /* below, doubles are too far from each other for steps of 1, 2 or 5 */

static void
add_linear (GArray *ticks, const GTorchPlotAxis *axis, gdouble n)
{
  const gdouble unit = gtorch_plot_find_unit (axis->low, axis->high);
  const gdouble range = axis->high * unit - axis->low * unit;
  const gdouble largest = MAX (fabs (axis->low), fabs (axis->high));
  const gdouble part = range / (largest * unit);
  gdouble step, power;
  gint exponent, top;
  gint64 first;

  if (!(part >= 1e-13))
    { /* the numbers do not differ in what can be written */
      ticks_take (ticks, axis->low,
                  format_power (axis->low, (gint) floor (log10 (largest)), 2, FALSE));
      return;
    }
  step = range / MAX (n, 1) / unit;
  if (step < LEAST_STEP)
    {
      const gint n_digits = (gint) ceil (MAX (-log10 (part), 0));

      top = (gint) floor (log10 (largest));
      ticks_take (ticks, axis->low, format_power (axis->low, top, n_digits, FALSE));
      ticks_take (ticks, axis->high, format_power (axis->high, top, n_digits, FALSE));
      return;
    }
  if (axis->is_whole && range / unit >= 1)
    step = MAX (step, 1);
  exponent = (gint) floor (log10 (step));
  power = pow (10, exponent);
  if (step / power <= 1.0001)
    step = power;
  else if (step / power <= 2.0001)
    step = 2 * power;
  else if (step / power <= 5.0001)
    step = 5 * power;
  else
    {
      step = 10 * power;
      exponent++;
    }
  if (!(step > 0) || fabs (axis->low / step) > 1e15)
    return;
  top = (gint) floor (log10 (largest) + 5e-8);
  if (top - exponent == 1 && largest < 2 * pow (10, top))
    top--; /* 2, 4, 6, 8, 10 in place of 0.2 to 1.0 */
  first = (gint64) ceil (axis->low / step - 1e-6);
  for (gint64 i = 0; i < MAX_TICKS; i++)
    {
      gdouble value = (first + i) * step;

      if (!isfinite (value) || value > axis->high + 1e-6 * step)
        break;
      ticks_take (ticks, value,
                  top > 6 || top < -4 ? format_power (value, top, MAX (top - exponent, 0), FALSE)
                                      : format_fixed (value, -exponent));
    }
}

/* --- logarithmic --- */

static gchar *
format_decade (gint exponent)
{
  GString *text;

  if (exponent >= -2 && exponent <= 3)
    return format_fixed (pow (10, exponent), -exponent);
  text = g_string_new (NULL);
  append_exponent (text, exponent);
  return g_string_free (text, FALSE);
}

static gchar *
format_in_decade (gint digit, gint exponent)
{
  if (exponent >= -3 && exponent <= 3)
    return format_fixed (digit * pow (10, exponent), -exponent);
  return format_power (digit * pow (10, exponent), exponent, 0, FALSE);
}

static void
add_log (GArray *ticks, const GTorchPlotAxis *axis, gdouble n)
{
  const gint first = (gint) floor (log10 (axis->low)), last = (gint) ceil (log10 (axis->high));
  const gint every = MAX (1, (gint) ceil ((last - first) / MAX (n, 1)));
  const gboolean has_digits = last - first <= 2;
  const gdouble low = axis->low * (1 - 1e-9), high = axis->high * (1 + 1e-9);
  const gint step = last - first < MAX_TICKS ? 1 : every;

  for (gint exponent = first; exponent <= last && ticks->len < MAX_TICKS; exponent += step)
    for (gint digit = 1; digit < (every == 1 ? 10 : 2); digit++)
      {
        gdouble value = digit * pow (10, exponent);

        if (!isfinite (value) || value < low || value > high)
          continue;
        if (digit == 1)
          ticks_take (ticks, value,
                      (exponent - first) % every == 0 ? format_decade (exponent) : NULL);
        else
          ticks_take (ticks, value,
                      has_digits && (digit == 2 || digit == 5) ? format_in_decade (digit, exponent)
                                                               : NULL);
      }
}

static guint
count_labels (const GArray *ticks)
{
  guint n = 0;

  for (guint i = 0; i < ticks->len; i++)
    n += g_array_index (ticks, GTorchPlotTick, i).label != NULL;
  return n;
}

GArray *
gtorch_plot_ticks_new (const GTorchPlotAxis *axis, gdouble n)
{
  GArray *ticks = ticks_new ();

  if (axis->is_log)
    {
      add_log (ticks, axis, n);
      if (count_labels (ticks) >= 2)
        return ticks;
      g_array_set_size (ticks, 0); /* within a decade */
    }
  add_linear (ticks, axis, n);
  for (guint i = ticks->len; i-- > 0;) /* for example 0, on a logarithmic axis */
    if (!isfinite (gtorch_plot_axis_place (axis, g_array_index (ticks, GTorchPlotTick, i).value)))
      g_array_remove_index (ticks, i);
  return ticks;
}
