/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Characters and strings of JSON (RFC 8259), for what parses a text of valid UTF-8. */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  const gchar *start, *at, *end;
} GTorchJsonLexer;

static inline void
gtorch_json_skip_space (GTorchJsonLexer *self)
{
  while (self->at < self->end
         && (*self->at == ' ' || *self->at == '\t' || *self->at == '\n' || *self->at == '\r'))
    self->at++;
}

static inline gboolean
gtorch_json_accept (GTorchJsonLexer *self, gchar c)
{
  gtorch_json_skip_space (self);
  if (self->at == self->end || *self->at != c)
    return FALSE;
  self->at++;
  return TRUE;
}

/* Behind the opening quote: writes what the string means, and a zero byte, up to the closing one. That takes
 * no more room than the text does with its quote, so it may be written over the text itself. Returns NULL, or
 * what was expected instead. */
const gchar *gtorch_json_read_string (GTorchJsonLexer *self, gchar *to);
/* The room of the string that begins here, with its zero byte, if it ends. */
gsize gtorch_json_string_room (const GTorchJsonLexer *self);

G_END_DECLS
