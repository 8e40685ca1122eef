/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* A call that outlives its caller. */
typedef struct
{
  GTorchOpCall call;
  GTorchImpl **inputs; /* aliases of the operands, unaffected by release () and set_data () */
  GTorchAttr *attrs;
  guint64 number; /* by which observers know it; of calls that run once */
} GTorchSavedCall;

/* Returns the alias to save for an operand. Where it is NULL, the call runs once and gtorch_impl_alias () is
 * used. */
typedef GTorchImpl *(*GTorchAliasFunc) (GTorchImpl *impl, gpointer data);

GTorchSavedCall *gtorch_saved_call_new (const GTorchOpCall *call, GTorchAliasFunc alias,
                                        gpointer data);
void gtorch_saved_call_free (GTorchSavedCall *saved);
/* Runs the call in this thread, with the default stream current. */
gboolean gtorch_saved_call_run (GTorchSavedCall *saved, GError **error);

G_END_DECLS
