/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Where the columns of a figure are, and its rows. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-plot-private.h"

static gdouble
ratio_of (const GArray *ratios, guint i)
{
  return i < ratios->len ? g_array_index (ratios, gdouble, i) : 1;
}

void
gtorch_plot_track_init (GTorchPlotTrack *track, guint n, const GArray *ratios, gdouble begin,
                        gdouble size, gdouble gap)
{
  gdouble *memory = g_new0 (gdouble, 4 * n);

  *track = (GTorchPlotTrack){ n,      ratios,     begin,          size,          gap,
                              memory, memory + n, memory + 2 * n, memory + 3 * n };
}

/* Of the size without margins each gets what its ratio says; if the margins leave nothing, of all of it. */
void
gtorch_plot_track_divide (GTorchPlotTrack *track)
{
  const gdouble room = track->size - (track->n - 1) * track->gap;
  gdouble margins = 0, sum = 0, end = track->begin - track->gap;

  for (guint i = 0; i < track->n; i++)
    {
      margins += track->before[i] + track->after[i];
      sum += ratio_of (track->ratios, i);
    }
  for (guint i = 0; i < track->n; i++)
    {
      const gdouble part = ratio_of (track->ratios, i) / sum;

      track->begins[i] = end + track->gap;
      track->sizes[i] = margins < room
                            ? track->before[i] + track->after[i] + (room - margins) * part
                            : room * part;
      end = track->begins[i] + track->sizes[i];
    }
}

void
gtorch_plot_track_clear (GTorchPlotTrack *track)
{
  g_free (track->before); /* and what follows it */
}

/* Replaces ratios, if all of them are valid. */
gboolean
gtorch_plot_ratios_set (GArray *ratios, const gchar *op, const gdouble *values, gsize n_values,
                        GError **error)
{
  if (n_values > GTORCH_PLOT_MAX_PLACES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %zu ratios are more than the %d places of a figure"), op, n_values,
                   GTORCH_PLOT_MAX_PLACES);
      return FALSE;
    }
  for (gsize i = 0; i < n_values; i++)
    if (!(values[i] >= 1e-3 && values[i] <= 1e3))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: ratio %zu is %g: all must be from 0.001 to 1000"), op, i, values[i]);
        return FALSE;
      }
  g_array_set_size (ratios, 0);
  g_array_append_vals (ratios, values, (guint) n_values);
  return TRUE;
}
