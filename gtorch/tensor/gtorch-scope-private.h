/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-scope.h>

G_BEGIN_DECLS

/* The thread's innermost scope, or NULL. */
extern __thread GTorchScope *gtorch_scope_current;

/* Called if there is a scope, when a tensor object is created. */
void gtorch_scope_add (GTorchTensor *tensor);

/* Excludes an object from all scopes of this thread, since the library itself keeps it from now on. */
void gtorch_scope_exempt (GTorchTensor *tensor);

/* Releases the elements of this object; the impl survives if it has other references. */
void gtorch_tensor_let_go (GTorchTensor *tensor);

G_END_DECLS
