/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What autograd does for tensors and operations, which do not know it. */

#include "config.h"

#include "autograd/gtorch-autograd-private.h"

static void
require (GTorchImpl *impl)
{
  gtorch_autograd_ensure (impl)->requires_grad = TRUE;
}

static const GTorchRecorder recorder = {
  .install_properties = gtorch_tensor_install_autograd,
  .destroy = gtorch_autograd_destroy,
  .add_references = gtorch_autograd_add_references,
  .drop_graph = gtorch_grad_drop_graph,
  .regenerate = gtorch_autograd_regenerate,
  .record = gtorch_autograd_record,
  .record_view = gtorch_autograd_record_view,
  .begin_in_place = gtorch_autograd_begin_in_place,
  .differentiate = gtorch_autograd_differentiate,
  .require = require,
};

/* Earlier than constructors of programs that link the library statically, which may use it. */
static void __attribute__ ((constructor (200))) set_recorder (void) { gtorch_recorder = &recorder; }
