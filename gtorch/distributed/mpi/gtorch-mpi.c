/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The module that calls MPI: see gtorch-mpi-table-private.h. It uses nothing of the library and of GLib. */

#include "config.h"

#include <mpi.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distributed/mpi/gtorch-mpi-table-private.h"

typedef struct
{
  MPI_Comm comm;
} Comm;

typedef struct
{
  MPI_Request request;
  int is_awaited; /* a message that has not come yet */
  MPI_Comm comm;
  GTorchMpiTransfer transfer;
  MPI_Count n_bytes; /* of the message */
  void *surplus;     /* where one goes that is too long; or NULL */
} Request;

/* Bytes on their way to another process. */
typedef struct Letter
{
  struct Letter *next;
  MPI_Request request;
  char data[GTORCH_MPI_LETTER];
} Letter;

#define LETTER_TAG 1

static GTorchMpiEnd before_end;
static MPI_Comm all = MPI_COMM_NULL; /* a world of the library's own */
static MPI_Request joining = MPI_REQUEST_NULL;
static Letter *sent;
static MPI_Datatype types[GTORCH_MPI_N_TYPES];
static MPI_Op float16_ops[GTORCH_MPI_MAX + 1], bfloat16_ops[GTORCH_MPI_MAX + 1];

static int
fail (int code, const char *what, char *message, size_t size)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;

  if (MPI_Error_string (code, text, &length) != MPI_SUCCESS)
    snprintf (text, sizeof text, "error %d", code);
  snprintf (message, size, "%s: %s", what, text);
  return 1;
}

/* --- 16-bit floats, which MPI does not know --- */

static float
from_bfloat16 (uint16_t bits)
{
  const uint32_t wide = (uint32_t) bits << 16;
  float value;

  memcpy (&value, &wide, sizeof value);
  return value;
}

static uint16_t
to_bfloat16 (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  if (value != value)
    return (uint16_t) (bits >> 16 | 0x40);
  return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float
from_float16 (uint16_t bits)
{
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float magnitude = exponent == 31  ? (mantissa ? (float) NAN : (float) INFINITY)
                          : exponent == 0 ? ldexpf ((float) mantissa, -24)
                                          : ldexpf ((float) (mantissa | 1024), exponent - 25);

  return bits & 0x8000 ? -magnitude : magnitude;
}

/* Rounds to nearest, ties to even. */
static uint16_t
to_float16 (float value)
{
  const uint16_t sign = signbit (value) ? 0x8000 : 0;
  const float magnitude = fabsf (value);
  int exponent;
  float scaled;

  if (value != value)
    return 0x7e00;
  if (magnitude >= 65520.0f)
    return sign | 0x7c00;
  if (magnitude < 0x1p-14f)
    return (uint16_t) (sign + (uint16_t) nearbyintf (ldexpf (magnitude, 24)));
  (void) frexpf (magnitude, &exponent);                    /* [0.5, 1) times 2^exponent */
  scaled = nearbyintf (ldexpf (magnitude, 11 - exponent)); /* 1024 to 2048 */
  return (uint16_t) (sign + ((exponent + 14) << 10) + ((int) scaled - 1024));
}

static float
combine (float a, float b, int op)
{
  switch (op)
    {
    case GTORCH_MPI_SUM:
      return a + b;
    case GTORCH_MPI_PRODUCT:
      return a * b;
    case GTORCH_MPI_MIN:
      return a != a || a < b ? a : b;
    default:
      return a != a || a > b ? a : b;
    }
}

#define DEFINE_OP(type, Name, op)                                              \
  static void Name (void *in, void *inout, int *n, MPI_Datatype *datatype)     \
  {                                                                            \
    const uint16_t *a = in;                                                    \
    uint16_t *b = inout;                                                       \
    int i;                                                                     \
                                                                               \
    (void) datatype;                                                           \
    for (i = 0; i < *n; i++)                                                   \
      b[i] = to_##type (combine (from_##type (a[i]), from_##type (b[i]), op)); \
  }

DEFINE_OP (float16, sum_float16, GTORCH_MPI_SUM)
DEFINE_OP (float16, product_float16, GTORCH_MPI_PRODUCT)
DEFINE_OP (float16, min_float16, GTORCH_MPI_MIN)
DEFINE_OP (float16, max_float16, GTORCH_MPI_MAX)
DEFINE_OP (bfloat16, sum_bfloat16, GTORCH_MPI_SUM)
DEFINE_OP (bfloat16, product_bfloat16, GTORCH_MPI_PRODUCT)
DEFINE_OP (bfloat16, min_bfloat16, GTORCH_MPI_MIN)
DEFINE_OP (bfloat16, max_bfloat16, GTORCH_MPI_MAX)

/* --- starting and ending --- */

/* A process that fails ends the others: they would wait for it, and it for them in MPI_Finalize (). Where a
 * thread does not come back from a call of MPI, its memory must stay, and MPI is told by the exit alone. */
static void
end (int status, void *data)
{
  int is_over = 0, is_quiet;

  (void) data;
  if (MPI_Finalized (&is_over) != MPI_SUCCESS || is_over)
    return;
  is_quiet = before_end (status != 0);
  if (status != 0)
    MPI_Abort (MPI_COMM_WORLD, status);
  else if (is_quiet)
    MPI_Finalize ();
}

/* MPI_Finalize () deletes what hangs on this communicator before it does anything else: so threads
 * stop as well where the program calls it, or another library that has initialized MPI. */
static int
end_of_self (MPI_Comm comm, int key, void *value, void *data)
{
  (void) comm;
  (void) key;
  (void) value;
  (void) data;
  return before_end (0) ? MPI_SUCCESS : MPI_ERR_PENDING;
}

static void
watch_end (void)
{
  int key;

  if (MPI_Comm_create_keyval (MPI_COMM_NULL_COPY_FN, end_of_self, &key, NULL) != MPI_SUCCESS)
    return;
  MPI_Comm_set_attr (MPI_COMM_SELF, key, NULL);
  MPI_Comm_free_keyval (&key);
}

#ifndef __GLIBC__
/* Where the status is not known at the end. */
static void
end_well (void)
{
  end (0, NULL);
}
#endif

static int
make_types (void)
{
  static MPI_User_function *const float16_functions[] = { sum_float16, product_float16, min_float16,
                                                          max_float16 };
  static MPI_User_function *const bfloat16_functions[] = { sum_bfloat16, product_bfloat16,
                                                           min_bfloat16, max_bfloat16 };
  int i;

  types[GTORCH_MPI_INT8] = MPI_INT8_T;
  types[GTORCH_MPI_UINT8] = MPI_UINT8_T;
  types[GTORCH_MPI_INT16] = MPI_INT16_T;
  types[GTORCH_MPI_INT32] = MPI_INT32_T;
  types[GTORCH_MPI_INT64] = MPI_INT64_T;
  types[GTORCH_MPI_FLOAT16] = MPI_UINT16_T;
  types[GTORCH_MPI_BFLOAT16] = MPI_UINT16_T;
  types[GTORCH_MPI_FLOAT32] = MPI_FLOAT;
  types[GTORCH_MPI_FLOAT64] = MPI_DOUBLE;
  types[GTORCH_MPI_COMPLEX64] = MPI_C_FLOAT_COMPLEX;
  types[GTORCH_MPI_COMPLEX128] = MPI_C_DOUBLE_COMPLEX;
  types[GTORCH_MPI_BOOL] = MPI_C_BOOL;
  for (i = 0; i <= GTORCH_MPI_MAX; i++)
    if (MPI_Op_create (float16_functions[i], 1, &float16_ops[i]) != MPI_SUCCESS
        || MPI_Op_create (bfloat16_functions[i], 1, &bfloat16_ops[i]) != MPI_SUCCESS)
      return 0;
  return 1;
}

static int
init (int *rank, int *n_ranks, GTorchMpiEnd end_function, char *message, size_t size)
{
  int is_initialized = 0, level = MPI_THREAD_MULTIPLE, code;

  before_end = end_function;
  MPI_Initialized (&is_initialized);
  if (is_initialized)
    MPI_Query_thread (&level);
  else
    {
      code = MPI_Init_thread (NULL, NULL, MPI_THREAD_SERIALIZED, &level);
      if (code != MPI_SUCCESS)
        return fail (code, "MPI_Init_thread", message, size);
#ifdef __GLIBC__
      on_exit (end, NULL);
#else
      atexit (end_well);
#endif
    }
  if (level < MPI_THREAD_SERIALIZED)
    {
      snprintf (message, size, "MPI was initialized for one thread only");
      return 1;
    }
  MPI_Comm_set_errhandler (MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!make_types ())
    {
      snprintf (message, size, "MPI_Op_create has failed");
      return 1;
    }
  watch_end ();
  MPI_Comm_rank (MPI_COMM_WORLD, rank);
  MPI_Comm_size (MPI_COMM_WORLD, n_ranks);
  return 0;
}

static const char *
version (void)
{
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;

  MPI_Get_library_version (text, &length);
  return text;
}

/* --- communicators --- */

/* Where others do not come, the communicator is under way until they do: it cannot be taken back, and the
 * next attempt goes on with it. */
static int
join (int *is_done, char *message, size_t size)
{
  int code = MPI_SUCCESS;

  *is_done = 0;
  if (all == MPI_COMM_NULL && joining == MPI_REQUEST_NULL)
    code = MPI_Comm_idup (MPI_COMM_WORLD, &all, &joining);
  if (code == MPI_SUCCESS && joining == MPI_REQUEST_NULL)
    *is_done = 1;
  else if (code == MPI_SUCCESS)
    {
      code = MPI_Test (&joining, is_done, MPI_STATUS_IGNORE);
      if (code == MPI_SUCCESS && *is_done)
        MPI_Comm_set_errhandler (all, MPI_ERRORS_RETURN);
    }
  if (code == MPI_SUCCESS)
    return 0;
  all = MPI_COMM_NULL;
  joining = MPI_REQUEST_NULL;
  return fail (code, "MPI_Comm_idup", message, size);
}

/* Frees what has gone; the memory of what has not belongs to MPI. */
static void
free_sent (void)
{
  Letter **link = &sent;

  while (*link != NULL)
    {
      Letter *letter = *link;
      int is_done = 0;

      if (MPI_Test (&letter->request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !is_done)
        {
          link = &letter->next;
          continue;
        }
      *link = letter->next;
      free (letter);
    }
}

static int
post (int to, const void *data, int n_bytes, char *message, size_t size)
{
  Letter *letter = malloc (sizeof *letter);
  int code;

  if (letter == NULL || n_bytes > GTORCH_MPI_LETTER)
    {
      free (letter);
      snprintf (message, size, "no memory");
      return 1;
    }
  memcpy (letter->data, data, n_bytes);
  code = MPI_Isend (letter->data, n_bytes, MPI_BYTE, to, LETTER_TAG, all, &letter->request);
  if (code != MPI_SUCCESS)
    {
      free (letter);
      return fail (code, "MPI_Isend", message, size);
    }
  letter->next = sent;
  sent = letter;
  return 0;
}

/* Nothing is received before it is there, so that nothing has to be taken back. */
static int
take (int *from, void *data, int n_bytes, int *is_there, char *message, size_t size)
{
  MPI_Status status = { 0 };
  int code;

  free_sent ();
  *is_there = 0;
  code = MPI_Iprobe (MPI_ANY_SOURCE, LETTER_TAG, all, is_there, &status);
  if (code == MPI_SUCCESS && *is_there)
    {
      *from = status.MPI_SOURCE;
      code = MPI_Recv (data, n_bytes, MPI_BYTE, *from, LETTER_TAG, all, &status);
    }
  return code == MPI_SUCCESS ? 0 : fail (code, "MPI_Recv", message, size);
}

static int
comm_new (const int *ranks, int n, int tag, void **comm, char *message, size_t size)
{
  Comm *self = malloc (sizeof *self);
  int code;

  if (self == NULL)
    {
      snprintf (message, size, "no memory");
      return 1;
    }
  if (ranks == NULL)
    code = MPI_Comm_dup (all, &self->comm);
  else
    {
      MPI_Group world, part;

      MPI_Comm_group (all, &world);
      code = MPI_Group_incl (world, n, ranks, &part);
      if (code == MPI_SUCCESS)
        {
          code = MPI_Comm_create_group (all, part, tag, &self->comm);
          MPI_Group_free (&part);
        }
      MPI_Group_free (&world);
    }
  if (code != MPI_SUCCESS)
    {
      free (self);
      return fail (code, "a communicator could not be made", message, size);
    }
  MPI_Comm_set_errhandler (self->comm, MPI_ERRORS_RETURN);
  *comm = self;
  return 0;
}

/* MPI means all ranks to call MPI_Comm_free (), and expects implementations to do it without the others, as
 * Open MPI and MPICH do: ranks drop their groups at different times. */
static void
comm_free (void *comm)
{
  int is_over = 0;

  if (MPI_Finalized (&is_over) == MPI_SUCCESS && !is_over)
    MPI_Comm_free (&((Comm *) comm)->comm);
  free (comm);
}

static MPI_Op
op_of (const GTorchMpiTransfer *t)
{
  static const MPI_Op *const special[] = { float16_ops, bfloat16_ops };
  static MPI_Op numbers[GTORCH_MPI_N_OPS], truths[GTORCH_MPI_N_OPS];

  if (t->type == GTORCH_MPI_FLOAT16 || t->type == GTORCH_MPI_BFLOAT16)
    return special[t->type - GTORCH_MPI_FLOAT16][t->op];
  numbers[GTORCH_MPI_SUM] = MPI_SUM;
  numbers[GTORCH_MPI_PRODUCT] = MPI_PROD;
  numbers[GTORCH_MPI_MIN] = MPI_MIN;
  numbers[GTORCH_MPI_MAX] = MPI_MAX;
  numbers[GTORCH_MPI_BAND] = MPI_BAND;
  numbers[GTORCH_MPI_BOR] = MPI_BOR;
  numbers[GTORCH_MPI_BXOR] = MPI_BXOR;
  truths[GTORCH_MPI_SUM] = truths[GTORCH_MPI_MAX] = truths[GTORCH_MPI_BOR] = MPI_LOR;
  truths[GTORCH_MPI_PRODUCT] = truths[GTORCH_MPI_MIN] = truths[GTORCH_MPI_BAND] = MPI_LAND;
  truths[GTORCH_MPI_BXOR] = MPI_LXOR;
  return t->type == GTORCH_MPI_BOOL ? truths[t->op] : numbers[t->op];
}

#define WIDE 16 /* bytes of MPI_C_DOUBLE_COMPLEX: MPI counts in int */

/* Takes a message when it is there, and its length is known: MPI may write behind the end of what is too
 * short for one. */
static int
await (Request *self)
{
  const GTorchMpiTransfer *t = &self->transfer;
  MPI_Message message;
  MPI_Status status;
  int is_there = 0, size = 0;
  int code = MPI_Improbe (t->root < 0 ? MPI_ANY_SOURCE : t->root, t->tag, self->comm, &is_there,
                          &message, &status);

  if (code != MPI_SUCCESS || !is_there)
    return code;
  self->is_awaited = 0;
  MPI_Type_size (types[t->type], &size);
  code = MPI_Get_elements_x (&status, MPI_BYTE, &self->n_bytes);
  if (code != MPI_SUCCESS)
    return code;
  if (self->n_bytes <= (MPI_Count) t->count * size)
    return MPI_Imrecv (t->out, t->count, types[t->type], &message, &self->request);
  self->surplus = malloc (self->n_bytes + WIDE);
  return self->surplus == NULL
             ? MPI_ERR_NO_MEM
             : MPI_Imrecv (self->surplus, (int) ((self->n_bytes + WIDE - 1) / WIDE),
                           MPI_C_DOUBLE_COMPLEX, &message, &self->request);
}

static int
start_transfer (MPI_Comm comm, const GTorchMpiTransfer *t, MPI_Request *request)
{
  const MPI_Datatype type = types[t->type];
  int rank = 0;

  switch (t->kind)
    {
    case GTORCH_MPI_BROADCAST:
      return MPI_Ibcast (t->out, t->count, type, t->root, comm, request);
    case GTORCH_MPI_ALL_REDUCE:
      return MPI_Iallreduce (MPI_IN_PLACE, t->out, t->count, type, op_of (t), comm, request);
    case GTORCH_MPI_REDUCE:
      MPI_Comm_rank (comm, &rank);
      return MPI_Ireduce (rank == t->root ? MPI_IN_PLACE : t->out, rank == t->root ? t->out : NULL,
                          t->count, type, op_of (t), t->root, comm, request);
    case GTORCH_MPI_ALL_GATHER:
      return MPI_Iallgatherv (t->in, t->count, type, t->out, t->out_counts, t->out_offsets, type,
                              comm, request);
    case GTORCH_MPI_GATHER:
      return MPI_Igatherv (t->in, t->count, type, t->out, t->out_counts, t->out_offsets, type,
                           t->root, comm, request);
    case GTORCH_MPI_SCATTER:
      return MPI_Iscatterv (t->in, t->in_counts, t->in_offsets, type, t->out, t->count, type,
                            t->root, comm, request);
    case GTORCH_MPI_REDUCE_SCATTER:
      return MPI_Ireduce_scatter (t->in, t->out, t->out_counts, type, op_of (t), comm, request);
    case GTORCH_MPI_ALL_TO_ALL:
      return MPI_Ialltoallv (t->in, t->in_counts, t->in_offsets, type, t->out, t->out_counts,
                             t->out_offsets, type, comm, request);
    case GTORCH_MPI_SEND:
      return MPI_Isend (t->in, t->count, type, t->root, t->tag, comm, request);
    case GTORCH_MPI_BARRIER:
      return MPI_Ibarrier (comm, request);
    default:
      return MPI_ERR_ARG;
    }
}

static int
start (void *comm, const GTorchMpiTransfer *transfer, void **request, char *message, size_t size)
{
  Request *self = calloc (1, sizeof *self);
  int code;

  if (self == NULL)
    {
      snprintf (message, size, "no memory");
      return 1;
    }
  self->request = MPI_REQUEST_NULL;
  self->comm = ((Comm *) comm)->comm;
  self->transfer = *transfer;
  self->is_awaited = transfer->kind == GTORCH_MPI_RECEIVE;
  code = self->is_awaited ? MPI_SUCCESS : start_transfer (self->comm, transfer, &self->request);
  if (code != MPI_SUCCESS)
    {
      free (self);
      return fail (code, "MPI", message, size);
    }
  *request = self;
  return 0;
}

static int
test (void *request, int *is_done, int *source, long *n_bytes, char *message, size_t size)
{
  Request *self = request;
  MPI_Status status = { 0 };
  int code = self->is_awaited ? await (self) : MPI_SUCCESS;

  *is_done = 0;
  if (code == MPI_SUCCESS && !self->is_awaited)
    code = MPI_Test (&self->request, is_done, &status);
  if (code == MPI_SUCCESS && !*is_done)
    return 0;
  *n_bytes = (long) self->n_bytes;
  *source = status.MPI_SOURCE;
  free (self->surplus);
  free (self);
  return code == MPI_SUCCESS ? 0 : fail (code, "MPI", message, size);
}

/* A collective operation cannot be taken back; MPI keeps what it needs of it. */
static void
abandon (void *request)
{
  free (request);
}

__attribute__ ((visibility ("default")))
const GTorchMpiTable gtorch_mpi_table = { GTORCH_MPI_ABI, init,      version, join, post,   take,
                                          comm_new,       comm_free, start,   test, abandon };
