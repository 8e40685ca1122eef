/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "refuse.h"

#include "test-device.h"

#include <string.h>

/* The number of reports of one kind is limited. */
#define MAX_REPORTS 400

static guint n_criticals, n_warnings, n_reports;
static gchar *logged;
static GObject *stranger;

#ifdef __SANITIZE_ADDRESS__
/* malloc () refuses impossible sizes under AddressSanitizer, as it does elsewhere. */
const char *__asan_default_options (void);

const char *
__asan_default_options (void)
{
  return "allocator_may_return_null=1:detect_stack_use_after_return=1";
}
#endif

void
refusal_clear (Refusal *refusal)
{
  g_clear_pointer (&refusal->what, g_free);
  g_clear_pointer (&refusal->mention, g_free);
}

static void
count (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
  if (level & G_LOG_LEVEL_CRITICAL)
    n_criticals++;
  else if (level & G_LOG_LEVEL_WARNING)
    n_warnings++;
  else
    {
      g_log_default_handler (domain, level, message, data);
      return;
    }
  if (logged == NULL || (level & G_LOG_LEVEL_CRITICAL && n_criticals == 1))
    {
      g_free (logged);
      logged = g_strdup_printf ("%s: %s", domain, message);
    }
}

void
refuse_init (void)
{
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  g_log_set_default_handler (count, NULL);
  if (refuse_library.begin != NULL)
    refuse_library.begin ();
}

const gchar *
refuse_take_log (void)
{
  static gchar *taken;

  g_free (taken);
  taken = g_steal_pointer (&logged);
  n_criticals = n_warnings = 0;
  return taken;
}

const gchar *
refuse_take_critical (void)
{
  const gboolean is_critical = n_criticals > 0;
  const gchar *taken = refuse_take_log ();

  return is_critical ? taken : NULL;
}

void
refuse_restore (void)
{
  static gint n_threads;
  GTorchDevice *device = test_device ();
  GTorchAllocator *allocator = gtorch_device_get_allocator (device);

  if (n_threads == 0)
    n_threads = gtorch_get_num_threads ();
  gtorch_set_num_threads (n_threads, NULL);
  gtorch_set_default_dtype (GTORCH_DTYPE_FLOAT32, NULL);
  gtorch_set_default_device (device);
  gtorch_device_set_current (device, NULL);
  gtorch_set_grad_enabled (TRUE);
  gtorch_set_launch_blocking (FALSE);
  gtorch_set_print_options (4, 1000, 3, 80, GTORCH_SCI_MODE_AUTO, NULL);
  gtorch_stream_set_current (gtorch_device_get_default_stream (device));
  gtorch_device_set_pressure_threshold (device, 0);
  gtorch_host_allocator_set_limit (gtorch_host_allocator_get_default (), 0);
  gtorch_allocator_record_history (allocator, 0, 0, NULL);
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

gpointer
refuse_stranger (void)
{
  if (stranger == NULL)
    stranger = g_object_new (G_TYPE_OBJECT, NULL);
  return stranger;
}

const Function *
refuse_find (const gchar *name)
{
  guint i;

  for (i = 0; i < n_functions; i++)
    if (g_str_equal (functions[i].name, name))
      return &functions[i];
  return NULL;
}

static void
report (const Function *function, const Refusal *refusal, const gchar *text)
{
  g_autofree gchar *line = g_strdup_printf ("%s (%s): %s", function->name, refusal->what, text);
  g_autofree gchar *valid = g_utf8_make_valid (line, -1);

  g_test_fail ();
  if (n_reports++ < MAX_REPORTS)
    g_test_message ("%s", valid);
}

static void
drop (gpointer pointer, GDestroyNotify destroy, GType (*get_type) (void))
{
  if (pointer == NULL)
    return;
  if (destroy != NULL)
    destroy (pointer);
  else if (get_type == NULL)
    g_error ("nobody knows how to free a result");
  else if (G_TYPE_IS_OBJECT (get_type ()))
    g_object_unref (pointer);
  else
    g_boxed_free (get_type (), pointer);
}

/* Returns the fault in an error message, or NULL. */
static const gchar *
find_fault (const GError *error, const Refusal *refusal)
{
  const gchar *message = error->message;
  const gsize length = strlen (message);

  if (refusal->is_cancelled && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return "the error does not say that it was cancelled";
  if (error->domain != GTORCH_ERROR && error->domain != G_IO_ERROR)
    return "the error is of a foreign domain";
  if (length < 10)
    return "the message says nothing";
  if (message[length - 1] == '.' || message[length - 1] == '\n')
    return "the message ends with a full stop";
  if (strstr (message, "(null)") != NULL || !g_utf8_validate (message, -1, NULL))
    return "the message has no text where one should be";
  if (error->domain == GTORCH_ERROR && error->code > GTORCH_ERROR_DEVICE_LOST)
    return "the error has a code that there is not";
  if (refusal->is_state && error->domain == GTORCH_ERROR && strchr (message, ':') == NULL)
    return "the message does not say who";
  /* the message of a launch begins with the name of the kernel */
  if (refusal->begin != NULL && !g_str_has_prefix (message, "gt_")
      && (!g_str_has_prefix (message, refusal->begin) || message[strlen (refusal->begin)] != ':'))
    return "the message does not begin with the name of the operation";
  /* the message may name a value computed from the argument instead */
  if (refusal->mention != NULL && strstr (message, refusal->mention) == NULL
      && (error->code == GTORCH_ERROR_INDEX || error->code == GTORCH_ERROR_INVALID))
    return "the message does not name the value";
  return NULL;
}

static void
check_error (const Function *function, const Refusal *refusal, const GError *error)
{
  const gchar *fault = find_fault (error, refusal);
  g_autofree gchar *text = NULL;

  if (fault == NULL)
    return;
  text = g_strdup_printf ("%s: “%s”", fault, error->message);
  report (function, refusal, text);
}

static gboolean
is_failure (const Function *function, const Value *result)
{
  switch (function->returns)
    {
    case RETURN_BOOL:
      return !result->i;
    case RETURN_NONE:
    case RETURN_FULL:
      return result->p == NULL;
    default:
      return FALSE;
    }
}

static gboolean
says_so (const Function *function)
{
  return (function->returns == RETURN_BOOL && function->throws) || function->returns == RETURN_NONE
         || function->returns == RETURN_FULL;
}

/* Expects one critical message of this library: those of GObject come too late. */
static void
check_complaint (const Function *function, const Refusal *refusal, const Value *result,
                 const GError *error)
{
  if (n_criticals > 1 || !g_str_has_prefix (logged, "GTorch")
      || strstr (logged, ": gtorch_") == NULL)
    report (function, refusal, logged);
  if (error != NULL || (says_so (function) && !is_failure (function, result)))
    report (function, refusal, "a critical and a result or an error");
}

/* Of what gives one thing after another, NULL without an error is the end; a data set may have no state. */
static gboolean
has_end (const Function *function)
{
  return g_str_has_suffix (function->name, "_next")
         || g_str_has_suffix (function->name, "_next_value")
         || g_str_has_suffix (function->name, "_next_finish")
         || g_str_equal (function->name, "gtorch_iterable_dataset_get_state");
}

static void
check_ending (const Function *function, const Refusal *refusal, const Value *result,
              const GError *error, gboolean wants_error)
{
  const gboolean complained = n_criticals > 0;
  const gboolean failed =
      error != NULL || (!wants_error && function->throws && is_failure (function, result));

  if (complained && refusal->expect != MUST_COMPLAIN && refusal->expect != MUST_NOT_WORK
      && refusal->expect != MAY_COMPLAIN)
    report (function, refusal, logged);
  else if (complained)
    check_complaint (function, refusal, result, error);
  else if (refusal->expect == MUST_COMPLAIN)
    report (function, refusal, error != NULL ? error->message : "is taken, without a critical");
  else if (refusal->expect == MUST_FAIL && !failed && (wants_error || says_so (function)))
    report (function, refusal, "is taken, without an error");
  else if (refusal->expect == MUST_NOT_WORK && !failed && (wants_error || says_so (function)))
    report (function, refusal, "is taken");
  /* an empty graph may cause a warning */
  if (n_warnings > 0 && !complained && !g_str_equal (function->header, "gtorch-cuda-graph.h"))
    report (function, refusal, logged);
  if (error != NULL)
    check_error (function, refusal, error);
  if (error != NULL && says_so (function) && !is_failure (function, result))
    report (function, refusal, "gives a result and an error");
  if (wants_error && error == NULL && function->throws && !complained && !has_end (function)
      && is_failure (function, result))
    report (function, refusal, "fails without an error");
}

gboolean
refuse_call_once (const Function *function, const Value *args, const Refusal *refusal,
                  gboolean wants_error)
{
  static const Value untouched = { .i = 0x5a5a5a5a5a5a5a5a };
  g_autoptr (GError) error = NULL;
  Value given[MAX_PARAMS] = { { 0 } };
  Value places[MAX_PARAMS];
  Value result = { 0 };
  gboolean ok;
  guint i;

  for (i = 0; i < function->n_params; i++)
    {
      const Param *param = &function->params[i];

      given[i] = args[i];
      places[i] = untouched;
      if (param->kind == PARAM_OUT || param->kind == PARAM_OUT_FULL)
        given[i].p = !refusal->no_place && (wants_error || !param->nullable) ? &places[i] : NULL;
    }
  n_criticals = n_warnings = 0;
  g_clear_pointer (&logged, g_free);
  function->call (given, &result, wants_error ? &error : NULL);
  check_ending (function, refusal, &result, error, wants_error);
  ok = error == NULL && n_criticals == 0
       && (wants_error || !function->throws || !is_failure (function, &result));
  for (i = 0; i < function->n_params; i++)
    if (places[i].i != untouched.i)
      {
        if (!ok)
          report (function, refusal, "writes a result in spite of its failure");
        else if (function->params[i].kind == PARAM_OUT_FULL)
          drop ((gpointer) places[i].p, function->params[i].drop, function->params[i].get_type);
      }
  if (result.p != NULL && g_str_equal (function->name, "gtorch_tensor_to_dlpack"))
    gtorch_dlpack_delete ((gsize) result.p, args[1].i != 0);
  else if (result.i != 0 && g_str_equal (function->name, "gtorch_tensor_export_dlpack"))
    gtorch_dlpack_delete (result.i, args[1].i != 0);
  else if (function->returns == RETURN_FULL)
    drop ((gpointer) result.p, function->drop, function->get_type);
  return ok;
}

gboolean
refuse_call (const Function *function, const Value *args, const Refusal *refusal)
{
  const gboolean ok = refuse_call_once (function, args, refusal, TRUE);

  refuse_call_once (function, args, refusal, FALSE);
  return ok;
}
