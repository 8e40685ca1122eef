/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>

G_BEGIN_DECLS

/* A hold keeps the storage of tensors alive while a call uses them. gtorch_tensor_release () may run in
 * another thread at any time, or in a signal handler that an allocation inside the call emits. The
 * storage of a held tensor is freed only when the last call that holds it ends; a call that begins later
 * finds the tensor released.
 *
 * Holds are hazard pointers. A thread writes the tensors that it is about to use to its own list, without
 * an atomic instruction; release () marks the tensor, makes all threads execute a memory barrier, and
 * searches the lists. So the rare operation bears the cost.
 *
 * During a hold impl->storage does not change: it is NULL for a tensor that was released before,
 * otherwise it stays. */

#define GTORCH_HOLDS_MAX 28

struct _GTorchHolds
{
  guint n; /* accessed atomically; above GTORCH_HOLDS_MAX every tensor counts as held */
  guint must_flush;
  GTorchImpl *impls[GTORCH_HOLDS_MAX]; /* accessed atomically; may be NULL */
  GTorchHolds *next;                   /* protected by the lock of gtorch-hold.c */
};

GTorchHolds *gtorch_holds_register (void);
/* Waits until a running release () has finished. */
void gtorch_holds_settle (void);
/* Frees what release () left to this thread. */
void gtorch_holds_flush (void);
/* Called when the thread ends. */
void gtorch_holds_unregister (void);

/* Frees the storage of impl as soon as no call holds it. */
void gtorch_impl_release (GTorchImpl *impl);
/* Lets each of impls refer to the elements of its entry of data, with geometry, dtype and device. Returns
 * FALSE, and changes none, if a call holds one of impls or if one was released. The caller must hold data. */
gboolean gtorch_impls_set_data (GTorchImpl *const *impls, GTorchImpl *const *data, guint n);

/* Returns the token for gtorch_unhold (). Entries of impls may be NULL. The caller must check
 * gtorch_impl_is_released () for each before it uses the storage, or call gtorch_hold () instead. */
static inline guint
gtorch_hold_begin (GTorchImpl *const *impls, guint n)
{
  GTorchHolds *holds = gtorch_thread.holds;
  GTorchImpl **to;
  guint start;

  if (G_UNLIKELY (holds == NULL))
    holds = gtorch_holds_register ();
  start = holds->n;
  to = holds->impls + start;
  __atomic_store_n (&holds->n, start + n, __ATOMIC_RELEASE);
  if (G_LIKELY (start + n <= GTORCH_HOLDS_MAX))
    while (n-- > 0)
      __atomic_store_n (&to[n], impls[n], __ATOMIC_RELEASE);
  /* release () executes the processor's barrier for all threads */
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  return start;
}

/* Begins a hold and checks for released tensors; impl->storage does not change until gtorch_unhold (). */
static inline guint
gtorch_hold (GTorchImpl *const *impls, guint n)
{
  const guint start = gtorch_hold_begin (impls, n);
  guint i;

  for (i = 0; i < n; i++)
    if (impls[i] != NULL && G_UNLIKELY (gtorch_impl_is_released (impls[i])))
      gtorch_holds_settle ();
  return start;
}

static inline void
gtorch_unhold (guint start)
{
  GTorchHolds *holds = gtorch_thread.holds;

  __atomic_store_n (&holds->n, start, __ATOMIC_RELEASE);
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  if (G_UNLIKELY (__atomic_load_n (&holds->must_flush, __ATOMIC_RELAXED)))
    gtorch_holds_flush ();
}

/* Holds one tensor until the end of the block. */
static inline guint
gtorch_hold_one (GTorchImpl *impl)
{
  return gtorch_hold (&impl, 1);
}

guint gtorch_hold_tensors (GTorchTensor *const *tensors, gsize n);

static inline void
gtorch_unhold_cleanup (guint *start)
{
  gtorch_unhold (*start);
}

#define GTORCH_HOLD_NAME(line)  gtorch_hold_##line
#define GTORCH_HOLD_NAME_(line) GTORCH_HOLD_NAME (line)
#define GTORCH_HOLD(impl)                                                                   \
  G_GNUC_UNUSED __attribute__ ((cleanup (gtorch_unhold_cleanup))) guint GTORCH_HOLD_NAME_ ( \
      __LINE__) = gtorch_hold_one (impl)
/* For the first line of public functions: invalid pointers are left to their checks. */
#define GTORCH_HOLD_TENSOR(tensor) \
  GTORCH_HOLD (GTORCH_IS_TENSOR (tensor) ? gtorch_tensor_unwrap (tensor) : NULL)
#define GTORCH_HOLD_TENSORS(tensors, n)                                                     \
  G_GNUC_UNUSED __attribute__ ((cleanup (gtorch_unhold_cleanup))) guint GTORCH_HOLD_NAME_ ( \
      __LINE__) = gtorch_hold_tensors (tensors, n)
#define GTORCH_HOLD_MANY(impls, n)                                                          \
  G_GNUC_UNUSED __attribute__ ((cleanup (gtorch_unhold_cleanup))) guint GTORCH_HOLD_NAME_ ( \
      __LINE__) = gtorch_hold (impls, n)

G_END_DECLS
