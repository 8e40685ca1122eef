/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-scope.h>

G_BEGIN_DECLS

/* The thread's innermost scope, or NULL. */
extern __thread GTorchScope *gtorch_scope_current;

/* A tensor object was made while there is one. */
void gtorch_scope_add (GTorchTensor *tensor);

/* The library itself keeps this object from now on: no scope of this thread lets go of it. */
void gtorch_scope_exempt (GTorchTensor *tensor);

/* Lets go of the elements that this object shows; the impl stays for whoever else holds it. */
void gtorch_tensor_let_go (GTorchTensor *tensor);

G_END_DECLS
