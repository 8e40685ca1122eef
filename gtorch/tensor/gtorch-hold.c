/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Releases the memory of tensors that other threads may be using. See gtorch-hold-private.h. */

#include "config.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_LINUX_MEMBARRIER_H
#include <linux/membarrier.h>
#endif

#include "tensor/gtorch-recorder-private.h"
#include "stream/gtorch-stream-private.h"
#include "base/gtorch-fork-private.h"
#include "tensor/gtorch-hold-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/* A tensor that was released while a call held it. */
typedef struct
{
  GTorchImpl *impl; /* owned */
  GTorchStorage *storage;
  GTorchAutograd *autograd;
} Pending;

static GMutex lock;
static GTorchHolds *all_holds; /* the lists of all threads that run operations */
static GArray *pending;        /* of Pending, NULL if empty */

GTORCH_FORK_LOCK (lock);

/* In the child of fork () the calls of other threads do not exist. */
static void
forget_other_threads (void)
{
  all_holds = gtorch_thread.holds;
  if (all_holds != NULL)
    all_holds->next = NULL;
}

GTORCH_FORK_CHILD (forget_other_threads);

static void
add_to_list (GTorchHolds *holds)
{
  g_mutex_lock (&lock);
  holds->next = all_holds;
  all_holds = holds;
  g_mutex_unlock (&lock);
}

GTorchHolds *
gtorch_holds_register (void)
{
  GTorchHolds *holds = g_new0 (GTorchHolds, 1);

  /* a new thread takes the lock before its first hold, so that it sees the marks of all tensors that were
   * released without a barrier before it was registered */
  add_to_list (holds);
  gtorch_thread.holds = holds;
  gtorch_thread_clean_up_later ();
  return holds;
}

guint
gtorch_hold_tensors (GTorchTensor *const *tensors, gsize n)
{
  GTorchImpl *impls[GTORCH_HOLDS_MAX];
  g_autofree GTorchImpl **many = NULL;
  GTorchImpl **used = impls;
  gsize i;

  if (tensors == NULL)
    n = 0;
  if (n > GTORCH_HOLDS_MAX)
    used = many = g_new (GTorchImpl *, n);
  for (i = 0; i < n; i++)
    used[i] = GTORCH_IS_TENSOR (tensors[i]) ? gtorch_tensor_unwrap (tensors[i]) : NULL;
  return gtorch_hold (used, n);
}

void
gtorch_holds_unregister (void)
{
  GTorchHolds *holds = gtorch_thread.holds;
  GTorchHolds **link;

  if (holds == NULL)
    return;
  gtorch_unhold (0); /* what a call held in which the thread has ended */
  g_mutex_lock (&lock);
  for (link = &all_holds; *link != holds; link = &(*link)->next)
    ;
  *link = holds->next;
  g_mutex_unlock (&lock);
  gtorch_thread.holds = NULL;
  g_free (holds);
}

#ifdef HAVE_LINUX_MEMBARRIER_H
static gboolean
membarrier (gint command)
{
  return syscall (SYS_membarrier, command, 0, 0) == 0;
}
#endif

/* Makes every thread of the process execute a memory barrier. The lock must be held. */
static void
barrier_everywhere (void)
{
#ifdef HAVE_LINUX_MEMBARRIER_H
  static gint registered = -1;

  /* registration takes the kernel some 10 ms, once, in programs that release while several threads run
   * operations */
  if (registered < 0)
    registered = membarrier (MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  if (registered && membarrier (MEMBARRIER_CMD_PRIVATE_EXPEDITED))
    return;
  if (membarrier (MEMBARRIER_CMD_GLOBAL))
    return;
#endif
  /* without the system call: no store stays in a processor's buffer for that long */
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  g_usleep (1000);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
}

static gboolean
contains (const GTorchHolds *holds, const GTorchImpl *impl)
{
  guint n = __atomic_load_n (&holds->n, __ATOMIC_ACQUIRE), i;

  if (n > GTORCH_HOLDS_MAX)
    return TRUE;
  for (i = 0; i < n; i++)
    if (__atomic_load_n (&holds->impls[i], __ATOMIC_RELAXED) == impl)
      return TRUE;
  return FALSE;
}

/* Returns TRUE if a thread holds impl, and tells it to flush when its call ends. The lock must be held. */
static gboolean
is_held (const GTorchImpl *impl)
{
  GTorchHolds *holds;

  for (holds = all_holds; holds != NULL; holds = holds->next)
    {
      if (!contains (holds, impl))
        continue;
      __atomic_store_n (&holds->must_flush, TRUE, __ATOMIC_RELAXED);
      if (holds == gtorch_thread.holds)
        return TRUE;
      /* either the thread sees the flag, or its hold has ended */
      barrier_everywhere ();
      if (contains (holds, impl))
        return TRUE;
    }
  return FALSE;
}

/* Takes the storage out of the impl. The lock must be held. */
static void
take (Pending *entry)
{
  entry->storage = __atomic_exchange_n (&entry->impl->storage, NULL, __ATOMIC_ACQ_REL);
  /* A result also releases its graph, with all saved values. A leaf does not, since its graphs may yet
   * run, and neither does a view, whose base belongs to others. */
  if (entry->impl->autograd != NULL && entry->impl->autograd->grad_fn != NULL
      && g_atomic_int_get (&entry->impl->ref_count) == 2)
    entry->autograd = g_steal_pointer (&entry->impl->autograd);
}

/* Must be called without the lock: destructors of the program may run. */
static void
drop (Pending *entry)
{
  g_clear_pointer (&entry->autograd, gtorch_recorder->destroy);
  g_clear_pointer (&entry->storage, gtorch_storage_unref);
  if (entry->impl != NULL && entry->impl->autograd != NULL)
    gtorch_recorder->drop_graph (entry->impl);
  g_clear_pointer (&entry->impl, gtorch_impl_unref);
}

void
gtorch_impl_release (GTorchImpl *impl)
{
  Pending entry = { NULL };

  /* a thread that registers later sees the mark, so no barrier is needed without other threads */
  g_mutex_lock (&lock);
  if (!__atomic_exchange_n (&impl->is_released, TRUE, __ATOMIC_ACQ_REL))
    {
      entry.impl = gtorch_impl_ref (impl);
      if (all_holds != NULL && (all_holds != gtorch_thread.holds || all_holds->next != NULL))
        barrier_everywhere ();
      if (!is_held (impl))
        take (&entry);
      else
        {
          if (pending == NULL)
            pending = g_array_new (FALSE, FALSE, sizeof (Pending));
          g_array_append_val (pending, entry);
          entry.impl = NULL;
        }
    }
  g_mutex_unlock (&lock);
  drop (&entry);
}

gboolean
gtorch_impls_set_data (GTorchImpl *const *impls, GTorchImpl *const *data, guint n)
{
  g_autofree GTorchStorage **former = g_new0 (GTorchStorage *, n);
  gboolean are_free = TRUE;
  guint i;

  g_mutex_lock (&lock);
  if (all_holds != NULL && (all_holds != gtorch_thread.holds || all_holds->next != NULL))
    barrier_everywhere ();
  for (i = 0; i < n && are_free; i++)
    are_free =
        impls[i] == data[i]
        || (gtorch_impl_is_uninitialized (impls[i]) && gtorch_impl_is_uninitialized (data[i]))
        || (!gtorch_impl_is_released (impls[i]) && !is_held (impls[i]));
  for (i = 0; i < n && are_free; i++)
    if (impls[i] != data[i])
      {
        former[i] = impls[i]->storage;
        gtorch_impl_set_geometry (impls[i], data[i]);
        if (data[i]->storage != NULL)
          impls[i]->storage = gtorch_storage_ref (data[i]->storage);
      }
  g_mutex_unlock (&lock);
  for (i = 0; i < n; i++)
    if (former[i] != NULL)
      gtorch_storage_unref (former[i]);
  return are_free;
}

/* The mark is cleared last: who finds it cleared finds the elements. */
gboolean
gtorch_impls_initialize (GTorchImpl *const *impls, GTorchImpl *const *data, guint n)
{
  gboolean are_free = TRUE;
  guint i;

  g_mutex_lock (&lock);
  for (i = 0; i < n && are_free; i++)
    are_free = gtorch_impl_is_uninitialized (impls[i]);
  for (i = 0; i < n && are_free; i++)
    {
      gtorch_impl_set_geometry (impls[i], data[i]);
      __atomic_store_n (&impls[i]->storage, gtorch_storage_ref (data[i]->storage),
                        __ATOMIC_RELEASE);
      __atomic_store_n (&impls[i]->is_released, 0, __ATOMIC_RELEASE);
    }
  g_mutex_unlock (&lock);
  return are_free;
}

void
gtorch_holds_settle (void)
{
  g_mutex_lock (&lock);
  g_mutex_unlock (&lock);
}

void
gtorch_holds_flush (void)
{
  g_autoptr (GArray) done = g_array_new (FALSE, FALSE, sizeof (Pending));
  guint i = 0;

  g_mutex_lock (&lock);
  __atomic_store_n (&gtorch_thread.holds->must_flush, FALSE, __ATOMIC_RELAXED);
  while (pending != NULL && i < pending->len)
    {
      Pending *entry = &g_array_index (pending, Pending, i);

      if (is_held (entry->impl))
        i++;
      else
        {
          take (entry);
          g_array_append_val (done, *entry);
          g_array_remove_index_fast (pending, i);
        }
    }
  if (pending != NULL && pending->len == 0)
    g_clear_pointer (&pending, g_array_unref);
  g_mutex_unlock (&lock);
  for (i = 0; i < done->len; i++)
    drop (&g_array_index (done, Pending, i));
}

static void __attribute__ ((constructor)) add_cleanup (void)
{
  gtorch_thread_add_cleanup (gtorch_holds_unregister);
}
