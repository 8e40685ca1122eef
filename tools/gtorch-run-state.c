/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What all nodes of a job agree on: one value in the store, which a node replaces only if it is still what
 * the node has seen. */

#include "config.h"

#include "gtorch-run-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

/* round, restarts, is_complete, is_closed, expected, nodes, waiting, done, status, reason */
#define TYPE "(uubbua(ssuuu)asasis)"

static void
node_free (gpointer data)
{
  GTorchRunNode *node = data;

  g_free (node->id);
  g_free (node->address);
  g_free (node);
}

GTorchRunState *
gtorch_run_state_new (guint expected)
{
  GTorchRunState *state = g_new0 (GTorchRunState, 1);

  state->expected = expected;
  state->nodes = g_ptr_array_new_with_free_func (node_free);
  state->waiting = g_ptr_array_new_with_free_func (g_free);
  state->done = g_ptr_array_new_with_free_func (g_free);
  state->reason = g_strdup ("");
  return state;
}

void
gtorch_run_state_free (GTorchRunState *state)
{
  g_ptr_array_unref (state->nodes);
  g_ptr_array_unref (state->waiting);
  g_ptr_array_unref (state->done);
  g_free (state->reason);
  g_free (state);
}

static GVariant *
names_to_variant (GPtrArray *names)
{
  return g_variant_new_strv ((const gchar *const *) names->pdata, names->len);
}

GBytes *
gtorch_run_state_to_bytes (const GTorchRunState *state)
{
  g_autoptr (GVariant) variant = NULL;
  GVariantBuilder nodes;
  gchar *text;
  guint i;

  g_variant_builder_init (&nodes, G_VARIANT_TYPE ("a(ssuuu)"));
  for (i = 0; i < state->nodes->len; i++)
    {
      const GTorchRunNode *node = state->nodes->pdata[i];

      g_variant_builder_add (&nodes, "(ssuuu)", node->id, node->address, node->n_workers,
                             node->port, node->order);
    }
  variant = g_variant_ref_sink (
      g_variant_new ("(uubbua(ssuuu)@as@asis)", state->round, state->restarts, state->is_complete,
                     state->is_closed, state->expected, &nodes, names_to_variant (state->waiting),
                     names_to_variant (state->done), state->status, state->reason));
  text = g_variant_print (variant, FALSE);
  return g_bytes_new_take (text, strlen (text));
}

static void
names_from_variant (GVariant *variant, GPtrArray *names)
{
  GVariantIter iter;
  gchar *name;

  g_variant_iter_init (&iter, variant);
  while (g_variant_iter_next (&iter, "s", &name))
    g_ptr_array_add (names, name);
}

GTorchRunState *
gtorch_run_state_from_bytes (GBytes *bytes, GError **error)
{
  g_autoptr (GVariant) variant = NULL, waiting = NULL, done = NULL;
  g_autoptr (GTorchRunState) state = gtorch_run_state_new (0);
  g_autoptr (GVariantIter) nodes = NULL;
  const gchar *id, *address;
  guint n_workers, port, order;
  const gchar *text;
  gsize size;

  text = g_bytes_get_data (bytes, &size);
  if (text != NULL)
    variant = g_variant_parse (G_VARIANT_TYPE (TYPE), text, text + size, NULL, NULL);
  if (variant == NULL)
    {
      gtorch_run_refuse (error, _ ("the store has no state of a job: another program, or another "
                                   "version of this one, uses it"));
      return NULL;
    }
  g_clear_pointer (&state->reason, g_free);
  g_variant_get (variant, "(uubbua(ssuuu)@as@asis)", &state->round, &state->restarts,
                 &state->is_complete, &state->is_closed, &state->expected, &nodes, &waiting, &done,
                 &state->status, &state->reason);
  while (g_variant_iter_next (nodes, "(&s&suuu)", &id, &address, &n_workers, &port, &order))
    gtorch_run_state_add (state, id, address, n_workers, port, order);
  names_from_variant (waiting, state->waiting);
  names_from_variant (done, state->done);
  return g_steal_pointer (&state);
}

gint
gtorch_run_state_find (const GTorchRunState *state, const gchar *id)
{
  guint i;

  for (i = 0; i < state->nodes->len; i++)
    if (strcmp (((GTorchRunNode *) state->nodes->pdata[i])->id, id) == 0)
      return (gint) i;
  return -1;
}

gboolean
gtorch_run_state_has (GPtrArray *names, const gchar *id)
{
  return g_ptr_array_find_with_equal_func (names, id, g_str_equal, NULL);
}

void
gtorch_run_state_add (GTorchRunState *state, const gchar *id, const gchar *address, guint n_workers,
                      guint port, guint order)
{
  GTorchRunNode *node = g_new (GTorchRunNode, 1);

  *node = (GTorchRunNode){ g_strdup (id), g_strdup (address), n_workers, port, order };
  g_ptr_array_add (state->nodes, node);
}

static void
remove_name (GPtrArray *names, const gchar *id)
{
  guint place;

  if (g_ptr_array_find_with_equal_func (names, id, g_str_equal, &place))
    g_ptr_array_remove_index (names, place);
}

void
gtorch_run_state_remove (GTorchRunState *state, const gchar *id)
{
  const gint place = gtorch_run_state_find (state, id);

  if (place >= 0)
    g_ptr_array_remove_index (state->nodes, (guint) place);
  remove_name (state->waiting, id);
  remove_name (state->done, id);
}

void
gtorch_run_state_next_round (GTorchRunState *state, guint expected, const gchar *reason)
{
  state->round++;
  state->is_complete = FALSE;
  state->expected = expected;
  g_ptr_array_set_size (state->nodes, 0);
  g_ptr_array_set_size (state->waiting, 0);
  g_ptr_array_set_size (state->done, 0);
  g_free (state->reason);
  state->reason = g_strdup (reason);
}

guint
gtorch_run_state_count (const GTorchRunState *state, guint n_nodes)
{
  guint n = 0, i;

  for (i = 0; i < n_nodes; i++)
    n += ((const GTorchRunNode *) state->nodes->pdata[i])->n_workers;
  return n;
}

static gint
compare_nodes (gconstpointer a, gconstpointer b)
{
  const GTorchRunNode *first = *(GTorchRunNode *const *) a, *second = *(GTorchRunNode *const *) b;

  if (first->order != second->order)
    return first->order < second->order ? -1 : 1;
  return strcmp (first->id, second->id);
}

void
gtorch_run_state_complete (GTorchRunState *state)
{
  g_ptr_array_sort (state->nodes, compare_nodes);
  state->is_complete = TRUE;
}

void
gtorch_run_state_close (GTorchRunState *state, gint status, const gchar *reason)
{
  state->is_closed = TRUE;
  state->status = status;
  g_free (state->reason);
  state->reason = g_strdup (reason);
}
