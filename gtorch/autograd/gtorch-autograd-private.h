/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Drops impl->autograd. */
void gtorch_autograd_free (GTorchImpl *impl);

G_END_DECLS
