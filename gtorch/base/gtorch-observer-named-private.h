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

/* --- calls that a queue computes --- */

guint64 gtorch_tell_saved (const GTorchOpCall *call);
void gtorch_tell_run_begin (guint64 number, const GTorchOpCall *call);
void gtorch_tell_run_end (guint64 number, const GTorchOpCall *call);

/* Returns the number that an observer has given to the call, or 0. */
static inline guint64
gtorch_observe_saved (const GTorchOpCall *call)
{
  return gtorch_is_observed () ? gtorch_tell_saved (call) : 0;
}

static inline void
gtorch_observe_run_begin (guint64 number, const GTorchOpCall *call)
{
  if (G_UNLIKELY (number != 0))
    gtorch_tell_run_begin (number, call);
}

static inline void
gtorch_observe_run_end (guint64 number, const GTorchOpCall *call)
{
  if (G_UNLIKELY (number != 0))
    gtorch_tell_run_end (number, call);
}

G_END_DECLS
