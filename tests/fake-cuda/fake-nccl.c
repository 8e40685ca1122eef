/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for NCCL; see fake-nccl.h. */

#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-cuda.h"
#include "fake-nccl.h"
#include "distributed/nccl/gtorch-nccl-abi-private.h"

/* The functions are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT    __attribute__ ((visibility ("default")))
#define MAX_RANKS 8
#define AREA      ((gsize) 8 << 20) /* bytes that a rank shows the others at a time */
#define CHANNEL   ((gsize) 1 << 20) /* bytes of a message under way */

typedef enum
{
  BROADCAST,
  ALL_REDUCE,
  REDUCE,
  ALL_GATHER,
  REDUCE_SCATTER,
  SEND,
  RECEIVE,
} Kind;

typedef struct
{
  gint64 kind, type, op, root;
  guint64 count;
} Header;

/* What the ranks of a communicator share; counters are accessed atomically. */
typedef struct
{
  gint n_joined;
  gint pids[MAX_RANKS];
  guint64 posted[MAX_RANKS], read[MAX_RANKS]; /* the number of the last collective */
  Header headers[MAX_RANKS];
  struct
  {
    guint64 n_sent, n_received;
    guint64 n_bytes;
  } channels[MAX_RANKS][MAX_RANKS];
} Board;

#define BOARD_SIZE (65536 + MAX_RANKS * AREA + MAX_RANKS * MAX_RANKS * CHANNEL)

G_STATIC_ASSERT (sizeof (Board) <= 65536);

typedef struct
{
  gint is_set;
} Flag;

struct ncclComm
{
  gchar *path;
  Board *board;
  Flag *aborted; /* shared by a communicator and what was split from it */
  gint rank, n;
  gboolean is_blocking;
  struct ncclComm *child; /* that is being split */
  guint n_splits;
  guint64 number; /* of the last collective that was executed */
  guint64 sent[MAX_RANKS], received[MAX_RANKS];
};

typedef struct
{
  Kind kind;
  const char *from;
  char *to;
  gsize count;
  ncclDataType_t type;
  gint op, root;
  gdouble factor; /* of a sum; 0 for none */
  gboolean is_done;
} Item;

typedef struct
{
  struct ncclComm *comm;
  gboolean hangs, is_begun, is_posted;
  guint n, at; /* at: the collective under way */
  Item items[];
} Work;

/* An operation of a group that has not ended. */
typedef struct
{
  struct ncclComm *comm;
  void *stream;
  Item item;
} Grouped;

static GMutex lock;
static GPtrArray *kept; /* works and communicators, which work may still use */
static gint n_comms;
static guint hang_in, cut_in, delay;
static gboolean notices;
static __thread guint depth;
static __thread GArray *group; /* Grouped */
static __thread ncclResult_t group_result;

/* --- faults --- */

static const gchar *const functions[] = {
#define F(name, type, arguments) #name,
#include "distributed/nccl/gtorch-nccl-functions.inc"
#undef F
  NULL
};

static guint calls[G_N_ELEMENTS (functions)];
static const gchar *fault_name;
static guint fault_in;
static gint fault_result;

const gchar *const *
fake_nccl_get_functions (void)
{
  return functions;
}

void
fake_nccl_fail (const gchar *name, guint nth, gint result)
{
  g_mutex_lock (&lock);
  fault_name = nth == 0 ? NULL : g_intern_string (name);
  fault_in = nth;
  fault_result = result;
  g_mutex_unlock (&lock);
}

void
fake_nccl_hang (guint nth)
{
  hang_in = nth;
}

void
fake_nccl_cut (guint nth)
{
  cut_in = nth;
}

void
fake_nccl_delay (guint us)
{
  delay = us;
}

void
fake_nccl_notice (gboolean whether)
{
  notices = whether;
}

gint
fake_nccl_get_comms (void)
{
  return g_atomic_int_get (&n_comms);
}

guint
fake_nccl_get_calls (const gchar *name)
{
  guint i, n = 0;

  g_mutex_lock (&lock);
  for (i = 0; functions[i] != NULL; i++)
    if (name == NULL || strcmp (functions[i], name) == 0)
      n += calls[i];
  g_mutex_unlock (&lock);
  return n;
}

static gint
begin (const gchar *name)
{
  gint result = 0;
  guint i;

  g_mutex_lock (&lock);
  for (i = 0; functions[i] != NULL; i++)
    if (strcmp (functions[i], name) == 0)
      calls[i]++;
  if (fault_in > 0 && fault_name != NULL && strcmp (fault_name, name) == 0 && --fault_in == 0)
    result = fault_result;
  g_mutex_unlock (&lock);
  return result;
}

#define BEGIN(name)                   \
  do                                  \
    {                                 \
      gint fault_ = begin (#name);    \
      if (fault_ != 0)                \
        return (ncclResult_t) fault_; \
    }                                 \
  while (0)

static gpointer
keep (gpointer data)
{
  g_mutex_lock (&lock);
  if (kept == NULL)
    kept = g_ptr_array_new ();
  g_ptr_array_add (kept, data);
  g_mutex_unlock (&lock);
  return data;
}

/* --- numbers --- */

static gsize
size_of (ncclDataType_t type)
{
  static const gsize sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

  return sizes[type];
}

static gdouble
load (ncclDataType_t type, gconstpointer data, gsize i)
{
  guint32 bits;
  float value;

  switch (type)
    {
    case ncclInt8:
      return ((const gint8 *) data)[i];
    case ncclUint8:
      return ((const guint8 *) data)[i];
    case ncclInt32:
      return ((const gint32 *) data)[i];
    case ncclInt64:
      return (gdouble) ((const gint64 *) data)[i];
    case ncclFloat16:
      return (gdouble) ((const _Float16 *) data)[i];
    case ncclFloat32:
      return ((const float *) data)[i];
    case ncclFloat64:
      return ((const double *) data)[i];
    case ncclBfloat16:
      bits = (guint32) ((const guint16 *) data)[i] << 16;
      memcpy (&value, &bits, sizeof value);
      return value;
    default:
      g_error ("the fake NCCL has no numbers of type %d", type);
    }
}

static void
store (ncclDataType_t type, gpointer data, gsize i, gdouble number)
{
  const float value = (float) number;
  guint32 bits;

  switch (type)
    {
    case ncclInt8:
      ((gint8 *) data)[i] = (gint8) number;
      break;
    case ncclUint8:
      ((guint8 *) data)[i] = (guint8) number;
      break;
    case ncclInt32:
      ((gint32 *) data)[i] = (gint32) number;
      break;
    case ncclInt64:
      ((gint64 *) data)[i] = (gint64) number;
      break;
    case ncclFloat16:
      ((_Float16 *) data)[i] = (_Float16) number;
      break;
    case ncclFloat32:
      ((float *) data)[i] = value;
      break;
    case ncclFloat64:
      ((double *) data)[i] = number;
      break;
    default:
      memcpy (&bits, &value, sizeof bits);
      ((guint16 *) data)[i] = (guint16) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

static gdouble
combine (gint op, gdouble a, gdouble b)
{
  switch (op)
    {
    case ncclProd:
      return a * b;
    case ncclMax:
      return a > b ? a : b;
    case ncclMin:
      return a < b ? a : b;
    default:
      return a + b;
    }
}

/* --- carrying out --- */

static char *
area_of (struct ncclComm *comm, gint rank)
{
  return (char *) comm->board + 65536 + rank * AREA;
}

static char *
channel_of (struct ncclComm *comm, gint from, gint to)
{
  return (char *) comm->board + 65536 + MAX_RANKS * AREA + (from * MAX_RANKS + to) * CHANNEL;
}

static gboolean
is_over (struct ncclComm *comm)
{
  return g_atomic_int_get (&comm->aborted->is_set);
}

/* Returns whether all ranks are at this number. */
static gboolean
are_all (struct ncclComm *comm, const guint64 *counters, guint64 number)
{
  gint i;

  for (i = 0; i < comm->n; i++)
    if (__atomic_load_n (&counters[i], __ATOMIC_ACQUIRE) < number)
      return FALSE;
  return TRUE;
}

static void
reduce_into (struct ncclComm *comm, const Item *item, gsize first, char *to)
{
  gsize i;
  gint r;

  for (i = 0; i < item->count; i++)
    {
      gdouble sum = load (item->type, area_of (comm, 0), first + i);

      for (r = 1; r < comm->n; r++)
        sum = combine (item->op, sum, load (item->type, area_of (comm, r), first + i));
      store (item->type, to, i, item->op == ncclAvg ? sum / comm->n : sum);
    }
}

static void
finish_collective (struct ncclComm *comm, const Item *item)
{
  const gsize n_bytes = item->count * size_of (item->type);
  char *to = NULL;
  gint r;

  if (item->kind == REDUCE && item->root != comm->rank)
    return;
  to = fake_cuda_at (item->to, item->kind == ALL_GATHER ? n_bytes * comm->n : n_bytes);
  if (to == NULL)
    g_error ("a collective writes to what is not memory of the device");
  if (item->kind == BROADCAST)
    memcpy (to, area_of (comm, item->root), n_bytes);
  else if (item->kind == ALL_GATHER)
    for (r = 0; r < comm->n; r++)
      memcpy (to + r * n_bytes, area_of (comm, r), n_bytes);
  else
    reduce_into (comm, item, item->kind == REDUCE_SCATTER ? comm->rank * item->count : 0, to);
}

static void
multiply (ncclDataType_t type, char *data, gsize n, gdouble factor)
{
  gsize i;

  for (i = 0; i < n; i++)
    store (type, data, i, load (type, data, i) * factor);
}

/* Shows the other ranks what this one has, as soon as they have read the last. */
static gboolean
post (struct ncclComm *comm, const Item *item)
{
  const gsize n_bytes =
      item->count * size_of (item->type) * (item->kind == REDUCE_SCATTER ? (gsize) comm->n : 1);
  const char *from;

  if (!are_all (comm, comm->board->read, comm->number))
    return FALSE;
  from = fake_cuda_at (item->from, n_bytes);
  if (from == NULL)
    g_error ("a collective reads what is not memory of the device");
  memcpy (area_of (comm, comm->rank), from, n_bytes);
  if (item->factor != 0)
    multiply (item->type, area_of (comm, comm->rank), n_bytes / size_of (item->type), item->factor);
  comm->board->headers[comm->rank] =
      (Header){ item->kind, item->type, item->op, item->root, item->count };
  __atomic_store_n (&comm->board->posted[comm->rank], ++comm->number, __ATOMIC_RELEASE);
  return TRUE;
}

/* Ranks that call different things wait for ever, as NCCL's may. */
static gboolean
finish (struct ncclComm *comm, const Item *item)
{
  gint i;

  if (!are_all (comm, comm->board->posted, comm->number))
    return FALSE;
  for (i = 0; i < comm->n; i++)
    if (memcmp (&comm->board->headers[i], &comm->board->headers[comm->rank], sizeof (Header)) != 0)
      return FALSE;
  finish_collective (comm, item);
  __atomic_store_n (&comm->board->read[comm->rank], comm->number, __ATOMIC_RELEASE);
  return TRUE;
}

/* Returns whether the message is done. */
static gboolean
advance (struct ncclComm *comm, const Item *item)
{
  const gsize n_bytes = item->count * size_of (item->type);
  const gboolean is_send = item->kind == SEND;
  const gint from = is_send ? comm->rank : item->root, to = is_send ? item->root : comm->rank;
  guint64 *sent = &comm->board->channels[from][to].n_sent;
  guint64 *received = &comm->board->channels[from][to].n_received;
  gpointer data;

  if (is_send)
    {
      if (__atomic_load_n (received, __ATOMIC_ACQUIRE) < comm->sent[to])
        return FALSE;
      data = fake_cuda_at (item->from, n_bytes);
      memcpy (channel_of (comm, from, to), data, n_bytes);
      comm->board->channels[from][to].n_bytes = n_bytes;
      __atomic_store_n (sent, ++comm->sent[to], __ATOMIC_RELEASE);
      return TRUE;
    }
  if (__atomic_load_n (sent, __ATOMIC_ACQUIRE) <= comm->received[from])
    return FALSE;
  if (comm->board->channels[from][to].n_bytes != n_bytes)
    return FALSE;
  data = fake_cuda_at (item->to, n_bytes);
  memcpy (data, channel_of (comm, from, to), n_bytes);
  __atomic_store_n (received, ++comm->received[from], __ATOMIC_RELEASE);
  return TRUE;
}

/* Messages of a group go on together; those of a pair stay in order. */
static gboolean
advance_messages (Work *work)
{
  guint i, k, n_left = 0;

  for (i = 0; i < work->n; i++)
    {
      Item *item = &work->items[i];
      gboolean is_first = TRUE;

      if (item->is_done)
        continue;
      for (k = 0; k < i; k++)
        is_first &= work->items[k].is_done || work->items[k].kind != item->kind
                    || work->items[k].root != item->root;
      item->is_done = is_first && advance (work->comm, item);
      n_left += !item->is_done;
    }
  return n_left == 0;
}

/* Collectives of a group go one after the other, and messages at the end. Returns whether all is done; a
 * graph then does it again. */
static gboolean
run_work (gpointer data)
{
  Work *work = data;
  guint i;

  if (delay > 0 && !work->is_begun)
    g_usleep (delay);
  work->is_begun = TRUE;
  if (!is_over (work->comm))
    {
      if (work->hangs)
        return FALSE;
      for (; work->at < work->n && work->items[work->at].kind < SEND; work->at++)
        {
          Item *item = &work->items[work->at];

          if (!work->is_posted && !post (work->comm, item))
            return FALSE;
          work->is_posted = TRUE;
          if (!finish (work->comm, item))
            return FALSE;
          work->is_posted = FALSE;
          item->is_done = TRUE;
        }
      if (!advance_messages (work))
        return FALSE;
    }
  work->at = 0;
  work->is_posted = work->is_begun = FALSE;
  for (i = 0; i < work->n; i++)
    work->items[i].is_done = FALSE;
  return TRUE;
}

static ncclResult_t
enqueue (struct ncclComm *comm, void *stream, const Item *items, guint n)
{
  Work *work = keep (g_malloc0 (sizeof (Work) + n * sizeof (Item)));

  work->comm = comm;
  work->n = n;
  memcpy (work->items, items, n * sizeof *items);
  work->hangs = hang_in > 0 && --hang_in == 0;
  if (cut_in > 0 && --cut_in == 0)
    work->items[0].count--;
  return fake_cuda_enqueue_poll (stream, run_work, work) == 0 ? ncclSuccess
                                                              : ncclUnhandledCudaError;
}

/* Operations with a factor, behind NCCL's own. */
#define MAX_FACTORS 16

static gdouble factors[MAX_FACTORS]; /* 0: free */

static ncclResult_t
add (struct ncclComm *comm, void *stream, const Item *given)
{
  Item own = *given;
  const Item *item = &own;
  const gsize n_bytes = item->count * size_of (item->type);
  ncclResult_t result = ncclSuccess;

  if (own.op > ncclAvg)
    {
      own.factor = own.op - ncclAvg - 1 < MAX_FACTORS ? factors[own.op - ncclAvg - 1] : 0;
      own.op = own.factor != 0 ? ncclSum : -1;
    }
  if (own.op < 0 || comm == NULL || item->root < 0 || item->root >= comm->n || item->count == 0
      || n_bytes * comm->n > AREA || (item->kind >= SEND && n_bytes > CHANNEL))
    result = ncclInvalidArgument;
  else if (is_over (comm))
    result = ncclInternalError;
  if (result == ncclSuccess && depth == 0)
    return enqueue (comm, stream, item, 1);
  if (depth > 0 && result != ncclSuccess)
    group_result = result;
  if (result == ncclSuccess)
    {
      const Grouped grouped = { comm, stream, *item };

      if (group == NULL)
        group = g_array_new (FALSE, FALSE, sizeof (Grouped));
      g_array_append_val (group, grouped);
    }
  return result;
}

/* --- the functions --- */

EXPORT ncclResult_t
ncclGetVersion (int *version)
{
  const char *number = getenv ("GTORCH_FAKE_NCCL");

  BEGIN (ncclGetVersion);
  if (version == NULL)
    return ncclInvalidArgument;
  *version = number != NULL ? atoi (number) : 22809;
  return *version > 0 ? ncclSuccess : ncclInternalError;
}

EXPORT const char *
ncclGetErrorString (ncclResult_t result)
{
  static const char *const texts[] = {
    "no error",         "unhandled cuda error", "unhandled system error", "internal error",
    "invalid argument", "invalid usage",        "remote process exited",  "operation in progress"
  };

  return texts[result];
}

EXPORT const char *
ncclGetLastError (ncclComm_t comm)
{
  return "";
}

EXPORT ncclResult_t
ncclGetUniqueId (ncclUniqueId *id)
{
  static gint n;

  BEGIN (ncclGetUniqueId);
  memset (id, 0, sizeof *id);
  g_snprintf (id->internal, sizeof id->internal, "/dev/shm/gtorch-fake-nccl-%d-%d",
              (gint) getpid (), g_atomic_int_add (&n, 1));
  return ncclSuccess;
}

static struct ncclComm *
join (const gchar *path, gint n, gint rank, gboolean is_blocking, Flag *flag)
{
  const int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct ncclComm *self;
  Board *board;

  if (fd < 0 || ftruncate (fd, BOARD_SIZE) != 0)
    return NULL;
  board = mmap (NULL, BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close (fd);
  if (board == MAP_FAILED)
    return NULL;
  self = keep (g_new0 (struct ncclComm, 1));
  self->path = g_strdup (path);
  self->board = board;
  self->aborted = flag;
  self->rank = rank;
  self->n = n;
  self->is_blocking = is_blocking;
  board->pids[rank] = getpid ();
  if (__atomic_add_fetch (&board->n_joined, 1, __ATOMIC_ACQ_REL) == n)
    unlink (path);
  g_atomic_int_inc (&n_comms);
  return self;
}

static gboolean
is_complete (struct ncclComm *comm)
{
  return __atomic_load_n (&comm->board->n_joined, __ATOMIC_ACQUIRE) >= comm->n;
}

EXPORT ncclResult_t
ncclCommInitRankConfig (ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank,
                        ncclConfig_t *config)
{
  BEGIN (ncclCommInitRankConfig);
  if (n_ranks < 1 || n_ranks > MAX_RANKS || rank < 0 || rank >= n_ranks
      || config->magic != NCCL_CONFIG_MAGIC)
    return ncclInvalidArgument;
  *comm = join (id.internal, n_ranks, rank, config->blocking != 0, keep (g_new0 (Flag, 1)));
  if (*comm == NULL)
    return ncclSystemError;
  while (config->blocking != 0 && !is_complete (*comm))
    g_usleep (100);
  return config->blocking != 0 ? ncclSuccess : ncclInProgress;
}

EXPORT ncclResult_t
ncclCommSplit (ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config)
{
  g_autofree gchar *path = g_strdup_printf ("%s-%u", comm->path, comm->n_splits++);

  BEGIN (ncclCommSplit);
  if (color != 0 || key != comm->rank || config->blocking != 1)
    return ncclInvalidArgument;
  *child = join (path, comm->n, comm->rank, TRUE, comm->aborted);
  if (*child == NULL)
    return ncclSystemError;
  comm->child = *child;
  return ncclInProgress;
}

static gboolean
has_lost (struct ncclComm *comm)
{
  gint i;

  for (i = 0; notices && i < comm->n; i++)
    if (comm->board->pids[i] != 0 && kill (comm->board->pids[i], 0) != 0)
      return TRUE;
  return FALSE;
}

EXPORT ncclResult_t
ncclCommGetAsyncError (ncclComm_t comm, ncclResult_t *result)
{
  BEGIN (ncclCommGetAsyncError);
  *result = is_over (comm) ? ncclInternalError : ncclSuccess;
  if (*result == ncclSuccess && has_lost (comm))
    *result = ncclRemoteError;
  if (*result == ncclSuccess
      && (!is_complete (comm) || (comm->child != NULL && !is_complete (comm->child))))
    *result = ncclInProgress;
  return ncclSuccess;
}

/* The memory stays: work that has not been executed refers to it. */
static void
leave (struct ncclComm *comm)
{
  unlink (comm->path);
  g_atomic_int_add (&n_comms, -1);
}

EXPORT ncclResult_t
ncclCommDestroy (ncclComm_t comm)
{
  BEGIN (ncclCommDestroy);
  fake_cuda_stall ();
  leave (comm);
  return ncclSuccess;
}

EXPORT ncclResult_t
ncclCommAbort (ncclComm_t comm)
{
  BEGIN (ncclCommAbort);
  g_atomic_int_set (&comm->aborted->is_set, TRUE);
  leave (comm);
  return ncclSuccess;
}

EXPORT ncclResult_t
ncclGroupStart (void)
{
  BEGIN (ncclGroupStart);
  if (depth++ == 0)
    group_result = ncclSuccess;
  return ncclSuccess;
}

/* What a group has for one communicator is enqueued as one. */
static ncclResult_t
enqueue_group (void)
{
  ncclResult_t result = ncclSuccess;

  while (result == ncclSuccess && group->len > 0)
    {
      const Grouped first = g_array_index (group, Grouped, 0);
      g_autoptr (GArray) items = g_array_new (FALSE, FALSE, sizeof (Item));
      guint i = 0;

      while (i < group->len)
        if (g_array_index (group, Grouped, i).comm == first.comm)
          {
            g_array_append_val (items, g_array_index (group, Grouped, i).item);
            g_array_remove_index (group, i);
          }
        else
          i++;
      result = enqueue (first.comm, first.stream, (const Item *) items->data, items->len);
    }
  return result;
}

EXPORT ncclResult_t
ncclGroupEnd (void)
{
  const gint fault = begin ("ncclGroupEnd");
  ncclResult_t result = group_result;

  if (depth == 0)
    return ncclInvalidUsage;
  if (--depth > 0)
    return ncclSuccess;
  if (fault != 0)
    result = (ncclResult_t) fault;
  if (result == ncclSuccess && group != NULL && group->len > 0)
    result = enqueue_group ();
  g_clear_pointer (&group, g_array_unref);
  return result;
}

EXPORT ncclResult_t
ncclRedOpCreatePreMulSum (ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                          ncclScalarResidence_t residence, ncclComm_t comm)
{
  gint i;

  BEGIN (ncclRedOpCreatePreMulSum);
  if (residence != ncclScalarHostImmediate || comm == NULL)
    return ncclInvalidArgument;
  g_mutex_lock (&lock);
  for (i = 0; i < MAX_FACTORS - 1 && factors[i] != 0; i++)
    ;
  factors[i] = load (type, scalar, 0);
  g_mutex_unlock (&lock);
  *op = (ncclRedOp_t) (ncclAvg + 1 + i);
  return ncclSuccess;
}

EXPORT ncclResult_t
ncclRedOpDestroy (ncclRedOp_t op, ncclComm_t comm)
{
  BEGIN (ncclRedOpDestroy);
  if (op <= ncclAvg || op > ncclAvg + MAX_FACTORS)
    return ncclInvalidArgument;
  g_mutex_lock (&lock);
  factors[op - ncclAvg - 1] = 0;
  g_mutex_unlock (&lock);
  return ncclSuccess;
}

#define CALL(name, ...)                       \
  do                                          \
    {                                         \
      const Item item_ = { __VA_ARGS__ };     \
      const gint fault_ = begin (#name);      \
      if (fault_ != 0 && depth > 0)           \
        group_result = (ncclResult_t) fault_; \
      if (fault_ != 0)                        \
        return (ncclResult_t) fault_;         \
      return add (comm, stream, &item_);      \
    }                                         \
  while (0)

EXPORT ncclResult_t
ncclBroadcast (const void *from, void *to, size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream)
{
  CALL (ncclBroadcast, BROADCAST, from, to, count, type, 0, root);
}

EXPORT ncclResult_t
ncclAllReduce (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
               ncclComm_t comm, cudaStream_t stream)
{
  CALL (ncclAllReduce, ALL_REDUCE, from, to, count, type, op, 0);
}

EXPORT ncclResult_t
ncclReduce (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
            ncclComm_t comm, cudaStream_t stream)
{
  CALL (ncclReduce, REDUCE, from, to, count, type, op, root);
}

EXPORT ncclResult_t
ncclAllGather (const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
               cudaStream_t stream)
{
  CALL (ncclAllGather, ALL_GATHER, from, to, count, type, 0, 0);
}

EXPORT ncclResult_t
ncclReduceScatter (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                   ncclComm_t comm, cudaStream_t stream)
{
  CALL (ncclReduceScatter, REDUCE_SCATTER, from, to, count, type, op, 0);
}

EXPORT ncclResult_t
ncclSend (const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
          cudaStream_t stream)
{
  CALL (ncclSend, SEND, from, NULL, count, type, 0, peer);
}

EXPORT ncclResult_t
ncclRecv (void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
          cudaStream_t stream)
{
  CALL (ncclRecv, RECEIVE, NULL, to, count, type, 0, peer);
}
