/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/check/gtorch-race-private.h>

G_BEGIN_DECLS

/* What the checker of streams knows of a storage: see gtorch-race.c, whose lock is held for all of this. */

/* --- parts of memory --- */

/* Of a part with holes: its elements, in bytes, by size of the stride, the largest first. */
typedef struct
{
  gint64 offset, size; /* size: of one element */
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint n_dims;
} GTorchRaceGrid;

/* Bytes of a storage. */
typedef struct
{
  gint64 low, high;
  GTorchRaceGrid *grid; /* NULL: all between them */
} GTorchRacePart;

gboolean gtorch_race_parts_meet (const GTorchRacePart *a, const GTorchRacePart *b);

/* --- uses --- */

/* What was called, and by whom; shared by its uses. */
typedef struct _GTorchRaceCall GTorchRaceCall;
struct _GTorchRaceCall
{
  guint n_uses;
  gboolean in_place;
  const gchar *what;
  GTorchRaceCall *next; /* of those not in use */
  GTorchSite site;
};

#define GTORCH_RACE_ALL G_MAXUINT8 /* dimensions: it uses all of the storage */

typedef struct
{
  guint64 number;
  GTorchRaceCall *call;
  GTorchRaceOrder *order; /* of writes by queues of the CPU: the host waits for single ones */
  GTorchRacePart part;
  union
  {
    gint64 few[GTORCH_INLINE_DIMS];
    gint64 *many;
  } shape; /* of the tensor */
  guint16 queue;
  guint8 n_dims;
  guint8 is_write;
} GTorchRaceUse;

GTorchRaceCall *gtorch_race_call_new (const gchar *what, gboolean in_place, const GTorchSite *site);
void gtorch_race_call_unref (GTorchRaceCall *call);
/* Each takes a reference to the call. impl NULL: all of the storage. */
void gtorch_race_use_init (GTorchRaceUse *use, GTorchRaceCall *call, GTorchStorage *storage,
                           const GTorchImpl *impl, gboolean is_write);
void gtorch_race_use_clear (GTorchRaceUse *use);
/* A later use must come after the second one wherever it must come after the first. */
gboolean gtorch_race_use_covers (const GTorchRaceUse *use, const GTorchRaceUse *former);
/* The shape, for messages. */
gchar *gtorch_race_use_get_shape (const GTorchRaceUse *use);

/* --- who used a storage --- */

typedef struct
{
  GTorchRaceGraph *graph;
  gboolean is_written; /* or only read */
} GTorchRaceMember;

typedef struct _GTorchRaceRecord GTorchRaceRecord;
struct _GTorchRaceRecord
{
  GTorchStorage *storage;
  GTorchRaceRecord *next;    /* of those not in use */
  GTorchRaceMember *members; /* the graphs that use it, or NULL */
  guint n_members;
  guint n_uses, n_allocated;
  GTorchRaceUse *uses;
  GTorchRaceUse few[3];
};

/* NULL if there is none. */
GTorchRaceRecord *gtorch_race_record_find (const GTorchStorage *storage);
GTorchRaceRecord *gtorch_race_record_get (GTorchStorage *storage);
void gtorch_race_record_remove (GTorchStorage *storage);
/* Takes the use. */
void gtorch_race_record_append (GTorchRaceRecord *record, const GTorchRaceUse *use);
/* Another use may take its place. */
void gtorch_race_record_remove_use (GTorchRaceRecord *record, guint i);
/* The graph's entry, made if there is none yet. */
GTorchRaceMember *gtorch_race_record_join (GTorchRaceRecord *record, GTorchRaceGraph *graph);
void gtorch_race_record_leave (GTorchRaceRecord *record, GTorchRaceGraph *graph);

G_END_DECLS
