/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls that outlive their caller. */

#include "config.h"

#include "dispatch/gtorch-run-private.h"
#include "dispatch/gtorch-saved-call-private.h"

#include "base/gtorch-observer-named-private.h"
#include "device/gtorch-generator-private.h"
#include "stream/gtorch-stream-private.h"

/* What is written to was checked when the program called; whoever runs the call may be in another mode. */
static GTorchImpl *
alias_of (GTorchImpl *impl, GTorchAliasFunc alias, gpointer data)
{
  GTorchImpl *result = alias != NULL ? alias (impl, data) : gtorch_impl_alias (impl);

  result->inference = 0;
  return result;
}

GTorchSavedCall *
gtorch_saved_call_new (const GTorchOpCall *call, GTorchAliasFunc alias, gpointer data)
{
  GTorchSavedCall *saved = g_new0 (GTorchSavedCall, 1);
  const GTorchOpClass *op = call->op;
  guint i, j, attr;

  saved->call = *call;
  saved->call.is_plain = FALSE; /* an alias may have another layout */
  saved->inputs = g_new0 (GTorchImpl *, MAX (call->n_inputs, 1));
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      saved->inputs[i] = alias_of (call->inputs[i], alias, data);
  for (i = 0; i < call->n_outputs; i++)
    {
      saved->call.outputs[i] = NULL;
      if (call->outputs[i] == NULL)
        continue;
      for (j = 0; j < call->n_inputs; j++) /* in place, the output is the aliased input */
        if (saved->call.outputs[i] == NULL && call->outputs[i] == call->inputs[j])
          saved->call.outputs[i] = gtorch_impl_ref (saved->inputs[j]);
      if (saved->call.outputs[i] == NULL)
        saved->call.outputs[i] = alias_of (call->outputs[i], alias, data);
    }

  saved->attrs = g_new0 (GTorchAttr, MAX (op->n_attrs, 1));
  for (i = 0, attr = 0; i < op->n_args; i++)
    {
      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      saved->attrs[attr] = call->attrs[attr];
      if (op->args[i].kind == GTORCH_ARG_INTS)
        saved->attrs[attr].list.data =
            g_memdup2 (call->attrs[attr].list.data, call->attrs[attr].list.n * sizeof (gint64));
      else if (op->args[i].kind == GTORCH_ARG_GENERATOR && call->attrs[attr].p != NULL)
        g_object_ref (saved->attrs[attr].p);
      attr++;
    }
  saved->call.inputs = saved->inputs;
  saved->call.attrs = saved->attrs;
  saved->number = alias == NULL ? gtorch_observe_saved (call) : 0;
  return saved;
}

void
gtorch_saved_call_free (GTorchSavedCall *saved)
{
  const GTorchOpClass *op = saved->call.op;
  guint i, attr;

  gtorch_impl_clear (saved->inputs, saved->call.n_inputs);
  gtorch_impl_clear (saved->call.outputs, saved->call.n_outputs);
  for (i = 0, attr = 0; i < op->n_args; i++)
    {
      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      if (op->args[i].kind == GTORCH_ARG_INTS)
        g_free ((gpointer) saved->attrs[attr].list.data);
      else if (op->args[i].kind == GTORCH_ARG_GENERATOR)
        g_clear_object (&saved->attrs[attr].p);
      attr++;
    }
  g_free (saved->inputs);
  g_free (saved->attrs);
  g_free (saved);
}

gboolean
gtorch_saved_call_run (GTorchSavedCall *saved, GError **error)
{
  GTorchDevice *device = saved->call.device;
  const GTorchStream *former = gtorch_thread.streams[device->slot];
  GTorchChange change;
  gboolean result;

  if (former != NULL)
    gtorch_change_to_stream (&change, device, NULL);
  gtorch_thread.must_finish = TRUE;
  gtorch_observe_run_begin (saved->number, &saved->call);
  result = gtorch_call_run (&saved->call, NULL, error);
  gtorch_observe_run_end (saved->number, &saved->call);
  gtorch_thread.must_finish = FALSE;
  if (former != NULL)
    gtorch_change_end (&change);
  if (!result)
    gtorch_call_name_error (&saved->call, error);
  return result;
}
