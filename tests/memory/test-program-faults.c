/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Code that consists of several operations, with each of its allocations and each of its calls of the
 * fake driver failing in turn: layers, optimizers, files, capsules, indexing, printing, streams and
 * graphs. A program gets an error that names the cause, leaks nothing, and works afterwards; its earlier
 * objects are unchanged.
 *
 * If a GPU fails between the launches of a function that changes several tensors, some of them have
 * changed: each has either its old or its new value. */

#include "config.h"

#include <string.h>

#include "fault.h"
#include "programs.h"
#include "test-device.h"

#define MAX_NTH 2000

static guint n_done, n_tests, n_tests_done;

/* --- state before the fault --- */

static void
add_elements (GPtrArray *list, GTorchTensor *tensor)
{
  gsize n_bytes;
  gpointer data = test_dup_elements (tensor, &n_bytes);

  g_ptr_array_add (list, g_bytes_new_take (data, n_bytes));
}

static void
add_states (GPtrArray *list, GHashTable *states)
{
  g_autoptr (GList) keys = g_list_sort (g_hash_table_get_keys (states), (GCompareFunc) g_strcmp0);
  GList *key;

  for (key = keys; key != NULL; key = key->next)
    add_elements (list, g_hash_table_lookup (states, key->data));
}

/* Returns the elements of all tensors, parameters, gradients, and of an optimizer's states. */
static GPtrArray *
look (State *state, const gchar *but)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  g_autoptr (GList) names =
      g_list_sort (g_hash_table_get_keys (state->objects), (GCompareFunc) g_strcmp0);
  GList *name;
  guint i;

  for (name = names; name != NULL; name = name->next)
    {
      gpointer object = g_hash_table_lookup (state->objects, name->data);

      if (GTORCH_IS_TENSOR (object))
        add_elements (list, object);
      else if (GTORCH_IS_OPTIMIZER (object))
        {
          g_autoptr (GHashTable) states = gtorch_optimizer_state_dict (object);

          add_states (list, states);
        }
      else if (GTORCH_IS_MODULE (object))
        {
          g_autoptr (GListModel) parameters = gtorch_module_get_parameters (object, TRUE);
          g_autoptr (GListModel) buffers = gtorch_module_get_buffers (object, TRUE);

          for (i = 0; i < g_list_model_get_n_items (parameters); i++)
            {
              g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
              g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (parameter);

              add_elements (list, parameter);
              if (grad != NULL && g_strcmp0 (but, "gradients") != 0)
                add_elements (list, grad);
            }
          for (i = 0; g_strcmp0 (but, "buffers") != 0 && i < g_list_model_get_n_items (buffers);
               i++)
            {
              g_autoptr (GTorchTensor) buffer = g_list_model_get_item (buffers, i);

              add_elements (list, buffer);
            }
        }
    }
  for (i = 0; i < state->results->len; i++)
    add_elements (list, state->results->pdata[i]);
  return list;
}

/* --- runs --- */

typedef struct
{
  const Fault *fault;
  const Program *program;
  guint nth;
} Case;

static void G_GNUC_PRINTF (2, 3) complain (const Case *self, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_test_message ("%s, %s %u: %s", self->program->name, self->fault->name, self->nth, text);
  g_test_fail ();
}

static void
compare (const Case *self, GPtrArray *is, GPtrArray *was, const gchar *text)
{
  gboolean same = is->len == was->len;
  guint i;

  for (i = 0; same && i < is->len; i++)
    same = g_bytes_equal (is->pdata[i], was->pdata[i]);
  if (!same)
    complain (self, "%s", text);
}

/* Returns TRUE if each element has either its old or its new value. */
static gboolean
is_between (GPtrArray *is, GPtrArray *was, GPtrArray *would)
{
  gboolean ok = is->len == was->len && is->len <= would->len;
  guint i;

  for (i = 0; ok && i < is->len; i++)
    ok = g_bytes_equal (is->pdata[i], was->pdata[i])
         || g_bytes_equal (is->pdata[i], would->pdata[i]);
  return ok;
}

static void
prepare (const Program *program, State *state)
{
  state->objects = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_object_unref);
  state->results = g_ptr_array_new_with_free_func (g_object_unref);
  gtorch_manual_seed (3);
  program->prepare (state);
  gtorch_manual_seed (4);
}

static guint64
live_bytes (void)
{
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  gtorch_device_empty_cache (test_device ());
  return gtorch_device_get_memory_allocated (test_device ());
}

/* A thread frees memory that came through DLPack, when the work that used it is done. */
static gboolean
are_no_more_live (guint64 bytes)
{
  const gint64 deadline = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;

  while (live_bytes () > bytes && g_get_monotonic_time () < deadline)
    g_usleep (1000);
  return live_bytes () <= bytes;
}

static void
check_error (const Case *self, const GError *error)
{
  if (error->domain != GTORCH_ERROR
      || (self->fault->is_memory && error->code != GTORCH_ERROR_OUT_OF_MEMORY))
    complain (self, "the error is “%s”", error->message);
  else if (strchr (error->message, ':') == NULL)
    complain (self, "“%s” does not say who", error->message);
}

static gboolean
is_parted (const Case *self)
{
  return self->program->is_parted && !self->fault->is_memory && !self->fault->is_lost;
}

/* The prepared objects are unchanged, and the program works now. */
static gboolean
run_again (const Case *self, State *state, GPtrArray *before, GPtrArray *expected)
{
  g_autoptr (GPtrArray) after = NULL;
  g_autoptr (GError) error = NULL;

  g_ptr_array_set_size (state->results, 0);
  if (self->fault->is_lost)
    {
      state_clear (state);
      prepare (self->program, state);
    }
  else
    {
      after = look (state, self->program->may_change);
      if (!is_parted (self))
        compare (self, after, before, "something has changed");
      else if (!is_between (after, before, expected))
        complain (self, "something is neither as it was nor as it would be");
      gtorch_manual_seed (4);
    }
  if (self->program->run (state, &error))
    return !is_parted (self);
  complain (self, "does not work any more: %s", error->message);
  return FALSE;
}

/* Returns FALSE if the program has fewer operations of the kind. */
static gboolean
run_fault (const Case *self, GPtrArray *expected)
{
  g_auto (State) state = { NULL };
  g_autoptr (GPtrArray) before = NULL;
  g_autoptr (GPtrArray) after = NULL;
  g_autoptr (GError) error = NULL;
  gboolean ok, has_failed;

  prepare (self->program, &state);
  before = look (&state, self->program->may_change);
  self->fault->begin (self->nth);
  ok = self->program->run (&state, &error);
  has_failed = self->fault->end ();
  if (ok != (error == NULL))
    complain (self, "the error is “%s”", error != NULL ? error->message : "");
  else if (!ok)
    check_error (self, error);
  if (ok || run_again (self, &state, before, expected))
    {
      after = look (&state, self->program->may_change);
      compare (self, after, expected, "the result is another one");
    }
  n_done += has_failed;
  return has_failed;
}

static void
anything_may_fail (gconstpointer data)
{
  Case self = *(const Case *) data;
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GError) error = NULL;
  guint64 bytes = 0;

  n_tests_done++;
  if (self.program->is_possible != NULL && !self.program->is_possible ())
    return;
  {
    g_auto (State) state = { NULL };

    prepare (self.program, &state);
    self.program->run (&state, &error);
    if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED)
        && test_device () != gtorch_device_cpu ())
      {
        g_test_skip (error->message);
        return;
      }
    g_assert_no_error (error);
    expected = look (&state, self.program->may_change);
  }
  for (self.nth = 1; self.nth < MAX_NTH; self.nth++)
    {
      if (self.nth == 2)
        bytes = live_bytes ();
      if (!run_fault (&self, expected))
        break;
      if (self.nth > 2 && !are_no_more_live (bytes))
        {
          complain (&self, "memory is lost: %" G_GUINT64_FORMAT " bytes were %" G_GUINT64_FORMAT,
                    live_bytes (), bytes);
          bytes = live_bytes ();
        }
    }
  g_test_message ("%u faults", self.nth - 1);
  g_assert_cmpuint (self.nth, <, MAX_NTH);
}

static void
enough_faults_occurred (void)
{
  if (n_tests_done < n_tests)
    {
      g_test_skip ("not all were run");
      return;
    }
  g_test_message ("%u faults", n_done);
  g_assert_cmpuint (n_done, >, 200);
}

int
main (int argc, char *argv[])
{
  g_autofree Case *cases = g_new (Case, n_faults * n_programs);
  guint i, k;

  g_test_init (&argc, &argv, NULL);
  for (k = 0; k < n_faults; k++)
    for (i = 0; fault_can (&faults[k]) && i < n_programs; i++)
      {
        Case *next = &cases[k * n_programs + i];
        g_autofree gchar *path =
            g_strdup_printf ("/GTorch/program-faults/%s/%s", faults[k].name, programs[i].name);

        *next = (Case){ &faults[k], &programs[i], 0 };
        g_test_add_data_func (path, next, anything_may_fail);
        n_tests++;
      }
  g_test_add_func ("/GTorch/program-faults/all/enough_faults_occurred", enough_faults_occurred);
  return g_test_run ();
}
