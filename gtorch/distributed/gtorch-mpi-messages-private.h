/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The streams in which sends and receives wait. Messages of one rank, direction and tag have one order and
 * one stream; others do not wait for them, since what the other side is to do first must not be held up. */

#pragma once

#include "stream/gtorch-stream-private.h"

G_BEGIN_DECLS

typedef struct _GTorchMpiMessages GTorchMpiMessages;

GTorchMpiMessages *gtorch_mpi_messages_new (void);
void gtorch_mpi_messages_free (GTorchMpiMessages *self);
/* The stream for a message, which belongs to this, until the message is over. */
GTorchStream *gtorch_mpi_messages_begin (GTorchMpiMessages *self, gint64 pair, GError **error);
void gtorch_mpi_messages_end (GTorchMpiMessages *self, gint64 pair);

G_END_DECLS
