/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "tensor/gtorch-tensor-private.h"

G_BEGIN_DECLS

#define GTORCH_INDEX_ITEM  4                         /* integers per item */
#define GTORCH_INDEX_LIMIT (2 * GTORCH_MAX_DIMS + 1) /* maximum number of items */

/* Appends the items of a text, as gtorch_tensor_get () reads it, to the *n integers of an array with room for
 * GTORCH_INDEX_LIMIT items. */
gboolean gtorch_index_parse (const gchar *spec, gint64 *items, gsize *n, GError **error);

G_END_DECLS
