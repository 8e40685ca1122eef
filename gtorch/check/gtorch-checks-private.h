/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>

G_BEGIN_DECLS

/* The observers of this folder. No other folder knows them: gtorch-checks.c subscribes what the program has
 * turned on. */

/* The ranks: a call that must not be made is refused before anything is noted of it, and what a comparison
 * calls by itself is noted like the calls of the program. */
enum
{
  GTORCH_RANK_AUDIT,
  GTORCH_RANK_COMPARE,
  GTORCH_RANK_RACE,
  GTORCH_RANK_BLOCKING,
};

/* GTORCH_CHECK=blocking; the time from which on a wait is reported, in microseconds, which tests set. */
extern const GTorchObserver gtorch_blocking_observer;
extern gint64 gtorch_blocking_limit;
/* Reports what would make a graph compute something other than its program; always on. */
extern const GTorchObserver gtorch_audit_observer;
/* GTORCH_CHECK=replay */
extern const GTorchObserver gtorch_compare_observer;
/* GTORCH_CHECK=streams; the second drops the records of storages that are freed. It stays subscribed once
 * there may be records, since the next storage may have the same address. */
extern const GTorchObserver gtorch_race_observer;
extern const GTorchObserver gtorch_race_records_observer;

G_END_DECLS
