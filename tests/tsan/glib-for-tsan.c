/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tells ThreadSanitizer about GLib's synchronisation. GLib is not instrumented; it waits with futexes and
 * uses its own atomic instructions, so that everything that it synchronises would look like a race. The
 * functions here override GLib's of the same name in each test program, and annotate the happens-before
 * edges of the real ones ("release" and "acquire" of an address that both threads know).
 *
 * GLib's calls of its own functions do not come through here, GObject's and GIO's do. Internal waits of
 * GLib (the lock of a main context, the queue of a thread pool) are therefore annotated where they begin
 * and end: g_source_attach () and dispatching, g_thread_pool_push () and the function of the pool.
 * Creating and joining threads needs no annotation.
 *
 * No edge is added that the real function does not guarantee: it would hide races. */

#include "config.h"

#include <dlfcn.h>
#include <gio/gio.h>
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#include <stdlib.h>

#define REAL(name)                                                    \
  ({                                                                  \
    static __typeof__ (&(name)) real_;                                \
    if (__atomic_load_n (&real_, __ATOMIC_RELAXED) == NULL)           \
      __atomic_store_n (&real_, find_real (#name), __ATOMIC_RELAXED); \
    real_;                                                            \
  })

static gpointer
find_real (const gchar *name)
{
  gpointer function = dlsym (RTLD_NEXT, name);

  if (function == NULL)
    abort ();
  return function;
}

/* Drops a reference: the thread that drops the last one comes after all that dropped one before. */
static void
drop (gpointer counted)
{
  __tsan_release (counted);
  __tsan_acquire (counted);
}

/* --- options, which TSAN_OPTIONS overrides --- */

const char *__tsan_default_options (void);
const char *__tsan_default_suppressions (void);

const char *
__tsan_default_options (void)
{
  return "second_deadlock_stack=1:history_size=4:allocator_may_return_null=1";
}

const char *
__tsan_default_suppressions (void)
{
  return
      /* These libraries copy, compare and free their data under locks and counts that ThreadSanitizer
       * does not see. (g_free () jumps to free (), which therefore has the caller of g_free () as its
       * caller: it is checked.) */
      "called_from_lib:libglib-2.0.so.0\n"
      "called_from_lib:libgobject-2.0.so.0\n"
      "called_from_lib:libgio-2.0.so.0\n"
      /* OpenBLAS passes its buffers between threads, under a lock made of atomic instructions. */
      "race:libopenblas.so\n";
}

/* --- locks --- */

void
g_mutex_init (GMutex *mutex)
{
  REAL (g_mutex_init) (mutex);
  __tsan_mutex_create (mutex, __tsan_mutex_not_static);
}

void
g_mutex_clear (GMutex *mutex)
{
  __tsan_mutex_destroy (mutex, __tsan_mutex_not_static);
  REAL (g_mutex_clear) (mutex);
}

void
g_mutex_lock (GMutex *mutex)
{
  __tsan_mutex_pre_lock (mutex, 0);
  REAL (g_mutex_lock) (mutex);
  __tsan_mutex_post_lock (mutex, 0, 0);
}

/* ThreadSanitizer stops a program whose thread holds 64 locks. Before a fork, the library holds all of its
 * locks, each of which it tries without waiting; one that is tried cannot take part in a deadlock. Beyond
 * MANY_TRIED, a lock that was tried is therefore not counted as a lock: the edges between its holders are
 * annotated by its address. */
enum
{
  MANY_TRIED = 16,
  MAX_TRIED = 4096,
};

static __thread GMutex *tried[MAX_TRIED];
static __thread guint n_tried;

static gboolean
forget_tried (GMutex *mutex, gboolean *is_counted)
{
  guint i;

  for (i = n_tried; i-- > 0;)
    if (tried[i] == mutex)
      {
        *is_counted = i < MANY_TRIED;
        /* the slots below the limit stay those of the locks that are counted */
        if (!*is_counted)
          tried[i] = tried[--n_tried];
        else
          tried[i] = NULL;
        while (n_tried > 0 && tried[n_tried - 1] == NULL)
          n_tried--;
        return TRUE;
      }
  return FALSE;
}

gboolean
g_mutex_trylock (GMutex *mutex)
{
  gboolean locked;

  if (n_tried >= MANY_TRIED && n_tried < MAX_TRIED)
    {
      if (!REAL (g_mutex_trylock) (mutex))
        return FALSE;
      __tsan_acquire (mutex);
      tried[n_tried++] = mutex;
      return TRUE;
    }
  __tsan_mutex_pre_lock (mutex, __tsan_mutex_try_lock);
  locked = REAL (g_mutex_trylock) (mutex);
  __tsan_mutex_post_lock (mutex,
                          __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed), 0);
  if (locked && n_tried < MAX_TRIED)
    tried[n_tried++] = mutex;
  return locked;
}

void
g_mutex_unlock (GMutex *mutex)
{
  gboolean is_counted = TRUE;

  if (n_tried > 0 && forget_tried (mutex, &is_counted) && !is_counted)
    {
      __tsan_release (mutex);
      REAL (g_mutex_unlock) (mutex);
      return;
    }
  __tsan_mutex_pre_unlock (mutex, 0);
  REAL (g_mutex_unlock) (mutex);
  __tsan_mutex_post_unlock (mutex, 0);
}

/* The mutex of a condition provides the ordering. */

static void
before_waiting (GMutex *mutex)
{
  __tsan_mutex_pre_unlock (mutex, 0);
  __tsan_mutex_post_unlock (mutex, 0);
}

static void
after_waiting (GMutex *mutex)
{
  __tsan_mutex_pre_lock (mutex, 0);
  __tsan_mutex_post_lock (mutex, 0, 0);
}

void
g_cond_wait (GCond *cond, GMutex *mutex)
{
  before_waiting (mutex);
  REAL (g_cond_wait) (cond, mutex);
  after_waiting (mutex);
}

gboolean
g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end_time)
{
  gboolean signalled;

  before_waiting (mutex);
  signalled = REAL (g_cond_wait_until) (cond, mutex, end_time);
  after_waiting (mutex);
  return signalled;
}

/* GLib implements these two with POSIX's, which ThreadSanitizer would see if the callers were not in
 * GLib. */

static gpointer
allocate_once (gpointer *place, gsize size, void (*init) (gpointer), void (*clear) (gpointer))
{
  gpointer lock = __atomic_load_n (place, __ATOMIC_ACQUIRE), other = NULL;

  if (lock != NULL)
    return lock;
  lock = malloc (size);
  init (lock);
  if (__atomic_compare_exchange_n (place, &other, lock, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return lock;
  clear (lock);
  return other;
}

static void
init_GRecMutex (gpointer lock)
{
  pthread_mutexattr_t attributes;

  pthread_mutexattr_init (&attributes);
  pthread_mutexattr_settype (&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init (lock, &attributes);
  pthread_mutexattr_destroy (&attributes);
}

static void
init_GRWLock (gpointer lock)
{
  pthread_rwlock_init (lock, NULL);
}

#define LOCK(Type, stem, Posix, posix)                                         \
  static void free_##Type (gpointer lock)                                      \
  {                                                                            \
    if (lock != NULL)                                                          \
      posix##_destroy (lock);                                                  \
    free (lock);                                                               \
  }                                                                            \
  static Posix *posix_##Type (Type *lock)                                      \
  {                                                                            \
    return allocate_once (&lock->p, sizeof (Posix), init_##Type, free_##Type); \
  }                                                                            \
  void stem##_init (Type *lock) { lock->p = NULL; }                            \
  void stem##_clear (Type *lock) { free_##Type (lock->p); }
#define CALL(Type, name, posix) \
  void name (Type *lock) { posix (posix_##Type (lock)); }
#define TRY(Type, name, posix) \
  gboolean name (Type *lock) { return posix (posix_##Type (lock)) == 0; }

LOCK (GRecMutex, g_rec_mutex, pthread_mutex_t, pthread_mutex)
CALL (GRecMutex, g_rec_mutex_lock, pthread_mutex_lock)
TRY (GRecMutex, g_rec_mutex_trylock, pthread_mutex_trylock)
CALL (GRecMutex, g_rec_mutex_unlock, pthread_mutex_unlock)

LOCK (GRWLock, g_rw_lock, pthread_rwlock_t, pthread_rwlock)
CALL (GRWLock, g_rw_lock_writer_lock, pthread_rwlock_wrlock)
TRY (GRWLock, g_rw_lock_writer_trylock, pthread_rwlock_trywrlock)
CALL (GRWLock, g_rw_lock_writer_unlock, pthread_rwlock_unlock)
CALL (GRWLock, g_rw_lock_reader_lock, pthread_rwlock_rdlock)
TRY (GRWLock, g_rw_lock_reader_trylock, pthread_rwlock_tryrdlock)
CALL (GRWLock, g_rw_lock_reader_unlock, pthread_rwlock_unlock)

/* --- once --- */

gboolean (g_once_init_enter) (volatile void *location)
{
  gboolean is_first = REAL (g_once_init_enter) (location);

  __tsan_acquire ((gpointer) location);
  return is_first;
}

void (g_once_init_leave) (volatile void *location, gsize result)
{
  __tsan_release ((gpointer) location);
  REAL (g_once_init_leave) (location, result);
}

/* --- counts --- */

void (g_object_unref) (gpointer object)
{
  drop (object);
  REAL (g_object_unref) (object);
}

void
g_bytes_unref (GBytes *bytes)
{
  if (bytes != NULL)
    drop (bytes);
  REAL (g_bytes_unref) (bytes);
}

void
g_source_unref (GSource *source)
{
  drop (source);
  REAL (g_source_unref) (source);
}

void
g_main_context_unref (GMainContext *context)
{
  drop (context);
  REAL (g_main_context_unref) (context);
}

/* --- main loops: the lock of the context --- */

typedef struct
{
  GSourceFuncs funcs; /* must be the first: a source points to it */
  const GSourceFuncs *real;
} Funcs;

static const GSourceFuncs *
real_funcs (GSource *source)
{
  __tsan_acquire (source);
  return ((Funcs *) source->source_funcs)->real;
}

static gboolean
prepare (GSource *source, gint *timeout)
{
  return real_funcs (source)->prepare (source, timeout);
}

static gboolean
check (GSource *source)
{
  return real_funcs (source)->check (source);
}

static gboolean
dispatch (GSource *source, GSourceFunc callback, gpointer data)
{
  return real_funcs (source)->dispatch (source, callback, data);
}

static void
finalize (GSource *source)
{
  const GSourceFuncs *real = real_funcs (source);

  if (real->finalize != NULL)
    real->finalize (source);
}

/* Returns the wrapper of a kind of source; it is created once and never freed. */
static GSourceFuncs *
told_funcs (const GSourceFuncs *real)
{
  static Funcs all[64];
  static gint lock;
  guint i;

  while (__atomic_exchange_n (&lock, 1, __ATOMIC_ACQUIRE))
    ;
  for (i = 0; all[i].real != NULL && all[i].real != real; i++)
    if (i + 2 == G_N_ELEMENTS (all))
      abort ();
  all[i].real = real;
  all[i].funcs = *real;
  all[i].funcs.prepare = real->prepare != NULL ? prepare : NULL;
  all[i].funcs.check = real->check != NULL ? check : NULL;
  all[i].funcs.dispatch = dispatch;
  all[i].funcs.finalize = finalize;
  __atomic_store_n (&lock, 0, __ATOMIC_RELEASE);
  return &all[i].funcs;
}

GSource *
g_source_new (GSourceFuncs *funcs, guint size)
{
  return REAL (g_source_new) (told_funcs (funcs), size);
}

GSource *
g_idle_source_new (void)
{
  GSource *source = REAL (g_idle_source_new) ();

  source->source_funcs = told_funcs (source->source_funcs);
  return source;
}

GSource *
g_timeout_source_new (guint interval)
{
  GSource *source = REAL (g_timeout_source_new) (interval);

  source->source_funcs = told_funcs (source->source_funcs);
  return source;
}

/* GSubprocess uses it on a thread of GLib to learn of the end of a process. */
GSource *
g_child_watch_source_new (GPid pid)
{
  GSource *source = REAL (g_child_watch_source_new) (pid);

  source->source_funcs = told_funcs (source->source_funcs);
  return source;
}

void
g_source_set_callback (GSource *source, GSourceFunc func, gpointer data, GDestroyNotify notify)
{
  __tsan_release (source);
  REAL (g_source_set_callback) (source, func, data, notify);
}

guint
g_source_attach (GSource *source, GMainContext *context)
{
  __tsan_release (source);
  return REAL (g_source_attach) (source, context);
}

void
g_source_set_ready_time (GSource *source, gint64 ready_time)
{
  __tsan_release (source);
  REAL (g_source_set_ready_time) (source, ready_time);
}

void
g_source_destroy (GSource *source)
{
  __tsan_release (source);
  REAL (g_source_destroy) (source);
}

/* Creates a source like those inside GLib. */

static guint
add (GSource *source, gint priority, GSourceFunc func, gpointer data, GDestroyNotify notify,
     GMainContext *context)
{
  guint id;

  g_source_set_priority (source, priority);
  g_source_set_callback (source, func, data, notify);
  id = g_source_attach (source, context);
  g_source_unref (source);
  return id;
}

guint
g_idle_add_full (gint priority, GSourceFunc func, gpointer data, GDestroyNotify notify)
{
  return add (g_idle_source_new (), priority, func, data, notify, NULL);
}

guint
g_idle_add (GSourceFunc func, gpointer data)
{
  return g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, func, data, NULL);
}

guint
g_timeout_add_full (gint priority, guint interval, GSourceFunc func, gpointer data,
                    GDestroyNotify notify)
{
  return add (g_timeout_source_new (interval), priority, func, data, notify, NULL);
}

guint
g_timeout_add (guint interval, GSourceFunc func, gpointer data)
{
  return g_timeout_add_full (G_PRIORITY_DEFAULT, interval, func, data, NULL);
}

typedef struct
{
  GSourceFunc func;
  gpointer data;
  GDestroyNotify notify;
} Call;

static gboolean
call (gpointer data)
{
  Call *self = data;

  __tsan_acquire (self);
  return self->func (self->data);
}

static void
call_free (gpointer data)
{
  Call *self = data;

  if (self->notify != NULL)
    self->notify (self->data);
  free (self);
}

void
g_main_context_invoke_full (GMainContext *context, gint priority, GSourceFunc func, gpointer data,
                            GDestroyNotify notify)
{
  Call *self = malloc (sizeof *self);

  *self = (Call){ func, data, notify };
  __tsan_release (self);
  REAL (g_main_context_invoke_full) (context, priority, call, self, call_free);
}

void
g_main_context_invoke (GMainContext *context, GSourceFunc func, gpointer data)
{
  g_main_context_invoke_full (context, G_PRIORITY_DEFAULT, func, data, NULL);
}

/* The owners of a context follow each other. */
gboolean
g_main_context_iteration (GMainContext *context, gboolean may_block)
{
  gboolean done;

  if (context == NULL)
    context = g_main_context_default ();
  __tsan_acquire (context);
  done = REAL (g_main_context_iteration) (context, may_block);
  __tsan_release (context);
  return done;
}

void
g_main_loop_run (GMainLoop *loop)
{
  GMainContext *context = g_main_loop_get_context (loop);

  __tsan_acquire (context);
  REAL (g_main_loop_run) (loop);
  __tsan_acquire (loop);
  __tsan_release (context);
}

void
g_main_loop_quit (GMainLoop *loop)
{
  __tsan_release (loop);
  REAL (g_main_loop_quit) (loop);
}

/* --- thread pools, including GTask's; queues --- */

typedef struct
{
  GFunc func;
  gpointer data;
} PoolFunc;

static void
run_in_pool (gpointer data, gpointer user_data)
{
  PoolFunc *self = user_data;

  __tsan_acquire (data);
  self->func (data, self->data);
}

GThreadPool *
g_thread_pool_new (GFunc func, gpointer data, gint max_threads, gboolean exclusive, GError **error)
{
  PoolFunc *self = malloc (sizeof *self); /* never freed: the end of a pool is not known */

  *self = (PoolFunc){ func, data };
  return REAL (g_thread_pool_new) (run_in_pool, self, max_threads, exclusive, error);
}

gboolean
g_thread_pool_push (GThreadPool *pool, gpointer data, GError **error)
{
  __tsan_release (data);
  return REAL (g_thread_pool_push) (pool, data, error);
}

void
g_async_queue_push (GAsyncQueue *queue, gpointer data)
{
  __tsan_release (queue);
  REAL (g_async_queue_push) (queue, data);
}

gpointer
g_async_queue_pop (GAsyncQueue *queue)
{
  gpointer data = REAL (g_async_queue_pop) (queue);

  __tsan_acquire (queue);
  return data;
}

gpointer
g_async_queue_try_pop (GAsyncQueue *queue)
{
  gpointer data = REAL (g_async_queue_try_pop) (queue);

  __tsan_acquire (queue);
  return data;
}
