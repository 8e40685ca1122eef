/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/check/gtorch-race-order-private.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* What the stream checker knows of a storage; see gtorch-race.c, whose lock must be held for every function
 * here. */

/* What the checker knows of a graph's replays. */
typedef struct _GTorchRaceGraph GTorchRaceGraph;

/* --- parts of memory --- */

/* Element grid of a part with holes, in bytes; dimensions are sorted by descending stride. */
typedef struct
{
  gint64 offset, size; /* size: bytes of one element */
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint n_dims;
} GTorchRaceGrid;

/* A byte range of a storage. */
typedef struct
{
  gint64 low, high;
  GTorchRaceGrid *grid; /* NULL: every byte of the range */
} GTorchRacePart;

gboolean gtorch_race_parts_meet (const GTorchRacePart *a, const GTorchRacePart *b);

/* --- uses --- */

/* A call and its call site, shared by its uses. */
typedef struct _GTorchRaceCall GTorchRaceCall;
struct _GTorchRaceCall
{
  guint n_uses;
  gboolean in_place;
  const gchar *what;
  GTorchRaceCall *next; /* next unused call in the free list */
  GTorchSite site;
};

#define GTORCH_RACE_ALL G_MAXUINT8 /* value of n_dims: the whole storage is used */

typedef struct
{
  guint64 number;
  GTorchRaceCall *call;
  /* for writes by CPU queues, whose writes the host can wait for one by one */
  GTorchRaceOrder *order;
  GTorchRacePart part;
  union
  {
    gint64 few[GTORCH_INLINE_DIMS];
    gint64 *many;
  } shape; /* shape of the tensor */
  guint16 queue;
  guint8 n_dims;
  guint8 is_write;
} GTorchRaceUse;

GTorchRaceCall *gtorch_race_call_new (const gchar *what, gboolean in_place, const GTorchSite *site);
void gtorch_race_call_unref (GTorchRaceCall *call);
/* Initialises a use, which takes a reference to the call. impl NULL: the whole storage is used. */
void gtorch_race_use_init (GTorchRaceUse *use, GTorchRaceCall *call, GTorchStorage *storage,
                           const GTorchImpl *impl, gboolean is_write);
void gtorch_race_use_clear (GTorchRaceUse *use);
/* Returns whether any later use that must come after `former` must also come after `use`. */
gboolean gtorch_race_use_covers (const GTorchRaceUse *use, const GTorchRaceUse *former);
/* Returns the shape as text for messages. */
gchar *gtorch_race_use_get_shape (const GTorchRaceUse *use);

/* --- users of a storage --- */

typedef struct
{
  GTorchRaceGraph *graph;
  gboolean is_written; /* FALSE: only read */
} GTorchRaceMember;

typedef struct _GTorchRaceRecord GTorchRaceRecord;
struct _GTorchRaceRecord
{
  GTorchStorage *storage;
  GTorchRaceRecord *next;    /* next unused record in the free list */
  GTorchRaceMember *members; /* graphs that use the storage, or NULL */
  guint n_members;
  guint n_uses, n_allocated;
  GTorchRaceUse *uses;
  GTorchRaceUse few[3];
};

/* The number of records; atomically, and to be read without the lock. */
extern guint gtorch_race_n_records;

/* Returns NULL if there is no record. */
GTorchRaceRecord *gtorch_race_record_find (const GTorchStorage *storage);
GTorchRaceRecord *gtorch_race_record_get (GTorchStorage *storage);
void gtorch_race_record_remove (GTorchStorage *storage);
/* Takes ownership of the use. */
void gtorch_race_record_append (GTorchRaceRecord *record, const GTorchRaceUse *use);
/* Removes a use; another one may be moved to its index. */
void gtorch_race_record_remove_use (GTorchRaceRecord *record, guint i);
/* Returns the graph's entry, which is added if there is none yet. */
GTorchRaceMember *gtorch_race_record_join (GTorchRaceRecord *record, GTorchRaceGraph *graph);
void gtorch_race_record_leave (GTorchRaceRecord *record, GTorchRaceGraph *graph);

G_END_DECLS
