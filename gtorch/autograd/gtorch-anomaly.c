/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The search for the operation whose gradient is wrong. While it is on, each node notes where its operation
 * was called from, and the backward pass looks at all gradients that it computes. */

#include "config.h"

#include "autograd/gtorch-anomaly.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-place-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-host-private.h"

gint gtorch_anomaly;

void
gtorch_anomaly_note_site (GTorchNode *node)
{
  GTorchNodeExtra *extra = gtorch_node_ensure_extra (node);

  extra->site = g_new (GTorchSite, 1);
  gtorch_site_take (extra->site);
  extra->place = gtorch_place_take ();
}

/* Returns whether there is a NaN, or -1 with an error. */
static gint
has_nan (GTorchImpl *impl, GError **error)
{
  g_autoptr (GTorchImpl) which = gtorch_op_isnan (impl, error);
  g_autoptr (GTorchImpl) any = which != NULL ? gtorch_op_any (which, NULL, 0, FALSE, error) : NULL;
  g_autoptr (GTorchImpl) host = any != NULL ? gtorch_impl_to_host ("backward", any, error) : NULL;
  gdouble found;

  if (host == NULL)
    return -1;
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, &found);
  return found != 0;
}

gboolean
gtorch_anomaly_check (GTorchNode *node, GTorchImpl *const *results, GError **error)
{
  GTorchChange mode;
  gint found = 0;
  guint i;

  gtorch_change_to_grad (&mode, FALSE);
  for (i = 0; i < node->n_edges && found == 0; i++)
    if (results[i] != NULL)
      found = has_nan (results[i], error);
  gtorch_change_end (&mode);
  if (found > 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                 _ ("its gradient of input %u, of dtype %s and shape %s, has NaN"), i - 1,
                 gtorch_dtype_get_name (results[i - 1]->dtype),
                 gtorch_impl_shape_str (results[i - 1]));
  return found == 0;
}

void
gtorch_anomaly_add_site (GTorchNode *node, GError **error)
{
  g_autofree gchar *site = NULL;
  g_autofree gchar *former = NULL;

  if (error == NULL || *error == NULL || node->extra == NULL || node->extra->site == NULL)
    return;
  site = node->extra->place != NULL ? gtorch_place_dup_first (node->extra->place)
                                    : gtorch_site_to_string (node->extra->site);
  former = (*error)->message;
  (*error)->message = g_strdup_printf (_ ("%s; the operation was called by %s"), former, site);
}

/**
 * gtorch_set_detect_anomaly:
 * @mode: whether to search for anomalies
 * @check_nan: whether a gradient with NaN is one
 *
 * Turns the search for operations with wrong gradients on or off, in all threads.
 *
 * While it is on, operations note where they are called from, and an error of a backward pass tells where its
 * operation was. With @check_nan a pass fails with %GTORCH_ERROR_AUTOGRAD as soon as an operation computes a
 * gradient with NaN. That takes much time, since the host waits for each gradient, and is for debugging only.
 * For that reason it does not go together with captures of graphs.
 *
 * ```c
 * gtorch_set_detect_anomaly (TRUE, TRUE);
 * root = gtorch_tensor_sqrt (zeros, &error);
 * product = gtorch_tensor_mul (root, zeros, &error);
 * gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error);
 * // backward of sqrt: its gradient of input 0, of dtype float32 and shape [], has NaN; the operation …
 * ```
 *
 * Since: 0.1
 */
void
gtorch_set_detect_anomaly (gboolean mode, gboolean check_nan)
{
  g_atomic_int_set (&gtorch_anomaly, mode ? (check_nan ? 2 : 1) : (check_nan ? 0 : -1));
}

/**
 * gtorch_is_anomaly_enabled:
 *
 * Tells whether [func@set_detect_anomaly] has turned the search on.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_is_anomaly_enabled (void)
{
  return g_atomic_int_get (&gtorch_anomaly) > 0;
}

/**
 * gtorch_is_anomaly_check_nan_enabled:
 *
 * Tells whether the search of [func@set_detect_anomaly], if it is on, looks for NaN, too.
 *
 * Returns: %TRUE if so; %TRUE at first
 *
 * Since: 0.1
 */
gboolean
gtorch_is_anomaly_check_nan_enabled (void)
{
  const gint anomaly = g_atomic_int_get (&gtorch_anomaly);

  return anomaly == 0 || anomaly == 2;
}
