/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The thread pool of the CPU backend, and the only place where a loop is split over several threads.
 *
 * A desktop has other things to do. A thread that the scheduler has preempted stays away for some
 * milliseconds, and a thread that spins while it waits for it takes the processor that it needs. So no
 * thread waits for one that has nothing to contribute, and no thread spins for long:
 *
 * - A job is cut into pieces, more of them than threads. Each thread takes the next piece by an atomic
 *   addition. The caller takes part, and does the whole job if no helper comes; in the end it waits only
 *   for pieces that helpers have begun. A helper that wakes too late finds no piece, and nobody has
 *   waited for it.
 * - The pieces are divided into as many ranges as threads take part. Each thread begins with its own
 *   range, always the same one, so that its cache still holds the data of the previous operation, and
 *   then takes pieces from the other ranges.
 * - Operations often follow each other quickly, so helpers spin for the next job for up to 200
 *   microseconds before they sleep. A helper's spin time is halved each time that it was in vain, and
 *   doubled each time that it was, or would have been, of use. Helpers do not spin if there are more
 *   threads than processors. The same holds for a caller that waits for the last pieces.
 * - A caller wakes two helpers, and each of them two more as long as there are pieces.
 *
 * Up to N_JOBS callers can have a job each, and helpers go from job to job. A caller that finds no free job
 * slot does its job alone, so nobody waits for another job to end. Nested calls inside a job run in the
 * thread that makes them.
 *
 * Jobs are in memory that is never freed, and are reused: a helper may look at a job at any time, even if
 * it has ended or has been reused meanwhile. It reads the job's description only after it has taken a
 * piece, since the job cannot end before the piece is given back. A job that has ended has no piece to
 * take.
 *
 * A caller publishes its job and then looks for sleepers; a helper registers as a sleeper and then looks
 * for jobs once more. Both use sequentially consistent operations, so at least one of them sees the other.
 * There are no fences, because ThreadSanitizer does not support them.
 *
 * Helpers are created on demand, have all signals blocked, and never exit. Their affinity is that of the
 * main thread. Threads of lower priority have helpers of their own, since a thread cannot get its priority
 * back once it has given it up. The child of a fork has no helpers and creates new ones. */

#include "config.h"

#include "cpu/gtorch-cpu-threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"
#include "base/gtorch-fork-private.h"

#define N_JOBS      32
#define N_RANGES    64   /* with more threads, some share a range */
#define MAX_HELPERS 1023 /* 64 per word; bit 0 stands for the caller */
#define PIECES      4  /* per thread, so that one that is late or preempted leaves little behind */
#define ALIGN       64 /* items; long pieces end at multiples of whole vectors and cache lines */
#define N_WAKES     2
#define SPIN_NS     200000 /* a training step of small layers leaves up to this between two loops */
#define LEAST_NS    1000
#define LOOKS       32 /* polls between two readings of the clock */
#define NICENESSES  20
#define IS_WAITED   0x80000000u

/* Pieces not taken yet: the lower half is the first one, the upper half their end. */
typedef struct
{
  guint64 pieces;
} __attribute__ ((aligned (64))) Range;

typedef struct
{
  guint32 n_threads; /* threads that may take part; atomic */
  guint32 n_left;    /* pieces that are not done, plus IS_WAITED; atomic */
  GTorchRangeFunc func;
  gpointer user_data;
  gint64 n, unit;        /* items; pieces end at multiples of `unit` */
  gint64 length, longer; /* units per piece; number of first pieces with one unit more */
  Range ranges[N_RANGES];
} __attribute__ ((aligned (64))) Job;

typedef struct _Pool Pool;

typedef struct
{
  guint32 is_awake; /* futex that the helper sleeps on; atomic */
  guint32 spin_ns;  /* the helper's spin time */
  guint32 number;   /* from 1 on; the caller is 0 */
  guint32 turn;     /* job to look at first */
  Pool *pool;
} __attribute__ ((aligned (64))) Helper;

struct _Pool
{
  guint32 used __attribute__ ((aligned (64)));   /* bit set of jobs that have a caller */
  guint32 active __attribute__ ((aligned (64))); /* bit set of jobs that may have pieces to take */
  guint64 asleep[(MAX_HELPERS + 1) / 64] __attribute__ ((aligned (64))); /* bit set by number */
  guint32 n_helpers __attribute__ ((aligned (64)));
  guint32 is_full; /* no more threads can be created */
  Job jobs[N_JOBS];
  Helper helpers[MAX_HELPERS + 1]; /* indexed by number */
};

static GMutex pools_lock;
GTORCH_FORK_LOCK (pools_lock);
static Pool *pools[NICENESSES]; /* indexed by niceness; atomic */
static guint n_processors;      /* protected by pools_lock */

static const gint first_policy = GTORCH_WAIT_POLICY_ADAPTIVE; /* until there is a device */
static const gint *policy_place = &first_policy;              /* both atomic */

static __thread gboolean is_inside;
static __thread guint8 niceness;
static __thread guint32 caller_spin_ns;

/* --- waiting --- */

#ifdef __linux__

static void
sleep_on (guint32 *word, guint32 value)
{
  syscall (SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
wake_from (guint32 *word)
{
  syscall (SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#else

static GMutex sleep_lock;
GTORCH_FORK_LOCK (sleep_lock);
static GCond woken;

static void
sleep_on (guint32 *word, guint32 value)
{
  g_mutex_lock (&sleep_lock);
  if (__atomic_load_n (word, __ATOMIC_ACQUIRE) == value)
    g_cond_wait (&woken, &sleep_lock);
  g_mutex_unlock (&sleep_lock);
}

static void
wake_from (guint32 *word)
{
  g_mutex_lock (&sleep_lock);
  g_cond_broadcast (&woken);
  g_mutex_unlock (&sleep_lock);
}

#endif

static inline void
pause_a_little (void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static gint64
get_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec;
}

static void
spin_longer (guint32 *spin_ns)
{
  *spin_ns = MIN (2 * *spin_ns, SPIN_NS);
}

static void
spin_shorter (guint32 *spin_ns)
{
  *spin_ns = MAX (*spin_ns / 2, LEAST_NS);
}

void
gtorch_cpu_threads_set_wait_policy (const gint *policy)
{
  __atomic_store_n (&policy_place, policy, __ATOMIC_RELAXED);
}

static inline gint
get_wait_policy (void)
{
  return __atomic_load_n (__atomic_load_n (&policy_place, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static gboolean
may_spin (void)
{
  return get_wait_policy () != GTORCH_WAIT_POLICY_SLEEP
         && gtorch_get_num_threads () <= n_processors;
}

/* Returns how long to spin, given the thread's own spin time and the wait policy. */
static gint64
get_spin_ns (guint32 spin_ns)
{
  if (G_LIKELY (get_wait_policy () != GTORCH_WAIT_POLICY_SPIN))
    return spin_ns;
  return g_main_depth () > 0 ? GTORCH_MAIN_LOOP_SPIN_US * 1000 : G_MAXINT64;
}

/* --- pieces --- */

#define PIECES_OF(first, end) ((guint64) (end) << 32 | (guint32) (first))
#define FIRST_OF(pieces)      ((guint32) (pieces))
#define END_OF(pieces)        ((guint32) ((pieces) >> 32))

static gboolean
has_pieces (const Range *range)
{
  guint64 pieces = __atomic_load_n (&range->pieces, __ATOMIC_RELAXED);

  return FIRST_OF (pieces) < END_OF (pieces);
}

/* Takes a piece with acquire semantics, so that the job's description can be read. */
static gboolean
take_piece (Range *range, guint32 *piece)
{
  guint64 pieces;

  if (!has_pieces (range))
    return FALSE;
  pieces = __atomic_fetch_add (&range->pieces, 1, __ATOMIC_ACQUIRE);
  *piece = FIRST_OF (pieces);
  return FIRST_OF (pieces) < END_OF (pieces);
}

static void
run_piece (const Job *job, gint64 piece)
{
  gint64 begin = piece * job->length + MIN (piece, job->longer);
  gint64 end = begin + job->length + (piece < job->longer);

  job->func (begin * job->unit, end > job->n / job->unit ? job->n : end * job->unit,
             job->user_data);
}

static guint
count_ranges (guint n_threads)
{
  return MIN (n_threads, N_RANGES);
}

static gboolean
job_has_pieces (const Job *job, guint n_threads)
{
  guint i;

  for (i = 0; i < count_ranges (n_threads); i++)
    if (has_pieces (&job->ranges[i]))
      return TRUE;
  return FALSE;
}

/* Wakes up to N_WAKES sleeping helpers that may take part. */
static void
wake_helpers (Pool *pool, guint n_threads)
{
  guint n_helpers = MIN (n_threads - 1, __atomic_load_n (&pool->n_helpers, __ATOMIC_ACQUIRE));
  guint n_woken = 0, first;

  for (first = 0; first <= n_helpers; first += 64)
    {
      guint64 *word = &pool->asleep[first / 64];
      guint64 asleep = __atomic_load_n (word, __ATOMIC_SEQ_CST);

      if (n_helpers - first < 63)
        asleep &= (G_GUINT64_CONSTANT (2) << (n_helpers - first)) - 1;
      while (asleep != 0)
        {
          guint64 bit = asleep & -asleep;
          Helper *helper;

          asleep &= ~bit;
          if (!(__atomic_fetch_and (word, ~bit, __ATOMIC_SEQ_CST) & bit))
            continue; /* another thread wakes it */
          helper = &pool->helpers[first + __builtin_ctzll (bit)];
          __atomic_store_n (&helper->is_awake, 1, __ATOMIC_RELEASE);
          wake_from (&helper->is_awake);
          if (++n_woken == N_WAKES)
            return;
        }
    }
}

/* Takes pieces until there are none left. Returns how many it has done. */
static guint
work (Pool *pool, Job *job, guint number, guint n_threads)
{
  guint n_ranges = count_ranges (n_threads), n_done = 0, i;
  guint32 piece;

  for (i = 0; i < n_ranges; i++)
    {
      Range *range = &job->ranges[(number + i) % n_ranges];

      while (take_piece (range, &piece))
        {
          if (n_done++ == 0 && number > 0 && n_threads > 1 + N_WAKES
              && job_has_pieces (job, n_threads))
            wake_helpers (pool, n_threads);
          run_piece (job, piece);
        }
    }
  return n_done;
}

/* Marks pieces as done. The job may end, and be reused, at once. */
static void
give_back (Job *job, guint n_done)
{
  if (__atomic_sub_fetch (&job->n_left, n_done, __ATOMIC_ACQ_REL) == IS_WAITED)
    wake_from (&job->n_left);
}

/* --- helpers --- */

/* Returns TRUE if it has done any work. */
static gboolean
serve (Helper *self)
{
  guint32 active = __atomic_load_n (&self->pool->active, __ATOMIC_SEQ_CST);
  gboolean served = FALSE;

  while (active != 0)
    {
      guint32 later = active & (G_MAXUINT32 << self->turn); /* round robin over callers */
      guint i = __builtin_ctz (later != 0 ? later : active), n_done = 0;
      Job *job = &self->pool->jobs[i];
      guint n_threads = __atomic_load_n (&job->n_threads, __ATOMIC_RELAXED);

      active &= ~(1u << i);
      if (self->number < n_threads)
        n_done = work (self->pool, job, self->number, n_threads);
      if (n_done > 0)
        {
          give_back (job, n_done);
          served = TRUE;
          self->turn = (i + 1) % N_JOBS;
        }
    }
  return served;
}

static gboolean
look_for_work (Helper *self)
{
  gint64 begin = get_ns ();
  guint i;

  if (!may_spin ())
    return FALSE;
  do
    {
      for (i = 0; i < LOOKS; i++)
        {
          pause_a_little ();
          if (__atomic_load_n (&self->pool->active, __ATOMIC_RELAXED) != 0 && serve (self))
            return TRUE;
        }
    }
  while (may_spin () && get_ns () - begin < get_spin_ns (self->spin_ns));
  return FALSE;
}

static void
fall_asleep (Helper *self)
{
  guint64 *word = &self->pool->asleep[self->number / 64];
  guint64 bit = G_GUINT64_CONSTANT (1) << self->number % 64;
  gint64 begin = get_ns ();

  __atomic_store_n (&self->is_awake, 0, __ATOMIC_RELAXED);
  __atomic_fetch_or (word, bit, __ATOMIC_SEQ_CST);
  if (serve (self))
    {
      __atomic_fetch_and (word, ~bit, __ATOMIC_SEQ_CST);
      spin_longer (&self->spin_ns);
      return;
    }
  while (__atomic_load_n (&self->is_awake, __ATOMIC_ACQUIRE) == 0)
    sleep_on (&self->is_awake, 0);
  __atomic_fetch_and (word, ~bit, __ATOMIC_SEQ_CST);
  if (get_ns () - begin < SPIN_NS)
    spin_longer (&self->spin_ns);
}

/* Gives the thread the affinity of the main thread instead of that of the thread that happened to create
 * it. */
static void
leave_processor (void)
{
#ifdef __linux__
  cpu_set_t set;

  if (sched_getaffinity (getpid (), sizeof set, &set) == 0)
    sched_setaffinity (0, sizeof set, &set);
#endif
}

static gpointer
helper_thread (gpointer data)
{
  Helper *self = data;

  is_inside = TRUE;
  leave_processor ();
  while (TRUE)
    {
      if (serve (self))
        continue;
      if (look_for_work (self))
        spin_longer (&self->spin_ns);
      else
        {
          spin_shorter (&self->spin_ns);
          fall_asleep (self);
        }
    }
  return NULL;
}

/* --- pools --- */

static void
forget_helpers (void)
{
  guint i, j, k;

  for (i = 0; i < NICENESSES; i++)
    {
      Pool *pool = pools[i];

      if (pool == NULL)
        continue;
      pool->used = pool->active = pool->n_helpers = pool->is_full = 0;
      memset (pool->asleep, 0, sizeof pool->asleep);
      for (j = 0; j < N_JOBS; j++)
        for (k = 0; k < N_RANGES; k++)
          if (pool->jobs[j].ranges[k].pieces != 0)
            pool->jobs[j].ranges[k].pieces = 0;
    }
}
GTORCH_FORK_CHILD (forget_helpers);

static Pool *
get_pool (void)
{
  Pool *pool = __atomic_load_n (&pools[niceness], __ATOMIC_ACQUIRE);

  if (G_LIKELY (pool != NULL))
    return pool;
  g_mutex_lock (&pools_lock);
  pool = pools[niceness];
  if (pool == NULL)
    {
      if (n_processors == 0)
        n_processors = gtorch_cpu_count ("/");
      pool = g_aligned_alloc0 (1, sizeof (Pool), G_ALIGNOF (Pool));
      __atomic_store_n (&pools[niceness], pool, __ATOMIC_RELEASE);
    }
  g_mutex_unlock (&pools_lock);
  return pool;
}

/* Creates helpers until there are n_wanted, or as many as the system allows. */
static void
make_helpers (Pool *pool, guint n_wanted)
{
  sigset_t all, before;
  guint i;

  sigfillset (&all);
  g_mutex_lock (&pools_lock);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  for (i = pool->n_helpers + 1; i <= n_wanted && !pool->is_full; i++)
    {
      Helper *helper = &pool->helpers[i];
      GThread *thread;

      *helper = (Helper){ .pool = pool, .number = i, .spin_ns = SPIN_NS };
      thread = g_thread_try_new ("gtorch-pool", helper_thread, helper, NULL);
      if (thread == NULL)
        __atomic_store_n (&pool->is_full, TRUE, __ATOMIC_RELAXED);
      else
        {
          __atomic_store_n (&pool->n_helpers, i, __ATOMIC_RELEASE);
          g_thread_unref (thread);
        }
    }
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  g_mutex_unlock (&pools_lock);
}

/* --- callers --- */

static Job *
take_place (Pool *pool)
{
  guint32 used = __atomic_load_n (&pool->used, __ATOMIC_RELAXED);

  while (used != G_MAXUINT32)
    {
      guint32 bit = ~used & (used + 1); /* lowest free slot, which is likely to be cached */

      if (__atomic_compare_exchange_n (&pool->used, &used, used | bit, FALSE, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED))
        return &pool->jobs[__builtin_ctz (bit)];
    }
  return NULL;
}

static void
wait_for_helpers (Job *job)
{
  gint64 begin = get_ns ();
  gboolean was_asleep = FALSE;
  guint32 left;
  guint i;

  if (caller_spin_ns == 0)
    caller_spin_ns = SPIN_NS;
  if (may_spin ())
    do
      for (i = 0; i < LOOKS; i++)
        {
          if (__atomic_load_n (&job->n_left, __ATOMIC_ACQUIRE) == 0)
            {
              spin_longer (&caller_spin_ns);
              return;
            }
          pause_a_little ();
        }
    while (get_ns () - begin < get_spin_ns (caller_spin_ns));

  left = __atomic_load_n (&job->n_left, __ATOMIC_ACQUIRE);
  while (left != 0 && left != IS_WAITED)
    if (left & IS_WAITED)
      {
        was_asleep = TRUE;
        sleep_on (&job->n_left, left);
        left = __atomic_load_n (&job->n_left, __ATOMIC_ACQUIRE);
      }
    else if (__atomic_compare_exchange_n (&job->n_left, &left, left | IS_WAITED, FALSE,
                                          __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
      left |= IS_WAITED;
  spin_shorter (&caller_spin_ns);
  if (was_asleep && get_ns () - begin < SPIN_NS)
    {
      spin_longer (&caller_spin_ns);
      spin_longer (&caller_spin_ns);
    }
}

/* Returns FALSE if there is no free job slot. */
static gboolean
share (gint64 n, gint64 grain, guint n_threads, GTorchRangeFunc func, gpointer user_data)
{
  guint n_pieces = n_threads * CLAMP (n / (grain * n_threads), 1, PIECES);
  guint n_ranges = count_ranges (n_threads), n_done, i;
  Pool *pool = get_pool ();
  Job *job = take_place (pool);
  gint64 n_units;
  guint32 bit;

  if (job == NULL)
    return FALSE;
  if (G_UNLIKELY (__atomic_load_n (&pool->n_helpers, __ATOMIC_RELAXED) < n_threads - 1
                  && !__atomic_load_n (&pool->is_full, __ATOMIC_RELAXED)))
    make_helpers (pool, n_threads - 1);

  job->func = func;
  job->user_data = user_data;
  job->n = n;
  job->unit = n / n_pieces >= 16 * ALIGN ? ALIGN : 1;
  n_units = n / job->unit + (n % job->unit != 0);
  job->length = n_units / n_pieces;
  job->longer = n_units % n_pieces;
  __atomic_store_n (&job->n_threads, n_threads, __ATOMIC_RELAXED);
  __atomic_store_n (&job->n_left, n_pieces, __ATOMIC_RELAXED);
  for (i = 0; i < n_ranges; i++)
    __atomic_store_n (&job->ranges[i].pieces,
                      PIECES_OF (i * n_pieces / n_ranges, (i + 1) * n_pieces / n_ranges),
                      __ATOMIC_RELEASE);
  bit = 1u << (job - pool->jobs);
  __atomic_fetch_or (&pool->active, bit, __ATOMIC_SEQ_CST);
  wake_helpers (pool, n_threads);

  is_inside = TRUE;
  n_done = work (pool, job, 0, n_threads);
  is_inside = FALSE;
  __atomic_fetch_and (&pool->active, ~bit, __ATOMIC_RELAXED);
  if (__atomic_sub_fetch (&job->n_left, n_done, __ATOMIC_ACQ_REL) != 0)
    wait_for_helpers (job);
  __atomic_fetch_and (&pool->used, ~bit, __ATOMIC_RELEASE);
  return TRUE;
}

void
gtorch_parallel_for (gint64 n, gint64 grain, GTorchRangeFunc func, gpointer user_data)
{
  guint n_threads = 1;

  grain = MAX (grain, 1);
  if (n / 2 >= grain && !is_inside)
    n_threads = MIN (MIN (gtorch_get_num_threads (), MAX_HELPERS + 1), n / grain);
  if (n_threads < 2 || !share (n, grain, n_threads, func, user_data))
    func (0, n, user_data);
}

gboolean
gtorch_cpu_threads_is_inside (void)
{
  return is_inside;
}

void
gtorch_cpu_threads_set_niceness (guint value)
{
  niceness = MIN (value, NICENESSES - 1);
}
