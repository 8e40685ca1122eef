/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>

G_BEGIN_DECLS

/* What has a name in profiles and is no operation, from its beginning to its end. */
typedef enum
{
  GTORCH_NAMED_FUNCTION,   /* forward of a GTorchFunction */
  GTORCH_NAMED_COLLECTIVE, /* an operation of a group, until it is enqueued */
  GTORCH_NAMED_TRANSFER,   /* what its engine does for it, in any thread */
} GTorchNamedKind;

struct _GTorchNamed
{
  GTorchNamedKind kind;
  const gchar *name; /* is never freed */
  GTorchImpl *const *inputs;
  guint n_inputs;
  GTorchDevice *device; /* NULL: none */
  guint64 sequence;     /* FUNCTION, at its end: of the node that was recorded; 0: none */
};

void gtorch_tell_named_begin (const GTorchNamed *named);
void gtorch_tell_named_end (const GTorchNamed *named);

static inline void
gtorch_observe_named_begin (const GTorchNamed *named)
{
  if (gtorch_is_observed ())
    gtorch_tell_named_begin (named);
}

static inline void
gtorch_observe_named_end (const GTorchNamed *named)
{
  if (gtorch_is_observed ())
    gtorch_tell_named_end (named);
}

G_END_DECLS
